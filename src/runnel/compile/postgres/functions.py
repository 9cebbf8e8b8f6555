"""Every ordinary function that is translated, by its name."""

from __future__ import annotations

from collections.abc import Callable

from runnel.compile.postgres import arrays, documents, mathematics, text
from runnel.compile.postgres.casts import coerce, convert, to_int, typed
from runnel.compile.postgres.comparisons import comparable
from runnel.compile.postgres.dates import extract, truncate
from runnel.compile.postgres.formats import reading_pattern, to_char
from runnel.compile.postgres.types import DATE, FLOAT8, TEXT, TIMESTAMPTZ, common
from runnel.compile.postgres.values import Value, bare, call, cast, refused, text_literal

Function = Callable[[list[Value]], Value]
_HINTS = {
    "age": "subtract the moments, or extract(epoch from a - b)",
    "random": "the contents of a stream table must follow from its sources alone",
    "initcap": "Spark has it, but begins words at blanks only",
    "chr": "write the character",
    "json_agg": "use array_agg",
    "jsonb_agg": "use array_agg",
    "regexp_match": "use substring(x from 'pattern')",
    "regexp_matches": "use substring(x from 'pattern')",
    "format": "use || or concat()",
    "div": "use trunc(a / b)",
}


def call_function(name: str, arguments: list[Value]) -> Value:
    """A call by name; what is not known here is refused, since Spark's may mean something else."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise refused(f"the function {name}()", hint=_HINTS.get(name))
    try:
        return function(arguments)
    except IndexError:
        raise refused(f"{name}() with {len(arguments)} arguments") from None


def _branches(spark: str) -> Function:
    def apply(arguments: list[Value]) -> Value:
        type_ = common([a.type for a in arguments], spark.lower())
        inside = [coerce(a, type_).sql for a in arguments]
        if len(inside) == 1:
            return coerce(arguments[0], type_)
        return Value(call(spark, *inside), type_)

    return apply


def _nullif(arguments: list[Value]) -> Value:
    first = typed(arguments[0])
    a, b = comparable("=", first, arguments[1])
    if a.sql == first.sql:
        return Value(f"NULLIF({a.sql}, {b.sql})", first.type)
    return Value(f"CASE WHEN {a.sql} = {b.sql} THEN NULL ELSE {first.sql} END", first.type)


def _constant(value: Value, what: str) -> str:
    if value.constant is None:
        raise refused(f"{what} that is not constant")
    return value.constant


def _to_char(arguments: list[Value]) -> Value:
    if not arguments[0].type.is_moment:
        raise refused(
            f"to_char() of {arguments[0].type}", hint="cast it to text, or use lpad() and round()"
        )
    pattern = _constant(arguments[1], "a format")
    return Value(to_char(arguments[0], pattern), TEXT)


def _to_date(arguments: list[Value]) -> Value:
    shown = text.text_of(arguments[0], "to_date").sql
    pattern = reading_pattern(_constant(arguments[1], "a format"), "to_date()")
    return Value(f"TO_DATE({shown}, {text_literal(pattern)})", DATE)


def _to_timestamp(arguments: list[Value]) -> Value:
    if len(arguments) == 1:
        seconds = to_int(arguments[0], "to_timestamp()")
        return Value(f"TIMESTAMP_SECONDS({bare(seconds.sql)})", TIMESTAMPTZ)
    shown = text.text_of(arguments[0], "to_timestamp").sql
    pattern = reading_pattern(_constant(arguments[1], "a format"), "to_timestamp()")
    return Value(f"TO_TIMESTAMP({shown}, {text_literal(pattern)})", TIMESTAMPTZ)


def _date_part(arguments: list[Value]) -> Value:
    taken = extract(_constant(arguments[0], "a field of date_part()"), arguments[1])
    return Value(cast(taken.sql, FLOAT8), FLOAT8)


def _date_trunc(arguments: list[Value]) -> Value:
    if len(arguments) > 2:
        raise refused("date_trunc() with a time zone")
    moment = arguments[1]
    moment = coerce(moment, TIMESTAMPTZ) if moment.type.kind == "unknown" else moment
    return truncate(_constant(arguments[0], "a unit of date_trunc()"), moment)


def _make_date(arguments: list[Value]) -> Value:
    parts = [to_int(arguments[i], "make_date()").sql for i in range(3)]
    return Value(call("MAKE_DATE", *parts), DATE)


FUNCTIONS: dict[str, Function] = {
    **text.FUNCTIONS, **mathematics.FUNCTIONS, **arrays.FUNCTIONS, **documents.FUNCTIONS,
    "coalesce": _branches("COALESCE"), "greatest": _branches("GREATEST"),
    "least": _branches("LEAST"), "nullif": _nullif, "to_char": _to_char, "to_date": _to_date,
    "to_timestamp": _to_timestamp, "date_part": _date_part, "date_trunc": _date_trunc,
    "make_date": _make_date, "date": lambda a: convert(a[0], DATE),
    "now": lambda a: Value("CURRENT_TIMESTAMP()", TIMESTAMPTZ),
}  # fmt: skip
