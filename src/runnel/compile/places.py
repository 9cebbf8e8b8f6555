"""Where in the user's text a construct stands, so that a refusal can point at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from runnel.errors import UserError

_LONGEST = 60


@contextmanager
def at(node: exp.Expr, opening: str | None = None) -> Iterator[None]:
    """What is refused inside is refused here, unless it is known more exactly.

    `opening` is the keyword with which a clause begins: its own place is not known to the tree.
    """
    try:
        yield
    except UserError as error:
        if error.span is None and (span := _span(node)) is not None:
            error.span, error.opening = span, opening
        raise


def point(error: UserError, query: str) -> None:
    """Say where in the text the construct stands, if that is known."""
    if error.span is None or error.place is not None:
        return
    # The parser counts from the first character that is not blank.
    blank = len(query) - len(query.lstrip())
    start = _opened(query, blank + error.span[0], error.opening)
    error.place = described(query, start, blank + error.span[1])


def described(query: str, start: int, end: int) -> str:
    """Line, column and text of what stands between two characters."""
    start, end = _widened(query, start, end)
    before = query[:start]
    line, column = before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1
    found = " ".join(query[start : end + 1].split())
    shown = found if len(found) <= _LONGEST else f"{found[: _LONGEST - 3]}..."
    return f"line {line}, column {column}: {shown}"


def _opened(query: str, start: int, opening: str | None) -> int:
    """Where the last such keyword before a place begins; the place itself when there is none."""
    if opening is None:
        return start
    words = [m.start() for m in re.finditer(rf"(?i)\b{opening}\b", query[:start])]
    return words[-1] if words else start


def _widened(query: str, start: int, end: int) -> tuple[int, int]:
    """The span with its parentheses closed, and the function's name before the first of them."""
    if query[end + 1 : end + 2] == "(":
        end += 1  # a function, of which the name is known
    depth = lowest = 0
    for character in query[start : end + 1]:
        depth += (character == "(") - (character == ")")
        lowest = min(lowest, depth)
    for _ in range(-lowest):
        start = max(query.rfind("(", 0, start), 0)
        while start > 0 and (query[start - 1].isalnum() or query[start - 1] == "_"):
            start -= 1
    for _ in range(depth - lowest):
        closing = query.find(")", end + 1)
        end = closing if closing >= 0 else end
    return start, end


def _span(node: exp.Expr) -> tuple[int, int] | None:
    """From the first to the last name in it: only names know their place."""
    known = [n.meta for n in node.walk() if "start" in n.meta]
    if not known:
        return None
    return min(m["start"] for m in known), max(m["end"] for m in known)
