"""Diamonds of the graph, and the units it is refreshed in: tables by themselves, atomic groups.

A table in which several paths from one ancestor meet (stream or base table) makes a diamond: it
and the stream tables on those paths. The ancestor is no member: a pass pins it once for all.
`runnel status` asks for the units too, so nothing here imports networkx.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from runnel.catalog import Questions, StreamTable
from runnel.model.diamonds import DiamondConsistency, DiamondMember, SchedulePolicy
from runnel.model.settings import Settings
from runnel.model.tabular import Rows
from runnel.schedule import units as scheduled
from runnel.schedule.units import components, in_order

_FASTEST, _SLOWEST = scheduled.Policy.FASTEST, scheduled.Policy.SLOWEST

Unit = tuple[str, ...]
"""Keys of tables that are refreshed together, parents before children."""


@dataclass(frozen=True, slots=True)
class Diamond:
    """Several paths from `shared` meet in `convergence`; `members` lie on them, with it."""

    convergence: str
    members: frozenset[str]
    shared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Group:
    """Diamonds that overlap, as one."""

    members: Unit
    convergences: frozenset[str]
    shared: frozenset[str]
    consistency: DiamondConsistency


def find_diamonds(tables: Iterable[StreamTable]) -> list[Diamond]:
    """One for each table in which paths meet again, by name."""
    known = {table.name.key: table for table in tables}
    above = _ancestors(known)
    found = (_diamond(table, above, known) for _, table in sorted(known.items()))
    return [diamond for diamond in found if diamond is not None]


def is_atomic(
    diamond: Diamond, tables: Mapping[str, StreamTable], default: DiamondConsistency
) -> bool:
    """What the table in which the paths meet asks for, unless a member refuses."""
    asked = _asked(tables[diamond.convergence]) or default
    refused = any(_asked(tables[key]) is DiamondConsistency.NONE for key in diamond.members)
    return asked is DiamondConsistency.ATOMIC and not refused


def units_of(
    tables: Iterable[StreamTable], default: DiamondConsistency = DiamondConsistency.NONE
) -> tuple[Unit, ...]:
    """Every table in its unit, in an order in which all can be refreshed.

    Atomic groups and cycles are one unit each, and so is what lies between their members.
    """
    known = {table.name.key: table for table in tables}
    reads = _stream_reads(known)
    joined = {key: list(read) for key, read in reads.items()}
    together = [(d.convergence, d.members) for d in _atomic(known, default)]
    together += [(min(members), members) for members in _cycles(known)]
    for center, members in together:
        # Both ways: whatever lies between the members is drawn into the unit.
        for key in members - {center}:
            joined[center].append(key)
            joined[key].append(center)
    position = _positions(reads)
    return _ordered([sorted(c, key=position.__getitem__) for c in components(joined)], reads)


def planned_units(tables: Iterable[StreamTable], settings: Settings) -> tuple[scheduled.Unit, ...]:
    """The units that the scheduler plans with, and that `status` tells of.

    The policy is one of diamonds: the members of a cycle are due with the first of them.
    """
    known = {table.name.key: table for table in tables}
    policy, default = settings.diamond_schedule_policy, settings.diamond_consistency
    is_asked = policy is SchedulePolicy.SLOWEST
    slowest = {d.convergence for d in _atomic(known, default)} if is_asked else set()
    return tuple(
        scheduled.Unit(keys, _FASTEST if slowest.isdisjoint(keys) else _SLOWEST)
        for keys in units_of(known.values(), default)
    )


def find_groups(tables: Iterable[StreamTable], default: DiamondConsistency) -> list[Group]:
    """All diamonds, overlapping ones merged: first the atomic ones, then the others."""
    known = {table.name.key: table for table in tables}
    diamonds = find_diamonds(known.values())
    atomic = [d for d in diamonds if is_atomic(d, known, default)]
    units = [unit for unit in units_of(known.values(), default) if len(unit) > 1]
    groups = [_group(unit, atomic, DiamondConsistency.ATOMIC) for unit in units]
    loose = [d for d in diamonds if d not in atomic]
    position = _positions(_stream_reads(known))
    for members in _merged(loose):
        unit = tuple(sorted(members, key=position.__getitem__))
        groups.append(_group(unit, loose, DiamondConsistency.NONE))
    return [group for group in groups if group.convergences]


def target_seconds(tables: Iterable[StreamTable], policy: SchedulePolicy) -> float | None:
    """The target lag of tables that are refreshed together; None when none of them has one."""
    targets = [t.schedule.seconds for t in tables if t.schedule is not None and t.schedule.seconds]
    if not targets:
        return None
    return min(targets) if policy is SchedulePolicy.FASTEST else max(targets)


def diamond_groups(reader: Questions, settings: Settings) -> Rows[DiamondMember]:
    """One row for each member of each group."""
    tables = {table.name.key: table for table in reader.tables()}
    found = find_groups(tables.values(), settings.diamond_consistency)
    # With the parts of its own query a table is no group to speak of.
    groups = [group for group in found if not _is_one_query(group, tables)]
    rows = [
        row
        for number, group in enumerate(groups, 1)
        for row in _rows(number, group, tables, settings.diamond_schedule_policy)
    ]
    return Rows(rows, DiamondMember.COLUMNS)


def _rows(
    number: int, group: Group, tables: Mapping[str, StreamTable], policy: SchedulePolicy
) -> Iterator[DiamondMember]:
    names = {s.key: str(s.name) for table in tables.values() for s in table.sources}
    names |= {key: table.label for key, table in tables.items() if table.is_hidden}
    shared = tuple(sorted(names[key] for key in group.shared))
    members = _seen(group, tables)
    is_together = group.consistency is DiamondConsistency.ATOMIC
    common = target_seconds(members, policy) if is_together else None
    for table in members:
        yield DiamondMember(
            number, str(table.name), table.name.key in group.convergences, group.consistency,
            table.epoch, common if is_together else target_seconds([table], policy), shared,
        )  # fmt: skip


def _is_one_query(group: Group, tables: Mapping[str, StreamTable]) -> bool:
    is_cut = any(tables[key].part_of is not None for key in group.members)
    return is_cut and len(_seen(group, tables)) < 2


def _seen(group: Group, tables: Mapping[str, StreamTable]) -> list[StreamTable]:
    return [tables[key] for key in group.members if not tables[key].is_hidden]


def _cycles(tables: Mapping[str, StreamTable]) -> list[frozenset[str]]:
    """The members of each cycle: computed from the same rows, they are always seen together."""
    found: dict[str, set[str]] = {}
    for key, table in tables.items():
        if table.cycle is not None:
            found.setdefault(table.cycle, set()).add(key)
    return [frozenset(members) for members in found.values()]


def _asked(table: StreamTable) -> DiamondConsistency | None:
    text = table.options.get("diamond_consistency")
    return DiamondConsistency(text) if text else None


def _atomic(tables: Mapping[str, StreamTable], default: DiamondConsistency) -> list[Diamond]:
    if default is DiamondConsistency.NONE and not any(map(_asked, tables.values())):
        return []
    return [d for d in find_diamonds(tables.values()) if is_atomic(d, tables, default)]


def _diamond(
    table: StreamTable, above: Mapping[str, frozenset[str]], tables: Mapping[str, StreamTable]
) -> Diamond | None:
    members: set[str] = set()
    shared: set[str] = set()
    for left, right in combinations(dict.fromkeys(s.key for s in table.sources), 2):
        common = above[left] & above[right]
        apart = (above[left] | above[right]) - common
        members |= {key for key in apart if key in tables and above[key] & common}
        shared |= common
    if not members:
        return None
    nearest = shared.difference(*(above[key] - {key} for key in shared))
    return Diamond(table.name.key, frozenset({*members, table.name.key}), frozenset(nearest))


def _ancestors(tables: Mapping[str, StreamTable]) -> dict[str, frozenset[str]]:
    """Each stream and base table with all that it is computed from, itself included."""
    reads = {key: [source.key for source in table.sources] for key, table in tables.items()}
    reads = {source: [] for read in reads.values() for source in read} | reads
    found: dict[str, frozenset[str]] = {}
    for component in components(reads):
        above = [found[s] for key in component for s in reads[key] if s in found]
        found |= dict.fromkeys(component, frozenset(component).union(*above))
    return found


def _stream_reads(tables: Mapping[str, StreamTable]) -> dict[str, list[str]]:
    return {
        key: [source.key for source in table.sources if source.key in tables]
        for key, table in tables.items()
    }


def _positions(reads: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Parents before children; the tables of a cycle come by name."""
    order = _ordered([sorted(component) for component in components(reads)], reads)
    return {key: position for position, key in enumerate(k for unit in order for k in unit)}


def _ordered(
    groups: Iterable[Sequence[str]], reads: Mapping[str, Sequence[str]]
) -> tuple[Unit, ...]:
    """Groups of tables, each after those that it reads."""
    home = {key: tuple(group) for group in groups for key in group}
    parents: dict[Unit, set[Unit]] = {unit: set() for unit in home.values()}
    for key, unit in home.items():
        parents[unit] |= {home[source] for source in reads[key]} - {unit}
    return tuple(in_order(parents))


def _merged(diamonds: Sequence[Diamond]) -> list[frozenset[str]]:
    near: dict[str, set[str]] = {key: set() for d in diamonds for key in d.members}
    for diamond in diamonds:
        near[diamond.convergence] |= diamond.members
        for key in diamond.members:
            near[key].add(diamond.convergence)
    return sorted(map(frozenset, components(near)), key=sorted)


def _group(unit: Unit, diamonds: Iterable[Diamond], consistency: DiamondConsistency) -> Group:
    inside = [d for d in diamonds if d.members <= set(unit)]
    shared = frozenset[str]().union(*(d.shared for d in inside)) - set(unit)
    return Group(unit, frozenset(d.convergence for d in inside), shared, consistency)
