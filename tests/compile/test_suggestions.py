"""What a refusal suggests works: each refused query beside the one that its hint asks for."""

from __future__ import annotations

import pytest

from kit.typer import GuessingTyper
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

_COLUMNS = {
    "t": "id int, a int, b int, k int, x int, f double, s string, xs array<int>, m map<string,int>",
    "u": "id int, a int, y int",
}
_SOURCES = [
    SourceSchema(
        f"default.{table}",
        "delta",
        tuple(Column(*column.split(" ", 1)) for column in text.split(", ")),
    )
    for table, text in _COLUMNS.items()
]

# The words of the hint that are followed, the refused query, and the one that follows them.
_PAIRS = [
    ("add ORDER BY", "SELECT a FROM t LIMIT 3", "SELECT a FROM t ORDER BY a LIMIT 3"),
    ("drop OFFSET", "SELECT a FROM t OFFSET 3", "SELECT a FROM t"),
    (
        "WHERE pmod(xxhash64(id), 100) < 10",
        "SELECT a FROM t TABLESAMPLE (10 PERCENT)",
        "SELECT a FROM t WHERE pmod(xxhash64(id), 100) < 10",
    ),
    ("remove VERSION AS OF", "SELECT a FROM t VERSION AS OF 3", "SELECT a FROM t"),
    ("write the value into the query", "SELECT a + :n AS c FROM t", "SELECT a + 1 AS c FROM t"),
    ("or the date itself", "SELECT a FROM t WHERE DATE 'today' > DATE '2024-01-01'",
     "SELECT a FROM t WHERE DATE '2024-05-01' > DATE '2024-01-01'"),
    (
        "add ORDER BY to the window",
        "SELECT FIRST_VALUE(x) OVER (PARTITION BY k) AS v FROM t",
        "SELECT FIRST_VALUE(x) OVER (PARTITION BY k ORDER BY a) AS v FROM t",
    ),
    (
        "take min()",
        "SELECT FIRST_VALUE(x) OVER (PARTITION BY k) AS v FROM t",
        "SELECT MIN(x) OVER (PARTITION BY k) AS v FROM t",
    ),
    (
        "group by lower(x)",
        "SELECT s COLLATE UTF8_LCASE AS l, COUNT(*) AS n FROM t GROUP BY 1",
        "SELECT lower(s) AS l, COUNT(*) AS n FROM t GROUP BY 1",
    ),
    (
        "fifth argument",
        "SELECT aes_encrypt(s, s, 'CBC') AS e FROM t",
        "SELECT aes_encrypt(s, s, 'CBC', 'DEFAULT', s) AS e FROM t",
    ),
    (
        "take percentile()",
        "SELECT approx_percentile(x, 0.5) OVER (PARTITION BY k) AS p FROM t",
        "SELECT percentile(x, 0.5) OVER (PARTITION BY k) AS p FROM t",
    ),
    (
        "use a subquery",
        "SELECT SUM(COUNT(*)) AS s FROM t GROUP BY k",
        "SELECT SUM(n) AS s FROM (SELECT COUNT(*) AS n FROM t GROUP BY k) q",
    ),
    (
        "compute it in a FROM subquery",
        "SELECT a FROM t WHERE ROW_NUMBER() OVER (ORDER BY x) = 1",
        "SELECT a FROM (SELECT a, ROW_NUMBER() OVER (ORDER BY x) AS n FROM t) q WHERE n = 1",
    ),
    (
        "to_json()",
        "SELECT m, COUNT(*) AS n FROM t GROUP BY m",
        "SELECT to_json(m) AS j, COUNT(*) AS n FROM t GROUP BY to_json(m)",
    ),
    ("list it once", "SELECT * FROM (SELECT k, x FROM t) PIVOT (SUM(x) FOR k IN (1 AS a, 1 AS b))",
     "SELECT * FROM (SELECT k, x FROM t) PIVOT (SUM(x) FOR k IN (1 AS a))"),
    (
        "cast them to one type",
        "SELECT a, v FROM t, (VALUES (1), ('x')) AS w(v)",
        "SELECT a, v FROM t, (VALUES ('1'), ('x')) AS w(v)",
    ),
    (
        "GROUPING SETS",
        "SELECT COUNT(*) AS n FROM t GROUP BY CUBE (a, b, k, x, id, a + 1, b + 1, k + 1, x + 1, id + 1, s)",
        "SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a, b), ())",
    ),
    (
        "do the rest above WITH RECURSIVE",
        "WITH RECURSIVE r(n) AS (SELECT a FROM u UNION ALL SELECT DISTINCT u.y FROM r JOIN u ON u.a = r.n) SELECT n FROM r",
        "WITH RECURSIVE r(n) AS (SELECT a FROM u UNION ALL SELECT u.y FROM r JOIN u ON u.a = r.n) SELECT DISTINCT n FROM r",
    ),
    (
        "CAST(... AS BIGINT)",
        "WITH RECURSIVE r(n) AS (SELECT a FROM u UNION ALL SELECT CAST(r.n AS BIGINT) + u.y FROM r JOIN u ON u.a = r.n) SELECT n FROM r",
        "WITH RECURSIVE r(n) AS (SELECT CAST(a AS BIGINT) FROM u UNION ALL SELECT CAST(r.n AS BIGINT) + u.y FROM r JOIN u ON u.a = r.n) SELECT n FROM r",
    ),
    (
        "QUALIFY ROW_NUMBER()",
        "SELECT DISTINCT ON (a) a, x FROM t",
        "SELECT a, x FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY x) = 1",
    ),
    (
        "say which row is meant",
        "SELECT k, FIRST(x) AS v FROM t GROUP BY k",
        "SELECT k, MIN_BY(x, id) AS v FROM t GROUP BY k",
    ),
    (
        "add it to GROUP BY",
        "SELECT a FROM t HAVING a > 1",
        "SELECT a FROM t GROUP BY a HAVING a > 1",
    ),
]  # fmt: skip


def _compiled(query: str) -> CompiledQuery:
    return compile_query(query, _SOURCES, GuessingTyper())


@pytest.mark.parametrize(("words", "refused", "rewritten"), _PAIRS)
def test_the_suggestion_works(words: str, refused: str, rewritten: str) -> None:
    with pytest.raises((InvalidQuery, NotDifferentiable)) as caught:
        _compiled(refused)
    assert words in (caught.value.hint or "")
    assert _compiled(rewritten).program(frozenset({"default.t", "default.u"}))
