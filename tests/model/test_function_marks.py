"""Marks of functions: the same for the same text, another one for whatever would act differently."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from runnel.model.function_marks import mark_of


def _made(text: str, **names: Any) -> Callable[..., Any]:
    """As another process would make it."""
    scope: dict[str, Any] = {"__name__": "users_module", **names}
    exec(text, scope)
    return scope["f"]  # type: ignore[no-any-return]


_BASE = "def g(x): return x + 1\ndef f(x): return g(x) * 2"


@pytest.mark.parametrize(
    "text",
    [
        "f = lambda x: x * 3",
        _BASE,
        "def f(x, y=(1, 'a')): return [x, y]",
        "def make(n):\n    def inner(x): return x + n\n    return inner\nf = make(4)",
        "def f(x): return x in {'b', 'a', 'c'}",
        "def f(x): return f(x - 1) if x else 0",
    ],
)
def test_the_same_text_has_the_same_mark(text: str) -> None:
    assert mark_of(_made(text)) == mark_of(_made(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f = lambda x: x * 3", "f = lambda x: x * 4"),
        ("f = lambda x: x + 3", "f = lambda x: x * 3"),
        (_BASE, _BASE.replace("x + 1", "x + 2")),
        ("def f(x, y=1): return x + y", "def f(x, y=2): return x + y"),
        (
            "def make(n):\n    def inner(x): return x + n\n    return inner\nf = make(4)",
            "def make(n):\n    def inner(x): return x + n\n    return inner\nf = make(5)",
        ),
        ("f = lambda x: [y for y in x if y > 1]", "f = lambda x: [y for y in x if y > 2]"),
        ("N = 1\ndef f(x): return x + N", "N = 2\ndef f(x): return x + N"),
        ("def f(x): return x.upper()", "def f(x): return x.lower()"),
    ],
)
def test_another_text_has_another_mark(one: str, other: str) -> None:
    assert mark_of(_made(one)) != mark_of(_made(other))


def test_where_it_stands_does_not_count() -> None:
    inner = "def make():\n    return lambda x: x * 3\nf = make()"
    later = "from __future__ import annotations\nf = lambda x: x * 3"
    marks = {mark_of(_made(text)) for text in ("f = lambda x: x * 3", inner, later)}
    assert len(marks) == 1


def test_the_type_it_returns_counts() -> None:
    f = _made("f = lambda x: x")
    assert isinstance(f, FunctionType)
    assert mark_of((f, "int", False)) != mark_of((f, "string", False))
