"""doctor finds files that killed writes left inside living tables; no others are touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli.conftest import DEAD, Run
from cli.test_doctor import findings
from lake.traces import append, make_trace
from runnel.catalog import Leases, Owner, StreamTable, Writer
from runnel.errors import Busy
from runnel.lake.commits import Run as WrittenRun
from runnel.lake.commits import rewrite
from runnel.lake.trace import Trace
from runnel.refresh.attempt import lease_of


@pytest.fixture
def sales(catalog: Writer) -> StreamTable:
    table = catalog.find("default.sales")
    assert table is not None
    return table


@pytest.fixture
def trace(sales: StreamTable, folder: Path) -> Trace:
    made = make_trace(str(folder / "_runnel" / "traces" / sales.incarnation))
    append(made, 1, [(1, 1)])
    append(made, 2, [(2, 1)])
    return made


def leave_run(trace: Trace) -> Path:
    left = Path(trace.path, "run-0123456789abcdef")
    left.mkdir(parents=True)
    (left / "part-0.parquet").write_bytes(b"half")
    return left


def runs(trace: Trace) -> set[str]:
    return {name for name in os.listdir(trace.path) if name.startswith("run-")}


def test_files_of_a_killed_write_are_found_and_removed(
    run: Run, trace: Trace, folder: Path
) -> None:
    named = runs(trace)
    assert findings(run, folder)["writes"]["result"] == "ok"
    left = leave_run(trace)
    found = findings(run, folder)["writes"]
    assert (found["result"], found["said"]) == ("warning", "unfinished in: sales")
    assert found["fix"] == "runnel doctor --fix"
    assert left.exists()
    fixed = findings(run, folder, "--fix")
    assert fixed["writes fixed"]["said"] == "removed the files of unfinished writes: sales"
    assert fixed["writes"]["result"] == "ok"
    assert runs(trace) == named


def test_what_is_being_written_is_left_alone(
    run: Run, catalog: Writer, sales: StreamTable, trace: Trace, folder: Path
) -> None:
    left = leave_run(trace)
    with Leases(catalog.engine, Owner.current()).hold(lease_of(sales.id)):
        assert findings(run, folder, "--fix")["writes"]["result"] == "ok"
        assert left.exists()
    Leases(catalog.engine, DEAD)._take(lease_of(sales.id))
    assert findings(run, folder, "--fix")["writes"]["result"] == "ok"
    assert not left.exists()


def test_what_the_log_has_taken_out_stays_for_its_time(
    run: Run, trace: Trace, folder: Path
) -> None:
    """Readers of an older version, or of a table as it was, may still need it."""
    before = runs(trace)
    files = trace.log.snapshot(trace.log.latest_version()).files
    assert rewrite(trace.log, files[:1], [], lambda last: last)
    append(trace, 3, [(3, 1)])
    findings(run, folder, "--fix")
    assert before < runs(trace)


def test_a_table_that_was_never_filled(run: Run, sales: StreamTable, folder: Path) -> None:
    left = leave_run(make_trace(str(folder / "_runnel" / "traces" / sales.incarnation)))
    findings(run, folder, "--fix")
    assert not left.exists()


def test_a_log_that_cannot_be_read_may_name_anything(run: Run, trace: Trace, folder: Path) -> None:
    left = leave_run(trace)
    Path(trace.path, "_delta_log", f"{0:020d}.json").write_text("damaged")
    findings(run, folder, "--fix")
    assert left.exists()


def test_one_whose_files_were_removed_commits_nothing(trace: Trace) -> None:
    """It was paused for so long that its lease ran out."""
    files = trace.log.snapshot(trace.log.latest_version()).files
    run = WrittenRun(os.path.dirname(files[0].path))
    adds = run.adds(data_change=True)
    run.discard()
    with pytest.raises(Busy, match="is gone"):
        rewrite(trace.log, files[1:], adds, lambda last: last)
    assert trace.log.latest_version() == 1


def test_a_write_without_rows_leaves_no_folder(trace: Trace) -> None:
    named = runs(trace)
    append(trace, 3, [])
    assert runs(trace) == named
