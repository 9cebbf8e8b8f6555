"""What changed in a Delta table between two versions: whether it can be told, and the rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField

from runnel.lake.evolution import schema_conflict
from runnel.lake.log import Commit, DeltaLog, FileAction, HistoryLost, Snapshot
from runnel.lake.partitions import can_read, scan_actions
from runnel.lake.reading import (
    as_strings,
    has_plain_files,
    read_version,
    scan_files,
    union_all,
)
from runnel.model.frontier import Pin

CHANGE_TYPE = "_change_type"
COMING = ("insert", "update_postimage")
_WEIGHT_OF_CHANGE = f"CASE WHEN {CHANGE_TYPE} IN {COMING} THEN 1L ELSE -1L END"
_FOOTERS = 64
_BYTES_PER_ROW = 16


class ChangeKind(StrEnum):
    """How a source got from one version to another."""

    NONE = "none"
    ROWS = "rows"
    LOST = "lost"
    REPLACED = "replaced"
    SCHEMA = "schema"


class Way(StrEnum):
    """How the changed rows are read."""

    FILES = "files"
    FEED = "feed"
    VERSIONS = "versions"


@dataclass(frozen=True, slots=True)
class ChangeInfo:
    """The change of one source over (after, upto], before reading any of it.

    `rows` is an upper estimate from statistics.
    """

    kind: ChangeKind
    after: int
    upto: int
    rows: int = 0
    insert_only: bool = False
    reason: str | None = None
    way: Way = Way.FILES


@dataclass(frozen=True, slots=True)
class FileChange:
    """Files whose rows count `weight` times each, or as their change type says (cdc)."""

    weighted: tuple[tuple[int, FileAction], ...]
    cdc: tuple[FileAction, ...]

    @property
    def insert_only(self) -> bool:
        return not self.cdc and all(weight > 0 for weight, _ in self.weighted)

    @property
    def paths(self) -> list[str]:
        data = [a.path for _, a in self.weighted] + [a.path for a in self.cdc]
        return data + [a.vector for _, a in self.weighted if a.vector]


def inspect(log: DeltaLog, old: Pin, new_version: int, columns: Iterable[str]) -> ChangeInfo:
    """Classify the change since a pin, for a query that uses these columns. Runs no Spark job."""
    after = old.version
    try:
        if new_version < after or log.table_id(new_version) != old.identity:
            return _replaced(after, new_version)
        commits = log.commits(after, new_version)
        if any(c.metadata and c.metadata["id"] != old.identity for c in commits):
            return _replaced(after, new_version)
        if conflict := schema_conflict(log, after, commits, columns):
            return ChangeInfo(ChangeKind.SCHEMA, after, new_version, reason=conflict)
        if not any(_is_data_change(commit) for commit in commits):
            return ChangeInfo(ChangeKind.NONE, after, new_version)
        return _inspect_rows(log, after, new_version, commits)
    except HistoryLost as lost:
        return ChangeInfo(ChangeKind.LOST, after, new_version, reason=lost.primary)


def read_changes(
    spark: SparkSession, log: DeltaLog, after: int, upto: int, columns: Sequence[str],
    weight: str = "__w",
) -> DataFrame:  # fmt: skip
    """The changed rows over (after, upto]: the columns asked for and their weight, not netted."""
    commits = log.commits(after, upto)
    match way_of(log, after, upto, commits):
        case Way.FILES:
            frames = _file_frames(spark, log.snapshot(upto), net_files(commits))
        case Way.FEED:
            frames = [(_feed(spark, log, after, upto), _WEIGHT_OF_CHANGE)]
        case Way.VERSIONS:
            new, old = read_version(spark, log, upto), read_version(spark, log, after)
            frames = [(new, "1L"), (old, "-1L")]
    wanted = as_strings(columns, log.snapshot(upto))
    return union_all([frame.selectExpr(*wanted, f"{count} AS {weight}") for frame, count in frames])


def _inspect_rows(log: DeltaLog, after: int, upto: int, commits: Sequence[Commit]) -> ChangeInfo:
    way = way_of(log, after, upto, commits)
    change = net_files(commits) if way is Way.FILES else all_files(commits)
    paths = change.paths
    if way is Way.VERSIONS:
        paths = [file.path for version in (after, upto) for file in log.snapshot(version).files]
        paths += _replaced_vectors(log.snapshot(after), commits)
    missing = next((path for path in paths if not os.path.exists(path)), None)
    if missing is not None:
        reason = f"a file that the change needs is gone: {os.path.basename(missing)}"
        return ChangeInfo(ChangeKind.LOST, after, upto, reason=reason, way=way)
    if not paths:
        return ChangeInfo(ChangeKind.NONE, after, upto, way=way)
    rows = _estimate_rows(log, after, change)
    return ChangeInfo(ChangeKind.ROWS, after, upto, rows, change.insert_only, way=way)


def _replaced_vectors(old: Snapshot, commits: Sequence[Commit]) -> list[str]:
    """The deletion vectors of a version that commits behind it have put others in the place of."""
    first: dict[str, str | None] = {}
    for action in (action for commit in commits for action in commit.removes):
        first.setdefault(action.path, action.vector)
    vectors = (first.get(file.path) for file in old.files)
    return [vector for vector in vectors if vector]


def way_of(log: DeltaLog, after: int, upto: int, commits: Sequence[Commit]) -> Way:
    """How the rows of a range can be read."""
    end = log.snapshot(upto)
    changed = any(commit.metadata or commit.protocol for commit in commits)
    starts = [end, log.snapshot(after)] if changed else [end]
    if all(has_plain_files(s) for s in starts) and _is_told_by_files(end, starts, commits):
        return Way.FILES
    feeds = [s.configuration.get("delta.enableChangeDataFeed") == "true" for s in starts]
    feeds += [
        c.metadata.get("configuration", {}).get("delta.enableChangeDataFeed") == "true"
        for c in commits
        if c.metadata
    ]
    # The feed of a table with column mapping fails when the range crosses a schema change.
    is_mapped = end.configuration.get("delta.columnMapping.mode", "none") != "none"
    return Way.FEED if all(feeds) and not (is_mapped and changed) else Way.VERSIONS


def _is_told_by_files(end: Snapshot, starts: Sequence[Snapshot], commits: Sequence[Commit]) -> bool:
    """Whether all files of a range are partitioned in one way, with values that the log has."""
    ways = {tuple(s.partition_columns) for s in starts}
    ways |= {tuple(c.metadata.get("partitionColumns") or ()) for c in commits if c.metadata}
    every = all_files(commits)
    actions = [*every.cdc, *(action for _, action in every.weighted)]
    return len(ways) == 1 and can_read(end, actions)


def net_files(commits: Sequence[Commit]) -> FileChange:
    """The sum of all commits: a file added and removed again cancels.

    A commit with change data speaks through that alone. A total can exceed one: OPTIMIZE is passed
    over, so a RESTORE behind it adds files a second time and removes the optimised ones.
    """
    total: Counter[str] = Counter()
    actions: dict[str, FileAction] = {}
    every = all_files(commits)
    for weight, action in every.weighted:
        total[action.path] += weight
        _remember(actions, action)
    return FileChange(tuple((n, actions[path]) for path, n in total.items() if n), every.cdc)


def all_files(commits: Sequence[Commit]) -> FileChange:
    """Every file that a commit of the range added, removed, or wrote as change data."""
    weighted: list[tuple[int, FileAction]] = []
    cdc: list[FileAction] = []
    for commit in commits:
        cdc += commit.cdc
        if not commit.cdc:
            weighted += [(1, action) for action in commit.adds if action.data_change]
            weighted += [(-1, action) for action in commit.removes if action.data_change]
    return FileChange(tuple(weighted), tuple(cdc))


def _remember(actions: dict[str, FileAction], action: FileAction) -> None:
    known = actions.get(action.path)
    if known is None or known.rows is None:
        actions[action.path] = action


def _is_data_change(commit: Commit) -> bool:
    return bool(commit.cdc) or any(a.data_change for a in (*commit.adds, *commit.removes))


def _estimate_rows(log: DeltaLog, after: int, change: FileChange) -> int:
    known: dict[str, int | None] = {}
    if any(action.rows is None for _, action in change.weighted):
        known = {file.path: file.rows for file in log.snapshot(after).files}
    total = sum(_rows_of_cdc(action, n) for n, action in enumerate(change.cdc))
    # A file with a deletion vector was there before: at most the hidden rows changed.
    vectors = {action.path for _, action in change.weighted if action.deleted_rows}
    for weight, action in change.weighted:
        rows = action.rows if action.rows is not None else known.get(action.path)
        if rows is None:
            rows = action.size // _BYTES_PER_ROW
        if action.path in vectors and (action.deleted_rows or weight < 0):
            rows = action.deleted_rows
        total += rows * abs(weight)
    return total


def _rows_of_cdc(action: FileAction, position: int) -> int:
    # The log has no statistics for change files; a footer costs less than a millisecond.
    if position < _FOOTERS:
        return int(pq.read_metadata(action.path).num_rows)
    return action.size // _BYTES_PER_ROW


def _file_frames(
    spark: SparkSession, snapshot: Snapshot, change: FileChange
) -> list[tuple[DataFrame, str]]:
    """Frames and the weight of their rows."""
    frames = []
    for weight in sorted({weight for weight, _ in change.weighted}, reverse=True):
        actions = [action for n, action in change.weighted if n == weight]
        frames += [(f, f"{weight}L") for f in scan_actions(spark, snapshot, actions)]
    if change.cdc:
        extra = [StructField(CHANGE_TYPE, StringType())]
        found = scan_actions(spark, snapshot, change.cdc, extra)
        frames += [(frame, _WEIGHT_OF_CHANGE) for frame in found]
    return frames or [(scan_files(spark, snapshot, []), "0L")]


def _feed(spark: SparkSession, log: DeltaLog, after: int, upto: int) -> DataFrame:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    reader = reader.option("startingVersion", after + 1).option("endingVersion", upto)
    return reader.load(log.path)


def _replaced(after: int, upto: int) -> ChangeInfo:
    reason = "the table was replaced by another one"
    if upto < after:
        reason = f"the table went back from version {after} to {upto}"
    return ChangeInfo(ChangeKind.REPLACED, after, upto, reason=reason)
