"""A Delta table's log, read without Spark: versions, snapshots and commits."""

from __future__ import annotations

import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from runnel.errors import SourceError, SystemFault
from runnel.lake.vectors import vector_file

_COMMIT_FILE = re.compile(r"(\d{20})\.json")
_NUM_RECORDS = re.compile(r'"numRecords":\s*(\d+)')
_SNAPSHOTS = 4
_COMMITS = 64
_T = TypeVar("_T")


class HistoryLost(SourceError):
    """The log, or the files it names, no longer reach back as far as was asked."""

    code = "HISTORY_LOST"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One live file with the statistics of its log entry."""

    path: str
    size: int
    rows: int | None
    minimum: dict[str, Any] = field(hash=False)
    maximum: dict[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table at one version."""

    root: str
    version: int
    table_id: str
    schema_json: str
    partition_columns: tuple[str, ...]
    configuration: dict[str, str] = field(hash=False)
    reader_features: frozenset[str]
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class FileAction:
    """A file that a commit added, removed, or wrote as change data."""

    path: str
    size: int
    rows: int | None
    data_change: bool
    deleted_rows: int = 0
    """Rows its deletion vector hides."""
    deleted_ms: int = 0
    """When it was removed, by which VACUUM counts."""
    vector: str | None = None
    """The file of its deletion vector, which VACUUM may take alone."""
    partition: tuple[tuple[str, str | None], ...] | None = None
    """The values of the partition columns as text, where the log has them."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One entry of the log."""

    version: int
    timestamp_ms: int
    operation: str
    user_metadata: str | None
    adds: tuple[FileAction, ...]
    removes: tuple[FileAction, ...]
    cdc: tuple[FileAction, ...]
    metadata: dict[str, Any] | None = field(hash=False)
    protocol: dict[str, Any] | None = field(hash=False)
    txns: dict[str, int] = field(hash=False)


