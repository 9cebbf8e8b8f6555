"""An aggregate over the rows that belong to a row of the query around it, as a grouping by key.

    (SELECT 0.2 * AVG(l.n) FROM lines AS l WHERE l.item = i.id AND l.n > 0)
    ->  SELECT l.item AS __k0, AVG(l.n) AS __a0 FROM lines AS l WHERE l.n > 0 GROUP BY l.item
        (SELECT 0.2 * MAX(__part.__a0) FROM part AS __part WHERE __part.__k0 = i.id)

There is one group or none, so that MAX is its value, or NULL as the aggregate over no rows is. A
count of no rows is 0. Both sides of the comparison have one type: else two keys could be equal to
the same value, and their groups would have to be put together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from runnel.compile.aggregates import is_aggregate
from runnel.compile.cut_places import PART, Grouping, Known, is_one_value
from runnel.compile.scalars import conjuncts
from runnel.compile.sources import is_cte, table_name

_NULL_OF_NOTHING = (exp.Sum, exp.Avg, exp.Min, exp.Max)
_COUNTS = (exp.Count, exp.CountIf)
_OWN = ("__k", "__a", PART)

_Types = Mapping[str, Mapping[str, str]]


def correlated_grouping(select: exp.Select, known: Known) -> Grouping | None:
    """The grouping that a correlated aggregate can be looked up in; None where that is another."""
    around = select.parent_select
    if around is None or not is_one_value(select) or not _is_plain(select):
        return None
    inner, outer = _tables(select, known), _tables(around, known)
    if len(inner) != len(list(_relations(select))):
        return None
    cut = _Cut(inner, outer)
    where = select.args.get("where")
    own = [c for c in (conjuncts(where.this) if where else []) if not cut.takes(c)]
    item = select.expressions[0].unalias().copy()
    rest = [item, *own, *(j for j in select.args.get("joins") or [])]
    if not cut.keys or not all(cut.is_inner(c) for e in rest for c in e.find_all(exp.Column)):
        return None
    value = cut.value(item)
    return None if value is None else Grouping(select, cut.alone(select, own), cut.reader(value))


@dataclass
class _Cut:
    """What is compared with the query around, and the aggregates; by the columns of the part."""

    inner: _Types
    outer: _Types
    keys: dict[str, tuple[exp.Column, exp.Column]] = field(default_factory=dict)
    aggregates: dict[str, exp.Expr] = field(default_factory=dict)

    def takes(self, condition: exp.Expr) -> bool:
        """Whether it says which rows belong together, by the same type on both sides."""
        if not isinstance(condition, exp.EQ):
            return False
        left, right = condition.left, condition.right
        if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
            return False
        mine, other = (left, right) if self.is_inner(left) else (right, left)
        type_ = _type(mine, self.inner)
        if type_ is None or self.is_inner(other) or _type(other, self.outer) != type_:
            return False
        if other.name.startswith(_OWN):
            return False
        self.keys[f"__k{len(self.keys)}"] = (mine, other)
        return True

    def is_inner(self, column: exp.Column) -> bool:
        """The query itself comes first when a name is looked up."""
        name = column.name.lower()
        if column.table:
            return column.table.lower() in self.inner and not column.db
        return any(name in columns for columns in self.inner.values())

    def value(self, item: exp.Expr) -> exp.Expr | None:
        """The value over the columns of the part; None when it is not known of no rows."""
        found = [node for node in item.walk(bfs=False, prune=is_aggregate) if is_aggregate(node)]
        if not found or not all(map(_is_known, found)):
            return None
        names = {id(node): f"__a{i}" for i, node in enumerate(found)}
        self.aggregates = {names[id(node)]: node for node in found}

        def read(node: exp.Expr) -> exp.Expr:
            return _of_part(names[id(node)], node) if id(node) in names else node

        # The nodes are known by identity: a copy would have others.
        return item.transform(read, copy=False)

    def alone(self, select: exp.Select, own: list[exp.Expr]) -> exp.Select:
        keys = [exp.alias_(mine.copy(), name) for name, (mine, _) in self.keys.items()]
        values = [exp.alias_(node.copy(), name) for name, node in self.aggregates.items()]
        made = exp.Select(
            expressions=[*keys, *values], from_=select.args["from_"].copy(),
            joins=[join.copy() for join in select.args.get("joins") or []],
        )  # fmt: skip
        if own:
            made = made.where(*(c.copy() for c in own))
        return made.group_by(*dict.fromkeys(mine.copy() for mine, _ in self.keys.values()))

    def reader(self, value: exp.Expr) -> exp.Select:
        pairs = self.keys.items()
        same = [exp.EQ(this=exp.column(n, table=PART), expression=o.copy()) for n, (_, o) in pairs]
        return exp.select(value).where(*same)


def _is_plain(select: exp.Select) -> bool:
    """One value over joined tables, without a grouping or a subquery."""
    others = ("group", "having", "distinct", "with_")
    if len(select.expressions) != 1 or any(select.args.get(name) for name in others):
        return False
    return not any(node is not select for node in select.find_all(exp.Query))


def _relations(select: exp.Select) -> Iterator[exp.Expr]:
    if select.args.get("from_"):
        yield select.args["from_"].this
    yield from (join.this for join in select.args.get("joins") or [])


def _tables(select: exp.Select, known: Known) -> _Types:
    """The columns of the tables that it reads, by what they are called there."""
    tables = [t for t in _relations(select) if isinstance(t, exp.Table) and _is_named_only(t)]
    keys = {table.alias_or_name.lower(): table_name(table).key for table in tables}
    return {name: known[key] for name, key in keys.items() if key in known}


def _is_named_only(table: exp.Table) -> bool:
    others = {k for k, v in table.args.items() if v} - {"this", "db", "catalog", "alias"}
    alias = table.args.get("alias")
    has_columns = alias is not None and bool(alias.args.get("columns"))
    return not (others or has_columns or is_cte(table)) and isinstance(table.this, exp.Identifier)


def _type(column: exp.Column, tables: _Types) -> str | None:
    """The type of a column of one of the tables, if it is clear which."""
    name = column.name.lower()
    if column.db:
        return None
    if column.table:
        return tables.get(column.table.lower(), {}).get(name)
    types = [columns[name] for columns in tables.values() if name in columns]
    return types[0] if len(types) == 1 else None


def _is_known(node: exp.Expr) -> bool:
    function = node.this if isinstance(node, exp.Filter) else node
    return isinstance(function, (*_NULL_OF_NOTHING, *_COUNTS))


def _of_part(name: str, node: exp.Expr) -> exp.Expr:
    value = exp.Max(this=exp.column(name, table=PART))
    function = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(function, _COUNTS):
        return value
    return exp.Coalesce(this=value, expressions=[exp.cast(exp.Literal.number(0), "bigint")])
