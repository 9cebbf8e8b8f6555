"""A refresh as data: what will be done, over which windows, and why. Explained or executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from runnel.catalog import StreamTable
from runnel.lake.changes import ChangeKind
from runnel.model.frontier import Frontier
from runnel.model.refresh import RefreshAction, RefreshMode
from runnel.refresh.cost import Prediction, model_differential, model_full, predict
from runnel.refresh.superseded import rows_to_tidy
from runnel.refresh.windows import Window, problems, total_rows, window_of
from runnel.refresh.workspace import Workspace

FIRST_FILL = "first fill"
"""Why a table's first epoch is written: the history of its present query begins there."""


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """One refresh of one table from its frontier to `frontier`.

    `epoch` is the number of what it appends, settled before the lease is checked for the last time;
    `group` is set when that is not to be seen before the others of the group are there; `attempt`
    is the entry of the history that it belongs to.
    """

    table: StreamTable
    action: RefreshAction
    reason: str
    frontier: Frontier
    windows: Mapping[str, Window]
    predicted: dict[str, float] = field(default_factory=dict)
    epoch: int = 1
    group: str | None = None
    attempt: int | None = None

    @property
    def change_rows(self) -> int:
        return sum(w.rows for w in self.windows.values())

    @property
    def changed(self) -> frozenset[str]:
        return frozenset(key for key, w in self.windows.items() if w.kind is ChangeKind.ROWS)

    @property
    def growing(self) -> frozenset[str]:
        return frozenset(key for key in self.changed if self.windows[key].insert_only)


def plan_refresh(workspace: Workspace, table: StreamTable, frontier: Frontier) -> RefreshPlan:
    """Decide what a refresh to a frontier has to do."""
    epoch = workspace.trace(table).next_epoch()
    windows = {s.key: window_of(workspace, table, s, frontier.pins[s.key]) for s in table.sources}
    action, reason = _forced(table, windows)
    if action is RefreshAction.NO_DATA:
        return RefreshPlan(table, action, reason, frontier, windows, epoch=epoch)
    is_compared = is_read(workspace, table)
    prediction, totals = _predict(workspace, table, windows, is_compared)
    if action is None and table.mode.is_strict and not prediction.is_measured:
        action, reason = RefreshAction.DIFFERENTIAL, f"refresh mode is {table.mode}"
    elif action is None:
        action, reason = _choose(windows, prediction, totals, workspace.settings.max_change_ratio)
    modelled = _model(action, windows, totals, is_compared)
    predicted = {**prediction.to_json(), "model": modelled}
    return RefreshPlan(table, action, reason, frontier, windows, predicted, epoch)


def in_full(workspace: Workspace, plan: RefreshPlan, reason: str) -> RefreshPlan:
    """The same refresh by computing everything anew."""
    full = RefreshAction.FULL
    total = sum(total_rows(workspace, w.source, w.new) for w in plan.windows.values())
    modelled = _model(full, plan.windows, total, is_read(workspace, plan.table))
    predicted = {**plan.predicted, "model": modelled}
    return replace(plan, action=full, reason=reason, predicted=predicted)


def _forced(table: StreamTable, windows: Mapping[str, Window]) -> tuple[RefreshAction | None, str]:
    """What must be done whatever it costs, or None when there is a choice."""
    if table.frontier is None:
        return RefreshAction.FULL, FIRST_FILL
    if table.reinitialize:
        return RefreshAction.REINITIALIZE, table.reinitialize
    if trouble := problems(windows):
        return RefreshAction.REINITIALIZE, trouble
    if table.follows_time:
        return RefreshAction.FULL, table.not_differential or "the query asks for the current time"
    if not any(w.is_changed for w in windows.values()):
        return RefreshAction.NO_DATA, "no source changed"
    if table.mode is RefreshMode.FULL:
        return RefreshAction.FULL, "refresh mode is FULL"
    if table.not_differential:
        return RefreshAction.FULL, table.not_differential
    if table.mode.is_strict and not _may_start_from_empty(table, windows):
        return RefreshAction.DIFFERENTIAL, f"refresh mode is {table.mode}"
    return None, ""


def _may_start_from_empty(table: StreamTable, windows: Mapping[str, Window]) -> bool:
    """Whether rows go from a cycle: all is followed that stood on them, or computed from empty.

    The members get the difference either way, and stay as strict as the user wants them.
    """
    is_shrinking = any(w.is_changed and not w.insert_only for w in windows.values())
    return table.keeps_cycle and is_shrinking


def _choose(
    windows: Mapping[str, Window], prediction: Prediction, total: int, limit: float
) -> tuple[RefreshAction, str]:
    rows = sum(w.rows for w in windows.values())
    counted = f"{rows:,} changed of {total:,} rows"
    if not prediction.is_measured and rows > limit * total:
        return (
            RefreshAction.FULL,
            f"{counted}: more than the share of {limit:.0%} (max_change_ratio)",
        )
    if prediction.doubtful is not None:
        return prediction.doubtful, f"{counted}: {prediction}; measured again, as it was only once"
    if prediction.is_differential_cheaper:
        return RefreshAction.DIFFERENTIAL, f"{counted}: {prediction}"
    return RefreshAction.FULL, f"{counted}: {prediction}"


def is_read(workspace: Workspace, table: StreamTable) -> bool:
    """Whether someone waits for the difference that a refresh makes, and not only for the rows."""
    return table.epoch > 0 and bool(workspace.catalog.dependents(table.id))


def _predict(
    workspace: Workspace, table: StreamTable, windows: Mapping[str, Window], is_compared: bool
) -> tuple[Prediction, int]:
    total = sum(total_rows(workspace, w.source, w.new) for w in windows.values())
    rows = sum(w.rows for w in windows.values())
    known = workspace.catalog.recent_costs(table.id)
    # What others read is appended to by either way, and tidied after both.
    tidied = 0 if is_compared else rows_to_tidy(workspace, table, rows, known)
    found = predict(rows, total, known, is_compared=is_compared, tidied_rows=tidied)
    return found, total


def _model(
    action: RefreshAction, windows: Mapping[str, Window], total: int, is_compared: bool
) -> float:
    if action is RefreshAction.DIFFERENTIAL:
        return model_differential(sum(w.rows for w in windows.values()), total)
    return model_full(total, is_compared=is_compared)
