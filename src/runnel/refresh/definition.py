"""A definition checked and compiled: sources found, types learnt, storage decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from runnel.catalog import Source, StreamTable
from runnel.compile.build import SourceSchema
from runnel.compile.parse import parse
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.compile.refuse import refuse, strange_functions
from runnel.compile.rewrites.fix_time import TimeCall, fix_time, time_calls
from runnel.compile.rewrites.inline_views import inline_views
from runnel.compile.sources import redirect, source_names
from runnel.compile.variables import unknown_names
from runnel.errors import InvalidQuery, NotDifferentiable, NotFound
from runnel.lake.frames import SparkSession
from runnel.lake.names import locate
from runnel.lake.reading import columns_of
from runnel.lake.typing import SparkTyper, output_schema, resolves_alone, system_functions
from runnel.model.columns import Column, Layout, hashable_names
from runnel.model.names import TableName, quote
from runnel.model.views import Resolution, View
from runnel.refresh.views import ViewFinder
from runnel.refresh.workspace import Workspace

_UNSTORABLE = ("void", "variant", "interval")


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
        stored = tuple(Column(f"c{i}", c.type) for i, c in enumerate(self.columns))
        visible = tuple((c, s.name) for c, s in zip(self.columns, stored, strict=True))
        return Layout(stored, hashable_names(stored), visible)


def define(
    workspace: Workspace, spark: SparkSession, query: str, table: StreamTable | None = None
) -> Definition:
    """Check a query against the sources as they are now; `table` is the one that has it already."""
    refuse(parse(query))
    found = _Found(workspace)
    inlined = inline_views(
        query,
        ViewFinder.of(workspace, table),
        lambda text: output_schema(spark, _over_nothing(text, found.schemas(text))),
    )
    text, sources = inlined.query, found.sources(inlined.query)
    if not sources:
        raise InvalidQuery("the query reads no table", hint="a stream table follows its sources")
    schemas, calls = found.schemas(text), time_calls(text)
    refuse(parse(text))
    _refuse_variables(workspace.spark, text, schemas, calls)
    columns = _output(spark, text, schemas)
    resolution = Resolution(text, inlined.views, bool(calls)) if inlined.views or calls else None
    try:
        _check_functions(spark, strange_functions(parse(text)), inlined.views)
        compiled = _compile(spark, text, schemas, columns)
    except NotDifferentiable as refusal:
        if calls:
            _check_time(spark, text, schemas, columns)
        reason = f"the query asks for the current time ({calls[0]})" if calls else refusal.primary
        full = tuple(
            _with_columns(s, tuple(c.name for c in x.columns))
            for s, x in zip(sources, schemas, strict=True)
        )
        return Definition(query, full, columns, None, reason, refusal, resolution)

    used = compiled.used_columns
    sources = tuple(_with_columns(s, used[s.key]) for s in sources)
    return Definition(query, sources, columns, compiled, None, resolution=resolution)


def compiled_query(
    workspace: Workspace, spark: SparkSession, table: StreamTable
) -> CompiledQuery | None:
    """The compiled form of a stored definition; kept for the life of the process."""
    if table.not_differential:
        return None
    text, compiled = workspace.compiled.get(table.incarnation, (None, None))
    # Another process may have given it another text, when a view was redefined.
    if compiled is None or text != table.text:
        schemas = [_schema(workspace, s) for s in table.sources]
        names = [c.name for c in table.layout.columns]
        compiled = compile_query(table.text, schemas, SparkTyper(spark), names)
        if compiled.layout != table.layout:
            raise InvalidQuery(
                f"the query of {table.name} no longer gives the stored columns",
                detail="a source's column types changed",
                hint=f"define it again: ALTER STREAM TABLE {table.name} AS {table.query}",
            )
        workspace.compiled[table.incarnation] = (table.text, compiled)
    return compiled


@dataclass
class _Found:
    """The sources of a query and of the views in it, each looked up once."""

    workspace: Workspace
    known: dict[str, tuple[Source, SourceSchema]] = field(default_factory=dict)

    def sources(self, text: str) -> tuple[Source, ...]:
        return tuple(self._find(name)[0] for name in source_names(text))

    def schemas(self, text: str) -> list[SourceSchema]:
        return [self._find(name)[1] for name in source_names(text)]

    def _find(self, name: TableName) -> tuple[Source, SourceSchema]:
        if name.key not in self.known:
            source = _find_source(self.workspace, name)
            self.known[name.key] = source, _schema(self.workspace, source)
        return self.known[name.key]


def _find_source(workspace: Workspace, name: TableName) -> Source:
    stream = workspace.catalog.find(name.key)
    if stream is not None:
        return Source(name.key, "stream", stream.name, None, stream.id, ())
    location = locate(workspace.spark, name)
    if location is None:
        raise NotFound(
            f"table {name} does not exist",
            hint="create it first, or check the spelling; SHOW TABLES lists what there is",
        )
    return Source(name.key, "delta", name, workspace.relative(location), None, ())


def _schema(workspace: Workspace, source: Source) -> SourceSchema:
    if source.kind == "stream":
        table = workspace.upstream(source)
        if table is None:
            raise NotFound(f"stream table {source.name} does not exist")
        return SourceSchema(source.key, "trace", table.layout.columns)
    log = workspace.log(source.location or "")
    return SourceSchema(source.key, "delta", columns_of(log.snapshot(log.latest_version())))


def _output(spark: SparkSession, query: str, schemas: list[SourceSchema]) -> tuple[Column, ...]:
    """What Spark itself says the query returns, over empty tables of the sources' types."""
    columns = output_schema(spark, _over_nothing(query, schemas))
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise InvalidQuery(
                f"the query returns two columns called {column.name}",
                hint="give one of them another alias",
            )
        seen.add(column.name.lower())
        _check_storable(column)
    return columns


