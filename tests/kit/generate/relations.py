"""Random relations for FROM that are no plain queries: VALUES, PIVOT, UNPIVOT, recursion."""

from __future__ import annotations

from kit.generate.dice import pick
from kit.generate.scalars import DATE, DECIMAL, INT, LITERALS, TEXT
from kit.generate.writer import Item, Output, Query, Writer


def values(writer: Writer) -> Item:
    """Rows of one number."""
    alias, output = writer.fresh("v"), writer.output(INT, 0)
    rows = ", ".join(f"({writer.pick(*LITERALS[INT])})" for _ in range(writer.dice.number(1, 3)))
    return Item(f"(VALUES (1), {rows}) AS {alias} ({output.name})", alias, (output,))


def turned(writer: Writer, inner: Query) -> Item | None:
    """Now and then a query with rows made columns, or columns made rows."""
    names = [o.name.lower() for o in inner.outputs]
    if len(set(names)) < len(names) or not writer.chance(12):
        return None
    return _pivot(writer, inner) if writer.chance(50) else _unpivot(writer, inner)


def _pivot(writer: Writer, inner: Query) -> Item | None:
    """Values of a key become columns; what is neither key nor value is grouped by."""
    keys = [o for o in inner.outputs if o.family in (TEXT, INT)]
    added = [o for o in inner.outputs if o.family in (INT, DECIMAL, DATE)]
    pairs = [(k, v) for k in keys for v in added if k != v]
    if not pairs or len(inner.outputs) < 3:
        return None
    key, value = pick(writer.dice, pairs)
    function = writer.pick("MIN", "MAX") if value.family == DATE else writer.pick("SUM", "MAX")
    made = tuple(writer.output(value.family, value.scale) for _ in range(2))
    listed = zip(LITERALS[key.family], made, strict=False)
    cells = ", ".join(f"{literal} AS {output.name}" for literal, output in listed)
    pivot = f"PIVOT ({function}({value.name}) FOR {key.name} IN ({cells}))"
    rest = tuple(o for o in inner.outputs if o not in (key, value))
    return _item(writer, inner, pivot, (*rest, *made))


def _unpivot(writer: Writer, inner: Query) -> Item | None:
    """Columns of one family become rows."""
    family = writer.pick(TEXT, INT, DATE)
    own = [o for o in inner.outputs if o.family == family][:3]
    if len(own) < 2:
        return None
    name, value = writer.output(TEXT, 0), writer.output(family, 0)
    nulls = writer.pick("", "", "INCLUDE NULLS ")
    listed = ", ".join(o.name for o in own)
    unpivot = f"UNPIVOT {nulls}({value.name} FOR {name.name} IN ({listed}))"
    return _item(writer, inner, unpivot, (*(o for o in inner.outputs if o not in own), name, value))


def _item(writer: Writer, inner: Query, turn: str, outputs: tuple[Output, ...]) -> Item:
    alias = writer.fresh("q")
    body = f"SELECT * FROM ({inner.text}) AS {writer.fresh('q')} {turn}"
    return Item(f"({body}) AS {alias}", alias, outputs)


def recursion(writer: Writer) -> tuple[str, str, Query] | None:
    """WITH RECURSIVE, the name that it gives and its rows: ways of a few steps, or what is reached."""
    fitting = [t for t in writer.tables if any(c.type == "int" for c in t.columns)]
    if not fitting:
        return None
    start, edge = pick(writer.dice, fitting), pick(writer.dice, fitting)
    first = pick(writer.dice, [c.name for c in start.columns if c.type == "int"])
    ends = [c.name for c in edge.columns if c.type == "int"]
    source, target = pick(writer.dice, ends), pick(writer.dice, ends)
    name, node = writer.fresh("w"), writer.output(INT, 0)
    tie = f"JOIN {edge.name} AS b ON b.{source} {writer.pick('=', '=', '<=>')} r.{node.name}"
    found = f"b.{target}" if writer.chance(60) else f"b.{target} + 1"
    if writer.for_spark or writer.chance(50):
        level = writer.output(INT, 0)
        body = (
            f"SELECT a.{first}, 0 FROM {start.name} AS a UNION ALL "
            f"SELECT {found}, r.{level.name} + 1 FROM {name} AS r {tie} WHERE r.{level.name} < 2"
        )
        made = Query(body, (node, level))
    else:
        body = (
            f"SELECT a.{first} FROM {start.name} AS a UNION "
            f"SELECT b.{target} FROM {name} AS r {tie}"
        )
        made = Query(body, (node,))
    columns = ", ".join(o.name for o in made.outputs)
    return f"WITH RECURSIVE {name} ({columns}) AS ({body}) ", name, made
