"""What compaction adds to a refresh: it follows one now and then, and rewrites the whole table."""

from __future__ import annotations

from collections.abc import Iterable

from runnel.api import Lake
from runnel.model.results import TIDYING
from runnel.refresh.superseded import most_superseded


def compact_all(lake: Lake, names: Iterable[str]) -> dict[str, float]:
    """Compact tables, so that none of them is due for it in the next round; seconds of each.

    What the round before was large enough for has been compacted then.
    """
    done = {name: lake.compact(name) for name in names}
    return {
        name: result.seconds if result.compacted else _after_the_last(lake, name)
        for name, result in done.items()
    }


def _after_the_last(lake: Lake, name: str) -> float:
    return lake.history(name, limit=1)[0].phases.get(TIDYING, 0.0)


def a_round(lake: Lake, name: str, compacted: dict[str, float]) -> float:
    """Seconds of a compaction, spread over the rounds that may pass until the next one is due.

    The table was compacted before this round, so what is superseded now came by it.
    """
    workspace = lake._workspace
    table = workspace.catalog.find(f"default.{name.lower()}")
    assert table is not None
    trace = workspace.trace(table)
    superseded = trace.superseded_rows(table.epoch)
    rounds = most_superseded(workspace.settings, trace.row_estimate(table.epoch)) / max(
        1, superseded
    )
    return compacted.get(name, 0.0) / max(1.0, rounds)
