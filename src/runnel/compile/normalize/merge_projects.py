"""Projections of projections become one, and those that only rename vanish into it."""

from __future__ import annotations

from runnel.algebra.nodes import Node, Project
from runnel.compile.normalize.rebuild import bottom_up


def merge_projects(node: Node) -> Node:
    """Substitute a projection's expressions into the one above it.

    Only where no computed expression would be evaluated twice.
    """
    return bottom_up(node, _merge)


def _merge(node: Node) -> Node:
    match node:
        case Project(input=Project() as inner):
            values = {c.name: s for c, s in inner.items}
            uses = [name for _, scalar in node.items for name in scalar.columns]
            if all(values[n].bare_column or uses.count(n) == 1 for n in set(uses)):
                items = tuple((c, s.substitute(values)) for c, s in node.items)
                return Project(inner.input, items)
    return node
