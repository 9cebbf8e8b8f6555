"""The change program of a planned refresh."""

from __future__ import annotations

from runnel.compile.program import Program
from runnel.lake.frames import SparkSession
from runnel.refresh.definition import compiled_query
from runnel.refresh.plan import RefreshPlan
from runnel.refresh.windows import total_rows
from runnel.refresh.workspace import Workspace


def program_of(workspace: Workspace, spark: SparkSession, plan: RefreshPlan) -> Program:
    """What a differential refresh runs; the table's query must be compiled or can be."""
    compiled = compiled_query(workspace, spark, plan.table)
    assert compiled is not None
    return compiled.program(plan.changed, plan.growing, _sizes(workspace, plan))


def _sizes(workspace: Workspace, plan: RefreshPlan) -> dict[str, int]:
    """How many bits the numbers of the sources' rows have: that seldom changes."""
    return {
        key: total_rows(workspace, window.source, window.new).bit_length()
        for key, window in plan.windows.items()
    }
