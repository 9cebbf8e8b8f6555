"""What a table must hold whose query was cut into parts: all of the query, over its own tables."""

from __future__ import annotations

from runnel.catalog import StreamTable
from runnel.compile.program import weight_of
from runnel.compile.sources import redirect, source_names
from runnel.errors import SourceError
from runnel.lake.frames import DataFrame, F
from runnel.model.frontier import Frontier
from runnel.model.names import TableName
from runnel.refresh.bind import Binding
from runnel.refresh.full import bind_plain
from runnel.refresh.parts import parts_of


def whole_rows(bound: Binding, table: StreamTable, frontier: Frontier) -> DataFrame:
    """The user's columns and how often each row is there, without looking at what is stored.

    The frontier has the versions that the parts were computed from.
    """
    readers = [table, *parts_of(bound.workspace, table)]
    sources = {source.key: source for reader in readers for source in reader.sources}
    for name in source_names(table.whole):
        if name.key not in sources or name.key not in frontier.pins:
            raise SourceError(
                f"at which version {table.name} has read {name} is not known",
                hint="refresh, then verify",
            )
        bind_plain(bound, sources[name.key], frontier.pins[name.key])

    def pinned(name: TableName) -> str:
        return bound.views[f"plain:{name.key}"]

    frame = bound.spark.sql(redirect(table.whole, pinned))
    return frame.withColumn(weight_of(frame.columns), F.lit(1).cast("bigint"))
