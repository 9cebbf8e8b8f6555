"""FROM: tables, subqueries, joins, LATERAL, and functions that return rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from runnel.compile.postgres.casts import coerce
from runnel.compile.postgres.expressions import Expressions
from runnel.compile.postgres.relation import Columns, Known, Relation
from runnel.compile.postgres.scope import Entry, Scope, folded, write_name
from runnel.compile.postgres.series import is_series, series_array
from runnel.compile.postgres.types import BOOL, INT8, Type, common, from_spark
from runnel.compile.postgres.values import Value, bare, refused
from runnel.errors import InvalidQuery
from runnel.model.names import TableName

_Query = Callable[[exp.Expr, Known, Scope], Relation]
_SIDES = {"": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}
_HANDLED: dict[type[exp.Expr], frozenset[str]] = {
    exp.Table: frozenset("this db catalog alias joins only".split()),
    exp.Subquery: frozenset("with_ this alias joins".split()),
    exp.Join: frozenset("this side kind method on using".split()),
    exp.Lateral: frozenset({"this", "alias"}),
    exp.Unnest: frozenset({"expressions", "alias", "offset"}),
    exp.Values: frozenset({"expressions", "alias"}),
}


def from_clause(node: exp.Select, known: Known, outer: Scope, query: _Query) -> tuple[str, Scope]:
    """The clause, with the word FROM, and the columns it brings into sight."""
    first = node.args.get("from_")
    if first is None:
        return "", Scope((), outer)
    items = _Items(known, outer, query)
    text, entries = items.joined(first.this, node.args.get("joins") or [])
    return f" FROM {text}", Scope(tuple(entries), outer)


@dataclass(frozen=True, slots=True)
class _Items:
    known: Known
    outer: Scope
    query: _Query

    def joined(self, first: exp.Expr, joins: Sequence[exp.Expr]) -> tuple[str, list[Entry]]:
        text, entries = self.item(first, [])
        for group in _behind_commas(joins):
            if _is_comma(group[0]) and any(map(_minds_what_is_before, group)):
                made, added = self._apart(group)
                text, entries = f"{text} CROSS JOIN ({made})", [*entries, *added]
                continue
            for join in group:
                text, entries = self._join(text, entries, join)
        return text, entries

    def _apart(self, group: list[exp.Expr]) -> tuple[str, list[Entry]]:
        """JOIN binds tighter than the comma, which it does not in Spark."""
        if any(isinstance(join.this, exp.Lateral) for join in group):
            raise refused(
                "LATERAL together with an outer, NATURAL or USING join behind a comma",
                hint="compute one of the two in a subquery in FROM",
            )
        return self.joined(group[0].this, group[1:])

    def item(self, node: exp.Expr, before: list[Entry]) -> tuple[str, list[Entry]]:
        """One item; LATERAL and functions see the columns of those before it."""
        _check(node)
        if node.args.get("joins"):
            first = node.copy()
            return self.joined(first, first.args.pop("joins"))
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                return self._table(node)
            case exp.Table() | exp.Unnest():
                return self._function(node, node, before)
            case exp.Lateral() if not isinstance(node.this, exp.Subquery):
                return self._function(node.this, node, before)
            case exp.Lateral():
                relation = self.query(node.this, self.known, self._seeing(before))
                text, entries = _aliased(relation, node)
                return f"LATERAL {text}", entries
            case exp.Subquery() if not isinstance(node.this, exp.Query) or _is_join(node.this):
                return self._parenthesised(node)
            case exp.Subquery() | exp.Values():
                return _aliased(self.query(_inner(node), self.known, self.outer), node)
            case _:
                raise refused(f"{node.sql('postgres')[:60]} in FROM")

    def _seeing(self, before: list[Entry]) -> Scope:
        return Scope(tuple(before), self.outer)

    def _table(self, node: exp.Table) -> tuple[str, list[Entry]]:
        name = folded(node.this)
        alias = _alias(node) or name
        if not node.db and name.lower() in self.known.ctes:
            columns, text = self.known.ctes[name.lower()], write_name(name)
        else:
            # PostgreSQL's schema for what has none is called public.
            schema = folded(node.args["db"]) if node.db else "default"
            table = TableName("default" if schema == "public" else schema, name)
            found = self.known.columns_of(table)
            columns = tuple((c.name, from_spark(c.type)) for c in found)
            text = write_name(name)
            if table.schema != "default":
                text = f"{write_name(table.schema)}.{text}"
        names = _names(node)
        shown = f" AS {write_name(alias)}" if alias.lower() != name.lower() or names else ""
        return text + shown + _listed(names, columns), _entries(alias, columns, names)

    def _function(
        self, function: exp.Expr, item: exp.Expr, before: list[Entry]
    ) -> tuple[str, list[Entry]]:
        call = function.this if isinstance(function, exp.Table) else function
        if isinstance(call, exp.Unnest):
            call = exp.Anonymous(this="unnest", expressions=call.expressions)
        if not is_series(call):
            raise refused(f"{call.sql('postgres', normalize_functions=False)[:60]} in FROM")
        x = Expressions(self._seeing(before), self.known, self.query)
        array = series_array(x, call)
        assert array.type.element is not None
        name = call.name.lower()
        alias = _alias(item) or name
        column = (_names(item) or [alias])[0]
        word = "LATERAL " if before else ""
        offset = function.args.get("offset") or item.args.get("offset")
        if offset:
            return _numbered(word, array, alias, column, offset)
        text = f"{word}EXPLODE({array.sql}) AS {write_name(alias)}({write_name(column)})"
        return text, [Entry(column, array.type.element, alias)]

    def _parenthesised(self, node: exp.Subquery) -> tuple[str, list[Entry]]:
        text, entries = self.item(node.this, [])
        if node.alias:
            raise refused("an alias for a join in parentheses", hint="use a subquery")
        return f"({text})", entries

    def _join(self, left: str, entries: list[Entry], join: exp.Expr) -> tuple[str, list[Entry]]:
        _check(join)
        side, kind = (join.args.get(n) or "" for n in ("side", "kind"))
        text, added = self.item(join.this, entries)
        shared = _shared(join, entries, added)
        scope = Scope((*entries, *added), self.outer)
        if shared:
            names = ", ".join(write_name(n) for n in shared)
            word = _SIDES[side.upper()]
            merged = _merged(shared, side.upper(), entries, added)
            return f"{left} {word} {text} USING ({names})", merged
        on = join.args.get("on")
        if on is None:
            return f"{left} CROSS JOIN {text}", [*entries, *added]
        if side.upper() not in _SIDES or kind.upper() not in ("", "INNER", "OUTER"):
            raise refused(f"{side} {kind} JOIN")
        condition = coerce(Expressions(scope, self.known, self.query).of(on), BOOL)
        word = _SIDES[side.upper()]
        return f"{left} {word} {text} ON {bare(condition.sql)}", [*entries, *added]


def _behind_commas(joins: Sequence[exp.Expr]) -> list[list[exp.Expr]]:
    groups: list[list[exp.Expr]] = []
    for join in joins:
        if _is_comma(join) or not groups:
            groups.append([])
        groups[-1].append(join)
    return groups


def _is_comma(join: exp.Expr) -> bool:
    return not any(join.args.get(name) for name in ("kind", "side", "method", "on", "using"))


def _minds_what_is_before(join: exp.Expr) -> bool:
    """Whether it makes a difference if the items before the comma are joined first."""
    is_padding = (join.args.get("side") or "").upper() in ("RIGHT", "FULL")
    return is_padding or bool(join.args.get("using") or join.args.get("method"))


def _check(node: exp.Expr) -> None:
    handled = _HANDLED.get(type(node))
    for name, value in node.args.items():
        if value and handled is not None and name not in handled:
            raise refused(f"{name.rstrip('_').upper()} in FROM")


def _is_join(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery) and bool(node.alias or node.args.get("joins"))


def _inner(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Values):
        plain = node.copy()
        plain.set("alias", None)
        return plain
    return node.this if not node.args.get("with_") else _without_alias(node)


def _without_alias(node: exp.Expr) -> exp.Expr:
    plain = node.copy()
    plain.set("alias", None)
    return plain


def _aliased(relation: Relation, node: exp.Expr) -> tuple[str, list[Entry]]:
    alias = _alias(node) or "unnamed"
    names = _names(node)
    text = f"({relation.sql}) AS {write_name(alias)}{_listed(names, relation.columns)}"
    return text, _entries(alias, relation.columns, names)


def _listed(names: list[str], columns: Columns) -> str:
    if not names:
        return ""
    called = [*names, *(name for name, _ in columns[len(names) :])]
    return f"({', '.join(write_name(n) for n in called)})"


def _entries(alias: str, columns: Columns, names: list[str]) -> list[Entry]:
    if len(names) > len(columns):
        raise InvalidQuery(f"{alias} has {len(columns)} columns, {len(names)} are named")
    called = [*names, *(name for name, _ in columns[len(names) :])]
    return [Entry(n, t, alias) for n, (_, t) in zip(called, columns, strict=True)]


def _numbered(
    word: str, array: Value, alias: str, column: str, offset: object
) -> tuple[str, list[Entry]]:
    """WITH ORDINALITY: numbers from one, after the element."""
    assert array.type.element is not None
    name = folded(offset) if isinstance(offset, exp.Identifier) else "ordinality"
    called = write_name(alias)
    text = f"{word}POSEXPLODE({array.sql}) AS {called}(__at, {write_name(column)})"
    number = f"(CAST({called}.__at AS BIGINT) + 1)"
    return text, [Entry(column, array.type.element, alias), Entry(name, INT8, alias, number)]


def _alias(node: exp.Expr) -> str | None:
    alias = node.args.get("alias")
    return folded(alias.this) if alias is not None and alias.this is not None else None


def _names(node: exp.Expr) -> list[str]:
    alias = node.args.get("alias")
    return [folded(c) for c in alias.args.get("columns") or ()] if alias is not None else []


def _shared(join: exp.Expr, left: list[Entry], right: list[Entry]) -> list[str]:
    if join.args.get("using"):
        return [folded(i) for i in join.args["using"]]
    if not join.args.get("method"):
        return []
    if join.args["method"].upper() != "NATURAL":
        raise refused(f"{join.args['method']} JOIN")
    known = {e.name.lower() for e in right if not e.only_qualified}
    return [e.name for e in left if e.name.lower() in known and not e.only_qualified]


def _merged(shared: list[str], side: str, left: list[Entry], right: list[Entry]) -> list[Entry]:
    """USING shows each shared column once, first; the others stay reachable by their table."""
    lowered = {n.lower() for n in shared}
    first = []
    for name in shared:
        pair = [
            e for e in (*left, *right) if e.name.lower() == name.lower() and not e.only_qualified
        ]
        if len(pair) != 2:
            raise InvalidQuery(f"column {name} of USING is not once on both sides of the join")
        first.append(Entry(name, _merged_type([e.type for e in pair]), None))
    rest = [
        replace(e, only_qualified=True) if e.name.lower() in lowered and not e.only_qualified else e
        for e in (*left, *right)
    ]
    return [*first, *(e for e in rest if not (e.only_qualified and e.qualifier is None))]


def _merged_type(types: list[Type]) -> Type:
    if len({t.kind for t in types}) > 1 and not all(t.is_integer for t in types):
        raise refused("USING columns of different types", hint="join with ON and a cast")
    return common(types, "USING")
