"""UNNEST(array) in FROM, which Spark has not, as the LATERAL explode(array) that it stands for.

FROM t, UNNEST(xs) AS u(x)          FROM t, LATERAL EXPLODE(xs) AS u(x)
FROM UNNEST(xs, ys) AS u(x, y)      FROM INLINE(ARRAYS_ZIP(xs, ys)) AS u(x, y)
"""

from __future__ import annotations

from sqlglot import exp

from runnel.compile.dialect import SparkSql
from runnel.compile.parse import parse
from runnel.compile.places import at, point
from runnel.errors import InvalidQuery, UserError

_PLAIN = frozenset({"expressions", "alias"})


def without_unnest(query: str) -> str:
    """The query without UNNEST; the same text when it has none."""
    tree = parse(query)
    found = [node for node in tree.find_all(exp.Unnest) if _is_item(node)]
    try:
        for node in reversed(found):
            with at(node):
                node.replace(_item(node))
    except UserError as error:
        point(error, query)
        raise
    return tree.sql(SparkSql) if found else query


def _is_item(node: exp.Expr) -> bool:
    return isinstance(node.parent, (exp.From, exp.Join))


def _item(node: exp.Unnest) -> exp.Expr:
    if any(value for name, value in node.args.items() if name not in _PLAIN):
        raise InvalidQuery(
            "UNNEST with positions",
            detail="Spark has no UNNEST, and its posexplode() counts from 0",
            hint="write LATERAL posexplode(array) AS p(position, value)",
        )
    arguments = [a.copy() for a in node.expressions]
    alias = node.args.get("alias")
    function: exp.Expr = exp.Explode(this=arguments[0])
    if len(arguments) > 1:
        function = exp.Inline(this=exp.Anonymous(this="ARRAYS_ZIP", expressions=arguments))
    made: type[exp.Expr] = exp.Table if isinstance(node.parent, exp.From) else exp.Lateral
    return made(this=function, alias=alias.copy() if alias is not None else None)
