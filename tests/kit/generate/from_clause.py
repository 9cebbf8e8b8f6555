"""Random FROM clauses: tables, subqueries, CTEs, and every way to join them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kit.generate.dice import pick
from kit.generate.relations import turned, values
from kit.generate.scalars import BOOLEAN, Visible, predicate
from kit.generate.writer import Item, Output, Query, Writer, family_of, in_sight

Sub = Callable[[Writer, int], Query]
# How many items, by how deep the query goes.
_COUNTS = ((1, 1, 2, 2, 3), (1, 1, 1, 2, 2), (1, 1, 1, 2), (1, 1, 1, 1, 1, 2))
_KINDS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN")


def from_clause(writer: Writer, depth: int, query: Sub) -> tuple[str, list[Visible]]:
    """The text from FROM on, and the columns in sight."""
    count = pick(writer.dice, _COUNTS[min(depth, 3)])
    items = [_item(writer, depth, query, is_first=not place) for place in range(count)]
    if count > 1 and writer.chance(6):
        items[-1] = values(writer)
    if count == 2 and writer.chance(15):
        shared = _shared_names(items)
        if shared:
            return _using(writer, items, shared)
    if count > 1 and writer.chance(8):
        return f"FROM {', '.join(item.text for item in items)}", in_sight(items)
    if count == 3 and writer.chance(15):
        inner = _join(writer, items[1:2], items[2])
        nested = Item(f"({items[1].text}{inner})", "", ())
        text = f"FROM {items[0].text} {writer.pick(*_KINDS[:-1])} {nested.text}"
        return f"{text} ON {_condition(writer, items[:1], items[1])}", in_sight(items)
    text = f"FROM {items[0].text}"
    for place in range(1, count):
        text += _join(writer, items[:place], items[place])
    if writer.chance(8):
        other, kind = _item(writer, 0, query), writer.pick("LEFT SEMI JOIN", "LEFT ANTI JOIN")
        text += f" {kind} {other.text} ON {_condition(writer, items, other)}"
    return text, in_sight(items)


def _item(writer: Writer, depth: int, query: Sub, *, is_first: bool = False) -> Item:
    # What is to be deep is so in one place, or few programs would be short enough to be checked.
    is_deep = depth > 1 and is_first
    if depth > 0 and writer.asks(85 if is_deep else 45 if depth == 1 else 15):
        inner = query(writer, depth - 1 if is_first else 0)
        return turned(writer, inner) or _subquery(writer, inner)
    if writer.ctes and writer.chance(40):
        name, body = pick(writer.dice, writer.ctes)
        alias = writer.fresh("c")
        return Item(f"{name} AS {alias}", alias, body.outputs)
    table = pick(writer.dice, writer.tables)
    alias = writer.fresh("t")
    outputs = tuple(writer.output(family_of(c.type), 2, c.name) for c in table.columns)
    return Item(f"{writer.spelled(table.name)} {alias}", alias, outputs)


def _subquery(writer: Writer, inner: Query) -> Item:
    alias = writer.fresh("q")
    if writer.chance(10):
        outputs = writer.renamed(inner.outputs)
        names = ", ".join(o.name for o in outputs)
        return Item(f"({inner.text}) AS {alias} ({names})", alias, outputs)
    return Item(f"({inner.text}) AS {alias}", alias, inner.outputs)


def _join(writer: Writer, before: Sequence[Item], item: Item) -> str:
    kind = writer.pick(*_KINDS)
    if kind == "CROSS JOIN":
        return f" {kind} {item.text}"
    return f" {kind} {item.text} ON {_condition(writer, before, item)}"


def _condition(writer: Writer, before: Sequence[Item], item: Item) -> str:
    left, right = in_sight(before, qualified=True), in_sight([item], qualified=True)
    pairs = [(a, b) for a in left for b in right if a.family == b.family]
    if not pairs or writer.chance(10):
        return predicate(writer.dice, [*left, *right])
    a, b = pick(writer.dice, pairs)
    ends = (a.text, b.text) if writer.chance(50) else (b.text, a.text)
    operator = writer.pick("=", "=", "=", "=", "<=>", "<") if a.family != BOOLEAN else "="
    text = f" {operator} ".join(ends)
    if writer.chance(15):
        text += f" AND {predicate(writer.dice, [*left, *right], 0)}"
    return text


def _shared_names(items: Sequence[Item]) -> list[str]:
    """Names that both items have once, if they stand first: elsewhere the dialects order * differently."""
    left, right = ([o.name for o in item.outputs] for item in items)
    shared = [n for n in left if n in right and left.count(n) == right.count(n) == 1]
    return shared if left[: len(shared)] == shared else []


def _using(writer: Writer, items: Sequence[Item], shared: list[str]) -> tuple[str, list[Visible]]:
    """USING or NATURAL: the shared columns come first and once, then the others."""
    kind = writer.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
    if writer.chance(40):
        text = f"FROM {items[0].text} NATURAL {kind} {items[1].text}"
    else:
        shared = shared[:1]
        text = f"FROM {items[0].text} {kind} {items[1].text} USING ({shared[0]})"
    merged = [_visible(o) for o in items[0].outputs if o.name in shared]
    rest = [Item(i.text, i.alias, _without(i.outputs, shared)) for i in items]
    return text, [*merged, *in_sight(rest)]


def _visible(output: Output) -> Visible:
    return Visible(output.name, output.family, output.scale)


def _without(outputs: Sequence[Output], names: Sequence[str]) -> tuple[Output, ...]:
    return tuple(o for o in outputs if o.name not in names)
