"""Spark's aggregate functions: how each is kept, and its calls in the form they are kept in.

A function that is not kept by counts, sums or extremes is opaque: its text over input columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import count

from sqlglot import exp

from runnel.compile.dialect import SparkSql
from runnel.compile.in_order import folded
from runnel.compile.lifting import with_arguments
from runnel.compile.moments import written_out
from runnel.compile.scalars import mark, marked
from runnel.errors import InvalidQuery, NotDifferentiable


class Way(StrEnum):
    """How an aggregate function is kept."""

    COUNTS = "counts and exact sums"
    MOMENTS = "counts and exact sums of squares and products"
    EXTREME = "the extreme, recomputed when it is lost"
    RECOMPUTED = "touched groups recomputed"
    IN_ORDER = "touched groups recomputed; below another operator in the order of the values"
    AT_ROOT = "touched groups recomputed, at the top of the query only"
    GROUPING = "a constant of each grouping set"
    REFUSED = "FULL only"
    INVALID = "refused"


_NAMES = {
    Way.COUNTS: "count count_if regr_count sum avg mean",
    Way.EXTREME: "min max bool_and every bool_or any some",
    Way.RECOMPUTED: "approx_count_distinct array_agg bit_and bit_or bit_xor bitmap_and_agg "
    "bitmap_construct_agg bitmap_or_agg collect_list collect_set count_min_sketch listagg max_by "
    "median min_by mode percentile percentile_cont percentile_disc schema_of_variant_agg "
    "string_agg try_avg try_sum",
    Way.MOMENTS: "corr covar_pop covar_samp regr_avgx regr_avgy regr_intercept regr_r2 regr_slope "
    "regr_sxx regr_sxy regr_syy std stddev stddev_pop stddev_samp var_pop var_samp variance",
    Way.IN_ORDER: "kurtosis skewness",
    Way.AT_ROOT: "approx_percentile histogram_numeric percentile_approx vector_avg vector_sum",
    Way.GROUPING: "grouping grouping_id",
    Way.REFUSED: "approx_top_k approx_top_k_accumulate approx_top_k_combine hll_sketch_agg "
    "hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float "
    "kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float measure "
    "theta_intersection_agg theta_sketch_agg theta_union_agg tuple_intersection_agg_double "
    "tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer "
    "tuple_union_agg_double tuple_union_agg_integer",
    Way.INVALID: "any_value first first_value last last_value",
}
WAYS = {name: way for way, names in _NAMES.items() for name in names.split()}
# Where floating point numbers are added up, in the order in which rows arrive.
ADDING_FLOATS = (Way.MOMENTS, Way.IN_ORDER)
# Another name for one of the functions whose state is known.
_KNOWN = {
    **{name: name for name in ("count", "sum", "avg", "min", "max")},
    **dict.fromkeys(("count_if", "regr_count"), "count"),
    **dict.fromkeys(("bool_and", "every"), "min"),
    **dict.fromkeys(("bool_or", "any", "some"), "max"),
    "mean": "avg",
}
AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_SORTS = (exp.ArraySort,)
_WITHIN = (*AROUND, *_SORTS, exp.Where, exp.Order, exp.Ordered, exp.Distinct)


@dataclass(frozen=True, slots=True)
class CallForm:
    """A function and its arguments; an opaque one's `text` has the mark `argN` for the Nth.

    `in_order` is written likewise: the value computed in one order of the rows, if it can be.
    With `is_moment` the text is the function of just its arguments, which sums may stand for.
    """

    function: str
    arguments: tuple[exp.Expr, ...]
    text: exp.Expr | None = None
    in_order: exp.Expr | None = None
    is_moment: bool = False


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is a call of an aggregate function, with all that belongs to the call."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return True
    if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
        return is_aggregate(node.this)
    if isinstance(node, _SORTS):
        return _is_sorted_collection(node)
    if isinstance(node, exp.AggFunc):
        return True
    if isinstance(node, exp.Any):
        return not isinstance(node.parent, (exp.Like, exp.ILike))
    if not isinstance(node, exp.Func):
        return False
    name = node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
    return name in WAYS or ("_agg" in name and not _is_of_aggregates(node))


def _is_of_aggregates(node: exp.Expr) -> bool:
    """Whether an aggregate is among the arguments: then it cannot be one itself."""
    return any(n is not node and is_aggregate(n) for n in node.walk())


def spark_name(node: exp.Expr) -> str:
    """What Spark calls the function."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql(SparkSql).partition("(")[0].lower()


def call_form(node: exp.Expr) -> CallForm:
    """The form in which a call, its columns resolved, is kept; raises where it cannot be."""
    chain = _chain(node)
    function = chain[-1]
    if any(is_aggregate(n) for n in node.walk() if not any(n is own for own in chain)):
        raise InvalidQuery("an aggregate function inside another", hint="use a subquery")
    name = spark_name(function)
    _refuse(name)
    if name in _KNOWN and function is node:
        return _known(name, function, None)
    if name in _KNOWN and isinstance(node, exp.Filter) and function is node.this:
        return _known(name, function, node.expression.this)
    if WAYS.get(name) is Way.MOMENTS:
        return _moment(name, chain) or _opaque(name, node)
    return _opaque(name, node)


def in_order(node: exp.Expr) -> exp.Expr | None:
    """A call as a fold over its sorted values; None for a function that has no such form."""
    function, condition, is_plain = _filtered(_chain(node))
    if not is_plain:
        return None
    return folded(spark_name(function), *_arguments(function), condition)


def by_sums(node: exp.Expr, types: tuple[str, ...]) -> exp.Expr:
    """A call, of arguments of types that allow it, computed from exact sums."""
    function, condition, _ = _filtered(_chain(node))
    arguments, _ = _arguments(function)
    return written_out(spark_name(function), _where(arguments, condition), types)


def _refuse(name: str) -> None:
    way = WAYS.get(name, Way.REFUSED)
    if way in (Way.REFUSED, Way.INVALID):
        raise NotDifferentiable(
            f"the aggregate function {name}()",
            detail="its value depends on the order in which the rows arrive"
            if name in WAYS and name != "measure"
            else None,
            hint="use refresh mode FULL or AUTO",
        )
    if way is Way.GROUPING:
        raise InvalidQuery(f"{name}() is for GROUPING SETS, CUBE and ROLLUP")


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """What belongs to the call, FILTER, WITHIN GROUP and the like, and last the function itself."""
    chain = [node]
    while isinstance(chain[-1], (*AROUND, *_SORTS)):
        chain.append(chain[-1].this)
    return chain


def _filtered(chain: list[exp.Expr]) -> tuple[exp.Expr, exp.Expr | None, bool]:
    """The function, the condition of its FILTER, and whether nothing else belongs to the call."""
    function, around = chain[-1], chain[:-1]
    is_plain = len(around) <= 1 and all(isinstance(n, exp.Filter) for n in around)
    condition = around[0].expression.this if around and is_plain else None
    return function, condition, is_plain


def _is_sorted_collection(node: exp.Expr) -> bool:
    """Whether it sorts what an aggregate collected, in the elements' own order."""
    inner = node.this
    while isinstance(inner, AROUND):
        inner = inner.this
    own_order = not isinstance(node.args.get("expression"), exp.Lambda)
    return own_order and isinstance(inner, (exp.ArrayAgg, exp.ArrayUniqueAgg))


def _known(name: str, function: exp.Expr, condition: exp.Expr | None) -> CallForm:
    """FILTER becomes CASE, since each of these functions ignores NULLs."""
    arguments, is_distinct = _arguments(function)
    known = _KNOWN[name]
    if name == "count_if":
        arguments = [exp.case().when(arguments[0].copy(), exp.Literal.number(1))]
    if known in ("min", "max"):
        is_distinct = False
    known, arguments = _simplify_count(f"{known}{'_distinct' * is_distinct}", arguments, condition)
    fold = folded(known.removesuffix("_distinct"), [mark("arg0")], is_distinct, None)
    return CallForm(known, tuple(arguments), in_order=fold)


def _arguments(function: exp.Expr) -> tuple[list[exp.Expr], bool]:
    found = list(function.iter_expressions())
    if found and isinstance(found[0], exp.Distinct):
        return list(found[0].expressions), True
    return found, False


def _simplify_count(
    function: str, arguments: list[exp.Expr], condition: exp.Expr | None
) -> tuple[str, list[exp.Expr]]:
    if function == "count" and all(isinstance(a, (exp.Star, exp.Literal)) for a in arguments):
        if condition is None:
            return "count_star", []
        arguments = [exp.Literal.number(1)]
    elif function == "count" and len(arguments) > 1:
        all_set = exp.and_(*(a.copy().is_(exp.null()).not_() for a in arguments))
        arguments = [exp.case().when(all_set, exp.Literal.number(1))]
    return function, _where(arguments, condition)


def _where(arguments: list[exp.Expr], condition: exp.Expr | None) -> list[exp.Expr]:
    if condition is None:
        return arguments
    return [exp.case().when(condition.copy(), a.copy()) for a in arguments]


def _moment(name: str, chain: list[exp.Expr]) -> CallForm | None:
    """A function of one or two numbers; None with DISTINCT, or where one is a constant."""
    function, condition, is_plain = _filtered(chain)
    arguments, is_distinct = _arguments(function)
    reads = all(any(marked(n) for n in a.walk()) for a in arguments)
    if is_distinct or not is_plain or not reads:
        return None
    numbers = count()
    text = with_arguments(function.copy(), lambda _: mark(f"arg{next(numbers)}"))
    return CallForm(name, tuple(_where(arguments, condition)), text, in_order(text), is_moment=True)


def _opaque(name: str, node: exp.Expr) -> CallForm:
    """Each argument that reads columns becomes a column; constants stay, as Spark wants them."""
    arguments: list[exp.Expr] = []

    def bind(inner: exp.Expr) -> exp.Expr:
        if isinstance(inner, _WITHIN) or is_aggregate(inner):
            return with_arguments(inner, bind)
        if not any(marked(n) for n in inner.walk()):
            return inner
        if inner not in arguments:
            arguments.append(inner)
        return mark(f"arg{arguments.index(inner)}")

    text = bind(node.copy())
    return CallForm(name, tuple(arguments), text, in_order(text))
