"""Texts under a collation on the lake: what Delta stores of them, and what is refused by type."""

from __future__ import annotations

from pathlib import Path

import pytest

from refresh.helpers import Source, check
from runnel.api import Lake
from runnel.errors import NotDifferentiable, RunnelError

pytestmark = pytest.mark.spark

_T = {"k": "int", "x": "string"}


def test_delta_takes_no_collated_column(lake: Lake) -> None:
    """Were this to change, columns of tables would come with a collation that no text shows."""
    with pytest.raises(RunnelError, match=r"unsupported data types: \[x: StringType\(UTF8_LCASE\)"):
        lake.sql("CREATE TABLE collated (x STRING COLLATE UTF8_LCASE) USING delta")


def test_a_collated_column_is_not_kept_differentially(lake: Lake, tmp_path: Path) -> None:
    source = Source(lake, tmp_path, "t", _T, [(1, "a"), (2, "B")])
    inner = "SELECT k, x COLLATE UTF8_LCASE AS c FROM t"
    query = f"SELECT k, c = 'A' AS is_a FROM ({inner}) q"
    lake.create_stream_table("is_a", query, refresh_mode="DIFFERENTIAL")
    source.append((3, "A"))
    check(lake, "is_a", "DIFFERENTIAL")
    grouped = f"SELECT LOWER(c) COLLATE UTF8_BINARY AS l, COUNT(*) AS n FROM ({inner}) q GROUP BY c"
    with pytest.raises(NotDifferentiable, match="collate UTF8_LCASE") as caught:
        lake.create_stream_table("grouped", grouped, refresh_mode="DIFFERENTIAL")
    assert (caught.value.place or "").startswith(f"line 1, column {grouped.index('x COLLATE') + 1}")
