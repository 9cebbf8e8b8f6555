"""What a refresh would cost either way: a simple model, corrected by what earlier ones took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from runnel.catalog import Attempt
from runnel.model.refresh import RefreshAction
from runnel.model.results import SHARED, TIDYING

# Seconds of a small machine; only ratios matter, and measured refreshes correct them.
_FIXED = 0.4
_ROWS_PER_SECOND_FULL = 1_500_000
_ROWS_PER_SECOND_SCAN = 15_000_000
_ROWS_PER_SECOND_CHANGE = 150_000
_ROWS_PER_SECOND_TIDIED = 1_500_000
# Rows beyond the largest change that was measured come in bulk, at such a share of what rows cost,
# and at most so much.
_BULK_SHARE = 0.6
_IN_BULK = 0.25
# What consumers wait for is the difference of old and new contents.
_COMPARED = 1.6
_RECENT = 5
_WINDOW = 8
# A single sample of so many refreshes ago is asked for again, where the ways are so near. Not of
# more: by then Spark is warm, and whoever makes one large change would pay for the curiosity.
_OLD = range(2, 5)
_NEAR = 1.5
# The first differential refresh compiles its stages and runs them cold.
_COLD = 3.0
# Changes of about the same size, this many times as many rows at most.
_ALIKE = 3


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds for either way, and whether both were ever measured for this table.

    `doubtful` is the dearer way where it was measured once, some refreshes ago, perhaps when Spark
    had just been started, and may take no longer than the other one. `tidying` is what follows a
    differential refresh, and not a full one, which leaves nothing to be tidied.
    """

    differential: float
    full: float
    is_measured: bool
    doubtful: RefreshAction | None = None
    tidying: float = 0.0

    def to_json(self) -> dict[str, float]:
        found = {"differential": round(self.differential, 3), "full": round(self.full, 3)}
        return {**found, TIDYING: round(self.tidying, 3)} if self.tidying else found

    @property
    def is_differential_cheaper(self) -> bool:
        return self.differential + self.tidying <= self.full

    def __str__(self) -> str:
        tidying = f" and {self.tidying:.1f} s of tidying" if self.tidying else ""
        return f"differential {self.differential:.1f} s{tidying}, full {self.full:.1f} s predicted"


def predict(
    change_rows: int,
    total_rows: int,
    history: Iterable[Attempt],
    *,
    is_compared: bool = False,
    tidied_rows: int = 0,
) -> Prediction:
    """Model both ways; each is scaled by the median of actual / modelled of recent refreshes.

    `is_compared`: consumers read the table, so FULL also finds out what is different. So many rows
    have to be tidied after a differential refresh.
    """
    # Only the newest few: one slow sample must not keep the other way away for ever.
    attempts = list(history)[:_WINDOW]
    full, measured_f = _scale(attempts)
    known = _differential_scales(attempts, full)
    if known is None:
        known = _Scales(full, full, model_rows(change_rows))
    elif not measured_f:
        full = known.base
    one = known.cost(change_rows, total_rows)
    if (others := _without_one_like(change_rows, attempts, full)) is not None:
        one = min(one, (one + others.cost(change_rows, total_rows)) / 2)
    other = full * model_full(total_rows, is_compared=is_compared)
    is_measured = measured_f and known.is_measured
    tidying = _tidying(tidied_rows, attempts)
    doubtful = _doubtful(one + tidying, other, attempts) if is_measured else None
    return Prediction(one, other, is_measured, doubtful, tidying)


def model_differential(change_rows: int, total_rows: int) -> float:
    return model_base(total_rows) + model_rows(change_rows)


def model_base(total_rows: int) -> float:
    """What a differential refresh costs however little changed."""
    return _FIXED + total_rows / _ROWS_PER_SECOND_SCAN


def model_rows(change_rows: int) -> float:
    return change_rows / _ROWS_PER_SECOND_CHANGE


def model_full(total_rows: int, *, is_compared: bool = False) -> float:
    return (_FIXED + total_rows / _ROWS_PER_SECOND_FULL) * (_COMPARED if is_compared else 1.0)


def _tidying(rows: int, attempts: list[Attempt]) -> float:
    """What rewriting so many rows takes, by what it took after recent refreshes."""
    if not rows:
        return 0.0
    known = [
        a.phases[TIDYING] / a.predicted[TIDYING]
        for a in attempts
        if a.predicted.get(TIDYING) and TIDYING in a.phases
    ]
    return (_FIXED + rows / _ROWS_PER_SECOND_TIDIED) * (median(known) if known else 1.0)


