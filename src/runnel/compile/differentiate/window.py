"""A window function: K = partition keys in change(N), and then

    change(window N) = window(new(N) restricted to K) - window(old(N) restricted to K)

where old = new - change, so that the input is read once; both ends are partitions of one window.
"""

from __future__ import annotations

from runnel.algebra.nodes import Window
from runnel.compile.differentiate.both_ends import both_ends, netted_ends
from runnel.compile.differentiate.emitter import (
    Emitter,
    Reading,
    consolidated,
    listed,
    names_of,
    unit_rows,
)
from runnel.compile.program import W

_SIDE = "__s"


def new_window(emitter: Emitter, node: Window) -> Reading:
    names = names_of(node.input.columns)
    rows = unit_rows(emitter.new(node.input), names)
    calls = [f"{call.over(node.partition)} AS {call.output.name}" for call in node.calls]
    sql = f"SELECT {listed(names, *calls, f'CAST(1 AS BIGINT) AS {W}')} FROM ({rows})"
    return Reading(sql, is_unit=True)


def change_window(emitter: Emitter, node: Window) -> str | None:
    change = emitter.change(node.input)
    if change is None:
        return None
    emitter.keep(change)
    names = names_of(node.input.columns)
    partition = (_SIDE, *node.partition)
    touched = ("partitions", "touched partitions")
    both = both_ends(emitter, node.input, names, node.partition, touched)
    sides = _sides(netted_ends(both, names), names)
    calls = [f"{call.over(partition)} AS {call.output.name}" for call in node.calls]
    evaluated = f"SELECT {listed(names, *calls, f'CAST({_SIDE} AS BIGINT) AS {W}')} FROM ({sides})"
    # Most rows of a touched partition stay as they are: they end here.
    netted = consolidated(evaluated, names_of(node.columns))
    return emitter.add("window", "touched partitions, before and after", netted, node.columns)


def _sides(both: str, names: list[str]) -> str:
    """A row for each copy: side -1 for those that were there, 1 for those that are there."""
    copies = (
        "EXPLODE(CONCAT(ARRAY_REPEAT(-1, CAST(__o AS INT)), ARRAY_REPEAT(1, CAST(__n AS INT))))"
    )
    return f"SELECT {listed(names, f'{copies} AS {_SIDE}')} FROM ({both})"
