"""An aggregate at the root keeps a state trace:

    K = groups in change(N);  old state of K is read from the trace;  new = old + grouped change

MIN and MAX: a delete that hits the extreme recomputes that group. Other values: all touched groups.
"""

from __future__ import annotations

from runnel.algebra.nodes import Aggregate
from runnel.algebra.scalar import Scalar
from runnel.compile.differentiate.aggregate import group_state, signed_rows
from runnel.compile.differentiate.emitter import Emitter, Reading, listed
from runnel.compile.differentiate.state import (
    OVERFLOW,
    Kind,
    State,
    StateColumn,
    additive_sql,
    is_wide,
    value_sql,
)
from runnel.compile.program import STATE, Keep, W, hint, step_of
from runnel.model.columns import EPOCH, WEIGHT, Column


def change_root_aggregate(
    emitter: Emitter,
    node: Aggregate,
    state: State,
    stored: dict[str, str],
    outputs: tuple[tuple[Column, Scalar], ...],
) -> str | None:
    """Write the steps; returns the name of the first one whose emptiness means there is no change.

    `stored` maps key and state columns to the trace's; `outputs` are all stored columns.
    """
    change = emitter.change(node.input)
    if change is None:
        return None
    delta = _delta(emitter, node, state, change)
    old = _old_state(emitter, node, state, stored, delta)
    hits = _hits(emitter, node, state, delta, old)
    fresh = _fresh(emitter, node, state, hits) if hits else None
    merged = _merged(node, state, delta, old, fresh)
    items = [f"{scalar} AS {column.name}" for column, scalar in outputs]
    sql = signed_rows(node, state, merged, items, WEIGHT)
    emitter.add("output", "old state out, new state in", sql, [c for c, _ in outputs])
    return delta


def _delta(emitter: Emitter, node: Aggregate, state: State, change: str) -> str:
    """The change grouped: what is added to counts and sums, and the extremes that came and went."""
    items = [*node.keys]
    columns = list(node.key_columns)
    for column in state.additive:
        items.append(f"{additive_sql(column, W)} AS {column.column.name}")
        columns.append(column.column)
    for column in state.values:
        if column.kind is Kind.EXTREME:
            name = column.column.name
            items.append(f"{value_sql(column, present=f'{W} > 0')} AS {name}")
            items.append(f"{value_sql(column, present=f'{W} < 0')} AS {name}_gone")
            columns += [column.column, Column(f"{name}_gone", column.column.type)]
    group = f"GROUP BY {listed(node.keys)}" if node.keys else "HAVING COUNT(*) > 0"
    sql = f"SELECT {listed(items)} FROM {step_of(change)}\n{group}"
    keep = Keep.ALWAYS if state.values else Keep.PICKING
    return emitter.add("delta", "the change, grouped", sql, columns, keep=keep)


def _old_state(
    emitter: Emitter, node: Aggregate, state: State, stored: dict[str, str], delta: str
) -> str:
    """The trace's rows of the touched groups; the newest positive one of each is its state.

    Counts and sums may be read of all groups: those that nothing is added to give no output.
    """
    names = [*node.keys, *(c.column.name for c in state.columns)]
    items = [f"t.{stored[n]} AS {n}" for n in names]
    match = " AND ".join(f"t.{stored[k]} <=> d.{k}" for k in node.keys) or "TRUE"
    selected = listed(items, f"t.{WEIGHT} AS {W}", f"t.{EPOCH} AS __e")
    sql = (
        f"SELECT {hint('d', delta)} {selected}\n"
        f"FROM {STATE} t LEFT SEMI JOIN {step_of(delta)} d ON {match}"
    )
    columns = [*node.key_columns, *(c.column for c in state.columns)]
    whole = None if state.values else f"SELECT {selected} FROM {STATE} t"
    purpose = "stored state of the touched groups"
    return emitter.add("before", purpose, sql, columns, of_small=whole)


def _hits(emitter: Emitter, node: Aggregate, state: State, delta: str, old: str) -> str | None:
    """The groups whose values cannot be derived from state and change."""
    if not state.values:
        return None
    if any(c.kind is Kind.VALUE for c in state.values):
        return delta
    emitter.keep(old)
    tests = []
    for column in state.values:
        name, sign = column.column.name, "<=" if _function(column) == "min" else ">="
        # No stored value: what came and went in one change may be the same row, so look.
        lost = f"b.{name} IS NULL OR d.{name}_gone {sign} b.{name}"
        tests.append(f"(d.{name}_gone IS NOT NULL AND ({lost}))")
    match = " AND ".join(f"b.{k} <=> d.{k}" for k in node.keys) or "TRUE"
    keys = listed(f"d.{k}" for k in node.keys) or "1 AS one"
    # Superseded states in the trace may add a group that need not be here, never miss one.
    sql = (
        f"SELECT DISTINCT {keys} FROM {step_of(delta)} d "
        f"LEFT JOIN {step_of(old)} b ON {match} AND b.{W} > 0\nWHERE {' OR '.join(tests)}"
    )
    return emitter.add(
        "hits", "groups that lost their extreme", sql, node.key_columns, keep=Keep.ALWAYS
    )


