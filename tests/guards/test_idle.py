"""A lake in which nothing happens: `run` moves its tables on and starts no Spark."""

from __future__ import annotations

import threading

import runnel
from guards.conftest import THEN, Bench
from runnel.model.schedule import Schedule


def test_tables_without_news_start_no_spark(bench: Bench) -> None:
    bench.base("orders"), bench.base("other")
    every = {"schedule": Schedule.parse("1m")}
    bench.stream("first", "orders", **every)
    bench.stream("second", "first", "other", **every)
    bench.stream("by_hand", "orders")
    with runnel.connect(bench.workspace.path) as lake:
        assert list(lake.run(once=True)) == []
        assert lake._keeper.opened is None
        reached = {s.name: s.data_timestamp for s in lake.status()}
        assert reached["first"] == reached["second"] > THEN, "both were due, and have no news"
        assert reached["by_hand"] == THEN
        stop = threading.Event()
        threading.Timer(1.5, stop.set).start()
        lake.run(stop=stop)
        assert lake._keeper.opened is None
        assert {entry.action for entry in lake.history()} == {"NO_DATA"}
