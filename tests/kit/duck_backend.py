"""Step files on DuckDB in memory: the algebra without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb

from kit.bags import Bag, Row, remove_one
from kit.check import Round, check_contents, check_nothing_changed, refresh
from kit.dialect import transpile
from kit.duck import DuckQuery, DuckSources, Moment, Table, Weighted, oracle, oracle_text
from kit.step import Change, TableSpec
from kit.typer import RuleTyper
from runnel.compile.pipeline import compile_query
from runnel.compile.program import Program
from runnel.compile.rewrites.quantified import without_quantifiers


class DuckBackend:
    """The product's compiler with DuckDB in the place of Spark and of the lake.

    Runs each step as the product does (small steps become tables), and checks the laws on the way: no
    negative totals, the trace equals a full evaluation, an empty change gives nothing.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        translate: Callable[[str], str] = transpile,
        rewrite: Callable[[Program], Program] = lambda program: program,
    ) -> None:
        self.con = con
        self.translate = translate
        self.rewrite = rewrite
        self.specs: dict[str, TableSpec] = {}
        self.contents_of: dict[str, list[Row]] = {}
        self.pending: dict[str, list[Weighted]] = {}
        self.round = 0

    def create_table(self, table: TableSpec) -> None:
        self.specs[table.name.lower()] = table
        self.contents_of[table.name.lower()] = list(table.rows)
        self.pending[table.name.lower()] = []

    def create_stream_table(self, query: str, oracle: str | None = None) -> None:
        """`oracle` is a query that gives the same, where DuckDB cannot run this one."""
        self.tables = [Table(s.name, s.columns, s.kind) for s in self.specs.values()]
        # DuckDB runs ANY and ALL itself.
        text = without_quantifiers(query)
        compiled = compile_query(text, [t.schema for t in self.tables], RuleTyper())
        self.sources = DuckSources(self.con, self.tables)
        self.query = DuckQuery(
            self.sources, compiled, self.translate, with_tables=True, rewrite=self.rewrite
        )
        self.oracle_sql = oracle_text(oracle or compiled.text or query, self.tables)
        self._load()
        self.query.initialize()
        check_contents(self.query, self.oracle_sql, "at the beginning")

    def commit(self, changes: Sequence[Change]) -> None:
        for change in changes:
            name = change.table.lower()
            if change.old is not None:
                remove_one(self.contents_of[name], change.old)
                self.pending[name].append((change.old, -1))
            if change.new is not None:
                self.contents_of[name].append(change.new)
                self.pending[name].append((change.new, 1))

    def refresh(self) -> str:
        """The action; a change that comes to nothing is NO_DATA."""
        keys = {name: t.schema.key for name, t in zip(self.specs, self.tables, strict=True)}
        changed = frozenset(keys[name] for name, change in self.pending.items() if change)
        growing = frozenset(
            keys[n]
            for n, change in self.pending.items()
            if change and all(w > 0 for _, w in change)
        )
        self.round += 1
        self._load()
        output = refresh(self.query, Round(changed, growing), f"round {self.round}")
        check_contents(self.query, self.oracle_sql, f"round {self.round}")
        self.pending = {name: [] for name in self.pending}
        self._check_idle()
        return "DIFFERENTIAL" if output else "NO_DATA"

    def contents(self) -> Bag:
        return self.query.readout()

    def oracle(self) -> Bag:
        return oracle(self.con, self.oracle_sql)

    def close(self) -> None:
        self.con.execute("DROP TABLE IF EXISTS k_trace")

    def _check_idle(self) -> None:
        self.round += 1
        self._load()
        check_nothing_changed(self.query)

    def _load(self) -> None:
        for name, table in zip(self.specs, self.tables, strict=True):
            rows = self.contents_of[name]
            reading = _in_pieces(rows) if table.kind == "trace" else [(row, 1) for row in rows]
            moment = Moment(list(rows), reading, self.pending[name])
            self.sources.load(table.schema.key, self.round, [moment])
        self.sources.set_round(self.round)


def _in_pieces(rows: Sequence[Row]) -> list[Weighted]:
    """A reading that is not consolidated: every row is also added and taken away once more."""
    again = [(row, weight) for row in rows for weight in (1, -1)]
    return [(row, 1) for row in rows] + again
