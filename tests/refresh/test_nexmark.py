"""The queries of Nexmark on tables: new and late events, corrections and deletes, all exact."""

from __future__ import annotations

import pytest
from bench.nexmark import data

from runnel.api import Lake

_QUERIES = {f"q{number:02}": data.query(number) for number in data.QUERIES}
_PERSONS = 60
_ROUNDS = 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_query_is_exact_after_every_round(lake: Lake) -> None:
    data.create(lake, _PERSONS)
    for name, query in _QUERIES.items():
        lake.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    actions: dict[str, list[str]] = {name: [] for name in _QUERIES}
    for round_ in range(_ROUNDS):
        data.change(lake, _PERSONS, round_)
        for name in _QUERIES:
            actions[name].append(lake.refresh(name).action.value)
            verified = lake.verify(name)
            assert verified.ok, f"{name} in round {round_}: {verified}"
    unmoved = {name: taken for name, taken in actions.items() if set(taken) != {"DIFFERENTIAL"}}
    assert not unmoved, f"not every round changed {unmoved}"
