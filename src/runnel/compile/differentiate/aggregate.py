"""An aggregate inside a tree: K = group keys in change(N), and then

    change(agg N) = agg(new(N) restricted to K) - agg(old(N) restricted to K)

where old = new - change, so that the input is read once and both ends come out of one grouping.
"""

from __future__ import annotations

from runnel.algebra.nodes import Aggregate
from runnel.compile.differentiate.both_ends import both_ends, netted_ends
from runnel.compile.differentiate.emitter import (
    Emitter,
    Reading,
    consolidated,
    listed,
    unit_rows,
)
from runnel.compile.differentiate.opaque import (
    both_evaluated,
    inputs_of,
    refuse_ungroupable,
)
from runnel.compile.differentiate.state import (
    State,
    StateColumn,
    additive_sql,
    is_inexact,
    state_of,
    value_sql,
)
from runnel.compile.program import W
from runnel.errors import NotDifferentiable


def new_aggregate(emitter: Emitter, node: Aggregate) -> Reading:
    state = state_of(node)
    grouped = group_state(node, state, emitter.new(node.input))
    items = [
        *node.keys,
        *(f"{state.readout[c.output.name]} AS {c.output.name}" for c in node.calls),
    ]
    sql = f"SELECT {listed(items, f'CAST(1 AS BIGINT) AS {W}')} FROM ({grouped})"
    return Reading(sql, is_unit=True)


def group_state(node: Aggregate, state: State, reading: Reading) -> str:
    """Keys and state of every group present in the reading."""
    if reading.is_unit:
        source, weight = f"({reading.sql})", None
    elif state.is_opaque:
        refuse_ungroupable(node)
        source, weight = f"({unit_rows(reading, inputs_of(node))})", None
    elif state.values:
        # MIN, MAX and the like ask which rows are there: sum the weights first.
        source = f"({consolidated(reading.sql, inputs_of(node), '<> 0')})"
        weight = W
    else:
        source, weight = f"({reading.sql})", W
    items = [*node.keys]
    for column in state.columns:
        if column.is_additive:
            text = additive_sql(column, weight)
        else:
            text = value_sql(column, weight=weight)
        items.append(f"{text} AS {column.column.name}")
    sql = f"SELECT {listed(items)} FROM {source}"
    if node.is_global:
        return sql
    group = f" GROUP BY {listed(node.keys)}" if node.keys else ""
    return f"SELECT * FROM ({sql}{group}) WHERE {state.rows} > 0"


def change_aggregate(emitter: Emitter, node: Aggregate) -> str | None:
    change = emitter.change(node.input)
    if change is None:
        return None
    _refuse_inexact(node)
    emitter.keep(change)
    state = state_of(node)
    touched = ("keys", "touched groups")
    both = both_ends(emitter, node.input, inputs_of(node), node.keys, touched)
    sql = both_evaluated(node, state, both) if state.is_opaque else _old_and_new(node, state, both)
    return emitter.add("groups", "touched groups, before and after", sql, node.columns)


def _old_and_new(node: Aggregate, state: State, both: str) -> str:
    if state.values:
        both = netted_ends(both, inputs_of(node))
    items = [*node.keys]
    for column in state.columns:
        for prefix, weight in (("b", "__o"), ("f", "__n")):
            items.append(f"{_end(column, weight)} AS {prefix}_{column.column.name}")
    group = f"\nGROUP BY {listed(node.keys)}" if node.keys else ""
    merged = f"SELECT {listed(items)} FROM ({both}){group}"
    return signed_rows(node, state, merged, _call_items(node, state), W)


def signed_rows(node: Aggregate, state: State, merged: str, outputs: list[str], weight: str) -> str:
    """Two rows a group, -before and +after, from columns b_* and f_*; equal ones are skipped."""
    names = [c.column.name for c in state.columns]
    picked = [f"CASE WHEN __s < 0 THEN b_{n} ELSE f_{n} END AS {n}" for n in names]
    same = " AND ".join(f"b_{n} <=> f_{n}" for n in names)
    rows = state.rows
    alive = "TRUE" if node.is_global else f"CASE WHEN __s < 0 THEN b_{rows} ELSE f_{rows} END > 0"
    doubled = f"SELECT *, EXPLODE(ARRAY(-1, 1)) AS __s FROM ({merged}) WHERE NOT ({same})"
    chosen = f"SELECT {listed(node.keys, *picked, '__s')} FROM ({doubled}) WHERE {alive}"
    return f"SELECT {listed(outputs, f'CAST(__s AS BIGINT) AS {weight}')} FROM ({chosen})"


def _call_items(node: Aggregate, state: State) -> list[str]:
    calls = (f"{state.readout[c.output.name]} AS {c.output.name}" for c in node.calls)
    return [*node.keys, *calls]


def _end(column: StateColumn, weight: str) -> str:
    if column.is_additive:
        return additive_sql(column, weight)
    return value_sql(column, present=f"{weight} > 0", weight=weight)


def _refuse_inexact(node: Aggregate) -> None:
    for call in node.calls:
        if is_inexact(call):
            exact = "use percentile(), which is exact, or " * ("percentile" in call.function)
            raise NotDifferentiable(
                f"{call.function.upper()} of "
                f"{call.arguments[0].type if call.arguments else 'a constant'} "
                "below another operator",
                detail="its value depends on the order of the rows, so the old one cannot be "
                "computed again exactly",
                hint=f"{exact}make the aggregate its own stream table",
            )
