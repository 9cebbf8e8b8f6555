"""LEFT JOIN LATERAL without a condition is written with one: ON TRUE.

    FROM t LEFT JOIN LATERAL explode(xs) AS e(x)        loses rows without elements in Spark 4.2

Its optimizer makes an inner join of it where the function reads nothing but the row; with a
condition it does not. The parser gives every such join the condition TRUE.
"""

from __future__ import annotations

from sqlglot import exp


def write_left_laterals(tree: exp.Query) -> exp.Query:
    """A copy, which is written with the condition; the same object where there is no such join."""
    return tree.copy() if any(map(_is_unconditional, tree.find_all(exp.Join))) else tree


def _is_unconditional(join: exp.Join) -> bool:
    is_left = (join.side or "").upper() == "LEFT" and isinstance(join.this, exp.Lateral)
    return is_left and join.args.get("on") == exp.true()
