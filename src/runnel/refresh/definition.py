"""A definition checked and compiled: sources found, types learnt, storage decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from runnel.catalog import Source, StreamTable
from runnel.compile.build import SourceSchema
from runnel.compile.parse import parse
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.compile.readings import READINGS, refuse_quotes, refuse_readings
from runnel.compile.recursion import recursive_union
from runnel.compile.refuse import refuse, strange_functions
from runnel.compile.rewrites.determinism import deterministic_text
from runnel.compile.rewrites.fix_time import time_calls
from runnel.compile.rewrites.inline_views import Inlined, inline_views
from runnel.compile.rewrites.own_aggregates import own_aggregates
from runnel.compile.rewrites.quantified import without_quantifiers
from runnel.compile.rewrites.unnested import without_unnest
from runnel.compile.sources import source_names
from runnel.errors import InvalidQuery, NotDifferentiable, NotFound, UserError
from runnel.lake.frames import SparkSession
from runnel.lake.names import locate
from runnel.lake.reading import char_names, columns_of
from runnel.lake.session import query_settings
from runnel.lake.typing import SparkTyper, output_schema, system_functions
from runnel.model.columns import Column, Layout, hashable_names
from runnel.model.names import TableName
from runnel.model.views import Resolution
from runnel.refresh.checking import (
    check_functions,
    check_text,
    check_time,
    output,
    over_nothing,
    refuse_variables,
    with_orders,
    with_ties,
)
from runnel.refresh.functions import watch_functions
from runnel.refresh.views import ViewFinder
from runnel.refresh.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Definition:
    """A query that fits its sources; `compiled` is None when only FULL can keep it.

    `resolution` is what is evaluated in the query's place, if it reads views or asks for the time.
    """

    query: str
    sources: tuple[Source, ...]
    columns: tuple[Column, ...]
    compiled: CompiledQuery | None
    not_differential: str | None
    refusal: NotDifferentiable | None = None
    resolution: Resolution | None = None

    @property
    def layout(self) -> Layout:
        if self.compiled is not None:
            return self.compiled.layout
        return plain_layout(self.columns)

    def put_into(self, table: StreamTable) -> StreamTable:
        """A table with this definition."""
        return replace(
            table, query=self.query, layout=self.layout, sources=self.sources,
            not_differential=self.not_differential, resolution=self.resolution,
        )  # fmt: skip


def plain_layout(columns: tuple[Column, ...]) -> Layout:
    """Every column is stored as it is shown."""
    stored = tuple(Column(f"c{i}", c.type) for i, c in enumerate(columns))
    visible = tuple((c, s.name) for c, s in zip(columns, stored, strict=True))
    return Layout(stored, hashable_names(stored), visible)


def define(
    workspace: Workspace, spark: SparkSession, query: str, table: StreamTable | None = None
) -> Definition:
    """Check a query against the sources as they are now; `table` is the one that has it already."""
    found = Found(workspace, {s.key: s.known for s in table.sources} if table else {})
    settings = query_settings(spark, READINGS)
    refuse_quotes(query, settings)
    inlined = without_views(spark, query, table, found)
    text, sources = inlined.query, found.sources(inlined.query)
    if not sources:
        raise InvalidQuery("the query reads no table", hint="a stream table follows its sources")
    schemas, calls = found.schemas(text), time_calls(text)
    refuse(text)
    refuse_quotes(text, settings)
    refuse_variables(workspace.spark, text, schemas, calls)
    with pointing(inlined):
        columns = output(spark, text, schemas)
        chosen = deterministic_text(text)
    if chosen is not None:
        check_text(spark, chosen, schemas, columns)
    if calls:
        text = with_ties(spark, text, schemas, columns)
        check_time(spark, text, schemas, columns)
    is_another = inlined.views or calls or text != query
    resolution = Resolution(text, inlined.views, bool(calls)) if is_another else None
    try:
        strange = strange_functions(parse(text))
        if strange:
            watch_functions(workspace, workspace.spark, strange - system_functions(spark))
        check_functions(spark, strange, inlined.views, workspace.functions)
        refuse_readings(settings)
        with pointing(inlined):
            compiled = _compile(spark, text, schemas, columns)
    except NotDifferentiable as refusal:
        _refuse_recursive_union(text, refusal)
        if text == inlined.query:
            with pointing(inlined):
                text = with_orders(spark, text, schemas, columns)
            is_another = inlined.views or calls or text != query
            resolution = Resolution(text, inlined.views, bool(calls)) if is_another else None
        reason = f"the query asks for the current time ({calls[0]})" if calls else refusal.primary
        full = tuple(
            replace(s, columns=tuple(c.name for c in x.columns))
            for s, x in zip(sources, schemas, strict=True)
        )
        return Definition(query, full, columns, None, reason, refusal, resolution)

    used = compiled.used_columns
    sources = tuple(replace(s, columns=used[s.key]) for s in sources)
    return Definition(query, sources, columns, compiled, None, resolution=resolution)


@contextmanager
def pointing(inlined: Inlined) -> Iterator[None]:
    """What is refused inside is shown in the user's query, or in the view that it stands in."""
    try:
        yield
    except UserError as error:
        inlined.point(error)
        raise


