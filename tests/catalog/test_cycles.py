"""Cycles as the catalog knows them: replaced in one transaction, shown under the members' names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from runnel.catalog import CYCLE, IN_CYCLE, READS, StreamTable, Writer
from runnel.errors import AlreadyExists, InUse, NotFound
from runnel.model.alerts import Alert, AlertKind
from runnel.model.names import TableName
from runnel.model.refresh import Outcome, RefreshAction
from runnel.model.settings import Settings
from runnel.schedule import seeing
from runnel.schedule.cycles import components, group_of, is_cycle, logical_graph, to_drop

Make = Callable[..., StreamTable]
_HOLDER = "__cycle_1"


def _cycle(make: Make) -> tuple[StreamTable, StreamTable, StreamTable]:
    """What `p` and `q`, which read each other, are in the catalog."""
    members = [{"name": ["default", n], "text": "", "columns": [], "is_set": True} for n in "pq"]
    holder = make(_HOLDER, options={CYCLE: json.dumps(members)}, schedule=None)

    def member(name: str, other: str) -> StreamTable:
        reads = json.dumps([[f"default.{other}", "stream", ["default", other]]])
        return make(name, reads=(_HOLDER,), options={IN_CYCLE: holder.name.key, READS: reads})

    return holder, member("p", "q"), member("q", "p")


def test_tables_are_replaced_together(catalog: Writer, make_table: Make) -> None:
    old = make_table("p")
    ended = make_table("__cycle_0")
    for table in (old, ended):
        catalog.add_table(table)
    holder, p, q = _cycle(make_table)
    p = replace(p, id=old.id)
    catalog.replace_tables([old.id, ended.id], [holder, p, q])
    assert catalog.tables() == (holder, p, q)
    assert [t.name.name for t in catalog.dependents(holder.id)] == ["p", "q"]


def test_nothing_is_replaced_when_one_cannot_be(catalog: Writer, make_table: Make) -> None:
    old, other = make_table("p"), make_table("q")
    for table in (old, other):
        catalog.add_table(table)
    holder, p, q = _cycle(make_table)
    with pytest.raises(AlreadyExists):
        catalog.replace_tables([old.id], [holder, replace(p, id=old.id), q])
    with pytest.raises(NotFound):
        catalog.replace_tables([old.id], [replace(p, id=old.id)])
    assert catalog.tables() == (old, other)


def test_the_table_behind_a_cycle_is_not_shown(catalog: Writer, make_table: Make) -> None:
    holder, p, q = _cycle(make_table)
    catalog.replace_tables([], [holder, p, q])
    assert [s.name for s in seeing.status(catalog, Settings())] == ["p", "q"]
    assert seeing.status(catalog, Settings())[0].sources == ("q",)
    drawn = seeing.graph(catalog)
    assert [n.name for n in drawn.nodes] == ["p", "q"]
    assert [str(e) for e in drawn.edges] == ["q -> p", "p -> q"]
    assert str(drawn)
    with pytest.raises(NotFound, match="does not exist") as caught:
        seeing.find_table(catalog, TableName.parse(_HOLDER))
    assert _HOLDER not in (caught.value.hint or "")


def test_rounds_and_errors_are_told_of_the_cycle(catalog: Writer, make_table: Make) -> None:
    holder, p, q = _cycle(make_table)
    catalog.replace_tables([], [holder, p, q])
    assert seeing.cycles(catalog)[0].converged is None
    attempt = catalog.start_attempt(holder.id, "me")
    catalog.finish_attempt(
        attempt, Outcome.OK, action=RefreshAction.DIFFERENTIAL, phases={"iterations": 4.0}
    )
    assert [(c.members, c.iterations, c.converged) for c in seeing.cycles(catalog)] == [
        (("p", "q"), 4, True)
    ]
    assert [(h.name, h.iterations) for h in seeing.history(catalog)] == [("cycle of p, q", 4)]
    attempt = catalog.start_attempt(holder.id, "me")
    catalog.finish_attempt(attempt, Outcome.FAILED, error="it goes on and on")
    catalog.update_table(holder.id, last_error="it goes on and on", consecutive_errors=1)
    assert seeing.cycles(catalog)[0].converged is False
    assert seeing.status(catalog, Settings(), "default.p")[0].last_error == "it goes on and on"


def test_a_member_tells_the_history_and_the_alerts_of_its_cycle(
    catalog: Writer, make_table: Make
) -> None:
    holder, p, q = _cycle(make_table)
    catalog.replace_tables([], [holder, p, q])
    for _ in range(2):
        for table in (holder, p, q):
            attempt = catalog.start_attempt(table.id, "me")
            catalog.finish_attempt(attempt, Outcome.OK, action=RefreshAction.DIFFERENTIAL)
        catalog.record_alert(Alert(AlertKind.REFRESH_FAILED, holder.label, "it goes on and on"))
        catalog.record_alert(Alert(AlertKind.REFRESH_FAILED, "q", "1 / 0"))
    told = [h.name for h in seeing.history(catalog, "default.p")]
    assert told == ["p", "cycle of p, q"] * 2
    assert [h.name for h in seeing.history(catalog, "default.p", 3)] == told[:3]
    heard = {name: seeing.alerts(catalog, TableName.parse(name)) for name in "pq"}
    assert [a.table for a in heard["p"]] == ["cycle of p, q"] * 2
    assert [a.table for a in heard["q"]] == ["q", "cycle of p, q"] * 2
    assert len(seeing.alerts(catalog, TableName.parse("q"), limit=3)) == 3


def test_components_in_order(make_table: Make) -> None:
    holder, p, q = _cycle(make_table)
    tables = (holder, p, q, make_table("after", reads=("p",)), make_table("before"))
    graph = logical_graph(tables)
    found = components(graph)
    assert [c for c in found if is_cycle(graph, c)] == [["default.p", "default.q"]]
    assert found.index(["default.after"]) > found.index(["default.p", "default.q"])
    graph.add_edge("default.before", "default.before")
    assert is_cycle(graph, ["default.before"])
    assert group_of(tables, p) == [p, q]


def test_what_goes_with_a_member(make_table: Make) -> None:
    holder, p, q = _cycle(make_table)
    tables = (holder, p, q, make_table("after", reads=("q",)))
    with pytest.raises(InUse, match="q"):
        to_drop(tables, p, cascade=False)
    gone = to_drop(tables, p, cascade=True)
    assert {t.name.name for t in gone} == {_HOLDER, "p", "q", "after"}
    assert to_drop(tables, tables[3], cascade=False) == (tables[3],)
