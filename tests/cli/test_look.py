"""status, history, graph: from the catalog alone, and quickly."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

from catalog.conftest import build_table
from catalog.test_cycles import _cycle as cycle_of
from cli.conftest import Run, add_tables
from runnel.catalog import Owner, Writer, open_catalog
from runnel.cli.place import named_place, reading
from runnel.model.alerts import Alert, AlertKind
from runnel.model.refresh import Outcome, RefreshAction
from runnel.model.settings import Settings
from runnel.schedule import seeing


def test_status_lists_every_table(run: Run, catalog: Writer, folder: Path) -> None:
    done = run("status", "--lake", folder)
    assert done.code == 0
    title, big, sales = done.out.splitlines()
    assert title.split()[:5] == ["table", "state", "mode", "schedule", "lag"]
    assert big.split()[:3] == ["big", "SUSPENDED", "AUTO"]
    assert sales.split()[:4] == ["sales", "ACTIVE", "AUTO", "1m"]
    assert sales.endswith("stale")


def test_status_as_json(run: Run, catalog: Writer, folder: Path) -> None:
    rows = run("status", "--lake", folder, "--json").json
    assert [row["name"] for row in rows] == ["big", "sales"]
    assert (rows[1]["stale"], rows[1]["epoch"], rows[1]["sources"]) == (True, 2, ["orders"])
    assert [row["name"] for row in run("status", "SALES", "--lake", folder, "--json").json] == [
        "sales"
    ]


def test_status_of_one_table_tells_everything(run: Run, catalog: Writer, folder: Path) -> None:
    out = run("status", "sales", "--lake", folder).out
    assert "query" in out
    assert "SELECT id FROM orders" in out


def test_status_tells_failures(run: Run, catalog: Writer, folder: Path) -> None:
    table = catalog.find("default.sales")
    assert table is not None
    catalog.update_table(table.id, consecutive_errors=2, last_error="division by zero\ndetail: x")
    assert "failed 2 times: division by zero" in run("status", "--lake", folder).out


def test_status_tells_what_keeps_a_table_from_its_target(
    run: Run, catalog: Writer, folder: Path
) -> None:
    table = catalog.find("default.sales")
    assert table is not None
    catalog.update_table(table.id, work_seconds=50.0)
    said = "with the present plan it misses its target by about 40 s: refreshing takes 50 s"
    assert said in run("status", "--lake", folder).out
    assert said in run("status", "sales", "--lake", folder).out


def test_history(run: Run, catalog: Writer, folder: Path) -> None:
    done = run("history", "--lake", folder)
    assert len(done.out.splitlines()) == 3
    assert "OK" in done.out
    assert "DIFFERENTIAL" in done.out
    assert "1,200" in done.out
    assert "few rows changed" in done.out
    assert len(run("history", "sales", "--lake", folder).out.splitlines()) == 2
    assert len(run("history", "-n", "1", "--lake", folder).out.splitlines()) == 2
    rows = run("history", "sales", "--lake", folder, "--json").json
    assert (rows[0]["rows_inserted"], rows[0]["change_rows"]) == (1200, 9)


def test_graph(run: Run, catalog: Writer, folder: Path) -> None:
    assert run("graph", "--lake", folder).out.splitlines() == [
        "orders", "└─ sales [AUTO, 1m]", "   └─ big [AUTO, SUSPENDED]",
    ]  # fmt: skip
    assert run("graph", "--mermaid", "--lake", folder).out.startswith("graph LR")
    drawn = run("graph", "--json", "--lake", folder).json
    assert {"source": "sales", "target": "big"} in drawn["edges"]


def test_the_cycles_and_how_they_ended(run: Run, catalog: Writer, folder: Path) -> None:
    assert run("scc-status", "--lake", folder).out == "no cycles\n"
    assert run("scc-status", "--lake", folder, "--json").json == []
    holder, p, q = cycle_of(build_table)
    catalog.replace_tables([], [holder, p, q])
    attempt = catalog.start_attempt(holder.id, Owner.current())
    catalog.finish_attempt(
        attempt, Outcome.OK, action=RefreshAction.DIFFERENTIAL, phases={"iterations": 4.0},
        seconds=1.5,
    )  # fmt: skip
    title, line = run("scc-status", "--lake", folder).out.splitlines()
    assert title.split()[:3] == ["tables", "iterations", "converged"]
    assert line.split()[:5] == ["p,", "q", "4", "yes", "DIFFERENTIAL"]
    attempt = catalog.start_attempt(holder.id, Owner.current())
    catalog.finish_attempt(attempt, Outcome.FAILED, error="it goes on and on")
    (told,) = run("scc-status", "--lake", folder, "--json").json
    assert (told["members"], told["iterations"], told["converged"]) == (["p", "q"], 4, False)
    assert told["error"] == "it goes on and on"
    assert "it goes on and on" in run("scc-status", "--lake", folder).out


def test_the_groups_of_diamonds(run: Run, catalog: Writer, folder: Path) -> None:
    assert run("diamond-groups", "--lake", folder).out == "no diamonds\n"
    catalog.add_table(build_table("left"))
    catalog.add_table(build_table("right"))
    options = {"diamond_consistency": "atomic"}
    catalog.add_table(build_table("joined", reads=("left", "right"), options=options))
    title, *lines = run("diamond-groups", "--lake", folder).out.splitlines()
    assert title.split()[:2] == ["group", "table"]
    assert [line.split()[:4] for line in lines] == [
        ["1", "left", "no", "atomic"], ["1", "right", "no", "atomic"],
        ["1", "joined", "yes", "atomic"],
    ]  # fmt: skip
    assert all(line.endswith("orders") for line in lines)
    rows = run("diamond-groups", "--lake", folder, "--json").json
    assert [row["name"] for row in rows if row["is_convergence"]] == ["joined"]


def test_history_has_receipts(run: Run, catalog: Writer, folder: Path) -> None:
    table = catalog.find("default.sales")
    assert table is not None
    attempt = catalog.start_attempt(table.id, Owner.current())
    catalog.finish_attempt(
        attempt, Outcome.OK, seconds=2.0, action=RefreshAction.FULL, phases={"planning": 0.25},
        predicted={"differential": 5.0, "full": 1.5, "model": 1.0},
    )  # fmt: skip
    title, row = run("history", "sales", "-n", "1", "--lake", folder).out.splitlines()
    assert "time  pred. diff  pred. full" in title
    assert "2.0 s       5.0 s       1.5 s" in row
    details = run("history", "sales", "-n", "1", "--details", "--lake", folder).out
    assert "planning 0.250" in details


def test_stats(run: Run, catalog: Writer, folder: Path) -> None:
    title, big, sales = run("stats", "--lake", folder, "--window", "all").out.splitlines()
    assert title.split()[:2] == ["table", "failed"]
    assert sales.endswith("DIFFERENTIAL 1")
    assert "1,200" in sales
    assert big.startswith("big")
    (row,) = run("stats", "sales", "-w", "365d", "--lake", folder, "--json").json
    assert (row["refreshes"], row["p95_seconds"], row["target_seconds"]) == (1, 0.25, 60.0)
    assert "p95 seconds" in run("stats", "sales", "--lake", folder).out
    assert run("stats", "--window", "soon", "--lake", folder).code == 1


def test_alerts(run: Run, catalog: Writer, folder: Path) -> None:
    assert run("alerts", "--lake", folder).out == "no alerts\n"
    for kind in (AlertKind.STALE, AlertKind.FRESH, AlertKind.REFRESH_FAILED, AlertKind.STALE):
        catalog.record_alert(Alert(kind, "sales", f"said of {kind}", {"lag": 2}))
    title, *rows = run("alerts", "--lake", folder).out.splitlines()
    assert title.split() == ["at", "(UTC)", "kind", "table", "over", "(UTC)", "message"]
    assert [row.split()[2] for row in rows] == ["stale", "refresh_failed", "fresh", "stale"]
    assert rows[0].endswith("sales  lasts                said of stale")
    found = run("alerts", "SALES", "--kind", "stale", "-n", "1", "--lake", folder, "--json").json
    assert [(a["kind"], a["table"], a["facts"]) for a in found] == [("stale", "sales", {"lag": 2})]
    assert len(run("alerts", "--lasting", "--lake", folder, "--json").json) == 1
    assert run("alerts", "big", "--lake", folder).out == "no alerts\n"


def test_a_wrong_kind_of_alert_is_refused(run: Run, catalog: Writer, folder: Path) -> None:
    done = run("alerts", "--kind", "late", "--lake", folder)
    assert done.code == 1
    assert "'late' is not a kind of alert" in done.err


def test_a_mistyped_name_is_suggested(run: Run, catalog: Writer, folder: Path) -> None:
    for command in ("status", "history", "stats", "alerts"):
        done = run(command, "salse", "--lake", folder)
        assert done.code == 1
        assert done.err.splitlines() == [
            "error: stream table salse does not exist",
            "hint: did you mean sales? there are: big, sales",
        ]


def test_an_empty_catalog(run: Run, catalog: Writer, folder: Path) -> None:
    catalog.remove_tables([table.id for table in catalog.tables()])
    assert run("status", "--lake", folder).out == "no stream tables yet\n"
    assert run("status", "--lake", folder, "--json").json == []
    assert run("history", "--lake", folder).out == "no refresh yet\n"
    assert run("graph", "--lake", folder).out == "(no stream tables)\n"


_PROGRAM = """
import sys
from runnel.cli.main import app
*arguments, heavy = sys.argv[1:]
try:
    app(arguments)
