"""Tables with a grouping inside, and questions to the lake about their parts."""

from __future__ import annotations

from typing import Any

from runnel.api import Lake
from runnel.catalog import StreamTable

LINES = {"ord": "int", "item": "int", "n": "int", "price": "decimal(8,2)"}
ROWS = [
    (1, 10, 5, "2.00"), (1, 11, 6, "1.00"), (2, 10, 1, "4.00"), (3, 12, 9, "1.50"),
    (3, 10, 2, "2.00"), (4, None, 3, "1.00"),
]  # fmt: skip
ITEMS = ({"id": "int", "name": "string"}, [(10, "nut"), (11, "bolt"), (12, "screw")])
JOINED = (
    "SELECT i.name, s.total FROM items i JOIN (SELECT item, SUM(n * price) AS total FROM lines "
    "GROUP BY item) AS s ON i.id = s.item"
)


def parts_in(lake: Lake) -> list[StreamTable]:
    """The tables that hold parts of queries, by label."""
    found = [t for t in lake._workspace.catalog.tables() if t.part_of is not None]
    return sorted(found, key=lambda t: t.label)


def actions_of_parts(lake: Lake) -> list[str]:
    """What the last refresh of each part did."""
    catalog = lake._workspace.catalog
    return [str(catalog.history(part.name.key, 1)[0].action) for part in parts_in(lake)]


def folders(lake: Lake) -> set[str]:
    """What is stored, by incarnation."""
    return {path.name for path in lake._workspace.traces_path.glob("*")}


def rows_of(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.table(name).collect())
