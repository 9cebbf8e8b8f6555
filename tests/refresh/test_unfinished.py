"""Whatever dies between writing and committing, doctor --fix leaves only what the log names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from refresh.helpers import SALES, check, orders
from runnel.api import Lake
from runnel.lake import appending, compaction, merging
from runnel.lake.trace import Trace
from runnel.refresh.compaction import merge_table
from runnel.schedule.health import repair

pytestmark = pytest.mark.spark


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


def _on_disk(trace: Trace) -> set[str]:
    return {
        os.path.join(folder, name)
        for folder, _, names in os.walk(trace.path)
        for name in names
        if name.endswith(".parquet") and "_delta_log" not in folder
    }


def _in_log(trace: Trace) -> set[str]:
    """The files of the newest version, and those of older ones that stay for their time."""
    commits = trace.log.commits(-1, trace.log.latest_version())
    return {action.path for commit in commits for action in commit.adds}


@pytest.mark.parametrize("point", ["append", "replace", "compact", "merge"])
def test_no_file_stays_that_no_log_names(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    source = orders(lake, tmp_path)
    mode = "FULL" if point == "replace" else "DIFFERENTIAL"
    lake.create_stream_table("sales", SALES, refresh_mode=mode)
    source.append((4, 10, "1.00"))
    lake.refresh("sales")
    source.append((5, 11, "1.00"))
    workspace = lake._workspace
    table = workspace.catalog.find("default.sales")
    assert table is not None
    trace = workspace.trace(table)

    work: dict[str, Callable[[], object]] = {
        "compact": lambda: lake.compact("sales"),
        "merge": lambda: merge_table(workspace, table, wait=0),
    }

    def die(name: str) -> None:
        if name == f"trace.{point}.written":
            raise Killed

    with monkeypatch.context() as patched:
        for module in (appending, compaction, merging):
            patched.setattr(module, "reach", die)
        with pytest.raises(Killed):
            work.get(point, lambda: lake.refresh("sales"))()
    assert _on_disk(trace) > _in_log(trace)
    done = {finding.check: finding.said for finding in repair(workspace)}
    assert done["writes"] == "removed the files of unfinished writes: sales"
    assert _on_disk(trace) == _in_log(trace)
    check(lake, "sales", mode)
