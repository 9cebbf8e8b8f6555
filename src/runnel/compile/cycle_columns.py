"""The columns of tables that read each other: first from branches that read none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from runnel.compile.parse import parse
from runnel.compile.rewrites.determinism import written
from runnel.compile.sources import source_names, table_name
from runnel.errors import InvalidQuery
from runnel.model.columns import Column

Columns = tuple[Column, ...]
Ask = Callable[[str, Mapping[str, Columns]], Columns]
_TRIES = 6


def infer_columns(queries: Mapping[str, str], ask: Ask) -> dict[str, Columns]:
    """The columns of each query, by table key; `ask` tells a text's, given those of the tables."""
    known: dict[str, Columns] = {}
    while len(known) < len(queries):
        unknown = queries.keys() - known.keys()
        found = {
            key: _named(queries[key], ask(start, known))
            for key in sorted(unknown)
            if (start := _start(queries[key], unknown)) is not None
        }
        if not found:
            raise _unknowable(sorted(unknown))
        known |= found
    for _ in range(_TRIES):
        found = {key: ask(text, known) for key, text in queries.items()}
        if found == known:
            return known
        moving = [key for key in queries if found[key] != known[key]]
        known = found
    raise InvalidQuery(
        f"the column types of {_shown(moving)} do not come to rest",
        detail=f"the last ones were {', '.join(map(str, known[moving[0]]))}",
        hint="cast the columns that are computed: CAST(... AS ...)",
    )


def _start(query: str, unknown: frozenset[str] | set[str]) -> str | None:
    """The query without the branches of a UNION that read one of these; None if that is all."""
    tree: exp.Expr = parse(query).copy()
    for union in reversed(list(tree.find_all(exp.Union))):
        known = [side for side in (union.left, union.right) if not _reads(side, unknown)]
        if len(known) == 1:
            kept = known[0]
            if union is tree:
                tree = _with_ctes(kept, union)
            else:
                union.replace(_with_ctes(kept, union))
    text = written(_unnested(tree))
    return None if {n.key for n in source_names(text)} & unknown else text


def _with_ctes(kept: exp.Expr, union: exp.Expr) -> exp.Expr:
    kept = _unnested(kept).copy()
    with_ = union.args.get("with_")
    if with_ is not None and kept.args.get("with_") is None:
        kept.set("with_", with_.copy())
    return kept


def _unnested(node: exp.Expr) -> exp.Query:
    while isinstance(node, exp.Subquery) and not node.alias:
        node = node.this
    return node  # type: ignore[return-value]


def _reads(node: exp.Expr, unknown: frozenset[str] | set[str]) -> bool:
    return any(table_name(t).key in unknown for t in node.find_all(exp.Table))


def _named(query: str, columns: Columns) -> Columns:
    """The names are those of the first branch, also where it was left out."""
    first: exp.Expr = parse(query)
    while isinstance(first, (exp.SetOperation, exp.Subquery)):
        first = first.this
    names = first.named_selects if isinstance(first, exp.Select) else []
    if len(names) != len(columns) or "*" in names or not all(names):
        return columns
    return tuple(Column(n, c.type) for n, c in zip(names, columns, strict=True))


def _unknowable(keys: list[str]) -> InvalidQuery:
    return InvalidQuery(
        f"the columns of {_shown(keys)} cannot be known",
        detail="each of them reads another one in every part of its query",
        hint="give one of them a part that reads other tables only: SELECT ... UNION SELECT ...",
    )


def _shown(keys: list[str]) -> str:
    return ", ".join(key.removeprefix("default.") for key in keys)
