"""The instant of a pass: each base source pinned once, each refreshed table at its new epoch."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from runnel.catalog import Source
from runnel.errors import RunnelError
from runnel.model.frontier import Frontier, Pin
from runnel.refresh.looking import pin_sources
from runnel.refresh.workspace import Workspace

if TYPE_CHECKING:
    from runnel.refresh.near import NearRows


@dataclass
class Pins:
    """Shared by all refreshes of one pass, so that they agree on their common sources.

    `near` are rows that they read together.
    """

    workspace: Workspace
    data_timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    _pins: dict[str, Pin] = field(default_factory=dict)
    _unreadable: dict[str, RunnelError] = field(default_factory=dict)
    _reached: set[str] = field(default_factory=set)
    near: NearRows | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def frontier(self, sources: Iterable[Source]) -> Frontier:
        """The frontier a table with these sources is refreshed to.

        It says where the sources of parts stand too: what is stored is of those versions.
        """
        wanted = list(self._with_parts(sources))
        pins = self.check(wanted)
        for source in wanted:
            if source.key not in pins:
                raise self._unreadable[source.key]
        return Frontier(pins, self.data_timestamp)

    def check(self, sources: Iterable[Source]) -> dict[str, Pin]:
        """Pin these now; one that cannot be read is left out, and fails who reads it later.

        A base source stays unreadable then: later in the pass it would be of another instant.
        """
        wanted = {source.key: source for source in sources}
        with self._lock:
            self._look([s for s in wanted.values() if s.key not in self._pins])
            return {key: self._pins[key] for key in wanted if key in self._pins}

    def set_epoch(self, key: str, incarnation: str, epoch: int) -> None:
        """Fix where this pass left a stream table, whatever others do to it meanwhile."""
        with self._lock:
            self._pins[key] = Pin("trace", incarnation, epoch)
            self._reached.add(key)

    def has_reached(self, key: str) -> bool:
        """Whether this pass has brought a stream table to its instant."""
        return key in self._reached

    def forget(self, keys: Iterable[str]) -> None:
        """Look these up again when they are next asked for."""
        with self._lock:
            for key in keys:
                self._pins.pop(key, None)

    def _look(self, unknown: Iterable[Source]) -> None:
        seen = self._unreadable
        open_ = [s for s in unknown if s.kind == "stream" or s.key not in seen]
        for key, found in pin_sources(self.workspace, open_).items():
            if isinstance(found, Pin):
                self._pins[key] = found
            else:
                self._unreadable[key] = found

    def _with_parts(self, sources: Iterable[Source]) -> Iterator[Source]:
        for source in sources:
            yield source
            part = self.workspace.upstream(source) if source.is_part else None
            yield from part.sources if part is not None else ()
