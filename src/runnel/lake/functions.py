"""Functions of the user's own, made known to a Spark session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.util import PythonEvalType

from runnel.errors import UserError
from runnel.model.functions import OwnFunction
from runnel.model.names import quote

# Not who made it and when. Further arguments stand in lines of their own.
_FACTS = re.compile(r"^(?:(?:Type|Input|Returns):.*(?:\n .*)*|Body:(?s:.*))", re.MULTILINE)
_AGGREGATES = (
    PythonEvalType.SQL_GROUPED_AGG_PANDAS_UDF,
    PythonEvalType.SQL_GROUPED_AGG_ARROW_UDF,
)


def described(
    name: str, function: Any, returns: str | None, deterministic: bool, aggregate: bool | None
) -> OwnFunction:
    """A function with what can be read off it; pyspark's UDFs carry their type."""
    is_udf = hasattr(function, "asNondeterministic")
    if is_udf and deterministic and not function.deterministic:
        raise UserError(
            f"function {name} was made with asNondeterministic()",
            hint="register it with deterministic=False; tables that call it are refreshed FULL",
        )
    if function is not None and not is_udf and returns is None:
        raise UserError(
            f"the type that function {name} returns is not known",
            hint=f'lake.register_function("{name}", ..., returns="int")',
        )
    is_aggregate = is_udf and function.evalType in _AGGREGATES if aggregate is None else aggregate
    return OwnFunction(name, function, returns, deterministic, is_aggregate)


def register(spark: SparkSession, functions: Iterable[OwnFunction]) -> None:
    """Make functions known under their names; an aggregate as a function of a list."""
    for own in functions:
        if own.function is None:
            continue
        if not own.is_aggregate:
            spark.udf.register(own.name, own.function, own.returns)
        else:
            returns = own.returns or own.function.returnType  # type: ignore[attr-defined]
            spark.udf.register(own.name, _of_list(own.function), returns)


def sql_function(spark: SparkSession, name: str) -> str | None:
    """What a function does that was made by CREATE FUNCTION in SQL; None for any other."""
    try:
        rows = spark.sql(f"DESCRIBE FUNCTION EXTENDED {quote(name)}").collect()
    except AnalysisException:
        return None
    facts = _FACTS.findall("\n".join(row[0] for row in rows))
    return "\n".join(facts) if any(fact.startswith("Body:") for fact in facts) else None


def _of_list(function: Any) -> Callable[[Sequence[Any]], Any]:
    """A pandas or Arrow aggregate takes a series for each argument; another the list itself."""
    kind = getattr(function, "evalType", None)
    if kind not in _AGGREGATES:
        return function  # type: ignore[no-any-return]
    is_pandas = kind == PythonEvalType.SQL_GROUPED_AGG_PANDAS_UDF
    plain = function.func

    # It runs where Runnel may not be installed, so it must not name anything of this module.
    def over_list(values: Sequence[Any]) -> Any:
        make: Any
        if is_pandas:
            from pandas import Series

            make = Series
        else:
            from pyarrow import array

            make = array
        rows = bool(values) and isinstance(values[0], tuple)
        columns = [list(c) for c in zip(*values, strict=True)] if rows else [values]
        made = plain(*map(make, columns))
        made = made.as_py() if hasattr(made, "as_py") else made
        return made.item() if hasattr(made, "item") else made

    return over_list
