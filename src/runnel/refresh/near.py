"""Readings that the tables of one pass share: the rows near a change, found once for all of them.

What programs say they need of a large source (compile/near.py) is put together, and read in one
scan when it is first asked for. It is kept in files inside the lake, since the workers of a pass
are separate sessions, until the pass ends. Whatever goes wrong, each table can read for itself.
"""

from __future__ import annotations

import logging
import shutil
import time
import uuid
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, RLock

from runnel.compile.near import Near, Tie
from runnel.compile.program import Program
from runnel.lake.changes import ChangeKind
from runnel.lake.local_rows import few
from runnel.lake.near_rows import KeptRows, Values, changed_values, keep_rows, share_of
from runnel.lake.reading import as_strings
from runnel.model.names import quote
from runnel.refresh.bind import Binding, bind_near, pinned_table
from runnel.refresh.pins import Pins
from runnel.refresh.plan import RefreshPlan
from runnel.refresh.scratch import new_scratch
from runnel.refresh.sharing import Sharing, near_of_program, sharings, windows_of
from runnel.refresh.windows import row_bytes, total_rows
from runnel.refresh.workspace import Workspace

_log = logging.getLogger("runnel")
# A smaller source costs each table less than finding, writing and reading what is near: over the 6
# million lines of TPC-H at scale 1, passes that shared took a tenth longer (single ones).
_LARGE = 10_000_000
# Of so few rows nobody asks how many are near.
_SMALL = 100_000
# Of a source: more is no few rows, and one tie that finds many would make the rest dear.
_MOST = 1 / 5
_MOST_OF_A_TIE = 1 / 50
# Values are held by the driver and sent to every task.
_MOST_VALUES = 200_000

_Equal = tuple[tuple[str, ...], tuple[str, ...]]
"""Columns, and the signs of their equality."""
_Node = tuple[str, int]
"""A source, and the level up to which its ties are followed."""


@dataclass(eq=False)
class NearRows:
    """For one pass over the tables with these keys; asked by several threads."""

    workspace: Workspace
    pins: Pins | None
    keys: Sequence[str]
    built: list[_Node] = field(default_factory=list)
    _folder: Path = field(init=False)
    _groups: list[_Group] = field(default_factory=list)
    _lock: RLock = field(default_factory=RLock)

    def __post_init__(self) -> None:
        self._folder = new_scratch(self.workspace)
        # Also where nobody says that the pass has ended.
        self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def of(self, plan: RefreshPlan, program: Program) -> ProgramNear | None:
        """What a refresh of the pass may take from it; None when there is nothing."""
        nears = near_of_program(program)
        large = (n for n in nears if _rows_of(self.workspace, plan, n.source) > _LARGE)
        if len(self.keys) < 2 or next(large, None) is None:
            return None
        try:
            found = self._found()
        except Exception as error:
            _log.warning("no readings are shared: %s", error)
            return None
        agreeing = (g for g in found if g.sharing.agrees(plan.table.settings, windows_of(plan)))
        group = next(agreeing, None)
        return ProgramNear(group, nears) if group is not None else None

    def close(self) -> None:
        """The pass has ended."""
        self.keys = ()
        self._finalizer()

    def _found(self) -> list[_Group]:
        with self._lock:
            if self.pins is not None:
                found = sharings(self.workspace, self.pins, self.keys)
                self._groups = [_Group(self.workspace, s, self._folder, self.built) for s in found]
                # They hold this in turn, and it is to go with them.
                self.pins = None
            return self._groups


