"""Weighted rows: giving them their trace columns, and netting them into rows again."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from runnel.lake.translate import NEGATIVE_TOTAL
from runnel.model.columns import EPOCH, KEY, WEIGHT, Column, Layout, holds_type
from runnel.model.names import quote

_SMALL = 20_000
_BROADCAST = 500_000


def with_trace_columns(frame: DataFrame, layout: Layout, epoch: int) -> DataFrame:
    """`__key, __weight, __epoch` and the stored columns, positive weights as copies of +1."""
    # Texts, not Column objects: each of those costs a call of the JVM.
    types = dict(frame.dtypes)
    stored = [_as_stored(column, types) for column in layout.stored]
    weighted = frame.selectExpr(*stored, f"CAST({WEIGHT} AS BIGINT) AS {WEIGHT}")
    copies = (
        f"CASE WHEN {WEIGHT} > 1 THEN array_repeat(1L, CAST({WEIGHT} AS INT)) "
        f"ELSE array({WEIGHT}) END"
    )
    names = [quote(column.name) for column in layout.stored]
    copied = weighted.selectExpr(
        f"{_key(layout)} AS {KEY}", f"explode({copies}) AS {WEIGHT}", *names
    )
    # An element of an array: a number by itself would be part of the compiled stage, which Spark
    # would compile again, and run cold, for every epoch. By the weight of a copy: that of a row may
    # be a number in the text, by which Spark knows the element.
    number = f"array({epoch}L)[CAST(pmod({WEIGHT}, 1L) AS INT)] AS {EPOCH}"
    return copied.selectExpr(KEY, WEIGHT, number, *names)


def _key(layout: Layout) -> str:
    """A hash that narrows a search; equal rows have equal ones, never the other way round."""
    # Of stored values, after their cast: 1 and 1L have different hashes.
    return f"xxhash64({', '.join(map(quote, layout.key))})" if layout.key else "0L"


def net(
    frame: DataFrame, negatives: DataFrame | None, stored: Sequence[Column], rows: int, touched: int
) -> DataFrame:
    """`__key` and the stored columns, each row as often as its weights sum to.

    `negatives` holds at least the rows with a negative weight (None: there are none), `rows` and
    `touched` estimate both. Rows whose key has no negative weight pass straight through.
    """
    names = _names(stored)
    if negatives is None or rows <= _SMALL:
        return net_at_once(frame, stored, negatives is not None)
    keys = negatives.where(f"{WEIGHT} < 0").select(KEY).distinct()
    if touched <= _BROADCAST:
        keys = sf.broadcast(keys)
    clean = frame.join(keys, KEY, "left_anti").selectExpr(*names)
    return clean.union(_summed(frame.join(keys, KEY, "left_semi"), names))


def net_at_once(frame: DataFrame, stored: Sequence[Column], is_negative: bool) -> DataFrame:
    """Like `net`, all rows summed together, if there may be negative ones at all."""
    names = _names(stored)
    return _summed(frame, names) if is_negative else frame.selectExpr(*names)


def overlay(base: DataFrame, later: DataFrame, stored: Sequence[Column], rows: int) -> DataFrame:
    """Like `net`, for a base in which no row is twice: what came later takes away or adds.

    The base is read once, and all its rows have different `__key`s: a row that is taken away must
    be there, so the key alone finds it. `rows` estimates how many are taken away.
    """
    kept, added = overlaid(base, later, stored, rows)
    return kept.union(added)


def overlaid(
    base: DataFrame, later: DataFrame, stored: Sequence[Column], rows: int
) -> tuple[DataFrame, DataFrame]:
    """The two parts of an overlay: what is left of the base, and what is added to it."""
    names = _names(stored)
    # The join asks for this on one side only, and the two uses of the sums would not be one.
    change = _totals(later.where(f"{KEY} IS NOT NULL"), names)
    gone = change.where(f"{WEIGHT} < 0").selectExpr(f"{KEY} AS __gone")
    kept = base.selectExpr(*names).join(*_looked_up(gone, rows), "left_anti")
    return kept, _copied(change.where(f"{WEIGHT} > 0"), names)


def newest(
    frame: DataFrame, negatives: DataFrame, stored: Sequence[Column], key: Sequence[str], rows: int
) -> DataFrame:
    """Like `net`, for a state: of each key one row is there, until an epoch takes it away.

    Nothing is summed and nothing is read twice. `rows` estimates those of `negatives`.
    """
    gone = negatives.where(f"{WEIGHT} < 0").selectExpr(
        f"{KEY} AS __gone",
        f"{EPOCH} AS __gone_at",
        *(f"{quote(name)} AS __gone_{n}" for n, name in enumerate(key)),
    )
    same = [f"{EPOCH} < __gone_at"]
    same += [same_value(quote(k), f"__gone_{n}") for n, k in enumerate(key)]
    present = frame.where(f"{WEIGHT} > 0")
    left = present.join(*_looked_up(gone, rows, same), "left_anti")
    return left.selectExpr(*_names(stored))


def _looked_up(
    gone: DataFrame, rows: int, also: Sequence[str] = ()
) -> tuple[DataFrame, SparkColumn]:
    """The other side of a join that looks for `__gone`, and its condition."""
    if rows > _BROADCAST:
        return gone, sf.expr(" AND ".join([f"{KEY} = __gone", *also]))
    same = same_key(KEY, "__gone", rows)
    return sf.broadcast(gone), sf.expr(" AND ".join([same, *also]))


def same_key(left: str, right: str, rows: int) -> str:
    """That two hashes are equal, where about `rows` rows are looked up by many that are in order.

    Spark keeps keys of so few bits in a plain array. Files are sorted by `__key`, so each look-up
    is next to the one before; by the whole hash each would miss the processor's cache.
    """
    bits = 64 - min(max(rows.bit_length(), 10), 24)
    near = f"shiftright({left}, {bits}) = shiftright({right}, {bits})"
    # Not as an equality: that would be a second key of the join, and such keys are slow.
    return f"{near} AND coalesce({left} = {right}, FALSE)"


def same_value(left: str, right: str) -> str:
    """Like `<=>`, but no key of the join: one of a single number is looked up far quicker."""
    return f"coalesce({left} = {right}, {left} IS NULL AND {right} IS NULL)"


def is_groupable(stored: Sequence[Column]) -> bool:
    """Whether Spark can sum the weights of equal rows; VARIANT has no equality."""
    return not any(holds_type(column.type, "variant") for column in stored)


def copies_sql(total: str) -> str:
    """An array with one element for each copy of a row; a negative total stops the query."""
    return (
        f"array_repeat(1, CASE WHEN {total} < 0 THEN raise_error('{NEGATIVE_TOTAL}') "
        f"ELSE CAST({total} AS INT) END)"
    )


def _names(stored: Sequence[Column]) -> list[str]:
    """`__key` and the stored columns as texts: each Column object would cost calls of the JVM."""
    return [KEY, *(quote(column.name) for column in stored)]


def _summed(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    return _copied(_totals(frame, names), names)


def _totals(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    return frame.groupBy(*names).agg(sf.expr(f"sum({WEIGHT}) AS {WEIGHT}")).where(f"{WEIGHT} <> 0")


def _copied(total: DataFrame, names: Sequence[str]) -> DataFrame:
    copied = total.selectExpr(*names, f"explode({copies_sql(WEIGHT)}) AS __copy")
    return copied.selectExpr(*names)


def _as_stored(column: Column, types: dict[str, str]) -> str:
    name = quote(column.name)
    same = types.get(column.name) == column.type
    return name if same else f"CAST({name} AS {column.type}) AS {name}"
