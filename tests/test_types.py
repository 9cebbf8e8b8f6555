"""What a user's type checker sees of the verbs whose answer depends on how they are called."""

from __future__ import annotations

from typing import get_overloads

import pytest

from runnel.api import Lake


@pytest.mark.parametrize(
    ("verb", "one", "all_of_them"),
    [
        ("refresh", "RefreshResult", "Rows[RefreshResult]"),
        ("status", "TableStatus", "Rows[TableStatus]"),
        ("stats", "TableStats", "Rows[TableStats]"),
    ],
)
def test_with_a_name_one_result_and_rows_without(verb: str, one: str, all_of_them: str) -> None:
    told = {f.__annotations__["name"]: f.__annotations__["return"] for f in overloads(verb)}
    assert told == {"str | TableName": one, "None": all_of_them}


def overloads(verb: str) -> list[object]:
    return list(get_overloads(getattr(Lake, verb)))
