"""The vocabulary of refreshing: modes, actions, states."""

from __future__ import annotations

from enum import StrEnum

from runnel.errors import UserError


class RefreshMode(StrEnum):
    """What the user asks for."""

    AUTO = "AUTO"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"
    IMMEDIATE = "IMMEDIATE"

    @property
    def is_strict(self) -> bool:
        """Whether only a query will do that can be maintained differentially."""
        return self in (RefreshMode.DIFFERENTIAL, RefreshMode.IMMEDIATE)

    @staticmethod
    def parse(text: str | RefreshMode) -> RefreshMode:
        try:
            return RefreshMode(text.upper())
        except ValueError:
            raise UserError(
                f"{text!r} is not a refresh mode",
                detail=f"expected one of {', '.join(RefreshMode)}",
                hint="AUTO decides at each refresh",
            ) from None


class RefreshAction(StrEnum):
    """What a refresh did."""

    NO_DATA = "NO_DATA"
    FULL = "FULL"
    DIFFERENTIAL = "DIFFERENTIAL"
    REINITIALIZE = "REINITIALIZE"
    SKIP = "SKIP"


class TableState(StrEnum):
    """Whether a stream table takes part in refreshing.

    The UPSTREAM states are never stored: `status` shows them while a table above stands still.
    """

    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    UNINITIALIZED = "UNINITIALIZED"
    UPSTREAM_SUSPENDED = "UPSTREAM_SUSPENDED"
    UPSTREAM_FAILED = "UPSTREAM_FAILED"


class Outcome(StrEnum):
    """How a refresh attempt ended."""

    RUNNING = "RUNNING"
    OK = "OK"
    FAILED = "FAILED"
    INTERRUPTED = "INTERRUPTED"
