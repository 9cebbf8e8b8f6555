"""What is kept of an aggregate: counts and exact sums that add up, and values that do not.

| function          | state                          | readout                                |
|-------------------|--------------------------------|----------------------------------------|
| COUNT(*)          | row count                      | the count                              |
| COUNT(x)          | non-null count                 | the count                              |
| SUM, AVG (exact)  | non-null count and sum         | NULL when the count is 0, else formula |
| STDDEV, CORR ...  | non-null count, exact sums of  | NULL when the count is 0, else formula |
|  (exact)          |  x, y, x*x, y*y and x*y        |                                        |
| MIN, MAX          | the value                      | the value; see root_aggregate          |
| anything else     | the value                      | the value, recomputed when touched     |

The ways of all functions are in `aggregates.WAYS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from runnel.algebra.nodes import Aggregate, Call
from runnel.algebra.scalar import Scalar
from runnel.compile.aggregates import ADDING_FLOATS, WAYS, Way
from runnel.compile.moments import formula, has_sums, sums_of
from runnel.compile.typing import decimal_parts
from runnel.model.columns import Column

OVERFLOW = "a sum does not fit 38 digits"
_SMALL = frozenset({"tinyint", "smallint", "int"})
_EXACT = _SMALL | {"bigint"}
_ORDERED = _EXACT | {"float", "double", "string", "date", "timestamp", "timestamp_ntz", "boolean"}
# Beyond these a weight times the value, or the quotient's scale, would not fit 38 digits.
_MAX_SUM_PRECISION = 27
_MAX_AVG_PRECISION = 15
# Up to here Spark keeps all digits after the point of a product, and fails where it does not fit.
_MAX_WIDE_SCALE = 6
_MAX_WEIGHTED_PRECISION = 23


class Kind(StrEnum):
    ROWS = "rows"
    COUNT = "count"
    SUM = "sum"
    EXTREME = "extreme"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class StateColumn:
    """One stored column of the state. `call` is set for those that hold a value."""

    column: Column
    kind: Kind
    argument: Column | None = None
    call: Call | None = None

    @property
    def is_additive(self) -> bool:
        return self.kind in (Kind.ROWS, Kind.COUNT, Kind.SUM)

    @property
    def can_overflow(self) -> bool:
        """Whether the change of a sum, or its stored rows added up, may not fit where it fits."""
        is_long = self.argument is not None and self.argument.type == self.column.type == "bigint"
        return self.kind is Kind.SUM and (is_long or is_wide(self))


@dataclass(frozen=True, slots=True)
class State:
    """The state columns of an aggregate, and each call's readout over them."""

    columns: tuple[StateColumn, ...]
    readout: dict[str, Scalar]

    @property
    def rows(self) -> str:
        return self.columns[0].column.name

    @property
    def additive(self) -> tuple[StateColumn, ...]:
        return tuple(c for c in self.columns if c.is_additive)

    @property
    def values(self) -> tuple[StateColumn, ...]:
        return tuple(c for c in self.columns if not c.is_additive)

    @property
    def is_opaque(self) -> bool:
        """Whether a function must see every row by itself, copies too."""
        return any(
            c.call is not None and (c.call.text is not None or _is_too_long(c.call))
            for c in self.values
        )


def _is_too_long(call: Call) -> bool:
    """Whether a value times its number of copies may not fit 38 digits."""
    parts = decimal_parts(call.arguments[0].type) if call.arguments else None
    is_sum = call.function in ("sum", "avg")
    return is_sum and parts is not None and parts[0] > _MAX_WEIGHTED_PRECISION


def state_of(aggregate: Aggregate) -> State:
    """Decide what to keep for each call; equal parts are kept once."""
    columns = [StateColumn(Column("s0", "bigint"), Kind.ROWS)]
    readout: dict[str, Scalar] = {}

    def keep(kind: Kind, type_: str, argument: Column | None, call: Call | None = None) -> str:
        for known in columns:
            same_call = known.call is call or (
                known.call is not None and call is not None and _same(known.call, call)
            )
            found = (known.kind, known.column.type, known.argument)
            if same_call and found == (kind, type_, argument):
                return known.column.name
        name = f"s{len(columns)}"
        columns.append(StateColumn(Column(name, type_), kind, argument, call))
        return name

    for call in aggregate.calls:
        readout[call.output.name] = _keep_call(call, keep)
    return State(tuple(columns), readout)


