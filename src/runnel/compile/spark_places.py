"""Where in the user's query Spark found an error, which it tells of a text made from that query."""

from __future__ import annotations

import re

from runnel.compile.origins import Woven
from runnel.errors import UserError

_TOLD = re.compile(r"[;\s]*\(?line (\d+),? pos (\d+)\)?$")
_NAME = re.compile(r"(`[^`]*`|[\w.])*")


def locate(error: UserError, query: str, made: Woven) -> None:
    """Let an error about the made text point into the query, in the place of Spark's numbers."""
    told = _TOLD.search(error.primary)
    if told is None:
        return
    error.primary = error.primary[: told.start()]
    # What follows is the made text.
    error.detail = (error.detail or "").partition("\n")[0] or None
    start = _position(made, int(told[1]), int(told[2]))
    if start is None:
        return
    word = _NAME.match(query, start)
    end = max(start, word.end() - 1 if word is not None else start)
    blank = len(query) - len(query.lstrip())
    error.span = max(start - blank, 0), max(end - blank, 0)


def _position(made: Woven, line: int, column: int) -> int | None:
    """The place in the query; None for the beginning, which is where Spark puts what it has not."""
    lines = made.text.split("\n")
    at = sum(len(before) + 1 for before in lines[: line - 1]) + column
    pieces = [piece for piece in made.pieces if piece.at <= at]
    return pieces[-1].position(at) if pieces and at > 0 else None
