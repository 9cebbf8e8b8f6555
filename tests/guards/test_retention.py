"""What is still needed of the sources: from the catalog alone, warned of in time, held back."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable

from guards.conftest import THEN, Bench
from runnel.lake.retention import parse_interval
from runnel.model.frontier import Frontier
from runnel.refresh import vacuum
from runnel.refresh.retention import needed_versions, retention_risks
from runnel.refresh.vacuum import hold_back_vacuum
from runnel.schedule.alerting import AlertBook
from runnel.schedule.health import retention
from runnel.schedule.retention import watch_retention

WEEK = timedelta(weeks=1)


def in_hours(hours: float) -> datetime:
    return datetime.now(UTC) + timedelta(hours=hours)


def test_the_oldest_frontier_counts(bench: Bench) -> None:
    bench.base("orders"), bench.base("other")
    bench.stream("first", "orders")
    bench.append("orders")
    bench.stream("second", "orders", "other")
    bench.append("orders")
    bench.stream("third", "second")
    found = {need.source: need for need in needed_versions(bench.workspace.catalog)}
    assert (found["orders"].version, found["orders"].tables) == (0, ("first",))
    assert (found["other"].version, found["other"].tables) == (0, ("second",))
    assert found.keys() == {"orders", "other"}


def test_a_table_that_is_up_to_date_risks_nothing(bench: Bench) -> None:
    bench.base("orders")
    bench.append("orders")
    bench.stream("sales", "orders")
    assert retention_risks(bench.workspace, in_hours(10_000)) == ()


def test_a_risk_is_told_before_it_is_one(bench: Bench) -> None:
    bench.base("orders")
    bench.stream("sales", "orders")
    bench.append("orders")
    assert retention_risks(bench.workspace, in_hours(5 * 24)) == ()
    (soon,) = retention_risks(bench.workspace, in_hours(6 * 24))
    assert soon.by == "VACUUM"
    assert soon.message == ("sales still need version 0 of orders, which VACUUM may remove in 24 h")
    assert soon.facts["left_hours"] == pytest.approx(24, abs=0.1)
    (due,) = retention_risks(bench.workspace, in_hours(8 * 24))
    assert "may remove now" in due.message
    both = retention_risks(bench.workspace, in_hours(29 * 24))
    assert [risk.by for risk in both] == ["VACUUM", "log clean-up"]


def test_each_table_at_risk_is_told_of_once(bench: Bench) -> None:
    bench.base("orders")
    first = bench.stream("first", "orders")
    bench.append("orders")
    bench.stream("second", "orders")
    bench.append("orders")
    bench.stream("third", "orders")
    workspace = bench.workspace
    workspace.alerts = AlertBook(workspace.catalog, workspace.settings)
    told: list[tuple[str, str | None, object]] = []
    workspace.alerts.subscribe(lambda a: told.append((a.kind, a.table, a.facts.get("version"))))
    for _ in range(2):
        watch_retention(workspace, in_hours(6 * 24))
    assert told == [("retention_risk", "first", 0), ("retention_risk", "second", 1)]
    told.clear()
    pins = {source.key: bench.pin(source) for source in first.sources}
    workspace.catalog.record_progress(first.id, Frontier(pins, THEN), 1, 1, 0)
    for _ in range(2):
        watch_retention(workspace, in_hours(6 * 24))
    assert told == [("retention_safe", "first", None)]


def clean_log(path: str, *versions: int) -> None:
    DeltaTable(path).create_checkpoint()
    for version in versions:
        os.remove(f"{path}/_delta_log/{version:020d}.json")


def test_a_cleaned_log_is_not_safe(bench: Bench) -> None:
    path = bench.base("orders")
    bench.stream("sales", "orders")
    bench.append("orders"), bench.append("orders")
    clean_log(path, 0, 1)
    (gone,) = retention_risks(bench.workspace)
    assert gone.message == (
        f"sales needed version 0 of orders, which is gone (commit 1 of {path} is gone): "
        "the next refresh starts over"
    )
    finding = retention(bench.workspace)
    assert (finding.result, finding.said) == ("warning", gone.message)


def test_removed_files_are_not_safe(bench: Bench) -> None:
    path = bench.base("orders")
    bench.stream("sales", "orders")
    bench.overwrite("orders")
    assert retention_risks(bench.workspace) == ()
    vacuumed = DeltaTable(path)
    vacuumed.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    (gone,) = retention_risks(bench.workspace)
    assert "is gone (a file that the change needs is gone" in gone.message


def test_what_cannot_be_told_is_not_safe(bench: Bench) -> None:
    bench.base("orders")
    away = replace(bench.source("orders"), location="memory:///nowhere")
    bench.stream("sales", "orders", sources=(away,))
    bench.append("orders")
    (unknown,) = retention_risks(bench.workspace)
    assert unknown.message.startswith("whether version 0 of orders, which sales need, is kept is")
    assert unknown.facts["is_gone"] is False
    assert retention(bench.workspace).result == "warning"


def test_a_risk_that_came_true_is_never_told_to_be_over(bench: Bench) -> None:
    path = bench.base("orders")
    bench.stream("sales", "orders")
    bench.append("orders"), bench.append("orders")
    workspace = bench.workspace
    workspace.alerts = AlertBook(workspace.catalog, workspace.settings)
    told: list[str] = []
    workspace.alerts.subscribe(lambda alert: told.append(alert.kind))
    watch_retention(workspace, in_hours(6 * 24))
    clean_log(path, 0, 1)
    # As another process sees it, which remembers no commit.
    workspace._logs.clear()
    watch_retention(workspace, in_hours(6 * 24))
    assert set(told) == {"retention_risk"}


def test_the_tables_own_retention_counts(bench: Bench) -> None:
    bench.base(
        "orders",
        configuration={
            "delta.deletedFileRetentionDuration": "interval 60 days",
            "delta.logRetentionDuration": "interval 2 days",
        },
    )
    bench.stream("sales", "orders")
    bench.append("orders")
    (risk,) = retention_risks(bench.workspace, in_hours(40))
    assert (risk.by, risk.retention) == ("log clean-up", timedelta(days=2))


def test_a_replaced_table_needs_nothing_kept(bench: Bench) -> None:
    bench.base("orders")
    table = bench.stream("sales", "orders")
    bench.append("orders")
    assert table.frontier is not None
    pins = {k: replace(pin, identity="another") for k, pin in table.frontier.pins.items()}
    frontier = replace(table.frontier, pins=pins)
    bench.workspace.catalog.record_progress(table.id, frontier, 1, 1, 0)
    assert retention_risks(bench.workspace, in_hours(10_000)) == ()
    assert hold_back_vacuum(bench.workspace, "VACUUM orders") == "VACUUM orders"


def name_places(monkeypatch: pytest.MonkeyPatch, **places: str) -> None:
    """What Spark's catalog would answer."""
    monkeypatch.setattr(vacuum, "place_of", lambda workspace, name: places.get(name.name))


