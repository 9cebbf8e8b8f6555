"""A number for what a Python function does: another number, another function."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

# What a function takes and gives; not what its module imports from __future__, nor where it stands.
_FLAGS = (
    inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)  # fmt: skip
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def mark_of(function: Any) -> int:
    """The same for the same text in the same Python; what it calls of its module is part of it."""
    parts = "\n".join(_parts(function, set()))
    return int.from_bytes(hashlib.sha256(parts.encode()).digest()[:7], "big")


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    if id(value) in seen:
        return
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, CodeType):
        seen.add(id(value))
        yield value.co_code.hex()
        yield repr((value.co_names, value.co_varnames, value.co_flags & _FLAGS))
        yield from _each(value.co_consts, seen)
    elif isinstance(value, tuple | list):
        yield from _each(value, seen)
    elif isinstance(value, set | frozenset):
        yield repr(sorted(map(repr, value)))
    elif isinstance(value, dict):
        yield from _each((part for item in value.items() for part in item), seen)
    elif isinstance(value, FunctionType):
        seen.add(id(value))
        yield from _function(value, seen)
    elif isinstance(func := getattr(value, "func", None), FunctionType):
        # A pyspark UDF.
        yield str(getattr(value, "returnType", ""))
        yield from _parts(func, seen)
    else:
        kind = value if isinstance(value, type) else type(value)
        yield f"{kind.__module__}.{kind.__qualname__}"


def _each(values: Any, seen: set[int]) -> Iterator[str]:
    for value in values:
        yield "("
        yield from _parts(value, seen)


def _function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    yield from _parts(function.__code__, seen)
    yield from _each((function.__defaults__, function.__kwdefaults__), seen)
    yield from _each((cell.cell_contents for cell in function.__closure__ or ()), seen)
    for name in sorted(_names(function.__code__)):
        used = function.__globals__.get(name)
        is_own = isinstance(used, FunctionType) and used.__module__ == function.__module__
        if is_own or isinstance(used, _PLAIN):
            yield name
            yield from _parts(used, seen)


def _names(code: CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*map(_names, inner))