def _fresh(emitter: Emitter, node: Aggregate, state: State, hits: str) -> str:
    """The values of the hit groups, computed from the new contents restricted to them."""
    reading = emitter.new(node.input)
    if node.keys:
        match = " AND ".join(f"i.{k} <=> h.{k}" for k in node.keys)
        sql = (
            f"SELECT {hint('h', hits)} i.* FROM ({reading.sql}) i "
            f"LEFT SEMI JOIN {step_of(hits)} h ON {match}"
        )
        reading = Reading(sql, reading.is_unit)
    sql = group_state(node, state, reading)
    columns = [*node.key_columns, *(c.column for c in state.columns)]
    return emitter.add("fresh", "values of those groups, recomputed", sql, columns, only_if=hits)


def _merged(node: Aggregate, state: State, delta: str, old: str, fresh: str | None) -> str:
    """One row a group with the state before (b_*) and after (f_*)."""
    parts = [_side(node, state, delta, "1"), _side(node, state, old, "0")]
    if fresh is not None:
        parts.append(_side(node, state, fresh, "2"))
    items = [*node.keys]
    for column in state.columns:
        before, after = _additive_ends(column) if column.is_additive else _value_ends(column)
        items += [f"{before} AS b_{column.column.name}", f"{after} AS f_{column.column.name}"]
    group = f"\nGROUP BY {listed(node.keys)}" if node.keys else ""
    rows = "\nUNION ALL\n".join(parts)
    return f"SELECT {listed(items)} FROM ({rows}){group}"


def _side(node: Aggregate, state: State, step: str, side: str) -> str:
    """Bring a step to common columns. `side`: 0 for stored rows, 1 for the change, 2 for fresh."""
    items = [*node.keys, f"{side} AS side"]
    stored = side == "0"
    items += ["__e" if stored else "CAST(NULL AS BIGINT) AS __e"]
    items += [W if stored else f"CAST(1 AS BIGINT) AS {W}"]
    for column in state.columns:
        missing = side == "1" and column.kind is Kind.VALUE
        name = column.column.name
        items.append(f"CAST(NULL AS {column.column.type}) AS {name}" if missing else name)
    return f"SELECT {listed(items)} FROM {step_of(step)}"


def _additive_ends(column: StateColumn) -> tuple[str, str]:
    """Counts and sums are linear: superseded rows of the trace cancel."""
    name, type_ = column.column.name, column.column.type
    signed = f"CASE WHEN {W} > 0 THEN {name} ELSE -{name} END"
    before = f"SUM(CASE WHEN side = 0 THEN {signed} END)"
    after = f"SUM(CASE WHEN side < 2 THEN {signed} END)"
    if column.kind is Kind.SUM and is_wide(column):
        return _wide_ends(column, before, after)
    return (
        f"CAST(COALESCE({before}, 0) AS {type_})",
        f"CAST(COALESCE({after}, 0) AS {type_})",
    )


def _wide_ends(column: StateColumn, before: str, after: str) -> tuple[str, str]:
    """A stored NULL is a sum that did not fit: what comes of it cannot be told from a change."""
    name, type_ = column.column.name, column.column.type
    is_lost = f"SUM(CASE WHEN side = 0 AND {name} IS NULL THEN {W} ELSE 0 END) > 0"
    stop = f"RAISE_ERROR('{OVERFLOW}')"

    def end(total: str, rows: str, lost: str) -> str:
        # Without ANSI mode a total that does not fit is NULL, and so is one of nothing.
        missing = f"CASE WHEN COUNT(CASE WHEN {rows} THEN {name} END) > 0 THEN {stop} ELSE 0 END"
        known = f"CAST(COALESCE({total}, {missing}) AS {type_})"
        return f"CASE WHEN {is_lost} THEN {lost} ELSE {known} END"

    touched = f"CASE WHEN MAX(side) > 0 THEN {stop} END"
    return end(before, "side = 0", "NULL"), end(after, "side < 2", touched)


def _value_ends(column: StateColumn) -> tuple[str, str]:
    name = column.column.name
    is_stored = f"side = 0 AND {W} > 0"
    total = f"SUM(CASE WHEN side = 0 THEN {W} END)"
    newest = f"MAX_BY(CASE WHEN {is_stored} THEN {name} END, CASE WHEN {is_stored} THEN __e END)"
    before = f"CASE WHEN {total} > 0 THEN {newest} END"
    recomputed = f"MAX(CASE WHEN side = 2 THEN {name} END)"
    if column.kind is Kind.VALUE:
        return before, recomputed
    pick = "LEAST" if _function(column) == "min" else "GREATEST"
    came = f"MAX(CASE WHEN side = 1 THEN {name} END)"
    return before, f"CASE WHEN MAX(side) = 2 THEN {recomputed} ELSE {pick}({before}, {came}) END"


def _function(column: StateColumn) -> str:
    assert column.call is not None
    return column.call.function
