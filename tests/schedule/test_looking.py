"""Sources are pinned as they stood at one moment, although one is looked at after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runnel.model.frontier import Pin
from runnel.refresh.looking import pin_sources
from runnel.refresh.pins import Pins
from schedule.lake import FakeLake, FakeLog


class Watched(FakeLog):
    """A base source that others write to right after it was looked at."""

    after: Callable[[], None] | None = None

    def latest_version(self) -> int:
        version = super().latest_version()
        if self.after is not None:
            self.after()
        return version


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[FakeLake]:
    made = FakeLake(tmp_path)
    for name in ("x1", "x2"):
        made.workspace._logs[f"w/{name}"] = Watched(name)  # type: ignore[assignment]
    yield made
    made.workspace.catalog.close()


def write_once(lake: FakeLake) -> None:
    """To the first table and then to the second, as soon as the first was looked at."""
    first = lake.base("x1")
    assert isinstance(first, Watched)

    def write() -> None:
        first.after = None
        first.version += 1
        lake.base("x2").version += 1

    first.after = write


def versions(lake: FakeLake) -> dict[str, int]:
    found = Pins(lake.workspace).check([lake._source("x1"), lake._source("x2")])
    return {key.removeprefix("default."): pin.version for key, pin in found.items()}


def test_who_writes_two_tables_in_between_is_not_half_seen(lake: FakeLake) -> None:
    write_once(lake)
    assert versions(lake) == {"x1": 2, "x2": 2}


def test_who_writes_while_ids_are_read_is_not_half_seen(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def table_id(log: FakeLog, version: int) -> str:
        lake.base("x2").version = 2
        return f"id of {log.name}"

    monkeypatch.setattr(FakeLog, "table_id", table_id)
    assert versions(lake) == {"x1": 1, "x2": 1}


def test_who_writes_all_the_time_is_not_waited_for(lake: FakeLake) -> None:
    first = lake.base("x1")
    assert isinstance(first, Watched)

    def write() -> None:
        first.version += 1

    first.after = write
    assert versions(lake) == {"x1": 4, "x2": 1}


def test_one_table_is_looked_at_once(lake: FakeLake) -> None:
    before = Watched.looks
    found = pin_sources(lake.workspace, [lake._source("x1")])
    assert found == {"default.x1": Pin("delta", "id of x1", 1)}
    assert Watched.looks == before + 1
