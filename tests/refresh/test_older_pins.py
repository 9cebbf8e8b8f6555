"""A pass that is later by its clock alone must not take a table back to older versions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from catalog.conftest import build_table
from runnel.model.frontier import Frontier, Pin
from runnel.refresh.attempt import reads_older
from runnel.refresh.recording import smoothed

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pins", "is_older"),
    [
        ({"x": Pin("delta", "d", 6), "t": Pin("trace", "i", 3)}, False),
        ({"x": Pin("delta", "d", 5), "t": Pin("trace", "i", 3)}, True),
        ({"x": Pin("delta", "d", 7), "t": Pin("trace", "i", 2)}, True),
        ({"x": Pin("delta", "another life", 0), "t": Pin("trace", "i", 3)}, False),
        ({"y": Pin("delta", "d", 0)}, False),
    ],
)
def test_older_pins_are_noticed(pins: dict[str, Pin], is_older: bool) -> None:
    known = {"x": Pin("delta", "d", 6), "t": Pin("trace", "i", 3)}
    table = build_table(frontier=Frontier(known, NOW))
    assert reads_older(table, Frontier(pins, NOW)) is is_older
    assert not reads_older(build_table(), Frontier(pins, NOW))


def test_a_slow_refresh_counts_sooner_than_a_quick_one() -> None:
    assert smoothed(None, 4.0) == 4.0
    assert smoothed(4.0, 10.0) == 7.0
    assert smoothed(4.0, 1.0) == 3.4
