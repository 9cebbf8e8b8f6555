"""The whole result computed anew, as rows of the trace."""

from __future__ import annotations

from runnel.catalog import Source, StreamTable
from runnel.compile.parse import parse
from runnel.compile.program import weight_of
from runnel.compile.recursion import recursive_union
from runnel.compile.rewrites.determinism import deterministic_text
from runnel.compile.rewrites.fix_time import fix_time
from runnel.compile.sources import redirect
from runnel.lake.frames import DataFrame, F
from runnel.lake.trace import Trace
from runnel.model.columns import WEIGHT
from runnel.model.frontier import Frontier, Pin
from runnel.model.names import TableName, quote
from runnel.refresh.bind import Binding, bind_new, in_sight, pinned_table, shown, upstream_of
from runnel.refresh.definition import compiled_query
from runnel.refresh.rounds import fill, run_steps


def full_rows(bound: Binding, table: StreamTable, frontier: Frontier) -> DataFrame:
    """Stored columns and `__weight` of the result at a frontier."""
    compiled = compiled_query(bound.workspace, bound.spark, table)
    if compiled is None:
        frame = user_query(bound, table, frontier)
        names = [column.name for column in table.layout.stored]
        return frame.toDF(*names).withColumn(WEIGHT, F.lit(1).cast("bigint"))
    program = compiled.full_program()
    sources = {s.key: s for s in table.sources}
    tokens = (token for step in program.steps for token in step.reads)
    for token in dict.fromkeys(t for t in tokens if t.startswith("new:")):
        key = token.removeprefix("new:")
        bind_new(bound, sources[key], frontier.pins[key])
    run_steps(bound, program)
    return bound.spark.sql(fill(bound, program.output.sql))


def expected_rows(bound: Binding, table: StreamTable, frontier: Frontier) -> DataFrame:
    """The user's columns and how often each row is there, without looking at what is stored.

    By plain Spark, but for recursion by UNION, which Spark does not have.
    """
    if recursive_union(parse(table.text)) is not None:
        return shown(full_rows(bound, table, frontier), table.layout)
    frame = user_query(bound, table, frontier)
    return frame.withColumn(weight_of(frame.columns), F.lit(1).cast("bigint"))


def user_query(bound: Binding, table: StreamTable, frontier: Frontier) -> DataFrame:
    """The user's query, evaluated by plain Spark at the pinned versions and their time."""
    for source in table.sources:
        bind_plain(bound, source, frontier.pins[source.key])

    def pinned(name: TableName) -> str:
        return bound.views[f"plain:{name.key}"]

    text = redirect(query_text(bound, table), pinned)
    return bound.spark.sql(fix_time(text, frontier.data_timestamp) if table.follows_time else text)


def bind_plain(bound: Binding, source: Source, pin: Pin) -> None:
    """A view of a source at a pin, as a user reads it."""
    if source.kind == "stream":
        upstream = upstream_of(bound.workspace, source, pin)
        frame = bound.workspace.trace(upstream).past_readout(bound.spark, pin.version)
        frame = frame.select(*map(quote, in_sight(source, frame.columns)))
    else:
        frame = pinned_table(bound, source, pin)
    bound.view(f"plain:{source.key}", frame)


def query_text(bound: Binding, table: StreamTable) -> str:
    """The query's text, with every choice made that it leaves open."""
    compiled = compiled_query(bound.workspace, bound.spark, table)
    text = compiled.text if compiled else deterministic_text(table.text)
    return text or table.text


def difference(bound: Binding, trace: Trace, rows: DataFrame, epoch: int) -> DataFrame:
    """Rows minus the trace's contents, netted: a small change for consumers even after FULL."""
    names = [column.name for column in trace.layout.stored]
    stored = trace.contents(bound.spark, epoch)
    old = stored.select(*names, (-F.col(WEIGHT)).alias(WEIGHT))
    casted = [F.col(c.name).cast(c.type).alias(c.name) for c in trace.layout.stored]
    union = rows.select(*casted, WEIGHT).unionByName(old)
    netted = union.groupBy(*names).agg(F.sum(WEIGHT).alias(WEIGHT))
    return netted.where(F.col(WEIGHT) != 0)
