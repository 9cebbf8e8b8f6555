"""Settings under which Spark reads a query in another way than the compiler."""

from __future__ import annotations

import pytest

from runnel.compile.readings import READINGS, refuse_quotes, refuse_readings
from runnel.errors import InvalidQuery, NotDifferentiable

_QUOTES = {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}


@pytest.mark.parametrize("query", ['SELECT "b" FROM t', 'SELECT b AS "x y" FROM t'])
def test_names_in_double_quotes(query: str) -> None:
    with pytest.raises(InvalidQuery, match="double quotes") as caught:
        refuse_quotes(query, _QUOTES)
    assert "backticks" in str(caught.value.hint)
    refuse_quotes(query, {})


@pytest.mark.parametrize("query", ["SELECT '\"b\"' AS x FROM t", 'SELECT `"` FROM t -- "x"'])
def test_quotes_inside_texts_and_names(query: str) -> None:
    refuse_quotes(query, _QUOTES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.ansi.relationPrecedence", "true"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.groupByAliases", "false"),
        ("spark.sql.groupByOrdinal", "false"),
        ("spark.sql.orderByOrdinal", "false"),
    ],
)
def test_names_and_numbers_that_mean_something_else(name: str, value: str) -> None:
    assert name in READINGS
    with pytest.raises(NotDifferentiable, match=f"{name} = {value}"):
        refuse_readings({name: value})


def test_the_usual_settings() -> None:
    refuse_readings({name: "false" for name in READINGS if not name.startswith("spark.sql.group")
                     and not name.startswith("spark.sql.order")})  # fmt: skip
    refuse_readings({})
