"""The last pass: refuses a program that slipped through with something unpinned or ill-typed."""

from __future__ import annotations

from runnel.compile.program import Program
from runnel.errors import InternalFault
from runnel.model.columns import Layout


def guard(program: Program, layout: Layout, changed: frozenset[str]) -> None:
    """Every read is a pinned reading or an earlier step; the output has the stored columns."""
    known: set[str] = set()
    for step in program.steps:
        for token in step.reads:
            kind, _, name = token.partition(":")
            if kind == "step" and name not in known:
                raise InternalFault(f"step {step.name} reads {name}, which comes later or never")
            if kind == "change" and name not in changed:
                raise InternalFault(f"step {step.name} reads the change of {name}, which has none")
            if kind in ("last", "all") and step.again is not None:
                continue
            if kind == "near" and step.near is not None and step.near.source == name:
                continue
            if kind not in ("step", "change", "new", "state"):
                raise InternalFault(f"step {step.name} reads {token}, which is not pinned")
        if step.only_if is not None and step.only_if not in known:
            raise InternalFault(f"step {step.name} waits for {step.only_if}, which is not earlier")
        known.add(step.name)
    if program.steps and program.output.columns != layout.stored:
        raise InternalFault(
            "the change does not fit the table",
            detail=f"change {program.output.columns}, table {layout.stored}",
        )
