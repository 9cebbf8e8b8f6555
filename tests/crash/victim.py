"""A process that is made to die: `victim.py LAKE OPERATION`, with RUNNEL_FAILPOINT naming the place."""

from __future__ import annotations

import sys

import runnel
from runnel.refresh.compaction import merge_table

QUERY = "SELECT cust, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY cust"
OTHER = "SELECT cust, MAX(amount) AS total FROM orders GROUP BY cust"


def main(path: str, operation: str) -> None:
    with runnel.connect(path) as lake:
        match operation:
            case "refresh":
                lake.refresh("doomed")
            case "full":
                lake.refresh("doomed_full")
            case "create":
                lake.create_stream_table("fresh", QUERY, refresh_mode="DIFFERENTIAL")
            case "alter":
                lake.alter_stream_table("doomed", query=OTHER)
            case "drop":
                lake.drop_stream_table("doomed")
            case "compact":
                lake.compact("doomed")
            case "merge":
                table = lake._workspace.catalog.find("default.doomed")
                assert table is not None
                merge_table(lake._workspace, table, wait=0)
    print("survived")


if __name__ == "__main__":
    main(*sys.argv[1:])
