"""What is kept: each query, and what one needs to keep it by hand with MERGE."""

from __future__ import annotations

from dataclasses import dataclass

_JOIN = "FROM sales s JOIN customers c ON s.customer = c.id"
_JOIN3 = f"{_JOIN} JOIN products p ON s.product = p.id"
_SALE_IDS = (
    "SELECT id FROM changed_sales "
    "UNION SELECT s.id FROM sales s JOIN changed_customers k ON s.customer = k.id"
)


@dataclass(frozen=True, slots=True)
class Case:
    """`touched` yields the keys of result rows that a change may have reached; `restricted` is the
    query over only those."""

    name: str
    query: str
    keys: tuple[str, ...]
    others: tuple[str, ...]
    touched: str
    restricted: str


def cases() -> list[Case]:
    # A sale can move between cities by its own change, or because its customer moved.
    cities = (
        "SELECT city FROM changed_customers "
        "UNION SELECT c.city FROM changed_sales s JOIN customers c ON s.customer = c.id"
    )
    kept = "SELECT id, customer, amount FROM sales WHERE quantity > 8"
    joined = f"SELECT s.id, s.amount, c.name, c.segment {_JOIN}"
    joined3 = f"SELECT s.id, s.amount, c.segment, p.label {_JOIN3}"
    by_bucket = "SELECT bucket, COUNT(*) AS n, SUM(amount) AS total FROM sales"
    by_city = f"SELECT c.city, COUNT(*) AS n, SUM(s.amount * s.quantity) AS total {_JOIN}"
    pairs = "SELECT DISTINCT bucket, product FROM sales"
    only = "WHERE bucket IN (SELECT bucket FROM ({touched}))"
    return [
        Case("filter", kept, ("id",), ("customer", "amount"),
             "SELECT DISTINCT id FROM changed_sales", f"{kept} AND id IN ({{touched}})"),
        Case("join", joined, ("id",), ("amount", "name", "segment"),
             _SALE_IDS, f"{joined} WHERE s.id IN ({{touched}})"),
        Case("join3", joined3, ("id",), ("amount", "segment", "label"),
             _SALE_IDS, f"{joined3} WHERE s.id IN ({{touched}})"),
        Case("aggregate", f"{by_bucket} GROUP BY bucket", ("bucket",), ("n", "total"),
             "SELECT DISTINCT bucket FROM changed_sales", f"{by_bucket} {only} GROUP BY bucket"),
        Case("join_aggregate", f"{by_city} GROUP BY c.city", ("city",), ("n", "total"),
             cities, f"{by_city} WHERE c.city IN ({{touched}}) GROUP BY c.city"),
        Case("distinct", pairs, ("bucket", "product"), (),
             "SELECT DISTINCT bucket, product FROM changed_sales",
             f"{pairs} {only}"),
    ]  # fmt: skip


def chain() -> list[tuple[str, str]]:
    """Three stream tables on top of each other; `{p}` is the way's prefix."""
    return [
        ("chain1", chain_base().query),
        ("chain2", "SELECT city, segment, COUNT(*) AS n, SUM(amount) AS total "
                   "FROM {p}chain1 GROUP BY city, segment"),
        ("chain3", "SELECT segment, MAX(total) AS best, COUNT(*) AS n FROM {p}chain2 "
                   "WHERE n > 3 GROUP BY segment"),
    ]  # fmt: skip


def chain_base() -> Case:
    """The first of the chain, which is as large as its sources."""
    query = f"SELECT s.id, s.amount, c.city, c.segment {_JOIN} WHERE s.quantity > 2"
    return Case(
        "chain1", query, ("id",), ("amount", "city", "segment"),
        _SALE_IDS, f"{query} AND s.id IN ({{touched}})",
    )  # fmt: skip
