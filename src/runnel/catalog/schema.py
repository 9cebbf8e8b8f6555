"""The tables of the catalog, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa


class Instant(sa.TypeDecorator[datetime]):
    """A point in time: stored in UTC without zone, because SQLite has no zones."""

    impl = sa.DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


_JSON = sa.JSON(none_as_null=True)
_COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_SECONDS: sa.Double[float] = sa.Double()

METADATA = sa.MetaData()

meta = sa.Table(
    "meta",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)

stream_tables = sa.Table(
    "stream_tables",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("schema_name", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("query", sa.Text, nullable=False),
    sa.Column("mode", sa.Text, nullable=False),
    sa.Column("schedule_text", sa.Text),
    sa.Column("schedule_seconds", _SECONDS),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("comment", sa.Text),
    sa.Column("incarnation", sa.Text, nullable=False),
    sa.Column("layout", _JSON, nullable=False),
    sa.Column("settings", _JSON, nullable=False),
    sa.Column("not_differential", sa.Text),
    sa.Column("frontier", _JSON),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("since", sa.BigInteger, nullable=False),
    sa.Column("trace_version", sa.BigInteger, nullable=False),
    sa.Column("reinitialize", sa.Text),
    sa.Column("consecutive_errors", sa.Integer, nullable=False),
    sa.Column("last_error", sa.Text),
    sa.Column("options", _JSON, nullable=False),
    sa.Column("resolution", _JSON),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("altered_at", Instant, nullable=False),
    sa.Column("grouped", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("retry_at", Instant),
    sa.Column("work_seconds", _SECONDS),
    sa.Column("wait_seconds", _SECONDS),
)


def _owning_table() -> sa.Column[str]:
    reference = sa.ForeignKey(stream_tables.c.id, ondelete="CASCADE")
    return sa.Column("table_id", sa.Text, reference, nullable=False)


dependencies = sa.Table(
    "dependencies",
    METADATA,
    _owning_table(),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("source_key", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("name_key", sa.Text, nullable=False),
    sa.Column("schema_name", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("location", sa.Text),
    sa.Column("source_id", sa.Text),
    sa.Column("columns", _JSON, nullable=False),
    sa.PrimaryKeyConstraint("table_id", "position"),
    sa.Index("dependencies_by_name", "name_key"),
)

base_tables = sa.Table(
    "base_tables",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("schema_name", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("location", sa.Text, nullable=False),
)

refresh_history = sa.Table(
    "refresh_history",
    METADATA,
    sa.Column("id", _COUNTER, primary_key=True, autoincrement=True),
    _owning_table(),
    sa.Column("started_at", Instant, nullable=False),
    sa.Column("finished_at", Instant),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("action", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("rows_inserted", sa.BigInteger),
    sa.Column("rows_deleted", sa.BigInteger),
    sa.Column("change_rows", sa.BigInteger),
    sa.Column("seconds", _SECONDS),
    sa.Column("phases", _JSON, nullable=False),
    sa.Column("predicted", _JSON, nullable=False),
    sa.Column("data_timestamp", Instant),
    sa.Column("frontier", _JSON),
    sa.Column("epoch", sa.BigInteger),
    sa.Column("error", sa.Text),
    sa.Column("error_code", sa.Text),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Index("refresh_history_by_table", "table_id", "id"),
    # An id of a pruned attempt must not come back as another attempt.
    sqlite_autoincrement=True,
)

verifications = sa.Table(
    "verifications",
    METADATA,
    sa.Column("id", _COUNTER, primary_key=True, autoincrement=True),
    _owning_table(),
    sa.Column("at", Instant, nullable=False),
    sa.Column("ok", sa.Boolean, nullable=False),
    sa.Column("missing", sa.BigInteger, nullable=False),
    sa.Column("unexpected", sa.BigInteger, nullable=False),
    sa.Column("sample", _JSON, nullable=False),
    sa.Column("frontier", _JSON),
    sa.Column("seconds", _SECONDS),
    sa.Index("verifications_by_table", "table_id", "id"),
)

# `open_key` is that of a condition while it lasts: unique, so that it begins once among all
# processes. No reference to a stream table: alerts may be about a source, and outlive a table.
alerts = sa.Table(
    "alerts",
    METADATA,
    sa.Column("id", _COUNTER, primary_key=True, autoincrement=True),
    sa.Column("at", Instant, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("table_key", sa.Text),
    sa.Column("table_name", sa.Text),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("facts", _JSON, nullable=False),
    sa.Column("ended_at", Instant),
    sa.Column("open_key", sa.Text, unique=True),
    sa.Index("alerts_by_table", "table_key", "id"),
    sa.Index("alerts_by_time", "at"),
    sqlite_autoincrement=True,
)

# What an open snapshot reads; `resource` is the lease that lives as long as the snapshot.
holds = sa.Table(
    "holds",
    METADATA,
    sa.Column("resource", sa.Text, nullable=False),
    _owning_table(),
    sa.Column("incarnation", sa.Text, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("opened_at", _SECONDS, nullable=False),
    sa.PrimaryKeyConstraint("resource", "table_id"),
    sa.Index("holds_by_table", "table_id"),
)

# A free lease keeps its row, with no token, so that the fencing number goes on growing.
leases = sa.Table(
    "leases",
    METADATA,
    sa.Column("resource", sa.Text, primary_key=True),
    sa.Column("token", sa.Text),
    sa.Column("owner", sa.Text),
    sa.Column("fencing", sa.BigInteger, nullable=False),
    sa.Column("acquired_at", _SECONDS, nullable=False),
    sa.Column("expires_at", _SECONDS, nullable=False),
)
