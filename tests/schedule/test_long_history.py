"""A table that is refreshed every few seconds: a whole day of it is known, and quickly asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from catalog.conftest import build_table
from runnel.catalog import StreamTable, Writer, open_catalog
from runnel.catalog.engine import writing
from runnel.catalog.quick import QuickReader
from runnel.catalog.schema import refresh_history
from runnel.model.frontier import Frontier, Pin
from runnel.model.settings import Settings
from runnel.refresh.instants import Past
from runnel.schedule import seeing

NOW = datetime.now(UTC)
STEP = timedelta(seconds=12)
MANY = 7000


def at(number: int) -> datetime:
    """When the attempt with this number, counted from the newest, was made."""
    return NOW - STEP * number


def frontier(number: int) -> Frontier:
    return Frontier({"default.orders": Pin("delta", "d-1", MANY - number)}, at(number))


def row(table: StreamTable, number: int) -> dict[str, Any]:
    then = frontier(number)
    return {
        "table_id": table.id, "owner": "o", "started_at": at(number), "finished_at": at(number),
        "outcome": "OK", "action": "DIFFERENTIAL", "reason": "", "seconds": 0.5, "phases": {},
        "predicted": {}, "frontier": then.to_json(), "epoch": MANY - number,
        "data_timestamp": then.data_timestamp,
    }  # fmt: skip


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Writer]:
    """The attempts of nearly a day, of one table; then one more, which prunes."""
    with open_catalog(f"sqlite:///{tmp_path}/catalog.db") as made:
        table = build_table("quick", frontier=frontier(0), epoch=MANY, created_at=at(MANY + 1))
        made.add_table(table)
        with writing(made.engine) as connection:
            rows = [row(table, number) for number in range(MANY, 0, -1)]
            connection.execute(refresh_history.insert(), rows)
        made.record_skip(table.id, "o", "so that what is too old is forgotten")
        yield made


@pytest.mark.parametrize("number", [1, 999, 1500, MANY])
def test_every_state_of_the_last_day_is_found(catalog: Writer, number: int) -> None:
    past = Past(catalog, lambda table, epoch: True)
    found = past.common(["default.quick"], at(number))["default.quick"]
    assert (found.epoch, found.at) == (MANY - number, at(number))
    assert found.base == frontier(number).pins


def test_statistics_are_of_the_whole_day(catalog: Writer) -> None:
    (found,) = seeing.stats(catalog, Settings(), None, "1d", NOW)
    assert found.actions == {"DIFFERENTIAL": MANY}
    assert found.measured_seconds == pytest.approx((STEP * MANY).total_seconds())


def test_status_and_a_new_attempt_do_not_read_all_of_it(catalog: Writer, tmp_path: Path) -> None:
    table = catalog.tables()[0]
    reader = QuickReader.open(tmp_path / "catalog.db")
    assert reader is not None
    before = process_time()
    with reader:
        for _ in range(20):
            assert len(seeing.status(reader, Settings())) == 1
            catalog.start_attempt(table.id, "o")
    assert (process_time() - before) / 20 < 0.02
