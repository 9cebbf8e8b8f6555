"""Runnel keeps stream tables: SQL queries over Delta tables whose results stay up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runnel.api import Lake, connect

__all__ = ["Lake", "connect"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Loaded on first use: `runnel status` must not pay for importing PySpark.
    if name in __all__:
        from runnel import api

        return getattr(api, name)
    raise AttributeError(f"module 'runnel' has no attribute {name!r}")
