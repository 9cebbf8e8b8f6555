"""Definitions as files beside the data: what a lost catalog can be built from again.

Contents and frontiers are told by the logs of the tables; only what the user wrote is not.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from runnel.catalog.records import StreamTable
from runnel.catalog.rows import source_to_row, table_from_row, table_to_row
from runnel.model.tabular import plain

_LOG = logging.getLogger("runnel.catalog")


class Definitions:
    """One file a stream table, named by its id; where the two differ, the catalog is right."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def is_new(self) -> bool:
        return not self._folder.is_dir()

    def ids(self) -> set[str]:
        return {path.stem for path in self._folder.glob("*.json")}

    def save(self, *tables: StreamTable) -> None:
        """Write definitions; where that fails, the catalog still has them."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for table in tables:
                _replace(self._folder / f"{table.id}.json", _to_text(table))
        except OSError as error:
            _LOG.warning("definitions could not be copied to %s: %s", self._folder, error)

    def remove(self, ids: Iterable[str]) -> None:
        try:
            for table_id in ids:
                (self._folder / f"{table_id}.json").unlink(missing_ok=True)
        except OSError as error:
            _LOG.warning("definitions could not be removed from %s: %s", self._folder, error)

    def load(self) -> tuple[list[StreamTable], list[str]]:
        """The definitions, each after those it reads, and the files that cannot be understood."""
        tables: list[StreamTable] = []
        bad: list[str] = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                tables.append(_from_text(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, KeyError, TypeError):
                bad.append(path.name)
        return _in_order(_newest(tables)), bad


def _to_text(table: StreamTable) -> str:
    sources = [source_to_row(table.id, i, source) for i, source in enumerate(table.sources)]
    return json.dumps(plain({**table_to_row(table), "sources": sources}), indent=1)


def _from_text(text: str) -> StreamTable:
    row: dict[str, Any] = json.loads(text)
    instants = {n: datetime.fromisoformat(v) for n, v in row.items() if v and n.endswith("_at")}
    return table_from_row({**row, **instants}, row["sources"])


def _replace(path: Path, text: str) -> None:
    """A file with its whole text, or as it was before."""
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _newest(tables: list[StreamTable]) -> list[StreamTable]:
    """One for each name: a drop that died halfway may have left the file of an earlier table."""
    found: dict[str, StreamTable] = {}
    for table in sorted(tables, key=lambda t: t.altered_at):
        found[table.name.key] = table
    return list(found.values())


def _in_order(tables: list[StreamTable]) -> list[StreamTable]:
    """What reads a lost table comes last: the catalog will say what is missing."""
    waiting = {table.name.key: table for table in tables}
    ordered: list[StreamTable] = []
    while waiting:
        ready = [t for t in waiting.values() if not any(s.name.key in waiting for s in _reads(t))]
        ordered += [waiting.pop(t.name.key) for t in ready or list(waiting.values())]
    return ordered


def _reads(table: StreamTable) -> list[Any]:
    return [s for s in table.sources if s.kind == "stream" and s.name.key != table.name.key]