class DeltaLog:
    """The log of the table at `path` (a local path or a URI); safe to share between threads."""

    def __init__(self, path: str) -> None:
        self.is_local = "://" not in path or path.startswith("file:")
        self.path = _local_path(path) if self.is_local else path
        self._lock = threading.RLock()
        self._known: tuple[int, tuple[int, int]] | None = None
        self._snapshots: OrderedDict[int, Snapshot] = OrderedDict()
        self._commits: OrderedDict[int, Commit] = OrderedDict()

    def latest_version(self) -> int:
        """The newest version; two `stat` calls when nothing happened since the last time."""
        if not self.is_local:
            return int(self._open(None).version())
        with self._lock:
            if self._known is None or _identity(self._file(self._known[0])) != self._known[1]:
                self._forget()
                self._known = self._list_latest()
            version, identity = self._known
            while following := _identity(self._file(version + 1)):
                version, identity = version + 1, following
            self._known = (version, identity)
            return version

    def snapshot(self, version: int) -> Snapshot:
        """The table at a version; HistoryLost when the log no longer reaches it."""
        with self._lock:
            if version not in self._snapshots:
                _keep(self._snapshots, version, self._load(version), _SNAPSHOTS)
            self._snapshots.move_to_end(version)
            return self._snapshots[version]

    def table_id(self, version: int) -> str:
        """The id in the table's metadata: another one is another table."""
        return self.snapshot(version).table_id

    def timestamp(self, version: int) -> int:
        """When a version was committed, in milliseconds since 1970."""
        return self.commit(version).timestamp_ms

    def commits(self, after: int, upto: int) -> tuple[Commit, ...]:
        """The commits with after < version <= upto; HistoryLost when one is gone."""
        return tuple(self.commit(version) for version in range(after + 1, upto + 1))

    def commit(self, version: int) -> Commit:
        """One entry of the log."""
        with self._lock:
            if version not in self._commits:
                _keep(self._commits, version, self._parse(version), _COMMITS)
            return self._commits[version]

    def user_metadata(self, version: int) -> str | None:
        """What the writer of a version attached to it."""
        if self.is_local:
            return self.commit(version).user_metadata
        history = self._open(version).history(1)
        return history[0].get("userMetadata") if history else None

    def _file(self, version: int) -> str:
        return f"{self.path}/_delta_log/{version:020d}.json"

    def _forget(self) -> None:
        self._snapshots.clear()
        self._commits.clear()

    def _list_latest(self) -> tuple[int, tuple[int, int]]:
        try:
            names = os.listdir(f"{self.path}/_delta_log")
        except FileNotFoundError:
            raise _missing(self.path) from None
        except OSError as error:
            raise _unreadable(self.path, error) from error
        versions = [
            int(match.group(1)) for name in names if (match := _COMMIT_FILE.fullmatch(name))
        ]
        identity = _identity(self._file(max(versions))) if versions else None
        if identity is None:
            raise _missing(self.path)
        return max(versions), identity

    def _open(self, version: int | None) -> DeltaTable:
        try:
            return DeltaTable(self.path, version=version)
        except TableNotFoundError:
            raise _missing(self.path) from None
        except FileNotFoundError as error:
            raise HistoryLost(
                f"version {version} of {self.path} cannot be read", detail=str(error)
            ) from error
        except OSError as error:
            raise _unreadable(self.path, error) from error
        except DeltaError as error:
            if version is None:
                raise SourceError(
                    f"the log of {self.path} cannot be read", detail=str(error)
                ) from error
            raise HistoryLost(
                f"version {version} of {self.path} cannot be read", detail=str(error)
            ) from error

    def _load(self, version: int) -> Snapshot:
        table = self._open(version)
        metadata, protocol = table.metadata(), table.protocol()
        return Snapshot(
            root=self.path,
            version=version,
            table_id=str(metadata.id),
            schema_json=table.schema().to_json(),
            partition_columns=tuple(metadata.partition_columns),
            configuration=dict(metadata.configuration),
            reader_features=frozenset(protocol.reader_features or ()),
            files=tuple(self._files(table)),
        )

    def _files(self, table: DeltaTable) -> Iterator[DataFile]:
        actions = table.get_add_actions()
        present = set(actions.schema.names)

        def values(name: str, default: Any) -> list[Any]:
            if name not in present:
                return [default] * actions.num_rows
            return [default if v is None else v for v in actions.column(name).to_pylist()]

        for path, size, rows, low, high in zip(
            values("path", ""), values("size_bytes", 0), values("num_records", None),
            values("min", {}), values("max", {}), strict=True,
        ):  # fmt: skip
            yield DataFile(self._absolute(path), size, rows, low, high)

    def _parse(self, version: int) -> Commit:
        if not self.is_local:
            raise HistoryLost(f"the log of {self.path} is not on a local disk")
        try:
            with open(self._file(version), encoding="utf-8") as file:
                actions = [json.loads(line) for line in file if line.strip()]
        except FileNotFoundError:
            raise HistoryLost(
                f"commit {version} of {self.path} is gone", detail="the log was cleaned up"
            ) from None
        except OSError as error:
            raise _unreadable(self.path, error) from error
        except ValueError as error:
            raise SourceError(
                f"commit {version} of {self.path} is damaged", detail=str(error)
            ) from error
        return self._commit(version, actions)

    def _commit(self, version: int, actions: list[dict[str, Any]]) -> Commit:
        def every(kind: str) -> list[dict[str, Any]]:
            return [action[kind] for action in actions if action.get(kind) is not None]

        info = next(iter(every("commitInfo")), {})
        return Commit(
            version=version,
            timestamp_ms=int(info.get("inCommitTimestamp") or info.get("timestamp") or 0),
            operation=str(info.get("operation", "")),
            user_metadata=info.get("userMetadata"),
            adds=tuple(self._action(a) for a in every("add")),
            removes=tuple(self._action(a) for a in every("remove")),
            cdc=tuple(self._action(a) for a in every("cdc")),
            metadata=next(iter(every("metaData")), None),
            protocol=next(iter(every("protocol")), None),
            txns={t["appId"]: int(t["version"]) for t in every("txn")},
        )

    def _action(self, action: dict[str, Any]) -> FileAction:
        # The rest of the statistics is not looked at, and can be large.
        rows = _NUM_RECORDS.search(action.get("stats") or "")
        return FileAction(
            path=self._absolute(action["path"]),
            size=int(action.get("size") or 0),
            rows=int(rows.group(1)) if rows else None,
            data_change=bool(action.get("dataChange", True)),
            deleted_rows=int((action.get("deletionVector") or {}).get("cardinality", 0)),
            deleted_ms=int(action.get("deletionTimestamp") or 0),
            vector=vector_file(self.path, action.get("deletionVector")),
            partition=_partition(action.get("partitionValues")),
        )

    def _absolute(self, path: str) -> str:
        # Paths in the log are URIs: relative and percent-encoded, or absolute in a shallow clone.
        if re.match(r"[A-Za-z][\w+.-]*:/", path):
            return _local_path(path) if path.startswith("file:") else unquote(path)
        return os.path.join(self.path, unquote(path))


def _partition(values: dict[str, str | None] | None) -> tuple[tuple[str, str | None], ...] | None:
    return None if values is None else tuple(sorted(values.items()))


def _identity(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _keep(cache: OrderedDict[int, _T], version: int, value: _T, limit: int) -> None:
    cache[version] = value
    while len(cache) > limit:
        cache.popitem(last=False)


def _local_path(path: str) -> str:
    plain = unquote(urlsplit(path).path) if path.startswith("file:") else path
    return str(Path(plain).absolute())


def _unreadable(path: str, error: OSError) -> SystemFault:
    return SystemFault(
        f"the table at {path} cannot be read",
        detail=error.strerror or str(error),
        hint="check the permissions, the disk and the mount of its folder",
    )


def _missing(path: str) -> SourceError:
    return SourceError(f"there is no Delta table at {path}")
