"""A round of a step that reads its own rows more than once: what R's last change changes in it.

    gone:  R = R_old  - all,  changed by -last        come:  R = R_kept + all,  changed by +last

The laws of the step's operators give that exactly, so the derivations of all rounds add up to
step(R) at the end less step(R) at the start, as they do for a step that reads its rows once.
"""

from __future__ import annotations

from collections.abc import Mapping

from runnel.algebra.nodes import Fixpoint, Node, Recursive
from runnel.compile.differentiate.emitter import Emitter, Reading, listed, names_of
from runnel.compile.differentiate.worlds import Input, own_rows, reading_of
from runnel.compile.program import TOKEN, Step, W

_PREFIX = "round_"


def followed(
    emitter: Emitter,
    node: Fixpoint,
    rows: str,
    last: str,
    inputs: Mapping[Node, Input],
    world: str,
) -> str:
    """The step's change when R becomes `rows` by the change `last`: its columns and weights."""

    def new_law(inner: Emitter, part: Node) -> Reading:
        if isinstance(part, Recursive):
            return own_rows(node, part, rows)
        if part in inputs:
            return reading_of(emitter, part, inputs[part], world)
        return emitter.new_law(inner, part)

    def change_law(inner: Emitter, part: Node) -> str | None:
        if isinstance(part, Recursive):
            sql = own_rows(node, part, last).sql
            return inner.add("own", "rows of the last round", sql, part.columns)
        return None if part in inputs else emitter.change_law(inner, part)

    inner = Emitter(
        emitter.kinds, frozenset(), frozenset(), new_law, change_law, prefix=_PREFIX
    )  # fmt: skip
    change = inner.change(node.step)
    assert change is not None
    return _in_place(inner.steps, change)


def signed(node: Fixpoint, rows: str, sign: str) -> str:
    return f"SELECT {listed(names_of(node.columns), f'{sign}{W} AS {W}')} FROM ({rows})"


def _in_place(steps: Mapping[str, Step], name: str) -> str:
    """A step's text with the other steps of the round put into it."""

    def text(token: str) -> str:
        kind, _, rest = token.partition(":")
        if kind == "hint" and rest.split(":")[1] in steps:
            return ""
        if kind == "step" and rest in steps:
            return f"({_in_place(steps, rest)})"
        return f"⟦{token}⟧"

    step = steps[name]
    return TOKEN.sub(lambda match: text(match[1]), step.of_small or step.sql)
