"""What is recorded of refreshes: progress, history, alerts. Each call is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Unpack

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from runnel.catalog.alerts import prune_alerts, record_alert
from runnel.catalog.engine import writing
from runnel.catalog.migrate import FUNCTION_KEY, REVISION_KEY
from runnel.catalog.owner import Owner, is_alive
from runnel.catalog.pruning import HISTORY_AGE, VERIFICATION_LIMIT, prune, prune_history
from runnel.catalog.reader import Reader
from runnel.catalog.reader import progress_in as _progress
from runnel.catalog.records import (
    FORGIVEN,
    AttemptFields,
    QuietMove,
    StreamTable,
    Verification,
)
from runnel.catalog.rows import (
    frontier_to_json,
    verification_to_row,
)
from runnel.catalog.schema import (
    meta,
    refresh_history,
    stream_tables,
    verifications,
)
from runnel.errors import NotFound
from runnel.model.alerts import Alert
from runnel.model.frontier import Frontier
from runnel.model.refresh import Outcome, RefreshAction


class Recorder(Reader):
    """Reads the catalog and records what happens; safe to share between threads.

    `history_age`: attempts that ended longer ago may be forgotten.
    """

    history_age = HISTORY_AGE

    def record_progress(
        self,
        table_id: str,
        frontier: Frontier,
        epoch: int,
        since: int,
        trace_version: int,
        *,
        incarnation: str | None = None,
        is_noticed: bool = False,
        known_epoch: int | None = None,
        done: str | None = None,
    ) -> bool:
        """Note how far a table has come; not when it has become another incarnation since.

        `is_noticed`: other processes renew what they derived from it. `known_epoch`: only if that
        is still its epoch. `done`: the reason for which it was computed anew.
        """
        row: dict[str, Any] = {
            "frontier": frontier_to_json(frontier),
            "epoch": epoch,
            "since": since,
            "trace_version": trace_version,
        }
        if done is not None:
            row["reinitialize"] = left_to_do(done)
        condition = stream_tables.c.id == table_id
        if incarnation is not None:
            condition &= stream_tables.c.incarnation == incarnation
        if known_epoch is not None:
            condition &= stream_tables.c.epoch == known_epoch
        return self._update_where(condition, row, is_noticed)

    def record_tidied(
        self, table: StreamTable, since: int, trace_version: int, *, is_noticed: bool = False
    ) -> bool:
        """Note another storage of the same contents; not when the table has moved on since.

        How far it has come is left alone: without news that is moved without the lease.
        """
        c = stream_tables.c
        same = sa.and_(c.id == table.id, c.incarnation == table.incarnation, c.epoch == table.epoch)
        row = {"since": since, "trace_version": trace_version}
        return self._update_where(same, row, is_noticed)

    def _update_where(
        self, condition: sa.ColumnElement[bool], row: dict[str, Any], is_noticed: bool
    ) -> bool:
        change = stream_tables.update().where(condition).values(row)
        with self.changing() if is_noticed else writing(self.engine) as connection:
            return connection.execute(change).rowcount == 1

    def record_no_data(
        self,
        table: StreamTable,
        frontier: Frontier,
        owner: Owner | str,
        seconds: float,
        reason: str,
    ) -> bool:
        """Note that nothing changed, in one transaction; False when the table moved meanwhile."""
        return self.record_all_no_data([(table, frontier)], owner, seconds, reason)

    def record_all_no_data(
        self,
        moves: Sequence[tuple[StreamTable, Frontier]],
        owner: Owner | str,
        seconds: float,
        reason: str,
    ) -> bool:
        """Like `record_no_data`, for several tables together or for none of them."""
        c = stream_tables.c
        with writing(self.engine) as connection:
            for table, _ in moves:
                current = sa.select(c.incarnation, c.epoch, c.frontier).where(c.id == table.id)
                found = connection.execute(current.with_for_update()).first()
                known = (table.incarnation, table.epoch, frontier_to_json(table.frontier))
                if found is None or tuple(found) != known:
                    return False
            for table, frontier in moves:
                values = {"frontier": frontier_to_json(frontier), **FORGIVEN}
                connection.execute(stream_tables.update().where(c.id == table.id).values(values))
                row = _no_data_row(table, frontier, owner, seconds / len(moves), reason)
                connection.execute(refresh_history.insert(), row)
                self._prune(connection, table.id)
            return True

    def record_quiet(self, moves: Sequence[QuietMove], owner: Owner | str) -> set[str]:
        """Note of many tables at once that nothing changed; the ids of those that had not moved.

        The entry of a table that has been quiet for a while is prolonged, so that idle tables do
        not drive the work out of the history. Errors are forgotten: what failed is readable again.
        """
        now = datetime.now(UTC)
        with writing(self.engine) as connection:
            stored = {p.id: p for p in _progress(connection)}
            still = [m for m in moves if (p := stored.get(m.table_id)) and m.stands_at(p)]
            _each(connection, _MOVE, [m.row for m in still])
            _forgive(connection, [m.table_id for m in still if stored[m.table_id].is_failing])
            _each(connection, _PROLONG, [m.prolonged(now) for m in still if m.attempt])
            new = [m for m in still if not m.attempt]
            _each(connection, refresh_history.insert(), [m.begun(now, str(owner)) for m in new])
            return {m.table_id for m in still}

    def quiet_attempts(self, table_ids: Sequence[str]) -> dict[str, int]:
        """The newest attempt of each table, where it is one that found nothing to do."""
        c = refresh_history.c
        newest = sa.select(sa.func.max(c.id)).where(c.table_id.in_(table_ids)).group_by(c.table_id)
        query = sa.select(c.table_id, c.id).where(c.id.in_(newest))
        query = query.where(c.action == RefreshAction.NO_DATA.value)
        return {row["table_id"]: row["id"] for row in self._rows(query)}

    def record_skip(
        self, table_id: str, owner: Owner | str, reason: str, *, once: bool = False
    ) -> None:
        """Note a refresh that was left out; `once`: not again right after the same."""
        now = datetime.now(UTC)
        row = {
            "table_id": table_id, "owner": str(owner), "started_at": now, "finished_at": now,
            "outcome": Outcome.OK.value, "action": RefreshAction.SKIP.value, "reason": reason,
            "seconds": 0.0, "phases": {}, "predicted": {},
        }  # fmt: skip
        try:
            with writing(self.engine) as connection:
                if once and _last_told(connection, table_id) == (row["action"], reason):
                    return
                connection.execute(refresh_history.insert(), row)
                self._prune(connection, table_id)
        except IntegrityError as error:
            raise gone(table_id) from error

    def start_attempt(
        self,
        table_id: str,
        owner: Owner | str,
        *,
        started_at: datetime | None = None,
        predicted: dict[str, float] | None = None,
    ) -> int:
        """Open an attempt and give its number."""
        row = {
            "table_id": table_id,
            "owner": str(owner),
            "started_at": started_at or datetime.now(UTC),
            "outcome": Outcome.RUNNING.value,
            "phases": {},
            "predicted": predicted or {},
        }
        try:
            with writing(self.engine) as connection:
                insert = refresh_history.insert().returning(refresh_history.c.id)
                attempt = int(connection.execute(insert, row).scalar_one())
                self._prune(connection, table_id)
                return attempt
        except IntegrityError as error:
            raise gone(table_id) from error

    def finish_attempt(
        self,
        attempt_id: int,
        outcome: Outcome,
        *,
        finished_at: datetime | None = None,
        **fields: Unpack[AttemptFields],
    ) -> None:
        with writing(self.engine) as connection:
            finish(connection, attempt_id, outcome, finished_at, fields)

    def complete_attempt(
        self, attempt_id: int, table_id: str, committed_at: datetime, fields: AttemptFields
    ) -> bool:
        """Close an attempt whose process ended after its commit, as that tells it; if it is open.

        Also one that someone has noted as interrupted since.
        """
        c = refresh_history.c
        is_open = c.outcome.in_([Outcome.RUNNING.value, Outcome.INTERRUPTED.value])
        query = sa.select(c.started_at).where(c.id == attempt_id, c.table_id == table_id, is_open)
        with writing(self.engine) as connection:
            started = connection.execute(query).scalar()
            if started is None:
                return False
            seconds = max(0.0, (committed_at - started).total_seconds())
            fields = {**fields, "seconds": seconds}
            finish(connection, attempt_id, Outcome.OK, committed_at, fields)
            change = refresh_history.update().where(c.id == attempt_id)
            connection.execute(change.values(error=None, error_code=None))
            return True

    def note_phase(self, table_id: str, epoch: int, phase: str, seconds: float) -> None:
        """Add to the phases of the refresh that wrote an epoch, after it is done."""
        c = refresh_history.c
        wrote = sa.and_(c.table_id == table_id, c.epoch == epoch, c.outcome == Outcome.OK.value)
        with writing(self.engine) as connection:
            query = sa.select(c.id, c.phases).where(wrote).order_by(c.id).limit(1)
            row = connection.execute(query).first()
            if row is not None:
                phases = {**row.phases, phase: round(seconds, 4)}
                change = refresh_history.update().where(c.id == row.id).values(phases=phases)
                connection.execute(change)

    def close_interrupted(self, is_alive: Callable[[Owner], bool] = is_alive) -> tuple[int, ...]:
        """Close the attempts whose owner died while they ran."""
        query = sa.select(refresh_history.c.id, refresh_history.c.owner).where(
            refresh_history.c.outcome == Outcome.RUNNING.value
        )
        dead = [row["id"] for row in self._rows(query) if not is_alive(Owner.parse(row["owner"]))]
        if not dead:
            return ()
        with writing(self.engine) as connection:
            connection.execute(
                refresh_history.update()
                .where(refresh_history.c.id.in_(dead))
                .where(refresh_history.c.outcome == Outcome.RUNNING.value)
                .values(
                    outcome=Outcome.INTERRUPTED.value,
                    finished_at=datetime.now(UTC),
                    error="the process ended during the refresh",
                )
            )
        return tuple(dead)

    def record_verification(self, result: Verification) -> None:
        try:
            with writing(self.engine) as connection:
                connection.execute(verifications.insert(), verification_to_row(result))
                prune(connection, verifications, result.table_id, VERIFICATION_LIMIT)
        except IntegrityError as error:
            raise gone(result.table_id) from error

    def record_alert(self, alert: Alert) -> Alert | None:
        """Store an alert; None when it tells nothing new."""
        return record_alert(self.engine, alert)

    def prune_alerts(self, before: datetime) -> int:
        return prune_alerts(self.engine, before)

    def record_function(self, key: str, mark: int) -> None:
        """Note what a function of the user's own does now."""
        name = FUNCTION_KEY + key
        with writing(self.engine, durable=True) as connection:
            connection.execute(meta.delete().where(meta.c.key == name))
            connection.execute(meta.insert().values(key=name, value=mark))

    def _prune(self, connection: sa.Connection, table_id: str) -> None:
        prune_history(connection, table_id, datetime.now(UTC) - self.history_age)

    @contextmanager
    def changing(self) -> Iterator[sa.Connection]:
        """A durable transaction that others notice.

        Counting first also locks the counter's row, so that on PostgreSQL, too, such transactions
        come one after the other and may check before they write.
        """
        with writing(self.engine, durable=True) as connection:
            connection.execute(
                meta.update().where(meta.c.key == REVISION_KEY).values(value=meta.c.value + 1)
            )
            yield connection


