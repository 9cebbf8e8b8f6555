"""Wrong laws, each a mistake that a system like this one has made: tests must find them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runnel.algebra.scalar import Scalar, join, wrap
from runnel.compile import moments, pipeline, subqueries
from runnel.compile.differentiate import (
    aggregate,
    by_keys,
    dual_weights,
    inner_join,
    laws,
    linear,
    root_aggregate,
    root_top_k,
    semi_join,
    window,
)
from runnel.compile.differentiate.emitter import Emitter
from runnel.compile.differentiate.state import Kind
from runnel.compile.near import Near
from runnel.compile.program import W

Plant = Callable[[pytest.MonkeyPatch], None]


def operator_by_operator(patch: pytest.MonkeyPatch) -> None:
    """No fault: every operator follows its own law, also where a law for several would serve."""
    patch.setattr(laws, "change_by_keys", lambda *_: None)
    patch.setattr(inner_join, "change_by_dual_weights", lambda *_: None)


def laws_for_several(patch: pytest.MonkeyPatch) -> list[str]:
    """No fault: a list to which each use of a law for several operators is added."""
    used: list[str] = []
    for module, name in ((laws, "change_by_keys"), (inner_join, "change_by_dual_weights")):
        patch.setattr(module, name, _noted(getattr(module, name), name, used))
    return used


def _noted(law: Callable[..., Any], name: str, used: list[str]) -> Callable[..., Any]:
    def noted(*args: Any) -> Any:
        made = law(*args)
        if made is not None:
            used.append(name)
        return made

    return noted


def changed_rows_are_only_new(patch: pytest.MonkeyPatch) -> None:
    """(0, w) for every changed row."""
    real = dual_weights._counted

    def counted(node: Any, rows: str, where: str, old: str, new: str) -> str:
        if old.startswith("-") and where != "TRUE":
            old, new = new, old[1:]
        return real(node, rows, where, old, new)

    patch.setattr(dual_weights, "_counted", counted)


def only_changed_rows_touch_keys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(by_keys._ByKeys, "_reached", lambda *_: None)


def squares_are_doubles(patch: pytest.MonkeyPatch) -> None:
    real = moments._given
    patch.setattr(moments, "_given", lambda *args: real(*args).replace("DECIMAL(38, 0)", "DOUBLE"))
    patch.setattr(moments, "_formula", moments._formula.__wrapped__)


def half_a_pair_counts(patch: pytest.MonkeyPatch) -> None:
    """A number is added up also where the other one of its pair is NULL."""
    real = moments._adds

    def adds(name: str, numbers: Any) -> tuple[str, str]:
        return real(name, {letter: numbers[letter] for letter in name.replace("n", "x")})

    patch.setattr(moments, "_adds", adds)
    patch.setattr(moments, "_added", moments._added.__wrapped__)


def null_keys_are_lost(patch: pytest.MonkeyPatch) -> None:
    real = by_keys._ByKeys._keyed
    changed = lambda self, *args: real(_with_ends_null(self), *args)  # noqa: E731
    patch.setattr(by_keys._ByKeys, "_keyed", changed)


def _with_ends_null(found: Any) -> Any:
    return replace(found, partition=replace(found.partition, ends_null=True))


def a_tie_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Of several ways from a change to a row."""
    _change_near(patch, lambda near: replace(near, ties=near.ties[: max(1, len(near.ties) - 1)]))


def ties_lead_to_changed_rows_only(patch: pytest.MonkeyPatch) -> None:
    first = lambda tie: replace(tie, level=1)  # noqa: E731
    _change_near(patch, lambda near: replace(near, ties=tuple(map(first, near.ties))))


def near_keys_are_never_null(patch: pytest.MonkeyPatch) -> None:
    equal = lambda tie: replace(tie, signs=("=",) * len(tie.signs))  # noqa: E731
    _change_near(patch, lambda near: replace(near, ties=tuple(map(equal, near.ties))))


def _change_near(patch: pytest.MonkeyPatch, change: Callable[[Near], Near]) -> None:
    real = Emitter.add

    def changed(self: Emitter, *args: Any, near: Near | None = None, **options: Any) -> str:
        return real(self, *args, near=near and change(near), **options)

    patch.setattr(Emitter, "add", changed)


def new_for_old(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Emitter, "old", Emitter.new)


def pairs_of_changes_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """dL x R1 + L1 x dR."""
    _read_others_of_a_join(patch, is_new=True)


def pairs_of_changes_not_counted(patch: pytest.MonkeyPatch) -> None:
    """dL x R0 + L0 x dR."""
    _read_others_of_a_join(patch, is_new=False)