def _same(left: Call, right: Call) -> bool:
    return (left.function, left.arguments, left.text) == (
        right.function,
        right.arguments,
        right.text,
    )


def _keep_call(call: Call, keep: Callable[..., str]) -> Scalar:
    argument = call.arguments[0] if call.arguments else None
    if _is_moment(call):
        return _keep_sums(call, keep)
    if call.text is not None:
        return Scalar.column(keep(Kind.VALUE, call.output.type, argument, call))
    if call.function == "count_star":
        return Scalar.column("s0")
    if call.function == "count":
        return Scalar.column(keep(Kind.COUNT, "bigint", argument))
    if call.function in ("sum", "avg") and argument is not None:
        type_ = sum_type(call)
        if type_ is not None:
            count = keep(Kind.COUNT, "bigint", argument)
            return _sum_readout(call, count, keep(Kind.SUM, type_, argument))
    if call.function in ("min", "max") and argument is not None and is_ordered(argument.type):
        return Scalar.column(keep(Kind.EXTREME, call.output.type, argument, call))
    return Scalar.column(keep(Kind.VALUE, call.output.type, argument, call))


def _keep_sums(call: Call, keep: Callable[..., str]) -> Scalar:
    columns = {}
    for name, added in sums_of(call.function, call.arguments).items():
        if name == "n":
            columns[name] = keep(Kind.COUNT, "bigint", added)
        else:
            columns[name] = keep(Kind.SUM, _exact_sum(added.type), added)
    return formula(call.function, tuple(a.type for a in call.arguments), columns)


def keeps_sums(call: Call) -> bool:
    """Whether exact sums of squares and products can stand for the call's text."""
    return call.output.type == "double" and has_sums(
        call.function, [a.type for a in call.arguments]
    )


def _is_moment(call: Call) -> bool:
    return call.text is None and WAYS.get(call.function) is Way.MOMENTS


def _exact_sum(type_: str) -> str:
    parts = decimal_parts(type_)
    return "bigint" if parts is None else f"decimal({min(38, parts[0] + 10)},{parts[1]})"


def sum_type(call: Call) -> str | None:
    """The type in which the sum is kept exactly, or None when it cannot be."""
    type_ = call.arguments[0].type
    if call.function == "avg" and type_ == "bigint":
        return "decimal(38,0)"
    if type_ in _EXACT:
        return _exact_sum(type_)
    parts = decimal_parts(type_)
    if parts is None or (call.function == "avg" and parts[0] > _MAX_AVG_PRECISION):
        return None
    if parts[0] > _MAX_SUM_PRECISION and parts[1] > _MAX_WIDE_SCALE:
        return None
    return _exact_sum(type_)


def is_ordered(type_: str) -> bool:
    return type_ in _ORDERED or type_.startswith("decimal(")


def is_inexact(call: Call) -> bool:
    """Whether the value depends on the order of its rows, so that it can't be evaluated twice."""
    if call.is_in_order or _is_moment(call):
        return False
    if WAYS.get(call.function) in (*ADDING_FLOATS, Way.AT_ROOT):
        return True
    is_sum = call.function.removesuffix("_distinct") in ("sum", "avg", "try_sum", "try_avg")
    return is_sum and any(not _adds_exactly(a.type) for a in call.arguments)


def _adds_exactly(type_: str) -> bool:
    return type_ in _EXACT or decimal_parts(type_) is not None or type_.startswith("interval")


def _sum_readout(call: Call, count: str, total: str) -> Scalar:
    if call.function == "sum":
        value = Scalar(("CAST(", f" AS {call.output.type})"), (total,))
    elif call.output.type == "double":
        value = Scalar(("CAST(", " AS DOUBLE) / ", ""), (total, count))
    else:
        value = Scalar(
            ("CAST(", " / CAST(", f" AS DECIMAL(20,0)) AS {call.output.type})"), (total, count)
        )
    pieces = (
        "CASE WHEN ",
        " > 0 THEN " + value.pieces[0],
        *value.pieces[1:-1],
        value.pieces[-1] + " END",
    )
    return Scalar(pieces, (count, *value.columns))