def _no_data_row(
    table: StreamTable, frontier: Frontier, owner: Owner | str, seconds: float, reason: str
) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "table_id": table.id, "owner": str(owner), "started_at": now, "finished_at": now,
        "outcome": Outcome.OK.value, "action": RefreshAction.NO_DATA.value, "reason": reason,
        "rows_inserted": 0, "rows_deleted": 0, "change_rows": 0, "seconds": seconds,
        "phases": {}, "predicted": {}, "frontier": frontier.to_json(), "epoch": table.epoch,
        "data_timestamp": frontier.data_timestamp,
    }  # fmt: skip


def left_to_do(done: str) -> sa.ColumnElement[str | None]:
    """Why a table has still to be computed anew, after it was for a reason.

    One that came up meanwhile stays.
    """
    c = stream_tables.c
    return sa.case((c.reinitialize == done, None), else_=c.reinitialize)


def finish(
    connection: sa.Connection,
    attempt_id: int,
    outcome: Outcome,
    finished_at: datetime | None,
    fields: AttemptFields,
) -> None:
    """Close an attempt inside a transaction."""
    row: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if (frontier := fields.get("frontier")) is not None:
        row["frontier"] = frontier.to_json()
        row.setdefault("data_timestamp", frontier.data_timestamp)
    row |= {"outcome": outcome.value, "finished_at": finished_at or datetime.now(UTC)}
    change = refresh_history.update().where(refresh_history.c.id == attempt_id)
    if outcome is Outcome.INTERRUPTED:
        # What it had committed someone else may have found, and completed it.
        change = change.where(refresh_history.c.outcome == Outcome.RUNNING.value)
    connection.execute(change.values(row))


