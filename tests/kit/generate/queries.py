"""Random queries: SELECTs of every form, unions, CTEs, nested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kit.generate.aggregates import Value, grouped, ungrouped
from kit.generate.dice import pick
from kit.generate.from_clause import from_clause
from kit.generate.relations import recursion
from kit.generate.scalars import (
    DECIMAL,
    FAMILIES,
    INT,
    LITERALS,
    Visible,
    column,
    predicate,
    scalar,
)
from kit.generate.subqueries import count_test, lateral_join, subquery_test, subquery_value
from kit.generate.views import lateral_view
from kit.generate.windows import limited, named_window, row_place, window_value
from kit.generate.writer import Output, Query, Writer, bare

_SETS = (
    *("UNION ALL", "UNION ALL", "UNION"),
    *("EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"),
)
_FORMS = ("plain", "plain", "plain", "grouped", "grouped", "union", "global")


def whole_query(writer: Writer, depth: int) -> Query:
    """A query, with the common table expressions it uses."""
    if writer.chance(5) and (found := recursion(writer)) is not None:
        prefix, name, body = found
        writer.ctes.append((name, body))
        made = query(writer, depth, is_root=True)
        return replace(made, text=prefix + made.text)
    if depth > 0 and writer.chance(20):
        body = query(writer, depth - 1)
        name = writer.fresh("w")
        if writer.chance(20):
            outputs = writer.renamed(body.outputs)
            names = ", ".join(o.name for o in outputs)
            prefix = f"WITH {name} ({names}) AS ({body.text}) "
            body = replace(body, outputs=outputs)
        else:
            prefix = f"WITH {name} AS ({body.text}) "
        writer.ctes.append((name, body))
        made = query(writer, depth, is_root=True)
        return replace(made, text=prefix + made.text)
    return query(writer, depth, is_root=True)


def query(writer: Writer, depth: int, *, is_root: bool = False) -> Query:
    """One query block or a union of two; sometimes only its first rows."""
    writer.room -= 1
    made = _query(writer, depth if writer.room > 0 else 0, is_root=is_root)
    return limited(writer, made, is_root=is_root) if writer.chance(7) else made


def _query(writer: Writer, depth: int, *, is_root: bool) -> Query:
    form = pick(writer.dice, _FORMS)
    if form == "union" and 0 < depth < 3 and writer.room > 1:
        return _union(writer, depth)
    if form == "plain" and not is_root and writer.chance(3):
        output = writer.output(INT, 0)
        return Query(f"SELECT {writer.pick(*LITERALS[INT])} AS {output.name}", (output,))
    source, columns = lateral_view(writer, *from_clause(writer, depth, query))
    if columns and "LATERAL VIEW" not in source and writer.asks(8):
        text, more = lateral_join(writer, columns, depth, query)
        source, columns = source + text, [*columns, *more]
    if writer.chance(30):
        source += f" WHERE ({predicate(writer.dice, columns)})"
        if writer.asks(30):
            source += f" AND {subquery_test(writer, columns, depth, query)}"
    elif columns and writer.asks(20):
        source += f" WHERE {subquery_test(writer, columns, depth, query)}"
    if form == "grouped":
        keys = [_value(writer, columns) for _ in range(writer.dice.number(1, 2))]
        test = count_test(writer, depth, query) if writer.asks(6) else ""
        return grouped(writer, source, columns, keys, test, is_root=is_root)
    if form == "global":
        return ungrouped(writer, source, columns, is_root=is_root)
    return _plain(writer, source, columns, depth)


def _plain(writer: Writer, source: str, columns: Sequence[Visible], depth: int) -> Query:
    distinct = "DISTINCT " if writer.chance(20) else ""
    names = [bare(c.text).lower() for c in columns]
    if writer.chance(15) and len(set(names)) == len(names):
        outputs = tuple(Output(bare(c.text), c.family, c.scale) for c in columns)
        return Query(f"SELECT {distinct}* {source}", outputs)
    outputs, parts, sight = [], [], list(columns)
    windows = ""
    for _ in range(writer.dice.number(1, 4)):
        value = _value(writer, sight)
        if columns and writer.chance(8):
            value = window_value(writer, columns)
            if not windows and writer.chance(15):
                value, windows = named_window(writer, value)
        outputs.append(writer.output(value.family, value.scale))
        parts.append(f"{value.text} AS {outputs[-1].name}")
        if writer.chance(10) and value.text in names:
            # An alias may be used by the items after it.
            sight.append(Visible(outputs[-1].name, value.family, value.scale))
    source += windows
    if columns and writer.asks(8):
        found = subquery_value(writer, columns, depth, query)
        if found is not None:
            outputs.append(found[1])
            parts.append(f"{found[0]} AS {found[1].name}")
    if columns and writer.chance(5):
        source += f" QUALIFY {row_place(writer, columns)} <= {writer.dice.number(1, 3)}"
    return Query(f"SELECT {distinct}{', '.join(parts)} {source}", tuple(outputs))


def _value(writer: Writer, columns: Sequence[Visible]) -> Value:
    if writer.chance(30):
        family = pick(writer.dice, FAMILIES)
        return Value(scalar(writer.dice, columns, family), family, _widest(columns))
    chosen = pick(writer.dice, columns)
    text = chosen.text if "." in chosen.text else writer.spelled(chosen.text)
    return Value(text, chosen.family, chosen.scale)


def _union(writer: Writer, depth: int) -> Query:
    """Two queries, the second brought to the families of the first."""
    left, right = query(writer, depth - 1), query(writer, depth - 1)
    columns = [Visible(o.name, o.family, o.scale) for o in right.outputs]
    parts = [_matching(writer, o, columns) for o in left.outputs]
    scale = max([2, *(c.scale for c in columns if c.family == DECIMAL)])
    outputs = tuple(
        replace(o, scale=max(o.scale, scale)) if o.family == DECIMAL else o for o in left.outputs
    )
    for output in outputs:
        writer.note(output)
    word = writer.pick(*_SETS)
    second = f"SELECT {', '.join(parts)} FROM ({right.text}) AS {writer.fresh('u')}"
    return Query(f"{_enclosed(left.text)} {word} {second}", outputs)


def _enclosed(text: str) -> str:
    return f"({text})" if any(f" {word} " in text for word in _SETS) else text


def _matching(writer: Writer, output: Output, columns: Sequence[Visible]) -> str:
    found = column(writer.dice, columns, output.family)
    return found.text if found else writer.pick(*LITERALS[output.family])


def _widest(columns: Sequence[Visible]) -> int:
    return max([2, *(c.scale for c in columns if c.family == DECIMAL)])
