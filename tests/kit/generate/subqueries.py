"""Random subqueries in conditions: EXISTS, IN and scalar ones, tied to the outer query or not."""

from __future__ import annotations

from collections.abc import Sequence

from kit.generate.dice import pick
from kit.generate.from_clause import Sub
from kit.generate.scalars import BOOLEAN, DECIMAL, DOUBLE, Visible, predicate
from kit.generate.writer import Writer, bare


def subquery_test(writer: Writer, columns: Sequence[Visible], depth: int, query: Sub) -> str:
    """A condition over the columns that asks a subquery."""
    inner = query(writer, max(0, depth - 1))
    alias = writer.fresh("e")
    own = [Visible(f"{alias}.{o.name}", o.family, o.scale) for o in inner.outputs]
    source = f"FROM ({inner.text}) AS {alias}"
    hidden = {o.name.lower() for o in inner.outputs}
    outer = [c for c in columns if "." in c.text or bare(c.text).lower() not in hidden]
    pairs = [(a, b) for a in outer for b in own if a.family == b.family]
    if not pairs:
        return f"EXISTS (SELECT 1 {source})"
    left, right = pick(writer.dice, pairs)
    tie, other = pick(writer.dice, pairs)
    where = [f"{other.text} = {tie.text}"] if writer.chance(60) else []
    if writer.chance(30):
        where.append(predicate(writer.dice, own))
    condition = f" WHERE {' AND '.join(f'({w})' for w in where)}" if where else ""
    test = _test(writer, left, right, f"{source}{condition}")
    if writer.chance(25):
        return f"({test} OR {predicate(writer.dice, columns, 0)})"
    return f"NOT ({test})" if writer.chance(15) else test


def _test(writer: Writer, left: Visible, right: Visible, rest: str) -> str:
    match writer.pick("exists", "in", "scalar"):
        case "exists":
            negated = "NOT " if writer.chance(40) else ""
            return f"{negated}EXISTS (SELECT 1 {rest})"
        case "in":
            negated = "NOT " if writer.chance(40) else ""
            return f"{left.text} {negated}IN (SELECT {right.text} {rest})"
        case _:
            if left.family in (BOOLEAN, DOUBLE, DECIMAL) or writer.chance(30):
                return f"(SELECT COUNT(*) {rest}) {writer.pick('=', '<', '>=')} 1"
            function = writer.pick("MAX", "MIN")
            return f"{left.text} {writer.pick('=', '<', '>=')} (SELECT {function}({right.text}) {rest})"
