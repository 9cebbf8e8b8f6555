"""The 22 queries of TPC-H on a small scale, each kept differentially through rounds of changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.tpch import data

from runnel.api import Lake

_QUERIES = {f"q{number:02}": data.query(number) for number in range(1, 23)}
_ROUNDS = 2
_SHARE = 0.02
_SELECTIVE = {"q02", "q17", "q19", "q20"}
"""Of so little data they show next to nothing, which the changes need not touch."""


@pytest.mark.timeout(1800)
def test_every_query_is_exact_after_every_round(lake: Lake, tmp_path: Path) -> None:
    data.generate(tmp_path / "generated", 0.01)
    data.load(lake, tmp_path / "generated")
    for name, query in _QUERIES.items():
        lake.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    actions: dict[str, list[str]] = {name: [] for name in _QUERIES}
    for round_ in range(_ROUNDS):
        data.change(lake, _SHARE, round_)
        for name in _QUERIES:
            actions[name].append(lake.refresh(name).action.value)
            verified = lake.verify(name)
            assert verified.ok, f"{name} in round {round_}: {verified}"
    assert {a for taken in actions.values() for a in taken} <= {"DIFFERENTIAL", "NO_DATA"}
    unmoved = {name for name, taken in actions.items() if "DIFFERENTIAL" not in taken}
    assert unmoved <= _SELECTIVE, f"nothing was tested for {unmoved - _SELECTIVE}"
