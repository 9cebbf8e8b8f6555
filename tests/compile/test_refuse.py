"""Functions whose answer is not a function of the sources, and those that only look so."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    "call", ["aes_encrypt(x, k, 'ECB')", "aes_encrypt(x, k, 'CBC', 'DEFAULT', iv)"]
)
def test_taken(call: str) -> None:
    refuse(f"SELECT {call} AS r FROM t")
