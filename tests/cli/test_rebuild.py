"""A damaged or deleted catalog is made anew from the definitions and the traces."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from cli.conftest import Run
from runnel.catalog import Definitions, StreamTable, Writer, open_catalog
from runnel.lake.commits import TraceCommit
from runnel.model.frontier import Frontier, Pin
from runnel.model.refresh import TableState

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def tables(catalog: Writer, folder: Path) -> dict[str, StreamTable]:
    """`sales` has a trace that is further than its definition's file says; `big` has none."""
    catalog.copy_definitions(Definitions(folder / "_runnel" / "definitions"))
    tables = {str(table.name): table for table in catalog.tables()}
    frontier = Frontier({"default.orders": Pin("delta", "d", 9)}, NOW)
    state = TraceCommit(0, 7, 0, {"frontier": frontier.to_json()})
    write_deltalake(
        folder / "_runnel" / "traces" / tables["sales"].incarnation,
        pa.table({"__key": [1], "__weight": [1], "__epoch": [7], "c0": [5]}),
        commit_properties=CommitProperties(custom_metadata={"userMetadata": state.to_json()}),
    )
    catalog.close()
    return tables


def lose(folder: Path, damage: bytes | None) -> None:
    for file in (folder / "_runnel").glob("catalog.db*"):
        file.unlink()
    if damage is not None:
        (folder / "_runnel" / "catalog.db").write_bytes(damage)


@pytest.mark.parametrize("damage", [b"no database at all " * 500, None])
def test_a_lost_catalog_is_built_again(
    run: Run, tables: dict[str, StreamTable], folder: Path, damage: bytes | None
) -> None:
    lose(folder, damage)
    found = run("doctor", "--rebuild", "--lake", folder, "--json").json["findings"]
    (rebuilt,) = (f for f in found if f["check"] == "rebuild")
    assert rebuilt["result"] == "fixed"
    assert rebuilt["said"].startswith("2 tables taken in: sales, big")
    assert "to be filled by the next refresh: big" in rebuilt["said"]
    with open_catalog(f"sqlite:///{folder}/_runnel/catalog.db") as catalog:
        sales, big = catalog.find("default.sales"), catalog.find("default.big")
        assert [str(b.name) for b in catalog.base_tables()] == ["orders"]
    assert sales is not None
    assert big is not None
    assert (sales.epoch, sales.trace_version) == (7, 0)
    assert sales.frontier is not None
    assert sales.frontier.pins["default.orders"].version == 9
    assert (sales.id, sales.query, sales.schedule) == (
        tables["sales"].id, tables["sales"].query, tables["sales"].schedule
    )  # fmt: skip
    assert (big.epoch, big.frontier, big.state) == (0, None, TableState.UNINITIALIZED)
    kept = list((folder / "_runnel").glob("catalog.db.damaged-*"))
    assert [k.read_bytes() for k in kept] == ([] if damage is None else [damage])


def test_a_sound_catalog_is_left_alone(
    run: Run, tables: dict[str, StreamTable], folder: Path
) -> None:
    with open_catalog(f"sqlite:///{folder}/_runnel/catalog.db") as catalog:
        before = catalog.tables(), catalog.history()
    found = run("doctor", "--rebuild", "--lake", folder, "--json").json["findings"]
    assert found[0]["said"] == "0 tables taken in: none"
    with open_catalog(f"sqlite:///{folder}/_runnel/catalog.db") as catalog:
        assert (catalog.tables(), catalog.history()) == before


def test_a_new_catalog_does_not_let_the_old_tables_be_removed(
    run: Run, tables: dict[str, StreamTable], folder: Path
) -> None:
    lose(folder, None)
    open_catalog(f"sqlite:///{folder}/_runnel/catalog.db").close()
    found = {
        f["check"]: f for f in run("doctor", "--fix", "--lake", folder, "--json").json["findings"]
    }
    assert found["definitions"]["result"] == "problem"
    assert found["definitions"]["fix"] == "runnel doctor --rebuild"
    assert (folder / "_runnel" / "traces" / tables["sales"].incarnation).is_dir()
    assert run("doctor", "--rebuild", "--lake", folder).out.count("taken in: sales, big") == 1


def test_without_definitions_there_is_nothing_to_build_from(
    run: Run, catalog: Writer, folder: Path
) -> None:
    done = run("doctor", "--rebuild", "--lake", folder)
    assert done.code == 1
    assert "no definitions" in done.out


def test_a_bad_definition_is_named_and_the_others_are_taken(
    run: Run, tables: dict[str, StreamTable], folder: Path
) -> None:
    lose(folder, b"x" * 5000)
    file = folder / "_runnel" / "definitions" / f"{tables['sales'].id}.json"
    file.write_text(json.dumps({"id": "sales"}))
    found = run("doctor", "--rebuild", "--lake", folder, "--json").json["findings"]
    assert found[0]["result"] == "problem"
    assert file.name in found[0]["said"]
    assert "big: stream table sales does not exist" in found[0]["said"]
