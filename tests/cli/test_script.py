"""Scripts are cut into statements where SQL ends them, and nowhere else."""

from __future__ import annotations

import pytest

from runnel.sql import Piece, cut_script, split_statements


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("", []),
        (" ;; ; ", []),
        ("-- only a comment;\n", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2 ;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' AS a; SELECT `;`", ["SELECT ';' AS a", "SELECT `;`"]),
        ("SELECT 'it''s; \\'; here'; SELECT 2", ["SELECT 'it''s; \\'; here'", "SELECT 2"]),
        ("/* a; b */ SELECT 1 -- c; d\n; SELECT 2", ["SELECT 1 -- c; d", "SELECT 2"]),
        ("SELECT /*+ BROADCAST(a) */ 1;", ["SELECT /*+ BROADCAST(a) */ 1"]),
        ("SELECT 1; SELECT 'open; still", ["SELECT 1", "SELECT 'open; still"]),
        ("SELECT 1 /* open; still", ["SELECT 1 /* open; still"]),
    ],
)
def test_split(script: str, statements: list[str]) -> None:
    assert list(split_statements(script)) == statements


def test_statements_know_their_lines_and_what_is_begun_stays() -> None:
    script = "-- a\nSELECT 1;\n\n  SELECT\n 2; SELECT 'x \n"
    assert cut_script(script) == (
        [Piece("SELECT 1", 2), Piece("SELECT\n 2", 4)],
        Piece("SELECT 'x \n", 5),
    )
    assert cut_script("SELECT 1;\n") == ([Piece("SELECT 1", 1)], None)
