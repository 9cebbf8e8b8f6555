"""Which inputs of a join chain are joined first: the changed ones, where equalities tie them.

Every walk must go along a tie that is the only way from one input to the other, so going it first
makes no more rows. In a ring of ties one may hold for many pairs, and only the others for few.
"""

from __future__ import annotations

import re

from runnel.algebra.nodes import InnerJoin
from runnel.algebra.scalar import Scalar

_EQUAL = re.compile(r"(?<![<>!])=|<=>")

_Pair = frozenset[int]


def core(node: InnerJoin, changed: list[int]) -> list[int]:
    """The inputs that every term joins; those left out are joined to the sum of the terms."""
    pairs = _pairs(node)
    bridges = [p for p in pairs if not _is_reached(p, [other for other in pairs if other != p])]
    inside = [p for p in bridges if p <= set(changed)]
    if _reached(changed[0], inside) >= set(changed):
        return changed
    return list(range(len(node.inputs)))


def _pairs(node: InnerJoin) -> list[_Pair]:
    """The pairs of inputs that an equality ties."""
    owner = {c.name: i for i, child in enumerate(node.inputs) for c in child.columns}
    found = [
        frozenset(owner[name] for name in conjunct.columns)
        for conjunct in node.conjuncts
        if _is_equality(conjunct)
    ]
    return [pair for pair in dict.fromkeys(found) if len(pair) == 2]


def _is_equality(conjunct: Scalar) -> bool:
    text = conjunct.render()
    return bool(_EQUAL.search(text)) and " OR " not in text


def _is_reached(pair: _Pair, pairs: list[_Pair]) -> bool:
    start, end = pair
    return end in _reached(start, pairs)


def _reached(start: int, pairs: list[_Pair]) -> set[int]:
    """All inputs to which ties lead from one."""
    found, size = {start}, 0
    while len(found) > size:
        size = len(found)
        found = found.union(*(pair for pair in pairs if pair & found))
    return found
