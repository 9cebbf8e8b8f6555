"""Runnel's settings: one typed object; arguments beat RUNNEL_* variables beat runnel.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from runnel.errors import UserError
from runnel.model.diamonds import DiamondConsistency, SchedulePolicy
from runnel.model.schedule import parse_duration


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set, with its default; `origins` says where each value came from."""

    max_change_ratio: float = field(
        default=0.15,
        metadata={
            "doc": "AUTO runs FULL above this share of changed rows until costs are measured"
        },
    )
    broadcast_rows: int = field(
        default=500_000,
        metadata={
            "doc": "a step of at most so many rows, fewer of wide ones, is broadcast to its join"
        },
    )
    compact_after_epochs: int = field(
        default=32,
        metadata={"doc": "a trace is compacted when this many epochs have piled up"},
    )
    compact_share: float = field(
        default=0.025,
        metadata={"doc": "... or when superseded rows exceed this share of the trace"},
    )
    inner_trace_rows: int = field(
        default=20_000_000,
        metadata={
            "doc": "a grouping inside a query whose sources have so many rows gets a trace of its "
            "own; 0: always, below 0: never"
        },
    )
    trace_retention_hours: float = field(
        default=24.0,
        metadata={"doc": "how long files that compaction replaced stay for running readers"},
    )
    lease_seconds: float = field(
        default=30.0,
        metadata={"doc": "after this long without a sign of life a refresh may be taken over"},
    )
    busy_wait_seconds: float = field(
        default=10.0,
        metadata={"doc": "how long a call waits for a table that someone else is refreshing"},
    )
    source_timeout: float = field(
        default=10.0,
        metadata={
            "doc": "how long a pass waits for a source to tell how far it is, in seconds or as '1m'"
        },
    )
    startup: str = field(
        default="",
        metadata={"doc": "`module:function`, called with the lake when it is opened"},
    )
    alert_webhook: str = field(
        default="",
        metadata={"doc": "alerts are posted as JSON to this http(s) address", "secret": True},
    )
    alert_quiet_kinds: str = field(
        default="refresh_completed",
        metadata={"doc": "kinds of alert, by commas, that only the log and callbacks hear of"},
    )
    alert_retention_days: float = field(
        default=30.0,
        metadata={"doc": "how long alerts are listed; what still lasts is kept"},
    )
    block_source_ddl: bool = field(
        default=False,
        metadata={"doc": "refuse DDL through the lake that takes away what a stream table reads"},
    )
    diamond_consistency: DiamondConsistency = field(
        default=DiamondConsistency.NONE,
        metadata={"doc": "atomic: tables that meet again further down advance together or not"},
    )
    diamond_schedule_policy: SchedulePolicy = field(
        default=SchedulePolicy.FASTEST,
        metadata={
            "doc": "whose target lag an atomic group follows: fastest or slowest member; a cycle "
            "always follows its fastest"
        },
    )
    enabled: bool = field(
        default=True,
        metadata={
            "doc": "whether `run` refreshes anything; false: tables wait until they are asked"
        },
    )
    scheduler_interval: float = field(
        default=1.0,
        metadata={"doc": "how often `run` looks for work, in seconds or as '500ms'"},
    )
    max_concurrent_refreshes: int = field(
        default=4,
        metadata={"doc": "how many tables `run` refreshes side by side"},
    )
    max_consecutive_errors: int = field(
        default=3,
        metadata={
            "doc": "a table that fails so many times in a row is suspended, by `run` or by a write "
            "that IMMEDIATE tables follow"
        },
    )
    max_outage: float = field(
        default=3600.0,
        metadata={"doc": "... but for system errors not before they have lasted so long, as '1h'"},
    )
    min_schedule: float = field(
        default=1.0,
        metadata={"doc": "the shortest schedule that a table may have, in seconds or as '1m'"},
    )
    allow_circular: bool = field(
        default=False,
        metadata={"doc": "whether stream tables may read each other, or themselves, in a cycle"},
    )
    max_fixpoint_iterations: int = field(
        default=100,
        metadata={"doc": "after this many rounds a cycle that still finds rows is an error"},
    )
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    @staticmethod
    def load(
        folder: Path,
        arguments: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Settings:
        """Settings for a lake folder."""
        known = {f.name: f for f in fields(Settings) if f.name != "origins"}
        values: dict[str, Any] = {}
        origins = dict.fromkeys(known, "default")
        for origin, given in _layers(folder, arguments or {}, environ or os.environ, known):
            for name, value in given.items():
                if name not in known:
                    raise UserError(
                        f"{name!r} ({origin}) is not a setting",
                        detail=f"expected one of {', '.join(sorted(known))}",
                    )
                values[name] = _convert(name, value, type(known[name].default), origin)
                origins[name] = origin
        return Settings(**values, origins=origins)


def _layers(
    folder: Path, arguments: Mapping[str, Any], environ: Mapping[str, str], known: Mapping[str, Any]
) -> list[tuple[str, Mapping[str, Any]]]:
    file = folder / "runnel.toml"
    from_file: Mapping[str, Any] = {}
    if file.is_file():
        try:
            from_file = tomllib.loads(file.read_text())
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{file.name} cannot be read", detail=str(error)) from None
    from_environ = {
        name: environ[f"RUNNEL_{name.upper()}"]
        for name in known
        if f"RUNNEL_{name.upper()}" in environ
    }
    return [("runnel.toml", from_file), ("environment", from_environ), ("argument", arguments)]


_DURATIONS = frozenset({"scheduler_interval", "min_schedule", "max_outage", "source_timeout"})
_BOOLEANS = {
    "true": True, "1": True, "on": True, "yes": True,
    "false": False, "0": False, "off": False, "no": False,
}  # fmt: skip


def _convert(name: str, value: Any, type_: type, origin: str) -> Any:
    is_choice = issubclass(type_, StrEnum)
    try:
        if type_ is bool:
            return _BOOLEANS[str(value).strip().lower()]
        if name in _DURATIONS and isinstance(value, str) and value.strip()[-1:].isalpha():
            return parse_duration(value)
        return type_(value.strip().lower() if is_choice else value)
    except (AttributeError, TypeError, ValueError, KeyError):
        expected = " or ".join(type_) if is_choice else type_.__name__  # type: ignore[arg-type]
        raise UserError(
            f"{name} = {value!r} ({origin}) is not valid", detail=f"expected {expected}"
        ) from None
