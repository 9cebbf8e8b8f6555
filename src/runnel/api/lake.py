"""The lake with all its verbs; here those that change contents. Each delegates to its room."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from typing import Any, overload

from runnel import sql as statements
from runnel.api.defining import Defining
from runnel.api.opened import interruptible, name_of
from runnel.api.reading import Reading
from runnel.api.speaking import carry_out
from runnel.lake.frames import DataFrame
from runnel.model.names import TableName
from runnel.model.results import CompactResult, RefreshResult, VerifyResult
from runnel.model.tabular import Rows
from runnel.refresh.compaction import compact_table
from runnel.refresh.verify import verify_table
from runnel.schedule.health import Finding, examine
from runnel.schedule.loop import Onlooker
from runnel.schedule.order import refresh_order
from runnel.schedule.passes import Notice, refresh_pass
from runnel.schedule.run import run_lake
from runnel.schedule.running import run_statement, write_table


class Lake(Defining, Reading):
    """A folder of Delta tables and the stream tables over them."""

    @overload
    def refresh(self, name: str | TableName, *, notice: Notice | None = None) -> RefreshResult: ...
    @overload
    def refresh(
        self, name: None = None, *, notice: Notice | None = None
    ) -> Rows[RefreshResult]: ...
    def refresh(
        self, name: str | TableName | None = None, *, notice: Notice | None = None
    ) -> RefreshResult | Rows[RefreshResult]:
        """Refresh a table after everything above it; without a name, everything in order.

        Returns a RefreshResult, or Rows of them without a name. `notice` is called with each.
        """
        target = self._find(name) if name is not None else None
        results = self._refreshed({target.name.key} if target else None, notice)
        if target is not None:
            return results[target.name.key]
        return Rows(results.values(), RefreshResult.COLUMNS)

    @interruptible
    def _refreshed(self, keys: set[str] | None, notice: Notice | None) -> dict[str, RefreshResult]:
        results = refresh_pass(self._workspace, keys, notice or (lambda result: None))
        self._keeper.sync_if_open()
        return results

    def refresh_order(self, name: str | TableName | None = None) -> tuple[str, ...]:
        """The tables that `refresh` with the same argument goes through, in that order."""
        keys = {self._find(name).name.key} if name is not None else None
        tables = {t.name.key: t for t in self._workspace.catalog.tables()}
        default = self._workspace.settings.diamond_consistency
        order = [tables[k] for k in refresh_order(tables.values(), keys, default)]
        return tuple(str(t.name) for t in order if not t.is_hidden)

    def run(
        self,
        *,
        once: bool = False,
        workers: int | None = None,
        stop: Event | None = None,
        onlooker: Onlooker | None = None,
    ) -> Rows[RefreshResult]:
        """Keep every table within its schedule, until `stop` is set or Ctrl-C is pressed.

        With `once` refresh what is due now and return what was done. `workers` tables are refreshed
        side by side, by default `max_concurrent_refreshes`.
        """
        return run_lake(
            self._workspace, once=once, workers=workers, stop=stop, onlooker=onlooker,
            notice_names=self._keeper.sync_if_open,
        )  # fmt: skip

    @interruptible
    def verify(self, name: str | TableName) -> VerifyResult:
        """Compare a table's contents with its query at the pinned source versions."""
        return verify_table(self._workspace, self._find(name))

    @interruptible
    def compact(self, name: str | TableName) -> CompactResult:
        """Rewrite a table's history that no consumer needs any more into one sorted run."""
        wait = self._workspace.settings.busy_wait_seconds
        return compact_table(self._workspace, self._find(name), wait)

    @interruptible
    def doctor(self, *, fix: bool = False) -> Rows[Finding]:
        """Whether the lake is in order, as `runnel doctor` tells it; `fix` removes leftovers."""
        return examine(self._workspace, fix=fix)

    @interruptible
    def write(
        self, frame: DataFrame, table: str | TableName, *, mode: str = "append",
        options: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Write a frame to a base table; the IMMEDIATE tables below it follow before it returns."""
        write_table(self._workspace, self._keeper, frame, name_of(table), mode, options or {})

    @interruptible
    def sql(self, text: str) -> Any:
        """Run a statement: STREAM TABLE statements here, everything else by Spark.

        What comes back depends on the text: a DataFrame from Spark, else what the verb gives.
        """
        statement = statements.parse_statement(text)
        if isinstance(statement, statements.SparkStatement):
            return run_statement(
                self._workspace, self._keeper, statement.text, statement.verb, statement.target
            )
        return carry_out(self, statement)
