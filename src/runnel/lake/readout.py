"""The readout: a trace's rows as the user sees them, as a plan and as SQL text."""

from __future__ import annotations

from pyspark.sql import DataFrame

from runnel.lake.weights import copies_sql, is_groupable, same_key, same_value
from runnel.model.columns import EPOCH, KEY, WEIGHT, Layout
from runnel.model.names import quote


def visible(rows: DataFrame, layout: Layout) -> DataFrame:
    """The user's columns over netted stored rows."""
    if layout.visible_when is not None:
        rows = rows.where(layout.visible_when)
    return rows.selectExpr(*(f"{sql} AS {quote(column.name)}" for column, sql in layout.visible))


def sql(
    path: str, layout: Layout, rows: int, unique_upto: int | None, version: int | None = None
) -> str:
    """A query over the newest version of the trace at `path`, or over a given one.

    `rows` estimates how many there are; more or fewer only cost time. Up to epoch `unique_upto` no
    row is there twice; rows of those epochs only ever vanish together.
    """
    shown = ", ".join(f"{text} AS {quote(column.name)}" for column, text in layout.visible)
    where = f" WHERE {layout.visible_when}" if layout.visible_when is not None else ""
    table = f"delta.{quote(path)}" + ("" if version is None else f" VERSION AS OF {version}")
    # The view outlives what it is made for: compaction lets so many rows be superseded.
    few = rows // 100
    if layout.is_state:
        netted = _newest(table, layout, few)
    elif unique_upto is None or not is_groupable(layout.stored):
        netted = _netted(table, layout)
    else:
        netted = _overlaid(table, layout, few, unique_upto)
    return f"SELECT {shown} FROM ({netted}){where}"


def _netted(table: str, layout: Layout) -> str:
    names = ", ".join(quote(column.name) for column in layout.stored)
    if not is_groupable(layout.stored):
        return f"SELECT {names} FROM {table} LATERAL VIEW explode({copies_sql(WEIGHT)}) AS __copy"
    touched = f"(SELECT DISTINCT {KEY} FROM {table} WHERE {WEIGHT} < 0)"
    summed = (
        f"SELECT {names}, sum({WEIGHT}) AS {WEIGHT} FROM {table} "
        f"LEFT SEMI JOIN {touched} USING ({KEY}) GROUP BY {names} HAVING sum({WEIGHT}) <> 0"
    )
    return (
        f"SELECT {names} FROM {table} LEFT ANTI JOIN {touched} USING ({KEY}) UNION ALL "
        f"SELECT {names} FROM ({summed}) LATERAL VIEW explode({copies_sql(WEIGHT)}) AS __copy"
    )


def _newest(table: str, layout: Layout, few: int) -> str:
    """See `weights.newest`."""
    names = ", ".join(f"b.{quote(column.name)}" for column in layout.stored)
    same = [same_key(f"b.{KEY}", f"g.{KEY}", few), f"b.{EPOCH} < g.{EPOCH}"]
    same += [same_value(f"b.{quote(k)}", f"g.{quote(k)}") for k in layout.key]
    gone = f"(SELECT * FROM {table} WHERE {WEIGHT} < 0)"
    return (
        f"SELECT {names} FROM {table} b LEFT ANTI JOIN {gone} g ON {' AND '.join(same)} "
        f"WHERE b.{WEIGHT} > 0"
    )


def _overlaid(table: str, layout: Layout, few: int, since: int) -> str:
    """See `weights.overlay`."""
    names = ", ".join(quote(column.name) for column in layout.stored)
    change = (
        f"SELECT {KEY}, {names}, sum({WEIGHT}) AS {WEIGHT} FROM {table} WHERE {EPOCH} > {since} "
        f"AND {KEY} IS NOT NULL GROUP BY {KEY}, {names} HAVING sum({WEIGHT}) <> 0"
    )
    same = same_key(f"b.{KEY}", f"g.{KEY}", few)
    return (
        f"SELECT {names} FROM {table} b LEFT ANTI JOIN (SELECT {KEY} FROM ({change}) "
        f"WHERE {WEIGHT} < 0) g ON {same} WHERE {EPOCH} <= {since} UNION ALL "
        f"SELECT {names} FROM (SELECT * FROM ({change}) WHERE {WEIGHT} > 0) "
        f"LATERAL VIEW explode({copies_sql(WEIGHT)}) AS __copy"
    )
