"""Spark sessions: the embedded one, a borrowed one, and one for each worker."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from runnel.errors import SparkEnded, SystemFault
from runnel.lake.ended import HINT, end_of, is_cut_off, is_remote
from runnel.lake.interrupts import same_handler
from runnel.lake.java import find_java
from runnel.lake.quick_start import java_options
from runnel.lake.translate import translate

__all__ = [
    "FEED",
    "QUERY_SETTINGS",
    "Session",
    "find_java",
    "has_lasting_names",
    "is_open",
    "is_remote",
    "open_session",
    "query_settings",
    "release",
    "server_settings",
    "stop_session",
    "translate",
    "worker_session",
]

DELTA_VERSION = "4.4.0"
DELTA_PACKAGE = f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION}"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_JARS = (
    f"io.delta_delta-spark_4.2_2.13-{DELTA_VERSION}.jar",
    f"io.delta_delta-storage-{DELTA_VERSION}.jar",
    f"io.delta_delta-kernel-api-{DELTA_VERSION}.jar",
    f"io.delta_delta-kernel-defaults-{DELTA_VERSION}.jar",
    f"io.delta_delta-kernel-unitycatalog-{DELTA_VERSION}.jar",
)
# Spark ships what Delta needs of its closure: five jars instead of 33 start in a third of the time.
_EXCLUDES = (
    "org.apache.hadoop:*", "org.apache.parquet:*", "org.apache.logging.log4j:*",
    "com.fasterxml.jackson.core:*", "com.fasterxml.jackson.datatype:*", "org.slf4j:*",
    "org.xerial.snappy:*", "com.github.luben:*", "org.roaringbitmap:*", "org.locationtech.jts:*",
    "io.unitycatalog:*", "io.airlift:*", "javax.annotation:*", "com.google.code.findbugs:*",
    "commons-logging:*", "commons-pool:*", "org.apache.commons:*",
)  # fmt: skip

QUERY_SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.timestampType",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.ansi.doubleQuotedIdentifiers",
    "spark.sql.ansi.relationPrecedence",
    "spark.sql.groupByOrdinal",
    "spark.sql.groupByAliases",
    "spark.sql.orderByOrdinal",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.legacy.sizeOfNull",
    "spark.sql.cteRecursionLevelLimit",
    "spark.sql.cteRecursionRowLimit",
)
"""Session settings that can change what a query means."""

FEED = "spark.databricks.delta.properties.defaults.enableChangeDataFeed"
"""Whether new tables record their changes, which makes reading them cheaper."""

_LAKE = "spark.runnel.lake"
_NAMES = "spark.sql.catalogImplementation"
# Spark hands a session's settings on to its jobs as their properties, and this is one of those.
_POOL = "spark.scheduler.pool"
# Without its pages nobody looks at what Spark remembers of past queries; their plans, as text,
# fill the memory of a session that lives for days.
_FORGET = {
    "spark.sql.maxPlanStringLength": "10000",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
}
WORKER_SETTINGS = {
    # A list of more than 32 files would be looked up by a Spark job of its own.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    # Without it every row that passes through a UNION ALL is made an object of its own.
    "spark.sql.codegen.wholeStage.union.enabled": "true",
}
# By this rule the limit of what is fetched would get into the stages below a UNION ALL, where Spark
# counts by a variable with a new number each time: it would compile them again, and run them cold.
_EXCLUDED = "org.apache.spark.sql.catalyst.optimizer.LimitPushDown"
_EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"


@dataclass(frozen=True, slots=True)
class Session:
    """A Spark session, whether stopping it is our business, and whether it is someone else's.

    In one of the user's own, names may mean other tables than in the lake.
    """

    spark: SparkSession
    is_owned: bool
    is_foreign: bool = False


def open_session(lake_path: Path, conf: Mapping[str, str] | None = None) -> Session:
    """Borrow the active session when there is one with Delta, else start an embedded one."""
    _quiet_python()
    active = SparkSession.getActiveSession()
    if active is None:
        return Session(_start(lake_path, conf or {}), is_owned=True)
    if DELTA_EXTENSION not in (active.conf.get("spark.sql.extensions", "") or ""):
        raise SystemFault(
            "the active Spark session has no Delta Lake",
            detail=f"spark.sql.extensions does not name {DELTA_EXTENSION}",
            hint=f"stop it, or start it with spark.jars.packages={DELTA_PACKAGE}",
        )
    served = active.conf.get(_LAKE, None)
    if served not in (None, str(lake_path.resolve())):
        # Its warehouse and its names are that lake's: tables of both would be mixed up.
        raise SystemFault(
            "this process already works with another lake",
            detail=f"its Spark was started for {served}",
            hint="close that lake first, or use a process for each",
        )
    return Session(active, is_owned=False, is_foreign=served is None)


def has_lasting_names(spark: SparkSession) -> bool:
    """Whether other processes see the names of tables and views too."""
    # A Connect server does not tell this setting to its clients, but has its names in common.
    return is_remote(spark) or spark.conf.get(_NAMES, None) != "in-memory"


def worker_session(
    spark: SparkSession, settings: Mapping[str, str], adaptive: bool, pool: str | None = None
) -> SparkSession:
    """A session of its own with a query's settings; those of `spark` stay as they are.

    Its jobs go into `pool`: where Spark shares fairly, a long job of one leaves room for others.
    """
    # Connect can only copy a session; the views and functions that come along do no harm.
    begin = spark.cloneSession if is_remote(spark) else spark.newSession  # type: ignore[attr-defined]
    try:
        worker: SparkSession = begin()
    except Exception:
        # A server that was started anew refuses to copy what it does not know, by an error of gRPC.
        # That this session is lost its client notices only by a call of its own.
        is_open(spark)
        raise
    own = {_POOL: pool} if pool is not None else {}
    for name, value in {**WORKER_SETTINGS, **settings, **own}.items():
        worker.conf.set(name, value)
    worker.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
    others = worker.conf.get(_EXCLUDED_RULES, None)
    worker.conf.set(_EXCLUDED_RULES, ",".join(filter(None, [others, _EXCLUDED])))
    return worker


def stop_session(spark: SparkSession) -> None:
    """Stop Spark; of one that has ended only what this process keeps of it is left to clear."""
    if end_of(spark) is None:
        spark.stop()
        return
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        spark.stop()


def is_open(worker: SparkSession) -> bool:
    """Whether a session can still be used: a Connect server forgets those that rest for long."""
    if not is_remote(worker):
        return True
    try:
        worker.conf.get("spark.sql.adaptive.enabled")
    except PySparkException:
        return False
    return True


def release(workers: Iterable[SparkSession]) -> None:
    """Give sessions back: a Connect server would keep each for an hour."""
    # The first that fails ends it: a server that is gone lets every call wait for minutes.
    with contextlib.suppress(Exception):
        for worker in filter(is_remote, workers):
            # Not stop(), which needs an attribute that clones do not have.
            worker.client.release_session()
            worker.client.close()


def query_settings(spark: SparkSession, names: Iterable[str] = QUERY_SETTINGS) -> dict[str, str]:
    """The present values of settings, by default of QUERY_SETTINGS."""
    values: dict[str, str] = {}
    for name in names:
        # A setting that this Spark does not know has no default and raises.
        with contextlib.suppress(PySparkException):
            values[name] = str(spark.conf.get(name))
    return values


def _start(lake_path: Path, conf: Mapping[str, str]) -> SparkSession:
    master = conf.get("spark.master") or os.environ.get("RUNNEL_MASTER") or "local[*]"
    if master.startswith("sc://"):
        return _connect(master, conf)
    java = find_java()
    log = lake_path / "_runnel" / "spark.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    settings = _settings(lake_path, master)
    settings["spark.driver.extraJavaOptions"] = java_options(java)
    settings |= conf
    if master.startswith("local"):
        # Functions of the user's own run in this Python, with its packages, not in any python3.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("runnel")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _stderr_to(log), same_handler():
            return builder.getOrCreate()
    except Exception as error:
        if is_cut_off(error):
            # PySpark holds on to the JVM that it once started, also when that is gone.
            raise SparkEnded("the Spark process has ended", hint=HINT) from error
        raise SystemFault(
            "Spark did not start", detail=str(error).splitlines()[0], hint=f"see {log}"
        ) from error


def _connect(master: str, conf: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.remote(master)
    # What a server was started with counts for all its sessions; this one is for each.
    for name, value in {FEED: "true", **conf}.items():
        if name != "spark.master":
            builder = builder.config(name, value)
    return builder.getOrCreate()


def server_settings(lake_path: Path, master: str) -> dict[str, str]:
    """What a Spark of one's own (a Connect server, say) is started with to serve lakes well."""
    return {k: v for k, v in _settings(lake_path, master).items() if k != _LAKE}


