"""Cycles of stream tables on DuckDB: the one recursion kept by change programs, against plain iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from kit.bags import Bag, Row, bag, literal
from kit.check import Round, refresh
from kit.dialect import duck_type, replace_words
from kit.duck import DuckQuery, DuckSources, Moment, Table, Weighted, oracle_text
from kit.typer import RuleTyper
from runnel.algebra.nodes import Scan
from runnel.compile.build import SourceSchema
from runnel.compile.components import Component, Member, in_order
from runnel.compile.cycle_columns import infer_columns
from runnel.compile.monotone import gives_set, obstacle
from runnel.compile.pipeline import compile_query
from runnel.errors import InvalidQuery
from runnel.model.columns import Column
from runnel.model.names import TableName

Columns = tuple[Column, ...]


def component_of(queries: Mapping[str, str], tables: Sequence[Table]) -> Component:
    """What the product makes of tables that read each other."""
    texts = {TableName.parse(name).key: query for name, query in queries.items()}

    def schemas(known: Mapping[str, Columns]) -> list[SourceSchema]:
        return [t.schema for t in tables] + [SourceSchema(k, "trace", c) for k, c in known.items()]

    def ask(text: str, known: Mapping[str, Columns]) -> Columns:
        return compile_query(text, schemas(known), RuleTyper()).layout.columns

    columns = infer_columns(texts, ask)
    members = []
    for key, text in texts.items():
        tree = compile_query(text, schemas(columns), RuleTyper()).tree
        found = obstacle(tree, lambda n: isinstance(n, Scan) and n.source in texts)
        if found is not None:
            raise InvalidQuery(found)
        members.append(Member(TableName.parse(key), text, columns[key], gives_set(tree)))
    return Component(TableName("default", "__cycle_1"), in_order(members))


class DuckCycle:
    """A cycle over tables that change; every refresh is compared with iteration from empty."""

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        queries: Mapping[str, str],
        tables: Sequence[Table],
        rows: Mapping[str, list[Row]],
    ) -> None:
        self.con = con
        self.tables = list(tables)
        self.rows = rows
        self.component = component_of(queries, tables)
        schemas = [t.schema for t in tables]
        self.compiled = compile_query(self.component.recursion(), schemas, RuleTyper())
        self.texts = {m.name.name: oracle_text(m.text, tables) for m in self.component.members}
        self.sources = DuckSources(con, tables)
        self.query = DuckQuery(self.sources, self.compiled, replace_words, with_tables=True)
        self.round = 0
        self._load({})
        self.query.initialize()
        self.check()

    def refresh(self, changes: Mapping[str, list[Weighted]]) -> None:
        """One round; `rows` hold the new contents already."""
        self.round += 1
        self._load(changes)
        keys = {t.name: t.schema.key for t in self.tables}
        changed = frozenset(keys[name] for name, change in changes.items() if change)
        growing = frozenset(
            keys[n] for n, change in changes.items() if change and all(w > 0 for _, w in change)
        )
        refresh(self.query, Round(changed, growing), f"round {self.round}")
        self.check()

    def check(self) -> None:
        expected = self.iterated()
        for member in self.component.sets:
            assert self.contents(member) == expected[member.name.name], (self.round, member.name)

    def contents(self, member: Member) -> Bag:
        """A set's rows, read from the recursion."""
        tag = self.component.sets.index(member)
        at = [int(place.removeprefix("v")) + 1 for place in self.component.places(member)]
        found: Bag = Bag()
        for row, times in self.query.readout().items():
            if row[0] == tag:
                found[tuple(row[i] for i in at)] += times
        return found

    def iterated(self) -> dict[str, Bag]:
        """Every query evaluated over what all of them gave the last time, from nothing on."""
        members = {m.name.name: m for m in self.component.members}
        found: dict[str, Bag] = {name: Bag() for name in members}
        while True:
            for name, member in members.items():
                self._fill(name, member.columns, found[name])
            before = found
            found = {n: bag(self.con.execute(text).fetchall()) for n, text in self.texts.items()}
            if found == before:
                return found

    def _fill(self, name: str, columns: Columns, rows: Bag) -> None:
        typed = ", ".join(f'"{c.name}" {duck_type(c.type)}' for c in columns)
        self.con.execute(f'CREATE OR REPLACE TABLE "{name}" ({typed})')
        values = [f"({', '.join(map(literal, row))})" for row in rows.elements()]
        if values:
            self.con.execute(f'INSERT INTO "{name}" VALUES {", ".join(values)}')

    def _load(self, changes: Mapping[str, list[Weighted]]) -> None:
        for table in self.tables:
            rows = self.rows[table.name]
            moment = Moment(list(rows), [(row, 1) for row in rows], changes.get(table.name, []))
            self.sources.load(table.schema.key, self.round, [moment])
        self.sources.set_round(self.round)
