"""kill -9 at every named place: afterwards each table verifies and the next refresh is differential.

What the first refresh after a kill does says whether the work that was killed is lost or done: what
was committed is taken over, and what was not is done again, differentially.
"""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from crash.victim import MEANS, OTHER, PARTED, QUERY, RING
from crash.victims import Victims
from kit.connect_server import ConnectServer
from kit.lake_backend import arrow_rows
from runnel.api import Lake
from runnel.refresh.lifecycle import orphans
from runnel.refresh.workspace import Workspace
from runnel.schedule.health import repair

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_SOURCE = Path(__file__).parent.parent.parent / "src" / "runnel"
_GROUP = {
    "sums": "SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust",
    "counts": "SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust",
    "both": "SELECT s.cust, s.total, c.n FROM sums s JOIN counts c ON s.cust = c.cust",
}

POINTS = {
    "refresh": (
        "refresh.before_plan", "refresh.before_append", "trace.append.written",
        "trace.append.committed", "refresh.after_append", "refresh.before_record",
        "refresh.after_record",
    ),
    "full": ("trace.replace.written", "trace.replace.committed"),
    "reinitialize": (
        "refresh.before_append", "trace.replace.committed", "refresh.after_record",
    ),
    "create": (
        "trace.replace.written", "trace.replace.committed", "create.before_catalog",
        "definition.before_copy", "create.after_catalog",
    ),
    "alter": (
        "trace.replace.written", "alter.before_catalog", "definition.before_copy",
        "alter.after_catalog",
    ),
    "drop": ("drop.before_catalog", "definition.removed", "drop.after_catalog"),
    "compact": ("trace.compact.written", "trace.compact.committed"),
    "tidy": ("trace.compact.committed",),
    "merge": ("trace.merge.written", "trace.merge.committed"),
    "together": ("switch.before_catalog", "switch.after_catalog"),
    "group": ("group.appended", "group.before_switch", "group.after_switch"),
    "group_given_up": ("trace.withdrawn",),
    "parts": ("trace.append.written", "refresh.before_record"),
}  # fmt: skip
_DONE = {
    ("refresh", "trace.append.committed"), ("refresh", "refresh.after_append"),
    ("refresh", "refresh.before_record"), ("refresh", "refresh.after_record"),
    ("reinitialize", "refresh.after_record"), ("full", "trace.replace.committed"),
    ("reinitialize", "trace.replace.committed"), ("create", "create.after_catalog"),
    ("alter", "alter.after_catalog"), ("tidy", "trace.compact.committed"),
    ("together", "switch.after_catalog"), ("group", "group.after_switch"),
    ("create", "definition.before_copy"), ("alter", "definition.before_copy"),
}  # fmt: skip
_LEFT_BEHIND = {
    ("create", "trace.replace.written"), ("create", "create.before_catalog"),
    ("create", "trace.replace.committed"), ("alter", "trace.replace.written"),
    ("alter", "definition.before_copy"),
    ("alter", "alter.before_catalog"), ("alter", "alter.after_catalog"),
    ("together", "switch.before_catalog"), ("drop", "drop.after_catalog"),
}  # fmt: skip
_STARTING_OVER = (
    "trace.replace.committed",
    "start_over.before_catalog",
    "start_over.after_catalog",
)
# What another case shows as well.
_SLOW = {
    ("refresh", "refresh.after_append"), ("refresh", "refresh.after_record"),
    ("create", "trace.replace.written"),
    ("create", "trace.replace.committed"), ("create", "create.after_catalog"),
    ("alter", "trace.replace.written"), ("alter", "definition.before_copy"),
    ("merge", "trace.merge.committed"), ("parts", "trace.append.written"),
    ("group", "group.before_switch"), ("together", "switch.before_catalog"),
}  # fmt: skip
_CASES = [(operation, point) for operation, points in POINTS.items() for point in points]


