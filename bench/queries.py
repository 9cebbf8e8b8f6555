"""What is kept: each query, and how one would keep it by hand with MERGE."""

from __future__ import annotations

from dataclasses import dataclass

_JOIN = "FROM sales s JOIN customers c ON s.customer = c.id"
_JOIN3 = f"{_JOIN} JOIN products p ON s.product = p.id"


@dataclass(frozen=True, slots=True)
class Case:
    """`keys` identify a result row; `touched` is the condition on `q` that a change reaches it."""

    name: str
    query: str
    keys: tuple[str, ...]
    restricted: str


def cases() -> list[Case]:
    """`restricted` is the query over only the rows whose key a change touched; `{k}` names those."""
    touched = "SELECT id FROM {k} UNION SELECT s.id FROM sales s JOIN {kc} k ON s.customer = k.id"
    return [
        Case(
            "filter",
            "SELECT id, customer, amount FROM sales WHERE quantity > 8",
            ("id",),
            "SELECT id, customer, amount FROM sales WHERE quantity > 8 AND id IN (SELECT id FROM {k})",
        ),
        Case(
            "join",
            f"SELECT s.id, s.amount, c.name, c.segment {_JOIN}",
            ("id",),
            f"SELECT s.id, s.amount, c.name, c.segment {_JOIN} WHERE s.id IN ({touched})",
        ),
        Case(
            "join3",
            f"SELECT s.id, s.amount, c.segment, p.label {_JOIN3}",
            ("id",),
            f"SELECT s.id, s.amount, c.segment, p.label {_JOIN3} WHERE s.id IN ({touched})",
        ),
        Case(
            "aggregate",
            "SELECT bucket, COUNT(*) AS n, SUM(amount) AS total FROM sales GROUP BY bucket",
            ("bucket",),
            "SELECT bucket, COUNT(*) AS n, SUM(amount) AS total FROM sales "
            "WHERE bucket IN (SELECT bucket FROM {k}) GROUP BY bucket",
        ),
        Case(
            "join_aggregate",
            f"SELECT s.bucket, c.segment, COUNT(*) AS n, SUM(s.amount * s.quantity) AS total {_JOIN} "
            "GROUP BY s.bucket, c.segment",
            ("bucket", "segment"),
            f"SELECT s.bucket, c.segment, COUNT(*) AS n, SUM(s.amount * s.quantity) AS total {_JOIN} "
            "WHERE s.bucket IN (SELECT bucket FROM {k} UNION SELECT s.bucket FROM sales s "
            "JOIN {kc} k ON s.customer = k.id) GROUP BY s.bucket, c.segment",
        ),
        Case(
            "distinct",
            "SELECT DISTINCT bucket, product FROM sales",
            ("bucket", "product"),
            "SELECT DISTINCT bucket, product FROM sales WHERE bucket IN (SELECT bucket FROM {k})",
        ),
    ]


def chain() -> list[tuple[str, str]]:
    """Three stream tables on top of each other; `{p}` is the way's prefix."""
    return [
        ("chain1", f"SELECT s.id, s.bucket, s.amount, c.segment {_JOIN} WHERE s.quantity > 2"),
        ("chain2", "SELECT bucket, segment, COUNT(*) AS n, SUM(amount) AS total "
                   "FROM {p}chain1 GROUP BY bucket, segment"),
        ("chain3", "SELECT segment, MAX(total) AS best, COUNT(*) AS n FROM {p}chain2 "
                   "WHERE n > 3 GROUP BY segment"),
    ]  # fmt: skip
