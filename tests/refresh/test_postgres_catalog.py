"""A whole lake whose catalog is a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import runnel
from refresh.helpers import SALES, check, orders
from runnel.errors import AlreadyExists

pytestmark = [pytest.mark.spark, pytest.mark.postgres]


def test_two_connections_share_everything(
    spark: SparkSession, tmp_path: Path, clean_names: None, postgres_url: str
) -> None:
    folder = tmp_path / "lake"
    with runnel.connect(folder, spark=spark, catalog=postgres_url) as lake:
        source = orders(lake, tmp_path)
        lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL", schedule="1m")
        lake.create_stream_table(
            "big", "SELECT cust, total FROM sales WHERE total > 5", refresh_mode="DIFFERENTIAL"
        )
        source.append((4, 11, "9.00"))
        check(lake, "big", "DIFFERENTIAL")
        assert not (folder / "_runnel" / "catalog.db").exists()
        with runnel.connect(folder, spark=spark, catalog=postgres_url) as other:
            assert [t.name for t in other.status()] == ["big", "sales"]
            assert other.refresh("big").action == "NO_DATA"
            with pytest.raises(AlreadyExists):
                other.create_stream_table("sales", SALES)
            source.delete("id = 1")
            check(other, "big", "DIFFERENTIAL")
            other.compact("sales")
        assert [h.action for h in lake.history("big", limit=3)] == [
            "DIFFERENTIAL", "NO_DATA", "DIFFERENTIAL",
        ]  # fmt: skip
        lake.drop_stream_table("sales", cascade=True)
        assert not lake.status()
