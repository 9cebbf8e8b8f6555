"""GROUP BY session_window(): sessions that come, grow together and fall apart, on DuckDB.

DuckDB has no such function, so that the answer is found in another way: a row opens a session when no
row of its keys that is earlier lasts until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random

import duckdb
import pytest

from kit.duck import connection
from kit.duck_backend import DuckBackend
from kit.step import Change, TableSpec
from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import compile_query
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

_COLUMNS = (Column("id", "int"), Column("k", "int"), Column("ts", "timestamp"))
_QUERY = """
    SELECT k, session_window.start AS s, session_window.end AS e, COUNT(*) AS n, MIN(id) AS m
    FROM t WHERE id <> 7 GROUP BY k, session_window(ts, '5 minutes') HAVING COUNT(*) < 9
"""
_ORACLE = """
    WITH e AS (SELECT id, k, ts, ts + INTERVAL '5' MINUTE AS te FROM t WHERE ts IS NOT NULL AND id <> 7),
    o AS (SELECT k, ts FROM e WHERE NOT EXISTS (
        SELECT 1 FROM e AS p WHERE p.k <=> e.k AND p.ts < e.ts AND p.te >= e.ts)),
    s AS (SELECT e.*, (SELECT MAX(o.ts) FROM o WHERE o.k <=> e.k AND o.ts <= e.ts) AS s FROM e)
    SELECT k, s, MAX(te) AS e, COUNT(*) AS n, MIN(id) AS m FROM s GROUP BY k, s HAVING COUNT(*) < 9
"""
_NOON = datetime(2026, 1, 1, 12)


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


def _row(random: Random) -> tuple[int, int | None, datetime | None]:
    minute = random.choice([None, *range(0, 60, 2), 5, 15])
    time = _NOON + timedelta(minutes=minute) if minute is not None else None
    return random.randrange(9), random.choice([1, 1, 2, None]), time


@pytest.mark.parametrize("kind", ["delta", "trace"])
@pytest.mark.parametrize("seed", range(4))
def test_sessions_follow_their_rows(con: duckdb.DuckDBPyConnection, kind: str, seed: int) -> None:
    random = Random(seed)
    rows = [_row(random) for _ in range(12)]
    backend = DuckBackend(con)
    backend.create_table(TableSpec("t", _COLUMNS, kind, True, list(rows)))
    backend.create_stream_table(_QUERY, _ORACLE)
    actions = set()
    for _ in range(8):
        changes = []
        for _ in range(random.randrange(1, 4)):
            old = rows.pop(random.randrange(len(rows))) if random.random() < 0.5 else None
            new = _row(random) if old is None or random.random() < 0.5 else None
            rows += [new] if new is not None else []
            changes.append(Change("t", old, new))
        backend.commit(changes)
        actions.add(backend.refresh())
        assert backend.contents() == backend.oracle()
    assert "DIFFERENTIAL" in actions
    backend.close()


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT session_window(ts, '5 minutes') AS w FROM t", "without GROUP BY"),
        ("SELECT COUNT(*) FROM t GROUP BY ROLLUP(k, session_window(ts, '1 day'))", "grouping set"),
        (
            "SELECT COUNT(*) FROM t GROUP BY session_window(ts, '1 day'), session_window(ts, '1 hour')",
            "several windows of time",
        ),
        (
            "SELECT COUNT(*) FROM t GROUP BY session_window(ts, '1 day'), window(ts, '1 hour')",
            "session_window()",
        ),
        ("SELECT COUNT(*) FROM t GROUP BY session_window(k, '1 day')", "session_window() of int"),
        ("SELECT id FROM t WHERE window(ts, '1 hour').start > ts", "not in the select list"),
        (
            "SELECT window(ts, '1 hour'), RANK() OVER (ORDER BY id) FROM t",
            "beside a window function",
        ),
        ("SELECT *, window(ts, '1 hour') FROM t", "beside *"),
    ],
)
def test_refused_by_name(query: str, construct: str) -> None:
    with pytest.raises(NotDifferentiable) as caught:
        compile_query(query, [SourceSchema("default.t", "delta", _COLUMNS)], RuleTyper())
    assert construct in caught.value.primary
    assert caught.value.hint
