"""Random LATERAL VIEWs behind a FROM clause: explode, posexplode, stack, with and without OUTER."""

from __future__ import annotations

from collections.abc import Sequence

from kit.generate.dice import pick
from kit.generate.scalars import BOOLEAN, DATE, INT, TEXT, Visible, predicate
from kit.generate.writer import Writer


def lateral_view(
    writer: Writer, source: str, columns: Sequence[Visible]
) -> tuple[str, list[Visible]]:
    """Sometimes one more view over columns in sight, and what it adds to them."""
    family = writer.pick(INT, TEXT, DATE, BOOLEAN)
    own = [c for c in columns if c.family == family]
    if not own or not writer.chance(12):
        return source, list(columns)
    cells = [pick(writer.dice, own).text for _ in range(writer.dice.number(1, 3))]
    alias, value = writer.fresh("v"), writer.fresh("x")
    outer = "OUTER " if writer.chance(40) else ""
    seen = [*columns, Visible(value, family, 2)]
    if family != INT and writer.chance(40):
        # The cells of a stack must have one type, which integers need not have.
        name = writer.fresh("x")
        text = ", ".join(f"'c{i}', {cell}" for i, cell in enumerate(cells))
        view = f"stack({len(cells)}, {text}) {alias} AS {name}, {value}"
        return f"{source} LATERAL VIEW {outer}{view}", [*seen, Visible(name, TEXT, 2)]
    array = f"array({', '.join(cells)})"
    if writer.chance(50):
        array = f"CASE WHEN {predicate(writer.dice, columns, 0)} THEN {array} END"
    if writer.chance(30):
        place = writer.fresh("x")
        view = f"posexplode({array}) {alias} AS {place}, {value}"
        return f"{source} LATERAL VIEW {outer}{view}", [*seen, Visible(place, INT, 2)]
    return f"{source} LATERAL VIEW {outer}explode({array}) {alias} AS {value}", seen
