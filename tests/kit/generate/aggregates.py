"""Random aggregate calls and grouped SELECTs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.generate.dice import pick
from kit.generate.scalars import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    INT,
    LITERALS,
    TEXT,
    Visible,
    column,
    predicate,
    scalar,
)
from kit.generate.writer import Output, Query, Writer

_FORMS = ("COUNT(*)", "COUNT", "SUM", "SUM", "MIN", "MAX", "AVG", "DISTINCT", "OTHER")


@dataclass(frozen=True)
class Value:
    """An expression, its family and scale."""

    text: str
    family: str
    scale: int = 2


def grouped(
    writer: Writer,
    source: str,
    columns: Sequence[Visible],
    keys: Sequence[Value],
    test: str = "",
    *,
    is_root: bool,
) -> Query:
    """SELECT ... GROUP BY, keys written as expression, position or alias, and not always shown.

    `test` is a condition for HAVING that asks a subquery.
    """
    outputs = [writer.output(k.family, k.scale) for k in keys]
    shown = [f"{k.text} AS {o.name}" for k, o in zip(keys, outputs, strict=True)]
    grouping = [
        _key(writer, k, o, n) for n, (k, o) in enumerate(zip(keys, outputs, strict=True), 1)
    ]
    if len(keys) > 1 and not is_literal(keys[1].text) and writer.chance(15):
        shown, outputs, grouping = shown[:1], outputs[:1], [grouping[0], keys[1].text]
    calls = [call(writer, columns, is_root=is_root) for _ in range(writer.dice.number(0, 3))]
    if keys[0].family == INT and writer.chance(15):
        calls.append(Value(f"({keys[0].text}) + 1", INT))
    aggregates = [writer.output(c.family, c.scale) for c in calls]
    shown += [f"{c.text} AS {o.name}" for c, o in zip(calls, aggregates, strict=True)]
    distinct = "DISTINCT " if writer.chance(5) else ""
    having = f" HAVING {test}" if test else _having(writer, calls, aggregates)
    by = _sets(writer, keys) or ", ".join(grouping)
    text = f"SELECT {distinct}{', '.join(shown)} {source} GROUP BY {by}{having}"
    return Query(text, (*outputs, *aggregates))


def ungrouped(writer: Writer, source: str, columns: Sequence[Visible], *, is_root: bool) -> Query:
    """Aggregates over everything: one row, also over no rows."""
    calls = [call(writer, columns, is_root=is_root) for _ in range(writer.dice.number(1, 3))]
    outputs = [writer.output(c.family, c.scale) for c in calls]
    shown = [f"{c.text} AS {o.name}" for c, o in zip(calls, outputs, strict=True)]
    having = _having(writer, calls, outputs) if writer.chance(30) else ""
    return Query(f"SELECT {', '.join(shown)} {source}{having}", tuple(outputs))


def _key(writer: Writer, key: Value, output: Output, place: int) -> str:
    if is_literal(key.text):
        return str(place)
    return writer.pick(key.text, str(place), output.name)


def _sets(writer: Writer, keys: Sequence[Value]) -> str | None:
    """Now and then grouping sets over the keys."""
    texts = [k.text for k in keys]
    if any(map(is_literal, texts)) or len(set(texts)) < len(texts) or not writer.chance(10):
        return None
    forms = ["ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())", "GROUPING SETS (({0}), ({0}))"]
    return writer.pick(*forms).format(", ".join(texts))


def _having(writer: Writer, calls: Sequence[Value], outputs: Sequence[Output]) -> str:
    if not writer.chance(30):
        return ""
    if calls and writer.chance(50):
        place = writer.dice.number(0, len(calls) - 1)
        text = calls[place].text if writer.chance(60) else outputs[place].name
        return f" HAVING {text} >= {LITERALS[calls[place].family][1]}"
    return f" HAVING COUNT(*) {writer.pick('> 1', '< 3', '= 2')}"


def call(writer: Writer, columns: Sequence[Visible], *, is_root: bool) -> Value:
    """An aggregate call, sometimes with FILTER."""
    made = _function(writer, columns, is_root=is_root)
    text = made.text
    if not text.startswith(("ROUND(", "ARRAY_JOIN(")) and writer.chance(20):
        text += f" FILTER (WHERE {predicate(writer.dice, columns, 0)})"
    if made.family == INT and writer.chance(15):
        text = writer.pick(f"COALESCE({text}, 0)", f"{text} - COUNT(*)", f"({text} + 1) * 2")
    return Value(text, made.family, made.scale)


def _function(writer: Writer, columns: Sequence[Visible], *, is_root: bool) -> Value:
    form = writer.pick(*_FORMS)
    chosen = pick(writer.dice, columns)
    match form:
        case "COUNT(*)":
            return Value(form, INT)
        case "COUNT":
            return Value(f"COUNT({chosen.text})", INT)
        case "MIN" | "MAX":
            return Value(f"{form}({chosen.text})", chosen.family, chosen.scale)
        case "OTHER":
            return _other(writer, columns, chosen)
        case "DISTINCT":
            return _distinct(writer, columns, chosen)
        case _:
            return _number(writer, form, columns, is_root=is_root)


def _other(writer: Writer, columns: Sequence[Visible], chosen: Visible) -> Value:
    """Functions that are brought to another one, or evaluated again for the touched groups."""
    number = column(writer.dice, columns, INT)
    text = column(writer.dice, columns, TEXT)
    by = pick(writer.dice, columns).text
    forms = [
        Value(f"COUNT_IF({predicate(writer.dice, columns, 0)})", INT),
        Value(f"BOOL_AND({predicate(writer.dice, columns, 0)})", BOOLEAN),
        Value(f"SOME({predicate(writer.dice, columns, 0)})", BOOLEAN),
        Value(f"MAX_BY({chosen.text}, {by})", chosen.family, chosen.scale),
        Value(f"MIN_BY({chosen.text}, {by})", chosen.family, chosen.scale),
    ]
    if number is not None:
        forms += [
            Value(f"MEDIAN({number.text})", DOUBLE),
            Value(f"BIT_XOR({number.text})", INT),
            # Rounded: at the top of a query its last digits are those of the rows' order.
            Value(f"ROUND(STDDEV({number.text}), 6)", DOUBLE),
            Value(f"MODE({number.text})", INT),
        ]
        forms += _moments(writer, columns, number)
    if text is not None:
        forms += [
            Value(f"LISTAGG({text.text}, ',')", TEXT),
            Value(f"LISTAGG(DISTINCT {text.text}, ',')", TEXT),
            Value(f"ARRAY_JOIN(COLLECT_LIST({text.text}), ',')", TEXT),
        ]
    return forms[writer.dice.number(0, len(forms) - 1)]


def _moments(writer: Writer, columns: Sequence[Visible], number: Visible) -> list[Value]:
    """By sums, so that nothing is rounded; CORR fails for equal values in Spark's ANSI mode."""
    other = column(writer.dice, columns, writer.pick(INT, DECIMAL)) or number
    x = f"CAST({number.text} AS INT)"
    y = f"CAST({other.text} AS {'INT' if other.family == INT else 'DECIMAL(12, 4)'})"
    single = writer.pick("STDDEV", "STDDEV_POP", "VAR_SAMP", "VAR_POP")
    pairs = writer.pick("COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")
    return [
        Value(f"{single}({writer.pick(x, y)})", DOUBLE),
        Value(f"{pairs}({writer.pick(f'{x}, {y}', f'{y}, {x}')})", DOUBLE),
    ]