def _doubtful(one: float, other: float, attempts: list[Attempt]) -> RefreshAction | None:
    if one <= other <= _NEAR * one and _is_old(RefreshAction.FULL, attempts):
        return RefreshAction.FULL
    if other < one <= _COLD * other and _is_old(RefreshAction.DIFFERENTIAL, attempts):
        return RefreshAction.DIFFERENTIAL
    return None


def _is_old(action: RefreshAction, attempts: list[Attempt]) -> bool:
    """Whether the only one of these refreshes has several after it; the newest comes first."""
    places = [i for i, a in enumerate(attempts) if _is_way(a, action)]
    return len(places) == 1 and places[0] in _OLD


def _scale(attempts: list[Attempt]) -> tuple[float, bool]:
    ratios = [s / m for s, m, _ in _samples(attempts, RefreshAction.FULL)]
    return (median(ratios), True) if ratios else (1.0, False)


@dataclass(frozen=True, slots=True)
class _Scales:
    """How a table differs from the model: in the fixed part, and in its changed rows.

    `known` is what the model says of the rows of the largest change that was measured. Rows beyond
    that come in bulk: a change ten times as large takes less than ten times as long.
    """

    base: float
    rows: float
    known: float
    is_measured: bool = False

    def cost(self, change_rows: int, total_rows: int) -> float:
        return self.base * model_base(total_rows) + self.cost_of_rows(model_rows(change_rows))

    def cost_of_rows(self, modelled: float) -> float:
        beyond = max(0.0, modelled - self.known)
        return self.rows * (modelled - beyond) + min(_BULK_SHARE * self.rows, _IN_BULK) * beyond


def _differential_scales(attempts: list[Attempt], full: float) -> _Scales | None:
    """What recent refreshes tell; None when there was none.

    Refreshes of few rows tell nothing about the rows: slow ones must not be multiplied by rows.
    """
    samples = _samples(attempts, RefreshAction.DIFFERENTIAL)
    return _scales_of(samples, full) if samples else None


def _without_one_like(change_rows: int, attempts: list[Attempt], full: float) -> _Scales | None:
    """What the others tell where a single refresh had about as many changed rows, and most of all.

    A larger change takes other forms, which compile and run cold the first time.
    """
    samples = _samples(attempts, RefreshAction.DIFFERENTIAL)
    most = max((rows for *_, rows in samples), default=0.0)
    others = [sample for sample in samples if sample[-1] * _ALIKE <= most]
    is_alike = most / _ALIKE < model_rows(change_rows) < most * _ALIKE
    is_single = len(others) == len(samples) - 1
    return _scales_of(others, full) if others and is_alike and is_single else None


def _scales_of(samples: list[tuple[float, float, float]], full: float) -> _Scales:
    per_row = _per_row(samples)
    if per_row is None:
        per_row = min(1.0, full)
    base = [max(s - per_row * rows, s / 10) / (m - rows) for s, m, rows in samples]
    return _Scales(median(base), per_row, max(rows for _, _, rows in samples), is_measured=True)


def _per_row(samples: list[tuple[float, float, float]]) -> float | None:
    """What rows cost, by refreshes of many: beyond what those of few took, where there were any."""
    few = [s / m for s, m, rows in samples if rows < (m - rows) / 5]
    many = [(s, m, rows) for s, m, rows in samples if rows > (m - rows) / 2]
    if not many:
        return None
    if not few:
        return median(s / m for s, m, _ in many)
    base = median(few)
    return median(max(s - base * (m - rows), s / 10) / rows for s, m, rows in many)


def _samples(attempts: list[Attempt], action: RefreshAction) -> list[tuple[float, float, float]]:
    """Seconds, modelled seconds, and those of them that are for the changed rows."""
    return [
        (_own(a), a.predicted["model"], model_rows(a.change_rows or 0))
        for a in attempts
        if _is_way(a, action) and a.seconds and a.predicted.get("model")
    ][:_RECENT]


def _own(attempt: Attempt) -> float:
    """Seconds without those in which it found what other tables read too, or waited for that."""
    seconds = attempt.seconds or 0.0
    return max(seconds - attempt.phases.get(SHARED, 0.0), seconds / 10)


def _is_way(attempt: Attempt, action: RefreshAction) -> bool:
    """A differential refresh that came to nothing is called NO_DATA, but took its time."""
    if attempt.action is RefreshAction.NO_DATA:
        return action is RefreshAction.DIFFERENTIAL
    return attempt.action is action
