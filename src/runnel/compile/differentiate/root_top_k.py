"""ORDER BY ... LIMIT at the root: the old first rows are read from the trace.

The new ones are among the old ones and the change, unless one of the old ones went:

    candidates = first rows + change(N),  or all of new(N);   change = top(candidates) - first rows

Where all rows of N are stored, they are the trace plus the change of N; a row that moves in or out
of the first ones changes its flag: change(all) = change(N), so change(others) = change(N) - change.
A small trace is read as a whole then, without asking what went.
"""

from __future__ import annotations

from dataclasses import replace

from runnel.algebra.nodes import SortKey
from runnel.compile.differentiate.emitter import (
    Emitter,
    Reading,
    consolidated,
    listed,
    names_of,
    repeated,
    unit_rows,
)
from runnel.compile.differentiate.top_k import order_by
from runnel.compile.program import STATE, Keep, W, step_of
from runnel.compile.root import Top
from runnel.compile.typing import is_orderable
from runnel.model.columns import WEIGHT, Column

_BUCKETS = 64


def flagged(root: Top, rows: str) -> str:
    """All stored rows of the input, each with its flag; `rows` gives them with their weights.

    Numbered within buckets first, so that only the first of each are compared in one place.
    """
    assert root.flag is not None
    names = names_of(root.rows.layout.stored)
    end = root.node.offset + (root.node.limit or 0)
    shown = root.rows.layout.visible_when or "TRUE"
    order = listed(map(str, _keys(root)))
    hashed = listed(root.names[k.column] for k in root.node.order)
    units = repeated(rows, names, WEIGHT)
    spread = f"SELECT *, PMOD(HASH({hashed}), {_BUCKETS}) AS __b, {shown} AS __v FROM ({units})"
    first = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY __v, __b ORDER BY {order}) AS __l"
    second = (
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY __v, CASE WHEN __l <= {end} THEN -1 "
        f"ELSE __b END ORDER BY {order}) AS __g FROM ({first} FROM ({spread}))"
    )
    flag = f"__v AND __l <= {end} AND __g > {root.node.offset} AND __g <= {end}"
    items = listed(names, f"{flag} AS {root.flag.name}", f"CAST(1 AS BIGINT) AS {WEIGHT}")
    return f"SELECT {items} FROM ({second})"


def change_root_top(emitter: Emitter, root: Top, rows: str) -> None:
    """Write the steps that follow `rows`: the change of what is stored of the input, netted."""
    emitter.keep(rows)
    names = names_of(root.rows.layout.stored)
    flag = root.flag
    where = f" WHERE {flag.name}" if flag else ""
    stored = f"SELECT {listed(names)}, {WEIGHT} AS {W} FROM {STATE}{where}"
    old = emitter.add(
        "first", "the first rows before", consolidated(stored, names), root.rows.layout.stored,
        keep=_keep(root),
    )  # fmt: skip
    moved = _moved(emitter, root, rows, old)
    names_sql = listed(names)
    if flag is None:
        sql = f"SELECT {names_sql}, {W} AS {WEIGHT} FROM {step_of(moved)}"
        columns: tuple[Column, ...] = root.rows.layout.stored
    else:
        columns = (*root.rows.layout.stored, flag)
        twice = f"SELECT {names_sql}, {W}, EXPLODE(ARRAY(-1, 1)) AS __s FROM {step_of(moved)}"
        parts = (
            f"SELECT {names_sql}, __s > 0 AS {flag.name}, __s * {W} AS {W} FROM ({twice})",
            f"SELECT {names_sql}, FALSE AS {flag.name}, {WEIGHT} AS {W} FROM {step_of(rows)}",
        )
        every = [*names, flag.name]
        netted = consolidated("\nUNION ALL\n".join(parts), every)
        sql = f"SELECT {listed(every)}, {W} AS {WEIGHT} FROM ({netted})"
    emitter.add("output", "first rows and others, out and in", sql, columns)


def _keep(root: Top) -> Keep:
    """Without a flag only the first rows are stored: the state is always small."""
    return Keep.ALWAYS if root.flag is None else Keep.PICKING


