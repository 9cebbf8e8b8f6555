"""`python -m bench.tick` holds the scheduler to what a tick may take."""

from __future__ import annotations

import pytest
from bench import tick

SMALL = ["--tables", "20", "--sources", "4"]


def test_a_tick_with_nothing_to_do_is_within_its_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert tick.main(SMALL) == 0
    out = capsys.readouterr().out
    assert "all 20 due, no news" in out
    assert "every ten minutes" in out


def test_a_tick_that_takes_longer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert tick.main([*SMALL, "--limit", "0"]) == 1
    assert "at most were expected" in capsys.readouterr().out
