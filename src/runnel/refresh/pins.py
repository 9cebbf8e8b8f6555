"""The instant of a pass: each base source pinned once, each refreshed table at its new epoch."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from runnel.catalog import Source
from runnel.errors import RunnelError
from runnel.model.frontier import Frontier, Pin
from runnel.refresh.windows import pin_source
from runnel.refresh.workspace import Workspace


@dataclass
class Pins:
    """Shared by all refreshes of one pass, so that they agree on their common sources."""

    workspace: Workspace
    data_timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    _pins: dict[str, Pin] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def frontier(self, sources: Iterable[Source]) -> Frontier:
        """The frontier a table with these sources is refreshed to.

        It says where the sources of parts stand too: what is stored is of those versions.
        """
        pins = {source.key: self._pin(source) for source in self._with_parts(sources)}
        return Frontier(pins, self.data_timestamp)

    def check(self, sources: Iterable[Source]) -> dict[str, Pin]:
        """Pin these now; one that cannot be read is left out, and fails who reads it later."""
        found: dict[str, Pin] = {}
        for source in sources:
            with suppress(RunnelError):
                found[source.key] = self._pin(source)
        return found

    def set_epoch(self, key: str, incarnation: str, epoch: int) -> None:
        """Fix where this pass left a stream table, whatever others do to it meanwhile."""
        with self._lock:
            self._pins[key] = Pin("trace", incarnation, epoch)

    def forget(self, keys: Iterable[str]) -> None:
        """Look these up again when they are next asked for."""
        with self._lock:
            for key in keys:
                self._pins.pop(key, None)

    def _with_parts(self, sources: Iterable[Source]) -> Iterator[Source]:
        for source in sources:
            yield source
            part = self.workspace.upstream(source) if source.is_part else None
            yield from part.sources if part is not None else ()

    def _pin(self, source: Source) -> Pin:
        with self._lock:
            if source.key not in self._pins:
                self._pins[source.key] = pin_source(self.workspace, source)
            return self._pins[source.key]