def _moved(emitter: Emitter, root: Top, rows: str, old: str) -> str:
    """The change of the first rows."""
    names = names_of(root.rows.layout.stored)
    before = f"SELECT {listed(names, W)} FROM {step_of(old)}"
    sql = _first_changed(root, _candidates(emitter, root, rows, old), before)
    of_small = None
    if root.flag is not None:
        state = f"SELECT {listed(names)}, {WEIGHT} AS {W} FROM {STATE}"
        every = f"{state}\nUNION ALL\nSELECT {listed(names)}, {WEIGHT} AS {W} FROM {step_of(rows)}"
        of_small = _first_changed(root, every, f"{state} WHERE {root.flag.name}")
    return emitter.add(
        "moved", "change of the first rows", sql, root.rows.layout.stored,
        keep=_keep(root), of_small=of_small,
    )  # fmt: skip


def _first_changed(root: Top, candidates: str, before: str) -> str:
    """The first ones of the candidates minus those before."""
    names = names_of(root.rows.layout.stored)
    units = unit_rows(Reading(candidates, is_unit=False), names)
    shown = root.rows.layout.visible_when
    where = f" WHERE {shown}" if shown else ""
    first = f"SELECT {listed(names)} FROM ({units}){where}\n{_order(root)}"
    both = (
        f"SELECT {listed(names)}, CAST(1 AS BIGINT) AS {W} FROM ({first})\nUNION ALL\n"
        f"SELECT {listed(names)}, -{W} AS {W} FROM ({before})"
    )
    return consolidated(both, names)


def _candidates(emitter: Emitter, root: Top, rows: str, old: str) -> str:
    """Rows among which the new first ones are, with their weights."""
    names = names_of(root.rows.layout.stored)
    near = (
        f"SELECT {listed(names, W)} FROM {step_of(old)}\nUNION ALL\n"
        f"SELECT {listed(names)}, {WEIGHT} AS {W} FROM {step_of(rows)}"
    )
    lost = None if root.node.offset else _lost(emitter, root, rows, old)
    if root.flag is not None:
        far = f"SELECT {listed(names)}, {WEIGHT} AS {W} FROM {STATE} WHERE NOT {root.flag.name}"
        return f"{near}\nUNION ALL\n{_far(emitter, root, far, lost)}"
    items = [f"{scalar} AS {column.name}" for column, scalar in root.rows.items]
    far = f"SELECT {listed(items, W)} FROM ({emitter.new(root.node.input).sql})"
    if lost is None:
        return far
    kept = (
        f"SELECT {listed(names, W)} FROM ({near}) WHERE NOT EXISTS (SELECT 1 FROM {step_of(lost)})"
    )
    return f"{kept}\nUNION ALL\n{_far(emitter, root, far, lost)}"


def _lost(emitter: Emitter, root: Top, rows: str, old: str) -> str:
    """First rows that went: others take their place, which only all rows can tell."""
    columns = root.rows.layout.stored
    match = " AND ".join(f"c.{n} <=> f.{n}" for n in names_of(columns))
    sql = (
        f"SELECT {listed(f'c.{n}' for n in names_of(columns))} FROM {step_of(rows)} c "
        f"LEFT SEMI JOIN {step_of(old)} f ON {match} WHERE c.{WEIGHT} < 0"
    )
    return emitter.add("lost", "first rows that went", sql, columns, keep=_keep(root))


def _far(emitter: Emitter, root: Top, sql: str, lost: str | None) -> str:
    columns = root.rows.layout.stored
    step = emitter.add("others", "rows that may come in", sql, columns, only_if=lost)
    return f"SELECT {listed(names_of(columns), W)} FROM {step_of(step)}"


def _order(root: Top) -> str:
    return order_by(replace(root.node, order=_keys(root)))


def _keys(root: Top) -> tuple[SortKey, ...]:
    """The order over stored columns, completed by those that nobody sees.

    Rows that are shown alike may be stored as different ones, of which the trace must always hold
    the same: groups of a set that is written twice, or by keys that are not shown.
    """
    keys = tuple(replace(key, column=root.names[key.column]) for key in root.node.order)
    layout, known = root.rows.layout, {key.column for key in keys}
    hidden = (c for c in layout.stored if c.name not in known and is_orderable(c.type))
    # The key of a state tells its rows apart.
    more = (c.name for c in hidden if not layout.is_state or c.name in layout.key)
    return (*keys, *map(SortKey, more))
