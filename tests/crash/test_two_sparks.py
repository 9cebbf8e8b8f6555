"""Two processes, each with a Spark of its own: what one makes or drops, the other has or has not."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kit.connect_server import own_spark_environment
from kit.uncompiled import uncompiled
from runnel.model.closing import Closing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

_NEIGHBOUR = """
import json, sys
import runnel
from runnel.errors import RunnelError

with runnel.connect(sys.argv[1], spark_conf=json.loads(sys.argv[2])) as lake:
    for line in sys.stdin:
        try:
            answer = lake.sql(json.loads(line))
            rows = answer.collect() if hasattr(answer, "collect") else [[str(answer)]]
            told = sorted(map(list, rows))
        except RunnelError as error:
            told = str(error)
        print("answer", json.dumps(told), flush=True)
"""
_CONF = {"spark.master": "local[1]", "spark.driver.memory": "1g", **uncompiled()}
# As for a server: it is gone before what Java's second compiler makes would pay.
_JAVA = "-XX:TieredStopAtLevel=1"


class _Neighbour(Closing):
    """A process that runs one statement after the other."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _NEIGHBOUR, str(folder), json.dumps(_CONF)],
            env=own_spark_environment(JDK_JAVA_OPTIONS=_JAVA),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def close(self) -> None:
        try:
            self._process.communicate(timeout=60)
        finally:
            self._process.kill()

    def __call__(self, statement: str) -> Any:
        """Its rows, or its error."""
        self.begin(statement)
        return self.end()

    def begin(self, statement: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()

    def end(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))
        assert self._process.stderr is not None
        raise AssertionError(self._process.stderr.read()[-3000:])


def test_names_come_and_go(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    with ExitStack() as stack:
        one, other = (stack.enter_context(_Neighbour(folder)) for _ in range(2))
        for each in (one, other):
            each.begin("SELECT 1 AS x")
        assert [one.end(), other.end()] == [[[1]], [[1]]], "both are connected"
        _make(other, tmp_path)
        _check_seen(one, other)
        _check_renamed(one, other)
        _check_never_filled(one, other)
        _check_dropped(one, other, tmp_path)


def _make(other: _Neighbour, folder: Path) -> None:
    """A table inside the lake, one outside of it, and a stream table."""
    assert other("CREATE TABLE base (id INT) USING delta") == []
    other("INSERT INTO base VALUES (1), (2)")
    other(f"CREATE TABLE outside (id INT) USING delta LOCATION '{folder}/here'")
    other("INSERT INTO outside VALUES (3)")
    other("CREATE STREAM TABLE sums REFRESH MODE DIFFERENTIAL AS SELECT SUM(id) AS s FROM base")


def _check_seen(one: _Neighbour, other: _Neighbour) -> None:
    """Read, written, refreshed by who did not make them."""
    assert one("SELECT * FROM base") == [[1], [2]]
    assert one("SELECT * FROM outside") == [[3]]
    assert one("SELECT * FROM sums") == [[3]]
    one("INSERT INTO base VALUES (4)")
    assert "DIFFERENTIAL" in one("REFRESH STREAM TABLE sums")[0][0]
    assert other("SELECT * FROM sums") == [[7]]
    assert "OK" in other("VERIFY STREAM TABLE sums")[0][0]


def _check_renamed(one: _Neighbour, other: _Neighbour) -> None:
    """By who made it and by who did not; the old name stands for nothing any more."""
    other("CREATE TABLE fresh USING delta AS SELECT 5 AS id")
    for old, new, rows in (
        ("base", "stock", [[1], [2], [4]]), ("outside", "away", [[3]]), ("fresh", "aged", [[5]]),
    ):  # fmt: skip
        renaming, looking = (other, one) if old == "fresh" else (one, other)
        assert renaming(f"ALTER TABLE {old} RENAME TO {new}") == []
        for each in (looking, renaming):
            assert each(f"SELECT * FROM {new}") == rows
            assert "TABLE_OR_VIEW_NOT_FOUND" in each(f"SELECT * FROM {old}")
    assert "base, which is read, cannot be found" in other("REFRESH STREAM TABLE sums")
    other("INSERT INTO stock VALUES (8)")
    for old, new in (("stock", "base"), ("away", "outside")):
        assert other(f"ALTER TABLE {old} RENAME TO {new}") == []
        assert one(f"SELECT MAX(id) FROM {new}") == [[8 if new == "base" else 3]]
    assert "REINITIALIZE" in one("REFRESH STREAM TABLE sums")[0][0]
    assert other("SELECT * FROM sums") == [[15]]


def _check_never_filled(one: _Neighbour, other: _Neighbour) -> None:
    other("CREATE STREAM TABLE later WITH (initialize = false) AS SELECT id FROM base")
    assert "later was never filled" in one("SELECT * FROM later")
    assert "stream table later already exists" in one("ALTER TABLE aged RENAME TO later")
    other("DROP STREAM TABLE later")


def _check_dropped(one: _Neighbour, other: _Neighbour, folder: Path) -> None:
    """Dropped by either; and a name may be that of another table afterwards."""
    other("DROP STREAM TABLE sums")
    other("DROP TABLE outside")
    for name in ("sums", "outside"):
        assert "TABLE_OR_VIEW_NOT_FOUND" in one(f"SELECT * FROM {name}")
    assert one("DROP TABLE base") == []
    assert "TABLE_OR_VIEW_NOT_FOUND" in other("SELECT * FROM base")
    other(f"CREATE TABLE outside (name STRING) USING delta LOCATION '{folder}/there'")
    other("INSERT INTO outside VALUES ('a')")
    assert one("SELECT * FROM outside") == [["a"]]
    one("DROP TABLE outside")
    one(f"CREATE TABLE outside USING delta LOCATION '{folder}/here'")
    one("CREATE STREAM TABLE kept AS SELECT id FROM outside")
    assert other("SELECT * FROM outside") == other("SELECT * FROM kept") == [[3]]
    one("DROP STREAM TABLE kept")
    one("CREATE TABLE kept (name STRING) USING delta")
    one("INSERT INTO kept VALUES ('b')")
    assert other("SELECT * FROM kept") == [["b"]], "a table where a stream table was"