_MOVE = (
    stream_tables.update()
    .where(stream_tables.c.id == sa.bindparam("of_table"))
    .values(frontier=sa.bindparam("to_frontier"), wait_seconds=sa.bindparam("to_wait"))
)
_PROLONG = (
    refresh_history.update()
    .where(refresh_history.c.id == sa.bindparam("of_attempt"))
    .values(
        {name: sa.bindparam(f"new_{name}") for name in ("finished_at", "data_timestamp", "phases")}
    )
)


def _forgive(connection: sa.Connection, table_ids: list[str]) -> None:
    if table_ids:
        change = stream_tables.update().where(stream_tables.c.id.in_(table_ids))
        connection.execute(change.values(FORGIVEN))


def _each(connection: sa.Connection, statement: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(statement, rows)


def _last_told(connection: sa.Connection, table_id: str) -> tuple[str | None, str | None]:
    """The action of a table's newest attempt, and its reason."""
    c = refresh_history.c
    query = sa.select(c.action, c.reason).where(c.table_id == table_id)
    found = connection.execute(query.order_by(c.id.desc()).limit(1)).first()
    return (None, None) if found is None else (found.action, found.reason)


def gone(table_id: str) -> NotFound:
    """What is told of a table that is not there any more."""
    return NotFound(
        f"stream table {table_id} is no longer in the catalog", detail="another process dropped it"
    )
