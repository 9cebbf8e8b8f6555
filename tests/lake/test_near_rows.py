"""How common some values are in a table, by a sample of its files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from runnel.lake.log import DeltaLog
from runnel.lake.near_rows import Values, share_of


def _values(*keys: int) -> Values:
    return Values(pa.table({"t0": pa.array(keys, pa.int64())}), "t0 bigint")


def _rows(first: int, count: int) -> pa.Table:
    keys = range(first, first + count)
    return pa.table({"k": pa.array(keys, pa.int64()), "group": pa.array([k % 4 for k in keys])})


def test_what_was_just_added_is_not_common(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, _rows(0, 20_000))
    write_deltalake(path, _rows(50_000, 10), mode="append")
    log = DeltaLog(path)
    assert share_of(log, 1, ["k"], _values(*range(50_000, 50_010))) == 0.0
    assert share_of(log, 1, ["k"], _values(*range(200))) == 0.01
    assert share_of(log, 1, ["group"], _values(1, 3)) == 0.5


def test_what_cannot_be_looked_at_is_not_known(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, _rows(0, 100))
    assert share_of(DeltaLog(path), 0, ["missing"], _values(1)) is None
