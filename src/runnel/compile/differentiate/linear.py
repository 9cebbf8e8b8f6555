"""Scan, project, filter, repeat, generate, union: change(f N) = f change(N).

Leaves: the change is projected to the columns the query uses, then netted. An update of columns
nobody uses disappears here, and so does a row that came and went, before an expression fails on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from runnel.algebra.nodes import Filter, Generate, Node, OneRow, Project, Repeat, Scan, UnionAll
from runnel.compile.differentiate.emitter import (
    Emitter,
    Reading,
    condition,
    consolidated,
    listed,
    names_of,
)
from runnel.compile.program import Netted, W, change_of, new_of, step_of
from runnel.compile.typing import has_floats, is_groupable
from runnel.model.columns import Column
from runnel.model.names import quote


def new_scan(emitter: Emitter, node: Scan) -> Reading:
    return Reading(
        f"SELECT {_scanned(node)} FROM {new_of(node.source)}",
        is_unit=emitter.kinds[node.source] == "delta",
    )


def change_scan(emitter: Emitter, node: Scan) -> str | None:
    if node.source not in emitter.changed:
        return None
    sql = f"SELECT {_scanned(node)} FROM {change_of(node.source)}"
    purpose = f"change of {node.source}"
    if node.source not in emitter.growing and can_be_netted(node.columns):
        sql, purpose = netted(node.columns, sql), f"{purpose}, netted"
    bound = f"change:{node.source}"
    nets = Netted(node.source, node.names)
    return emitter.add("change", purpose, sql, node.columns, bounds=[bound], nets=nets)


def can_be_netted(columns: Iterable[Column]) -> bool:
    """Whether equal rows can be found by grouping."""
    # The text of a struct or array that holds floats does not tell all its values apart.
    return all(
        c.type in ("float", "double") or (is_groupable(c.type) and not has_floats(c.type))
        for c in columns
    )


def netted(columns: tuple[Column, ...], sql: str) -> str:
    """Sum the weights of equal rows; -0.0 is not 0.0 here, since functions tell them apart."""
    floats = {c.name for c in columns if has_floats(c.type)}
    if not floats:
        return consolidated(sql, names_of(columns))
    keys = [f"CAST({n} AS STRING)" if n in floats else n for n in names_of(columns)]
    items = [f"ANY_VALUE({n}) AS {n}" if n in floats else n for n in names_of(columns)]
    rows = f"SELECT {listed(items, f'SUM({W}) AS {W}')} FROM ({sql})\nGROUP BY {listed(keys)}"
    return f"SELECT * FROM ({rows}) WHERE {W} <> 0"


def new_one_row(_emitter: Emitter, _node: OneRow) -> Reading:
    return Reading(f"SELECT CAST(1 AS BIGINT) AS {W}", is_unit=True)


def project_sql(node: Project, source: str) -> str:
    items = [f"{scalar} AS {column.name}" for column, scalar in node.items]
    return f"SELECT {listed(items, W)} FROM {source}"


def filter_sql(node: Filter, source: str) -> str:
    names = listed(names_of(node.columns), W)
    return f"SELECT {names} FROM {source} WHERE {condition(node.conjuncts)}"


def repeat_sql(node: Repeat, source: str) -> str:
    weight = f"{W} * ({node.times}) AS {W}"
    return f"SELECT {listed(names_of(node.columns), weight)} FROM {source} WHERE ({node.times}) > 0"


def generate_sql(node: Generate, source: str) -> str:
    names = names_of(node.generated)
    read = f"SELECT {listed(names_of(node.columns), W)} FROM {source}"
    function, alias = str(node.function), f"of_{names[0]}"
    if function.startswith("variant_explode("):
        # Spark knows it in FROM only.
        word = "_outer(" if node.is_outer else "("
        return f"{read},\nLATERAL {function.replace('(', word, 1)} AS {alias}({listed(names)})"
    view = "LATERAL VIEW OUTER" if node.is_outer else "LATERAL VIEW"
    return f"{read}\n{view} {function} {alias} AS {listed(names)}"


def union_sql(node: UnionAll, sources: list[tuple[Node, str]]) -> str:
    parts = []
    for child, source in sources:
        pairs = zip(child.columns, node.columns, strict=True)
        items = [f"{own.name} AS {target.name}" for own, target in pairs]
        parts.append(f"SELECT {listed(items, W)} FROM {source}")
    return "\nUNION ALL\n".join(parts)


def new_union(emitter: Emitter, node: UnionAll) -> Reading:
    readings = [(child, emitter.new(child)) for child in node.inputs]
    sql = union_sql(node, [(child, f"({r.sql})") for child, r in readings])
    return Reading(sql, all(r.is_unit for _, r in readings))


def change_union(emitter: Emitter, node: UnionAll) -> str | None:
    changes = [(child, emitter.change(child)) for child in node.inputs]
    present = [(child, step_of(name)) for child, name in changes if name is not None]
    if not present:
        return None
    return emitter.add("union", "changes of all branches", union_sql(node, present), node.columns)


def _scanned(node: Scan) -> str:
    pairs = zip(node.names, node.columns, strict=True)
    items = [f"{quote(name)} AS {column.name}" for name, column in pairs]
    return listed(items, W if node.weight == W else f"{node.weight} AS {W}")
