"""Definitions are copied to files, from which a catalog can be built again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from runnel.catalog import Definitions, StreamTable, Writer
from runnel.errors import InUse
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode, TableState
from runnel.model.schedule import Schedule
from runnel.model.views import Resolution, View

Make = Callable[..., StreamTable]


@pytest.fixture
def definitions(catalog: Writer, tmp_path: Path) -> Definitions:
    definitions = Definitions(tmp_path / "definitions")
    catalog.copy_definitions(definitions)
    return definitions


def test_files_follow_the_catalog(
    catalog: Writer, definitions: Definitions, make_table: Make, frontier: object
):
    view = View(TableName.parse("v"), True, "SELECT 1", "default", (), (), "s")
    table = make_table(
        "Mart.`my Sales`", frontier=frontier, comment="it's ünïcode",
        resolution=Resolution("SELECT 2 FROM t", (view,), True), options={"dialect": "postgres"},
    )  # fmt: skip
    catalog.add_table(table)
    assert definitions.load() == ([table], [])
    catalog.update_table(table.id, schedule=Schedule.parse("5m"), state=TableState.SUSPENDED)
    assert definitions.load()[0] == list(catalog.tables())
    renewed = replace(table, query="SELECT 2", mode=RefreshMode.FULL)
    catalog.redefine_table(renewed)
    assert definitions.load()[0] == [renewed]
    catalog.remove_tables([table.id])
    assert definitions.load() == ([], [])


def test_a_refused_drop_keeps_the_file(catalog: Writer, definitions: Definitions, make_table: Make):
    sales = make_table()
    catalog.add_table(sales)
    catalog.add_table(make_table("big", reads=("sales",)))
    with pytest.raises(InUse):
        catalog.remove_tables([sales.id])
    assert sales.id in definitions.ids()


def test_running_does_not_write_files(
    catalog: Writer, definitions: Definitions, make_table: Make, monkeypatch: pytest.MonkeyPatch
):
    table = make_table()
    catalog.add_table(table)
    monkeypatch.setattr(Definitions, "save", lambda *_: pytest.fail("a file was written"))
    catalog.update_table(table.id, consecutive_errors=1, last_error="no")


def test_an_older_lake_gets_its_files_at_once(catalog: Writer, tmp_path: Path, make_table: Make):
    table = make_table()
    catalog.add_table(table)
    catalog.copy_definitions(Definitions(tmp_path / "later"))
    assert Definitions(tmp_path / "later").load() == ([table], [])


def test_a_file_may_be_older_than_a_note_about_running(
    catalog: Writer, definitions: Definitions, make_table: Make, tmp_path: Path
):
    table = make_table()
    catalog.add_table(table)
    file = tmp_path / "definitions" / f"{table.id}.json"
    known = json.loads(file.read_text())
    file.write_text(json.dumps({k: v for k, v in known.items() if k != "wait_seconds"}))
    assert definitions.load() == ([table], [])


def test_what_is_read_comes_first(definitions: Definitions, make_table: Make):
    names = ["a", "b", "c", "d"]
    chain = [make_table(n, reads=tuple(names[i + 1 : i + 2])) for i, n in enumerate(names)]
    cycle = [make_table("x", reads=("y",)), make_table("y", reads=("x",))]
    definitions.save(*chain, *cycle)
    found = [str(t.name) for t in definitions.load()[0]]
    assert found[:4] == ["d", "c", "b", "a"]
    assert sorted(found[4:]) == ["x", "y"]


def test_of_one_name_the_newest_counts(definitions: Definitions, make_table: Make):
    old = make_table()
    new = make_table(altered_at=old.altered_at + timedelta(days=1))
    definitions.save(new, old)
    assert definitions.load()[0] == [new]


def test_a_file_that_cannot_be_read_is_named(
    definitions: Definitions, make_table: Make, tmp_path: Path
):
    table = make_table()
    definitions.save(table)
    (tmp_path / "definitions" / "bad.json").write_text('{"id": 1}')
    (tmp_path / "definitions" / "half.json").write_text("{")
    assert definitions.load() == ([table], ["bad.json", "half.json"])


def test_a_place_that_takes_no_files_stops_nobody(
    catalog: Writer, tmp_path: Path, make_table: Make, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").write_text("")
    catalog.copy_definitions(Definitions(tmp_path / "file" / "definitions"))
    catalog.add_table(make_table())
    assert len(catalog.tables()) == 1
    assert "could not be copied" in caplog.text


def test_definitions_of_another_catalog_are_unknown(
    catalog: Writer, definitions: Definitions, make_table: Make
):
    known, lost = make_table(), make_table("lost")
    catalog.add_table(known)
    definitions.save(lost)
    assert catalog.unknown_definitions() == [lost]
    definitions.remove([known.id])
    assert catalog.copy_missing() == ["sales"]
    assert catalog.copy_missing() == []
    definitions.save(replace(known, query="SELECT 0"))
    assert catalog.copy_missing() == ["sales"], "killed before the new one was written"
    assert known in definitions.load()[0]
    assert known.id in definitions.ids()
