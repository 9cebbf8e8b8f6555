"""Spark's table functions for DuckDB: each becomes a lateral subquery over UNNEST.

A map cannot be told from an array here: `explode` with two names, `posexplode` with three, take a map.
"""

from __future__ import annotations

from sqlglot import exp

from runnel.compile.generators import Generator, generator_of

_WIDTH = {"explode": 1, "posexplode": 2}
_NAMES = {"explode": ["col"], "posexplode": ["pos", "col"]}


def adapt_select(select: exp.Select) -> exp.Select:
    """LATERAL VIEWs, and table functions of the select list that UNNEST cannot stand for, as joins."""
    for lateral in select.args.get("laterals") or []:
        function = generator_of(lateral.this)
        assert function is not None
        _join(select, function.outer(bool(lateral.args.get("outer"))), lateral.args["alias"])
    select.set("laterals", None)
    several = sum(_function(item) is not None for item in select.expressions) > 1
    for place, item in enumerate(list(select.expressions)):
        function = _function(item)
        if function is None or (not several and _is_unnest(function, item)):
            continue
        name = exp.to_identifier(f"_gen{place}")
        _join(select, function, exp.TableAlias(this=name, columns=_columns(item)))
        item.replace(exp.Column(this=exp.Star(), table=name.copy()))
    return select


def _function(item: exp.Expression) -> Generator | None:
    return generator_of(item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item)


def _is_unnest(function: Generator, item: exp.Expression) -> bool:
    """Whether sqlglot writes it right: UNNEST among the selected."""
    return function.function == "explode" and isinstance(item, exp.Alias) and not function.is_outer


def adapt_item(node: exp.Lateral | exp.Table) -> exp.Expression:
    """A table function in FROM, with or without LATERAL."""
    function = generator_of(node.this)
    if function is None:
        return node
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("_gen"))
    return exp.Lateral(this=_rows(function, alias), alias=_named(function, alias))


def _columns(item: exp.Expression) -> list[exp.Identifier]:
    if isinstance(item, exp.Aliases):
        return [name.copy() for name in item.expressions]
    return [exp.to_identifier(item.alias)] if item.alias else []


def _join(select: exp.Select, function: Generator, alias: exp.TableAlias) -> None:
    lateral = exp.Lateral(this=_rows(function, alias), alias=_named(function, alias))
    if not select.args.get("from_"):
        select.set("from_", exp.From(this=lateral))
    elif function.is_outer:
        select.append("joins", exp.Join(this=lateral, side="LEFT", on=exp.true()))
    else:
        select.append("joins", exp.Join(this=lateral, kind="CROSS"))


def _named(function: Generator, alias: exp.TableAlias) -> exp.TableAlias:
    names = [c.name for c in alias.args.get("columns") or []]
    if not names:
        names = _NAMES.get(function.function, [])
    if not names and function.function == "json_tuple":
        names = [f"c{i}" for i in range(len(function.arguments) - 1)]
    if not names and function.function == "stack":
        names = [f"col{i}" for i in range(len(_stacked(function)))]
    return exp.TableAlias(
        this=alias.this or exp.to_identifier("_view"), columns=[exp.to_identifier(n) for n in names]
    )


def _rows(function: Generator, alias: exp.TableAlias) -> exp.Subquery:
    width = len(alias.args.get("columns") or []) or _WIDTH.get(function.function, 0)
    return exp.Select(expressions=_items(function, width)).subquery(copy=False)


def _items(function: Generator, width: int) -> list[exp.Expression]:
    first = function.arguments[0]
    match function.function:
        case "stack":
            return [_unnest(exp.Array(expressions=cells)) for cells in _stacked(function)]
        case "json_tuple":
            return [
                _call("json_extract_string", first, exp.Literal.string(f"$.{name.name}"))
                for name in function.arguments[1:]
            ]
        case "inline":
            depth = exp.PropertyEQ(
                this=exp.to_identifier("max_depth"), expression=exp.Literal.number(2)
            )
            return [_call("UNNEST", first, depth)]
        case "posexplode":
            size = _call("len", _call("map_keys", first) if width == 3 else first)
            return [exp.cast(_unnest(_call("range", size)), "int"), *_elements(first, width - 1)]
    return _elements(first, width)


def _elements(collection: exp.Expression, width: int) -> list[exp.Expression]:
    if width == 2:
        return [_unnest(_call("map_keys", collection)), _unnest(_call("map_values", collection))]
    return [_unnest(collection)]


def _stacked(function: Generator) -> list[list[exp.Expression]]:
    """The cells of each column."""
    count = int(function.arguments[0].name)
    cells = list(function.arguments[1:])
    width = -(-len(cells) // count)
    cells += [exp.null()] * (count * width - len(cells))
    return [[cell.copy() for cell in cells[place::width]] for place in range(width)]


def _unnest(collection: exp.Expression) -> exp.Expression:
    return _call("UNNEST", collection)


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=[a.copy() for a in arguments])
