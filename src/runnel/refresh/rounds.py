"""A step that is run in rounds, on Spark: each round's rows are cut off from how they were found.

Few rows are brought here and sent back with the next round, so that a hundred rounds are a hundred
small plans; many stay where they are, behind a local checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runnel.compile.program import ALL, NEW, TOKEN, Keep, Program, Step, W
from runnel.errors import NotConverged, QueryFailed
from runnel.lake.frames import DataFrame, F
from runnel.lake.local import is_portable, to_frame, to_table
from runnel.lake.local_rows import fetched
from runnel.lake.session import is_remote
from runnel.refresh.bind import Binding, RoundLimit

_FEW = 20_000
_MOST_PARTS = 8
_LEVELS, _ROWS = "spark.sql.cteRecursionLevelLimit", "spark.sql.cteRecursionRowLimit"
Text = Callable[[str], str]


@dataclass
class _Rows:
    """The rows of several rounds: tables here, frames there."""

    bound: Binding
    first: DataFrame
    tables: list[Any] = field(default_factory=list)
    frames: list[DataFrame] = field(default_factory=list)

    def add(self, rows: Any) -> None:
        if isinstance(rows, DataFrame):
            self.frames.append(rows)
        elif rows.num_rows:
            self.tables.append(rows)
        if len(self.frames) > _MOST_PARTS:
            self.frames = [_union(self.frames).localCheckpoint()]

    def frame(self) -> DataFrame:
        if self.frames and not self.tables:
            return _union(self.frames)
        few = to_frame(self.bound.spark, self.tables, self.first.schema)
        # In one partition they are joined and summed without a shuffle: half the work of a round.
        return _union([few, *self.frames]) if self.frames else few.coalesce(1)


def run_rounds(
    bound: Binding, step: Step, text: Text, note: Callable[[int], None], stored: int = 0
) -> tuple[DataFrame, int]:
    """The rows of all rounds, and how many are new.

    `text` fills in tokens; `note` is told how many rows were new in the last round. `stored` are
    as many rows as there are besides, or more.
    """
    assert step.again is not None
    limits = _Limits.of(bound, step)
    if step.besides is not None:
        counting = step.besides
        limits.stored = stored
        limits.besides = lambda: int(bound.spark.sql(text(counting)).collect()[0][0])
    first = bound.spark.sql(text(step.sql))
    everything = _Rows(bound, first)
    has_few = all(is_portable(c.type) for c in step.columns)
    rows, new, deepest = _round(first, has_few, step.level)
    everything.add(rows)
    level = 0
    while new:
        level += 1
        bound.rounds += 1
        limits.check(level if deepest is None else deepest + 1, new)
        note(new)
        last = _Rows(bound, first)
        last.add(rows)
        _show(bound, "last", last.frame())
        if ALL in step.again:
            _show(bound, "all", everything.frame())
        frame = bound.spark.sql(text(step.again))
        few = has_few and not isinstance(rows, DataFrame)
        rows, new, deepest = _round(frame, few, step.level)
        everything.add(rows)
    return everything.frame(), limits.seen


@dataclass
class _Limits:
    """How far a recursion may go, as the session says and as the query says."""

    step: Step
    levels: int
    rows: int
    cycle: RoundLimit | None = None
    seen: int = 0
    stored: int = 0
    besides: Callable[[], int] = lambda: 0

    @staticmethod
    def of(bound: Binding, step: Step) -> _Limits:
        if bound.limit is not None:
            return _Limits(step, bound.limit.rounds, -1, bound.limit)
        levels = step.max_level
        if levels is None:
            levels = int(str(bound.spark.conf.get(_LEVELS, "100")))
        return _Limits(step, levels, int(str(bound.spark.conf.get(_ROWS, "1000000"))))

    def check(self, level: int, new: int) -> None:
        self.seen += new
        if self.cycle is not None and level > self.levels:
            raise NotConverged(
                f"the {self.cycle.label} still finds rows after {self.levels} iterations",
                detail="the old contents stay; a column that is computed anew on the way round "
                "may grow without end",
                hint="bound it in WHERE; or raise max_fixpoint_iterations if the way is that long",
            )
        if 0 <= self.levels < level:
            raise QueryFailed(
                f"recursion reached {self.levels} levels and has not come to an end",
                detail="the data may go round in a cycle, which UNION ALL follows for ever",
                hint=f"use UNION, or stop in the step's WHERE; or write MAX RECURSION LEVEL n "
                f"behind the CTE's name, or raise {_LEVELS} and define the table again",
            )
        if self._is_full():
            raise QueryFailed(
                f"recursion reached {self.rows:,} rows and has not come to an end",
                detail="the data may go round in a cycle, which UNION ALL follows for ever",
                hint=f"use UNION, or stop in the step's WHERE; or raise {_ROWS} and define the "
                "table again",
            )

    def _is_full(self) -> bool:
        """Spark's bound is one that is not reached. Stored rows are counted only if they may."""
        if not 0 <= self.rows <= self.seen + self.stored:
            return False
        self.stored, self.besides = (found := self.besides()), lambda: found
        return self.rows <= self.seen + self.stored


def run_steps(bound: Binding, program: Program) -> None:
    """Run every step but the last of a program that evaluates a whole query."""
    for step in program.steps[:-1]:
        token = f"step:{step.name}"
        if step.again is not None:
            rows, _ = run_rounds(bound, step, lambda sql: fill(bound, sql), lambda _: None)
            bound.view(token, rows)
        elif step.keep is Keep.NEVER:
            bound.inline[token] = fill(bound, step.sql)
        else:
            bound.view(token, bound.keep(bound.spark.sql(fill(bound, step.sql))))


def _round(frame: DataFrame, try_few: bool, level: str | None) -> tuple[Any, int, int | None]:
    """The rows of one round (a table when few), how many new ones they stand for, how deep."""
    if try_few and (table := to_table(frame, _FEW)) is not None:
        weights, new = table.column(W).to_pylist(), table.column(NEW).to_pylist()
        count = sum(max(w, 1) for w, is_new in zip(weights, new, strict=True) if is_new)
        levels = table.column(level).to_pylist() if level is not None else ()
        return table, count, max(levels, default=None)
    # Connect gives a checkpoint to whatever session is active, which is not this one. Keeping the
    # frame would not do: its text is read again, and names of views mean the next round's rows.
    frame = fetched(frame)[0] if is_remote(frame.sparkSession) else frame.localCheckpoint()
    times = F.sum(F.greatest(F.col(W), F.lit(1)))
    deepest = F.max(level) if level is not None else F.lit(None)
    row = frame.where(NEW).agg(F.coalesce(times, F.lit(0)), deepest).first()
    assert row is not None
    return frame, int(row[0]), row[1]


def _show(bound: Binding, token: str, frame: DataFrame) -> None:
    name = f"{bound.prefix}_{token}"
    frame.createOrReplaceTempView(name)
    bound.views[token] = name


def _union(frames: list[DataFrame]) -> DataFrame:
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionAll(frame)
    return result


def fill(bound: Binding, sql: str) -> str:
    """A text with its tokens filled in, all of them bound before; hints are left out."""
    return TOKEN.sub(lambda m: "" if m[1].startswith("hint:") else bound.text(m[1]), sql)
