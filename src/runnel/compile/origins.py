"""Where the characters of a text come from that was put together out of other texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from runnel.compile.places import described


@dataclass(frozen=True, slots=True)
class Piece:
    """`length` characters from `at` on, which stand in `source` from `start` on.

    `name` is what `source` is the text of; empty for the user's own query.
    """

    at: int
    length: int
    source: str
    start: int
    name: str = ""

    def shifted(self, by: int) -> Piece:
        return replace(self, at=self.at + by)

    def position(self, at: int) -> int:
        """The position in the source; what was written behind the piece belongs to its end."""
        return self.start + min(at - self.at, self.length)


@dataclass(frozen=True, slots=True)
class Woven:
    """A text and where it comes from."""

    text: str
    pieces: tuple[Piece, ...] = ()

    def inside(self, before: str, after: str) -> Woven:
        """The text with something written around it."""
        moved = tuple(piece.shifted(len(before)) for piece in self.pieces)
        return Woven(f"{before}{self.text}{after}", moved)

    def place(self, span: tuple[int, int]) -> str | None:
        """Where the user finds what stands between two characters; None when nobody knows."""
        blank = len(self.text) - len(self.text.lstrip())
        first, last = self._piece(blank + span[0]), self._piece(blank + span[1])
        if first is None or last is None:
            return None
        start, end = first.position(blank + span[0]), last.position(blank + span[1])
        if (first.source, first.name) != (last.source, last.name) or end < start:
            end = start
        place = described(first.source, start, end)
        return f"in view {first.name}, {place}" if first.name else place

    def _piece(self, at: int) -> Piece | None:
        return next((piece for piece in reversed(self.pieces) if piece.at <= at), None)


def weave(source: str, edits: Iterable[tuple[int, int, Woven]], name: str = "") -> Woven:
    """A text with parts of it replaced; `edits` say from where to where, and by what."""
    text, pieces, position = "", list[Piece](), 0
    for start, end, made in sorted(edits, key=lambda edit: edit[:2]):
        pieces.append(Piece(len(text), start - position, source, position, name))
        text += source[position:start]
        pieces += [piece.shifted(len(text)) for piece in made.pieces]
        text += made.text
        position = end
    pieces.append(Piece(len(text), len(source) - position, source, position, name))
    return Woven(text + source[position:], tuple(pieces))
