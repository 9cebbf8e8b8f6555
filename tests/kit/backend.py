"""What runs a step file: an interface, and the runner that drives it and compares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import pytest

from kit.bags import Bag, bag, difference
from kit.step import Change, StepFile, StepRound, TableSpec
from runnel.errors import NotDifferentiable


class Backend(Protocol):
    """Somewhere a query can be kept up to date: DuckDB or Spark in memory, or a real lake."""

    def create_table(self, table: TableSpec) -> None:
        """Make a source table with its first rows."""

    def create_stream_table(self, query: str) -> None:
        """Keep the query in DIFFERENTIAL mode and fill it. Raises NotDifferentiable."""

    def commit(self, changes: Sequence[Change]) -> None:
        """Apply changes to the sources, as one commit of each table concerned."""

    def refresh(self) -> str:
        """Refresh the stream table; the action taken."""

    def contents(self) -> Bag:
        """What the user sees."""

    def oracle(self) -> Bag:
        """The query, evaluated by the backend's engine on the sources as they are."""

    def close(self) -> None:
        """Release what was made."""


def run_step(file: StepFile, backend: Backend) -> int:
    """Run a step file; returns the number of comparisons made."""
    for table in file.tables.values():
        backend.create_table(table)
    if file.refusal is not None:
        with pytest.raises(NotDifferentiable) as caught:
            backend.create_stream_table(file.query)
        assert file.refusal.lower() in str(caught.value).lower()
        assert caught.value.hint, "a refusal says what to do instead"
        return 1
    backend.create_stream_table(file.query)
    _compare(backend, "at the beginning")
    for current in file.rounds:
        _run_round(current, backend)
    return len(file.rounds) + 1


def _run_round(current: StepRound, backend: Backend) -> None:
    for changes in current.commits:
        if changes:
            backend.commit(changes)
    if current.failure is not None:
        _fail(current, backend)
        return
    action = backend.refresh()
    found = _compare(backend, current.label)
    assert action in current.actions, f"{current.label}: {action}, expected {current.actions}"
    if current.rows is not None:
        expected = bag(current.rows)
        assert _as_text(found) == _as_text(expected), (
            f"{current.label}: not the rows written down\n{difference(found, expected)}"
        )


def _fail(current: StepRound, backend: Backend) -> None:
    """The refresh says why it fails, and the contents stay as they were."""
    assert current.failure is not None
    before = backend.contents()
    with pytest.raises(Exception, match=re.escape(current.failure)):
        backend.refresh()
    assert backend.contents() == before, f"{current.label}: a failed refresh changed the contents"


def _compare(backend: Backend, label: str) -> Bag:
    found, expected = backend.contents(), backend.oracle()
    assert found == expected, f"{label}\n{difference(found, expected)}"
    return found


def _as_text(rows: Bag) -> list[tuple[str, ...]]:
    """Dates written as text in a file compare with dates."""
    return sorted(
        tuple(
            f"{v:f}".rstrip("0").rstrip(".") if _has_point(v) and "." in f"{v:f}" else str(v)
            for v in row
        )
        for row in rows.elements()
    )


def _has_point(value: object) -> bool:
    """An integer is not written as a float, which has fewer digits."""
    return isinstance(value, bool | float) or type(value).__name__ == "Decimal"
