"""How long a tick of the scheduler takes when there is nothing to do: `python -m bench.tick`.

The exit code is 1 when that is more than it may be.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from runnel.catalog import Leases, Owner, Source, StreamTable, open_catalog
from runnel.model.alerts import LoggedAlerts
from runnel.model.columns import EPOCH, KEY, WEIGHT, Column, Layout
from runnel.model.frontier import Frontier, Pin
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode, TableState
from runnel.model.schedule import Schedule
from runnel.model.settings import Settings
from runnel.refresh.workspace import Workspace
from runnel.schedule.lake_book import LakeBook
from runnel.schedule.machine import Machine
from runnel.schedule.run import House, lake_units

ROUNDS = 9
PERIOD = 24.0
SELDOM = 600.0
LIMIT = 0.5


@dataclass
class Ticks:
    """What the loop does in its own thread: it keeps the house, then decides what to start."""

    workspace: Workspace
    now: float

    def __post_init__(self) -> None:
        book = LakeBook(self.workspace)
        self.machine = Machine(book, LoggedAlerts(), units=partial(lake_units, book))
        # Names in Spark are the catalog's revision read once more, and here is no Spark.
        self.house = House(self.workspace, lambda: self.now, lambda: None)

    def timed(self, *times: float) -> list[tuple[float, float]]:
        """Seconds by the clock, and of this process: others may have had the processor."""
        return [self._tick(now) for now in times]

    def _tick(self, now: float) -> tuple[float, float]:
        self.now = now
        start, used = perf_counter(), process_time()
        self.house.keep()
        starts = self.machine.decide(now)
        assert not starts, "nothing should have to be refreshed"
        return perf_counter() - start, process_time() - used


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--sources", type=int, default=50)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a tick may take")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_lake(Path(folder), chosen.tables, chosen.sources)
        start = datetime.now(UTC).timestamp()
        lake = Ticks(workspace, start)
        _report("first look", lake.timed(start))
        idle = lake.timed(*(start + 0.001 * i for i in range(ROUNDS)))
        due = lake.timed(*(start + PERIOD * i for i in range(2, ROUNDS + 2)))
        seldom = lake.timed(*(start + SELDOM * i for i in range(1, ROUNDS + 1)))
        ticks = [
            _report("nothing due", idle),
            _report(f"all {chosen.tables:,} due, no news, some looked through for leavings", due),
            _report("the same, and what is looked after every ten minutes", seldom),
        ]
        workspace.catalog.close()
    if max(ticks) >= chosen.limit:
        print(f"a tick took {max(ticks):.3f} s, {chosen.limit:g} s at most were expected")
        return 1
    return 0


def make_lake(folder: Path, tables: int, sources: int) -> Workspace:
    """A lake of tables that are up to date, half of them over the other half, with their storage."""
    catalog = open_catalog(f"sqlite:///{folder}/_runnel/catalog.db")
    workspace = Workspace(
        folder, catalog, Leases(catalog.engine, Owner.current()), Settings(), _no_spark
    )
    bases = [_base(folder, f"x{i}") for i in range(sources)]
    made: list[StreamTable] = []
    for i in range(tables):
        above = [made[i - tables // 2]] if i >= tables // 2 else []
        made.append(_table(f"t{i}", bases[i % sources], above))
        catalog.add_table(made[-1])
        _write_trace(folder, made[-1])
    return workspace


def _base(folder: Path, name: str) -> tuple[Source, Pin]:
    _write_log(folder / "warehouse" / name, name, ("a",))
    table = TableName.parse(name)
    source = Source(table.key, "delta", table, f"warehouse/{name}", name, ("a",))
    return source, Pin("delta", name, 0)


def _write_trace(folder: Path, table: StreamTable) -> None:
    """A log with one epoch, and the folder of the write that made it."""
    trace = folder / "_runnel" / "traces" / table.incarnation
    _write_log(trace, table.incarnation, (KEY, WEIGHT, EPOCH, "c0"), "run-0/part-0.parquet")
    (trace / "run-0").mkdir()


def _write_log(folder: Path, name: str, columns: Sequence[str], *files: str) -> None:
    """A Delta table without rows: nobody reads them."""
    (folder / "_delta_log").mkdir(parents=True)
    fields = [{"name": c, "type": "long", "nullable": True, "metadata": {}} for c in columns]
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {
            "id": name, "format": {"provider": "parquet", "options": {}}, "configuration": {},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [], "createdTime": 0,
        }},
        *(
            {"add": {
                "path": path, "partitionValues": {}, "size": 1, "modificationTime": 0,
                "dataChange": True,
            }}
            for path in files
        ),
    ]  # fmt: skip
    log = folder / "_delta_log" / f"{0:020}.json"
    log.write_text("\n".join(json.dumps(action) for action in actions))


def _table(name: str, base: tuple[Source, Pin], above: list[StreamTable]) -> StreamTable:
    reads = [Source(t.name.key, "stream", t.name, None, t.id, ("a",)) for t in above]
    pins = {t.name.key: Pin("trace", t.incarnation, t.epoch) for t in above}
    now = datetime.now(UTC)
    frontier = Frontier({base[0].key: base[1], **pins}, now - timedelta(seconds=1))
    layout = Layout((Column("c0", "bigint"),), ("c0",), ((Column("a", "bigint"), "c0"),))
    return StreamTable(
        id=uuid.uuid4().hex, name=TableName.parse(name), query="SELECT a FROM x", mode=RefreshMode.AUTO,
        schedule=Schedule.parse("1m"), state=TableState.ACTIVE, comment=None,
        incarnation=uuid.uuid4().hex, layout=layout, settings={}, not_differential=None,
        sources=(base[0], *reads), frontier=frontier, epoch=1, since=0, trace_version=0,
        reinitialize=None, consecutive_errors=0, last_error=None, options={}, created_at=now,
        altered_at=now,
    )  # fmt: skip


def _report(what: str, seconds: list[tuple[float, float]]) -> float:
    """Tell what something took by the clock, and give it in seconds."""
    clock: float = median(passed for passed, _ in seconds)
    used: float = median(spent for _, spent in seconds)
    print(f"{what}: {1000 * clock:.1f} ms, of which {1000 * used:.1f} ms at work", flush=True)
    return clock


def _no_spark() -> Any:
    raise RuntimeError("Spark is not needed here")


if __name__ == "__main__":
    sys.exit(main())
