"""The `startup` setting: code of the user's own that prepares every lake that is opened."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from runnel.errors import UserError


def run_startup(place: str, lake: Any) -> None:
    """Call `module:function` with the lake."""
    module, _, function = place.partition(":")
    try:
        prepare = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"the setting startup = {place!r} names nothing that can be called",
            detail=str(error),
            hint="expected module:function, with the module on PYTHONPATH",
        ) from error
    prepare(lake)
