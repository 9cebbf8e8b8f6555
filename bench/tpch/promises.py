"""What the figures of a run over TPC-H must show, each with what was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.promises import Promise

# By scale: how many queries DIFFERENTIAL keeps faster than FULL does, and how many times faster one
# pass over all of them is under AUTO than under FULL.
_ASKED = {1.0: (14, 2.0), 10.0: (18, 4.0)}
_AUTO = 1.15


def promises(measured: dict[str, Any]) -> list[Promise]:
    """All that a run over this scale says something about."""
    if measured["scale"] not in _ASKED or len(measured["rounds"]) < 22:
        return []
    return list(_asked(measured, *_ASKED[measured["scale"]]))


def _asked(measured: dict[str, Any], queries: int, times: float) -> Iterator[Promise]:
    rounds = measured["rounds"]
    faster = sum(r["seconds"]["DIFFERENTIAL"] < r["seconds"]["FULL"] for r in rounds)
    yield Promise(
        "queries that DIFFERENTIAL keeps faster than FULL", faster, queries, is_least=True
    )
    passes = measured["pass"]
    ratio = passes["FULL"]["seconds"] / passes["AUTO"]["seconds"]
    yield Promise("one pass over all queries, FULL / AUTO", ratio, times, is_least=True)
    for found in rounds:
        ratio = found["seconds"]["AUTO"] / found["seconds"]["FULL"]
        yield Promise(f"{found['query']}, AUTO / FULL", ratio, _AUTO)
