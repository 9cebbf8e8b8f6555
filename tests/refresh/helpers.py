"""Small tables made and changed in milliseconds by delta-rs, registered in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, write_deltalake

from kit.lake_backend import arrow_rows
from runnel.api import Lake

ORDERS = {"id": "bigint", "cust": "int", "amount": "decimal(12,2)"}
SALES = "SELECT cust, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY cust"


class Source:
    """A Delta table outside Spark's warehouse that any writer may change."""

    def __init__(
        self, lake: Lake, folder: Path, name: str, columns: dict[str, str],
        rows: Sequence[tuple[Any, ...]] = (), feed: bool = True,
    ) -> None:  # fmt: skip
        self.lake, self.name, self.columns = lake, name, columns
        self.path = str(folder / name)
        configuration = {"delta.enableChangeDataFeed": "true"} if feed else {}
        write_deltalake(self.path, arrow_rows(columns, rows), configuration=configuration)
        lake.sql(f"CREATE TABLE {name} USING delta LOCATION '{self.path}'")

    def append(self, *rows: tuple[Any, ...]) -> None:
        write_deltalake(DeltaTable(self.path), arrow_rows(self.columns, rows), mode="append")

    def overwrite(self, *rows: tuple[Any, ...]) -> None:
        write_deltalake(DeltaTable(self.path), arrow_rows(self.columns, rows), mode="overwrite")

    def delete(self, predicate: str) -> None:
        DeltaTable(self.path).delete(predicate)


def orders(lake: Lake, folder: Path, **options: Any) -> Source:
    rows = [(1, 10, "5.00"), (2, 10, "7.50"), (3, 11, "1.25")]
    return Source(lake, folder, "orders", ORDERS, rows, **options)


def check(lake: Lake, name: str, action: str, reason: str = "") -> Any:
    """Refresh, and assert what was done and that the contents are the query's."""
    result = lake.refresh(name)
    assert result.action == action, str(result)
    assert reason in result.reason, str(result)
    verified = lake.verify(name)
    assert verified.ok, str(verified)
    return result
