"""Where sources stand now: several of them as they stood at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runnel.catalog import Source
from runnel.errors import RunnelError, SourceError
from runnel.model.frontier import Pin
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
    versions = _versions(workspace, base)
    pins = {s.key: _base_pin(workspace, s, versions[s.key]) for s in base}
    streams = [source for source in sources if source.kind == "stream"]
    return pins | {source.key: _trace_pin(workspace, source) for source in streams}


def _versions(workspace: Workspace, sources: Sequence[Source]) -> Mapping[str, int | RunnelError]:
    """The newest versions, looked at again until nothing has moved in between.

    Else who commits to one table and then to another is seen as the second without the first. Who
    writes all the time is not waited for.
    """
    found = {source.key: _version(workspace, source) for source in sources}
    for _ in range(_LOOKS - 1 if len(found) > 1 else 0):
        before, found = found, {s.key: _version(workspace, s) for s in sources}
        if all(_is_same(before[key], now) for key, now in found.items()):
            break
    return found


def _is_same(before: int | RunnelError, now: int | RunnelError) -> bool:
    return before == now or (isinstance(before, RunnelError) and isinstance(now, RunnelError))


def _version(workspace: Workspace, source: Source) -> int | RunnelError:
    try:
        return workspace.log(source.location or "").latest_version()
    except RunnelError as error:
        return error


def _base_pin(
    workspace: Workspace, source: Source, version: int | RunnelError
) -> Pin | RunnelError:
    try:
        if isinstance(version, RunnelError):
            raise version
        return Pin("delta", workspace.log(source.location or "").table_id(version), version)
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
