"""A soak from its first table to its report."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from time import monotonic

import runnel
from bench.soak.checks import Broken, Reader
from bench.soak.daemon import Daemon
from bench.soak.ending import measure, settle
from bench.soak.graph import make_bases, make_tables
from bench.soak.load import Writer
from bench.soak.report import Report
from runnel.lake.java import find_java
from runnel.lake.quick_start import java_options

Say = Callable[[str], None]
_TELL_EVERY = 30.0
_PATIENCE = 10
_LAST_WORK = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do for how long, times in seconds.

    `kill_every` is the mean, counted from a daemon's first refresh. With `kills` it goes on, on a
    slow machine, until there were as many, and stops killing then; else until somebody has worked
    after the last kill. `goal` is the least share of the time at which a table is within its
    target; without one that is told, not judged.
    """

    seconds: float = 600.0
    kill_every: float = 75.0
    kills: int | None = None
    write_every: float = 1.0
    read_every: float = 2.0
    workers: int = 2
    seed: int = 0
    master: str | None = None
    goal: float | None = None


def soak(folder: Path, plan: Plan, say: Say = lambda text: None) -> Report:
    """Run everything in a new lake folder."""
    # The readers' Spark takes as little as it can of the cores that the daemon has to do with.
    java = "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    conf = {
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": java_options(find_java(), java),
    }
    if plan.master is not None:
        conf = {"spark.master": plan.master}
    make_bases(folder)
    with runnel.connect(folder, allow_circular=True, spark_conf=conf) as lake:
        make_tables(lake)
        # The daemon takes over fresh tables: how long making them took is not its lag.
        lake.refresh()
        say("tables are made")
        return _Soak(lake, folder, plan, say).run()


@dataclass
class _Soak:
    lake: runnel.Lake
    folder: Path
    plan: Plan
    say: Say
    report: Report = field(default_factory=Report)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.report.goal = self.plan.goal
        self.random = Random(self.plan.seed)
        self.writer = Writer(self.lake, self.folder, Random(self.plan.seed + 1))
        self.reader = Reader(self.lake, Random(self.plan.seed + 2))
        environment = {} if self.plan.master is None else {"RUNNEL_MASTER": self.plan.master}
        log = self.folder.parent / "daemon.log"
        self.daemon = Daemon(self.folder, log, self.plan.workers, environment)

    def run(self) -> Report:
        self.begun, began = monotonic(), datetime.now(UTC)
        self.daemon.start()
        threads = [
            threading.Thread(target=self._repeat, args=args, daemon=True)
            for args in (
                (self.writer.write, self.plan.write_every), (self.reader.read, self.plan.read_every)
            )
        ]  # fmt: skip
        for thread in threads:
            thread.start()
        try:
            self._kill_now_and_then()
        finally:
            self.stop.set()
            for thread in threads:
                thread.join(120)
                if thread.is_alive():
                    self.report.broken.append("the reader or the writer hangs")
            try:
                self._note()
                measure(self.lake, self.report, self.report.seconds)
            finally:
                self._end_daemon()
        settle(self.lake, self.folder, self.writer.truth, self.report, began)
        return self.report

    def _repeat(self, act: Callable[[], None], pause: float) -> None:
        while not self.stop.is_set():
            try:
                act()
            except Broken as error:
                self.report.broken.append(str(error))
                self.stop.set()
            except Exception as error:
                self.report.broken.append(f"{act.__name__}: {type(error).__name__}: {error}")
                self.say(traceback.format_exc())
                self.stop.set()
            self.stop.wait(pause)

    def _kill_now_and_then(self) -> None:
        told = monotonic()
        kill_at: float | None = None
        while not self.stop.wait(0.2) and not self._is_over():
            if (code := self.daemon.ended_with) is not None:
                self.report.broken.append(f"the daemon ended by itself with code {code}")
                return
            kill_at = self._killed_when_due(kill_at)
            if monotonic() - told >= _TELL_EVERY:
                told = monotonic()
                self._note()
                self.say(self.report.lines()[0] + f", {self.report.kills} kills")

    def _killed_when_due(self, kill_at: float | None) -> float | None:
        """Kill the daemon when it is time; gives when that is, None until it has worked."""
        if kill_at is None:
            self._note_survival()
            return monotonic() + self._pause() if self.daemon.has_worked else None
        if monotonic() < kill_at or self.report.kills == self.plan.kills:
            return kill_at
        self._kill()
        return None

    def _note_survival(self) -> None:
        if self.daemon.has_worked:
            self.report.survived = self.report.kills

    def _is_over(self) -> bool:
        passed, seconds = monotonic() - self.begun, self.plan.seconds
        if passed < seconds:
            return False
        wanted = self.plan.kills
        longest = seconds + _LAST_WORK if wanted is None else _PATIENCE * seconds
        is_short = self.report.kills < (wanted or 0) or not self.daemon.has_worked
        return not is_short or passed >= longest

    def _kill(self) -> None:
        with_spark = self.random.random() < 0.5
        self.daemon.kill(with_spark=with_spark)
        self.report.kills += 1
        self.say(f"killed the daemon{', and its Spark' if with_spark else ''}")
        self.daemon.start()

    def _pause(self) -> float:
        return self.plan.kill_every * self.random.uniform(0.5, 1.5)

    def _end_daemon(self) -> None:
        if self.daemon.ended_with is not None:
            return
        code, seconds = self.daemon.stop()
        self.report.stop_seconds = seconds
        if code != 0:
            self.report.broken.append(f"the daemon ended with code {code} after SIGTERM")

    def _note(self) -> None:
        self._note_survival()
        self.report.seconds = monotonic() - self.begun
        self.report.commits = self.writer.commits
        self.report.reads = self.reader.reads.copy()
        self.report.without_instant = self.reader.without_instant
