"""The fixed costs: a refresh with nothing to do, one of tiny tables, a read over many epochs."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from bench.rounds import say, timed
from runnel.api import Lake
from runnel.lake.frames import F
from runnel.lake.trace import Trace
from runnel.model.columns import WEIGHT, Column, Layout
from runnel.model.refresh import RefreshAction
from runnel.refresh.compaction import MANY_FILES

WARM_UP = 15
ROUNDS = 11
EPOCHS = 100
# Of 40,000 rows two are updated and one is deleted, others in every epoch.
_CHANGED = ((0, 20_000), (1, 40_000))


def no_data(lake: Lake, name: str) -> float:
    """Milliseconds of a refresh with nothing to do: the middle one."""
    lake.refresh(name)
    found = median(timed(lambda: lake.refresh(name)) * 1000 for _ in range(ROUNDS))
    assert lake.history(name, limit=1)[0].action is RefreshAction.NO_DATA
    return found


def tiny(lake: Lake) -> dict[str, Any]:
    """A differential refresh of an aggregate over a join of tiny tables in a warm session."""
    lake.sql("CREATE TABLE tiny_orders (id INT, cust INT, amount INT) USING delta")
    lake.sql("CREATE TABLE tiny_custs (id INT, city STRING) USING delta")
    lake.sql("INSERT INTO tiny_orders SELECT id, id % 20, id * 3 FROM range(200)")
    lake.sql("INSERT INTO tiny_custs SELECT id, concat('c', id % 5) FROM range(20)")
    lake.create_stream_table(
        "tiny",
        "SELECT city, COUNT(*) AS n, SUM(amount) AS total FROM tiny_orders o "
        "JOIN tiny_custs c ON o.cust = c.id GROUP BY city",
        refresh_mode="DIFFERENTIAL",
    )
    results = []
    for number in range(WARM_UP + ROUNDS):
        lake.sql(f"INSERT INTO tiny_orders VALUES ({1000 + number}, {number % 20}, 7)")
        results.append(lake.refresh("tiny"))
    measured = results[WARM_UP:]
    phases = {
        phase: round(median(r.phases.get(phase, 0.0) for r in measured), 3)
        for phase in measured[-1].phases
    }
    return {
        "action": measured[-1].action.value,
        "seconds": round(median(r.seconds for r in measured), 3),
        "phases": phases,
        "verified": lake.verify("tiny").ok,
    }


def epochs(lake: Lake, folder: Path, rows: int) -> dict[str, dict[str, float]]:
    """Reading a trace of many epochs, by plan and by view, against the same one compacted."""
    return {
        "state": _epochs(lake, folder, rows, is_state=True),
        "rows": _epochs(lake, folder, rows, is_state=False),
    }


def _epochs(lake: Lake, folder: Path, rows: int, *, is_state: bool) -> dict[str, float]:
    columns = (Column("c0", "bigint"), Column("c1", "bigint"), Column("c2", "string"))
    key = ("c0",) if is_state else tuple(c.name for c in columns)
    layout = Layout(columns, key, tuple((c, c.name) for c in columns), is_state=is_state)
    trace = Trace(str(folder / f"_bench_epochs_{is_state}"), "bench", layout)
    say(f"reading {EPOCHS} epochs over {rows:,} {'groups of a state' if is_state else 'rows'}")
    spark = lake.spark
    _fill(spark, trace, rows)
    _reading(spark, trace)  # Warms the JVM up, which would count against the first one only.
    before = _reading(spark, trace)
    trace.compact(spark, 2 + EPOCHS)
    after = _reading(spark, trace)
    return {way: round(before[way] / after[way], 2) for way in before}


def _fill(spark: Any, trace: Trace, rows: int) -> None:
    """A compacted base, and epochs that each change 0.01% of it: half of that are updates."""

    def made(ids: Any, epoch: int, weight: int) -> Any:
        return ids.selectExpr(
            "id AS c0", f"id * 7 + {epoch} AS c1", "concat('row ', id % 1000) AS c2",
            f"CAST({weight} AS BIGINT) AS {WEIGHT}",
        )  # fmt: skip

    base = spark.range(rows)
    trace.append(spark, made(base, 1, 1), 1, {})
    trace.append(spark, made(base.where("FALSE"), 2, 1), 2, {})
    trace.compact(spark, 2)
    few = rows // 40_000
    for epoch in range(3, 3 + EPOCHS):
        updated, deleted = (base.where(f"id % {n} = {epoch * 7 + k}") for k, n in _CHANGED)
        inserted = spark.range(rows + epoch * few, rows + (epoch + 1) * few)
        frame = made(updated.union(deleted), 1, -1).union(made(updated.union(inserted), epoch, 1))
        trace.append(spark, frame, epoch, {}, rows_hint=4 * few)
        if trace.small_files(epoch) >= MANY_FILES:
            trace.merge(spark)


def _reading(spark: Any, trace: Trace) -> dict[str, float]:
    ways = {
        "plan": lambda: trace.readout(spark),
        "view": lambda: spark.sql(trace.readout_sql()),
    }
    sums = [F.sum("c0"), F.sum("c1"), F.sum(F.length("c2"))]
    return {
        way: median(timed(lambda f=frame: f().agg(*sums).collect()) for _ in range(7))  # type: ignore[misc]
        for way, frame in ways.items()
    }
