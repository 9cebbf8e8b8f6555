"""What every verb works with: the catalog, the traces, the logs of sources, Spark if needed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from runnel.catalog import Leases, Source, StreamTable, Writer
from runnel.compile.pipeline import CompiledQuery
from runnel.errors import SparkEnded
from runnel.lake.ended import end_of
from runnel.lake.frames import DataFrame, SparkSession
from runnel.lake.functions import register
from runnel.lake.interrupts import cancel, cancelling
from runnel.lake.log import DeltaLog
from runnel.lake.session import is_open, release, worker_session
from runnel.lake.trace import Trace
from runnel.model.alerts import Alerts, NoAlerts
from runnel.model.functions import OwnFunction
from runnel.model.settings import Settings
from runnel.refresh.answers import Answers, K, Question, R

_FRAMES = 128


@dataclass
class Workspace:
    """Shared by the threads of one process; Spark starts when something first needs it.

    `open_spark` gives the session with the names of all tables, `begin_spark` the same, maybe
    without; `present_spark` the session if there is one; `renew_names` brings its names in step
    with the catalog. `compiled` holds, by incarnation, a text and what it compiles to;
    `defined_here` the incarnations whose temporary views are this session's; `seen_views` the
    keys of catalog views that this session had; `functions` those of the user's own, by key;
    `pending`, by key, tables that are being made and that the catalog does not know yet, seen
    by those who make them; `step_rows`, by incarnation and step, how many rows a program's step
    had last time. `is_ending`: what fails now fails because whoever refreshes here was stopped;
    `is_stopped`: whether that was asked for. `answers` asks what may hang, as `ask` does.
    """

    path: Path
    catalog: Writer
    leases: Leases
    settings: Settings
    open_spark: Callable[[], SparkSession]
    begin_spark: Callable[[], SparkSession] | None = None
    present_spark: Callable[[], SparkSession | None] = lambda: None
    alerts: Alerts = field(default_factory=NoAlerts)
    renew_names: Callable[[], None] = lambda: None
    compiled: dict[str, tuple[str, CompiledQuery]] = field(default_factory=dict)
    defined_here: set[str] = field(default_factory=set)
    seen_views: set[str] = field(default_factory=set)
    functions: dict[str, OwnFunction] = field(default_factory=dict)
    is_ending: threading.Event = field(default_factory=threading.Event)
    is_stopped: Callable[[], bool] = lambda: False
    answers: Answers = field(default_factory=Answers)
    pending: dict[str, StreamTable] = field(default_factory=dict)
    step_rows: dict[tuple[str, str], int] = field(default_factory=dict)
    _logs: dict[str, DeltaLog] = field(default_factory=dict)
    _traces: dict[str, Trace] = field(default_factory=dict)
    _idle: dict[tuple[tuple[str, str], ...], list[SparkSession]] = field(default_factory=dict)
    _in_use: list[SparkSession] = field(default_factory=list)
    _frames: OrderedDict[tuple[int, str, int], DataFrame] = field(default_factory=OrderedDict)
    _ages: list[int] = field(default_factory=lambda: [0])
    _pools: Iterator[int] = field(default_factory=lambda: count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def spark(self) -> SparkSession:
        return self.open_spark()

    @property
    def nameless_spark(self) -> SparkSession:
        """The session for what needs no names: the first who asks for them waits for seconds."""
        return (self.begin_spark or self.open_spark)()

    @property
    def traces_path(self) -> Path:
        return self.path / "_runnel" / "traces"

    def trace(self, table: StreamTable) -> Trace:
        """The trace of this life of a table."""
        with self._lock:
            if table.incarnation not in self._traces:
                path = str(self.traces_path / table.incarnation)
                self._traces[table.incarnation] = Trace(path, table.incarnation, table.layout)
            return self._traces[table.incarnation]

    def log(self, location: str) -> DeltaLog:
        """The log of a source; locations inside the lake folder are relative to it."""
        with self._lock:
            if location not in self._logs:
                is_relative = "://" not in location and not location.startswith(("/", "file:"))
                self._logs[location] = DeltaLog(
                    str(self.path / location) if is_relative else location
                )
            return self._logs[location]

    def relative(self, location: str) -> str:
        """A location as it is recorded, so that the lake folder can be moved."""
        plain = "/" + location.removeprefix("file:").lstrip("/")
        inside = f"{self.path}/"
        return plain.removeprefix(inside) if plain.startswith(inside) else location

    def note_views(self, table: StreamTable) -> None:
        """Remember that a table was defined with the views of this session."""
        self.defined_here.add(table.incarnation)
        self.seen_views.update(view.key for view in table.views if not view.is_temporary)

    def add_function(self, own: OwnFunction) -> None:
        """Let queries call a function; what was compiled without it is forgotten."""
        with self._lock:
            self.functions[own.key] = own
        self.forget_functions()
        if (spark := self.present_spark()) is not None:
            register(spark, [own])

    def forget_functions(self) -> None:
        """Begin new worker sessions: each holds a function as it was when it first called it."""
        with self._lock:
            self.compiled.clear()
            self._ages[0] += 1

    def upstream(self, source: Source) -> StreamTable | None:
        """The stream table a source stands for, as the catalog has it now."""
        return self.find(source.name.key)

    def find(self, key: str) -> StreamTable | None:
        """The stream table with this key."""
        return self.pending.get(key) or self.catalog.find(key)

    def staged(self, tables: Iterable[StreamTable]) -> Workspace:
        """The same workspace, in which these tables are there already."""
        return replace(self, pending={**self.pending, **{t.name.key: t for t in tables}})

    def for_run(self, is_stopped: Callable[[], bool] = lambda: False) -> Workspace:
        """The same workspace for someone who can be stopped without those beside them."""
        return replace(self, is_ending=threading.Event(), is_stopped=is_stopped, _in_use=[])

    def ask(self, questions: Mapping[K, Question[R]]) -> dict[K, R]:
        """What places answer in time; those that do not are left out."""
        return self.answers.ask(questions, self.settings.source_timeout, self.is_stopped)

    @contextmanager
    def worker(self, settings: Mapping[str, str], adaptive: bool) -> Iterator[SparkSession]:
        """A session that nobody else uses meanwhile, with a query's settings; kept for the next.

        Not after an interrupt, or when it was abandoned: what it did may still be running there,
        and is cancelled until it is not; a refresh that came to it would be too.
        """
        since = str(self._ages[0])
        key = (*sorted(settings.items()), ("adaptive", str(adaptive)), ("since", since))
        with self._lock:
            idle = self._idle.setdefault(key, [])
            session = idle.pop() if idle else None
        if session is None or not is_open(session):
            pool = f"runnel-{next(self._pools)}"
            session = worker_session(self.nameless_spark, settings, adaptive, pool)
            register(session, self.functions.values())
        is_clean = True
        with self._lock:
            self._in_use.append(session)
        try:
            with cancelling(lambda: session):
                yield session
        except KeyboardInterrupt:
            is_clean = False
            raise
        finally:
            with self._lock:
                self._in_use[:] = [other for other in self._in_use if other is not session]
                if is_clean and not self.is_ending.is_set():
                    self._idle[key].append(session)

    def frame(
        self, session: SparkSession, key: tuple[str, int], make: Callable[[], DataFrame]
    ) -> DataFrame:
        """A pinned reading, kept for the next refresh in the same session: it cannot change."""
        full_key = (id(session), *key)
        with self._lock:
            if full_key in self._frames:
                self._frames.move_to_end(full_key)
                return self._frames[full_key]
        frame = make()
        with self._lock:
            self._frames[full_key] = frame
            while len(self._frames) > _FRAMES:
                self._frames.popitem(last=False)
        return frame

    def end_of_spark(self) -> SparkEnded | None:
        """What became of the session, if there was one and nothing works in it any more."""
        spark = self.present_spark()
        return end_of(spark) if spark is not None else None

    def abandon(self) -> None:
        """End what refreshes of this workspace have running in Spark; others' jobs go on."""
        self.is_ending.set()
        with self._lock:
            sessions = list(self._in_use)
        ending = [threading.Thread(target=cancel, args=(s,), daemon=True) for s in sessions]
        for thread in ending:
            thread.start()

    def forget_sessions(self) -> None:
        with self._lock:
            idle = [session for sessions in self._idle.values() for session in sessions]
            self._frames.clear()
            self._idle.clear()
        release(idle)
