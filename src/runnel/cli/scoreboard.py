"""What the demo shows: a table after each round, and the totals at the end."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from runnel.cli.shop import SIZES, STREAM_TABLES, Round
from runnel.model.refresh import RefreshAction
from runnel.model.tabular import duration

if TYPE_CHECKING:
    from runnel.model.results import RefreshResult, VerifyResult

_WIDEST = 100
_STYLES = {
    RefreshAction.DIFFERENTIAL: "cyan",
    RefreshAction.NO_DATA: "dim",
    RefreshAction.FULL: "yellow",
    RefreshAction.REINITIALIZE: "yellow",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One stream table after one round."""

    refreshed: RefreshResult
    full_seconds: float
    verified: VerifyResult


class Scoreboard:
    """Tells the demo's story on the terminal and adds up what happened."""

    def __init__(self, folder: Path, *, kept: bool) -> None:
        self._folder = folder
        self._kept = kept
        self._lines: list[Line] = []
        self._console = Console(highlight=False)
        # A pipe has no width of its own.
        if not sys.stdout.isatty() or self._console.width > _WIDEST:
            self._console = Console(highlight=False, width=_WIDEST)

    @property
    def is_right(self) -> bool:
        return bool(self._lines) and all(line.verified.ok for line in self._lines)

    def last(self, name: str) -> Line | None:
        """What was last shown of a table."""
        return next((line for line in self._lines[::-1] if line.refreshed.name == name), None)

    def opening(self) -> None:
        tables = ", ".join(f"[bold]{name}[/] ({rows:,} rows)" for name, rows in SIZES.items())
        self._console.print(f"A small shop on Delta tables: {tables}.")
        self._console.print("Four stream tables over it:")
        for shown in STREAM_TABLES:
            self._console.print(f"\n  [bold]{shown.name}[/], {shown.kind} ({shown.mode})")
            for row in shown.query.splitlines():
                self._console.print(f"    [dim]{escape(row)}[/]")

    def announce(self, number: int, happening: Round) -> None:
        self._console.print()
        self._console.print(Rule(f"[bold]Round {number}. {happening.title}", align="left"))
        self._console.print(happening.told, style="italic")
        for statement in happening.statements:
            self._console.print(
                Text(f"  {statement};"), style="dim", no_wrap=True, overflow="ellipsis"
            )

    def show(self, lines: list[Line]) -> None:
        """The table after a round."""
        self._lines += lines
        drawn = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, expand=True)
        for title in ("stream table", "what was done, and why"):
            drawn.add_column(title, ratio=2 if title.startswith("what") else None)
        for title in ("rows in", "rows out", "refresh", "full", "VERIFY"):
            drawn.add_column(title, justify="right", no_wrap=True)
        for line in lines:
            drawn.add_row(*_cells(line))
        self._console.print(drawn)

    def summary(self) -> None:
        done = [line.refreshed for line in self._lines]
        refreshing = sum(result.seconds for result in done)
        full = sum(line.full_seconds for line in self._lines)
        wrong = [line.verified.name for line in self._lines if not line.verified.ok]
        console = self._console
        console.print(Rule("[bold]In total", align="left"))
        console.print(
            f"{len(done)} refreshes: {_counts(done)}. "
            f"{sum(r.change_rows or 0 for r in done):,} changed rows read, "
            f"{sum(r.rows_inserted + r.rows_deleted for r in done):,} rows written."
        )
        console.print(
            f"Refreshing took {duration(refreshing)}; recomputing every table in every round would "
            f"have taken {duration(full)}."
        )
        if wrong:
            console.print(f"[bold red]VERIFY found differences in {', '.join(wrong)}.")
        else:
            console.print(
                f"[green]VERIFY found every table equal to its query, all {len(done)} times."
            )
        console.print(_FOOTER, style="dim")
        self._next_steps()

    def _next_steps(self) -> None:
        console = self._console
        console.print("\n[bold]Next")
        if not self._kept:
            console.print("  runnel demo --lake shop        the same, and the lake stays for you")
            console.print("  runnel sql --lake my_lake      make your own")
            return
        for command, told in (
            ("status", "how the tables stand"),
            ("history revenue_by_city", "what each refresh did, and why"),
            ("sql", "a prompt: change the shop, then REFRESH STREAM TABLES;"),
        ):
            console.print(f"  runnel --lake {self._folder} {command}", soft_wrap=True)
            console.print(f"    [dim]{told}")


_FOOTER = (
    "rows in: changed rows of the sources. rows out: rows added and taken away. full: the time to "
    "run the same query over everything and write its result as Parquet files, measured when the "
    "sources last changed. VERIFY: Spark evaluates the query at the same versions, and all rows "
    "are compared. The shop is tiny, so these times are mostly Spark's fixed costs; make bench "
    "compares at ten million rows."
)


def _cells(line: Line) -> tuple[Text | str, ...]:
    result = line.refreshed
    action = Text(result.action, style=_STYLES.get(result.action, ""))
    action.append(f"\n{result.reason}", style="dim")
    return (
        Text(result.name, style="bold"),
        action,
        f"{result.change_rows or 0:,}",
        f"+{result.rows_inserted:,} -{result.rows_deleted:,}",
        duration(result.seconds),
        duration(line.full_seconds),
        _verdict(line),
    )


def _verdict(line: Line) -> Text:
    if not line.verified.ok:
        return Text("DIFFERENT", style="bold red")
    return Text("ok", style="green")


def _counts(results: list[RefreshResult]) -> str:
    counts = {action: sum(r.action is action for r in results) for action in RefreshAction}
    return ", ".join(f"{n} {action}" for action, n in counts.items() if n)
