"""VACUUM as text: of which table, how much it would keep, and the same with more kept."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from runnel.compile.ddl import Words, is_quoted
from runnel.errors import UserError
from runnel.model.names import TableName


@dataclass(frozen=True, slots=True)
class Vacuum:
    """`path` instead of `name` when the table is given by its place.

    `text` is the statement as Spark takes it; `is_forced` when it ended with FORCE, our own word.
    """

    text: str
    name: TableName | None
    path: str | None
    hours: float | None
    is_forced: bool
    place: tuple[int, int]

    def retaining(self, hours: int) -> str:
        """The statement with this many hours."""
        start, end = self.place
        clause = f"RETAIN {hours} HOURS"
        return f"{self.text[:start].rstrip()} {clause} {self.text[end:].lstrip()}".rstrip()


def parse_vacuum(text: str) -> Vacuum | None:
    """None when it is another statement."""
    words = Words.of(text, "VACUUM")
    if words is None or not words.accept("VACUUM"):
        return None
    token = words.peek()
    if token is None:
        return None
    name: TableName | None = None
    path: str | None = None
    if token.token_type is TokenType.STRING:
        path = words.take()
    else:
        try:
            name = words.name()
        except UserError:
            return None
        if name.schema.lower() == "delta":
            path, name = name.name, None
    return _with_clauses(text, words, name, path)


def _with_clauses(text: str, words: Words, name: TableName | None, path: str | None) -> Vacuum:
    tokens = words.rest()
    texts = ["" if is_quoted(t) else t.text.upper() for t in tokens]
    end = words.tokens[-1].end + 1
    is_forced = bool(texts) and texts[-1] == "FORCE"
    if is_forced:
        end = tokens[-1].start
    hours, place = None, (end, end)
    if "RETAIN" in texts:
        at = texts.index("RETAIN")
        hours = float(texts[at + 1])
        place = (tokens[at].start, tokens[at + 2].end + 1)
    elif "DRY" in texts:
        place = (tokens[texts.index("DRY")].start,) * 2
    return Vacuum(text[:end].rstrip(), name, path, hours, is_forced, place)