def _distinct(writer: Writer, columns: Sequence[Visible], chosen: Visible) -> Value:
    number = column(writer.dice, columns, INT)
    if number is not None and writer.chance(30):
        return Value(f"{writer.pick('SUM', 'MIN')}(DISTINCT {number.text})", INT)
    if writer.chance(10):
        return Value(f"COUNT(DISTINCT {chosen.text}, {pick(writer.dice, columns).text})", INT)
    return Value(f"COUNT(DISTINCT {chosen.text})", INT)


def _number(writer: Writer, form: str, columns: Sequence[Visible], *, is_root: bool) -> Value:
    """SUM or AVG; of doubles too, which below another operator are added in the order of their values."""
    with_doubles = is_root or writer.chance(25)
    family = pick(writer.dice, (INT, DECIMAL, DOUBLE) if with_doubles else (INT, DECIMAL))
    chosen = column(writer.dice, columns, family)
    if chosen is None:
        return Value("COUNT(*)", INT)
    if form == "AVG":
        is_decimal = family == DECIMAL
        return Value(f"AVG({chosen.text})", DECIMAL if is_decimal else DOUBLE, chosen.scale + 4)
    if family == INT and writer.chance(30):
        return Value(f"SUM({scalar(writer.dice, columns, INT)})", INT)
    return Value(f"SUM({chosen.text})", family, chosen.scale)


def is_literal(text: str) -> bool:
    return any(text in choices for choices in LITERALS.values())