def without_views(
    spark: SparkSession, query: str, table: StreamTable | None, found: Found
) -> Inlined:
    """The query with its views put in; `table` is the one that has it already."""
    refuse(query)
    inlined = inline_views(
        without_unnest(without_quantifiers(query)),
        ViewFinder.of(found.workspace, table),
        lambda text: output_schema(spark, over_nothing(text, found.schemas(text))),
    )
    aggregates = {f.key for f in found.workspace.functions.values() if f.is_aggregate}
    return replace(inlined, query=own_aggregates(inlined.query, aggregates), written=query)


def _refuse_recursive_union(query: str, refusal: NotDifferentiable) -> None:
    """Spark cannot run recursion by UNION, so that FULL is no way out."""
    name = recursive_union(parse(query))
    if name is not None:
        raise InvalidQuery(
            f"{refusal.construct} cannot be kept together with recursion by UNION",
            detail=f"Spark itself does not run {name}, which is made by UNION",
            hint=refusal.hint,
        ) from refusal


def compiled_query(
    workspace: Workspace, spark: SparkSession, table: StreamTable
) -> CompiledQuery | None:
    """The compiled form of a stored definition; kept for the life of the process."""
    if table.not_differential:
        return None
    text, compiled = workspace.compiled.get(table.incarnation, (None, None))
    # Another process may have given it another text, when a view was redefined.
    if compiled is None or text != table.text:
        schemas = [schema_of(workspace, s) for s in table.sources]
        names = [c.name for c in table.layout.columns]
        compiled = compile_query(table.text, schemas, SparkTyper(spark), names)
        if compiled.layout != table.layout:
            raise InvalidQuery(
                f"the query of {table.name} no longer gives the stored columns",
                detail="a source's column types changed",
                hint=f"define it again: ALTER STREAM TABLE {table.name} AS {table.written}",
            )
        workspace.compiled[table.incarnation] = (table.text, compiled)
    return compiled


@dataclass
class Found:
    """The sources of a query and of the views in it, each looked up once."""

    workspace: Workspace
    recorded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    known: dict[str, tuple[Source, SourceSchema]] = field(default_factory=dict)

    def sources(self, text: str) -> tuple[Source, ...]:
        return tuple(self._find(name)[0] for name in source_names(text))

    def schemas(self, text: str) -> list[SourceSchema]:
        return [self._find(name)[1] for name in source_names(text)]

    def _find(self, name: TableName) -> tuple[Source, SourceSchema]:
        if name.key not in self.known:
            source = _find_source(self.workspace, name)
            source = replace(source, known=self.recorded.get(name.key, ()))
            schema = schema_of(self.workspace, source)
            names = tuple(column.name for column in schema.columns)
            self.known[name.key] = replace(source, known=names), schema
        return self.known[name.key]


def _find_source(workspace: Workspace, name: TableName) -> Source:
    stream = workspace.find(name.key)
    if stream is not None:
        return Source(name.key, "stream", stream.name, None, stream.id, ())
    location = locate(workspace.spark, name)
    if location is None:
        raise NotFound(
            f"table {name} does not exist",
            hint="create it first, or check the spelling; SHOW TABLES lists what there is",
        )
    return Source(name.key, "delta", name, workspace.relative(location), None, ())


def schema_of(workspace: Workspace, source: Source) -> SourceSchema:
    if source.kind == "stream":
        table = workspace.upstream(source)
        if table is None:
            raise NotFound(f"stream table {source.name} does not exist")
        if not table.layout.columns:
            raise _not_yet_known(source)
        return SourceSchema(source.key, "trace", _in_sight(source, table.layout.columns))
    log = workspace.log(source.location or "")
    snapshot = log.snapshot(log.latest_version())
    columns = _in_sight(source, columns_of(snapshot))
    return SourceSchema(source.key, "delta", columns, char_names(snapshot))


def _not_yet_known(source: Source) -> UserError:
    """A view over a table that is being defined: what the view shows depends on its reader."""
    return UserError(
        f"the columns of {source.name} are not known yet",
        detail="it is being defined together with what reads it through a view",
        hint="read the stream table itself instead of the view",
    )


def _in_sight(source: Source, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Those that were there when the query was defined, in the order they had."""
    now = {column.name.lower(): column for column in columns}
    known = [now[name.lower()] for name in source.known if name.lower() in now]
    return tuple(known) or columns


def _compile(
    spark: SparkSession, query: str, schemas: list[SourceSchema], columns: tuple[Column, ...]
) -> CompiledQuery:
    try:
        compiled = compile_query(query, schemas, SparkTyper(spark), [c.name for c in columns])
    except InvalidQuery as error:
        # Spark has accepted it: what is not understood is our reading of it.
        refusal = NotDifferentiable(
            f"something in this query ({error.primary})",
            detail=error.detail,
            hint="use refresh mode FULL or AUTO, or write it in another way",
        )
        refusal.place, refusal.span = error.place, error.span
        raise refusal from error
    _check_types(compiled, columns)
    return compiled


def _check_types(compiled: CompiledQuery, columns: tuple[Column, ...]) -> None:
    """Our reading of the query must agree with Spark's; if it does not, FULL is the safe way."""
    ours = compiled.layout.columns
    if [c.type for c in ours] != [c.type for c in columns]:
        raise NotDifferentiable(
            "this query's mix of types",
            detail=f"compiled {ours}, Spark says {columns}",
            hint="cast the columns to the types that are meant, or use refresh mode FULL or AUTO",
        )