def test_every_point_in_the_code_is_tried() -> None:
    text = "".join(p.read_text() for p in _SOURCE.rglob("*.py"))
    plain = set(re.findall(r'reach\("([\w.]+)"\)', text))
    composed = {
        f"{prefix}.{end}"
        for prefix in ("trace.append", "trace.replace", "trace.compact")
        for end in ("written", "committed")
    }
    assert plain | composed == {point for _, point in _CASES} | set(_STARTING_OVER)


@pytest.fixture(scope="module")
def victims(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victims]:
    with Victims(tmp_path_factory.mktemp("victims") / "victim.log") as made:
        yield made


@pytest.fixture(scope="module")
def template(server: ConnectServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a change that is not refreshed yet; beside it copies to start each case from.

    `all` has all tables, `one` that which most cases are about: whoever opens it names them all.
    """
    folder = tmp_path_factory.mktemp("kill") / "lake"
    with server.lake(folder, inner_trace_rows=0) as lake:
        _make_orders(folder)
        lake.create_stream_table("doomed", QUERY, refresh_mode="DIFFERENTIAL")
        lake.create_stream_table("doomed_full", QUERY, refresh_mode="FULL")
        lake.create_stream_table("parted", PARTED, refresh_mode="DIFFERENTIAL")
        for name, query in _GROUP.items():
            lake.create_stream_table(
                name, query, refresh_mode="DIFFERENTIAL", diamond_consistency="atomic"
            )
        _append(folder, [(4, 2, "1.00")])
        lake.refresh()
        _append(folder, [(5, 1, "2.50"), (6, 3, "4.00")])
    shutil.copytree(folder, folder.with_name("all"))
    with server.lake(folder) as lake:
        for name in (*reversed(_GROUP), "parted", "doomed_full"):
            lake.drop_stream_table(name)
    shutil.copytree(folder, folder.with_name("one"))
    return folder


@pytest.mark.parametrize(
    ("operation", "point"),
    [pytest.param(*c, marks=[pytest.mark.slow] if c in _SLOW else []) for c in _CASES],
)
def test_killed(
    operation: str, point: str, server: ConnectServer, template: Path, victims: Victims
) -> None:
    folder = template
    has_others = operation in ("full", "parts", "group", "group_given_up")
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("all" if has_others else "one"), folder)
    if operation == "compact":
        with server.lake(folder) as lake:
            lake.refresh("doomed")
        _append(folder, [(7, 1, "3.00")])
    if operation == "reinitialize":
        _make_orders(folder, without="id")
    _kill(server, victims, folder, operation, point)
    with server.lake(folder) as lake:
        _check(lake, folder, operation, point)


def _kill(
    server: ConnectServer, victims: Victims, folder: Path, operation: str, point: str
) -> None:
    environment = {"RUNNEL_FAILPOINT": point, "RUNNEL_MASTER": server.url}
    code, told = victims.run(environment, folder, operation)
    assert code == -signal.SIGKILL, f"it did not die at {point}: {told[-2000:]}"


@pytest.fixture(scope="module")
def ring(server: ConnectServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a cycle of two tables and a change that is not refreshed yet; and a copy."""
    folder = tmp_path_factory.mktemp("ring") / "lake"
    with server.lake(folder, allow_circular=True) as lake:
        # Lakes on one server have their names in common.
        _make_orders(folder, name="pairs")
        lake.create_stream_tables(RING, refresh_mode="DIFFERENTIAL")
        _append(folder, [(4, 2, "1.00")], "pairs")
        lake.refresh()
        _append(folder, [(5, 4, "2.50")], "pairs")
    shutil.copytree(folder, folder.with_name("pristine"))
    return folder


@pytest.mark.parametrize(
    "point",
    [
        "group.appended",
        pytest.param("refresh.before_record", marks=pytest.mark.slow),
        pytest.param("group.before_switch", marks=pytest.mark.slow),
    ],
)
def test_killed_between_the_rows_of_a_cycle_and_what_its_tables_show(
    point: str, server: ConnectServer, ring: Path, victims: Victims
) -> None:
    """The table behind the cycle has its new rows; the members are still seen as they were."""
    shutil.rmtree(ring)
    shutil.copytree(ring.with_name("pristine"), ring)
    _kill(server, victims, ring, "cycle", point)
    with server.lake(ring, allow_circular=True) as lake:
        before = _seen_in_ring(lake)
        assert {row[0] for row in before} == {1, 2, 3, 4}
        assert {result.name: result.action for result in lake.refresh()} == dict.fromkeys(
            RING, "DIFFERENTIAL"
        )
        assert _seen_in_ring(lake) - before == {(5, 4), (5, 2), (5, 1)}


@pytest.fixture(scope="module")
def retyped(server: ConnectServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a table whose source has another type by now: it must keep something else."""
    folder = tmp_path_factory.mktemp("retyped") / "lake"
    with server.lake(folder) as lake:
        _make_orders(folder, name="marks")
        lake.create_stream_table("means", MEANS, refresh_mode="DIFFERENTIAL")
    _make_orders(folder, name="marks", columns={**_COLUMNS, "id": "double"})
    _append(folder, [(10, 2, "1.00")], "marks")
    shutil.copytree(folder, folder.with_name("pristine"))
    return folder


@pytest.mark.parametrize("point", _STARTING_OVER)
def test_killed_while_a_table_starts_over_in_other_storage(
    point: str, server: ConnectServer, retyped: Path, victims: Victims
) -> None:
    shutil.rmtree(retyped)
    shutil.copytree(retyped.with_name("pristine"), retyped)
    _kill(server, victims, retyped, "start_over", point)
    is_done = point == "start_over.after_catalog"
    with server.lake(retyped) as lake:
        seen = {tuple(row) for row in lake.table("means").collect()}
        assert seen == {(1, 1.5), (2, 6.5 if is_done else 3.0)}
        workspace = lake._workspace
        assert orphans(workspace)
        assert lake.refresh("means").action == ("NO_DATA" if is_done else "REINITIALIZE")
        _append(retyped, [(8, 1, "1.00")], "marks")
        assert lake.refresh("means").action == "DIFFERENTIAL"
        assert lake.verify("means").ok
        repair(workspace)
        _check_storage(workspace)


def _seen_in_ring(lake: Lake) -> set[tuple[int, int]]:
    """The rows of both tables, which are the same at every instant."""
    assert len({lake.status(name).data_timestamp for name in RING}) == 1
    chain, links = ({tuple(row) for row in lake.table(name).collect()} for name in RING)
    assert chain == links
    for name in RING:
        assert lake.verify(name).ok
    return chain


def _check(lake: Lake, folder: Path, operation: str, point: str) -> None:
    if operation.startswith("group"):
        _check_group(lake, is_advanced=point == "group.after_switch")
    names = {t.name for t in lake.status()}
    concerned = [name for name in _concerned(operation) if name in names]
    is_made = operation in ("create", "together") and (operation, point) in _DONE
    assert ("fresh" in names) == is_made
    assert ("doomed" in names) == (point != "drop.after_catalog")
    for name in concerned:
        _check_first(lake, name, operation, point)
    _append(folder, [(8, 1, "1.00"), (9, 9, "1.00")])
    for result in map(lake.refresh, concerned):
        expected = "FULL" if result.name == "doomed_full" else "DIFFERENTIAL"
        assert result.action == expected, str(result)
        verified = lake.verify(result.name)
        assert verified.ok, str(verified)
    workspace = lake._workspace
    assert bool(orphans(workspace)) == ((operation, point) in _LEFT_BEHIND)
    repair(workspace)
    _check_storage(workspace)


def _check_storage(workspace: Workspace) -> None:
    """Nothing is left that belongs to no table, no entry of a log, or an earlier definition."""
    tables = {t.incarnation: t for t in workspace.catalog.tables()}
    assert {p.name for p in workspace.traces_path.iterdir()} == tables.keys()
    for incarnation in tables:
        folder = workspace.traces_path / incarnation
        log = "".join(p.read_text() for p in (folder / "_delta_log").glob("*.json"))
        assert not [p.name for p in folder.glob("run-*") if p.name not in log]
    assert not list(workspace.path.glob("_runnel/scratch/*"))
    definitions = workspace.catalog.definitions
    assert definitions is not None
    copied, bad = definitions.load()
    assert {(t.id, t.query) for t in copied} == {(t.id, t.query) for t in tables.values()}
    assert not bad


def _check_first(lake: Lake, name: str, operation: str, point: str) -> None:
    """The contents are whole before anything is refreshed, and so is what is known of them."""
    is_done = (operation, point) in _DONE
    if operation == "reinitialize" and not is_done:
        # Its source is another table by now: there is nothing to compare the old contents with.
        assert {tuple(row) for row in lake.table(name).collect()} == _OLD
    else:
        assert lake.verify(name).ok, f"{name} after {point}"
    if name == "doomed":
        is_altered = operation == "alter" and (operation, point) in _DONE
        assert lake.status(name).query == (OTHER if is_altered else QUERY)
    first = lake.refresh(name)
    if is_done and name in _worked_on(operation):
        assert first.action == "NO_DATA", str(first)
    elif name == "doomed_full":
        assert first.action == "FULL", str(first)
    else:
        again = "REINITIALIZE" if operation == "reinitialize" else "DIFFERENTIAL"
        assert first.action == again, str(first)


def _worked_on(operation: str) -> tuple[str, ...]:
    """The tables that are an operation's own."""
    match operation:
        case "create":
            return ("fresh",)
        case "together":
            return ("fresh", "below")
        case "full":
            return ("doomed_full",)
        case "parts":
            return ("parted",)  # the kill comes while its part is refreshed
        case "group" | "group_given_up":
            return ("both",)  # and the others with it
    return ("doomed",)


def _concerned(operation: str) -> tuple[str, ...]:
    """The tables that a kill may have reached, some of which may not be there."""
    own = _worked_on(operation)
    return own if own[0] in ("doomed", "doomed_full", "both", "parted") else ("doomed", *own)


def _check_group(lake: Lake, is_advanced: bool) -> None:
    """All of it is seen, or nothing; by the table's own reading and by the view."""
    statuses = [lake.status(name) for name in _GROUP]
    assert {status.epoch for status in statuses} == {3 if is_advanced else 2}
    assert len({status.data_timestamp for status in statuses}) == 1
    for read in (lake.table, lambda name: lake.sql(f"SELECT * FROM {name}")):
        totals = {row["cust"]: row["total"] for row in read("sums").collect()}
        counts = {row["cust"]: row["n"] for row in read("counts").collect()}
        both = {row["cust"]: (row["total"], row["n"]) for row in read("both").collect()}
        assert both == {cust: (totals[cust], counts[cust]) for cust in totals}
        assert sum(counts.values()) == (6 if is_advanced else 4)


def _make_orders(
    folder: Path,
    without: str | None = None,
    name: str = "orders",
    columns: dict[str, str] | None = None,
) -> None:
    path = folder / "warehouse" / name
    rows = arrow_rows(columns or _COLUMNS, [(1, 1, "5.00"), (2, 1, "7.50"), (3, 2, "1.25")])
    shutil.rmtree(path, ignore_errors=True)
    write_deltalake(
        str(path), rows.drop_columns([without] if without else []),
        configuration={"delta.enableChangeDataFeed": "true"},
    )  # fmt: skip


def _append(folder: Path, rows: list[tuple[object, ...]], name: str = "orders") -> None:
    table = DeltaTable(str(folder / "warehouse" / name))
    kinds = {field.name: field.type.type for field in table.schema().fields}
    columns = {**_COLUMNS, **({"id": "double"} if kinds.get("id") == "double" else {})}
    write_deltalake(table, arrow_rows(columns, rows).select(list(kinds)), mode="append")


_COLUMNS = {"id": "bigint", "cust": "int", "amount": "decimal(12,2)"}
_OLD = {(1, Decimal("12.50"), 2), (2, Decimal("2.25"), 2)}
