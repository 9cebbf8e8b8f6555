"""The exception tree: what was found (primary), what was expected (detail), what to do (hint)."""

from __future__ import annotations

from enum import StrEnum


class ErrorClass(StrEnum):
    """Whose fault an error is."""

    USER = "user"
    SCHEMA = "schema"
    SYSTEM = "system"
    INTERNAL = "internal"


class RunnelError(Exception):
    """Base of every error Runnel raises on purpose.

    `primary` is lowercase without a full stop; `retryable`: the same call may succeed later.
    """

    code = "RUNNEL_ERROR"
    error_class = ErrorClass.INTERNAL
    retryable = False
    place: str | None = None

    def __init__(self, primary: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(primary)
        self.primary = primary
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.primary]
        if self.place:
            lines.append(f"at: {self.place}")
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class UserError(RunnelError):
    """The statement, query or argument given by the user is wrong.

    `span` is where in the text, from character to character, `place` the same in words; `opening`
    is a keyword before the span with which the place begins.
    """

    code = "USER_ERROR"
    error_class = ErrorClass.USER
    span: tuple[int, int] | None = None
    opening: str | None = None


class InvalidQuery(UserError):
    """The defining query cannot be parsed or does not fit its sources."""

    code = "INVALID_QUERY"


class NotDifferentiable(UserError):
    """The query is valid, but a construct in it cannot be maintained differentially."""

    code = "NOT_DIFFERENTIABLE"

    def __init__(
        self, construct: str, *, detail: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(
            f"{construct} cannot be maintained differentially", detail=detail, hint=hint
        )
        self.construct = construct


class NotFound(UserError):
    """A table that was named does not exist."""

    code = "NOT_FOUND"


class AlreadyExists(UserError):
    """The name is taken."""

    code = "ALREADY_EXISTS"


class InUse(UserError):
    """Other stream tables depend on it."""

    code = "IN_USE"


class QueryFailed(UserError):
    """The query is valid but failed while running (division by zero, overflow ...)."""

    code = "QUERY_FAILED"


class NotConverged(QueryFailed):
    """Tables that read each other went on finding rows for longer than they may."""

    code = "NOT_CONVERGED"


class SourceError(RunnelError):
    """A source is gone, unreadable, or has changed in a way the query no longer fits."""

    code = "SOURCE_ERROR"
    error_class = ErrorClass.SCHEMA


class SystemFault(RunnelError):
    """The environment failed: storage, Spark, the catalog database. Trying again may help."""

    code = "SYSTEM_FAULT"
    error_class = ErrorClass.SYSTEM
    retryable = True


class Busy(SystemFault):
    """Someone else holds the table's lease."""

    code = "BUSY"


class SparkEnded(SystemFault):
    """The Spark that this process works with is gone; only another process can go on."""

    code = "SPARK_ENDED"


class ImmediateRefreshFailed(RunnelError):
    """An IMMEDIATE table could not follow a write, or not before a read; the cause is attached.

    It is of the class of its cause. After a write, doing the same again would write twice: the
    write itself is committed.
    """

    code = "IMMEDIATE_REFRESH_FAILED"

    def __init__(
        self,
        primary: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        cause: RunnelError,
    ) -> None:
        super().__init__(primary, detail=detail, hint=hint)
        self.error_class = cause.error_class


class Abandoned(SystemFault):
    """The process was told to end before the refresh had; nothing of it was kept."""

    code = "ABANDONED"


class InternalFault(RunnelError):
    """An invariant of Runnel itself does not hold; the old contents were kept."""

    code = "INTERNAL_FAULT"


def never_filled(name: str) -> UserError:
    """A stream table that has no contents yet was read."""
    return UserError(f"{name} was never filled", hint=f"REFRESH STREAM TABLE {name} first")
