"""A definition checked and compiled: sources found, types learnt, storage decided."""

from __future__ import annotations

from dataclasses import dataclass

from runnel.catalog import Source, StreamTable
from runnel.compile.build import SourceSchema
from runnel.compile.parse import parse
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.compile.refuse import refuse, strange_functions
from runnel.compile.rewrites.determinism import deterministic_text
from runnel.compile.sources import redirect, source_names
from runnel.errors import InvalidQuery, NotDifferentiable, NotFound
from runnel.lake.frames import SparkSession
from runnel.lake.names import locate
from runnel.lake.reading import columns_of
from runnel.lake.typing import SparkTyper, output_schema, system_functions
from runnel.model.columns import Column, Layout, hashable_names
from runnel.model.names import TableName, quote
from runnel.refresh.workspace import Workspace

_UNSTORABLE = ("void", "variant", "interval")


@dataclass(frozen=True, slots=True)
class Definition:
    """A query that fits its sources; `compiled` is None when only FULL can keep it."""

    query: str
    sources: tuple[Source, ...]
    columns: tuple[Column, ...]
    compiled: CompiledQuery | None
    not_differential: str | None
    refusal: NotDifferentiable | None = None

    @property
    def layout(self) -> Layout:
        if self.compiled is not None:
            return self.compiled.layout
        stored = tuple(Column(f"c{i}", c.type) for i, c in enumerate(self.columns))
        visible = tuple((c, s.name) for c, s in zip(self.columns, stored, strict=True))
        return Layout(stored, hashable_names(stored), visible)


def define(workspace: Workspace, spark: SparkSession, query: str) -> Definition:
    """Check a query against the sources as they are now."""
    tree = parse(query)
    refuse(tree)
    text = deterministic_text(query)
    sources = tuple(_find_source(workspace, name) for name in source_names(query))
    if not sources:
        raise InvalidQuery("the query reads no table", hint="a stream table follows its sources")
    schemas = [_schema(workspace, source) for source in sources]
    columns = _output(spark, query, schemas)
    if text is not None:
        _check_text(spark, text, schemas, columns)
    try:
        _check_functions(spark, strange_functions(tree))
        compiled = _compile(spark, query, schemas, columns)
    except NotDifferentiable as refusal:
        full = tuple(
            _with_columns(s, tuple(c.name for c in x.columns))
            for s, x in zip(sources, schemas, strict=True)
        )
        return Definition(query, full, columns, None, refusal.primary, refusal)

    used = compiled.used_columns
    return Definition(
        query, tuple(_with_columns(s, used[s.key]) for s in sources), columns, compiled, None
    )


def compiled_query(
    workspace: Workspace, spark: SparkSession, table: StreamTable
) -> CompiledQuery | None:
    """The compiled form of a stored definition; kept for the life of the process."""
    if table.not_differential:
        return None
    if table.incarnation not in workspace.compiled:
        schemas = [_schema(workspace, s) for s in table.sources]
        names = [c.name for c in table.layout.columns]
        compiled = compile_query(table.query, schemas, SparkTyper(spark), names)
        if compiled.layout != table.layout:
            raise InvalidQuery(
                f"the query of {table.name} no longer gives the stored columns",
                detail="a source's column types changed",
                hint=f"define it again: ALTER STREAM TABLE {table.name} AS {table.query}",
            )
        workspace.compiled[table.incarnation] = compiled
    return workspace.compiled[table.incarnation]


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


def _check_text(
    spark: SparkSession, text: str, schemas: list[SourceSchema], columns: tuple[Column, ...]
) -> None:
    """Spark must take the query as rewritten too, and give the same types."""
    try:
        found = output_schema(spark, _over_nothing(text, schemas))
        if [c.type for c in found] != [c.type for c in columns]:
            raise InvalidQuery(f"it would give {found} instead of {columns}")
    except InvalidQuery as error:
        raise InvalidQuery(
            "what this query collects cannot be put in order",
            detail=f"{error.primary}; the query would be evaluated as {text}",
            hint="collect values that can be sorted, for example to_json(x) or CAST(x AS STRING)",
        ) from error


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


def _check_functions(spark: SparkSession, names: frozenset[str]) -> None:
    own = sorted(names - system_functions(spark)) if names else []
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