def partners_never_change(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(semi_join, "_partners_before", lambda *args: args[1])


def padding_never_flips(patch: pytest.MonkeyPatch) -> None:
    _add_condition(patch, semi_join, "_touched", "AND FALSE")


def not_in_is_not_exists(patch: pytest.MonkeyPatch) -> None:
    def if_true(conditions: tuple[Scalar, ...]) -> Scalar:
        both = conditions[0]
        for other in conditions[1:]:
            both = join(wrap("", both, " AND "), other)
        return wrap("COALESCE(", both, ", FALSE)")

    patch.setattr(subqueries, "_unless_false", if_true)


def traces_read_as_consolidated(patch: pytest.MonkeyPatch) -> None:
    real = linear.new_scan
    patch.setattr(linear, "new_scan", lambda *args: replace(real(*args), is_unit=True))


def copies_are_one_row(patch: pytest.MonkeyPatch) -> None:
    real = linear.netted
    once = f"CAST(SIGN(SUM({W})) AS BIGINT) AS {W}"
    patch.setattr(linear, "netted", lambda *args: real(*args).replace(f"SUM({W}) AS {W}", once, 1))


def every_deleted_copy_is_the_last(patch: pytest.MonkeyPatch) -> None:
    real = root_aggregate.signed_rows

    def all_go(node: Any, state: Any, *args: Any) -> str:
        after = f"f_{state.rows}"
        fewer = f"CASE WHEN {after} < b_{state.rows} THEN 0 ELSE {after} END"
        return real(node, state, *args).replace(f"ELSE {after} END >", f"ELSE {fewer} END >")

    patch.setattr(root_aggregate, "signed_rows", all_go)


def extremes_never_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(root_aggregate, "_hits", lambda *_: None)


def nulls_counted(patch: pytest.MonkeyPatch) -> None:
    real = root_aggregate.additive_sql

    def counted(column: Any, weight: str | None) -> str:
        return real(
            replace(column, kind=Kind.ROWS) if column.kind is Kind.COUNT else column, weight
        )

    patch.setattr(root_aggregate, "additive_sql", counted)


def old_groups_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = aggregate.both_ends
    patch.setattr(
        aggregate, "both_ends", lambda *args: real(*args).replace("-__w AS __o", "__w AS __o")
    )


def stored_groups_forgotten(patch: pytest.MonkeyPatch) -> None:
    _add_condition(patch, root_aggregate, "_old_state", "WHERE FALSE")


def groups_that_fail_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """HAVING: only what is shown has a state."""
    real = root_aggregate.change_root_aggregate

    def shown_only(emitter: Emitter, *args: Any) -> str | None:
        first = real(emitter, *args)
        flag = next((c.name for c, s in args[-1] if str(s).startswith("COALESCE((")), None)
        if first is not None and flag is not None:
            step = emitter.steps["before"]
            emitter.steps["before"] = replace(step, sql=f"{step.sql} WHERE t.{flag}")
        return first

    patch.setattr(pipeline, "change_root_aggregate", shown_only)


def partitions_that_lost_rows_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = window.both_ends

    def gaining(emitter: Emitter, *args: Any) -> str:
        known = set(emitter.steps)
        sql = real(emitter, *args)
        for name in set(emitter.steps) - known:
            if name.startswith("partitions"):
                step = emitter.steps[name]
                emitter.steps[name] = replace(step, sql=f"{step.sql} WHERE {W} > 0")
        return sql

    patch.setattr(window, "both_ends", gaining)


def first_rows_never_refilled(patch: pytest.MonkeyPatch) -> None:
    _add_condition(patch, root_top_k, "_lost", "AND FALSE")


def _add_condition(patch: pytest.MonkeyPatch, law: Any, function: str, text: str) -> None:
    """Let the step that a function makes end in some more text."""
    real = getattr(law, function)

    def changed(emitter: Emitter, *args: Any) -> str | None:
        name: str | None = real(emitter, *args)
        if name is not None:
            step = emitter.steps[name]
            emitter.steps[name] = replace(step, sql=f"{step.sql} {text}")
        return name

    patch.setattr(law, function, changed)


def _read_others_of_a_join(patch: pytest.MonkeyPatch, *, is_new: bool) -> None:
    class Place(int):
        """The place of the changed input; all others are said to come before it, or none."""

        def __gt__(self, _other: object) -> bool:
            return is_new

    real = inner_join._start
    patch.setattr(
        inner_join, "_start", lambda change, index: _at(Place(index), real(change, index))
    )


def _at(place: int, walk: Any) -> Any:
    return replace(walk, terms=(place,))
