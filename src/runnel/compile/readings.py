"""Settings under which Spark reads the text of a query in another way than the compiler does."""

from __future__ import annotations

from collections.abc import Mapping

from runnel.compile.dialect import SparkSql
from runnel.errors import InvalidQuery, NotDifferentiable

_QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"
_USUAL = {
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
}
READINGS = (_QUOTES, *_USUAL)
"""The settings that are asked for."""


def refuse_quotes(query: str, settings: Mapping[str, str]) -> None:
    """Raise where "x" is a name: it is read, and written anew for FULL, as a text."""
    if settings.get(_QUOTES, "false") != "true":
        return
    if any(query[token.start] == '"' for token in SparkSql().tokenize(query)):
        raise InvalidQuery(
            f"double quotes in a query, under {_QUOTES}",
            hint="write names in backticks and texts in single quotes",
        )


def refuse_readings(settings: Mapping[str, str]) -> None:
    """Raise where names or numbers are resolved in another way."""
    for name, usual in _USUAL.items():
        found = settings.get(name, usual)
        if found != usual:
            raise NotDifferentiable(
                f"a query under {name} = {found}",
                detail="it changes which columns the names and numbers in a query mean",
                hint=f"set it to {usual} before the table is defined, or use refresh mode FULL "
                "or AUTO",
            )
