"""ORDER BY: in PostgreSQL NULL is larger than everything, in Spark it is smaller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.compile.postgres.casts import typed
from runnel.compile.postgres.values import Value, bare, refused

if TYPE_CHECKING:
    from runnel.compile.postgres.expressions import Expressions


def order_list(x: Expressions, items: Sequence[exp.Expr]) -> str:
    """The keys of a window, or of an aggregate's own order."""
    return ", ".join(key_text(x.of(item.this), item) for item in items)


def key_text(value: Value, item: exp.Expr) -> str:
    """One key with its direction and the place of its NULLs spelt out."""
    return f"{bare(orderable(value).sql)}{direction(item)}"


def direction(item: exp.Expr) -> str:
    if not isinstance(item, exp.Ordered) or item.args.get("with_fill"):
        raise refused(f"ORDER BY {item.sql('postgres')}")
    down = " DESC" if item.args.get("desc") else ""
    return f"{down} NULLS {'FIRST' if item.args.get('nulls_first') else 'LAST'}"


def orderable(value: Value) -> Value:
    value = typed(value)
    if value.type.kind in ("json", "array"):
        raise refused(f"ORDER BY {value.type}")
    return value
