"""Functions of the user's own: what Runnel is told about them, since SQL cannot say it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """A function under the name queries call it by.

    `function` is Python's, or a pyspark UDF, which knows its own type; None when Spark's catalog
    has it already. An aggregate's takes the list of a group's values that are not NULL, sorted.
    """

    name: str
    function: Callable[..., Any] | None = None
    returns: str | None = None
    is_deterministic: bool = False
    is_aggregate: bool = False

    @property
    def key(self) -> str:
        return self.name.lower()
