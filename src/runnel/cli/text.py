"""Plain text for terminals and pipes: tables, colours, errors; cheap enough for `runnel status`."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, TextIO

from runnel.errors import RunnelError
from runnel.model.tabular import display_width

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_NARROWEST = 24
_COLOURS = {
    "ACTIVE": "green", "OK": "green", "ok": "green", "fixed": "green",
    "SUSPENDED": "yellow", "UNINITIALIZED": "yellow", "RUNNING": "yellow", "warning": "yellow",
    "UPSTREAM_SUSPENDED": "yellow", "UPSTREAM_FAILED": "yellow",
    "INTERRUPTED": "yellow", "REINITIALIZE": "yellow",
    "FAILED": "red", "DIFFERENT": "red", "problem": "red",
    "refresh_failed": "red", "auto_suspended": "red", "stale": "yellow", "lasts": "yellow",
    "DIFFERENTIAL": "cyan", "NO_DATA": "dim", "SKIP": "dim",
}  # fmt: skip


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colour(stream: TextIO) -> bool:
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def painted(text: str, style: str, stream: TextIO | None = None) -> str:
    """Text in a colour where the stream shows colours."""
    shows = has_colour(stream if stream is not None else sys.stdout)
    return f"\033[{_CODES[style]}m{text}\033[0m" if shows and text else text


def terminal_width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def say(text: str = "") -> None:
    """A line on standard output: what was asked for."""
    print(text, file=sys.stdout)


def note(text: str) -> None:
    """A line on standard error: what happened on the way."""
    print(painted(text, "dim", sys.stderr), file=sys.stderr)


def show_error(error: RunnelError, at: str | None = None) -> None:
    """An error on standard error, without a traceback."""
    print(painted("error:", "red", sys.stderr), error.primary, file=sys.stderr)
    for title, text in (("at", at), ("detail", error.detail), ("hint", error.hint)):
        if text:
            first, *more = text.splitlines()
            print(painted(f"{title}:", "bold", sys.stderr), first, file=sys.stderr)
            print("".join(f"  {line}\n" for line in more), end="", file=sys.stderr)


def table(titles: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[str] = ()) -> str:
    """Aligned columns; in a terminal the last one is wrapped to fit. `right` are titles."""
    cells = [["" if value is None else str(value) for value in row] for row in rows]
    width = terminal_width() if is_terminal(sys.stdout) else None
    widths = _widths(titles, cells, width)
    aligned = [title in right for title in titles]
    lines = [painted(_line(titles, widths, aligned), "bold")]
    for row in cells:
        lines += _wrapped(row, widths, aligned)
    return "\n".join(lines)


def _widths(titles: Sequence[str], rows: list[list[str]], limit: int | None) -> list[int]:
    widths = [
        max(display_width(text) for text in column)
        for column in zip(titles, *(row for row in rows), strict=True)
    ]
    if limit is not None:
        before = sum(widths[:-1]) + 2 * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(limit - before, _NARROWEST))
    return widths


def _wrapped(row: list[str], widths: list[int], aligned: list[bool]) -> list[str]:
    last = textwrap.wrap(row[-1], widths[-1]) if row[-1] else [""]
    lines = [[*row[:-1], last[0]], *([""] * (len(row) - 1) + [text] for text in last[1:])]
    return [_line(line, widths, aligned, paint=True) for line in lines]


def _line(
    row: Sequence[str], widths: list[int], aligned: list[bool], *, paint: bool = False
) -> str:
    parts = []
    for text, width, to_right in zip(row, widths, aligned, strict=True):
        space = " " * (width - display_width(text))
        shown = painted(text, _COLOURS[text]) if paint and text in _COLOURS else text
        parts.append(space + shown if to_right else shown + space)
    return "  ".join(parts).rstrip()
