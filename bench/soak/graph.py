"""The tables of a soak: a bank's ledger with diamonds, a chain of five, and a cycle over edges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

import runnel

BASES: dict[str, pa.Schema] = {
    "entries": pa.schema(
        [("transfer", pa.int64()), ("account", pa.int32()), ("amount", pa.int64())]
    ),
    "accounts": pa.schema([("id", pa.int32()), ("branch", pa.int32())]),
    "edges": pa.schema([("a", pa.int32()), ("b", pa.int32())]),
}
ACCOUNTS = 40
BRANCHES = 5
_WITHOUT_FEED = {"edges"}


@dataclass(frozen=True, slots=True)
class Made:
    """A stream table of the soak; `atomic` groups advance together."""

    query: str
    schedule: str
    atomic: bool = False


TABLES: dict[str, Made] = {
    # A diamond whose members are always seen together.
    "balances": Made(
        "SELECT account, SUM(amount) AS balance, COUNT(*) AS n FROM entries GROUP BY account", "30s"
    ),
    "transfers": Made(
        "SELECT transfer, SUM(amount) AS net, COUNT(*) AS legs FROM entries GROUP BY transfer", "30s"
    ),
    "books": Made(
        "SELECT b.balance, b.n, t.net, t.legs, t.transfers "
        "FROM (SELECT SUM(balance) AS balance, SUM(n) AS n FROM balances) b CROSS JOIN "
        "(SELECT SUM(net) AS net, SUM(legs) AS legs, COUNT(*) AS transfers FROM transfers) t",
        "30s", atomic=True,
    ),
    # A diamond that is right by the pins of a pass alone.
    "by_branch": Made(
        "SELECT a.branch, SUM(e.amount) AS total, COUNT(*) AS n "
        "FROM entries e JOIN accounts a ON e.account = a.id GROUP BY a.branch", "1m",
    ),
    "branches": Made(
        "SELECT p.branch, p.total, p.n, q.total AS other_total, q.n AS other_n FROM by_branch p JOIN "
        "(SELECT a.branch, SUM(b.balance) AS total, SUM(b.n) AS n FROM balances b "
        "JOIN accounts a ON b.account = a.id GROUP BY a.branch) q ON p.branch = q.branch", "1m",
    ),
    # A chain of five.
    "credits": Made("SELECT transfer, account, amount FROM entries WHERE amount > 0", "DOWNSTREAM"),
    "credited": Made(
        "SELECT account, SUM(amount) AS credit, COUNT(*) AS n FROM credits GROUP BY account",
        "DOWNSTREAM",
    ),
    "credited_branch": Made(
        "SELECT a.branch, SUM(c.credit) AS credit, SUM(c.n) AS n "
        "FROM credited c JOIN accounts a ON c.account = a.id GROUP BY a.branch", "DOWNSTREAM",
    ),
    "credited_some": Made("SELECT branch, credit, n FROM credited_branch WHERE n > 0", "DOWNSTREAM"),
    "credited_all": Made("SELECT SUM(credit) AS credit, SUM(n) AS n FROM credited_some", "1m"),
}  # fmt: skip

CYCLE: dict[str, str] = {
    "reach_even": "SELECT DISTINCT e.a, o.b FROM edges e JOIN reach_odd o ON e.b = o.a",
    "reach_odd": "SELECT a, b FROM edges UNION "
    "SELECT v.a, e.b FROM reach_even v JOIN edges e ON v.b = e.a",
}
NAMES = (*TABLES, *CYCLE)


def path_of(folder: Path, base: str) -> str:
    return str(folder / "warehouse" / base)


def rows(base: str, values: list[tuple[Any, ...]]) -> pa.Table:
    schema = BASES[base]
    columns = list(zip(*values, strict=True)) if values else [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def make_bases(folder: Path) -> None:
    """Empty base tables, except for the accounts."""
    accounts = [(i, i % BRANCHES) for i in range(ACCOUNTS)]
    for base in BASES:
        feed = {} if base in _WITHOUT_FEED else {"delta.enableChangeDataFeed": "true"}
        values: list[tuple[Any, ...]] = list(accounts) if base == "accounts" else []
        write_deltalake(path_of(folder, base), rows(base, values), configuration=feed)


def make_tables(lake: runnel.Lake) -> None:
    """Every stream table, in DIFFERENTIAL mode: a silent FULL would hide what is tested."""
    for name, made in TABLES.items():
        lake.create_stream_table(
            name, made.query, schedule=made.schedule, refresh_mode="DIFFERENTIAL",
            diamond_consistency="atomic" if made.atomic else None,
        )  # fmt: skip
    lake.create_stream_tables(CYCLE, schedule="1m", refresh_mode="DIFFERENTIAL")
