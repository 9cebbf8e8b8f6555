"""Functions of the user's own: kept differentially when they are said to be deterministic."""

from __future__ import annotations

from pathlib import Path

import pytest

import runnel
from refresh.helpers import check, orders
from runnel.api import Lake
from runnel.errors import NotDifferentiable, QueryFailed, RunnelError, UserError

pytestmark = pytest.mark.spark


def rows(lake: Lake, name: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, lake.table(name).collect()))


def test_a_python_function(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    query = "SELECT id, tripled(cust) AS t FROM orders WHERE tripled(id) > 3"
    lake.register_function("tripled", lambda x: x * 3, "int")
    with pytest.raises(NotDifferentiable, match=r"tripled(.|\n)*deterministic=True"):
        lake.create_stream_table("three", query, refresh_mode="DIFFERENTIAL")
    lake.register_function("tripled", lambda x: x * 3, "int", deterministic=True)
    lake.create_stream_table("three", query, refresh_mode="DIFFERENTIAL")
    source.append((1, 7, "2.00"), (4, 12, "2.00"))
    check(lake, "three", "DIFFERENTIAL")
    assert (4, 36) in rows(lake, "three")
    assert lake.sql("SELECT tripled(2) AS six").first()["six"] == 6


def test_an_aggregate(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.register_function(
        "spread", lambda values: int(max(values) - min(values)) if values else None, "int",
        deterministic=True, aggregate=True,
    )  # fmt: skip
    query = "SELECT cust, spread(id) AS s, COUNT(*) AS n FROM orders GROUP BY cust"
    lake.create_stream_table("spreads", query, refresh_mode="DIFFERENTIAL")
    source.append((40, 10, "2.00"), (41, 12, "1.00"))
    check(lake, "spreads", "DIFFERENTIAL")
    before = rows(lake, "spreads")
    assert (12, 0, 1) in before
    source.append((50, 12, "2.00"))
    check(lake, "spreads", "DIFFERENTIAL")
    assert rows(lake, "spreads") == sorted({*before, (12, 9, 2)} - {(12, 0, 1)})


def test_an_aggregate_of_pandas_beside_one_of_spark(lake: Lake, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    from pyspark.sql.functions import PandasUDFType, pandas_udf

    source = orders(lake, tmp_path)

    def product(x, y):  # type: ignore[no-untyped-def]
        return int((x * y).sum())

    lake.register_function(
        "dot", pandas_udf(product, "long", PandasUDFType.GROUPED_AGG), deterministic=True
    )
    query = "SELECT cust, dot(id, cust) AS d, SUM(id) AS ids FROM orders GROUP BY cust"
    lake.create_stream_table("dots", query, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"), (5, 12, "1.00"))
    check(lake, "dots", "DIFFERENTIAL")
    assert (12, 108, 9) in rows(lake, "dots")


def test_a_function_of_sparks_catalog_is_declared(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.sql("CREATE OR REPLACE FUNCTION doubled(x INT) RETURNS INT RETURN x * 2")
    try:
        lake.register_function("doubled", deterministic=True)
        query = "SELECT id, doubled(cust) AS d FROM orders"
        lake.create_stream_table("twice", query, refresh_mode="DIFFERENTIAL")
        source.append((4, 10, "2.00"))
        check(lake, "twice", "DIFFERENTIAL")
        assert (4, 20) in rows(lake, "twice")
    finally:
        lake.sql("DROP FUNCTION doubled")


def test_a_process_without_the_function_says_what_to_do(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = orders(lake, tmp_path)
    lake.register_function("quadrupled", lambda x: x * 4, "int", deterministic=True)
    query = "SELECT id, quadrupled(cust) AS t FROM orders"
    lake.create_stream_table("four", query, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))
    folder = lake._workspace.path
    with (
        runnel.connect(folder, spark=lake.spark) as other,
        pytest.raises(RunnelError, match="quadrupled") as found,
    ):
        other.refresh("four")
    assert "register_function" in str(found.value.hint)
    (tmp_path / "my_functions.py").write_text(
        "def register(lake):\n"
        "    lake.register_function('quadrupled', lambda x: x * 4, 'int', deterministic=True)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with runnel.connect(folder, spark=lake.spark, startup="my_functions:register") as other:
        assert other.refresh("four").action == "DIFFERENTIAL"
        assert (4, 48) in rows(other, "four")


def test_what_cannot_be_registered(lake: Lake) -> None:
    with pytest.raises(UserError, match="type that function f returns"):
        lake.register_function("f", lambda x: x)
    with pytest.raises(UserError, match="startup"):
        runnel.connect(lake._workspace.path, spark=lake.spark, startup="no_such_module:register")


def test_a_function_that_fails_says_how(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.register_function("broken", lambda x: x // 0, "int", deterministic=True)
    with pytest.raises(QueryFailed, match="ZeroDivisionError: integer division"):
        lake.create_stream_table("none", "SELECT broken(cust) AS b FROM orders")
    assert not lake.status()


def test_a_function_that_does_something_else_now(lake: Lake, tmp_path: Path) -> None:
    """The tables that call it start over; the others, and those of the same function, do not."""
    orders(lake, tmp_path)
    lake.register_function("scaled", lambda x: x * 3, "int", deterministic=True)
    lake.create_stream_table(
        "calls", "SELECT id, scaled(cust) AS s FROM orders", refresh_mode="DIFFERENTIAL"
    )
    lake.create_stream_table("calls_not", "SELECT id FROM orders", refresh_mode="DIFFERENTIAL")
    lake.register_function("scaled", lambda x: x * 3, "int", deterministic=True)
    assert lake.refresh("calls").action == "NO_DATA"
    lake.register_function("scaled", lambda x: x * 5, "int", deterministic=True)
    marked = lake._workspace.catalog.find("default.calls")
    assert marked is not None
    assert "scaled was redefined" in (marked.reinitialize or "")
    result = lake.refresh("calls")
    assert result.action == "REINITIALIZE"
    assert (1, 50) in rows(lake, "calls")
    assert lake.verify("calls").ok
    assert lake.refresh("calls_not").action == "NO_DATA"


def test_a_function_that_another_process_knew_otherwise(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.register_function("scaled", lambda x: x * 3, "int", deterministic=True)
    lake.create_stream_table(
        "calls", "SELECT id, scaled(cust) AS s FROM orders", refresh_mode="DIFFERENTIAL"
    )
    path = lake._workspace.path
    with runnel.connect(path, spark=lake.spark) as next_one:
        next_one.register_function("scaled", lambda x: x * 7, "int", deterministic=True)
        assert next_one.refresh("calls").action == "REINITIALIZE"
        assert (1, 70) in rows(next_one, "calls")
