"""What the history tells of refreshes that did not end as they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from refresh.helpers import SALES, check, orders
from runnel.api import Lake
from runnel.errors import QueryFailed
from runnel.model.refresh import Outcome, RefreshAction
from runnel.refresh import execute, recording

pytestmark = pytest.mark.spark


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


def test_a_failed_refresh_tells_what_it_was_about_to_do(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))

    def fail(name: str) -> None:
        if name == "refresh.before_append":
            raise QueryFailed("made to fail")

    with monkeypatch.context() as patched:
        patched.setattr(execute, "reach", fail)
        with pytest.raises(QueryFailed):
            lake.refresh("sales")
    failed = lake.history("sales")[0]
    assert (failed.outcome, failed.error_code) == (Outcome.FAILED, "QUERY_FAILED")
    assert failed.action is RefreshAction.DIFFERENTIAL
    assert failed.reason == "refresh mode is DIFFERENTIAL"
    assert failed.change_rows == 1
    assert {"planning", "compile", "change"} <= failed.phases.keys()
    assert failed.predicted["model"] > 0
    assert failed.epoch is None
    check(lake, "sales", "DIFFERENTIAL")


@pytest.mark.parametrize("is_noted", [True, False], ids=["noted as interrupted", "still open"])
def test_what_was_committed_before_a_kill_is_told_as_done(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_noted: bool
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))

    def die(name: str) -> None:
        if name == "refresh.before_record":
            raise Killed

    catalog = lake._workspace.catalog
    with monkeypatch.context() as patched:
        patched.setattr(recording, "reach", die)
        if not is_noted:
            patched.setattr(catalog, "finish_attempt", lambda *_, **__: None)
        with pytest.raises(Killed):
            lake.refresh("sales")
    open_ = Outcome.INTERRUPTED if is_noted else Outcome.RUNNING
    assert lake.history("sales")[0].outcome is open_
    assert lake.verify("sales").ok
    done = lake.history("sales")[0]
    assert (done.outcome, done.action, done.epoch) == (Outcome.OK, RefreshAction.DIFFERENTIAL, 2)
    assert (done.rows_inserted, done.rows_deleted) == (1, 0)
    assert done.reason == "refresh mode is DIFFERENTIAL"
    assert done.error is None
    assert done.seconds is not None
    assert 0 < done.seconds < 60
    assert done.data_timestamp == lake.status("sales").data_timestamp
    check(lake, "sales", "NO_DATA")
