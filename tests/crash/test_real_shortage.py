"""A disk that is really full, a Spark that really has no memory left: clear errors, old contents."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_BEGIN = """
import sys, runnel
from deltalake import DeltaTable, write_deltalake
import pyarrow as pa
from runnel.errors import RunnelError
lake = runnel.connect(sys.argv[1], spark_conf={"spark.driver.memory": "1g"})
source = sys.argv[2]

def put(*values):
    write_deltalake(source, pa.table({"n": pa.array(values, pa.int64())}), mode="append")

def told(work):
    try:
        return work().action.value
    except RunnelError as error:
        return f"{type(error).__name__}: {error.primary}"
"""
_FULL_DISK = """
import os
put(1)
lake.sql(f"CREATE TABLE numbers USING delta LOCATION '{source}'")
wide = "array_join(transform(sequence(1, 2000), i -> sha2(string(n * 10000 + i), 256)), '')"
lake.create_stream_table("kept", f"SELECT n, {wide} AS pad FROM numbers", refresh_mode="DIFFERENTIAL")
filler = os.path.join(sys.argv[3], "filler")
with open(filler, "wb") as file:
    try:
        while True:
            file.write(os.urandom(65536))
            file.flush()
    except OSError:
        pass
put(*range(2, 40))
print("full:", told(lambda: lake.refresh("kept")))
os.remove(filler)
print("old:", lake.table("kept").count())
print("then:", told(lambda: lake.refresh("kept")), lake.table("kept").count(), lake.verify("kept").ok)
lake.close()
"""
_TOO_LARGE = """
put(3)
lake.sql(f"CREATE TABLE numbers USING delta LOCATION '{source}'")
lake.create_stream_table(
    "kept", "SELECT n, size(array_distinct(sequence(1L, n))) AS s FROM numbers", refresh_mode="DIFFERENTIAL"
)
put(400_000_000)
print("large:", told(lambda: lake.refresh("kept")))
"""
_AFTERWARDS = """
print("old:", [tuple(r) for r in lake.table("kept").collect()], lake.verify("kept").ok)
DeltaTable(source).delete("n > 100")
put(5)
print("then:", told(lambda: lake.refresh("kept")), sorted(tuple(r) for r in lake.table("kept").collect()), lake.verify("kept").ok)
lake.close()
"""


def _run(program: str, *arguments: Path) -> dict[str, str]:
    """What a Python of its own, with a Spark of its own, prints: `word: what`."""
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN + program, *map(str, arguments)], check=False, text=True,
        capture_output=True, timeout=400, stdin=subprocess.DEVNULL,
        env={k: v for k, v in os.environ.items() if "CONNECT" not in k and "REMOTE" not in k},
    )  # fmt: skip
    lines = [line.partition(": ") for line in done.stdout.splitlines() if ": " in line]
    assert lines, done.stderr
    return {word: what for word, _, what in lines}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path: Path, small_disk: Path) -> None:
    found = _run(_FULL_DISK, small_disk / "lake", tmp_path / "numbers", small_disk)
    assert found["full"].startswith("SystemFault: ")
    assert "full" in found["full"]
    assert found["old"] == "1"
    assert found["then"] == "DIFFERENTIAL 39 True"


def test_a_refresh_that_needs_more_memory_than_there_is(tmp_path: Path) -> None:
    places = tmp_path / "lake", tmp_path / "numbers"
    assert _run(_TOO_LARGE, *places)["large"].startswith(("SystemFault: ", "SparkEnded: "))
    found = _run(_AFTERWARDS, *places)
    assert found["old"] == "[(3, 3)] True"
    assert found["then"] == "DIFFERENTIAL [(3, 3), (5, 5)] True"
