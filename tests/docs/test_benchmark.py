"""The README's figures are those of the recorded run."""

from __future__ import annotations

import json
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent
_README = (_ROOT / "README.md").read_text()
_RUN = json.loads((_ROOT / "bench" / "results" / "spine-10000000.json").read_text())


def test_the_table_is_the_recorded_run() -> None:
    measured = [r for r in _RUN["rounds"] if r["share"] == 0.001]
    assert len(measured) == 7
    for found in measured:
        seconds = found["seconds"]
        ways = ("DIFFERENTIAL", "FULL", "CTAS", "MERGE")
        cells = [f"{seconds[w]:.2f}" if w in seconds else "" for w in ways]
        ratio = f"{seconds['FULL'] / seconds['DIFFERENTIAL']:.1f}x"
        assert f"| {' | '.join([found['query'], *cells, ratio])} |" in _README


def test_the_text_is_the_recorded_run() -> None:
    assert f"over {_RUN['rows']:,} rows" in _README
    assert f"nothing to do took {_RUN['no_data_ms']:.1f} ms" in _README
    assert f"tiny tables {_RUN['tiny']['seconds']:.2f} s" in _README


def test_every_round_was_verified() -> None:
    assert all(found["verified"] for found in _RUN["rounds"])
