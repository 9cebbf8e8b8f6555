"""Query text to a syntax tree, with errors that point at the place."""

from __future__ import annotations

import logging
import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from runnel.compile.dialect import SparkSql
from runnel.errors import InvalidQuery

logging.getLogger("sqlglot").setLevel(logging.ERROR)

UNREADABLE = "look at that place, and just before it, for a misspelt word, a comma or a bracket"
_OWN_WORDS = re.compile(r"( but got| for)? <(Token|class) .*", re.DOTALL)


def parse(query: str) -> exp.Query:
    """Parse one query written in Spark SQL."""
    text = query.strip().rstrip(";")
    try:
        statements = [s for s in sqlglot.parse(text, dialect=SparkSql) if s is not None]
    except (ParseError, TokenError) as error:
        raise InvalidQuery(
            "the query cannot be parsed", detail=place(error), hint=UNREADABLE
        ) from None
    if len(statements) != 1:
        raise InvalidQuery(
            f"expected one query, found {len(statements)} statements",
            hint="define one stream table for each query",
        )
    statement = statements[0]
    if not isinstance(statement, exp.Query):
        raise InvalidQuery(
            f"expected a query, found {statement.key.upper()}",
            hint="a stream table is defined by SELECT ... or WITH ... SELECT ...",
        )
    # Hints look like tables and functions, and change no answer; Spark finds them in the text.
    for select in statement.find_all(exp.Select):
        select.set("hint", None)
    return statement


def place(error: Exception) -> str:
    """Where in the text the parser stopped."""
    details = getattr(error, "errors", None)
    if not details:
        return str(error).splitlines()[0]
    first = details[0]
    near = (first.get("highlight") or "").strip()
    where = f"line {first.get('line')}, column {first.get('col')}"
    return f"{_said(first.get('description') or '')} ({where}, near {near!r})" if near else where


def _said(description: str) -> str:
    """What the parser says, without the names of its own classes."""
    if description.startswith("Required keyword"):
        return "Something is missing"
    return _OWN_WORDS.sub("", description)