def _settings(lake_path: Path, master: str) -> dict[str, str]:
    utc = "-Duser.timezone=UTC"
    return {
        "spark.master": master,
        _LAKE: str(lake_path.resolve()),
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        _NAMES: "in-memory",
        "spark.sql.warehouse.dir": str(lake_path.resolve() / "warehouse"),
        "spark.scheduler.mode": "FAIR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_FORGET,
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": utc,
        "spark.executor.extraJavaOptions": utc,
        "spark.driver.memory": f"{_driver_memory_mb()}m",
        "spark.sql.shuffle.partitions": str(_cores(master)),
        "spark.databricks.delta.snapshotPartitions": "1",
        # VACUUM lists with this many tasks: the default of 10,000 takes a minute.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(2 * _cores(master)),
        # Every aggregate of a task takes a page, by default of up to 64 MB: the dozen small ones
        # of a change program, all in one task, would take a gigabyte.
        "spark.buffer.pageSize": "4m",
        # By default a hundred compiled stages are remembered, those of three tables; each costs
        # 0.1 s to compile and starts cold.
        "spark.sql.codegen.cache.maxEntries": "5000",
        **WORKER_SETTINGS,
        **_local_addresses(master),
        FEED: "true",
        **_delta_jars(),
    }


def _local_addresses(master: str) -> dict[str, str]:
    # One machine needs no name service; a laptop's host name may not even resolve.
    if not master.startswith("local"):
        return {}
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _delta_jars() -> dict[str, str]:
    # Jars that Ivy fetched before are named directly: resolving again is slow and noisy.
    for folder in (Path.home() / ".ivy2.5.2" / "jars", Path.home() / ".ivy2" / "jars"):
        jars = [folder / name for name in _JARS]
        if all(jar.is_file() for jar in jars):
            return {"spark.jars": ",".join(str(jar) for jar in jars)}
    return {"spark.jars.packages": DELTA_PACKAGE, "spark.jars.excludes": ",".join(_EXCLUDES)}


def _cores(master: str) -> int:
    inside = master.removeprefix("local[").partition("]")[0].partition(",")[0]
    if master.startswith("local[") and inside.isdigit():
        return int(inside)
    return os.cpu_count() or 2


def _driver_memory_mb() -> int:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 2048
    return max(1024, total // 4 // 2**20)


@contextlib.contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Point file descriptor 2 at a file: the JVM inherits it and keeps it, we take ours back."""
    sys.stderr.flush()
    saved = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        os.close(target)


def _quiet_python() -> None:
    # PySpark writes one long JSON line to stderr for each failed query; we raise the error instead.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\..*")
