"""The figures as a table, and as JSON to keep."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.promises import Promise, promises
from bench.rounds import MODES, WAYS
from runnel.model.tabular import text_table

RESULTS = Path(__file__).parent / "results"


def stamp(rows: int) -> dict[str, Any]:
    return {
        "rows": rows,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def table(report: dict[str, Any]) -> str:
    titles = ["query", "changed", *WAYS, "AUTO ran", "jobs", "compaction"]
    titles += ["FULL / DIFF", "best by hand / DIFF", "verified"]
    rows = text_table(titles, [_row(r) for r in report["rounds"]])
    return f"{_head(report)}{rows}\n{_in_a_row(report)}{judged(promises(report))}"


def is_good(report: dict[str, Any]) -> bool:
    """Whether contents were right and each mode did what it says, and every promise was kept."""
    checked = [
        *report["rounds"],
        *report.get("in_a_row", []),
        *([report["tiny"]] if "tiny" in report else []),
    ]
    is_right = all(found["verified"] and _is_as_asked(found) for found in checked)
    return is_right and all(promise.is_kept for promise in promises(report))


def _is_as_asked(found: dict[str, Any]) -> bool:
    """A DIFFERENTIAL refresh that silently was FULL would show nothing."""
    actions = found.get("actions", {})
    modes = ("DIFFERENTIAL", "FULL") if isinstance(actions, dict) else ()
    return all(actions.get(mode, mode) == mode for mode in modes)


def write(report: dict[str, Any], name: str) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / name
    path.write_text(json.dumps(_rounded(report), indent=1) + "\n")
    return path


def _row(measured: dict[str, Any]) -> list[str]:
    seconds = measured["seconds"]
    by_hand = [seconds[way] for way in ("CTAS", "MERGE") if way in seconds]
    return [
        measured["query"],
        f"{measured['share']:.2%}",
        *(f"{seconds[way]:.2f}" if way in seconds else "" for way in WAYS),
        measured.get("actions", {}).get("AUTO", ""),
        str(measured.get("jobs", {}).get("DIFFERENTIAL", "")),
        f"{measured['tidying']['DIFFERENTIAL']:.2f}" if "tidying" in measured else "",
        _ratio(seconds.get("FULL"), seconds.get("DIFFERENTIAL")),
        _ratio(min(by_hand, default=None), seconds.get("DIFFERENTIAL")),
        "yes" if measured["verified"] else "NO",
    ]


def _in_a_row(report: dict[str, Any]) -> str:
    """Rounds of a large change one after the other, with the compactions that follow them."""
    found = report.get("in_a_row", [])
    if not found:
        return ""
    titles = ["query", "changed", "rounds", *MODES, "AUTO ran", "verified"]
    rows = [
        [
            m["query"],
            f"{m['share']:.0%}",
            str(len(m["rounds"])),
            *(f"{m['seconds'][mode]:.2f}" for mode in MODES),
            ", ".join(m["actions"]),
            "yes" if m["verified"] else "NO",
        ]
        for m in found
    ]
    return f"\n{text_table(titles, rows)}\n"


def judged(promised: Iterable[Promise]) -> str:
    """How many promises were kept, and each of them, those that were not at the end."""
    found = sorted(promised, key=lambda promise: not promise.is_kept)
    kept = sum(promise.is_kept for promise in found)
    return "\n".join([f"{kept} of {len(found)} promises kept", *map(str, found)])


def _ratio(slow: float | None, fast: float | None) -> str:
    return f"{slow / fast:.1f}x" if slow and fast else ""


def _head(report: dict[str, Any]) -> str:
    lines = [f"{report['rows']:,} rows; seconds below"]
    if "no_data_ms" in report:
        lines.append(f"NO_DATA: {report['no_data_ms']:.1f} ms")
    if "tiny" in report:
        tiny = report["tiny"]
        lines.append(f"tiny tables, {tiny['action']}: {tiny['seconds']} s, of it {tiny['phases']}")
    if "epochs" in report:
        lines.append(f"reading 100 epochs / compacted: {report['epochs']}")
    lines.append(f"Python's memory, at its highest: {report['python_peak_mb']:.0f} MB")
    return "\n".join(lines) + "\n\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value
