"""Questions to the catalog; nothing here changes it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import sqlalchemy as sa

from runnel.catalog.engine import reading
from runnel.catalog.migrate import FUNCTION_KEY, REVISION_KEY
from runnel.catalog.records import (
    Attempt,
    BaseTable,
    Failure,
    Progress,
    StreamTable,
    Verification,
)
from runnel.catalog.rows import (
    Row,
    alert_from_row,
    attempt_from_row,
    base_table_from_row,
    table_from_row,
    verification_from_row,
)
from runnel.catalog.schema import (
    alerts,
    base_tables,
    dependencies,
    meta,
    refresh_history,
    stream_tables,
    verifications,
)
from runnel.model.alerts import Alert, AlertKind
from runnel.model.closing import Closing
from runnel.model.refresh import Outcome, RefreshAction, RefreshMode, TableState


class Reader(Closing):
    """Reads the catalog; safe to share between threads."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    def close(self) -> None:
        self.engine.dispose()

    def tables(self) -> tuple[StreamTable, ...]:
        """All stream tables, by name."""
        return self._tables(sa.true())

    def find(self, key: str) -> StreamTable | None:
        """The stream table with this `TableName.key`."""
        return next(iter(self._tables(stream_tables.c.key == key)), None)

    def keys_of_mode(self, mode: RefreshMode) -> frozenset[str]:
        """The keys of the stream tables with a refresh mode."""
        query = sa.select(stream_tables.c.key).where(stream_tables.c.mode == mode.value)
        return frozenset(row["key"] for row in self._rows(query))

    def get(self, table_id: str) -> StreamTable | None:
        return next(iter(self._tables(stream_tables.c.id == table_id)), None)

    def dependents(self, table_id: str) -> tuple[StreamTable, ...]:
        """The stream tables that read this one directly."""
        return self._tables(stream_tables.c.id.in_(dependents_of([table_id])))

    def history(self, key: str | None = None, limit: int = 20) -> tuple[Attempt, ...]:
        """Refresh attempts of one table, or of all, newest first."""
        return self._attempts(sa.true() if key is None else stream_tables.c.key == key, limit)

    def running(self) -> tuple[Attempt, ...]:
        """The attempts that are not over, or whose owner died."""
        return self._attempts(refresh_history.c.outcome == Outcome.RUNNING.value, None)

    def recent_costs(self, table_id: str, limit: int = 20) -> tuple[Attempt, ...]:
        """The attempts that tell what refreshing costs: those that succeeded and did the work.

        Also a change that turned out not to touch the result: to find that out was the work.
        """
        c = refresh_history.c
        worked = [RefreshAction.FULL.value, RefreshAction.DIFFERENTIAL.value]
        looked = sa.and_(c.action == RefreshAction.NO_DATA.value, c.change_rows > 0)
        done = sa.and_(c.table_id == table_id, c.outcome == Outcome.OK.value)
        return self._attempts(sa.and_(done, sa.or_(c.action.in_(worked), looked)), limit)

    def failures(self, table_id: str, limit: int) -> tuple[Failure, ...]:
        """The newest attempts of a table that failed, as far back as nothing went well between.

        One that was left out went neither well nor wrong.
        """
        c = refresh_history.c
        is_left_out = c.action.is_not_distinct_from(RefreshAction.SKIP.value)
        went_well = sa.and_(c.outcome == Outcome.OK.value, sa.not_(is_left_out))
        last = sa.select(sa.func.max(c.id)).where(c.table_id == table_id, went_well)
        query = (
            sa.select(c.started_at, c.error_code)
            .where(c.table_id == table_id, c.outcome == Outcome.FAILED.value)
            .where(c.id > sa.func.coalesce(last.scalar_subquery(), 0))
            .order_by(c.id.desc())
            .limit(limit)
        )
        return tuple(Failure(row["started_at"], row["error_code"]) for row in self._rows(query))

    def alerts(
        self,
        key: str | None = None,
        kind: AlertKind | None = None,
        limit: int | None = 50,
        *,
        lasting: bool = False,
    ) -> tuple[Alert, ...]:
        """Alerts newest first, all without a `limit`; `lasting`: only what is not over."""
        query = sa.select(alerts).order_by(alerts.c.id.desc()).limit(limit)
        if key is not None:
            query = query.where(alerts.c.table_key == key)
        if kind is not None:
            query = query.where(alerts.c.kind == kind.value)
        if lasting:
            query = query.where(alerts.c.open_key.is_not(None))
        return tuple(alert_from_row(row) for row in self._rows(query))

    def progress(self) -> tuple[Progress, ...]:
        """How far every table has come: cheap enough to be asked each second."""
        with reading(self.engine) as connection:
            return progress_in(connection)

    def base_tables(self) -> tuple[BaseTable, ...]:
        rows = self._rows(sa.select(base_tables).order_by(base_tables.c.key))
        return tuple(base_table_from_row(row) for row in rows)

    def revision(self) -> int:
        """A number that grows with each change of definitions, in whatever process."""
        with reading(self.engine) as connection:
            query = sa.select(meta.c.value).where(meta.c.key == REVISION_KEY)
            return int(connection.execute(query).scalar_one())

    def function_mark(self, key: str) -> int | None:
        """What `record_function` was last told of a function."""
        with reading(self.engine) as connection:
            query = sa.select(meta.c.value).where(meta.c.key == FUNCTION_KEY + key)
            return connection.execute(query).scalar_one_or_none()

    def functions(self, prefix: str) -> frozenset[str]:
        """The functions of which `record_function` was told whose keys begin so, without that."""
        query = sa.select(meta.c.key).where(meta.c.key.startswith(FUNCTION_KEY + prefix))
        return frozenset(r["key"].removeprefix(FUNCTION_KEY + prefix) for r in self._rows(query))

    def last_verification(self, table_id: str) -> Verification | None:
        query = (
            sa.select(verifications)
            .where(verifications.c.table_id == table_id)
            .order_by(verifications.c.id.desc())
            .limit(1)
        )
        return next((verification_from_row(row) for row in self._rows(query)), None)

    def _rows(self, query: sa.Select[Any]) -> list[Row]:
        with reading(self.engine) as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _tables(self, condition: sa.ColumnElement[bool]) -> tuple[StreamTable, ...]:
        found = sa.select(stream_tables).where(condition).order_by(stream_tables.c.key)
        ids = sa.select(stream_tables.c.id).where(condition)
        edges = (
            sa.select(dependencies)
            .where(dependencies.c.table_id.in_(ids))
            .order_by(dependencies.c.table_id, dependencies.c.position)
        )
        with reading(self.engine) as connection:
            rows = [dict(row) for row in connection.execute(found).mappings()]
            sources = _grouped(connection.execute(edges).mappings()) if rows else {}
        return tuple(table_from_row(row, sources.get(row["id"], ())) for row in rows)

    def _attempts(
        self, condition: sa.ColumnElement[bool], limit: int | None
    ) -> tuple[Attempt, ...]:
        query = (
            sa.select(
                refresh_history,
                stream_tables.c.schema_name.label("table_schema"),
                stream_tables.c.name.label("table_name"),
            )
            .join(stream_tables, refresh_history.c.table_id == stream_tables.c.id)
            .where(condition)
            .order_by(refresh_history.c.id.desc())
            .limit(limit)
        )
        return tuple(attempt_from_row(row) for row in self._rows(query))


def progress_in(connection: sa.Connection) -> tuple[Progress, ...]:
    """How far every table has come, inside a transaction."""
    names = [name for name in Progress.__slots__ if name != "frontier"]
    text = sa.cast(stream_tables.c.frontier, sa.Text).label("frontier")
    query = sa.select(*(stream_tables.c[name] for name in names), text)
    rows = connection.execute(query).mappings()
    return tuple(Progress(**{**row, "state": TableState(row["state"])}) for row in rows)


def dependents_of(table_ids: list[str]) -> sa.Select[tuple[str]]:
    """The ids of stream tables that read one of these."""
    names = sa.select(stream_tables.c.key).where(stream_tables.c.id.in_(table_ids))
    return sa.select(dependencies.c.table_id).where(
        dependencies.c.kind == "stream", dependencies.c.name_key.in_(names)
    )


def _grouped(edges: sa.MappingResult) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for edge in edges:
        groups[edge["table_id"]].append(dict(edge))
    return groups
