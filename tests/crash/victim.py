"""Processes that are made to die: `victim.py LOG` reads what each is to do, RUNNEL_FAILPOINT says where."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from traceback import print_exc
from typing import Any, NoReturn

import runnel
from runnel.errors import QueryFailed
from runnel.refresh import group
from runnel.refresh.compaction import merge_table

QUERY = "SELECT cust, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY cust"
CYCLE = (
    "SELECT id, cust FROM orders UNION "
    "SELECT f.id, o.cust FROM fresh f JOIN orders o ON f.cust = o.id"
)
PARTED = (
    "SELECT o.id, s.total FROM orders o JOIN "
    "(SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust) AS s ON o.cust = s.cust"
)
RING = {
    "chain": "SELECT id, cust FROM pairs UNION "
    "SELECT l.id, p.cust FROM links l JOIN pairs p ON l.cust = p.id",
    "links": "SELECT DISTINCT id, cust FROM chain",
}
MEANS = "SELECT cust, AVG(id) AS mean FROM marks GROUP BY cust"
OTHER = "SELECT cust, MAX(amount) AS total FROM orders GROUP BY cust"

_SLOW_TO_IMPORT = ("runnel.api", "pyspark.sql.connect.session", "deltalake", "pandas")


def attempt(path: str, operation: str) -> None:
    often = {"compact_after_epochs": 2} if operation == "tidy" else {}
    with runnel.connect(path, allow_circular=True, **often) as lake:
        match operation:
            case "refresh" | "reinitialize" | "tidy":
                lake.refresh("doomed")
            case "full":
                lake.refresh("doomed_full")
            case "create":
                lake.create_stream_table("fresh", QUERY, refresh_mode="DIFFERENTIAL")
            case "together":
                both = {"fresh": CYCLE, "below": "SELECT cust FROM fresh"}
                lake.create_stream_tables(both, refresh_mode="DIFFERENTIAL")
            case "alter":
                lake.alter_stream_table("doomed", query=OTHER)
            case "drop":
                lake.drop_stream_table("doomed")
            case "compact":
                lake.compact("doomed")
            case "parts":
                lake.refresh("parted")
            case "start_over":
                lake.refresh("means")
            case "cycle":
                lake.refresh("chain")
            case "group":
                lake.refresh("both")
            case "group_given_up":
                fail_for("both")
                lake.refresh("both")
            case "merge":
                table = lake._workspace.catalog.find("default.doomed")
                assert table is not None
                merge_table(lake._workspace, table, wait=0)
    print("survived")


def fail_for(name: str) -> None:
    """Let one member of a group fail, when the others have appended."""
    carry_out = group.carry_out

    def failing(workspace: Any, table: Any, *rest: Any) -> Any:
        if table.name.name == name:
            raise QueryFailed("made to fail")
        return carry_out(workspace, table, *rest)

    group.carry_out = failing  # type: ignore[assignment]


def main(log: str) -> None:
    """A child for each line; it finds imported what takes long, and nothing begun."""
    for name in _SLOW_TO_IMPORT:
        import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _live(log, **asked)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _live(log: str, environment: dict[str, str], arguments: list[str]) -> NoReturn:
    os.environ |= environment
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(target, stream)
    try:
        attempt(*arguments)
    except BaseException:
        print_exc()
    finally:
        sys.stdout.flush()
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
