"""Where sources stand now: several of them as they stood at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from runnel.catalog import Source
from runnel.errors import RunnelError, SourceError, SystemFault
from runnel.model.frontier import Pin
from runnel.model.tabular import duration
from runnel.refresh.answers import Question, R
from runnel.refresh.workspace import Workspace

_LOOKS = 4


def pin_source(workspace: Workspace, source: Source) -> Pin:
    """The newest state of a source."""
    found = pin_sources(workspace, [source])[source.key]
    if isinstance(found, RunnelError):
        raise found
    return found


def pin_sources(workspace: Workspace, sources: Sequence[Source]) -> dict[str, Pin | RunnelError]:
    """The newest states of sources; an error in place of what cannot be read."""
    base = [source for source in sources if source.kind != "stream"]
    # All versions first: what else is read of a table takes time, in which others write.
    pins = _base_pins(workspace, base, _versions(workspace, base))
    streams = [source for source in sources if source.kind == "stream"]
    return pins | {source.key: _trace_pin(workspace, source) for source in streams}


def look(workspace: Workspace, sources: Sequence[Source]) -> dict[str, int | RunnelError]:
    """The newest versions of base sources; one that does not answer holds up nobody else."""
    asked = {s.key: Question(_place(s), partial(_version, workspace, s)) for s in sources}
    return _answered(workspace, sources, asked)


def _versions(workspace: Workspace, sources: Sequence[Source]) -> Mapping[str, int | RunnelError]:
    """The newest versions, looked at again until nothing has moved in between.

    Else who commits to one table and then to another is seen as the second without the first. Who
    writes all the time is not waited for.
    """
    found = look(workspace, sources)
    for _ in range(_LOOKS - 1 if len(found) > 1 else 0):
        before, found = found, look(workspace, sources)
        if all(_is_same(before[key], now) for key, now in found.items()):
            break
    return found


def _is_same(before: int | RunnelError, now: int | RunnelError) -> bool:
    return before == now or (isinstance(before, RunnelError) and isinstance(now, RunnelError))


def _version(workspace: Workspace, source: Source) -> int | RunnelError:
    try:
        return workspace.log(_place(source)).latest_version()
    except SourceError as error:
        return _unreadable(source, error)
    except RunnelError as error:
        return error


def _base_pins(
    workspace: Workspace, sources: Sequence[Source], versions: Mapping[str, int | RunnelError]
) -> dict[str, Pin | RunnelError]:
    told = {s.key: v for s in sources if isinstance(v := versions[s.key], RunnelError)}
    asked = {
        s.key: Question(_place(s), partial(_pin, workspace, s, version))
        for s in sources
        if not isinstance(version := versions[s.key], RunnelError)
    }
    return told | _answered(workspace, sources, asked)


def _answered(
    workspace: Workspace, sources: Sequence[Source], asked: Mapping[str, Question[R | RunnelError]]
) -> dict[str, R | RunnelError]:
    answers = workspace.ask(asked)
    return {
        s.key: answers[s.key] if s.key in answers else _silent(workspace, s)
        for s in sources
        if s.key in asked
    }


def _place(source: Source) -> str:
    return source.location or ""


def _pin(workspace: Workspace, source: Source, version: int) -> Pin | RunnelError:
    try:
        return Pin("delta", workspace.log(_place(source)).table_id(version), version)
    except SourceError as error:
        return _unreadable(source, error)
    except RunnelError as error:
        return error


def _trace_pin(workspace: Workspace, source: Source) -> Pin | RunnelError:
    try:
        table = workspace.upstream(source)
    except RunnelError as error:
        return error
    if table is None:
        return SourceError(
            f"stream table {source.name} is gone", hint="drop this table, or recreate it"
        )
    return Pin("trace", table.incarnation, table.epoch)


def _unreadable(source: Source, error: SourceError) -> SourceError:
    told = SourceError(
        f"{source.name}, which is read, cannot be found or read",
        detail=error.primary if error.detail is None else f"{error.primary}: {error.detail}",
        hint="bring it back, or drop or redefine the tables that read it",
    )
    told.__cause__ = error
    return told


def _silent(workspace: Workspace, source: Source) -> SystemFault:
    waited = duration(workspace.settings.source_timeout)
    return SystemFault(
        f"{source.name}, which is read, does not answer",
        detail=f"{source.location} has not told within {waited} how far it is",
        hint="check the mount or the network that it is on; storage that is only slow needs a "
        "longer source_timeout",
    )
