"""Running a change program: steps in order, some kept for the next ones, the output appended."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from runnel.compile.program import TOKEN, Keep, Program, Step
from runnel.refresh.bind import Binding, bind_change, bind_new, bind_state
from runnel.refresh.plan import RefreshPlan
from runnel.refresh.rounds import run_rounds
from runnel.refresh.windows import total_rows

# Reading so many rows twice, or sending them to every task, costs less than a job.
_SMALL = 100_000


@dataclass
class ProgramRun:
    """The state of one run: how many rows each step is known to have, or to have at most."""

    plan: RefreshPlan
    program: Program
    bound: Binding
    counts: dict[str, int] = field(default_factory=dict)
    meets_little: set[str] = field(default_factory=set)

    def output(self) -> str | None:
        """Run every step but the last; the last one's SQL, or None when it must be empty."""
        for key in self.plan.changed:
            self.counts[f"change:{key}"] = self.plan.windows[key].rows
        for step in self.program.steps[:-1]:
            self._run(step)
            if step.name == self.program.empty_if_empty and self._rows(step.name) == 0:
                return None
        return self._sql(self.program.output)

    def _run(self, step: Step) -> None:
        token = f"step:{step.name}"
        if step.only_if is not None and self._rows(step.only_if) == 0:
            self.bound.inline[token] = empty_relation(step)
            self.counts[token] = 0
            return
        if step.again is not None:
            rows, self.counts[token] = run_rounds(self.bound, step, self._filled, self._note)
            self.bound.view(token, rows)
            return
        sql = self._sql(step)
        if step.bound in self.counts:
            self.counts[token] = self.counts[step.bound]
        if not self._is_kept(step):
            self.bound.inline[token] = sql
            return
        frame = self.bound.keep(self.bound.spark.sql(sql))
        self.counts[token] = frame.count()
        # Spark leaves out what is joined with nothing, but only if it sees that before it runs.
        self.bound.view(token, frame if self.counts[token] else frame.where("FALSE"))

    def _is_kept(self, step: Step) -> bool:
        match step.keep:
            case Keep.SHARED:
                rows = self._rows(step.name)
                return rows is None or rows > _SMALL
            case Keep.SIZED:
                if all(self.source_rows(key) <= _SMALL for key in step.meets):
                    self.meets_little.add(step.name)
                    return False
            case Keep.PICKING:
                return not self._is_state_small
        return step.keep is not Keep.NEVER

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

    def _rows(self, name: str) -> int | None:
        return self.counts.get(f"step:{name}")

    def _sql(self, step: Step) -> str:
        if step.of_small is not None and self._is_state_small:
            return self._filled(step.of_small)
        return self._filled(step.sql)

    def _filled(self, sql: str) -> str:
        return TOKEN.sub(lambda match: self._token(match.group(1)), sql)

    def _note(self, rows: int) -> None:
        self.counts["step:last"] = rows

    def _token(self, token: str) -> str:
        kind, _, name = token.partition(":")
        if kind == "hint":
            return self._hint(*name.split(":"))
        if token not in self.bound.views and token not in self.bound.inline:
            self._bind(kind, name)
        return self.bound.text(token)

    def _hint(self, alias: str, step: str, other: str | None = None) -> str:
        rows = self._rows(step)
        if rows is not None and rows <= self.bound.workspace.settings.broadcast_rows:
            return f"/*+ BROADCAST({alias}) */"
        return f"/*+ BROADCAST({other}) */" if other and step in self.meets_little else ""

    def _bind(self, kind: str, key: str) -> None:
        if kind == "state":
            bind_state(self.bound, self.plan.table)
        elif kind == "change":
            bind_change(self.bound, self.plan.windows[key])
        else:
            window = self.plan.windows[key]
            bind_new(self.bound, window.source, window.new)


def empty_relation(step: Step) -> str:
    """No rows of the step's columns."""
    items = [f"CAST(NULL AS {c.type}) AS {c.name}" for c in step.columns]
    return f"SELECT {', '.join(items) or '1 AS one'}, CAST(0 AS BIGINT) AS __w WHERE FALSE"
