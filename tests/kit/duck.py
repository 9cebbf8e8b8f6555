"""A compiled query run in memory on DuckDB: sources, trace, change programs, readout.

Each source is one table holding its plain contents, its reading with weights and its change in the
present round; the views on them stay the same, so that statements are prepared once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import duckdb

from kit.bags import Bag, Row, bag, literal, netted, plain
from kit.dialect import duck_type, replace_words, transpile
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import CompiledQuery
from runnel.compile.program import TOKEN, Keep, Program, Step, weight_of
from runnel.errors import QueryFailed
from runnel.model.columns import Column
from runnel.model.names import TableName

Weighted = tuple[Row, int]
_STEP = re.compile(r"\bk_step_\w+\b")
LEVELS = 100


def connection() -> duckdb.DuckDBPyConnection:
    """A database in memory, single-threaded: the tables are tiny."""
    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.execute("PRAGMA disable_optimizer")
    con.execute("CREATE MACRO pmod(x, n) AS mod(x, n)")
    con.execute("CREATE MACRO array_repeat(x, n) AS [x for i in range(n)]")
    return con


@dataclass(frozen=True)
class Table:
    """A source: `kind` is `delta`, or `trace` for one whose reading is not consolidated."""

    name: str
    columns: tuple[Column, ...]
    kind: str = "delta"

    @property
    def schema(self) -> SourceSchema:
        return SourceSchema(TableName.parse(self.name).key, self.kind, self.columns)


@dataclass
class Moment:
    """One source in one round: contents, reading (rows with weights) and change since the last round."""

    contents: list[Row]
    reading: list[Weighted]
    change: list[Weighted] = field(default_factory=list)


class DuckSources:
    """The sources as DuckDB relations."""

    def __init__(self, con: duckdb.DuckDBPyConnection, tables: Sequence[Table]) -> None:
        self.con = con
        self.tables = tables
        self.places = {table.schema.key: i for i, table in enumerate(tables)}
        self._rows: dict[tuple[int, int], str] = {}
        self._number = 0
        self._held = [""] * len(tables)
        for place, table in enumerate(tables):
            self._create(place, table)

    def _create(self, place: int, table: Table) -> None:
        columns = ", ".join(f'"{c.name}" {duck_type(c.type)}' for c in table.columns)
        names = ", ".join(f'"{c.name}"' for c in table.columns)
        data = f"k_data_{place}"
        weight = weight_of(c.name for c in table.columns)
        name = TableName.parse(table.name)
        schema = "main" if name.schema == "default" else name.schema
        self.con.execute(
            f"CREATE OR REPLACE TABLE {data} (__role CHAR, __count BIGINT, {columns});"
            + ("" if schema == "main" else f'CREATE SCHEMA IF NOT EXISTS "{schema}";')
            + f'CREATE OR REPLACE VIEW "{schema}"."{name.name}" AS SELECT {names} FROM {data} WHERE __role = \'p\';'
            f"CREATE OR REPLACE VIEW k_new_{place} AS SELECT {names}, __count AS {weight} FROM {data} WHERE __role = 'n';"
            f"CREATE OR REPLACE VIEW k_change_{place} AS SELECT {names}, __count AS {weight} FROM {data} WHERE __role = 'c'"
        )

    def load(self, key: str, first_round: int, moments: Iterable[Moment]) -> None:
        """Keep one source's moments, one a round."""
        place = self.places[key]
        for number, moment in enumerate(moments, first_round):
            parts = (
                ("p", [(row, 1) for row in moment.contents]),
                ("n", moment.reading),
                ("c", moment.change),
            )
            values = [
                f"('{role}',{weight},{','.join(map(literal, row))})"
                for role, rows in parts
                for row, weight in rows
            ]
            self._rows[place, number] = ",".join(values)
            if number == self._number and (shown := self._shown(place)):
                self.con.execute(shown)

    def set_round(self, number: int) -> None:
        """Let the tables hold a round."""
        if number != self._number:
            self._number = number
            shown = "".join(map(self._shown, range(len(self.tables))))
            if shown:
                self.con.execute(f"BEGIN;{shown}COMMIT")

    def _shown(self, place: int) -> str:
        """What brings the round's rows into a table, if it has others."""
        values, held = self._rows.get((place, self._number), ""), self._held[place]
        self._held[place] = values
        if values == held:
            return ""
        emptied = f"DELETE FROM k_data_{place};" if held else ""
        return emptied + (f"INSERT INTO k_data_{place} VALUES {values};" if values else "")


