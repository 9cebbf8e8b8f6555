"""The frontier: which version of each source a stream table was computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Pin:
    """One source at one version.

    `kind` is `delta` (identity = Delta table id, version = Delta version) or `trace`
    (identity = incarnation of the stream table, version = epoch).
    """

    kind: str
    identity: str
    version: int


@dataclass(frozen=True, slots=True)
class Frontier:
    """A pin for each source key, and the instant the pins were taken."""

    pins: Mapping[str, Pin]
    data_timestamp: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "pins": {k: [p.kind, p.identity, p.version] for k, p in sorted(self.pins.items())},
            "data_timestamp": self.data_timestamp.isoformat(),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Frontier:
        return Frontier(
            pins={k: Pin(*p) for k, p in data["pins"].items()},
            data_timestamp=datetime.fromisoformat(data["data_timestamp"]),
        )
