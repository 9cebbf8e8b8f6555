"""How much is kept of what happened to a table: what is young, some of the rest, not without end.

Past states are read, and statistics made, of what the history still has: a quick table makes
thousands of attempts in the time for which its files are kept.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlalchemy as sa

from runnel.catalog.schema import refresh_history

HISTORY_LEAST = 1000
"""So many attempts of a table are kept, however old they are."""
HISTORY_MOST = 10_000
"""Never more than these: a row takes a kilobyte."""
HISTORY_AGE = timedelta(days=1)
VERIFICATION_LIMIT = 100
_AT_ONCE = 100


def prune_history(connection: sa.Connection, table_id: str, before: datetime) -> None:
    """Forget the oldest attempts of a table that ended before an instant, a few at a time."""
    c = refresh_history.c
    of_table = c.table_id == table_id
    oldest = sa.select(c.id).where(of_table).order_by(c.id).limit(_AT_ONCE)
    # A quiet time is one attempt that grows: it is as old as its end.
    is_old = sa.func.coalesce(c.finished_at, c.started_at) < before
    superfluous = sa.and_(c.id <= _beyond(refresh_history, table_id, HISTORY_LEAST), is_old)
    too_many = c.id <= _beyond(refresh_history, table_id, HISTORY_MOST)
    connection.execute(
        refresh_history.delete().where(c.id.in_(oldest), sa.or_(superfluous, too_many))
    )


def prune(connection: sa.Connection, table: sa.Table, table_id: str, keep: int) -> None:
    """Delete all but the newest `keep` rows of one stream table."""
    of_table = table.c.table_id == table_id
    connection.execute(table.delete().where(of_table, table.c.id <= _beyond(table, table_id, keep)))


def _beyond(table: sa.Table, table_id: str, keep: int) -> sa.ScalarSelect[int]:
    """The newest row after the first `keep`; NULL when there are not so many."""
    of_table = sa.select(table.c.id).where(table.c.table_id == table_id)
    return of_table.order_by(table.c.id.desc()).limit(1).offset(keep).scalar_subquery()