class DuckQuery:
    """A compiled query with its trace."""

    def __init__(
        self,
        sources: DuckSources,
        compiled: CompiledQuery,
        translate: Callable[[str], str] = replace_words,
        *,
        with_tables: bool = False,
        rewrite: Callable[[Program], Program] = lambda program: program,
    ) -> None:
        self.con = sources.con
        self.sources = sources
        self.compiled = compiled
        self.translate = translate
        self.with_tables = with_tables
        self.rewrite = rewrite
        self.epoch = 0
        self.total: Bag = Bag()
        self._translated: dict[str, str] = {}
        self._statements: dict[int, str] = {}
        self._parsed: dict[str, duckdb.Statement] = {}
        self._prepared: dict[str, str] = {}
        self._full: str | None = None
        layout = compiled.layout
        self.stored = [c.name for c in layout.stored]
        columns = ", ".join(f"{c.name} {duck_type(c.type)}" for c in layout.stored)
        self.con.execute(
            f"CREATE OR REPLACE TABLE k_trace ({columns}, __weight BIGINT, __epoch BIGINT)"
        )

    def set_round(self, number: int) -> None:
        self.sources.set_round(number)

    def oracle(self, sql: str) -> Bag:
        return bag(self._rows(sql))

    def _rows(self, sql: str) -> list[Row]:
        """The rows of a query; to plan it takes half of the time, so that is done once a text."""
        if self.with_tables:
            return self._rows_of_steps(sql)
        if sql not in self._prepared:
            # What another query has prepared by this name is of a trace that it has no more.
            name = f"k_query_{len(self._prepared)}"
            self.con.execute(f"PREPARE {name} AS {sql}")
            self._prepared[sql] = f"EXECUTE {name}"
        return self.con.execute(self._prepared[sql]).fetchall()

    def _rows_of_steps(self, sql: str) -> list[Row]:
        """The same where steps are tables, with each of which it would be planned again."""
        if sql not in self._parsed:
            (self._parsed[sql],) = self.con.extract_statements(sql)
        return self.con.execute(self._parsed[sql]).fetchall()

    def initialize(self) -> None:
        """Fill the trace from `full()`."""
        self.append(self.full(), self.epoch)

    def full(self) -> Bag:
        """The stored rows of the whole result, netted."""
        program = self.compiled.full_program()
        if len(program.steps) > 1:
            return _weighted(self._rows_of_steps(self._tables(program)))
        if self._full is None:
            names = ", ".join(self._typed())
            self._full = f"SELECT {names}, __weight FROM ({self._text(program.output.sql)})"
        return _weighted(self._rows(self._full))

    def run(self, program: Program) -> Bag:
        """The output of a program, unchecked and not yet appended; every row must come once."""
        if not program.steps:
            return Bag()
        program = self.rewrite(program)
        has_rounds = any(step.again for step in program.steps)
        is_split = self.with_tables or has_rounds
        sql = self._tables(program) if is_split else self._ctes(program)
        rows = self._rows_of_steps(sql) if is_split else self._rows(sql)
        totals = _weighted(rows)
        assert len(totals) == len(rows), f"the output is not netted: {rows}"
        return totals

    def append(self, change: Bag, epoch: int) -> None:
        """Append an epoch: copies as rows of weight 1, deletes with their total."""
        values = []
        for row, weight in change.items():
            typed = zip(row, self.compiled.layout.stored, strict=True)
            cells = "".join(f"{_cell(value, column.type)}," for value, column in typed)
            copies = (
                [f"({cells}1,{epoch})"] * weight if weight > 0 else [f"({cells}{weight},{epoch})"]
            )
            values += copies
        if values:
            self.con.execute(f"INSERT INTO k_trace VALUES {','.join(values)}")
        self.total = netted([*self.total.items(), *change.items()])
        self.epoch = epoch

    def compact(self, since: int) -> None:
        """Net the epochs up to `since` into one run."""
        names = "".join(f"{n}, " for n in self.stored)
        sql = f"SELECT {names}__weight FROM k_trace WHERE __epoch <= {since}"
        run = _weighted(self.con.execute(sql).fetchall())
        self.con.execute(f"DELETE FROM k_trace WHERE __epoch <= {since}")
        epoch, total = self.epoch, self.total
        self.append(run, since)
        self.epoch, self.total = epoch, total

    def readout(self) -> Bag:
        """What the user sees."""
        layout = self.compiled.layout
        items = "".join(f"{sql} AS v{i}, " for i, (_, sql) in enumerate(layout.visible))
        where = f" WHERE {layout.visible_when}" if layout.visible_when else ""
        return _weighted(self._rows(self._text(f"SELECT {items}__weight FROM k_trace{where}")))

    def _typed(self) -> list[str]:
        layout = self.compiled.layout
        return [f"CAST({c.name} AS {duck_type(c.type)}) AS {c.name}" for c in layout.stored]

    def _output(self, relation: str) -> str:
        return f"SELECT {', '.join([*self._typed(), '__weight'])} FROM {relation}"

    def _text(self, sql: str) -> str:
        """A statement for DuckDB; other steps are mentioned by name."""
        if sql not in self._translated:
            bound = TOKEN.sub(lambda match: self._relation(match.group(1)), sql)
            self._translated[sql] = self.translate(bound)
        return self._translated[sql]

    def _relation(self, token: str) -> str:
        kind, _, name = token.partition(":")
        match kind:
            case "hint":
                return ""
            case "state":
                return "k_trace"
            case "step":
                return f"k_step_{name}"
            case "last" | "all":
                return f"k_{kind}"
            case "near":
                return f"k_new_{self.sources.places[name]}"
            case _:
                return f"k_{kind}_{self.sources.places[name]}"

    def _ctes(self, program: Program) -> str:
        """The whole program as one statement, prepared once; the state is taken for a small one."""
        if id(program) not in self._statements:
            parts = []
            for step in program.steps:
                sql = self._text(step.of_small or step.sql)
                if step.only_if:
                    sql = f"SELECT * FROM ({sql}) WHERE EXISTS (FROM k_step_{step.only_if})"
                kept = " MATERIALIZED" if step.keep is not Keep.NEVER else ""
                parts.append(f"k_step_{step.name} AS{kept} ({sql})")
            output = self._output(f"k_step_{program.output.name}")
            self._statements[id(program)] = f"WITH {', '.join(parts)} {output}"
        return self._statements[id(program)]

    def _tables(self, program: Program) -> str:
        """Run the program as the product does: small steps become tables, others are put in place."""
        inline: dict[str, str] = {}

        def in_place(sql: str) -> str:
            return _STEP.sub(lambda m: inline.get(m.group(), m.group()), sql)

        for step in program.steps:
            name = f"k_step_{step.name}"
            sql = in_place(self._text(step.sql))
            if step.only_if and not self._has_rows(in_place(f"k_step_{step.only_if}")):
                sql = _empty(step)
            if step.again is not None:
                run_rounds(self.con, name, sql, in_place(self._text(step.again)))
            elif step.keep is not Keep.NEVER:
                self.con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")
            else:
                inline[name] = f"({sql})"
            if step.name == program.empty_if_empty and not self._has_rows(in_place(name)):
                return self._output(f"({_empty(program.output)})")
        return self._output(in_place(f"k_step_{program.output.name}"))

    def _has_rows(self, relation: str) -> bool:
        return self.con.execute(f"SELECT 1 FROM {relation} LIMIT 1").fetchone() is not None


