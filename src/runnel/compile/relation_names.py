"""Other ways to name a table in a query: TABLE t, and IDENTIFIER('t').

Both are read as the plain name. What replaces a table in the text has to replace them as a whole,
so the name notes where they begin and end (`compile/sources.py`).
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from runnel.compile.pipes import PipeParser
from runnel.errors import InvalidQuery

_WORD = "table_word"
_PART = r"(`[^`]+`|\w+)"
_NAME = re.compile(rf"{_PART}(\.{_PART}){{0,2}}")


def table_word(table: exp.Table) -> tuple[int, int] | None:
    """Where the word TABLE stands, if the table is a whole query by it."""
    return table.meta.get(_WORD)


class RelationNameParser(PipeParser):
    """Reads them where the name of a table may stand."""

    SUPPORTS_TABLE_QUERY: ClassVar[bool] = True

    def _parse_table_parts(self, *args: Any, **kwargs: Any) -> exp.Table | exp.Dot | None:
        word = self._prev if self._prev.token_type is TokenType.TABLE else None
        if self._match_text_seq("IDENTIFIER", advance=False) and self._next_is_paren():
            table: exp.Table | exp.Dot | None = self._parse_identifier_clause()
        else:
            table = super()._parse_table_parts(*args, **kwargs)
        if word is not None and isinstance(table, exp.Table):
            table.meta[_WORD] = (word.start, word.end)
        return table

    def _next_is_paren(self) -> bool:
        return self._next is not None and self._next.token_type is TokenType.L_PAREN

    def _parse_identifier_clause(self) -> exp.Table:
        first = self._curr
        self._advance(2)
        name = self._parse_string()
        if not isinstance(name, exp.Literal) or not self._match(TokenType.R_PAREN):
            raise InvalidQuery(
                "IDENTIFIER() of something else than one string",
                hint="write the name of the table",
            )
        return _named(name.name, first, self._prev)


def _named(name: str, first: Token, last: Token) -> exp.Table:
    """The table of that name, which stands between two tokens."""
    if _NAME.fullmatch(name) is None:
        raise InvalidQuery(f"IDENTIFIER('{name}') is not the name of a table")
    table = exp.to_table(name, dialect="spark")
    for part in table.parts:
        part.meta.update(line=last.line, col=last.col, start=first.start, end=last.end)
    return table
