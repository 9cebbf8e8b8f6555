"""A node together with the names its columns are called by."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from runnel.algebra.nodes import Node
from runnel.compile.scope import Entry, Scope
from runnel.errors import InvalidQuery
from runnel.model.columns import Column


@dataclass(frozen=True, slots=True)
class Relation:
    """The output of a query: each column with its name, or None where it has no usable one.

    `origins` are the columns of FROM that outputs pass on under their own names.
    """

    node: Node
    outputs: tuple[tuple[str | None, Column], ...]
    origins: tuple[Entry | None, ...] = ()

    def scope(self, alias: str | None, names: tuple[str, ...] = ()) -> Scope:
        if names and len(names) != len(self.outputs):
            raise InvalidQuery(
                f"{len(names)} column aliases for {len(self.outputs)} columns of {alias}"
            )
        called: tuple[str | None, ...] = names or tuple(name for name, _ in self.outputs)
        return Scope(
            tuple(
                Entry(alias, name, column)
                for name, (_, column) in zip(called, self.outputs, strict=True)
            )
        )

    def with_tables(self) -> Scope:
        """The outputs as a pipe passes them on: those of a table still go by its name too."""
        origins = self.origins or (None,) * len(self.outputs)
        return Scope(
            tuple(
                Entry(origin.qualifier, name, column, origin.schema)
                if origin is not None
                else Entry(None, name, column)
                for (name, column), origin in zip(self.outputs, origins, strict=True)
            )
        )


def column_aliases(node: exp.Expr) -> tuple[str, ...]:
    """The names that an alias gives to the columns."""
    alias = node.args.get("alias")
    return tuple(c.name for c in alias.args.get("columns") or ()) if alias is not None else ()
