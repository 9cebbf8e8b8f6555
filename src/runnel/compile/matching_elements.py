"""LEFT JOIN LATERAL f(...) ON a condition.

    L left-join f(xs) on c  =  outer f(filter(xs, x -> c)) over L        each row by itself
    L left-join f(..) on c  =  M + pad(L anti M)                         M = the pairs that fulfil c

The second where the function takes no collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from runnel.algebra.nodes import Filter, Generate, Node
from runnel.algebra.scalar import Scalar, join, wrap
from runnel.compile.generators import Generator
from runnel.compile.scalars import resolve, to_scalar
from runnel.compile.scope import Scope
from runnel.compile.subqueries_in_on import with_unmatched
from runnel.compile.type_text import element_of, fields_of
from runnel.model.names import quote

if TYPE_CHECKING:
    from runnel.compile.build import Builder

# No names of the user's, so that none of their lambdas hides them.
_ELEMENT, _PLACE, _KEY, _VALUE = "__element", "__place", "__key_of", "__value_of"


def keep_matching(
    builder: Builder,
    made: Generate,
    generator: Generator,
    seen: Scope,
    conditions: Sequence[Scalar],
) -> Node:
    """What was made of each row where that fulfils the conditions; a row without any is padded.

    `seen` is what the function's arguments see.
    """
    function = _filtered(builder, made, generator, seen, _conjunction(conditions))
    if function is not None:
        return replace(made, function=function, is_outer=True)
    pairs = Filter(replace(made, is_outer=generator.is_outer), tuple(conditions))
    construct = f"LEFT JOIN LATERAL {generator.function}() with a condition"
    return with_unmatched(builder, pairs, [made.input], made.columns, construct)


def _filtered(
    builder: Builder, made: Generate, generator: Generator, seen: Scope, on: Scalar
) -> Scalar | None:
    """The call over the elements that fulfil a condition; None for a function of no collection."""
    if generator.function not in ("explode", "posexplode", "inline"):
        return None
    (collection,) = (to_scalar(resolve(a, seen)) for a in generator.arguments)
    if not collection.reads <= {c.name for c in made.input.columns}:
        return None
    names = [column.name for column in made.generated]
    match generator.function, len(names):
        case "explode", 1:
            bound = _bound(on, names, [_ELEMENT])
            return _call("explode(filter(", collection, f", {_ELEMENT} -> ", bound, "))")
        case "explode", _:
            bound = _bound(on, names, [_KEY, _VALUE])
            return _call(
                "explode(map_filter(", collection, f", ({_KEY}, {_VALUE}) -> ", bound, "))"
            )
        case "posexplode", width:
            fields = ["pos", "col"] if width == 2 else ["pos", "key", "value"]
            collection = _placed(collection, fields)
        case _:
            (type_,) = builder.types_of([collection])
            fields = [name for name, _ in fields_of(element_of(type_) or "") or ()]
    bound = _bound(on, names, [f"{_ELEMENT}.{quote(field)}" for field in fields])
    return _call("inline(filter(", collection, f", {_ELEMENT} -> ", bound, "))")


def _placed(collection: Scalar, fields: Sequence[str]) -> Scalar:
    """The elements of an array, or the entries of a map, as structs that begin with their place."""
    texts = {"pos": _PLACE, "col": _ELEMENT}
    items = ", ".join(f"'{f}', {texts.get(f, f'{_ELEMENT}.{f}')}" for f in fields)
    if "key" in fields:
        collection = wrap("map_entries(", collection, ")")
    return wrap("transform(", collection, f", ({_ELEMENT}, {_PLACE}) -> named_struct({items}))")


def _bound(on: Scalar, columns: Sequence[str], texts: Sequence[str]) -> Scalar:
    """The condition with other texts in the place of the generated columns."""
    pairs = zip(columns, texts, strict=True)
    return on.substitute({column: Scalar.constant(text) for column, text in pairs})


def _call(before: str, collection: Scalar, between: str, on: Scalar, after: str) -> Scalar:
    return join(wrap(before, collection, between), wrap("", on, after))


def _conjunction(conditions: Sequence[Scalar]) -> Scalar:
    both = wrap("(", conditions[0], ")")
    for other in conditions[1:]:
        both = join(both, wrap(" AND (", other, ")"))
    return both
