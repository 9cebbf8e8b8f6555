"""Every aggregate function of Spark 4.2 is kept, or refused, in the way the documentation says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from runnel.algebra.nodes import Aggregate, Call, walk
from runnel.compile.aggregates import ADDING_FLOATS, WAYS, Way
from runnel.compile.build import SourceSchema
from runnel.compile.differentiate.state import is_inexact
from runnel.compile.pipeline import compile_query
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

_DOCS = (Path(__file__).parents[2] / "docs" / "sql.md").read_text().partition("## Aggregate")[2]
_TABLE = SourceSchema(
    "default.t",
    "delta",
    tuple(Column(n, t) for n, t in (("g", "int"), ("i", "int"), ("s", "string"), ("b", "boolean"))),
)
# What `SHOW SYSTEM FUNCTIONS` of Spark 4.2 lists that aggregates, each in a call.
_CALLS = {
    "any": "any(b)",
    "any_value": "any_value(i)",
    "approx_count_distinct": "approx_count_distinct(i, 0.01)",
    "approx_percentile": "approx_percentile(i, 0.5, 100)",
    "approx_top_k": "approx_top_k(i, 2, 100)",
    "approx_top_k_accumulate": "approx_top_k_accumulate(i)",
    "approx_top_k_combine": "approx_top_k_combine(i)",
    "array_agg": "array_sort(array_agg(i))",
    "avg": "avg(i)",
    "bit_and": "bit_and(i)",
    "bit_or": "bit_or(i)",
    "bit_xor": "bit_xor(i)",
    "bitmap_and_agg": "bitmap_and_agg(i)",
    "bitmap_construct_agg": "bitmap_construct_agg(i)",
    "bitmap_or_agg": "bitmap_or_agg(i)",
    "bool_and": "bool_and(b)",
    "bool_or": "bool_or(b)",
    "collect_list": "array_sort(collect_list(DISTINCT i))",
    "collect_set": "array_sort(collect_set(i) FILTER(WHERE b))",
    "corr": "corr(i, g)",
    "count": "count(i, s)",
    "count_if": "count_if(b)",
    "count_min_sketch": "count_min_sketch(i, CAST(0.5 AS DOUBLE), CAST(0.5 AS DOUBLE), 1)",
    "covar_pop": "covar_pop(i, g)",
    "covar_samp": "covar_samp(i, g)",
    "every": "every(b)",
    "first": "first(i)",
    "first_value": "first_value(i)",
    "grouping": "grouping(g)",
    "grouping_id": "grouping_id(g)",
    "histogram_numeric": "histogram_numeric(i, 5)",
    "hll_sketch_agg": "hll_sketch_agg(i)",
    "hll_union_agg": "hll_union_agg(i)",
    "kll_merge_agg_bigint": "kll_merge_agg_bigint(i)",
    "kll_merge_agg_double": "kll_merge_agg_double(i)",
    "kll_merge_agg_float": "kll_merge_agg_float(i)",
    "kll_sketch_agg_bigint": "kll_sketch_agg_bigint(i)",
    "kll_sketch_agg_double": "kll_sketch_agg_double(i)",
    "kll_sketch_agg_float": "kll_sketch_agg_float(i)",
    "kurtosis": "kurtosis(i)",
    "last": "last(i)",
    "last_value": "last_value(i)",
    "listagg": "listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s DESC)",
    "max": "max(i)",
    "max_by": "max_by(s, CASE WHEN NOT i IS NULL THEN STRUCT(i AS o, s AS v) END, 3)",
    "mean": "mean(i)",
    "measure": "measure(i)",
    "median": "median(i)",
    "min": "min(i)",
    "min_by": "min_by(s, CASE WHEN NOT i IS NULL THEN STRUCT(i AS o, s AS v) END)",
    "mode": "mode(i, TRUE)",
    "percentile": "percentile(i, 0.5, g)",
    "percentile_approx": "percentile_approx(i, ARRAY(0.5, 0.4), 100)",
    "percentile_cont": "percentile_cont(0.5) WITHIN GROUP (ORDER BY i DESC)",
    "percentile_disc": "percentile_disc(0.5) WITHIN GROUP (ORDER BY i) FILTER(WHERE b)",
    "regr_avgx": "regr_avgx(i, g)",
    "regr_avgy": "regr_avgy(i, g)",
    "regr_count": "regr_count(i, g)",
    "regr_intercept": "regr_intercept(i, g)",
    "regr_r2": "regr_r2(i, g)",
    "regr_slope": "regr_slope(i, g)",
    "regr_sxx": "regr_sxx(i, g)",
    "regr_sxy": "regr_sxy(i, g)",
    "regr_syy": "regr_syy(i, g)",
    "schema_of_variant_agg": "schema_of_variant_agg(i)",
    "skewness": "skewness(i)",
    "some": "some(b)",
    "std": "std(i)",
    "stddev": "stddev(i)",
    "stddev_pop": "stddev_pop(i)",
    "stddev_samp": "stddev_samp(i)",
    "string_agg": "string_agg(s, ',') WITHIN GROUP (ORDER BY i, s)",
    "sum": "sum(i)",
    "theta_intersection_agg": "theta_intersection_agg(i)",
    "theta_sketch_agg": "theta_sketch_agg(i)",
    "theta_union_agg": "theta_union_agg(i)",
    "try_avg": "try_avg(i)",
    "try_sum": "try_sum(i)",
    "tuple_intersection_agg_double": "tuple_intersection_agg_double(i)",
    "tuple_intersection_agg_integer": "tuple_intersection_agg_integer(i)",
    "tuple_sketch_agg_double": "tuple_sketch_agg_double(i, g)",
    "tuple_sketch_agg_integer": "tuple_sketch_agg_integer(i, g)",
    "tuple_union_agg_double": "tuple_union_agg_double(i)",
    "tuple_union_agg_integer": "tuple_union_agg_integer(i)",
    "var_pop": "var_pop(i)",
    "var_samp": "var_samp(i)",
    "variance": "variance(i)",
    "vector_avg": "vector_avg(i)",
    "vector_sum": "vector_sum(i)",
}
_BELOW = "SELECT q.x FROM ({}) q JOIN t ON q.g = t.g"
# Spark has two names for one function; either is written.
_WRITTEN = {"array_agg": "collect_list", "var_samp": "variance"}


class _AnyType:
    def types(self, columns: Sequence[Column], expressions: Sequence[str]) -> tuple[str, ...]:
        return ("int",) * len(expressions)


def _query(name: str) -> str:
    keys = "ROLLUP (g)" if WAYS[name] is Way.GROUPING else "g"
    return f"SELECT g, {_CALLS[name]} AS x FROM t GROUP BY {keys}"


def _call(query: str) -> Call | None:
    compiled = compile_query(query, [_TABLE], _AnyType())
    found = [node for node in walk(compiled.tree) if isinstance(node, Aggregate)]
    return found[0].calls[0] if found[0].calls else None


def _of(*ways: Way) -> list[str]:
    return [name for name, way in WAYS.items() if way in ways]


def test_every_function_has_a_way() -> None:
    assert set(_CALLS) == set(WAYS)


@pytest.mark.parametrize("way", Way)
def test_the_documentation_lists_the_functions_of_a_way(way: Way) -> None:
    row = re.search(rf"\| {re.escape(way.value)}[^|]*\|([^|]*)\|", _DOCS)
    assert row is not None, way.value
    assert sorted(re.findall(r"`(\w+)`", row.group(1))) == sorted(_of(way))


@pytest.mark.parametrize("name", _of(Way.COUNTS, Way.EXTREME))
def test_kept_by_counts_sums_and_extremes(name: str) -> None:
    call = _call(_query(name))
    assert call is not None
    assert call.text is None
    assert _call(_BELOW.format(_query(name))) is not None


@pytest.mark.parametrize("name", _of(Way.RECOMPUTED, Way.MOMENTS, Way.IN_ORDER, Way.AT_ROOT))
def test_recomputed_as_it_was_written(name: str) -> None:
    call = _call(_query(name))
    assert call is not None
    assert call.text is not None
    written = _CALLS[name]
    for one, other in _WRITTEN.items():
        written = re.sub(rf"\b{one}\b", other, written)
    bound = call.text.render(lambda _: "?").lower()
    assert bound == _holes(written).lower()


def _holes(text: str) -> str:
    """Arguments that read columns are holes."""
    text = re.sub(r"CASE WHEN .* END", "?", text)
    return re.sub(r"\b[gisb]\b", "?", text)


@pytest.mark.parametrize("name", _of(Way.RECOMPUTED, Way.MOMENTS, Way.IN_ORDER))
def test_recomputed_below_another_operator(name: str) -> None:
    call = _call(_BELOW.format(_query(name)))
    assert call is not None
    assert not is_inexact(call)
    assert call.is_in_order == (WAYS[name] in ADDING_FLOATS)


@pytest.mark.parametrize("name", _of(Way.AT_ROOT))
def test_inexact_below_another_operator_is_refused(name: str) -> None:
    with pytest.raises(NotDifferentiable, match="below another operator"):
        _call(_BELOW.format(_query(name)))


@pytest.mark.parametrize("name", _of(Way.REFUSED))
def test_refused_differentially(name: str) -> None:
    with pytest.raises(NotDifferentiable, match=rf"the aggregate function {name}\(\)"):
        _call(_query(name))


@pytest.mark.parametrize("name", _of(Way.INVALID))
def test_refused_in_every_mode(name: str) -> None:
    with pytest.raises(InvalidQuery, match=rf"{name}\(\) is not deterministic") as caught:
        _call(_query(name))
    assert re.search("min_by|max", caught.value.hint or "")


@pytest.mark.parametrize("name", _of(Way.GROUPING))
def test_grouping_is_for_grouping_sets(name: str) -> None:
    assert _call(_query(name)) is None
    with pytest.raises(InvalidQuery, match="is for GROUPING SETS"):
        _call(_query(name).replace("ROLLUP (g)", "g"))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT grouping(i) FROM t GROUP BY CUBE (g)", "not a key"),
        ("SELECT median(SUM(i)) FROM t", "inside another"),
        ("SELECT listagg(s) WITHIN GROUP (ORDER BY COUNT(*)) FROM t", "inside another"),
        ("SELECT s, median(i) FROM t GROUP BY ROLLUP (g)", "neither grouped"),
        ("SELECT i + SUM(g) FROM t GROUP BY ALL", "neither grouped"),
        ("SELECT first(i) FILTER (WHERE b) FROM t", "not deterministic"),
        ("SELECT last(i, true) FROM t", "not deterministic"),
    ],
)
def test_wrong_aggregates_say_what_is_wrong(query: str, words: str) -> None:
    with pytest.raises(InvalidQuery, match=words):
        compile_query(query, [_TABLE], _AnyType())
