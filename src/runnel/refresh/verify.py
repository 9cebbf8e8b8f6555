"""VERIFY: the query evaluated by plain Spark at the pinned versions, compared both ways as bags."""

from __future__ import annotations

from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from runnel.catalog import StreamTable, Verification
from runnel.errors import RunnelError, SourceError, UserError, never_filled
from runnel.lake.frames import Column as Expression
from runnel.lake.frames import DataFrame, F
from runnel.lake.session import translate
from runnel.model.columns import Column
from runnel.model.frontier import Frontier
from runnel.model.results import VerifyResult
from runnel.model.tabular import plain
from runnel.refresh.bind import Binding, binding
from runnel.refresh.cycle_rows import member_rows
from runnel.refresh.full import expected_rows
from runnel.refresh.inexact import inexact_places
from runnel.refresh.newest import read_newest
from runnel.refresh.whole_rows import whole_rows
from runnel.refresh.workspace import Workspace

_SAMPLE = 10
_SIGN = "__sign"
_MOST_FLOAT_ROWS = 100_000
_TOLERANCE = 1e-9
# What is known of a correlated subquery's outer columns breaks Spark's plan of a union with it.
_SETTINGS = {"spark.sql.constraintPropagation.enabled": "false"}


def verify_table(workspace: Workspace, table: StreamTable) -> VerifyResult:
    """Compare a table with its query; the result is recorded."""
    found = read_newest(workspace, table, lambda now: _verify(workspace, now))
    workspace.catalog.record_verification(found)
    return VerifyResult(
        str(table.name), found.ok, found.missing, found.unexpected, tuple(found.sample),
        found.frontier, found.seconds or 0.0,
    )  # fmt: skip


def _verify(workspace: Workspace, table: StreamTable) -> Verification:
    start = perf_counter()
    if table.frontier is None:
        raise never_filled(str(table.name))
    if table.reinitialize:
        raise UserError(
            f"{table.name} waits to be computed anew: {table.reinitialize}",
            hint=f"REFRESH STREAM TABLE {table.name} first",
        )
    try:
        missing, unexpected, sample = _compare(workspace, table, table.frontier)
    except RunnelError:
        raise
    except Exception as error:
        raise _cannot(table, error) from error
    return Verification(
        table.id, datetime.now(UTC), not (missing or unexpected), missing, unexpected, sample,
        table.frontier, perf_counter() - start,
    )  # fmt: skip


def _compare(
    workspace: Workspace, table: StreamTable, frontier: Frontier
) -> tuple[int, int, list[dict[str, Any]]]:
    columns = table.layout.columns
    names = [f"v{i}" for i in range(len(columns))]
    with (
        workspace.worker({**table.settings, **_SETTINGS}, adaptive=True) as spark,
        binding(workspace, spark) as bound,
    ):
        expected = _evaluate(bound, table, frontier).toDF(*names, _SIGN)
        stored = workspace.trace(table).past_readout(spark, table.epoch).toDF(*names)
        signed = expected.unionAll(stored.withColumn(_SIGN, F.lit(-1).cast("bigint")))
        differing = signed.groupBy(*names).agg(F.sum(_SIGN).alias(_SIGN))
        differing = bound.keep(differing.where(F.col(_SIGN) != 0))
        missing, unexpected = _totals(differing)
        if missing and missing == unexpected:
            floats = inexact_places(workspace, spark, table)
            if _only_floats_differ(differing, len(columns), floats, missing):
                return 0, 0, []
        rows = differing.limit(_SAMPLE).collect() if missing or unexpected else []
        return missing, unexpected, [_sample(columns, row) for row in rows]


def _evaluate(bound: Binding, table: StreamTable, frontier: Frontier) -> DataFrame:
    """What the table must hold."""
    if table.cycle is not None:
        return member_rows(bound, table, frontier)
    if table.is_cut:
        return whole_rows(bound, table, frontier)
    return expected_rows(bound, table, frontier)


def _totals(differing: DataFrame) -> tuple[int, int]:
    sign = F.col(_SIGN)
    row = differing.agg(
        F.coalesce(F.sum(F.when(sign > 0, sign)), F.lit(0)),
        F.coalesce(F.sum(F.when(sign < 0, -sign)), F.lit(0)),
    ).first()
    assert row is not None
    return int(row[0]), int(row[1])


def _only_floats_differ(differing: DataFrame, width: int, floats: list[int], rows: int) -> bool:
    """Whether the rows pair up but for the last digits of some floating point columns.

    Spark's own sums of floats depend on the order in which rows arrive.
    """
    if not floats or rows > _MOST_FLOAT_ROWS:
        return False
    others = [f"v{i}" for i in range(width) if i not in floats]
    left = differing.where(F.col(_SIGN) > 0).alias("l")
    right = differing.where(F.col(_SIGN) < 0).alias("r")
    same = F.col(f"l.{_SIGN}") == -F.col(f"r.{_SIGN}")
    for name in others:
        same = same & F.col(f"l.{name}").eqNullSafe(F.col(f"r.{name}"))
    for i in floats:
        same = same & _close(F.col(f"l.v{i}"), F.col(f"r.v{i}"))
    # As many pairs as rows, and every row in one: no row stands in for two others.
    return (
        left.join(right, same).count() == left.count() == right.count()
        and left.join(right, same, "left_anti").isEmpty()
        and right.join(left, same, "left_anti").isEmpty()
    )


def _close(left: Expression, right: Expression) -> Expression:
    scale = F.greatest(F.abs(left), F.abs(right))
    # Infinity and NaN are within any share of themselves, whatever they are compared with.
    is_near = (scale < float("inf")) & (F.abs(left - right) <= scale * _TOLERANCE)
    return left.eqNullSafe(right) | is_near


def _sample(columns: tuple[Column, ...], row: Any) -> dict[str, Any]:
    values = {c.name: plain(row[i]) for i, c in enumerate(columns)}
    count = int(row[len(columns)])
    return {"difference": "missing" if count > 0 else "unexpected", "times": abs(count), **values}


def _cannot(table: StreamTable, error: Exception) -> RunnelError:
    told = translate(error)
    if isinstance(told, SourceError):
        return SourceError(
            f"{table.name} cannot be verified: a pinned source version is no longer readable",
            detail=told.primary,
            hint="VACUUM removed it; refresh, then verify",
        )
    return told
