"""Whether schema changes inside a range of commits touch the columns a query uses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from runnel.lake.log import Commit, DeltaLog

# Metadata that decides what a column holds: its stored name, and CHAR / VARCHAR lengths.
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


def schema_conflict(
    log: DeltaLog, after: int, commits: Sequence[Commit], columns: Iterable[str]
) -> str | None:
    """What happened to a used column, or None; an added column is harmless."""
    schemas = [c.metadata["schemaString"] for c in commits if c.metadata]
    if not schemas:
        return None
    before = _fields(log.snapshot(after).schema_json)
    names = {name.lower() for name in columns}
    for schema in schemas:
        now = _fields(schema)
        for name in sorted(names & before.keys()):
            if name not in now:
                return f"column {name} was dropped or renamed"
            if _physical(before[name]) != _physical(now[name]):
                return f"column {name} was replaced by another one of that name"
            if _type(before[name]) != _type(now[name]):
                return f"column {name} changed its type"
    return None


def _fields(schema_json: str) -> dict[str, dict[str, Any]]:
    return {field["name"].lower(): field for field in json.loads(schema_json)["fields"]}


def _physical(field: dict[str, Any]) -> str:
    # Turning column mapping on gives each old column its own name as the physical one.
    return str((field.get("metadata") or {}).get(_PHYSICAL_NAME, field["name"]))


def _type(field: dict[str, Any]) -> str:
    char = (field.get("metadata") or {}).get(_CHAR_TYPE)
    return json.dumps([_bare(field["type"]), char], sort_keys=True)


def _bare(type_: Any) -> Any:
    """A type without nullability and metadata."""
    if isinstance(type_, dict):
        skipped = ("metadata", "nullable", "containsNull", "valueContainsNull")
        return {key: _bare(value) for key, value in type_.items() if key not in skipped}
    if isinstance(type_, list):
        return [_bare(item) for item in type_]
    return type_