def _over_nothing(query: str, schemas: list[SourceSchema]) -> str:
    empty = {s.key: _typed_nulls(s.columns) for s in schemas}
    return redirect(query, lambda name: empty[name.key])


def _check_time(
    spark: SparkSession, query: str, schemas: list[SourceSchema], columns: tuple[Column, ...]
) -> None:
    """With an instant in the place of the time functions the query must give the same columns."""
    try:
        fixed = output_schema(spark, fix_time(_over_nothing(query, schemas), datetime.now(UTC)))
    except InvalidQuery as error:
        raise InvalidQuery(
            "a column that shows the current time has no name of its own",
            detail=error.primary,
            hint="give it an alias where it is selected: current_date() AS today",
        ) from error
    if [c.type for c in fixed] != [c.type for c in columns]:
        raise InvalidQuery(
            "the current time is used in a way that an instant cannot stand for",
            detail=f"expected {columns}, found {fixed}",
        )


def _refuse_variables(
    spark: SparkSession, query: str, schemas: list[SourceSchema], calls: tuple[TimeCall, ...]
) -> None:
    """Names that mean something without any table: session variables, and functions."""
    columns = {c.name.lower() for s in schemas for c in s.columns}
    for call in calls:
        if call.is_bare and call.name in columns:
            raise InvalidQuery(
                f"{call.name} may be a column or the current time",
                hint=f"write {call.name}(), or the column with its table's name before it",
            )
    for name in unknown_names(query, columns):
        if resolves_alone(spark, name):
            raise InvalidQuery(
                f"{name.replace('`', '')} is no column, but a variable or function of the session",
                detail="a stored query has no session; its answer must follow from its sources",
                hint="write the value into the query",
            )


def _check_storable(column: Column) -> None:
    if any(word in column.type for word in _UNSTORABLE):
        raise InvalidQuery(
            f"column {column.name} has type {column.type}, which cannot be stored and compared",
            hint="cast it, for example CAST(... AS STRING)",
        )


def _typed_nulls(columns: tuple[Column, ...]) -> str:
    items = ", ".join(f"CAST(NULL AS {c.type}) AS {quote(c.name)}" for c in columns)
    return f"(SELECT {items} WHERE FALSE)"


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
        refusal.place = error.place
        raise refusal from error
    _check_types(compiled, columns)
    return compiled


def _check_functions(spark: SparkSession, names: frozenset[str], views: tuple[View, ...]) -> None:
    own = sorted(names - system_functions(spark)) if names else []
    elsewhere = next((v for v in views if v.schema.lower() != "default"), None)
    if own and elsewhere is not None:
        raise InvalidQuery(
            f"function {own[0]} may be one of the schema {elsewhere.schema}",
            detail=f"view {elsewhere.name} looks for names there, the query in the schema default",
            hint="leave functions of your own out of one of them",
        )
    if own:
        raise NotDifferentiable(
            f"the user-defined function {own[0]}",
            detail="whether it aggregates, and whether it always gives the same, is not known",
            hint="use refresh mode FULL or AUTO, or write it with functions of Spark",
        )


def _check_types(compiled: CompiledQuery, columns: tuple[Column, ...]) -> None:
    """Our reading of the query must agree with Spark's; if it does not, FULL is the safe way."""
    ours = compiled.layout.columns
    if [c.type for c in ours] != [c.type for c in columns]:
        raise NotDifferentiable(
            "this query's mix of types", detail=f"compiled {ours}, Spark says {columns}"
        )


def _with_columns(source: Source, columns: tuple[str, ...]) -> Source:
    return Source(source.key, source.kind, source.name, source.location, source.table_id, columns)
