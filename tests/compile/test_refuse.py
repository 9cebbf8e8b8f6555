"""Functions whose answer is not a function of the sources, and those that only look so."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import runnel
from runnel.compile.refuse import refuse
from runnel.errors import InvalidQuery


@pytest.mark.parametrize(
    "call",
    [
        "reflect('java.util.UUID', 'randomUUID')",
        "java_method('java.lang.Math', 'random')",
        "aes_encrypt(x, k)",
        "aes_encrypt(x, k, 'CBC')",
        "current_path()",
        "randstr(3)",
        "uniform(1, 2)",
    ],
)
def test_refused(call: str) -> None:
    with pytest.raises(InvalidQuery, match=r"is not deterministic|depends on") as caught:
        refuse(f"SELECT a,\n  {call} AS r FROM t")
    assert str(caught.value.place).startswith("line 2, column 3: ")


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
def test_natural_joins_that_spark_has_not(kind: str) -> None:
    with pytest.raises(InvalidQuery, match=f"NATURAL LEFT {kind} JOIN") as caught:
        refuse(f"SELECT t.a FROM t NATURAL LEFT {kind} JOIN u")
    assert caught.value.place == "line 1, column 42: u"
    assert f"LEFT {kind} JOIN ... USING" in str(caught.value.hint)


@pytest.mark.parametrize(
    "call", ["aes_encrypt(x, k, 'ECB')", "aes_encrypt(x, k, 'CBC', 'DEFAULT', iv)"]
)
def test_taken(call: str) -> None:
    refuse(f"SELECT {call} AS r FROM t")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT a FROM t OFFSET 1", "OFFSET without ORDER BY"),
        ("SELECT a FROM (SELECT a FROM t OFFSET 1) q ORDER BY a LIMIT 1", "OFFSET without"),
        ("SELECT first_value(x) OVER (PARTITION BY k) FROM t", "FIRST_VALUE"),
        ("SELECT last_value(x) IGNORE NULLS OVER (PARTITION BY k) FROM t", "LAST_VALUE"),
        ("SELECT nth_value(x, 2) OVER (PARTITION BY k) FROM t", "NTH_VALUE"),
        ("SELECT any_value(x) OVER (PARTITION BY k) FROM t", "ANY_VALUE"),
        ("SELECT first(x) OVER w FROM t WINDOW w AS (PARTITION BY k)", "FIRST"),
        ("SELECT SUM(x) OVER (PARTITION BY k ROWS 1 PRECEDING) FROM t", "SUM"),
        ("SELECT x COLLATE UTF8_LCASE AS k FROM t GROUP BY x COLLATE UTF8_LCASE", "collation"),
        ("SELECT x COLLATE UTF8_LCASE AS k, COUNT(*) FROM t GROUP BY 1", "collation"),
        ("SELECT collate(x, 'UNICODE_CI') AS k, COUNT(*) FROM t GROUP BY k", "collation"),
        ("SELECT DISTINCT x COLLATE UTF8_LCASE AS k FROM t", "collation"),
    ],
)
def test_what_needs_an_order_is_refused_without_one(query: str, words: str) -> None:
    with pytest.raises(InvalidQuery, match=words) as caught:
        refuse(query)
    assert caught.value.hint


@pytest.mark.parametrize(
    "query",
    [
        "SELECT first(x) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY x)",
        "SELECT SUM(x) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u LIMIT 1)",
        "SELECT x FROM t WHERE x COLLATE UTF8_LCASE = 'a'",
        "SELECT x COLLATE UTF8_BINARY AS k, COUNT(*) FROM t GROUP BY x COLLATE UTF8_BINARY",
        "SELECT x COLLATE UTF8_LCASE = 'a' AS k FROM t GROUP BY x COLLATE UTF8_LCASE = 'a'",
    ],
)
def test_what_needs_none_is_taken(query: str) -> None:
    refuse(query)


def test_every_refusal_says_what_to_do_instead() -> None:
    """Each place in the code that refuses a construct gives a hint."""
    without = [
        f"{path.name}:{node.lineno}"
        for path in sorted(Path(runnel.__file__).parent.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "NotDifferentiable"
        if not any(keyword.arg == "hint" for keyword in node.keywords)
    ]
    assert not without
