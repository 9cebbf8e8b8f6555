"""The README's figures are those of the recorded runs, which show what was asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench import memory, report
from bench.promises import Promise, promises
from bench.soak.report import GOAL, LEAST_TARGET

_ROOT = Path(__file__).parent.parent.parent
_README = (_ROOT / "README.md").read_text()
# Of a change the driver takes 50,000 rows at most, of several steps at once.
_A_LITTLE_MB = 64


def _recorded(name: str) -> dict[str, Any]:
    path = _ROOT / "bench" / "results" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


_RUN = _recorded("spine-10000000")
_LARGE = _recorded("spine-50000000")
_SOAK = _recorded("soak-10")


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
    worst = max(ratio for ways in _RUN["epochs"].values() for ratio in ways.values())
    assert (
        f"100 epochs, each a change of 0.01% of its rows, took at most {worst:.1f} times" in _README
    )
    join, aggregate = (
        f"{r['seconds']['FULL'] / r['seconds']['DIFFERENTIAL']:.1f}x" for r in _LARGE["rounds"]
    )
    assert f"{_LARGE['rows']:,} rows and 0.1% changed: join {join}" in _README
    assert f"aggregate over a join {aggregate}" in _README


@pytest.mark.parametrize("run", [_RUN, _LARGE], ids=lambda run: str(run["rows"]))
def test_every_round_was_verified(run: dict[str, Any]) -> None:
    assert run["rounds"]
    assert all(found["verified"] for found in run["rounds"])
    assert run.get("tiny", {"verified": True})["verified"]


@pytest.mark.parametrize(("run", "asked"), [(_RUN, 44), (_LARGE, 2)], ids=["10M", "50M"])
def test_what_was_asked_for_was_found(run: dict[str, Any], asked: int) -> None:
    found = promises(run)
    assert len(found) == asked
    assert [str(promise) for promise in found if not promise.is_kept] == []
    assert report.is_good(run)


def test_the_driver_holds_nothing_in_proportion_to_the_change() -> None:
    """The largest is a thousand times the smallest; Spark's driver is held down by a setting."""
    peaks = _peaks(_RUN["rounds"])
    assert _RUN.get("peaks_are_fresh", True), "a small share's peak hides that of a larger one"
    assert len(peaks) == 4
    assert _growth(peaks) <= _A_LITTLE_MB


def test_the_driver_holds_nothing_in_proportion_to_the_table() -> None:
    """Five times the rows; the queries are not the same, so this is the coarser of the two."""
    assert _LARGE["python_peak_mb"] < 1.25 * _RUN["python_peak_mb"]


def test_a_driver_that_holds_the_change_would_be_found() -> None:
    rounds = [{"share": s, "python_peak_mb": 200 + 900 * s} for s in (0.001, 0.01, 0.1)]
    assert _growth(_peaks(rounds)) > _A_LITTLE_MB


def test_a_peak_that_cannot_be_forgotten_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_FORGET", tmp_path / "nowhere" / "clear_refs")
    assert not memory.forget_peak()


def _peaks(rounds: list[dict[str, Any]]) -> dict[float, float]:
    """The most that Python had taken when a share was done."""
    return {found["share"]: found["python_peak_mb"] for found in rounds}


def _growth(peaks: dict[float, float]) -> float:
    """How much more any share took than the smallest did."""
    return max(peaks.values()) - peaks[min(peaks)]


def test_a_promise_can_be_broken() -> None:
    assert not Promise("slow", 2.1, 2).is_kept
    assert not Promise("not faster", 4.9, 5, is_least=True).is_kept
    assert "NOT KEPT" in str(Promise("slow", 2.1, 2))


def test_a_run_is_judged_by_its_contents_and_its_promises() -> None:
    assert report.is_good(_LARGE)
    assert "2 of 2 promises kept\nkept: join at 0.10%, FULL / DIFFERENTIAL: " in report.table(
        _LARGE
    )
    first, *others = _LARGE["rounds"]
    wrong = {**_LARGE, "rounds": [{**first, "verified": False}, *others]}
    other = {**_LARGE, "rounds": [{**first, "actions": {"DIFFERENTIAL": "FULL"}}, *others]}
    slow = {"seconds": {**first["seconds"], "DIFFERENTIAL": first["seconds"]["FULL"]}}
    broken = {**_LARGE, "rounds": [{**first, **slow}, *others]}
    assert not report.is_good(wrong)
    assert not report.is_good(other), "what it measured is another way"
    assert not report.is_good(broken)
    assert "1 of 2 promises kept" in report.table(broken)
    assert "NOT KEPT: join at 0.10%" in report.table(broken)


def test_the_soak_held_what_was_asked_for_its_ten_minutes() -> None:
    assert _SOAK["seconds"] >= 600
    assert (_SOAK["is_right"], _SOAK["broken"]) == (True, [])
    assert _SOAK["survived"] == _SOAK["kills"] > 0
    assert _SOAK["verified"] == _SOAK["tables"] > 0
    assert _SOAK["goal"] >= GOAL
    shares = [share for target, share in _SOAK["attainment"].values() if target >= LEAST_TARGET]
    assert shares
    assert min(shares) >= GOAL
