"""A compiled query run in memory on Spark: views instead of Delta tables, rows instead of commits.

Everything between the query's text and the change's rows is the product's own: Spark judges types, the
steps of a program run as in a refresh. Only the storage is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kit.bags import Bag, Row, bag, netted, plain
from kit.check import Mismatch, check_rounds
from kit.duck import Moment, Table
from kit.generate.cases import Case, Tally, is_too_large
from kit.lake_backend import arrow_rows
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.compile.program import Program, Step, weight_of
from runnel.compile.rewrites.quantified import without_quantifiers
from runnel.errors import NotDifferentiable
from runnel.lake.typing import SparkTyper
from runnel.model.settings import Settings
from runnel.refresh.bind import Binding, binding
from runnel.refresh.differential import ProgramRun
from runnel.refresh.rounds import fill, run_steps

_LARGEST = 6_000


class _Run(ProgramRun):
    """Every second source is taken for a large one, and the state in every second query.

    Changes are no files here. In every third query no step is small enough to be fetched.
    """

    def source_rows(self, key: str) -> int:
        return 0 if key[-1] in "02468" else 10**9

    def state_rows(self) -> int:
        return 0 if len(self.program.steps) % 2 else 10**9

    def _is_netted_here(self, step: Step) -> bool:
        return False

    @property
    def _few(self) -> int:
        return 10_000 if len(self.program.steps) % 3 else -1

    @property
    def _row_bytes(self) -> int:
        return 8


class SparkQuery:
    """See `kit.check.Query`."""

    def __init__(
        self, spark: SparkSession, tables: Sequence[Table], moments: Sequence[Sequence[Moment]],
        compiled: CompiledQuery,
    ) -> None:  # fmt: skip
        self.spark = spark
        self.tables = tables
        self.moments = moments
        self.compiled = compiled
        self.epoch = 0
        self.total: Bag = Bag()
        self._trace: list[tuple[Row, int, int]] = []
        self._workspace: Any = SimpleNamespace(settings=Settings(), step_rows={})

    def set_round(self, number: int) -> None:
        self._now = {
            table.schema.key: moments[number]
            for table, moments in zip(self.tables, self.moments, strict=True)
        }
        for table in self.tables:
            columns = {c.name: c.type for c in table.columns}
            rows = self._now[table.schema.key].contents
            self._frame(columns, rows).createOrReplaceTempView(table.name)

    def initialize(self) -> None:
        self.append(self.full(), self.epoch)

    def full(self) -> Bag:
        with self._bound() as bound:
            program = self.compiled.full_program()
            run_steps(bound, program)
            return _weighted(self._stored(fill(bound, program.output.sql)))

    def run(self, program: Program) -> Bag:
        if not program.steps:
            return Bag()
        windows = {key: SimpleNamespace(rows=len(m.change)) for key, m in self._now.items()}
        table = SimpleNamespace(incarnation="in memory")
        plan: Any = SimpleNamespace(changed=frozenset(windows), windows=windows, table=table)
        with self._bound() as bound:
            sql = _Run(plan, program, bound).output()
            rows = [] if sql is None else self._stored(sql)
        totals = _weighted(rows)
        assert len(totals) == len(rows), f"the output is not netted: {rows}"
        return totals

    def append(self, change: Bag, epoch: int) -> None:
        for row, weight in change.items():
            copies = [1] * weight if weight > 0 else [weight]
            self._trace += [(row, copy, epoch) for copy in copies]
        self.total = netted([*self.total.items(), *change.items()])
        self.epoch = epoch

    def compact(self, since: int) -> None:
        old = netted((row, weight) for row, weight, epoch in self._trace if epoch <= since)
        epoch, total = self.epoch, self.total
        self._trace = [entry for entry in self._trace if entry[2] > since]
        self.append(old, since)
        self.epoch, self.total = epoch, total

    def readout(self) -> Bag:
        layout = self.compiled.layout
        frame = self._state()
        if layout.visible_when:
            frame = frame.where(layout.visible_when)
        shown = [f"{sql} AS v{i}" for i, (_, sql) in enumerate(layout.visible)]
        return _weighted(frame.selectExpr(*shown, "__weight").collect())

    def oracle(self, sql: str) -> Bag:
        return bag(tuple(row) for row in self.spark.sql(sql).collect())

    @contextmanager
    def _bound(self) -> Iterator[Binding]:
        """The tokens of the round as views."""
        with binding(self._workspace, self.spark) as bound:
            # A cache costs more than the few rows do here.
            bound.keep = lambda frame: self.spark.createDataFrame(frame.toArrow())
            for table in self.tables:
                key = table.schema.key
                moment = self._now[key]
                bound.view(f"new:{key}", self._weighted_frame(table, moment.reading))
                bound.view(f"change:{key}", self._weighted_frame(table, moment.change))
            bound.view("state", self._state())
            yield bound

    def _stored(self, sql: str) -> list[Any]:
        layout = self.compiled.layout
        typed = [f"CAST({c.name} AS {c.type}) AS {c.name}" for c in layout.stored]
        return list(self.spark.sql(sql).selectExpr(*typed, "__weight").collect())

    def _state(self) -> DataFrame:
        columns = {c.name: c.type for c in self.compiled.layout.stored}
        columns |= {"__weight": "bigint", "__epoch": "bigint"}
        return self._frame(columns, [(*map(plain, r), w, e) for r, w, e in self._trace])

    def _weighted_frame(self, table: Table, rows: Sequence[tuple[Row, int]]) -> DataFrame:
        columns = {c.name: c.type for c in table.columns}
        columns[weight_of(columns)] = "bigint"
        return self._frame(columns, [(*row, weight) for row, weight in rows])

    def _frame(self, columns: dict[str, str], rows: Sequence[Row]) -> DataFrame:
        if not rows:
            # Spark Connect does not take the columns of an empty Arrow table.
            return self.spark.createDataFrame(
                [], ", ".join(f"`{c}` {t}" for c, t in columns.items())
            )
        return self.spark.createDataFrame(arrow_rows(columns, rows))


def check_on_spark(spark: SparkSession, made: Case, tally: Tally) -> bool:
    """Check a case and count it; False when it is refused. A failure carries the case."""
    text = without_quantifiers(made.query)
    try:
        compiled = compile_query(text, [t.schema for t in made.tables], SparkTyper(spark))
    except NotDifferentiable as error:
        tally.refuse(error.construct)
        return False
    if is_too_large(compiled, _LARGEST):
        tally.refuse("too large to be checked soon")
        return False
    query = SparkQuery(spark, made.tables, made.moments, compiled)
    try:
        moved = check_rounds(
            query, compiled.text or text, made.rounds, then_nothing=made.then_nothing
        )
    except (Mismatch, PySparkException, AssertionError) as error:
        raise Mismatch(f"{error}\n{made}") from error
    tally.count(made, moved)
    return True


def _weighted(rows: Sequence[Any]) -> Bag:
    return netted((next(iter(bag([tuple(row)[:-1]]))), row[-1]) for row in rows)
