"""A table put in its place, by itself or with the parts of its query: all of them or none."""

from __future__ import annotations

from runnel.catalog import StreamTable
from runnel.refresh.lifecycle import (
    check_name_is_free,
    create_table,
    redefine_table,
    switch_tables,
)
from runnel.refresh.parts import Family
from runnel.refresh.workspace import Workspace
from runnel.schedule.cycles import members_with
from runnel.schedule.passes import bring_up


def put_in_place(workspace: Workspace, family: Family, old: StreamTable | None, fill: bool) -> None:
    """Make a defined table known, filled if that is asked for; `old` is the one it replaces."""
    gone = members_with(workspace.catalog.tables(), old) if old is not None else []
    tables = family.tables
    inside = {table.name.key for table in tables}
    outside = [s for table in tables for s in table.sources if s.key not in inside]
    pins = bring_up(workspace, outside, tables, gone) if fill else None
    if len(tables) > 1 or len(gone) > 1:
        if old is None:
            check_name_is_free(workspace, family.table.name)
        switch_tables(workspace, gone, tables, pins)
    elif old is None:
        create_table(workspace, family.table, pins)
    else:
        redefine_table(workspace, old, family.table, pins)
