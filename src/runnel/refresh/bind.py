"""The tokens of a program bound to temporary views over pinned readings."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from runnel.catalog import Source, StreamTable
from runnel.compile.program import STATE, weight_of
from runnel.errors import SourceError
from runnel.lake.changes import read_changes
from runnel.lake.frames import DataFrame, SparkSession
from runnel.lake.interrupts import cancelling
from runnel.lake.local import is_portable
from runnel.lake.local_rows import fetched
from runnel.lake.reading import as_strings, columns_of, read_version
from runnel.model.columns import WEIGHT, Layout
from runnel.model.frontier import Pin
from runnel.model.names import quote
from runnel.refresh.windows import Window
from runnel.refresh.workspace import Workspace

_ONE_TASK = 50_000


@dataclass(frozen=True, slots=True)
class RoundLimit:
    """How many rounds a cycle of stream tables may take, and what to call it."""

    rounds: int
    label: str

    @staticmethod
    def of(workspace: Workspace, table: StreamTable) -> RoundLimit | None:
        if not table.keeps_cycle:
            return None
        return RoundLimit(workspace.settings.max_fixpoint_iterations, table.label)


@dataclass
class Binding:
    """The views of one run, under names of its own; steps are added as they are computed.

    `limit` is set where the session's limits of recursion do not count; `rounds` have been run.
    """

    workspace: Workspace
    spark: SparkSession
    prefix: str = field(default_factory=lambda: f"rn_{uuid.uuid4().hex[:12]}")
    views: dict[str, str] = field(default_factory=dict)
    inline: dict[str, str] = field(default_factory=dict)
    kept: list[DataFrame] = field(default_factory=list)
    limit: RoundLimit | None = None
    rounds: int = 0
    _numbers: Iterator[int] = field(default_factory=count)
    _brought: set[str] = field(default_factory=set)
    _is_closed: bool = False

    def view(self, token: str, frame: DataFrame) -> str:
        """Give a token a view."""
        name = f"{self.prefix}_{next(self._numbers)}"
        frame.createOrReplaceTempView(name)
        self.views[token] = name
        return name

    def bring_here(self, token: str) -> None:
        """Let a view of few rows have them by itself, where they come back as they were."""
        if token in self._brought:
            return
        frame = self.spark.table(self.views[token])
        if all(is_portable(type_) for _, type_ in frame.dtypes):
            # In one partition, as the rows of the rounds are: no shuffle between them.
            fetched(frame)[0].coalesce(1).createOrReplaceTempView(self.views[token])
            self._brought.add(token)

    def text(self, token: str) -> str:
        if token in self.inline:
            return f"({self.inline[token]})"
        return self.views[token]

    def keep(self, frame: DataFrame) -> DataFrame:
        """Persist a frame until the run ends."""
        if self._is_closed:
            raise KeyboardInterrupt
        self.kept.append(frame.persist())
        return frame

    def close(self) -> None:
        self._is_closed = True
        for frame in self.kept:
            frame.unpersist()
        for name in self.views.values():
            self.spark.catalog.dropTempView(name)


@contextmanager
def binding(workspace: Workspace, spark: SparkSession) -> Iterator[Binding]:
    """A binding whose views and persisted frames go away at the end, whatever happens."""
    bound = Binding(workspace, spark)
    try:
        with cancelling(lambda: spark):
            yield bound
    finally:
        bound.close()


def bind_new(bound: Binding, source: Source, pin: Pin) -> None:
    """⟦new:source⟧: the user's columns and `__w` at a pin."""
    if source.kind == "stream":
        table = upstream_of(bound.workspace, source, pin)
        frame = bound.workspace.trace(table).past_contents(bound.spark, pin.version)
        frame = shown(frame, table.layout)
    else:
        frame = pinned_table(bound, source, pin)
        snapshot = bound.workspace.log(source.location or "").snapshot(pin.version)
        items = as_strings(frame.columns, snapshot)
        frame = frame.selectExpr(*items, f"1L AS {weight_of(frame.columns)}")
    bound.view(f"new:{source.key}", frame)


def bind_near(bound: Binding, source: Source, pin: Pin, rows: DataFrame) -> None:
    """⟦near:source⟧: some columns of some rows of a Delta table at a pin, and `__w`."""
    snapshot = bound.workspace.log(source.location or "").snapshot(pin.version)
    names = in_sight(source, [column.name for column in columns_of(snapshot)])
    items = [quote(name) for name in rows.columns]
    bound.view(f"near:{source.key}", rows.selectExpr(*items, f"1L AS {weight_of(names)}"))


def pinned_table(bound: Binding, source: Source, pin: Pin) -> DataFrame:
    """A Delta table at a pin."""
    log = bound.workspace.log(source.location or "")
    key = (f"{log.path}@{pin.identity}", pin.version)
    frame = bound.workspace.frame(
        bound.spark, key, lambda: read_version(bound.spark, log, pin.version)
    )
    names = in_sight(source, frame.columns)
    return frame if names == frame.columns else frame.select(*map(quote, names))


def in_sight(source: Source, names: list[str]) -> list[str]:
    """Those of a table's columns that a stored query sees: not what was added since."""
    now = {name.lower(): name for name in names}
    return [now[name.lower()] for name in source.known if name.lower() in now] or names


def bind_change(bound: Binding, window: Window) -> None:
    """⟦change:source⟧: the changed rows of a window with their weights."""
    source = window.source
    assert window.old is not None
    if source.kind == "stream":
        table = upstream_of(bound.workspace, source, window.new)
        trace = bound.workspace.trace(table)
        frame = shown(
            trace.window(bound.spark, window.old.version, window.new.version), table.layout
        )
    else:
        log = bound.workspace.log(source.location or "")
        names = [c.name for c in columns_of(log.snapshot(window.new.version))]
        names = in_sight(source, names)
        frame = read_changes(
            bound.spark, log, window.old.version, window.new.version, source.columns,
            weight_of(names),
        )  # fmt: skip
    # In one partition it is netted without a shuffle.
    bound.view(f"change:{source.key}", frame.coalesce(1) if window.rows <= _ONE_TASK else frame)


def bind_state(bound: Binding, table: StreamTable) -> None:
    """⟦state⟧: the table's own trace."""
    trace = bound.workspace.trace(table)
    bound.view(STATE.strip("⟦⟧"), trace.contents(bound.spark, table.epoch))


def shown(frame: DataFrame, layout: Layout) -> DataFrame:
    """The readout of weighted rows, applied row by row: linear, so a change maps to a change."""
    if layout.visible_when is not None:
        frame = frame.where(layout.visible_when)
    items = [f"{sql} AS {quote(column.name)}" for column, sql in layout.visible]
    weight = weight_of(column.name for column, _ in layout.visible)
    return frame.selectExpr(*items, f"{WEIGHT} AS {weight}")


def upstream_of(workspace: Workspace, source: Source, pin: Pin) -> StreamTable:
    """The stream table behind a source, in the incarnation that was pinned."""
    table = workspace.upstream(source)
    if table is None or table.incarnation != pin.identity:
        raise SourceError(f"{source.name} was replaced since it was pinned", hint="refresh again")
    return table