def run_rounds(con: duckdb.DuckDBPyConnection, name: str, first: str, again: str) -> None:
    """A step in rounds: `name` becomes a table with the rows of all of them."""
    con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {first}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE k_last AS FROM {name}")
    con.execute(f"CREATE OR REPLACE TEMP VIEW k_all AS FROM {name}")
    for _ in range(LEVELS + 1):
        if con.execute("SELECT 1 FROM k_last WHERE __new LIMIT 1").fetchone() is None:
            return
        con.execute(f"CREATE OR REPLACE TEMP TABLE k_next AS {again}")
        con.execute("CREATE OR REPLACE TEMP TABLE k_last AS FROM k_next")
        con.execute(f"INSERT INTO {name} FROM k_last")
    raise QueryFailed(f"recursion has more than {LEVELS} levels")


def oracle(con: duckdb.DuckDBPyConnection, duck_sql: str) -> Bag:
    """The user's own query, evaluated by DuckDB on the contents of the round."""
    return bag(con.execute(duck_sql).fetchall())


def oracle_text(query: str, tables: Sequence[Table], scales: dict[str, int] | None = None) -> str:
    """The user's query for DuckDB; decimal columns of the tables are known, `scales` adds others."""
    known = {
        c.name.lower(): int(c.type[:-1].split(",")[1])
        for table in tables
        for c in table.columns
        if c.type.startswith("decimal(")
    }
    return transpile(query, known | (scales or {}))


def _cell(value: object, type_: str) -> str:
    """A stored value as a literal; only the type tells a struct from an array."""
    if isinstance(value, tuple) and type_.startswith("struct<"):
        return f"ROW({', '.join(literal(plain(v)) for v in value)})"
    return literal(plain(value))


def _empty(step: Step) -> str:
    items = "".join(f"CAST(NULL AS {duck_type(c.type)}) AS {c.name}, " for c in step.columns)
    return f"SELECT {items}CAST(0 AS BIGINT) AS __w, CAST(0 AS BIGINT) AS __weight WHERE FALSE"


def _weighted(rows: Iterable[Row]) -> Bag:
    return netted((next(iter(bag([row[:-1]]))), row[-1]) for row in rows)
