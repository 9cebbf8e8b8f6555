"""The words of a statement, and a cursor over them."""

from __future__ import annotations

import re
from typing import TypeVar

from runnel.errors import UserError
from runnel.model.names import TableName

TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<word>[^\W\d]\w*)
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<mark>=>|.)""",
    re.VERBOSE | re.DOTALL,
)

S = TypeVar("S")


class Tokens:
    """A cursor over the words of a statement."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._matches = [m for m in TOKEN.finditer(text) if m.lastgroup != "space"]
        while self._matches and self._matches[-1].group() == ";":
            self._matches.pop()
        self._position = 0

    def peek(self) -> str | None:
        return (
            self._matches[self._position].group() if self._position < len(self._matches) else None
        )

    def accept(self, *words: str) -> bool:
        """Step over these words if they come next, in any case."""
        ahead = self._matches[self._position : self._position + len(words)]
        if [m.group().upper() for m in ahead] != list(words):
            return False
        self._position += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.wrong(" ".join(words))

    def take(self, kind: str, what: str) -> str:
        match = self._matches[self._position] if self.peek() is not None else None
        if match is None or match.lastgroup != kind:
            raise self.wrong(what)
        self._position += 1
        return match.group()

    def string(self, what: str) -> str:
        text = self.take("string", what)
        quote = text[0]
        return text[1:-1].replace(quote * 2, quote).replace("\\" + quote, quote)

    def name(self) -> TableName:
        parts = []
        while True:
            match = self._matches[self._position] if self.peek() is not None else None
            if match is None or match.lastgroup not in ("word", "quoted"):
                raise self.wrong("a table name")
            parts.append(match.group())
            self._position += 1
            if self.peek() != ".":
                return TableName.parse(".".join(parts))
            self._position += 1

    def rest(self) -> str:
        """The text from here on: a query."""
        if self.peek() is None:
            raise self.wrong("a query")
        return self.text[self._matches[self._position].start() : self._matches[-1].end()]

    def end(self, statement: S) -> S:
        if self.peek() is not None:
            raise self.wrong("the end of the statement")
        return statement

    def wrong(self, expected: str) -> UserError:
        found = self.peek()
        return UserError(
            f"expected {expected}, found {found or 'the end of the statement'}",
            detail=f"in: {' '.join(self.text.split())[:120]}",
            hint="docs/sql.md lists the statements",
        )
