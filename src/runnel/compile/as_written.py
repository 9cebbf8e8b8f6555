"""Function calls that reach Spark as they were written, though sqlglot would write them otherwise.

sqlglot reads a call as what it means in all dialects, and writes that in Spark's words: a format
that looks like the default one is gone, a unit that is a column becomes its name, another function
with another answer for NULL takes its place. A call that would come out otherwise is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

Build = Callable[..., exp.Expr]

# Another result type, a lost argument, other last digits; or an order that is written into them.
VERBATIM = frozenset(
    "LOG10 UNIX_DATE PARSE_JSON TO_CHAR TO_VARCHAR LEVENSHTEIN "
    "LISTAGG STRING_AGG MAX_BY MIN_BY PERCENTILE PERCENTILE_CONT PERCENTILE_DISC "
    "APPROX_PERCENTILE PERCENTILE_APPROX".split()
)
# The compiler looks for these; the other form in which they are written means the same.
_READ = (
    *(exp.AggFunc, exp.Explode, exp.Inline, exp.Unnest, exp.Struct, exp.Array, exp.Map, exp.VarMap),
    *(exp.Cast, exp.Coalesce, exp.Case, exp.If, exp.CurrentDate, exp.CurrentTimestamp),
    *(exp.Localtimestamp, exp.ArraySort, exp.Any, exp.Exists, exp.GroupingId, exp.Grouping),
)
# With three arguments the first of these is a unit, in Spark's grammar a word and never a column.
_WITH_UNIT = frozenset(
    "TIMESTAMPADD DATEADD DATE_ADD TIMESTAMPDIFF DATEDIFF DATE_DIFF TIMEDIFF".split()
)


def faithful(functions: Mapping[str, Build]) -> dict[str, Build]:
    """The builders of calls by name, each of which keeps what would be written in another way."""
    return {n: _faithful(n, build) for n, build in functions.items() if n not in VERBATIM}


def _faithful(name: str, build: Build) -> Build:
    def built(args: list[Any], dialect: Any = None) -> exp.Expr:
        as_written = exp.Anonymous(this=name, expressions=_arguments(name, args))
        try:
            made = build(args)
        except TypeError:
            if dialect is None:
                raise
            made = build(args, dialect=dialect)
        is_read = isinstance(made, _READ) and not name.startswith(("TO_", "TRY_TO_"))
        return made if is_read or _text(made) == _text(as_written) else as_written

    return built


def _arguments(name: str, args: list[Any]) -> list[Any]:
    copies = [arg.copy() for arg in args]
    if name in _WITH_UNIT and len(args) == 3 and isinstance(args[0], exp.Column):
        copies[0] = exp.var(args[0].name)
    return copies


def _text(node: exp.Expr) -> str:
    from runnel.compile.dialect import SparkSql

    return node.sql(SparkSql)
