"""Aggregate functions that only Spark can evaluate, over rows with weights.

    agg(N) = agg of every row by itself, copies repeated, for each end of the window

so the touched groups are evaluated twice in one grouping, the end being one more key.
"""

from __future__ import annotations

from runnel.algebra.nodes import Aggregate
from runnel.compile.differentiate.both_ends import netted_ends
from runnel.compile.differentiate.emitter import consolidated, listed, names_of, repeated
from runnel.compile.differentiate.state import State, additive_sql, value_sql
from runnel.compile.program import W
from runnel.compile.typing import is_groupable
from runnel.errors import NotDifferentiable


def inputs_of(node: Aggregate) -> list[str]:
    """The input columns that the aggregate reads."""
    used = set(node.keys) | {a.name for call in node.calls for a in call.arguments}
    return [n for n in names_of(node.input.columns) if n in used]


def refuse_ungroupable(node: Aggregate) -> None:
    """Weights can only be summed over values that can be grouped."""
    names = inputs_of(node)
    for column in node.input.columns:
        if column.name in names and not is_groupable(column.type):
            raise NotDifferentiable(
                f"an aggregate of {column.type} below another operator or over a stream table",
                hint="cast the value to STRING",
            )


def both_evaluated(node: Aggregate, state: State, both: str) -> str:
    """The groups before, with weight -1, and after, with +1; netted."""
    refuse_ungroupable(node)
    inputs = inputs_of(node)
    weight = f"CASE WHEN __s < 0 THEN __o ELSE __n END AS {W}"
    sides = f"SELECT *, EXPLODE(ARRAY(-1, 1)) AS __s FROM ({netted_ends(both, inputs)})"
    weighted = f"SELECT {listed(inputs, '__s', weight)} FROM ({sides})"
    rows = repeated(f"SELECT * FROM ({weighted}) WHERE {W} > 0", [*inputs, "__s"])
    return consolidated(_evaluated(node, state, rows), names_of(node.columns))


def _evaluated(node: Aggregate, state: State, rows: str) -> str:
    values = [
        f"{additive_sql(c, None) if c.is_additive else value_sql(c)} AS {c.column.name}"
        for c in state.columns
    ]
    shown = [f"{state.readout[c.output.name]} AS {c.output.name}" for c in node.calls]
    if not node.is_global:
        keys = [*node.keys, "__s"]
        grouped = f"SELECT {listed(keys, *values)} FROM ({rows}) GROUP BY {listed(keys)}"
        items = listed(node.keys, *shown, f"CAST(__s AS BIGINT) AS {W}")
        return f"SELECT {items} FROM ({grouped})"
    # Its one group is there without rows too, at either end.
    ends = [
        f"SELECT {listed(shown, f'CAST({sign} AS BIGINT) AS {W}')} FROM "
        f"(SELECT {listed(values)} FROM ({rows}) WHERE __s = {sign})"
        for sign in (-1, 1)
    ]
    return "\nUNION ALL\n".join(ends)