def additive_sql(column: StateColumn, weight: str | None) -> str:
    """The aggregate expression of a count or sum over rows with a weight (None: weight 1)."""
    argument = column.argument.name if column.argument else ""
    match column.kind:
        case Kind.ROWS:
            return f"COALESCE(SUM({weight}), 0)" if weight else "COUNT(*)"
        case Kind.COUNT:
            if weight is None:
                return f"COUNT({argument})"
            return f"COALESCE(SUM(CASE WHEN {argument} IS NOT NULL THEN {weight} END), 0)"
        case _:
            total, type_ = f"SUM({_weighted(column, weight)})", column.column.type
            if not is_wide(column):
                return f"CAST(COALESCE({total}, 0) AS {type_})"
            # Without ANSI mode a sum that does not fit is NULL, and must not pass for nothing.
            if weight is None:
                none = f"CAST(0 AS {type_})"
                return (
                    f"CASE WHEN COUNT({argument}) > 0 THEN CAST({total} AS {type_}) ELSE {none} END"
                )
            # With weights it may fit in the end.
            lost = f"CASE WHEN COUNT({argument}) > 0 THEN RAISE_ERROR('{OVERFLOW}') ELSE 0 END"
            return f"CAST(COALESCE({total}, {lost}) AS {type_})"


def is_wide(column: StateColumn) -> bool:
    """Whether it is a sum of so many digits that it may not fit any decimal."""
    parts = decimal_parts(column.argument.type) if column.argument else None
    return parts is not None and parts[0] > _MAX_SUM_PRECISION


def _weighted(column: StateColumn, weight: str | None) -> str:
    assert column.argument is not None
    name, type_ = column.argument.name, column.argument.type
    if type_ == "bigint" and column.column.type.startswith("decimal"):
        name = f"CAST({name} AS DECIMAL(20,0))"
        type_ = "decimal(20,0)"
    elif type_ in _SMALL:
        name = f"CAST({name} AS BIGINT)"
    if weight is None:
        return name
    if not type_.startswith("decimal"):
        return f"{name} * {weight}"
    product = f"{name} * CAST({weight} AS DECIMAL(10,0))"
    if not is_wide(column):
        return product
    return f"COALESCE({product}, CASE WHEN {name} IS NOT NULL THEN RAISE_ERROR('{OVERFLOW}') END)"


def value_sql(column: StateColumn, present: str | None = None, weight: str | None = None) -> str:
    """The aggregate expression of a value; `present` says which rows count, `weight` how often."""
    assert column.call is not None
    if column.call.text is not None:
        return str(column.call.text)
    function, _, is_distinct = column.call.function.partition("_")
    names = [a.name for a in column.call.arguments]
    if weight is not None and not is_distinct and function in ("sum", "avg"):
        return _weighted_value(column.call, present, weight)
    if present is not None:
        names = [f"CASE WHEN {present} THEN {n} END" for n in names]
    return f"{function.upper()}({'DISTINCT ' if is_distinct else ''}{', '.join(names)})"


def _weighted_value(call: Call, present: str | None, weight: str) -> str:
    """SUM or AVG that is kept as a value, over consolidated rows with multiplicities."""
    argument = call.arguments[0]
    chosen = f"CASE WHEN {present} THEN {argument.name} END" if present else argument.name
    count = f"SUM(CASE WHEN {chosen} IS NOT NULL THEN {weight} END)"
    parts = decimal_parts(argument.type)
    if parts is None:
        number = f"CAST({chosen} AS DOUBLE)" if call.output.type == "double" else chosen
        total = f"SUM({number} * {weight})"
        return total if call.function == "sum" else f"{total} / {count}"
    precision, scale = parts
    total = f"SUM({chosen} * CAST({weight} AS DECIMAL(10,0)))"
    if call.function == "avg":
        total = (
            f"CAST({total} AS DECIMAL({precision + 10},{scale})) / CAST({count} AS DECIMAL(20,0))"
        )
    return f"CAST({total} AS {call.output.type})"
