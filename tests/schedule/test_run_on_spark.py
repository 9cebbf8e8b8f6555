"""`lake.run` on a real lake, in the user's own session: order, overlap, ends, cycles, company."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pytest

import runnel
from refresh.helpers import SALES, Source, orders
from runnel.api import Lake
from runnel.model.refresh import Outcome, RefreshAction, TableState
from runnel.model.results import RefreshResult
from schedule.gates import Gate, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_SETTINGS = {"allow_circular": True, "scheduler_interval": 0.1}
_PAIRS = {"a": "int", "b": "int"}
_REACH = {
    "reach_a": "SELECT DISTINCT e.a, rb.b FROM edge e JOIN reach_b rb ON e.b = rb.a",
    "reach_b": "SELECT a, b FROM edge UNION SELECT ra.a, e.b FROM reach_a ra JOIN edge e ON ra.b = e.a",
}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, clean_names: None) -> Iterator[Lake]:
    with runnel.connect(tmp_path / "lake", spark=spark, **_SETTINGS) as made:
        yield made


@contextmanager
def running(lake: Lake, workers: int = 2) -> Iterator[threading.Event]:
    """`lake.run` in a thread of its own; setting the event ends it."""
    stop = threading.Event()
    thread = threading.Thread(target=lake.run, kwargs={"workers": workers, "stop": stop})
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(30)
        assert not thread.is_alive(), "the scheduler did not end"


def make(lake: Lake, name: str, query: str, schedule: str = "1s", **options: str) -> None:
    lake.create_stream_table(name, query, schedule=schedule, refresh_mode="DIFFERENTIAL", **options)  # type: ignore[arg-type]


def verified(lake: Lake, *names: str) -> None:
    for name in names:
        found = lake.verify(name)
        assert found.ok, str(found)


def once(lake: Lake, workers: int = 2) -> list[RefreshResult]:
    """`lake.run(once=True)` when every table that is refreshed by the second is due."""
    due = [t.name for t in lake.status() if t.schedule == "1s"]
    for name in due:
        wait_until(lambda name=name: (lake.status(name).lag_seconds or 0) > 1, f"{name} is due")
    return list(lake.run(once=True, workers=workers))


def work(lake: Lake, name: str) -> list[tuple[str, int | None]]:
    """The refreshes of a table that did something, oldest first."""
    entries = reversed(lake.history(name, limit=1000))
    quiet = (RefreshAction.NO_DATA, RefreshAction.SKIP)
    return [(str(e.action), e.epoch) for e in entries if e.action and e.action not in quiet]


def test_once_refreshes_what_is_due_and_nothing_else(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    make(lake, "sales", SALES)
    make(lake, "big", "SELECT cust FROM sales WHERE total > 5")
    make(lake, "rare", SALES, "cron 0 0 29 2 *")
    source.append((4, 12, "9.00"))
    done = once(lake)
    assert [(r.name, r.action) for r in done] == [
        ("sales", "DIFFERENTIAL"),
        ("big", "DIFFERENTIAL"),
    ]
    assert len({r.data_timestamp for r in done}) == 1, "one pass has one instant"
    verified(lake, "sales", "big")
    lake.alter_stream_table("sales", schedule="cron 0 0 29 2 *")
    lake.alter_stream_table("big", schedule="cron 0 0 29 2 *")
    source.append((5, 12, "9.00"))
    assert list(lake.run(once=True)) == []
    assert work(lake, "rare") == [("FULL", 1)]


def test_independent_tables_overlap_in_pools_of_their_own(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    gates = {name: Gate(lake, tmp_path, name) for name in ("left_gate", "right_gate")}
    make(lake, "one", "SELECT left_gate(id) AS id FROM orders")
    make(lake, "two", "SELECT right_gate(id) AS id FROM orders")
    left, right = gates.values()
    left.shut()
    right.shut()
    left.open_when_seen(right)
    right.open_when_seen(left)
    source.append((4, 12, "9.00"))
    done = once(lake)
    assert {(r.name, r.action) for r in done} == {("one", "DIFFERENTIAL"), ("two", "DIFFERENTIAL")}
    pools = {left.pool, right.pool}
    assert len(pools) == 2
    assert all(pool and pool.startswith("runnel-") for pool in pools)
    assert lake.spark.sparkContext.getConf().get("spark.scheduler.mode") == "FAIR"


def test_a_slow_table_does_not_hold_up_others(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    gate = Gate(lake, tmp_path, "slow_gate")
    make(lake, "slow", "SELECT slow_gate(id) AS id FROM orders")
    make(lake, "quick", SALES)
    make(lake, "below", "SELECT s.id, q.n FROM slow s JOIN quick q ON s.id = q.cust")
    gate.shut()
    source.append((4, 12, "9.00"))
    with running(lake):
        wait_until(lambda: gate.pool, "the slow table is in Spark")
        for turn in range(2):
            known = lake.status("quick").epoch
            source.append((5 + turn, 13, "1.00"))
            wait_until(lambda known=known: lake.status("quick").epoch > known, "quick goes on")
        assert lake.status("slow").epoch == 1, "it is still at it"
        gate.open()
        wait_until(lambda: lake.status("below").epoch > 1, "what waited goes on too")
    verified(lake, "slow", "quick", "below")
    skips = [e for e in lake.history("slow", limit=100) if e.action == "SKIP"]
    assert skips, "the refreshes that it was too late for are recorded"


def test_the_end_comes_in_time_while_a_refresh_runs(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    gate = Gate(lake, tmp_path, "end_gate")
    make(lake, "held", "SELECT end_gate(id) AS id FROM orders")
    gate.shut()
    source.append((4, 12, "9.00"))
    with running(lake) as stop:
        wait_until(lambda: gate.pool, "the table is in Spark")
        asked = monotonic()
        stop.set()
    assert monotonic() - asked < 10
    last = next(e for e in lake.history("held") if e.action != "SKIP")
    assert (last.outcome, last.error_code) == (Outcome.INTERRUPTED, None)
    status = lake.status("held")
    assert (status.epoch, status.consecutive_errors, status.state) == (1, 0, TableState.ACTIVE)
    table = lake._find("held")
    assert not lake._workspace.leases.is_held(f"table:{table.id}")
    gate.open()
    assert lake.refresh("held").action == "DIFFERENTIAL", "and it can be used afterwards"
    verified(lake, "held")


def test_what_is_nearly_done_is_let_finish(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    gate = Gate(lake, tmp_path, "near_gate")
    make(lake, "near", "SELECT near_gate(id) AS id FROM orders")
    gate.shut()
    source.append((4, 12, "9.00"))
    with running(lake) as stop:
        wait_until(lambda: gate.pool, "the table is in Spark")
        stop.set()
        sleep(0.3)
        gate.open()
    assert work(lake, "near") == [("FULL", 1), ("DIFFERENTIAL", 2)]
    verified(lake, "near")


def test_a_cycle_is_refreshed_as_one(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _PAIRS, [(1, 2), (2, 3)])
    lake.create_stream_tables(_REACH, schedule="1s", refresh_mode="DIFFERENTIAL")
    make(lake, "starts", "SELECT a, COUNT(*) AS n FROM reach_b GROUP BY a")
    edge.append((3, 4))
    done = once(lake)
    names = ["reach_a", "reach_b", "starts"]
    assert Counter((r.name, str(r.action)) for r in done) == {(n, "DIFFERENTIAL"): 1 for n in names}
    assert len({lake.status(name).data_timestamp for name in names}) == 1
    assert _rows(lake, "reach_a") == [(1, 3), (2, 4)]
    assert _rows(lake, "reach_b") == [(1, 2), (1, 4), (2, 3), (3, 4)]
    assert _rows(lake, "starts") == [(1, 2), (2, 1), (3, 1)]


def test_an_atomic_diamond_is_refreshed_as_one(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    make(lake, "sums", "SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust", "1h")
    make(lake, "counts", "SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust", "1h")
    query = "SELECT s.cust, s.total, c.n FROM sums s JOIN counts c ON s.cust = c.cust"
    make(lake, "both", query, diamond_consistency="atomic")
    source.append((4, 12, "9.00"))
    names = {"sums", "counts", "both"}
    assert {(r.name, str(r.action)) for r in once(lake)} == {
        (name, "DIFFERENTIAL") for name in names
    }
    assert len({lake.status(name).data_timestamp for name in names}) == 1
    verified(lake, *names)
    assert all(t.work_seconds for t in lake._workspace.catalog.tables()), "measured, groups too"


def _rows(lake: Lake, name: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, lake.table(name).collect()))


def test_immediate_tables_come_along_and_are_not_refreshed_twice(
    lake: Lake, tmp_path: Path
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="IMMEDIATE")
    make(lake, "top", "SELECT MAX(total) AS best FROM sales")
    source.append((4, 12, "90.00"))
    assert {(r.name, str(r.action)) for r in once(lake)} == {
        ("sales", "DIFFERENTIAL"), ("top", "DIFFERENTIAL")
    }  # fmt: skip
    lake.sql("INSERT INTO orders VALUES (5, 12, 10.00)")
    assert lake.status("sales").epoch == 3, "the write took it along"
    assert [(r.name, str(r.action)) for r in once(lake) if r.action != "NO_DATA"] == [
        ("top", "DIFFERENTIAL")
    ]
    verified(lake, "sales", "top")
    assert str(lake.table("top").first()["best"]) == "100.00"


def test_two_schedulers_share_the_work_and_do_nothing_twice(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    source = orders(lake, tmp_path)
    names = [f"t{i}" for i in range(4)]
    for i, name in enumerate(names):
        make(
            lake,
            name,
            f"SELECT cust, SUM(amount) AS total FROM orders WHERE id > {i} GROUP BY cust",
        )
    with runnel.connect(tmp_path / "lake", spark=spark, **_SETTINGS) as other:
        owners = {str(it._workspace.leases.owner) for it in (lake, other)}
        number = 10
        with running(lake, workers=1), running(other, workers=1):
            deadline = monotonic() + 60
            while _workers(lake, names) != owners or number < 16:
                assert monotonic() < deadline, "one of them did nothing"
                source.append((number, number, "1.00"))
                number += 1
                sleep(0.5)
    history = lake.history(limit=1000)
    assert {e.outcome for e in history} == {Outcome.OK}
    for name in names:
        epochs = [epoch for _, epoch in work(lake, name)]
        assert epochs == sorted(set(epochs)), "no epoch was made twice"
    lake.refresh()
    verified(lake, *names)


def _workers(lake: Lake, names: list[str]) -> set[str]:
    """Who refreshed something."""
    found = [a for n in names for a in lake._workspace.catalog.history(f"default.{n}", 100)]
    return {str(a.owner) for a in found if a.action is RefreshAction.DIFFERENTIAL}
