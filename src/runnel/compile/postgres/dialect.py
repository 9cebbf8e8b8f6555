"""PostgreSQL as it was written: functions keep their names, so that each can be judged."""

from __future__ import annotations

import logging
import re
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType

from runnel.compile.parse import UNREADABLE, place
from runnel.compile.postgres.values import refused
from runnel.errors import InvalidQuery

logging.getLogger("sqlglot").setLevel(logging.ERROR)

# Only what has a syntax of its own; every other call is read as a name and its arguments.
_WITH_SYNTAX = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "STRING_AGG", "SUBSTRING", "TRIM")
_STRANGE_ESCAPE = re.compile(r"\b[eE]'(?:[^'\\]|''|\\[^xuU0-7])*\\[xuU0-7]")


class PostgresSql(Postgres):
    """Subscripts are left as they are written, and functions under their own names."""

    INDEX_OFFSET = 0
    NUMBERS_CAN_BE_UNDERSCORE_SEPARATED = True

    class Parser(PostgresParser):
        # `->` is an operator here, inside a call too.
        LAMBDAS: ClassVar[dict[Any, Any]] = {
            token: build
            for token, build in PostgresParser.LAMBDAS.items()
            if token is TokenType.FARROW
        }
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: PostgresParser.FUNCTION_PARSERS[name] for name in _WITH_SYNTAX
        }


def parse_postgres(query: str) -> exp.Query:
    """The syntax tree of one PostgreSQL query."""
    text = query.strip().rstrip(";")
    if _STRANGE_ESCAPE.search(text):
        raise refused("a character escape by number in E'...'", hint="write the character itself")
    try:
        statements = [s for s in sqlglot.parse(text, dialect=PostgresSql) if s is not None]
    except (ParseError, TokenError) as error:
        raise InvalidQuery(
            "the query cannot be parsed as PostgreSQL", detail=place(error), hint=UNREADABLE
        ) from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise InvalidQuery(
            "expected one query", hint="a stream table is defined by SELECT ... or WITH ... SELECT"
        )
    return statements[0]
