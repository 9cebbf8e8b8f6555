"""Results: typed, readable in a terminal and a notebook, and JSON for scripts."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from runnel.model.alerts import Alert, AlertKind
from runnel.model.frontier import Frontier, Pin
from runnel.model.graph import Graph, GraphEdge, GraphNode
from runnel.model.refresh import Outcome, RefreshAction, RefreshMode, TableState
from runnel.model.results import (
    CompactResult,
    Explanation,
    HistoryEntry,
    RefreshResult,
    TableStatus,
    VerifyResult,
)
from runnel.model.stats import TableStats
from runnel.model.tabular import Record, Rows, duration, text_table

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FRONTIER = Frontier({"default.orders": Pin("delta", "d", 7)}, NOW)
REFRESH = RefreshResult(
    "sales", RefreshAction.DIFFERENTIAL, "3 of 900 rows changed", 3, 1, 4, 0.42, NOW, FRONTIER, 5,
    {"plan": 0.1},
)  # fmt: skip
DIFFERENT = VerifyResult(
    "sales", False, 2, 1, ({"id": 1, "x": Decimal("1.50"), "f": float("nan"), "b": b"\x01"},)
)
GRAPH = Graph(
    (
        GraphNode("orders", "delta"),
        GraphNode("sales", "stream", TableState.ACTIVE, RefreshMode.AUTO, "1m"),
        GraphNode("top", "stream", TableState.SUSPENDED, RefreshMode.FULL),
        GraphNode("stock", "delta"),
    ),
    (GraphEdge("orders", "sales"), GraphEdge("sales", "top"), GraphEdge("stock", "sales")),
)
EVERYTHING: list[Record] = [
    REFRESH,
    DIFFERENT,
    GRAPH,
    TableStatus("sales", TableState.ACTIVE, RefreshMode.AUTO),
    HistoryEntry("sales", NOW, Outcome.RUNNING),
    CompactResult("sales", True, "asked to"),
    Alert(AlertKind.STALE, "sales", "is behind", {"lag_seconds": 3.0}, NOW),
    TableStats("sales", NOW, NOW, actions={"FULL": 1}),
    Explanation("sales", RefreshMode.AUTO, True, "every operator is differentiable"),
]


@pytest.mark.parametrize("result", EVERYTHING, ids=lambda r: type(r).__name__)
def test_every_result_shows_and_serialises(result: Record):
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data == result.to_dict()
    assert str(result)
    assert repr(result) == str(result)
    assert result._repr_html_().startswith(("<table>", "<pre>"))


def test_refresh_result_reads_as_a_sentence():
    expected = "sales: DIFFERENTIAL, +3 -1 rows in 420 ms (3 of 900 rows changed)"
    assert str(REFRESH) == expected


def test_a_receipt_tells_the_cost_of_both_ways():
    predicted = {"differential": 0.5, "full": 2.0, "model": 9.0}
    entry = HistoryEntry("sales", NOW, Outcome.OK, seconds=0.42, predicted=predicted)
    assert entry.receipt == "420 ms (differential 500 ms, full 2.0 s predicted)"
    assert "420 ms (differential 500 ms, full 2.0 s predicted)" in str(Rows([entry]))
    assert REFRESH.receipt == "420 ms"
    assert HistoryEntry("sales", NOW, Outcome.RUNNING).receipt == ""


def test_values_become_json():
    data = REFRESH.to_dict()
    assert data["action"] == "DIFFERENTIAL"
    assert data["data_timestamp"] == "2026-03-01T12:00:00+00:00"
    assert data["frontier"] == FRONTIER.to_json()
    assert DIFFERENT.to_dict()["sample"] == [{"id": 1, "x": "1.50", "f": "nan", "b": "01"}]


def test_verification_is_true_when_equal():
    assert VerifyResult("sales", True)
    assert not DIFFERENT
    assert str(DIFFERENT).startswith("sales: DIFFERENT, 2 rows missing, 1 unexpected\n  {'id': 1")


def test_status_shows_one_field_a_line():
    status = TableStatus(
        "sales", TableState.ACTIVE, RefreshMode.AUTO, lag_seconds=90, sources=("a", "b")
    )
    assert status.lag == "90 s"
    assert "sources              a, b" in str(status)


def test_rows_print_as_an_aligned_table():
    second = RefreshResult("größe 表", RefreshAction.NO_DATA, "nothing changed")
    assert str(Rows([REFRESH, second], ("name", "action", "rows_inserted"))).splitlines() == [
        "name      action        rows inserted",
        "--------  ------------  -------------",
        "sales     DIFFERENTIAL              3",
        "größe 表  NO_DATA                   0",
    ]


def test_rows_are_a_sequence():
    rows = Rows([REFRESH, REFRESH])
    assert (len(rows), rows[0], list(rows[1:])) == (2, REFRESH, [REFRESH])
    assert rows.to_dicts() == [REFRESH.to_dict()] * 2
    assert rows == Rows([REFRESH, REFRESH])
    assert (str(Rows([])), Rows([]).to_dicts()) == ("(none)", [])


def test_html_is_escaped():
    entry = HistoryEntry("<b>", NOW, Outcome.FAILED, error="a & b")
    assert "&lt;b&gt;" in Rows([entry])._repr_html_()
    assert "a &amp; b" in entry._repr_html_()


def test_long_and_broken_cells_stay_on_one_line():
    lines = text_table(["x"], [["a\nb" + "c" * 200]]).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("a bc")
    assert lines[2].endswith("…")


def test_graph_is_a_tree_in_text():
    assert str(GRAPH).splitlines() == [
        "orders",
        "└─ sales [AUTO, 1m]",
        "   └─ top [FULL, SUSPENDED]",
        "stock",
        "└─ sales [AUTO, 1m] ...",
    ]
    assert str(Graph((), ())) == "(no stream tables)"


def test_graph_with_a_cycle_ends():
    nodes = tuple(GraphNode(name, "stream") for name in "ab")
    text = str(Graph(nodes, (GraphEdge("a", "b"), GraphEdge("b", "a"))))
    assert text.splitlines() == ["a", "└─ b", "   └─ a ..."]


def test_graph_as_mermaid():
    assert GRAPH.mermaid().splitlines()[:3] == [
        "graph LR",
        '    n0[("orders")]',
        '    n1["sales [AUTO, 1m]"]',
    ]
    assert "    n0 --> n1" in GRAPH.mermaid()


def test_explanation_has_a_section_for_each_part():
    text = str(
        Explanation(None, RefreshMode.AUTO, False, "ORDER BY", tree="Scan\n  x", readout="SELECT")
    )
    assert text == (
        "query (AUTO): maintained by full recomputation\nORDER BY\n\n"
        "operator tree\n  Scan\n    x\n\nreadout\n  SELECT"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.0042, "4 ms"),
        (3.14, "3.1 s"),
        (90, "90 s"),
        (600, "10 min"),
        (7200, "2 h"),
        (864000, "10 d"),
    ],
)
def test_durations(seconds: float | None, text: str):
    assert duration(seconds) == text


def test_results_do_not_import_rich():
    program = "import sys, runnel.model.results, runnel.model.graph; print('rich' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
