"""Statements of Spark's own run on a lake: what they read is fresh, what they write is followed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace

from runnel.compile.ddl import new_name, new_name_of_table, source_change
from runnel.compile.reads import Mention, Reads, statement_reads
from runnel.lake.frames import DataFrame
from runnel.lake.views import view_text
from runnel.lake.writing import WriteMode
from runnel.model.ddl import SourceChange
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode
from runnel.refresh.keeper import SessionKeeper
from runnel.refresh.source_ddl import note_source_ddl, refuse_source_ddl
from runnel.refresh.vacuum import hold_back_vacuum
from runnel.refresh.workspace import Workspace
from runnel.schedule.immediate import catch_up, following_writes
from runnel.schedule.renew import renew_readers


def run_statement(
    workspace: Workspace, keeper: SessionKeeper, text: str, verb: str | None,
    target: TableName | None,
) -> DataFrame:  # fmt: skip
    """Run a Spark statement."""
    change = source_change(text)
    if change is not None:
        refuse_source_ddl(workspace, change)
    reads = _reads(workspace, text)
    freshen(workspace, keeper, reads.mentions)
    with nullcontext() if reads.is_query else following_writes(workspace):
        frame = keeper.run(hold_back_vacuum(workspace, text), verb, target)
        for changed in _changed(text, change):
            note_source_ddl(workspace, changed)
            renew_readers(workspace, changed)
    keeper.sync_if_open()
    return frame


def write_table(
    workspace: Workspace, keeper: SessionKeeper, frame: DataFrame, target: TableName, mode: str,
    options: Mapping[str, str],
) -> None:  # fmt: skip
    """Write a frame to a base table."""
    way = WriteMode.parse(mode)
    with following_writes(workspace):
        keeper.write(frame, target, way, options)
    keeper.sync_if_open()


def freshen(workspace: Workspace, keeper: SessionKeeper, mentions: Iterable[Mention]) -> None:
    """Bring up to date whatever IMMEDIATE table lies behind these names."""
    known = workspace.catalog.keys_of_mode(RefreshMode.IMMEDIATE)
    if known and catch_up(workspace, _behind_views(workspace, mentions, known)):
        keeper.sync_if_open()


def _changed(text: str, change: SourceChange | None) -> list[SourceChange]:
    """What a statement takes and gives: a name that was given may have readers too."""
    renamed = new_name_of_table(text)
    if change is not None and renamed is not None:
        return [change, replace(change, name=renamed[1])]
    found = change or new_name(text)
    return [found] if found is not None else []


def _reads(workspace: Workspace, text: str) -> Reads:
    """Not looked at where no table cares."""
    if not workspace.catalog.keys_of_mode(RefreshMode.IMMEDIATE):
        return Reads((), True)
    return statement_reads(text)


def _behind_views(
    workspace: Workspace, mentions: Iterable[Mention], known: frozenset[str]
) -> set[str]:
    """Those of the known tables that the names stand for, themselves or through views."""
    spark = workspace.spark
    found: set[str] = set()
    queue = list(mentions)
    seen = set(queue)
    while queue:
        mention = queue.pop()
        if mention.name.key in known:
            found.add(mention.name.key)
        # A temporary view may hide the table whose name it has.
        if (view := view_text(spark, mention.name, mention.is_free)) is not None:
            inner = set(statement_reads(*view).mentions) - seen
            seen |= inner
            queue += inner
    return found
