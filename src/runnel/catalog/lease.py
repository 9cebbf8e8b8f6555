"""Leases: one holder of a resource at a time, over threads, processes and machines."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from runnel.catalog import owner as owners
from runnel.catalog.engine import reading, writing
from runnel.catalog.owner import Owner
from runnel.catalog.schema import leases
from runnel.errors import Busy, RunnelError

_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Holding:
    """A lease as the catalog has it."""

    token: str | None
    owner: Owner | None
    fencing: int
    acquired_at: float
    expires_at: float


class Lease:
    """A resource that is held; `fencing` is greater than that of every earlier holder."""

    def __init__(self, leases: Leases, resource: str, token: str, fencing: int) -> None:
        self._leases = leases
        self.resource = resource
        self.token = token
        self.fencing = fencing

    def check(self) -> None:
        """Raise when someone else took the lease over: then nothing may be written any more."""
        held = self._leases.look(self.resource)
        if held is None or held.token != self.token:
            raise lost(self.resource, held)

    def renew(self) -> bool:
        """Push the expiry away; False when the lease was lost."""
        return self._leases.renew(self)


class Leases:
    """Takes leases in the name of one owner."""

    def __init__(
        self,
        engine: sa.Engine,
        owner: Owner,
        ttl: float = 30.0,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._engine = engine
        self.owner = owner
        self.ttl = ttl
        self._clock = clock
        self._pause = pause

    @contextmanager
    def hold(self, resource: str, wait: float = 0.0) -> Iterator[Lease]:
        """Hold a resource during a block; Busy when it is not free within `wait` seconds."""
        lease = self._take_within(resource, wait)
        stop = threading.Event()
        renewing = threading.Thread(
            target=self._keep_renewing, args=(lease, stop), name=f"lease {resource}", daemon=True
        )
        renewing.start()
        try:
            yield lease
        finally:
            stop.set()
            renewing.join()
            self._release(lease)

    def look(self, resource: str) -> Holding | None:
        """Who holds the resource, if anyone ever did."""
        with reading(self._engine) as connection:
            query = sa.select(leases).where(leases.c.resource == resource)
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        owner = Owner.parse(row["owner"]) if row["owner"] else None
        return Holding(row["token"], owner, row["fencing"], row["acquired_at"], row["expires_at"])

    def is_held(self, resource: str) -> bool:
        """Whether someone holds the resource now who can still be at work."""
        held = self.look(resource)
        return held is not None and not self._is_free(held)

    def forget(self, resource: str) -> None:
        """Remove the row of a resource that has a name of its own and will not come again."""
        with suppress(RunnelError), writing(self._engine) as connection:
            connection.execute(leases.delete().where(leases.c.resource == resource))

    def is_alive(self, owner: Owner) -> bool:
        """Whether an owner can still be at work: its process runs, or elsewhere, its lease does."""
        if owner.is_local:
            return owners.is_alive(owner)
        with reading(self._engine) as connection:
            query = sa.select(leases.c.resource).where(
                leases.c.owner == str(owner), leases.c.expires_at > self._clock()
            )
            return connection.execute(query).first() is not None

    def renew(self, lease: Lease) -> bool:
        return self._change(lease, expires_at=self._clock() + self.ttl)

    def _take_within(self, resource: str, wait: float) -> Lease:
        deadline = self._clock() + wait
        while True:
            try:
                return self._take(resource)
            except Busy:
                if self._clock() >= deadline:
                    raise
            self._pause(_POLL_SECONDS)

    def _take(self, resource: str) -> Lease:
        while True:
            held = self.look(resource)
            if held is not None and not self._is_free(held):
                raise _busy(resource, held)
            lease = Lease(self, resource, uuid.uuid4().hex, held.fencing + 1 if held else 1)
            if self._replace(lease, held) if held else self._insert(lease):
                return lease
            # Someone was quicker, but may have let go again already.

    def _is_free(self, held: Holding) -> bool:
        if held.token is None or held.owner is None or held.expires_at <= self._clock():
            return True
        return not owners.is_alive(held.owner)

    def _insert(self, lease: Lease) -> bool:
        try:
            with writing(self._engine) as connection:
                connection.execute(
                    leases.insert(), {"resource": lease.resource, **self._row(lease)}
                )
        except IntegrityError:
            return False
        return True

    def _replace(self, lease: Lease, held: Holding) -> bool:
        """Take over only what was looked at: a lease renewed in between stays where it is."""
        as_seen = sa.and_(
            leases.c.resource == lease.resource,
            leases.c.fencing == held.fencing,
            leases.c.expires_at == held.expires_at,
            leases.c.token.is_not_distinct_from(held.token),
        )
        with writing(self._engine) as connection:
            change = leases.update().where(as_seen).values(self._row(lease))
            return connection.execute(change).rowcount == 1

    def _row(self, lease: Lease) -> dict[str, Any]:
        now = self._clock()
        return {
            "token": lease.token,
            "owner": str(self.owner),
            "fencing": lease.fencing,
            "acquired_at": now,
            "expires_at": now + self.ttl,
        }

    def _change(self, lease: Lease, **values: Any) -> bool:
        mine = sa.and_(leases.c.resource == lease.resource, leases.c.token == lease.token)
        with writing(self._engine) as connection:
            return connection.execute(leases.update().where(mine).values(values)).rowcount == 1

    def _release(self, lease: Lease) -> None:
        # What was done under the lease is done; one that cannot be given back will expire.
        with suppress(RunnelError):
            self._change(lease, token=None, owner=None)

    def _keep_renewing(self, lease: Lease, stop: threading.Event) -> None:
        while not stop.wait(self.ttl / 3):
            try:
                if not lease.renew():
                    return
            except RunnelError:
                # The catalog may come back before the lease runs out; check() will tell.
                continue


def require(connection: sa.Connection, lease: Lease) -> None:
    """Raise when a lease was lost; until the transaction ends nobody can take it over."""
    query = sa.select(leases.c.token).where(leases.c.resource == lease.resource)
    if connection.execute(query.with_for_update()).scalar() != lease.token:
        raise lost(lease.resource, None)


def _busy(resource: str, held: Holding | None) -> Busy:
    return Busy(
        f"{resource} is busy",
        detail=f"held by {_holder(held)}",
        hint="try again when it has finished",
    )


def lost(resource: str, held: Holding | None) -> Busy:
    """What is told to one whose lease someone else has taken over."""
    return Busy(
        f"the lease on {resource} was lost",
        detail=f"now held by {_holder(held)}; this process was paused or cut off for too long",
        hint="try again: nothing of this attempt was kept",
    )


def _holder(held: Holding | None) -> str:
    if held is None or held.owner is None:
        return "nobody"
    since = datetime.fromtimestamp(held.acquired_at, UTC)
    return f"{held.owner.description} since {since:%Y-%m-%d %H:%M:%S} UTC"
