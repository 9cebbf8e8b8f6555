"""A script cut into its statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from runnel.sql.tokens import TOKEN


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a script, and the line on which it begins."""

    text: str
    line: int


def split_statements(script: str) -> Iterator[str]:
    """Cut a script at its semicolons, but not those inside strings, names or comments."""
    pieces, rest = cut_script(script)
    yield from (piece.text for piece in pieces)
    if rest is not None:
        yield rest.text.strip()


def cut_script(script: str) -> tuple[list[Piece], Piece | None]:
    """The statements that a semicolon ends, and what was begun after the last of them."""
    pieces: list[Piece] = []
    start: int | None = None
    for match in TOKEN.finditer(script):
        if match.group() == ";":
            if start is not None:
                pieces.append(_piece(script, start, script[start : match.start()].strip()))
            start = None
        elif match.lastgroup != "space":
            start = match.start() if start is None else start
            if _is_open(script, match):
                break
    return pieces, None if start is None else _piece(script, start, script[start:])


def _piece(script: str, start: int, text: str) -> Piece:
    return Piece(text, script.count("\n", 0, start) + 1)


def _is_open(script: str, match: re.Match[str]) -> bool:
    """Whether a string, a quoted name or a comment begins here that never ends."""
    return match.group() in ("'", '"', "`") or script.startswith("/*", match.start())
