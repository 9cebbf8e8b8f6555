"""The stored columns of a root, collected one by one; equal ones are stored once."""

from __future__ import annotations

from dataclasses import dataclass, field

from runnel.algebra.scalar import Scalar, join, wrap
from runnel.model.columns import Column


@dataclass
class Storing:
    """`items` are the stored columns so far, as expressions over the root's node."""

    items: list[tuple[Column, Scalar]] = field(default_factory=list)

    def add(self, type_: str, scalar: Scalar) -> str:
        """Store an expression; the name of its column."""
        for known, value in self.items:
            if value == scalar and known.type == type_:
                return known.name
        self.items.append((Column(f"c{len(self.items)}", type_), scalar))
        return self.items[-1][0].name

    def add_shown(self, output: Column, scalar: Scalar, shown: Scalar | None) -> str:
        """Store what the user sees; computed where it is shown only: HAVING may guard it."""
        if shown is not None and scalar.bare_column is None:
            scalar = join(wrap("CASE WHEN ", shown, " THEN "), wrap("", scalar, " END"))
        return self.add(output.type, scalar)
