"""Spark SQL as Spark 4 reads it, where sqlglot's own dialect differs."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.transforms import any_to_exists, preprocess, unnest_to_explode

# Not written as they were read: another result type, a lost argument, other last digits.
_VERBATIM = ("LOG10", "UNIX_DATE", "PARSE_JSON", "TO_CHAR", "TO_VARCHAR", "LEVENSHTEIN")


class SparkSql(Spark):
    """A doubled quote inside a string is a quote: 'it''s', not two strings put together."""

    class Tokenizer(Spark.Tokenizer):
        # The first one is what text is written with.
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **{n: build for n, build in SparkParser.FUNCTIONS.items() if n not in _VERBATIM},
            "MEAN": exp.Avg.from_arg_list,
        }

    class Generator(SparkGenerator):
        TYPE_MAPPING: ClassVar[dict[Any, str]] = {
            **SparkGenerator.TYPE_MAPPING,
            exp.DType.TIME: "TIME",
        }
        # Spark has QUALIFY; sqlglot would write a subquery that loses the names of columns.
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **SparkGenerator.TRANSFORMS,
            exp.Localtimestamp: lambda *_: "LOCALTIMESTAMP()",
            exp.Select: preprocess(
                [partial(unnest_to_explode, unnest_using_arrays_zip=False), any_to_exists]
            ),
        }
