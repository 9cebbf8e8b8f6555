"""A lake whose refreshes are real but for what they compute: catalog, traces, leases, passes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any

import pytest

from lake.traces import LAYOUT, append
from runnel.catalog import StreamTable
from runnel.model import refresh as states
from runnel.model.frontier import Frontier, Pin
from runnel.model.refresh import RefreshAction, TableState
from runnel.refresh import attempt, group
from runnel.refresh.execute import Outcome
from runnel.refresh.instants import Past
from runnel.refresh.plan import RefreshPlan
from runnel.refresh.workspace import Workspace
from runnel.schedule import executor, one_pass
from schedule.lake import FakeLake

Act = Callable[[], object]


class MadeUp(FakeLake):
    """Base sources (x...) are version numbers; a refresh appends the versions that it read."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        super().__init__(folder, busy_wait_seconds=0, **settings)
        self.before: dict[str, Act] = {}
        for module in (attempt, group):
            monkeypatch.setattr(module, "carry_out", self.carry_out)
        for module in (one_pass, executor):
            monkeypatch.setattr(module, "tidy_when_due", lambda workspace, table_id: None)

    def make(self, name: str, *sources: str, at: float | None = None, **more: Any) -> StreamTable:
        """A table that was filled a minute ago, or at an instant."""
        at = time() - 60 if at is None else at
        table = self.add(name, more.pop("schedule", None), *sources, at=at, layout=LAYOUT, **more)
        assert table.frontier is not None
        append(self.workspace.trace(table), 1, [(1, 1)], frontier=table.frontier.to_json())
        catalog = self.workspace.catalog
        catalog.finish_attempt(
            catalog.start_attempt(table.id, self.workspace.leases.owner), states.Outcome.OK,
            action=RefreshAction.FULL, frontier=table.frontier, epoch=1,
        )  # fmt: skip
        return table

    def carry_out(
        self, workspace: Workspace, table: StreamTable, frontier: Frontier, held: Any, begun: Any,
        group: str | None = None, near: Any = None, lives: Any = None,
    ) -> tuple[RefreshPlan, Outcome]:  # fmt: skip
        self.before.pop(str(table.name), lambda: None)()
        attempt.check_all(held)
        trace = workspace.trace(table)
        if table.frontier is not None and table.frontier.pins == frontier.pins:
            plan = RefreshPlan(table, RefreshAction.NO_DATA, "no source changed", frontier, {})
            return plan, Outcome(table.epoch)
        epoch = trace.next_epoch()
        rows = [(100 * epoch + pin.version, 1) for pin in frontier.pins.values()]
        append(trace, epoch, rows, group=group, frontier=frontier.to_json())
        plan = RefreshPlan(table, RefreshAction.DIFFERENTIAL, "", frontier, {}, {}, epoch, group)
        return plan, Outcome(epoch, rows_inserted=len(rows))

    def found(self, name: str) -> StreamTable:
        table = self.workspace.catalog.find(f"default.{name}")
        assert table is not None
        return table

    def suspend(self, name: str) -> None:
        self.workspace.catalog.update_table(self.found(name).id, state=TableState.SUSPENDED)

    def resume(self, name: str) -> None:
        self.workspace.catalog.update_table(self.found(name).id, state=TableState.ACTIVE)

    def versions(self, name: str) -> dict[str, int]:
        """The versions of base sources that a table is computed from; fails when it saw two."""
        table = self.found(name)
        assert table.frontier is not None
        base = self.base_of(table.frontier, table)
        assert base is not None, f"{name} mixes two versions of a base source"
        return {key.removeprefix("default."): pin.version for key, pin in base.items()}

    def base_of(self, frontier: Frontier, table: StreamTable) -> dict[str, Pin] | None:
        base = Past(self.workspace.catalog, lambda *_: True)._base(table, frontier)
        return None if base is None else dict(base)

    def instant(self, name: str) -> datetime:
        return datetime.fromtimestamp(self.at(name), UTC)

    def skips(self, name: str) -> list[str | None]:
        """The reasons in a table's history for which it was left out, newest first."""
        entries = self.workspace.catalog.history(f"default.{name}", 100)
        return [entry.reason for entry in entries if entry.action is RefreshAction.SKIP]