@dataclass
class _Group:
    """The rows of the tables that share readings; `dropped` are ties of a source not followed."""

    workspace: Workspace
    sharing: Sharing
    folder: Path
    built: list[_Node]
    dropped: set[tuple[str, Tie]] = field(default_factory=set)
    _nodes: dict[_Node, Future[KeptRows | None]] = field(default_factory=dict)
    _changes: dict[tuple[str, tuple[str, ...]], Values | None] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def rows(self, bound: Binding, source: str) -> KeptRows | None:
        """All rows near a change that were asked for; None where each table reads for itself."""
        window = self.sharing.windows.get(source)
        if window is None or not self.sharing.is_wanted(source):
            return None
        if total_rows(self.workspace, window.source, window.new) <= _LARGE:
            return None
        return self._node(bound, source, self.sharing.top(source))

    def follows(self, source: str, ties: Sequence[Tie], nears: Sequence[Near]) -> bool:
        """Whether the rows of ties, and of those that they speak of in turn, are all there."""
        known = self.sharing.ties(source)
        return all(
            tie in known
            and (source, tie) not in self.dropped
            and self.follows(tie.other, _below(tie, nears), nears)
            for tie in ties
        )

    def _node(self, bound: Binding, source: str, level: int) -> KeptRows | None:
        """Read by who asks first, while others wait, or read something else meanwhile.

        Who reads waits for lower levels only, so nobody waits for those who wait for them.
        """
        with self._lock:
            known = self._nodes.get((source, level))
            found = self._nodes.setdefault((source, level), Future())
        if known is None:
            rows = None
            try:
                rows = self._build(bound, source, level)
            except Exception as error:
                _log.warning("%s is read by each table for itself: %s", source, error)
            finally:
                found.set_result(rows)
        return found.result()

    def _build(self, bound: Binding, source: str, level: int) -> KeptRows | None:
        """One scan for all ties together."""
        met = self._followed(bound, source, level)
        if not met:
            return None
        window = self.sharing.windows[source]
        log = self.workspace.log(window.source.location or "")
        total = total_rows(self.workspace, window.source, window.new)
        frame = pinned_table(bound, window.source, window.new)
        items = as_strings(self.sharing.names(source, level), log.snapshot(window.new.version))
        rows = bound.view(f"all:{source}:{level}", frame.selectExpr(*items))
        conditions = [
            _exists(bound.view(f"values:{source}:{level}:{i}:{j}", part.frame(bound.spark)), *key)
            for i, (key, parts) in enumerate(met.items())
            for j, part in enumerate(_merged(parts))
        ]
        sql = f"SELECT r.* FROM {rows} r WHERE {' OR '.join(conditions) or 'FALSE'}"
        self.built.append((source, level))
        most = few(row_bytes(self.workspace, window.source))
        kept = keep_rows(bound.spark.sql(sql), self.folder / uuid.uuid4().hex, most)
        return kept if total <= _SMALL or kept.count <= total * _MOST else None

    def _followed(self, bound: Binding, source: str, level: int) -> dict[_Equal, list[Values]]:
        """The values by columns that must have one of them; ties that find too much are dropped."""
        met: dict[_Equal, list[Values]] = {}
        for tie in self.sharing.ties(source):
            if tie.level > level or (source, tie) in self.dropped:
                continue
            found = self._values(bound, source, tie, level)
            if found is None or self._is_common(source, tie, found):
                self.dropped.add((source, tie))
            else:
                met.setdefault((tie.columns, tie.signs), []).append(found)
        return met

    def _values(self, bound: Binding, source: str, tie: Tie, level: int) -> Values | None:
        """The values of a tie's changed rows, and of those that are near; None: too many."""
        parts = []
        window = self.sharing.windows[tie.other]
        if window.kind is ChangeKind.ROWS:
            parts.append(self._changed(bound, tie) if window.rows <= _MOST_VALUES else None)
        if tie.level > 1 and self.sharing.top(tie.other) > 0:
            is_shared = self.sharing.is_shared(source, tie)
            below = self.sharing.below(tie, level)
            kept = self._node(bound, tie.other, below) if is_shared else None
            values = kept.values(bound.spark, tie.others, _MOST_VALUES) if kept else None
            parts.append(values)
        known = [part for part in parts if part is not None]
        if not parts or len(known) < len(parts):
            return None
        found = Values.together(known)
        return found if found is not None and found.count <= _MOST_VALUES else None

    def _changed(self, bound: Binding, tie: Tie) -> Values | None:
        key = (tie.other, tie.others)
        if key not in self._changes:
            window = self.sharing.windows[tie.other]
            assert window.old is not None
            log = self.workspace.log(window.source.location or "")
            versions = (window.old.version, window.new.version)
            self._changes[key] = changed_values(bound.spark, log, versions, tie.others)
        return self._changes[key]

    def _is_common(self, source: str, tie: Tie, values: Values) -> bool:
        window = self.sharing.windows[source]
        if total_rows(self.workspace, window.source, window.new) <= _SMALL:
            return False
        log = self.workspace.log(window.source.location or "")
        share = share_of(log, window.new.version, tie.columns, values)
        return share is not None and share > _MOST_OF_A_TIE


@dataclass
class ProgramNear:
    """What one program may read of the shared rows."""

    group: _Group
    nears: tuple[Near, ...]
    seconds: float = 0.0
    """How long it took until they were there, whoever found them."""

    def serves(self, bound: Binding, near: Near) -> bool:
        """Whether a step finds all that it needs; what no one has asked for yet is read now."""
        start = time.perf_counter()
        rows = self.group.rows(bound, near.source)
        self.seconds = max(self.seconds, time.perf_counter() - start)
        return (
            rows is not None
            and rows.has(near.names)
            and self.group.follows(near.source, near.ties, self.nears)
        )

    def count(self, bound: Binding, source: str) -> int | None:
        """How many rows there are of a source; None when not every step reads those."""
        rows = self.group.rows(bound, source)
        steps = [near for near in self.nears if near.source == source]
        is_all = rows is not None and all(self.serves(bound, near) for near in steps)
        return rows.count if rows is not None and is_all else None

    def bind(self, bound: Binding, source: str, plan: RefreshPlan) -> None:
        rows = self.group.rows(bound, source)
        assert rows is not None
        window = plan.windows[source]
        bind_near(bound, window.source, window.new, rows.frame(bound.spark))


def _rows_of(workspace: Workspace, plan: RefreshPlan, source: str) -> int:
    window = plan.windows[source]
    return total_rows(workspace, window.source, window.new)


def _below(tie: Tie, nears: Sequence[Near]) -> list[Tie]:
    """What a program says of the rows that a tie leads to."""
    return [t for n in nears if n.source == tie.other for t in n.ties if t.level < tie.level]


def _merged(parts: list[Values]) -> list[Values]:
    """Few relations are met sooner than many."""
    together = Values.together(parts)
    return [part for part in ([together] if together is not None else parts) if part.count]


def _exists(values: str, columns: Sequence[str], signs: Sequence[str]) -> str:
    pairs = enumerate(zip(columns, signs, strict=True))
    equal = " AND ".join(f"r.{quote(column)} {sign} v.t{i}" for i, (column, sign) in pairs)
    return f"EXISTS (SELECT /*+ BROADCAST(v) */ 1 FROM {values} v WHERE {equal})"
