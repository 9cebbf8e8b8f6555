"""The command in this process: on a catalog made by hand, or on a lake in the shared session."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from kit.names import forget_names
from runnel.catalog import Owner, Source, StreamTable, Writer, open_catalog
from runnel.cli.main import app
from runnel.model.columns import Column, Layout
from runnel.model.frontier import Frontier, Pin
from runnel.model.names import TableName
from runnel.model.refresh import Outcome, RefreshAction, RefreshMode, TableState
from runnel.model.schedule import Schedule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEAD = Owner(Owner.current().host, 2**22 + 1, 1.0, "gone")


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _no_lake_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RUNNEL_LAKE", "RUNNEL_CATALOG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> Run:
    """Run the command with these arguments."""

    def run_command(*arguments: object, input: str | None = None) -> Ran:
        done = CliRunner().invoke(app, [str(a) for a in arguments], input=input)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ran(done.exit_code, done.stdout, done.stderr)

    return run_command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a lake"


@pytest.fixture
def catalog(folder: Path) -> Iterator[Writer]:
    """The catalog of a lake with `sales` over `orders`, and `big` over `sales`; no storage."""
    with open_catalog(f"sqlite:///{folder}/_runnel/catalog.db") as writer:
        add_tables(writer)
        yield writer


def add_tables(writer: Writer) -> None:
    _add(writer, "sales", "orders", "delta", schedule=Schedule.parse("1m"))
    _add(writer, "big", "sales", "stream", state=TableState.SUSPENDED)


def _add(
    writer: Writer, name: str, reads: str, kind: Any, schedule: Any = None, state: Any = None
) -> None:
    now = datetime.now(UTC) - timedelta(minutes=5)
    source = TableName.parse(reads)
    location = "/nowhere/orders" if kind == "delta" else None
    table = StreamTable(
        id=uuid.uuid4().hex, name=TableName.parse(name), query=f"SELECT id FROM {reads}",
        mode=RefreshMode.AUTO, schedule=schedule, state=state or TableState.ACTIVE, comment=None,
        incarnation=uuid.uuid4().hex,
        layout=Layout((Column("c0", "bigint"),), ("c0",), ((Column("id", "bigint"), "c0"),)),
        settings={}, not_differential=None,
        sources=(Source(source.key, kind, source, location, "d", ("id",)),),
        frontier=Frontier({source.key: Pin("delta", "d", 3)}, now), epoch=2, since=0,
        trace_version=1, reinitialize=None, consecutive_errors=0, last_error=None, options={},
        created_at=now, altered_at=now,
    )  # fmt: skip
    writer.add_table(table)
    attempt = writer.start_attempt(table.id, Owner.current(), started_at=now)
    writer.finish_attempt(
        attempt, Outcome.OK, action=RefreshAction.DIFFERENTIAL, reason="few rows changed",
        rows_inserted=1200, rows_deleted=7, change_rows=9, seconds=0.25, finished_at=now,
    )  # fmt: skip


@pytest.fixture
def spark_lake(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A folder in which commands open lakes with the shared session."""
    from runnel import api

    def connect(path: Path, spark_conf: Any = None, **options: Any) -> api.Lake:
        return partial(real, path, spark=spark)(**options)

    real = api.connect
    monkeypatch.setattr(api, "connect", connect)
    yield folder
    forget_names(spark)
