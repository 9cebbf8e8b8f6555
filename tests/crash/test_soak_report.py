"""The soak's own judgement: what was not put to the test is no success; no Spark."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from bench import report as kept
from bench.soak.__main__ import _arguments, _keep
from bench.soak.checks import Broken, Reader
from bench.soak.report import Report
from bench.soak.run import Plan

from runnel.errors import UserError


def good(**changes: Any) -> Report:
    facts: dict[str, Any] = {
        "reads": Counter(books=3, chain=2), "kills": 2, "survived": 2, "refreshes": 40,
        "verified": ["a", "b"], "tables": 2, "stop_seconds": 4.0,
        "attainment": {"a": (30.0, 0.95), "b": (60.0, 1.0), "quick": (5.0, 0.1)},
        "goal": 0.95,
    }  # fmt: skip
    return Report(**facts | changes)


def test_a_good_run() -> None:
    report = good()
    report.judge()
    assert report.is_right
    text = "\n".join(report.lines())
    assert "lag attainment: 97.5% on average, least a 95.0% (goal 95%)" in text
    assert "kills survived: 2 of 2" in text
    assert "verified tables: 2 of 2" in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"refreshes": 0}, "the daemon refreshed nothing"),
        ({"survived": 0}, "no daemon did anything after a kill"),
        ({"without_instant": Counter(cycle=9)}, "no read of cycle found an instant in common"),
        ({"stop_seconds": 10.1}, "10 s after SIGTERM the daemon was still there"),
        ({"attainment": {}}, "no table has a lag that was measured"),
    ],
)
def test_what_was_not_shown(changes: dict[str, Any], said: str) -> None:
    report = good(**changes)
    report.judge()
    assert report.broken == [said]
    assert not report.is_right


def test_a_table_that_was_not_verified_fails_it() -> None:
    assert not good(verified=["a"]).is_right
    assert not good(verified=[], tables=0).is_right


def test_one_table_that_misses_the_goal_fails_it() -> None:
    """The others make up for it in the mean, and for nobody who reads it."""
    shares = {"a": (30.0, 0.9), "b": (60.0, 1.0), "c": (60.0, 1.0), "quick": (5.0, 0.1)}
    report = good(attainment=shares)
    report.judge()
    assert report.broken == ["a was within its target for 90.0% of the time, the goal is 95%"]
    assert not report.is_right
    text = "\n".join(report.lines())
    assert "lag attainment: 96.7% on average, least a 90.0% (goal 95%, missed)" in text


def test_without_a_goal_the_lag_is_told_and_not_judged() -> None:
    report = good(attainment={"a": (30.0, 0.9)}, goal=None)
    report.judge()
    assert report.is_right
    assert "least a 90.0% (goal 95%, missed)" in "\n".join(report.lines())


def test_the_goal_is_judged_unless_one_says_otherwise() -> None:
    assert _arguments([]).goal == 95
    assert _arguments(["--goal", "0"]).goal == 0


def test_the_figures_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    path = _keep(good(), Plan(seed=5), 10.0)
    found = json.loads(path.read_text())
    assert path.name == "soak-10.json"
    assert (found["worst"], found["within_target"]) == (["a", 0.95], 0.975)
    assert (found["is_right"], found["plan"]["seed"], found["reads"]["books"]) == (True, 5, 3)


def test_every_kind_of_read_comes_in_each_round() -> None:
    reader = Reader(None, Random(3))  # type: ignore[arg-type]
    done: list[str] = []

    def _holds() -> None:
        done.append("holds")

    def _apart() -> None:
        raise UserError("a, b have no data timestamp in common")

    def _breaks() -> None:
        raise Broken("two rows too many")

    reader._kinds = (_holds, _apart)
    for _ in range(6):
        reader.read()
    assert (reader.reads, reader.without_instant) == (Counter(holds=3), Counter(apart=3))
    assert done == ["holds"] * 3
    reader._kinds = (_breaks,)
    with pytest.raises(Broken):
        reader.read()
