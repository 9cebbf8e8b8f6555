"""Random queries: scans, joins of every kind, grouping, DISTINCT, unions, nested three deep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kit.duck import Table
from kit.generate.dice import Dice, chance, pick
from kit.generate.scalars import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    FAMILIES,
    INT,
    LITERALS,
    TEXT,
    Visible,
    column,
    predicate,
    scalar,
)

_FAMILY_OF = {"int": INT, "bigint": INT, "string": TEXT, "double": DOUBLE, "boolean": BOOLEAN}


@dataclass(frozen=True)
class Output:
    """A column of a query's result."""

    name: str
    family: str
    scale: int = 2


@dataclass(frozen=True)
class Query:
    """Text, and what it gives."""

    text: str
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Item:
    """Something in a FROM clause: its text, alias and columns."""

    text: str
    alias: str
    outputs: tuple[Output, ...]


@dataclass
class Writer:
    """Writes one query. `exact`: no sums of doubles, which only a root may have."""

    dice: Dice
    tables: Sequence[Table]
    names: int = 0
    scales: dict[str, int] = field(default_factory=dict)
    ctes: list[tuple[str, Query]] = field(default_factory=list)

    def whole(self, depth: int) -> Query:
        """A query, with the common table expressions it uses."""
        if depth > 0 and chance(self.dice, 20):
            self.ctes.append((self.fresh("w"), self.query(depth - 1)))
        query = self.query(depth, is_root=True)
        if not self.ctes:
            return query
        parts = ", ".join(f"{name} AS ({body.text})" for name, body in self.ctes)
        return replace(query, text=f"WITH {parts} {query.text}")

    def query(self, depth: int, *, is_root: bool = False) -> Query:
        form = pick(self.dice, ("plain", "plain", "grouped", "grouped", "union", "global"))
        if form == "union" and depth > 0:
            return self._union(depth)
        if form == "grouped":
            return self._grouped(depth, is_root=is_root)
        if form == "global":
            return self._global(depth, is_root=is_root)
        return self._plain(depth)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def _output(self, family: str, scale: int) -> Output:
        output = Output(self.fresh("x"), family, scale)
        if family == DECIMAL:
            self.scales[output.name] = scale
        return output

    def _plain(self, depth: int) -> Query:
        source, columns = self._from(depth)
        distinct = "DISTINCT " if chance(self.dice, 20) else ""
        if chance(self.dice, 15) and len({c.text.rpartition(".")[2] for c in columns}) == len(columns):
            outputs = tuple(
                Output(c.text.rpartition(".")[2], c.family, c.scale) for c in columns
            )
            return Query(f"SELECT {distinct}* {source}{self._where(columns)}", outputs)
        items, outputs = self._select_list(columns, self.dice.number(1, 4))
        return Query(f"SELECT {distinct}{items} {source}{self._where(columns)}", outputs)

    def _select_list(
        self, columns: Sequence[Visible], count: int
    ) -> tuple[str, tuple[Output, ...]]:
        parts, outputs = [], []
        for _ in range(count):
            text, family, scale = self._item(columns)
            output = self._output(family, scale)
            parts.append(f"{text} AS {output.name}")
            outputs.append(output)
        return ", ".join(parts), tuple(outputs)

    def _item(self, columns: Sequence[Visible]) -> tuple[str, str, int]:
        if chance(self.dice, 30):
            family = pick(self.dice, FAMILIES)
            return scalar(self.dice, columns, family), family, _widest(columns)
        chosen = pick(self.dice, columns)
        return chosen.text, chosen.family, chosen.scale

    def _where(self, columns: Sequence[Visible]) -> str:
        return f" WHERE {predicate(self.dice, columns)}" if chance(self.dice, 35) else ""

    def _grouped(self, depth: int, *, is_root: bool) -> Query:
        source, columns = self._from(depth)
        where = self._where(columns)
        keys = [self._item(columns) for _ in range(self.dice.number(1, 2))]
        outputs = [self._output(family, scale) for _, family, scale in keys]
        calls = [self._call(columns, is_root=is_root) for _ in range(self.dice.number(0, 3))]
        shown = [f"{text} AS {o.name}" for (text, _, _), o in zip(keys, outputs, strict=True)]
        grouping = [
            pick(self.dice, (text, str(place), o.name))
            if not _is_literal(text)
            else str(place)
            for place, ((text, _, _), o) in enumerate(zip(keys, outputs, strict=True), 1)
        ]
        if len(shown) > 1 and chance(self.dice, 15):
            shown, outputs = shown[:1], outputs[:1]
            grouping = [grouping[0], keys[1][0] if not _is_literal(keys[1][0]) else grouping[0]]
        for text, family, scale in calls:
            outputs.append(self._output(family, scale))
            shown.append(f"{text} AS {outputs[-1].name}")
        having = self._having(columns, calls)
        distinct = "DISTINCT " if chance(self.dice, 5) else ""
        text = f"SELECT {distinct}{', '.join(shown)} {source}{where} GROUP BY {', '.join(grouping)}{having}"
        return Query(text, tuple(outputs))

    def _global(self, depth: int, *, is_root: bool) -> Query:
        source, columns = self._from(depth)
        where = self._where(columns)
        calls = [self._call(columns, is_root=is_root) for _ in range(self.dice.number(1, 3))]
        outputs = [self._output(family, scale) for _, family, scale in calls]
        shown = [f"{c[0]} AS {o.name}" for c, o in zip(calls, outputs, strict=True)]
        having = self._having(columns, calls) if chance(self.dice, 20) else ""
        return Query(f"SELECT {', '.join(shown)} {source}{where}{having}", tuple(outputs))

    def _having(self, columns: Sequence[Visible], calls: list[tuple[str, str, int]]) -> str:
        if not chance(self.dice, 30):
            return ""
        if calls and chance(self.dice, 50):
            text, family, _ = pick(self.dice, calls)
            return f" HAVING {text} >= {LITERALS[family][1]}"
        return f" HAVING COUNT(*) {pick(self.dice, ('> 1', '< 3', '= 2'))}"

    def _call(self, columns: Sequence[Visible], *, is_root: bool) -> tuple[str, str, int]:
        """An aggregate call, its family and scale."""
        text, family, scale = self._function(columns, is_root=is_root)
        if chance(self.dice, 20):
            text += f" FILTER (WHERE {predicate(self.dice, columns, 0)})"
        return text, family, scale

    def _function(self, columns: Sequence[Visible], *, is_root: bool) -> tuple[str, str, int]:
        form = pick(self.dice, ("COUNT(*)", "COUNT", "SUM", "MIN", "MAX", "AVG", "DISTINCT", "SUM"))
        any_column = pick(self.dice, columns)
        if form == "COUNT(*)":
            return form, INT, 0
        if form in ("MIN", "MAX"):
            return f"{form}({any_column.text})", any_column.family, any_column.scale
        if form == "DISTINCT":
            number = column(self.dice, columns, INT)
            if number is not None and chance(self.dice, 30):
                return f"SUM(DISTINCT {number.text})", INT, 0
            return f"COUNT(DISTINCT {any_column.text})", INT, 0
        if form == "COUNT":
            return f"COUNT({any_column.text})", INT, 0
        return self._number_function(form, columns, is_root=is_root)

    def _number_function(
        self, form: str, columns: Sequence[Visible], *, is_root: bool
    ) -> tuple[str, str, int]:
        families = [INT, DECIMAL] + ([DOUBLE] if is_root else [])
        family = pick(self.dice, families)
        chosen = column(self.dice, columns, family)
        if chosen is None:
            return "COUNT(*)", INT, 0
        if form == "SUM":
            is_plain = family != INT or chance(self.dice, 70)
            text = chosen.text if is_plain else scalar(self.dice, columns, INT)
            return f"SUM({text})", family, chosen.scale
        if family == INT and not is_root:
            return f"COUNT({chosen.text})", INT, 0
        result = DECIMAL if family == DECIMAL else DOUBLE
        return f"AVG({chosen.text})", result, chosen.scale + 4

    def _union(self, depth: int) -> Query:
        left, right = self.query(depth - 1), self.query(depth - 1)
        columns = [Visible(o.name, o.family, o.scale) for o in right.outputs]
        alias = self.fresh("u")
        parts = [self._matching(o, columns) for o in left.outputs]
        word = pick(self.dice, ("UNION ALL", "UNION ALL", "UNION"))
        scale = max([c.scale for c in columns if c.family == DECIMAL], default=0)
        outputs = []
        for o in left.outputs:
            wider = replace(o, scale=max(o.scale, scale, 2)) if o.family == DECIMAL else o
            outputs.append(wider)
            if o.family == DECIMAL:
                self.scales[o.name] = wider.scale
        text = f"{left.text} {word} SELECT {', '.join(parts)} FROM ({right.text}) AS {alias}"
        if left.text.startswith("(") or " UNION " in left.text:
            text = f"({left.text}) {word} SELECT {', '.join(parts)} FROM ({right.text}) AS {alias}"
        return Query(text, tuple(outputs))

    def _matching(self, output: Output, columns: Sequence[Visible]) -> str:
        found = column(self.dice, columns, output.family)
        return found.text if found else pick(self.dice, LITERALS[output.family])

    def _from(self, depth: int) -> tuple[str, list[Visible]]:
        count = pick(self.dice, (1, 1, 2, 2, 3)) if depth > 0 else pick(self.dice, (1, 1, 2))
        first = self._from_item(depth)
        text, items = f"FROM {first.text}", [first]
        for _ in range(count - 1):
            item = self._from_item(depth)
            text += self._join(items, item)
            items.append(item)
        return text, self._in_sight(items)

    def _join(self, items: list[Item], item: Item) -> str:
        kind = pick(
            self.dice,
            ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"),
        )
        if kind == "CROSS JOIN":
            return f" {kind} {item.text}"
        return f" {kind} {item.text} ON {self._condition(items, item)}"

    def _condition(self, items: list[Item], item: Item) -> str:
        left, right = self._in_sight(items), self._in_sight([item], qualified=True)
        left = [replace(c, text=c.text if "." in c.text else f"{c.text}") for c in left]
        pairs = [(a, b) for a in left for b in right if a.family == b.family]
        if not pairs or chance(self.dice, 10):
            return predicate(self.dice, [*self._qualified(items), *right])
        a, b = pick(self.dice, [(x, y) for x in self._qualified(items) for y in right if x.family == y.family])
        ends = [a.text, b.text] if chance(self.dice, 50) else [b.text, a.text]
        operator = pick(self.dice, ("=", "=", "=", "=", "<=>", "<")) if a.family != BOOLEAN else "="
        text = f" {operator} ".join(ends)
        if chance(self.dice, 15):
            text += f" AND {predicate(self.dice, [*self._qualified(items), *right], 0)}"
        return text

    def _qualified(self, items: list[Item]) -> list[Visible]:
        return self._in_sight(items, qualified=True)

    def _in_sight(self, items: list[Item], *, qualified: bool = False) -> list[Visible]:
        """Columns with a qualifier where their name is not unique, and sometimes where it is."""
        names = [o.name.lower() for item in items for o in item.outputs]
        found = []
        for item in items:
            for output in item.outputs:
                must = qualified or names.count(output.name.lower()) > 1
                text = f"{item.alias}.{output.name}" if must else output.name
                found.append(Visible(text, output.family, output.scale))
        return found

    def _from_item(self, depth: int) -> Item:
        if depth > 0 and chance(self.dice, 45):
            inner = self.query(depth - 1)
            alias = self.fresh("q")
            return Item(f"({inner.text}) AS {alias}", alias, inner.outputs)
        if self.ctes and chance(self.dice, 40):
            name, body = pick(self.dice, self.ctes)
            alias = self.fresh("c")
            return Item(f"{name} AS {alias}", alias, body.outputs)
        table = pick(self.dice, self.tables)
        alias = self.fresh("t")
        outputs = tuple(
            Output(c.name, _FAMILY_OF.get(c.type, DECIMAL if "decimal" in c.type else "date"))
            for c in table.columns
        )
        for output in outputs:
            if output.family == DECIMAL:
                self.scales[output.name] = 2
        return Item(f"{table.name} {alias}", alias, outputs)


def _widest(columns: Sequence[Visible]) -> int:
    return max([2, *(c.scale for c in columns if c.family == DECIMAL)])


def _is_literal(text: str) -> bool:
    return any(text in choices for choices in LITERALS.values())