except SystemExit as end:
    assert not end.code, end.code
found = set(heavy.split()) & set(sys.modules)
assert not found, found
"""
_HEAVY = "pyspark py4j networkx sqlglot rich deltalake pyarrow"
_LIBRARIES = "import typer, sqlalchemy, psycopg"
# Where the libraries take a fifth of a second, as on a quiet machine, the command takes half of one.
_TIMES = 2.5


def _assert_quick(heavy: str, *arguments: object) -> None:
    """The whole command against the import of what it may import, in the same moments.

    Both take more of the processor beside other programs, which share its caches: several tries,
    until the better ones of both are quick.
    """
    command, libraries = [], []
    while len(command) < 10 and (not command or min(command) >= _TIMES * min(libraries)):
        libraries.append(_processor_time(_LIBRARIES))
        command.append(_processor_time(_PROGRAM, *arguments, heavy))
    assert min(command) < _TIMES * min(libraries)


def _processor_time(program: str, *arguments: object) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        check=True, capture_output=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("command", ["status", "history", "stats", "alerts", "graph"])
def test_nothing_heavy_is_imported_and_it_is_quick(
    catalog: Writer, folder: Path, command: str
) -> None:
    # There is nothing to wait for, so that this is all of it.
    _assert_quick(f"{_HEAVY} sqlalchemy", command, "--lake", folder)


@pytest.mark.postgres
def test_status_from_a_database_is_quick_too(folder: Path, postgres_url: str) -> None:
    """Apart from what the interpreter and its libraries take to be there; wall time, of the best."""
    with open_catalog(postgres_url) as writer:
        add_tables(writer)
    (folder / "_runnel").mkdir(parents=True)
    place = named_place(folder, postgres_url)
    times = []
    for _ in range(5):
        start = perf_counter()
        with reading(place) as reader:
            assert len(seeing.status(reader, Settings())) == 2
        times.append(perf_counter() - start)
    assert min(times) < 0.5


@pytest.mark.postgres
def test_the_whole_command_is_quick_with_a_database_too(folder: Path, postgres_url: str) -> None:
    with open_catalog(postgres_url) as writer:
        add_tables(writer)
    folder.mkdir()
    place = ("--lake", folder, "--catalog", postgres_url)
    _assert_quick(_HEAVY, "status", *place)


def test_suspend_and_resume(run: Run, catalog: Writer, folder: Path) -> None:
    assert run("suspend", "sales", "--lake", folder).out == "suspended sales\n"
    assert run("resume", "sales", "BIG", "--lake", folder).out == "resumed sales\nresumed big\n"
    assert [row["state"] for row in run("status", "--lake", folder, "--json").json] == [
        "ACTIVE"
    ] * 2
    done = run("resume", "salse", "--lake", folder)
    assert (done.code, "did you mean sales?" in done.err) == (1, True)


def test_a_damaged_catalog_is_told(run: Run, catalog: Writer, folder: Path) -> None:
    catalog.close()
    for end in ("-wal", "-shm"):
        (folder / "_runnel" / f"catalog.db{end}").unlink(missing_ok=True)
    (folder / "_runnel" / "catalog.db").write_bytes(b"no database at all " * 500)
    for command in ("status", "history", "stats", "alerts", "graph", "refresh"):
        done = run(command, "--lake", folder)
        assert (done.code, done.out) == (1, "")
        assert "is damaged" in done.err
        assert "runnel doctor --rebuild" in done.err
    assert "runnel doctor --rebuild" in run("doctor", "--lake", folder).out
