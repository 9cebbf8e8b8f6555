"""The demo as a user starts it, in a process with a Spark of its own, against the clock."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

from kit.connect_server import own_spark_environment
from runnel.cli.shop import ROUNDS, STREAM_TABLES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_SECONDS = 90
# rows in, rows out, the two times, and the verdict.
_NUMBERS = r"([\d,]+) +(\+[\d,]+ -[\d,]+) +([\d.]+ m?s) +([\d.]+ m?s) +ok$"


def test_it_takes_less_than_it_may_and_shows_all_it_should(tmp_path: Path) -> None:
    command = "from runnel.cli.main import app; app()"
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", command, "demo"], cwd=tmp_path, capture_output=True, text=True,
        env=own_spark_environment(COLUMNS="100"), timeout=3 * _SECONDS, check=False,
    )  # fmt: skip
    seconds = perf_counter() - start
    assert done.returncode == 0, done.stdout + done.stderr
    opening, *rounds = re.split(r"^Round \d+\. ", done.stdout, flags=re.MULTILINE)
    assert all(f"{shown.name}, {shown.kind}" in opening for shown in STREAM_TABLES)
    assert len(rounds) == len(ROUNDS) >= 3
    for played in rounds:
        _check_round(played)
    assert "VERIFY found every table equal to its query" in rounds[-1]
    assert seconds < _SECONDS, f"the demo took {seconds:.0f} s"


def _check_round(text: str) -> None:
    for shown in STREAM_TABLES:
        line = next(x for x in text.splitlines() if x.startswith(f" {shown.name} "))
        assert re.search(r"DIFFERENTIAL|FULL|NO_DATA", line), line
        assert re.search(_NUMBERS, line.rstrip()), line
