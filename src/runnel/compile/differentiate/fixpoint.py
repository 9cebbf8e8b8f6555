"""R = base + step(R), kept in two walks; `both` is what the inputs have in common before and after.

    gone = walk from  base's rows that go   + (step_old - step_both)(R_old)   along step_both
    come = walk from  base's rows that come + (step_new - step_both)(R_kept)  along step_new

with R_kept = R_old - gone, and change = come - gone. Each walk only adds up, so nothing cancels on
the way: rows that only support each other go. The first ends because R_old is finite, the second
because R_new is. As sets a row goes with any of its derivations; it comes back at once if a count
of all its derivations says that others are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runnel.algebra.nodes import Fixpoint, Node, Recursive
from runnel.compile.differentiate.adding_up import needs_rows
from runnel.compile.differentiate.emitter import Emitter, Reading, consolidated, listed, names_of
from runnel.compile.differentiate.rounds import contents, nothing, renamed, same, walked
from runnel.compile.differentiate.worlds import (
    Input,
    before,
    can_walk,
    inputs_of,
    over,
    split,
)
from runnel.compile.program import STATE, Keep, W, hint, step_of
from runnel.errors import InternalFault


@dataclass(frozen=True, slots=True)
class Before:
    """The old rows with their weights, and with the number of their derivations; not netted."""

    rows: str
    counts: str


@dataclass(frozen=True, slots=True)
class Walks:
    """The steps of what goes and of what comes."""

    gone: str | None
    come: str | None


@dataclass(frozen=True, slots=True)
class Parts:
    """What changed of the base, and of each input of the step."""

    base: Input
    inputs: Mapping[Node, Input]

    @staticmethod
    def of(emitter: Emitter, node: Fixpoint) -> Parts:
        inputs = inputs_of(node.step, node.name)
        return Parts(split(emitter, node.base), {part: split(emitter, part) for part in inputs})

    @property
    def is_changed(self) -> bool:
        return self.base.is_changed or any(i.is_changed for i in self.inputs.values())


def new_fixpoint(emitter: Emitter, node: Fixpoint) -> Reading:
    """new(R): evaluated from empty, or old(R) and its change where that is known."""
    change = emitter.change(node)
    if change is None or (node, "all") in emitter.walks:
        return Reading(contents(node, evaluated(emitter, node)), node.is_distinct)
    names = listed(names_of(node.columns), W)
    old = contents(node, emitter.walks[node, "old"])
    return Reading(f"{old}\nUNION ALL\nSELECT {names} FROM {step_of(change)}", is_unit=False)


def change_fixpoint(emitter: Emitter, node: Fixpoint) -> str | None:
    """Inside a tree old(R) is evaluated from empty, then both walks start from it."""
    parts = Parts.of(emitter, node)
    if not parts.is_changed:
        return None
    old = emitter.walks[node, "old"] = evaluated(before(emitter), node)
    if can_walk(node, parts.inputs):
        counts = f"SELECT {listed(names_of(node.columns), W)} FROM {step_of(old)}"
        walks = walk_both(emitter, node, parts, Before(contents(node, old), counts))
        come = contents(node, walks.come) if walks.come else None
        gone = contents(node, walks.gone) if walks.gone else None
    else:
        come, gone = contents(node, evaluated(emitter, node)), contents(node, old)
    sql = difference(node, come, gone)
    purpose = "change of the recursive rows"
    return emitter.add("recursion", purpose, sql, node.columns, keep=Keep.ALWAYS)


def evaluated(emitter: Emitter, node: Fixpoint) -> str:
    """The step that evaluates R from empty."""
    key = (node, "all")
    if key not in emitter.walks:
        seed = renamed(node, node.base.columns, emitter.new(node.base).sql)
        inputs = {part: Input() for part in inputs_of(node.step, node.name)}
        if not needs_rows(node.step, node.name):
            first = over(emitter, node, nothing(node), inputs, "new").new(node.step)
            seed += f"\nUNION ALL\n{renamed(node, node.step.columns, first.sql)}"
        purpose = f"{node.name}, evaluated from empty"
        emitter.walks[key] = walked(emitter, node, ("fixpoint", purpose), seed, inputs, "new")
    return emitter.walks[key]


def walk_both(emitter: Emitter, node: Fixpoint, parts: Parts, old: Before) -> Walks:
    """The steps of both walks."""
    gone = _gone(emitter, node, parts, old)
    kept = old.rows
    if gone is not None:
        kept = difference_text(node, old.rows, contents(node, gone))
    names = names_of(node.columns)
    seeds = _seeds(emitter, node, parts, kept, "new")
    sql = consolidated("\nUNION ALL\n".join(seeds), names, "> 0") if seeds else ""
    if gone is not None and node.is_distinct:
        again = _rederived(emitter, node, old, gone)
        sql = consolidated(f"{sql}\nUNION ALL\n{again}" if sql else again, names, "IS NOT NULL")
    if not sql:
        return Walks(gone, None)
    purpose = "where what comes starts"
    seed = emitter.add("fresh", purpose, sql, node.columns, keep=Keep.ALWAYS)
    label = ("come", "what comes, and what follows from it")
    rows = f"SELECT {listed(names, W)} FROM {step_of(seed)}"
    # Rows that are not stored are evaluated before a walk, and met the bound then.
    besides = f"SELECT COALESCE(SUM({W}), 0) FROM ({kept})" if STATE in kept else None
    come = walked(
        emitter, node, label, rows, parts.inputs, "new", stop=kept, seed=seed, around=kept,
        besides=besides,
    )  # fmt: skip
    return Walks(gone, come)


def difference(node: Fixpoint, come: str | None, gone: str | None) -> str:
    """The rows that come minus those that go, netted."""
    return consolidated(difference_text(node, come, gone), names_of(node.columns))


def difference_text(node: Fixpoint, come: str | None, gone: str | None) -> str:
    names = names_of(node.columns)
    signed = listed(names, f"-{W} AS {W}")
    parts = [come] if come is not None else []
    parts += [f"SELECT {signed} FROM ({gone})"] if gone is not None else []
    return "\nUNION ALL\n".join(parts)


def outside(node: Recursive) -> InternalFault:
    return InternalFault(f"the rows of {node.name} are read outside its own step")


def _gone(emitter: Emitter, node: Fixpoint, parts: Parts, old: Before) -> str | None:
    losing = [i.gone for i in (parts.base, *parts.inputs.values()) if i.gone is not None]
    if not losing:
        return None
    any_gone = emitter.add(
        "lost", "whether any input lost rows",
        " UNION ALL ".join(f"SELECT {W} FROM {step_of(name)}" for name in losing), (),
        keep=Keep.ALWAYS,
    )  # fmt: skip
    seeds = _seeds(emitter, node, parts, old.rows, "both")
    names = names_of(node.columns)
    seed = f"SELECT {listed(names, f'-{W} AS {W}')} FROM ({' UNION ALL '.join(seeds)})"
    label = ("gone", "what goes, and what followed from it")
    return walked(
        emitter, node, label, seed, parts.inputs, "both", only_if=any_gone, around=old.rows
    )


def _seeds(emitter: Emitter, node: Fixpoint, parts: Parts, rows: str, world: str) -> list[str]:
    """What changed at once: of the base, and of the step over given rows."""
    base = parts.base.gone if world == "both" else parts.base.come
    step = over(emitter, node, rows, parts.inputs, world).change(node.step)
    seeds = []
    for change, part in ((base, node.base), (step, node.step)):
        if change is not None:
            columns = listed(names_of(part.columns), W)
            source = f"SELECT {columns} FROM {step_of(change)}"
            seeds.append(renamed(node, part.columns, source))
    return seeds


def _rederived(emitter: Emitter, node: Fixpoint, old: Before, gone: str) -> str:
    """Rows that went, but have more derivations than went with them."""
    names = names_of(node.columns)
    left = (
        f"SELECT {hint('g', gone)} {listed((f's.{n}' for n in names), f's.{W}')} "
        f"FROM ({old.counts}) s LEFT SEMI JOIN {step_of(gone)} g ON {same(names, 's', 'g')}\n"
        f"UNION ALL\nSELECT {listed(names, f'-{W} AS {W}')} FROM {step_of(gone)}"
    )
    step = emitter.add(
        "rederived", "rows with other derivations", consolidated(left, names, "> 0"),
        node.columns, only_if=gone,
    )  # fmt: skip
    return f"SELECT {listed(names, f'CAST(0 AS BIGINT) AS {W}')} FROM {step_of(step)}"
