"""PostgreSQL's types, as far as Spark can hold their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from runnel.compile.postgres.values import refused

MAX_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Type:
    """A type; `exact` numerics have the scale that PostgreSQL would write them with."""

    kind: str
    precision: int = 0
    scale: int = 0
    element: Type | None = None
    exact: bool = True

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGERS

    @property
    def is_number(self) -> bool:
        return self.kind in NUMBERS

    @property
    def is_float(self) -> bool:
        return self.kind in ("float4", "float8")

    @property
    def is_moment(self) -> bool:
        return self.kind in MOMENTS

    @property
    def digits(self) -> tuple[int, int]:
        """Precision and scale of an exact number."""
        return INTEGERS.get(self.kind) or (self.precision, self.scale)

    @property
    def spark(self) -> str:
        if self.kind == "numeric":
            return f"DECIMAL({self.precision}, {self.scale})"
        if self.kind == "array":
            assert self.element is not None
            return f"ARRAY<{self.element.spark}>"
        if self.kind not in _SPARK:
            raise refused(f"the type {self.kind} here")
        return _SPARK[self.kind]

    def __str__(self) -> str:
        if self.kind == "array":
            return f"{self.element}[]"
        return _NAMES.get(self.kind, self.kind)


INTEGERS = {"int2": (5, 0), "int4": (10, 0), "int8": (20, 0)}
NUMBERS = (*INTEGERS, "numeric", "float4", "float8")
MOMENTS = ("date", "timestamp", "timestamptz")
_SPARK = {
    "int2": "SMALLINT", "int4": "INT", "int8": "BIGINT", "float4": "FLOAT", "float8": "DOUBLE",
    "text": "STRING", "unknown": "STRING", "bool": "BOOLEAN", "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP", "json": "STRING",
}  # fmt: skip
_NAMES = {
    "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real",
    "float8": "double precision", "bool": "boolean", "timestamptz": "timestamp with time zone",
}  # fmt: skip

INT2, INT4, INT8 = Type("int2"), Type("int4"), Type("int8")
FLOAT4, FLOAT8 = Type("float4"), Type("float8")
TEXT, BOOL, DATE = Type("text"), Type("bool"), Type("date")
TIMESTAMP, TIMESTAMPTZ = Type("timestamp"), Type("timestamptz")
INTERVAL, JSON, UNKNOWN = Type("interval"), Type("json"), Type("unknown")

_FROM_SPARK = {
    "tinyint": INT2, "smallint": INT2, "int": INT4, "bigint": INT8, "float": FLOAT4,
    "double": FLOAT8, "string": TEXT, "boolean": BOOL, "date": DATE, "timestamp": TIMESTAMPTZ,
    "timestamp_ntz": TIMESTAMP,
}  # fmt: skip
_FROM_NAME = {
    exp.DType.SMALLINT: INT2, exp.DType.INT: INT4, exp.DType.BIGINT: INT8,
    exp.DType.FLOAT: FLOAT4, exp.DType.DOUBLE: FLOAT8, exp.DType.TEXT: TEXT,
    exp.DType.VARCHAR: TEXT, exp.DType.BOOLEAN: BOOL, exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP, exp.DType.TIMESTAMPTZ: TIMESTAMPTZ,
    exp.DType.INTERVAL: INTERVAL, exp.DType.JSON: JSON, exp.DType.JSONB: JSON,
}  # fmt: skip


def numeric(precision: int, scale: int, exact: bool = True) -> Type:
    """A numeric of at most 38 digits; the whole digits give way, never the scale."""
    return Type("numeric", min(max(precision, scale, 1), MAX_DIGITS), scale, exact=exact)


def array_of(element: Type) -> Type:
    return Type("array", element=element)


def from_spark(type_: str) -> Type:
    """What a source column's type means in PostgreSQL; others can only be passed on."""
    text = type_.lower().replace(" ", "")
    if text in _FROM_SPARK:
        return _FROM_SPARK[text]
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", text):
        return numeric(int(match[1]), int(match[2]))
    if match := re.fullmatch(r"array<(.*)>", text):
        return array_of(from_spark(match[1]))
    if text.startswith("varchar("):
        return TEXT
    return Type(text)


def from_syntax(node: exp.Expr) -> Type:
    """The type that a cast names."""
    if isinstance(node, exp.DataType):
        if node.this == exp.DType.DECIMAL:
            return _numeric_of(node)
        if node.this == exp.DType.ARRAY and len(node.expressions) == 1:
            return array_of(from_syntax(node.expressions[0]))
        if node.this in _FROM_NAME:
            return _FROM_NAME[node.this]
    raise refused(
        f"a cast to {node.sql('postgres').lower()}",
        hint="numbers, text, boolean, date, timestamp and arrays of them can be cast to",
    )


def _numeric_of(node: exp.DataType) -> Type:
    parameters = [int(p.this.name) for p in node.expressions]
    if not parameters:
        return Type("numeric")
    precision, scale = (*parameters, 0)[:2]
    if not 0 <= scale <= precision <= MAX_DIGITS:
        raise refused(
            f"{node.sql('postgres').lower()}", detail="Spark holds decimals of up to 38 digits"
        )
    return numeric(precision, scale)


def common(types: Sequence[Type], where: str) -> Type:
    """The type PostgreSQL brings the branches of CASE, COALESCE, UNION ... to."""
    known = [t for t in types if t.kind != "unknown"]
    if not known:
        return TEXT if types else UNKNOWN
    kinds = {t.kind for t in known}
    if kinds <= set(NUMBERS):
        return _common_number(known)
    if len(kinds) == 1:
        if known[0].element is not None:
            return array_of(common([t.element for t in known if t.element], where))
        return known[0]
    if kinds <= set(MOMENTS):
        return Type(max(kinds, key=MOMENTS.index))
    raise refused(
        f"{where} of {' and '.join(sorted({str(t) for t in known}))}",
        hint="cast them to one type",
    )


def _common_number(types: Sequence[Type]) -> Type:
    widest = max(types, key=lambda t: NUMBERS.index(t.kind))
    if widest.kind != "numeric":
        return widest
    digits = [t.digits for t in types]
    scale = max(s for _, s in digits)
    exact = all(t.exact for t in types) and len({s for _, s in digits}) == 1
    return numeric(max(p - s for p, s in digits) + scale, scale, exact)


def operand(left: Type, right: Type) -> Type:
    """The type that two numbers of an operator are brought to."""
    if left.is_float or right.is_float:
        return FLOAT4 if left.kind == right.kind == "float4" else FLOAT8
    return _common_number([left, right])


def inexact(type_: Type) -> Type:
    return replace(type_, exact=False)
