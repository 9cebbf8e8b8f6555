"""DISTINCT ON: the first row of each group, by row_number(); ties are broken by the whole row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from runnel.compile.postgres.relation import Relation
from runnel.compile.postgres.scope import write_name
from runnel.compile.postgres.values import Value, bare


class _Item(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> Value: ...
    @property
    def sql(self) -> str: ...


def distinct_on(
    items: Sequence[_Item], keys: list[str], order: list[str], body: str, limit: str
) -> Relation:
    """PostgreSQL keeps any row of those that are first; here it is always the same one."""
    ties = [f"{bare(i.value.sql)} NULLS LAST" for i in items if _is_orderable(i.value)]
    wanted = order + [t for t in ties if not any(_key(o) == _key(t) for o in order)]
    window = f"PARTITION BY {', '.join(keys)} ORDER BY {', '.join(wanted)}"
    inner = [item.sql for item in items] + [f"ROW_NUMBER() OVER ({window}) AS __place"]
    after = ""
    if limit and order:
        parts = [_split(key) for key in order]
        inner += [f"{text} AS __order{n}" for n, (text, _) in enumerate(parts)]
        after = " ORDER BY " + ", ".join(f"__order{n}{d}" for n, (_, d) in enumerate(parts))
    shown = ", ".join(write_name(item.name) for item in items)
    sql = f"SELECT {shown} FROM (SELECT {', '.join(inner)}{body}) AS q WHERE __place = 1"
    columns = tuple((item.name, item.value.type) for item in items)
    return Relation(sql + after + limit, columns)


def _is_orderable(value: Value) -> bool:
    return value.type.is_number or value.type.is_moment or value.type.kind in ("text", "bool")


def _split(key: str) -> tuple[str, str]:
    """The expression of a key, and its direction."""
    text, place = key[: key.rindex(" NULLS ")], key[key.rindex(" NULLS ") :]
    if text.endswith(" DESC"):
        return text.removesuffix(" DESC"), f" DESC{place}"
    return text, place


def _key(key: str) -> str:
    return _split(key)[0]
