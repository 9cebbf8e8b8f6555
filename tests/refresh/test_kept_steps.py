"""Steps of a program whose rows are kept: fetched in one job when they were few last time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import runnel
from refresh.helpers import check, orders
from runnel.refresh import differential

pytestmark = pytest.mark.spark

_QUERY = """
    SELECT o.cust, o.id, big.most FROM orders o
    JOIN (SELECT cust, MAX(amount) AS most FROM orders GROUP BY cust) big ON big.cust = o.cust
    WHERE o.amount = big.most
"""


def test_few_rows_are_counted_once_and_many_again(
    spark: SparkSession, tmp_path: Path, clean_names: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tiny tables seem large, so that steps are kept, and a dozen rows many.
    monkeypatch.setattr(differential, "_SMALL", 0)
    monkeypatch.setattr("runnel.lake.local_rows._FEW", 12)
    measured: list[int] = []
    measure = differential.measure

    def counting(*given: Any) -> tuple[int, bool]:
        found = measure(*given)
        measured.append(found[0])
        return found

    monkeypatch.setattr(differential, "measure", counting)
    with runnel.connect(tmp_path / "lake", spark=spark) as lake:
        source = orders(lake, tmp_path)
        lake.create_stream_table("most", _QUERY, refresh_mode="DIFFERENTIAL")
        source.append((100, 10, "70.00"))
        check(lake, "most", "DIFFERENTIAL")
        assert measured
        measured.clear()
        source.append((101, 10, "80.00"))
        check(lake, "most", "DIFFERENTIAL")
        assert measured == []
        source.append(*((200 + n, n, "90.00") for n in range(40)))
        check(lake, "most", "DIFFERENTIAL")
        assert max(measured) > 12
