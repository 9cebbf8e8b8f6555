"""What a refresh would cost either way: a simple model, corrected by what earlier ones took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from runnel.catalog import Attempt
from runnel.model.refresh import RefreshAction

# Seconds of a small machine; only ratios matter, and measured refreshes correct them.
_FIXED = 0.4
_ROWS_PER_SECOND_FULL = 1_500_000
_ROWS_PER_SECOND_SCAN = 15_000_000
_ROWS_PER_SECOND_CHANGE = 150_000
_RECENT = 5
_WINDOW = 8


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds for either way, and whether both were ever measured for this table."""

    differential: float
    full: float
    is_measured: bool

    def to_json(self) -> dict[str, float]:
        return {"differential": round(self.differential, 3), "full": round(self.full, 3)}


def predict(change_rows: int, total_rows: int, history: Iterable[Attempt]) -> Prediction:
    """Model both ways; each is scaled by the median of actual / modelled of recent refreshes."""
    # Only the newest few: one slow sample must not keep the other way away for ever.
    attempts = list(history)[:_WINDOW]
    differential, measured_d = _scale(attempts, RefreshAction.DIFFERENTIAL)
    full, measured_f = _scale(attempts, RefreshAction.FULL)
    if not measured_d:
        differential = full
    elif not measured_f:
        full = differential
    return Prediction(
        differential * model_differential(change_rows, total_rows),
        full * model_full(total_rows),
        measured_d and measured_f,
    )


def model_differential(change_rows: int, total_rows: int) -> float:
    return _FIXED + change_rows / _ROWS_PER_SECOND_CHANGE + total_rows / _ROWS_PER_SECOND_SCAN


def model_full(total_rows: int) -> float:
    return _FIXED + total_rows / _ROWS_PER_SECOND_FULL


def _scale(attempts: list[Attempt], action: RefreshAction) -> tuple[float, bool]:
    ratios = [
        a.seconds / a.predicted["model"]
        for a in attempts
        if a.action is action and a.seconds and a.predicted.get("model")
    ][:_RECENT]
    return (median(ratios), True) if ratios else (1.0, False)
