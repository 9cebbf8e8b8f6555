"""LEFT JOIN LATERAL without a condition is written with one, in the text that Spark runs."""

from __future__ import annotations

import pytest

from runnel.compile.rewrites.determinism import deterministic_text


@pytest.mark.parametrize(
    "item", ["explode(t.xs) AS e(x)", "(SELECT x FROM explode(t.xs) AS e(x)) AS q"]
)
def test_the_condition_is_written(item: str) -> None:
    text = deterministic_text(f"SELECT t.id, x FROM t LEFT JOIN LATERAL {item}")
    assert text is not None
    assert text.endswith(" ON TRUE")


@pytest.mark.parametrize(
    "item",
    ["LEFT JOIN LATERAL explode(t.xs) AS e(x) ON x > 1", "JOIN LATERAL explode(t.xs) AS e(x)"],
)
def test_others_stay_as_they_are(item: str) -> None:
    assert deterministic_text(f"SELECT t.id, x FROM t {item}") is None
