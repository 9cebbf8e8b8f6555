"""Random subqueries: EXISTS, IN, scalar and lateral ones, tied to the outer query in any way or not."""

from __future__ import annotations

from collections.abc import Sequence

from kit.generate.dice import pick
from kit.generate.from_clause import Sub
from kit.generate.scalars import BOOLEAN, DECIMAL, DOUBLE, INT, Visible, predicate
from kit.generate.writer import Output, Writer, bare

_COUNTED = (BOOLEAN, DOUBLE, DECIMAL)
_KINDS = ("exists", "in", "scalar")


def subquery_test(writer: Writer, columns: Sequence[Visible], depth: int, query: Sub) -> str:
    """A condition over the columns that asks a subquery."""
    source, own, outer = _source(writer, columns, depth, query)
    pairs = [(a, b) for a in outer for b in own if a.family == b.family]
    if not pairs:
        return f"EXISTS (SELECT 1 {source})"
    left, right = pick(writer.dice, pairs)
    rest = source + _where(writer, own, outer, depth, query)
    if len(pairs) > 1 and writer.chance(10):
        return _several(writer, (left, right), pick(writer.dice, pairs), rest)
    test = _test(writer, left, right, rest, outer)
    if writer.chance(8):
        return f"CASE WHEN {test} THEN TRUE ELSE {predicate(writer.dice, columns, 0)} END"
    if writer.chance(25):
        return f"({test} OR {predicate(writer.dice, columns, 0)})"
    return f"NOT ({test})" if writer.chance(15) else test


def count_test(writer: Writer, depth: int, query: Sub) -> str:
    """A condition over a group that asks a subquery."""
    inner = query(writer, max(0, depth - 1))
    asked = f"(SELECT COUNT(*) FROM ({inner.text}) AS {writer.fresh('e')})"
    return f"COUNT(*) {writer.pick('<', '=', '>=')} {asked}"


def subquery_value(
    writer: Writer, columns: Sequence[Visible], depth: int, query: Sub
) -> tuple[str, Output] | None:
    """A scalar subquery of one row, and what it gives."""
    source, own, outer = _source(writer, columns, depth, query)
    if not own:
        return None
    rest = source + _where(writer, own, outer, depth, query)
    text, family, scale = _aggregate(writer, own, outer)
    return f"(SELECT {text} {rest})", writer.output(family, scale)


def lateral_join(
    writer: Writer, columns: Sequence[Visible], depth: int, query: Sub
) -> tuple[str, list[Visible]]:
    """A lateral subquery to end a FROM clause with, and the columns it adds."""
    source, own, outer = _source(writer, columns, depth, query)
    if not own:
        return "", []
    rest = source + _where(writer, own, outer, depth, query)
    made, parts = [], []
    if writer.chance(40):
        text, family, scale = _aggregate(writer, own, outer)
        made.append(writer.output(family, scale))
        parts.append(f"{text} AS {made[-1].name}")
    else:
        shown = own + outer if writer.chance(20) else own
        for column in [pick(writer.dice, shown) for _ in range(writer.dice.number(1, 2))]:
            made.append(writer.output(column.family, column.scale))
            parts.append(f"{column.text} AS {made[-1].name}")
    distinct = "DISTINCT " if writer.chance(20) else ""
    body = f"(SELECT {distinct}{', '.join(parts)} {rest}) AS {writer.fresh('l')}"
    kind = writer.pick(", LATERAL {}", " CROSS JOIN LATERAL {}", " LEFT JOIN LATERAL {} ON TRUE")
    return kind.format(body), [Visible(o.name, o.family, o.scale) for o in made]


def _source(
    writer: Writer, columns: Sequence[Visible], depth: int, query: Sub
) -> tuple[str, list[Visible], list[Visible]]:
    """FROM, the columns of its own, and those of the outer query that they do not hide."""
    inner = query(writer, max(0, depth - 1))
    alias = writer.fresh("e")
    own = [Visible(f"{alias}.{o.name}", o.family, o.scale) for o in inner.outputs]
    hidden = {o.name.lower() for o in inner.outputs}
    outer = [c for c in columns if "." in c.text or bare(c.text).lower() not in hidden]
    return f"FROM ({inner.text}) AS {alias}", own, outer


def _where(writer: Writer, own: list[Visible], outer: list[Visible], depth: int, query: Sub) -> str:
    pairs = [(a, b) for a in outer for b in own if a.family == b.family]
    where = []
    if pairs and writer.chance(70):
        tie, other = pick(writer.dice, pairs)
        operator = writer.pick("=", "=", "=", "<=>", "<>" if tie.family == BOOLEAN else "<")
        where.append(f"{other.text} {operator} {tie.text}")
        if writer.chance(15):
            where[-1] += f" OR {predicate(writer.dice, outer, 0)}"
    if writer.chance(30):
        where.append(predicate(writer.dice, own))
    if depth > 0 and outer and writer.asks(20):
        # Spark resolves no reference that reaches over a query.
        sight = own if writer.for_spark else own + outer
        where.append(subquery_test(writer, sight, depth - 1, query))
    return f" WHERE {' AND '.join(f'({w})' for w in where)}" if where else ""


def _test(
    writer: Writer, left: Visible, right: Visible, rest: str, outer: Sequence[Visible]
) -> str:
    grouping = ""
    if writer.chance(25):
        counted = next((c.text for c in outer if c.family == INT), "1")
        grouping = f" GROUP BY {right.text} HAVING COUNT(*) {writer.pick('>', '=')} {counted}"
    kinds = _KINDS if left.family in _COUNTED else (*_KINDS, "any")
    match writer.pick(*kinds):
        case "any":
            asked = writer.pick("= ANY", "> ANY", "< ALL", "<> ALL")
            return f"{left.text} {asked} (SELECT {right.text} {rest}{grouping})"
        case "exists":
            negated = "NOT " if writer.chance(40) else ""
            return f"{negated}EXISTS (SELECT 1 {rest}{grouping})"
        case "in":
            negated = "NOT " if writer.chance(40) else ""
            return f"{left.text} {negated}IN (SELECT {right.text} {rest}{grouping})"
        case _:
            if left.family in _COUNTED or writer.chance(30):
                return f"(SELECT COUNT(*) {rest}) {writer.pick('=', '<', '>=')} 1"
            function = writer.pick("MAX", "MIN")
            return f"{left.text} {writer.pick('=', '<', '>=')} (SELECT {function}({right.text}) {rest})"


def _several(
    writer: Writer, first: tuple[Visible, Visible], second: tuple[Visible, Visible], rest: str
) -> str:
    negated = "NOT " if writer.chance(40) else ""
    shown = f"{first[1].text} AS {writer.fresh('i')}, {second[1].text} AS {writer.fresh('i')}"
    return f"({first[0].text}, {second[0].text}) {negated}IN (SELECT {shown} {rest})"


def _aggregate(
    writer: Writer, own: Sequence[Visible], outer: Sequence[Visible]
) -> tuple[str, str, int]:
    column = pick(writer.dice, own)
    if column.family in _COUNTED or writer.chance(40):
        added = [c.text for c in outer if c.family == INT and not writer.for_spark]
        more = f" + {pick(writer.dice, added)}" if added and writer.chance(20) else ""
        return f"COUNT({writer.pick('*', column.text)}){more}", INT, 0
    return f"{writer.pick('MAX', 'MIN')}({column.text})", column.family, column.scale
