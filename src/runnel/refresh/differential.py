"""Running a change program: steps in order, small ones materialised once, the output appended."""

from __future__ import annotations

from dataclasses import dataclass, field

from runnel.compile.program import TOKEN, Program, Step
from runnel.refresh.bind import Binding, bind_change, bind_new, bind_state
from runnel.refresh.plan import RefreshPlan


@dataclass
class ProgramRun:
    """The state of one run: how many rows each step is known to have, or to have at most."""

    plan: RefreshPlan
    program: Program
    bound: Binding
    counts: dict[str, int] = field(default_factory=dict)

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
        sql = self._sql(step)
        if not step.materialize:
            self.bound.inline[token] = sql
            if step.bound in self.counts:
                self.counts[token] = self.counts[step.bound]
            return
        frame = self.bound.keep(self.bound.spark.sql(sql))
        self.counts[token] = frame.count()
        self.bound.view(token, frame)

    def _rows(self, name: str) -> int | None:
        return self.counts.get(f"step:{name}")

    def _sql(self, step: Step) -> str:
        return TOKEN.sub(lambda match: self._token(match.group(1)), step.sql)

    def _token(self, token: str) -> str:
        kind, _, name = token.partition(":")
        if kind == "hint":
            alias, _, of = name.partition(":")
            rows = self._rows(of)
            limit = self.bound.workspace.settings.broadcast_rows
            return f"/*+ BROADCAST({alias}) */" if rows is not None and rows <= limit else ""
        if token not in self.bound.views and token not in self.bound.inline:
            self._bind(kind, name)
        return self.bound.text(token)

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
