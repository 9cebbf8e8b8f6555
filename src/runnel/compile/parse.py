"""Query text to a syntax tree, with errors that point at the place."""

from __future__ import annotations

import logging

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from runnel.compile.dialect import SparkSql
from runnel.errors import InvalidQuery

logging.getLogger("sqlglot").setLevel(logging.ERROR)


def parse(query: str) -> exp.Query:
    """Parse one query written in Spark SQL."""
    text = query.strip().rstrip(";")
    try:
        statements = [s for s in sqlglot.parse(text, dialect=SparkSql) if s is not None]
    except (ParseError, TokenError) as error:
        raise InvalidQuery("the query cannot be parsed", detail=place(error)) from None
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
    return statement


def place(error: Exception) -> str:
    """Where in the text the parser stopped."""
    details = getattr(error, "errors", None)
    if not details:
        return str(error).splitlines()[0]
    first = details[0]
    near = (first.get("highlight") or "").strip()
    where = f"line {first.get('line')}, column {first.get('col')}"
    return f"{first.get('description')} ({where}, near {near!r})" if near else f"{where}"
