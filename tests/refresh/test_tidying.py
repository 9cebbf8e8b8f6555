"""Tables stay cheap to read without being asked, and consumers that lag behind lose nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import runnel
from refresh.helpers import SALES, Source, check, orders
from runnel.api import Lake
from runnel.errors import InternalFault
from runnel.lake.trace import Trace
from runnel.refresh import superseded
from runnel.refresh.compaction import MANY_FILES

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, clean_names: None) -> Iterator[Lake]:
    """Compacts after a dozen epochs."""
    with runnel.connect(tmp_path / "lake", spark=spark, compact_after_epochs=12) as made:
        yield made


def _trace(lake: Lake, name: str) -> Trace:
    table = lake._workspace.catalog.find(f"default.{name}")
    assert table is not None
    return lake._workspace.trace(table)


def _grow(lake: Lake, source: Source, rounds: int, name: str) -> list[int]:
    """Refresh after each of some changes; the number of files after each."""
    counts = []
    for number in range(rounds):
        source.append((100 + number, 10 + number % 3, "1.50"))
        result = lake.refresh(name)
        assert result.action == "DIFFERENTIAL"
        counts.append(_trace(lake, name).file_count(result.epoch))
    return counts


def test_small_files_are_merged_and_old_epochs_compacted(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    counts = _grow(lake, source, 13, "sales")
    assert max(counts) < MANY_FILES
    last = _trace(lake, "sales").last_commit()
    assert last is not None
    assert last.since == 13
    source.delete("id = 1")
    check(lake, "sales", "DIFFERENTIAL")


def _tidied_from(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> Source:
    """A source in a lake that compacts however few rows of a table, from a share of them on."""
    monkeypatch.setattr(superseded, "_SMALL", 0)
    settings = replace(lake.settings, compact_share=share)
    monkeypatch.setattr(lake._workspace, "settings", settings)
    return orders(lake, tmp_path)


def test_rows_that_only_cancel_others_are_compacted_away(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of what is stored: a row that goes and the one that takes it away both count."""
    source = _tidied_from(lake, tmp_path, monkeypatch, 0.5)
    source.append(*((number, 10, "1.00") for number in range(4, 9)))
    lake.create_stream_table("kept", "SELECT id FROM orders", refresh_mode="DIFFERENTIAL")
    since = []
    for number in (1, 2, 3):
        source.delete(f"id = {number}")
        assert lake.refresh("kept").action == "DIFFERENTIAL"
        since.append(_trace(lake, "kept").last_commit().since)
    assert since == [1, 1, 4]
    assert _trace(lake, "kept").row_estimate(4) == 5
    monkeypatch.undo()
    for number in (4, 5, 6):
        source.delete(f"id = {number}")
        lake.refresh("kept")
    assert _trace(lake, "kept").last_commit().since == 4, "what is small is left alone"
    assert lake.verify("kept").ok


def test_what_was_just_put_in_order_is_not_tidied_after_one_refresh(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What AUTO expects to be tidied is what will be."""
    source = _tidied_from(lake, tmp_path, monkeypatch, 0.0)
    lake.create_stream_table("kept", "SELECT id FROM orders", refresh_mode="DIFFERENTIAL")
    for number, is_tidied in ((1, False), (2, True)):
        table = lake._workspace.catalog.find("default.kept")
        assert table is not None
        expected = superseded.rows_to_tidy(lake._workspace, table, 1, [])
        source.delete(f"id = {number}")
        lake.refresh("kept")
        assert (_trace(lake, "kept").last_commit().since == number + 1) == is_tidied
        assert (expected > 0) == is_tidied


def test_what_a_consumer_has_not_read_yet_is_no_reason_to_compact(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be rewritten and stay: the consumers of a pass come after the tidying."""
    source = _tidied_from(lake, tmp_path, monkeypatch, 0.5)
    source.append(*((number, 10, "1.00") for number in range(4, 30)))
    for name, query in (("kept", "SELECT id FROM orders"), ("below", "SELECT id FROM kept")):
        lake.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    source.append((30, 10, "1.00"))
    lake.refresh()
    seen = []
    for change in ("id < 20", "id = 21", "id = 22"):
        source.delete(change)
        lake.refresh()
        trace = _trace(lake, "kept")
        seen.append((trace.last_commit().epoch, trace.last_commit().since))
    assert seen == [(3, 1), (4, 3), (5, 3)], "once, when the large change has been read"
    assert all(lake.verify(name).ok for name in ("kept", "below"))


def test_a_consumer_that_lags_behind_still_gets_its_changes(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table(
        "big", "SELECT cust, total FROM sales WHERE total > 5", refresh_mode="DIFFERENTIAL"
    )
    _grow(lake, source, 14, "sales")
    trace = _trace(lake, "sales")
    last = trace.last_commit()
    assert last is not None
    assert last.since <= 1
    assert trace.file_count(last.epoch) < MANY_FILES
    check(lake, "big", "DIFFERENTIAL")
    source.append((300, 10, "1.50"))
    lake.refresh("sales")
    assert _trace(lake, "sales").last_commit().since == 15, "as far as it was read"


def test_a_refresh_stays_done_when_tidying_fails(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    _grow(lake, source, 11, "sales")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Trace, "compact", full)
    source.append((200, 10, "1.50"))
    check(lake, "sales", "DIFFERENTIAL")
    assert "sales was refreshed but not tidied" in caplog.text
    monkeypatch.undo()
    source.append((201, 10, "1.50"))
    check(lake, "sales", "DIFFERENTIAL")
    assert _trace(lake, "sales").last_commit().since > 0


def _plant(lake: Lake, name: str, epoch: int) -> None:
    """Take a row away that was never there, as a refresh must not."""
    trace = _trace(lake, name)
    last = trace.last_commit()
    assert last is not None
    rows = lake.spark.sql("SELECT 99L AS c0, -1L AS __weight")
    trace.append(lake.spark, rows, epoch, last.metadata)


@pytest.mark.parametrize("is_read", [False, True], ids=["alone", "read by another"])
@pytest.mark.parametrize("by_hand", [False, True], ids=["by itself", "by hand"])
def test_a_negative_total_is_told_and_the_table_computed_anew(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_hand: bool, is_read: bool
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("kept", "SELECT id FROM orders", refresh_mode="DIFFERENTIAL")
    if is_read:
        lake.create_stream_table("below", "SELECT id FROM kept", refresh_mode="DIFFERENTIAL")
    _plant(lake, "kept", 2)
    source.append((4, 10, "1.00"))
    settings = replace(lake.settings, compact_after_epochs=99 if by_hand else 2)
    monkeypatch.setattr(lake._workspace, "settings", settings)
    assert lake.refresh("kept").action == "DIFFERENTIAL"
    if is_read:
        lake.refresh("below")
    if by_hand or is_read:
        with pytest.raises(InternalFault, match="negative total"):
            lake.compact("kept")
    status = lake.status("kept")
    assert "negative total" in (status.last_error or "")
    assert status.consecutive_errors == 1
    (alert,) = lake.alerts("kept", kind="reinitialize_needed", lasting=True)
    assert "negative total" in alert.message
    before = status.epoch
    assert _trace(lake, "kept").last_commit().epoch == before, "the old contents stay"
    check(lake, "kept", "REINITIALIZE", "negative total")
    assert lake.status("kept").last_error is None
    assert not lake.alerts("kept", lasting=True)
    source.append((5, 10, "1.00"))
    check(lake, "kept", "DIFFERENTIAL")
    if is_read:
        check(lake, "below", "DIFFERENTIAL")
        lake.compact("below")
    lake.compact("kept")
    assert lake.table("kept").count() == 5
