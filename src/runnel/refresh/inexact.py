"""Of which columns VERIFY may find other last digits: those that come from adding up floats."""

from __future__ import annotations

from runnel.catalog import Source, StreamTable
from runnel.compile.inexact_columns import may_be_inexact
from runnel.lake.frames import SparkSession
from runnel.refresh.definition import compiled_query
from runnel.refresh.workspace import Workspace


def inexact_places(workspace: Workspace, spark: SparkSession, table: StreamTable) -> list[int]:
    """The positions of a table's floating point columns whose last digits may differ."""
    marks = _marks(workspace, spark, table)
    floats = (i for i, c in enumerate(table.layout.columns) if c.type in ("double", "float"))
    return [i for i in floats if marks[i]]


def _marks(workspace: Workspace, spark: SparkSession, table: StreamTable) -> tuple[bool, ...]:
    compiled = compiled_query(workspace, spark, table) if table.cycle is None else None
    if compiled is None:
        found = may_be_inexact(table.text)
        width = len(table.layout.columns)
        if isinstance(found, bool) or len(found) != width:
            return (bool(found),) * width
        return found
    return compiled.inexact(
        {s.key: _of_part(workspace, spark, s) for s in table.sources if s.is_part}
    )


def _of_part(workspace: Workspace, spark: SparkSession, source: Source) -> frozenset[str]:
    """VERIFY evaluates a part of the query anew; what other tables hold it reads as it is."""
    part = workspace.upstream(source)
    if part is None:
        return frozenset()
    marks = _marks(workspace, spark, part)
    return frozenset(c.name for c, m in zip(part.layout.columns, marks, strict=True) if m)
