"""ORDER BY ... LIMIT inside a tree: K is everything, so both ends are evaluated:

change(top N) = top(new(N)) - top(old(N))
"""

from __future__ import annotations

from runnel.algebra.nodes import TopK
from runnel.compile.differentiate.emitter import Emitter, Reading, listed, names_of, unit_rows
from runnel.compile.program import W


def new_top_k(emitter: Emitter, node: TopK) -> Reading:
    return top(node, emitter.new(node.input))


def change_top_k(emitter: Emitter, node: TopK) -> str | None:
    if emitter.change(node.input) is None:
        return None
    names = names_of(node.columns)
    after, before = top(node, emitter.new(node.input)), top(node, emitter.old(node.input))
    sql = (
        f"SELECT {listed(names, W)} FROM ({after.sql})\nUNION ALL\n"
        f"SELECT {listed(names, f'-{W} AS {W}')} FROM ({before.sql})"
    )
    return emitter.add("top", "the first rows, after and before", sql, node.columns)


def top(node: TopK, rows: Reading) -> Reading:
    """The first rows of a reading of the input."""
    names = names_of(node.columns)
    sql = f"SELECT {listed(names)} FROM ({unit_rows(rows, names)})\n{order_by(node)}"
    sql = f"SELECT {listed(names, f'CAST(1 AS BIGINT) AS {W}')} FROM ({sql})"
    return Reading(sql, is_unit=True)


def order_by(node: TopK) -> str:
    """ORDER BY, LIMIT and OFFSET as text."""
    text = f"ORDER BY {listed(map(str, node.order))}"
    if node.limit is not None:
        text += f" LIMIT {node.limit}"
    return f"{text} OFFSET {node.offset}" if node.offset else text
