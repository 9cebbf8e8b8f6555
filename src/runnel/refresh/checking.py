"""What must hold of a query before it becomes a table, asked of Spark over empty tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from runnel.compile.build import SourceSchema
from runnel.compile.origins import Woven, weave
from runnel.compile.parse import parse
from runnel.compile.pipeline import compile_query
from runnel.compile.places import point
from runnel.compile.recursion import recursive_union, with_union_all
from runnel.compile.rewrites.fix_time import TimeCall, fix_time, time_calls
from runnel.compile.rewrites.open_orders import ordered_text
from runnel.compile.sources import edits
from runnel.compile.spark_places import locate
from runnel.compile.variables import unknown_names
from runnel.errors import InvalidQuery, NotDifferentiable, RunnelError
from runnel.lake.frames import SparkSession
from runnel.lake.typing import SparkTyper, output_schema, resolves_alone, system_functions
from runnel.model.columns import Column, holds_type
from runnel.model.functions import OwnFunction
from runnel.model.names import quote
from runnel.model.views import View

_UNSTORABLE = ("void", "variant", "interval")


def output(spark: SparkSession, query: str, schemas: list[SourceSchema]) -> tuple[Column, ...]:
    """What Spark itself says the query returns, over empty tables of the sources' types."""
    text = over_nothing(query, schemas)
    try:
        columns = output_schema(spark, text)
    except InvalidQuery as error:
        made = _over_nothing(query, schemas)
        if made.text == text:
            locate(error, query, made)
            point(error, query)
        raise
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


def over_nothing(query: str, schemas: list[SourceSchema]) -> str:
    """The query over empty tables, in a form that Spark can analyse, with the same columns."""
    text = _over_nothing(query, schemas).text
    return with_union_all(text) if recursive_union(parse(query)) is not None else text


def _over_nothing(query: str, schemas: list[SourceSchema]) -> Woven:
    empty = {s.key: _typed_nulls(s.columns) for s in schemas}
    found = edits(query, lambda reference: empty[reference.name.key])
    return weave(query, [(start, end, Woven(made + alias)) for start, end, made, alias in found])


def check_text(
    spark: SparkSession, text: str, schemas: list[SourceSchema], columns: tuple[Column, ...]
) -> None:
    """Spark must take the query as rewritten too, and give the same types."""
    try:
        found = output_schema(spark, over_nothing(text, schemas))
        if [c.type for c in found] != [c.type for c in columns]:
            raise InvalidQuery(f"it would give {found} instead of {columns}")
    except InvalidQuery as error:
        raise InvalidQuery(
            "what this query collects cannot be put in order",
            detail=f"{error.primary}; the query would be evaluated as {text}",
            hint="collect values that can be sorted, for example to_json(x) or CAST(x AS STRING)",
        ) from error


def with_ties(
    spark: SparkSession, query: str, schemas: list[SourceSchema], columns: tuple[Column, ...]
) -> str:
    """The text with every order completed, as far as it is understood; else as it is."""
    names = [c.name for c in columns]
    try:
        text = compile_query(query, schemas, SparkTyper(spark), names, is_instant=True).text
        return text if text and len(time_calls(text)) == len(time_calls(query)) else query
    except RunnelError:
        return query


def with_orders(
    spark: SparkSession, query: str, schemas: list[SourceSchema], columns: tuple[Column, ...]
) -> str:
    """The text with every order completed, for a query that only FULL can keep."""
    text = ordered_text(query, len(columns))
    if text is None:
        return query
    try:
        found = output_schema(spark, over_nothing(text, schemas))
    except InvalidQuery as error:
        raise InvalidQuery(
            "the rows that tie in an ORDER BY of this query cannot be put in order",
            detail=f"{error.primary}; the query would be evaluated as {text}",
            hint="leave out columns of a type that has no order, such as maps, in a FROM subquery",
        ) from error
    if [c.type for c in found] != [c.type for c in columns]:
        raise InvalidQuery(
            "the rows that tie in an ORDER BY of this query cannot be put in order",
            detail=f"expected {columns}, found {found}",
            hint="complete the ORDER BY with the columns that decide",
        )
    return text


def check_time(
    spark: SparkSession, query: str, schemas: list[SourceSchema], columns: tuple[Column, ...]
) -> None:
    """With an instant in the place of the time functions the query must give the same columns."""
    try:
        fixed = output_schema(spark, fix_time(over_nothing(query, schemas), datetime.now(UTC)))
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


def refuse_variables(
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
    if holds_type(column.type, *_UNSTORABLE):
        raise InvalidQuery(
            f"column {column.name} has type {column.type}, which cannot be stored and compared",
            hint="cast it, for example CAST(... AS STRING)",
        )


def _typed_nulls(columns: tuple[Column, ...]) -> str:
    items = ", ".join(f"CAST(NULL AS {c.type}) AS {quote(c.name)}" for c in columns)
    return f"(SELECT {items} WHERE FALSE)"


def check_functions(
    spark: SparkSession,
    names: frozenset[str],
    views: tuple[View, ...],
    known: Mapping[str, OwnFunction],
) -> None:
    """Functions of the user's own must be said to give the same whenever they are asked."""
    own = sorted(names - system_functions(spark)) if names else []
    elsewhere = next((v for v in views if v.schema.lower() != "default"), None)
    if own and elsewhere is not None:
        raise InvalidQuery(
            f"function {own[0]} may be one of the schema {elsewhere.schema}",
            detail=f"view {elsewhere.name} looks for names there, the query in the schema default",
            hint="leave functions of your own out of one of them",
        )
    for name in own:
        if name not in known or not known[name].is_deterministic:
            raise NotDifferentiable(
                f"the user-defined function {name}",
                detail="whether it always gives the same for the same arguments is not known",
                hint=f'if it does, say so: lake.register_function("{name}", ..., '
                "deterministic=True); or use refresh mode FULL or AUTO",
            )
