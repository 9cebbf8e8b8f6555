"""Disks that are full, folders that cannot be read: a clear error, and never wrong contents."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from refresh.helpers import SALES, check, orders
from runnel.api import Lake
from runnel.errors import RunnelError, SystemFault
from runnel.lake import appending
from runnel.refresh import execute

pytestmark = pytest.mark.spark


def rows(lake: Lake) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in lake.table("sales").collect())


@pytest.mark.parametrize(
    ("room", "point"),
    [(execute, "refresh.before_append"), (appending, "trace.append.written")],
    ids=["before anything is written", "before the commit"],
)
def test_a_full_disk(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: Any, point: str
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    before = rows(lake)
    source.append((4, 12, "2.00"))
    reached: list[str] = []

    def full(name: str) -> None:
        reached.append(name)
        if name == point:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(room, "reach", full)
        with pytest.raises(SystemFault, match="the disk is full") as caught:
            lake.refresh("sales")
    assert point in reached
    assert caught.value.retryable
    assert rows(lake) == before
    assert lake.verify("sales").ok
    check(lake, "sales", "DIFFERENTIAL")


def test_a_source_that_cannot_be_read_for_a_while(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    before = rows(lake)
    source.append((4, 12, "2.00"))
    log, aside = f"{source.path}/_delta_log", f"{source.path}/aside"
    os.rename(log, aside)
    os.symlink(log, log)
    with pytest.raises(SystemFault, match="cannot be read"):
        lake.refresh("sales")
    assert rows(lake) == before
    assert lake.status("sales").consecutive_errors == 1
    os.remove(log)
    os.rename(aside, log)
    check(lake, "sales", "DIFFERENTIAL")
    assert lake.status("sales").consecutive_errors == 0


def test_a_damaged_data_file(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    before = rows(lake)
    known = set(os.listdir(source.path))
    source.append((4, 12, "2.00"))
    (name,) = (n for n in set(os.listdir(source.path)) - known if n.endswith(".parquet"))
    size = os.path.getsize(f"{source.path}/{name}")
    Path(f"{source.path}/{name}").write_bytes(b"x" * size)
    with pytest.raises(RunnelError) as caught:
        lake.refresh("sales")
    assert name in str(caught.value)
    assert rows(lake) == before
