"""Running a change program: some steps kept for those that read them, the output appended.

Steps that do not wait for each other are kept side by side: a small job leaves most of Spark idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock

from runnel.compile.near import Near
from runnel.compile.program import TOKEN, Keep, Program, Step, near_of, new_of
from runnel.lake.frames import DataFrame
from runnel.lake.local_changes import netted_change
from runnel.lake.local_rows import can_be_fetched, fetched, fetched_if_few, few, measure
from runnel.refresh.bind import Binding, bind_change, bind_new, bind_state
from runnel.refresh.near import ProgramNear
from runnel.refresh.plan import RefreshPlan
from runnel.refresh.rounds import run_rounds
from runnel.refresh.windows import row_bytes, total_rows

# Reading so many rows twice, or sending them to every task, costs less than a job.
_SMALL = 100_000
_AT_ONCE = 3
# Of files, which are compressed: several times as much in memory.
_MOST_SENT_BYTES = 64 * 2**20


@dataclass
class ProgramRun:
    """The state of one run: how many rows each step is known to have, or to have at most.

    `near` is what it may read together with the other tables of the pass.
    """

    plan: RefreshPlan
    program: Program
    bound: Binding
    near: ProgramNear | None = None
    counts: dict[str, int] = field(default_factory=dict)
    meets_little: set[str] = field(default_factory=set)
    _made: dict[str, Future[None]] = field(default_factory=dict)
    _fetched: set[str] = field(default_factory=set)
    _binding: RLock = field(default_factory=RLock)

    def output(self) -> str | None:
        """Keep what is to be kept; the last step's SQL, or None when it must be empty."""
        for key in self.plan.changed:
            self.counts[f"change:{key}"] = self.plan.windows[key].rows
        steps = self.program.steps
        # Rounds of two steps would take each other's rows for their own.
        workers = 1 if any(step.again for step in steps) else _AT_ONCE
        with _threads(workers) as pool:
            for step in steps[:-1]:
                is_made = self._is_netted_here(step)
                if not is_made and (step.keep is not Keep.NEVER or step.again is not None):
                    self._made[step.name] = pool.submit(self._make, step)
                if step.name == self.program.empty_if_empty and self._rows(step.name) == 0:
                    return None
            return self._sql(self.program.output)

    def _is_netted_here(self, step: Step) -> bool:
        """Whether a step, a small change and no more, was made without Spark."""
        if step.nets is None:
            return False
        window = self.plan.windows[step.nets.source]
        if window.source.kind == "stream" or window.old is None or window.rows > self._few:
            return False
        log = self.bound.workspace.log(window.source.location or "")
        versions = (window.old.version, window.new.version)
        made = netted_change(self.bound.spark, log, versions, step.nets.names, step.columns)
        if made is None:
            return False
        self._local(step, *made)
        return True

    def _make(self, step: Step) -> None:
        """Keep a step's rows if that pays. It waits for what it reads, which was begun before."""
        token = f"step:{step.name}"
        if self._is_left_out(step):
            self.bound.inline[token] = empty_relation(step)
            self.counts[token] = 0
            return
        if step.again is not None:
            self._bring_here(step)
            rows, self.counts[token] = run_rounds(
                self.bound, step, self._filled, self._note, self.state_rows()
            )
            self.bound.view(token, rows)
            return
        if (most := self._most(step)) is not None:
            self.counts[token] = most
        sql = self._sql(step)
        if self._is_kept(step):
            self._keep(step, sql, most)
        elif step.keep is Keep.SHARED and self._is_worth_fetching(step, most):
            self._fetch(step, self.bound.spark.sql(sql))
        else:
            if step.keep is Keep.RESTRICTING:
                self.counts[token] = sum(map(self.source_rows, step.meets))
            self.bound.inline[token] = sql

    def _bring_here(self, step: Step) -> None:
        """Fetch the few rows that every round would read from files again."""
        for token in self._readings(step):
            kind, _, name = token.partition(":")
            rows = self.state_rows() if kind == "state" else self.source_rows(name)
            if rows <= self._few:
                self._token(token)
                self.bound.bring_here(token)

    def _readings(self, step: Step) -> set[str]:
        """What a step reads of sources and of the state, by itself or by steps in its text."""
        found: set[str] = set()
        for token in step.reads:
            kind, _, name = token.partition(":")
            if kind in ("new", "state"):
                found.add(token)
            elif name in self._steps and name not in self._made:
                found |= self._readings(self._steps[name])
        return found

    def _keep(self, step: Step, sql: str, most: int | None) -> None:
        """Compute a step's rows once, and know how many there are."""
        frame = self.bound.spark.sql(sql)
        if self._is_few(step, most):
            self._fetch(step, frame)
            return
        # As last time, maybe: then one job does what keeping, counting and fetching do in three.
        was_few = self._is_few(step, self._rows_before(step))
        if was_few and (found := fetched_if_few(frame, self._few)) is not None:
            self._local(step, *found)
            return
        self.bound.keep(frame)
        rows, is_short = measure(frame, step.columns)
        self.counts[f"step:{step.name}"] = rows
        if is_short and self._is_few(step, rows):
            self._fetch(step, frame)
        else:
            self.bound.workspace.step_rows.pop(self._place(step), None)
            # Spark leaves out what is joined with nothing, but only if it sees that before it runs.
            self.bound.view(f"step:{step.name}", frame if rows else frame.where("FALSE"))

    def _fetch(self, step: Step, frame: DataFrame) -> None:
        self._local(step, *fetched(frame))

    def _rows_before(self, step: Step) -> int | None:
        return self.bound.workspace.step_rows.get(self._place(step))

    def _place(self, step: Step) -> tuple[str, str]:
        return self.plan.table.incarnation, step.name

    def _local(self, step: Step, frame: DataFrame, rows: int) -> None:
        token = f"step:{step.name}"
        self.counts[token] = rows
        self.bound.workspace.step_rows[self._place(step)] = rows
        self.bound.view(token, frame)
        self._fetched.add(token)

    def _is_worth_fetching(self, step: Step, most: int | None) -> bool:
        """Not where rows that were fetched are only filtered: Spark does that when it plans."""
        is_row_wise = step.reads == step.bounds and len(step.reads) == 1
        return self._is_few(step, most) and not (is_row_wise and step.reads[0] in self._fetched)

    def _is_few(self, step: Step, rows: int | None) -> bool:
        """Whether so few rows come that the driver takes them: all that read them need no job."""
        return rows is not None and rows <= self._few and can_be_fetched(step.columns)

    @cached_property
    def _few(self) -> int:
        return few(self._row_bytes)

    @cached_property
    def _most_sent(self) -> int:
        """How many rows are sent to every task: what is sent passes through the driver."""
        most = self.bound.workspace.settings.broadcast_rows
        return min(most, _MOST_SENT_BYTES // max(1, self._row_bytes))

    @cached_property
    def _row_bytes(self) -> int:
        windows = self.plan.windows.values()
        return sum(row_bytes(self.bound.workspace, w.source) for w in windows)

    def _is_left_out(self, step: Step) -> bool:
        return step.only_if is not None and self._rows(step.only_if) == 0

    def _is_kept(self, step: Step) -> bool:
        match step.keep:
            case Keep.SHARED:
                rows = self.counts.get(f"step:{step.name}")
                return rows is None or rows > _SMALL
            case Keep.SIZED:
                if self._are_small(step.meets):
                    self.meets_little.add(step.name)
                    return False
            case Keep.PICKING | Keep.RESTRICTING:
                return not self._is_of_small(step)
        return step.keep is not Keep.NEVER

    def _is_of_small(self, step: Step) -> bool:
        if step.keep is Keep.RESTRICTING:
            return self._are_small(step.meets)
        return self._is_state_small

    def _are_small(self, sources: Iterable[str]) -> bool:
        return all(self._met_rows(key) <= _SMALL for key in sources)

    def _met_rows(self, key: str) -> int:
        """How many rows are read of a source, or of what is near in it."""
        kind, _, source = key.partition(":")
        return self._near_rows(source) if kind == "near" else self.source_rows(key)

    def _near_rows(self, source: str) -> int:
        found = self.near.count(self.bound, source) if self.near is not None else None
        return found if found is not None else self.source_rows(source)

    def source_rows(self, key: str) -> int:
        """How many rows a source has now, by its statistics."""
        window = self.plan.windows[key]
        return total_rows(self.bound.workspace, window.source, window.new)

    def state_rows(self) -> int:
        """How many rows the trace has, by its statistics."""
        table = self.plan.table
        return self.bound.workspace.trace(table).row_estimate(table.epoch)

    @cached_property
    def _is_state_small(self) -> bool:
        return self.state_rows() <= _SMALL

    @cached_property
    def _steps(self) -> dict[str, Step]:
        return {step.name: step for step in self.program.steps}

    def _rows(self, name: str) -> int | None:
        """How many rows a step has, or has at most; None when that is not known."""
        token = f"step:{name}"
        if name in self._made:
            self._made[name].result()
        elif token not in self.counts and name in self._steps:
            step = self._steps[name]
            most = 0 if self._is_left_out(step) else self._most(step)
            if most is not None:
                self.counts[token] = most
        return self.counts.get(token)

    def _most(self, step: Step) -> int | None:
        """As many rows as its bounds have together."""
        total = 0
        for token in step.bounds:
            kind, _, name = token.partition(":")
            rows = self._bound(kind, name, token)
            if rows is None:
                return None
            total += rows
        return total if step.bounds else None

    def _bound(self, kind: str, name: str, token: str) -> int | None:
        match kind:
            case "step":
                return self._rows(name)
            case "new":
                return self.source_rows(name)
            case "near":
                return self._near_rows(name)
        return self.counts.get(token)

    def _sql(self, step: Step) -> str:
        if step.of_small is not None and self._is_of_small(step):
            return self._filled(step.of_small)
        if step.near is None or self._is_near(step.near):
            return self._filled(step.sql)
        return self._filled(step.sql.replace(near_of(step.near.source), new_of(step.near.source)))

    def _is_near(self, near: Near) -> bool:
        """Whether a step reads the rows that the pass shares, instead of the source."""
        return self.near is not None and self.near.serves(self.bound, near)

    def _filled(self, sql: str) -> str:
        return TOKEN.sub(lambda match: self._token(match.group(1)), sql)

    def _note(self, rows: int) -> None:
        self.counts["step:last"] = rows

    def _token(self, token: str) -> str:
        kind, _, name = token.partition(":")
        match kind:
            case "hint":
                return self._hint(*name.split(":"))
            case "step":
                self._read(name)
            case _:
                with self._binding:
                    if token not in self.bound.views:
                        self._bind(kind, name)
        return self.bound.text(token)

    def _read(self, name: str) -> None:
        """See to it that a step can be read: wait for a kept one, put another in its place."""
        token = f"step:{name}"
        if name in self._made:
            self._made[name].result()
        elif token not in self.bound.inline and token not in self.bound.views:
            step = self._steps[name]
            is_empty = self._is_left_out(step)
            self.bound.inline[token] = empty_relation(step) if is_empty else self._sql(step)

    def _hint(self, alias: str, step: str, other: str = "", other_step: str = "") -> str:
        sides = [(self._rows(step), alias)]
        sides += [(self._rows(other_step), other)] if other_step else []
        small = [
            (rows, name) for rows, name in sides if rows is not None and rows <= self._most_sent
        ]
        if small:
            return f"/*+ BROADCAST({min(small)[1]}) */"
        return f"/*+ BROADCAST({other}) */" if other and step in self.meets_little else ""

    def _bind(self, kind: str, key: str) -> None:
        if kind == "state":
            bind_state(self.bound, self.plan.table)
        elif kind == "change":
            bind_change(self.bound, self.plan.windows[key])
        elif kind == "near":
            assert self.near is not None
            self.near.bind(self.bound, key, self.plan)
        else:
            window = self.plan.windows[key]
            bind_new(self.bound, window.source, window.new)


@contextmanager
def _threads(number: int) -> Iterator[Executor]:
    """A pool whose threads have ended afterwards; an interrupt does not wait, but ends the jobs."""
    pool = ThreadPoolExecutor(number, thread_name_prefix="runnel-step")
    is_waiting = True
    try:
        yield pool
    except KeyboardInterrupt:
        is_waiting = False
        raise
    finally:
        pool.shutdown(wait=is_waiting, cancel_futures=True)


def empty_relation(step: Step) -> str:
    """No rows of the step's columns."""
    items = [f"CAST(NULL AS {c.type}) AS {c.name}" for c in step.columns]
    return f"SELECT {', '.join(items) or '1 AS one'}, CAST(0 AS BIGINT) AS __w WHERE FALSE"
