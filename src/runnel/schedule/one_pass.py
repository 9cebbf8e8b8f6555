"""One try at a pass: units refreshed in order, all to the same pins, and who did not get there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from runnel.catalog import Source, StreamTable
from runnel.errors import NotFound, RunnelError
from runnel.model.names import OF_CYCLE, OF_PART, TableName
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.refresh.attempt import refresh_table, skipped
from runnel.refresh.compaction import tidy_when_due
from runnel.refresh.group import refresh_group
from runnel.refresh.near import NearRows
from runnel.refresh.pins import Pins
from runnel.refresh.recording import note_failure
from runnel.refresh.workspace import Workspace
from runnel.schedule.diamonds import Unit
from runnel.schedule.order import refresh_units
from runnel.schedule.renew import renew_views

# T grows with every pass, also when the clock of another process is ahead.
_INSTANT = timedelta(microseconds=1)


@dataclass
class OnePass:
    """Tables that are brought to one instant; a table that is not there holds up those below it.

    `failed`: by key, the error. `frozen`: by key, the suspended table because of which it stays
    where it is. `overtaken`: someone else has moved these on meanwhile, to another instant, at
    which nobody of this pass may read them. `again`: who has to be refreshed once more for that.
    """

    workspace: Workspace
    tables: dict[str, StreamTable]
    units: Sequence[Unit]
    pins: Pins
    failed: dict[str, RunnelError]
    frozen: dict[str, TableName] = field(default_factory=dict)
    overtaken: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)

    @staticmethod
    def begin(
        workspace: Workspace,
        targets: set[str] | None,
        beside: Iterable[StreamTable] = (),
        sources: Sequence[Source] = (),
    ) -> OnePass:
        """Over the targets (None: all) and all above them, at an instant later than theirs.

        It is later than that of the tables `beside` too. All base sources are pinned here, those
        among `sources` too: who is refreshed late in the pass reads nothing that came meanwhile.
        """
        tables = {t.name.key: t for t in workspace.catalog.tables()}
        default = workspace.settings.diamond_consistency
        units = refresh_units(tables.values(), targets, default)
        known = [tables[key] for unit in units for key in unit]
        pins = Pins(workspace, instant_after([*known, *beside]))
        pins.check(_base_sources(known, sources))
        failed = renew_views(workspace, tables, targets, pins)
        if any(tables[table.name.key] is not table for table in known):
            units = refresh_units(tables.values(), targets, default)
            # They may read other tables now, or others under the same names.
            pins = Pins(workspace, pins.data_timestamp)
            pins.check(_base_sources([tables[key] for unit in units for key in unit], sources))
        pins.near = NearRows(workspace, pins, [key for unit in units for key in unit])
        return OnePass(workspace, tables, units, pins, failed)

    def run(self) -> Iterator[tuple[str, RefreshResult]]:
        """Refresh everything; the results by key, of all but those that are `again` or failed."""
        keys = {str(table.name): key for key, table in self.tables.items()}
        try:
            for unit in self.units:
                for result in self._refresh(unit):
                    key = keys[result.name]
                    if result.action is RefreshAction.SKIP:
                        self._record(self.tables[key], result)
                    yield key, result
        finally:
            if self.pins.near is not None:
                self.pins.near.close()

    def _refresh(self, unit: Unit) -> Sequence[RefreshResult]:
        tables = [self.tables[key] for key in unit]
        above = {s.key: s.name for t in tables for s in t.sources if s.key not in unit}
        if (key := next((k for k in above if k in self.failed), None)) is not None:
            return self._below_failed(tables, above[key], self.failed[key])
        if (key := next((k for k in above if k in self.frozen), None)) is not None:
            return self._below_frozen(tables, self.frozen[key])
        if not self.overtaken.isdisjoint(above):
            self.overtaken.update(unit)
            self.again.update(unit)
            return ()
        error = next((self.failed[key] for key in unit if key in self.failed), None)
        if error is None:
            try:
                return self._settled(tables, refresh_unit(self.workspace, tables, self.pins))
            except RunnelError as found:
                error = found
        self.failed.update(dict.fromkeys(unit, error))
        return ()

    def _below_failed(
        self, tables: Sequence[StreamTable], upstream: TableName, error: RunnelError
    ) -> list[RefreshResult]:
        waiting = [t for t in tables if t.name.key not in self.failed]
        self.failed.update({t.name.key: error for t in waiting})
        reason = f"{upstream}, which it reads, could not be refreshed"
        if upstream.name.startswith(OF_CYCLE):
            reason = "the rows of its cycle could not be found"
        elif upstream.name.startswith(OF_PART):
            reason = "a part of its query could not be refreshed"
        return [skipped(table, reason) for table in waiting]

    def _below_frozen(
        self, tables: Sequence[StreamTable], upstream: TableName
    ) -> list[RefreshResult]:
        if upstream.name.startswith(OF_PART):
            self.frozen.update({table.name.key: table.name for table in tables})
            return [skipped(table, _at_rest(table)) for table in tables]
        self.frozen.update({table.name.key: upstream for table in tables})
        reason = f"{upstream}, which it is computed from, is suspended"
        return [skipped(table, reason) for table in tables]

    def _settled(
        self, tables: Sequence[StreamTable], results: Sequence[RefreshResult]
    ) -> Sequence[RefreshResult]:
        """What became of a unit; one that was left out is suspended, or was overtaken."""
        if all(result.action is not RefreshAction.SKIP for result in results):
            return results
        after = [found for t in tables if (found := self.workspace.catalog.get(t.id)) is not None]
        keys = [table.name.key for table in tables]
        at_rest = next((t.name for t in after if t.state is TableState.SUSPENDED), None)
        if at_rest is not None:
            self.frozen.update(dict.fromkeys(keys, at_rest))
            return results
        self.overtaken.update(keys)
        if all(_has_seen(table, self.pins) for table in after):
            return results
        self.again.update(keys)
        return ()

    def _record(self, table: StreamTable, result: RefreshResult) -> None:
        owner = self.workspace.leases.owner
        with suppress(NotFound):
            self.workspace.catalog.record_skip(table.id, owner, result.reason, once=True)


def _base_sources(tables: Iterable[StreamTable], sources: Iterable[Source]) -> list[Source]:
    read = [source for table in tables for source in table.sources]
    return [source for source in (*read, *sources) if source.kind != "stream"]


def _at_rest(table: StreamTable) -> str:
    """Why a table stays where it is with its part: both were suspended, or the part by itself."""
    is_suspended = table.state is TableState.SUSPENDED
    return "the table is suspended" if is_suspended else "a part of its query is suspended"


def instant_after(tables: Iterable[StreamTable]) -> datetime:
    """Now, or just after the newest of the tables if that is later: someone's clock is ahead."""
    reached = [t.frontier.data_timestamp + _INSTANT for t in tables if t.frontier is not None]
    return max([datetime.now(UTC), *reached])


