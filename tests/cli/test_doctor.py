"""doctor finds what killed processes leave behind, and puts it right when asked to."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import runnel
from cli.conftest import DEAD, Run
from runnel.catalog import Leases, Owner, StreamTable, Verification, Writer
from runnel.errors import SystemFault
from runnel.model.refresh import Outcome
from runnel.refresh.attempt import lease_of


def findings(run: Run, folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """By check; a check that was fixed is under its name and `fixed`."""
    done = run("doctor", "--lake", folder, "--json", *arguments)
    return {
        f["check"] + (" fixed" if f["result"] == "fixed" else ""): f for f in done.json["findings"]
    }


@pytest.fixture
def sales(catalog: Writer) -> StreamTable:
    table = catalog.find("default.sales")
    assert table is not None
    return table


def leave_orphan(folder: Path, name: str = "0123") -> Path:
    orphan = folder / "_runnel" / "traces" / name
    orphan.mkdir(parents=True)
    (orphan / "part.parquet").write_text("x")
    return orphan


def test_the_lake_tells_the_same(run: Run, folder: Path, catalog: Writer) -> None:
    orphan = leave_orphan(folder)
    by_command = findings(run, folder)
    with runnel.connect(folder) as lake:
        found = {f.check: f.result for f in lake.doctor()}
        assert found["leftovers"] == "warning"
        assert found == {check: by_command[check]["result"] for check in found}
        fixed = lake.doctor(fix=True)
        assert fixed[0].result == "fixed"
        assert {f.check: f.result for f in fixed}["leftovers"] == "ok"
        assert lake._keeper.opened is None, "no Spark is needed"
    assert not orphan.exists()


def test_the_environment_needs_no_lake(run: Run) -> None:
    done = run("doctor")
    assert done.code == 0
    assert "Spark 4" in done.out
    assert "openjdk" in done.out or "java version" in done.out
    assert "is not a lake" in done.out
    assert run("doctor", "--lake", "nowhere").code == 1


def test_a_missing_java_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    done = run("doctor")
    assert done.code == 1
    assert "openjdk-17-jre-headless" in done.out


def test_settings_are_shown_with_their_origin(
    run: Run, catalog: Writer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "runnel.toml").write_text("compact_share = 0.25\n")
    monkeypatch.setenv("RUNNEL_LEASE_SECONDS", "12")
    settings = {s["name"]: s for s in run("doctor", "--lake", folder, "--json").json["settings"]}
    assert (settings["compact_share"]["value"], settings["compact_share"]["origin"]) == (
        0.25, "runnel.toml"
    )  # fmt: skip
    assert (settings["lease_seconds"]["value"], settings["lease_seconds"]["origin"]) == (
        12.0, "environment"
    )  # fmt: skip
    assert settings["max_change_ratio"]["origin"] == "default"
    assert "lease_seconds" in run("doctor", "--lake", folder).out


def test_an_address_that_may_hold_a_password_is_not_shown(
    run: Run, catalog: Writer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNNEL_ALERT_WEBHOOK", "https://example.com/secret-token")
    out = run("doctor", "--lake", folder, "--json").out
    assert '"(set)"' in out
    assert "secret-token" not in out


def test_damage_that_no_check_would_meet_is_found(run: Run, catalog: Writer, folder: Path) -> None:
    catalog.close()
    file = folder / "_runnel" / "catalog.db"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'verifications'"
        (page,) = connection.execute(query).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    contents = bytearray(file.read_bytes())
    contents[(page - 1) * size : page * size] = b"\xff" * size
    file.write_bytes(contents)
    found = findings(run, folder)
    assert found["catalog"]["result"] == "problem"
    assert "is damaged" in found["catalog"]["said"]
    assert "runnel doctor --rebuild" in found["catalog"]["fix"]


def test_missing_storage_and_sources_are_problems(run: Run, catalog: Writer, folder: Path) -> None:
    found = findings(run, folder)
    assert found["storage"]["result"] == "problem"
    assert "big, sales" in found["storage"]["said"]
    assert found["sources"]["said"] == "gone: orders (read by sales)"
    assert run("doctor", "--lake", folder).code == 1


def test_leftovers_are_found_and_removed(run: Run, catalog: Writer, folder: Path) -> None:
    orphan = leave_orphan(folder)
    found = findings(run, folder)
    assert (found["leftovers"]["result"], found["leftovers"]["fix"]) == (
        "warning", "runnel doctor --fix"
    )  # fmt: skip
    assert orphan.exists()
    fixed = findings(run, folder, "--fix")
    assert fixed["leftovers fixed"]["said"] == "folders that nobody owned were removed: 1"
    assert fixed["leftovers"]["result"] == "ok"
    assert not orphan.exists()


def test_rows_that_a_killed_pass_shared_are_removed(
    run: Run, catalog: Writer, folder: Path
) -> None:
    own = Owner.current()
    owners = (replace(own, pid=2**22 + 1), own)
    scratch = folder / "_runnel" / "scratch"
    left, used = (scratch / f"{str(owner).replace('/', '~')}~0123" for owner in owners)
    for path in (left, used, scratch / "unknown"):
        path.mkdir(parents=True)
    found = findings(run, folder)["leftovers"]
    assert found["result"] == "warning"
    assert str(left) in found["said"]
    fixed = findings(run, folder, "--fix")
    assert fixed["leftovers fixed"]["said"] == "folders that nobody owned were removed: 2"
    assert list(scratch.iterdir()) == [used]


def test_what_is_being_filled_is_left_alone(run: Run, catalog: Writer, folder: Path) -> None:
    orphan = leave_orphan(folder)
    with Leases(catalog.engine, Owner.current()).hold("storage:0123"):
        assert findings(run, folder, "--fix")["leftovers"]["result"] == "ok"
        assert orphan.exists()
    assert findings(run, folder)["leftovers"]["result"] == "warning"


def test_what_a_dead_process_was_filling_is_removed(
    run: Run, catalog: Writer, folder: Path
) -> None:
    orphan = leave_orphan(folder)
    Leases(catalog.engine, DEAD)._take("storage:0123")
    findings(run, folder, "--fix")
    assert not orphan.exists()


def test_tables_keep_their_folders(run: Run, sales: StreamTable, folder: Path) -> None:
    mine = leave_orphan(folder, sales.incarnation)
    findings(run, folder, "--fix")
    assert mine.exists()
    shutil.rmtree(mine)


def test_interrupted_refreshes_are_found_and_closed(
    run: Run, catalog: Writer, sales: StreamTable, folder: Path
) -> None:
    catalog.start_attempt(sales.id, DEAD)
    catalog.start_attempt(sales.id, Owner.current())
    assert findings(run, folder)["attempts"]["said"].startswith("interrupted: sales (process ")
    assert [a.outcome for a in catalog.history("default.sales", 2)] == [Outcome.RUNNING] * 2
    assert findings(run, folder, "--fix")["attempts"]["result"] == "ok"
    assert [a.outcome for a in catalog.history("default.sales", 2)] == [
        Outcome.RUNNING, Outcome.INTERRUPTED
    ]  # fmt: skip


def test_leases_of_dead_processes_are_freed(
    run: Run, catalog: Writer, sales: StreamTable, folder: Path
) -> None:
    leases = Leases(catalog.engine, DEAD)
    leases._take(lease_of(sales.id))
    assert findings(run, folder)["leases"]["said"].startswith("of dead processes: sales (held by")
    assert findings(run, folder, "--fix")["leases"]["result"] == "ok"
    held = leases.look(lease_of(sales.id))
    assert held is not None
    assert held.token is None


def test_stale_failing_and_reinitialised_tables_are_told(
    run: Run, catalog: Writer, sales: StreamTable, folder: Path
) -> None:
    catalog.update_table(
        sales.id, consecutive_errors=1, last_error="overflow\nx", reinitialize="orders was replaced"
    )
    found = findings(run, folder)
    assert found["staleness"]["said"].startswith("behind: sales by ")
    assert found["errors"]["said"] == "failed last: sales: overflow"
    assert found["reinitialize"]["said"].endswith("sales: orders was replaced")


def test_a_table_that_differed_when_last_verified_is_told(
    run: Run, catalog: Writer, sales: StreamTable, folder: Path
) -> None:
    assert findings(run, folder)["verification"]["result"] == "ok"
    at = datetime(2024, 5, 1, tzinfo=UTC)
    catalog.record_verification(Verification(sales.id, at, False, 3, 1))
    found = findings(run, folder)["verification"]
    assert found["result"] == "problem"
    assert "sales (3 rows missing, 1 unexpected at 2024-05-01" in found["said"]
    (shown,) = run("status", "sales", "--lake", folder, "--json").json
    assert shown["verified_at"].startswith("2024-05-01T00:00:00")
    verdict = [shown[f"verified_{part}"] for part in ("ok", "missing", "unexpected")]
    assert verdict == [False, 3, 1]
    listed = run("status", "--lake", folder).out
    assert "differed from its query" in " ".join(listed.split())
    catalog.record_verification(Verification(sales.id, at, True, 0, 0))
    assert findings(run, folder)["verification"]["result"] == "ok"


def test_an_unreadable_catalog_is_a_problem(
    run: Run, catalog: Writer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object, **__: object) -> None:
        raise SystemFault("the catalog is damaged", hint="restore it")

    monkeypatch.setattr("runnel.catalog.open_catalog", damaged)
    found = findings(run, folder)
    assert found["catalog"]["result"] == "problem"
    assert found["catalog"]["fix"] == "restore it"
