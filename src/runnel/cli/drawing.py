"""The scheduler's live view drawn with rich: three small tables, one above the other."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Group
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from runnel.model.refresh import TableState
from runnel.model.tabular import duration
from runnel.schedule.sight import Sight

if TYPE_CHECKING:
    from runnel.cli.board import Board, Running

_TABLES = 12
_BAR = 16


def draw(board: Board) -> Group:
    """The board as it stands; its lock must be held."""
    counts = f"{len(board.running)} running, {board.done:,} done, {board.failed:,} failed"
    parts: list[Text | Table] = [Text(counts, style="bold"), _tables(board)]
    if board.running:
        parts.append(_running(board))
    if board.last:
        parts.append(_last(board))
    return Group(*parts)


def _tables(board: Board) -> Table:
    passed = monotonic() - board.looked_at
    drawn = _grid("table", "lag", "target", "due in", "")
    for sight in board.tables[:_TABLES]:
        drawn.add_row(*_row(sight, passed, board.errors.get(sight.name, "")))
    if (more := len(board.tables) - _TABLES) > 0:
        drawn.add_row(Text(f"and {more:,} more", style="dim"))
    if not board.tables:
        drawn.add_row(Text("no stream tables yet", style="dim"))
    return drawn


def _row(sight: Sight, passed: float, error: str) -> tuple[Text | str, ...]:
    if sight.lag is not None:
        sight = replace(sight, lag=sight.lag + passed)
    due = "" if sight.due_in is None else duration(max(0.0, sight.due_in - passed))
    lag = "never filled" if sight.lag is None else duration(sight.lag)
    shown = Text(lag, style="red" if sight.is_late else "green")
    return escape(sight.name), shown, duration(sight.target), due, _remark(sight, error)


def _remark(sight: Sight, error: str) -> Text:
    if sight.state is TableState.SUSPENDED:
        return Text(f"SUSPENDED  {error}".strip(), style="red")
    if error or sight.errors:
        return Text(f"{sight.errors} failed in a row: {error}", style="red")
    if sight.state is not TableState.ACTIVE:
        return Text(sight.state.value, style="yellow")
    return Text("")


def _running(board: Board) -> Table:
    drawn = _grid("running", "for", "", "")
    for running in board.running.values():
        drawn.add_row(*_progress(running))
    return drawn


def _progress(running: Running) -> tuple[Text | str | ProgressBar, ...]:
    """Measured by what the last refreshes took: nobody knows how much is left in truth."""
    passed = monotonic() - running.since
    if not running.work:
        return escape(running.name), duration(passed), ProgressBar(width=_BAR, pulse=True), ""
    bar = ProgressBar(total=running.work, completed=min(passed, running.work), width=_BAR)
    return escape(running.name), duration(passed), bar, f"of about {duration(running.work)}"


def _last(board: Board) -> Table:
    drawn = _grid("ended (UTC)", "table", "action", "rows", "reason")
    for at, name, action, rows, reason in reversed(board.last):
        style = "red" if action == "FAILED" else "cyan"
        drawn.add_row(at, escape(name), Text(action, style=style), rows, escape(reason))
    return drawn


def _grid(*names: str) -> Table:
    drawn = Table(box=None, pad_edge=False, expand=True, header_style="dim")
    for position, name in enumerate(names):
        is_last = position == len(names) - 1
        drawn.add_column(name, no_wrap=True, overflow="ellipsis", ratio=1 if is_last else None)
    return drawn