def test_vacuum_keeps_what_a_frontier_needs(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_places(monkeypatch)
    path = bench.base("orders")
    bench.stream("sales", "orders")
    bench.overwrite("orders")

    def held(text: str, hours: float = 0) -> str:
        return hold_back_vacuum(bench.workspace, text, in_hours(hours))

    with caplog.at_level(logging.WARNING, "runnel"):
        assert held("VACUUM orders RETAIN 0 HOURS") == "VACUUM orders RETAIN 2 HOURS"
    assert "sales still need version 0" in caplog.text
    assert held("VACUUM orders") == "VACUUM orders"
    assert held("VACUUM orders", 200) == "VACUUM orders RETAIN 202 HOURS"
    assert held("VACUUM spark_catalog.default.orders DRY RUN", 200).endswith("202 HOURS DRY RUN")
    assert held(f"VACUUM delta.`{path}` RETAIN 1 HOURS").endswith("RETAIN 2 HOURS")
    assert held(f"VACUUM '{path}/' RETAIN 1 HOURS").endswith("RETAIN 2 HOURS")
    assert held("VACUUM orders RETAIN 0 HOURS FORCE") == "VACUUM orders RETAIN 0 HOURS"
    assert held("VACUUM other RETAIN 0 HOURS") == "VACUUM other RETAIN 0 HOURS"
    assert held("SELECT 'VACUUM orders'") == "SELECT 'VACUUM orders'"


def test_vacuum_is_held_back_by_place(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another name and another path of one folder are the same table."""
    path = bench.base("orders")
    bench.stream("sales", "orders")
    bench.overwrite("orders")
    link = bench.workspace.path / "link"
    link.symlink_to(path)
    name_places(monkeypatch, alias="warehouse/orders", linked=str(link), other="warehouse/other")
    monkeypatch.chdir(bench.workspace.path)

    def held(what: str) -> str:
        return hold_back_vacuum(bench.workspace, f"VACUUM {what} RETAIN 0 HOURS")

    places = [f"delta.`{link}`", f"'file://{path}'", "'warehouse/../warehouse/orders'"]
    for what in ("alias", "linked", *places):
        assert held(what) == f"VACUUM {what} RETAIN 2 HOURS"
    assert held("other") == "VACUUM other RETAIN 0 HOURS"


def test_vacuum_keeps_what_the_oldest_of_several_paths_needs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.base("orders")
    bench.workspace.path.joinpath("z_link").symlink_to(path)
    by_link = replace(bench.source("orders"), location="z_link")
    bench.stream("linked", "orders", sources=(by_link,))
    bench.stream("sales", "orders")
    bench.overwrite("orders")
    hours = {"z_link": -50.5, "warehouse/orders": 0}
    monkeypatch.setattr(vacuum, "since_needed", lambda _, need: in_hours(hours[need.location]))
    assert hold_back_vacuum(bench.workspace, "VACUUM orders RETAIN 0 HOURS").endswith("52 HOURS")


def test_vacuum_of_what_is_read_up_to_its_end_is_left_alone(bench: Bench) -> None:
    bench.base("orders")
    bench.overwrite("orders")
    bench.stream("sales", "orders")
    text = "VACUUM orders RETAIN 0 HOURS"
    assert hold_back_vacuum(bench.workspace, text) == text


def test_a_file_removed_long_before_its_commit_counts(bench: Bench) -> None:
    """A long statement marks the files it removes when it begins, and VACUUM goes by that."""
    path = bench.base("orders")
    bench.stream("sales", "orders")
    bench.overwrite("orders")
    commit = f"{path}/_delta_log/{1:020d}.json"
    with open(commit, encoding="utf-8") as file:
        text = file.read()
    assert DeltaTable(path).version() == 1
    early = int(in_hours(-10).timestamp() * 1000)
    start = text.index('"deletionTimestamp":') + len('"deletionTimestamp":')
    with open(commit, "w", encoding="utf-8") as file:
        file.write(text[:start] + str(early) + text[start + 13 :])
    held = hold_back_vacuum(bench.workspace, "VACUUM orders RETAIN 0 HOURS")
    assert held == "VACUUM orders RETAIN 12 HOURS"


def test_doctor_tells(bench: Bench) -> None:
    bench.base("orders", configuration={"delta.logRetentionDuration": "interval 0 hours"})
    bench.stream("sales", "orders")
    assert retention(bench.workspace).result == "ok"
    bench.append("orders")
    finding = retention(bench.workspace)
    assert (finding.result, "log clean-up may remove now" in finding.said) == ("warning", True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", WEEK),
        ("interval 2 days 12 hours", timedelta(days=2, hours=12)),
        ("INTERVAL 168 HOURS", WEEK),
        ("30 days", timedelta(days=30)),
        ("interval 1 fortnight", timedelta(days=9)),
        (None, timedelta(days=9)),
    ],
)
def test_intervals(text: str | None, expected: timedelta) -> None:
    assert parse_interval(text, timedelta(days=9)) == expected