def refresh_unit(
    workspace: Workspace, tables: Sequence[StreamTable], pins: Pins
) -> list[RefreshResult]:
    """Refresh a table by itself, or the tables of an atomic group together."""
    if len(tables) == 1:
        results = [_refresh_alone(workspace, tables[0], pins)]
    else:
        found = refresh_group(workspace, [table.id for table in tables], pins)
        results = [found[table.name.key] for table in tables]
    for table, result in zip(tables, results, strict=True):
        if result.action is not RefreshAction.SKIP:
            _pin(workspace, table, result, pins)
        if result.action not in (RefreshAction.NO_DATA, RefreshAction.SKIP):
            tidy_when_due(workspace, table.id)
    return results


def _refresh_alone(workspace: Workspace, table: StreamTable, pins: Pins) -> RefreshResult:
    try:
        frontier = pins.frontier(table.sources)
    except RunnelError as error:
        raise note_failure(workspace, table, error) from error
    return refresh_table(workspace, table.id, frontier, near=pins.near)


def _pin(workspace: Workspace, table: StreamTable, result: RefreshResult, pins: Pins) -> None:
    """Those below it read the table where this pass left it."""
    after = workspace.catalog.get(table.id)
    if after is not None and after.state is not TableState.UNINITIALIZED:
        epoch = result.epoch if result.epoch is not None else after.epoch
        pins.set_epoch(table.name.key, after.incarnation, epoch)


def _has_seen(table: StreamTable, pins: Pins) -> bool:
    """Whether a table holds all that it would have got in the pass, and maybe more."""
    wanted = pins.check(table.sources)
    known = table.frontier.pins if table.frontier else {}
    return len(wanted) == len(table.sources) and all(
        key in known and known[key].identity == pin.identity and known[key].version >= pin.version
        for key, pin in wanted.items()
    )
