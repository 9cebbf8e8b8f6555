"""Spark SQL as Spark 4 reads it, where sqlglot's own dialect differs."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.transforms import any_to_exists, preprocess, unnest_to_explode

from runnel.compile.as_written import VERBATIM, faithful
from runnel.compile.pipes import assignments
from runnel.compile.relation_names import RelationNameParser

_LEVEL = "max_recursion_level"


def max_recursion_level(cte: exp.CTE) -> int | None:
    """The n of MAX RECURSION LEVEL n, if the CTE has one."""
    level = cte.args["alias"].meta.get(_LEVEL)
    return int(level) if level is not None else None


def _is_name(token: Token, after: Token | None) -> bool:
    """Whether it is a function's or a column's name; `after` is the next token but one."""
    is_clause = after is not None and after.token_type is TokenType.ALIAS
    return token.token_type is TokenType.WINDOW and not is_clause


def _as_name(token: Token) -> Token:
    places = {name: getattr(token, name) for name in ("line", "col", "start", "end", "comments")}
    return Token(TokenType.VAR, token.text, **places)


def _variant_key(part: exp.JSONPathPart) -> str:
    if isinstance(part, exp.JSONPathSubscript):
        return f"[{part.this}]"
    return f"['{part.name}']" if "'" not in part.name else f'["{part.name}"]'


class SparkSql(Spark):
    """A doubled quote inside a string is a quote: 'it''s', not two strings put together."""

    class Tokenizer(Spark.Tokenizer):
        # The first one is what text is written with.
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(RelationNameParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **faithful(SparkParser.FUNCTIONS),
            "MEAN": exp.Avg.from_arg_list,
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            n: parse for n, parse in SparkParser.FUNCTION_PARSERS.items() if n not in VERBATIM
        }
        # Spark has no comprehensions: FOR ends an expression of PIVOT.
        RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
            token: parse
            for token, parse in SparkParser.RANGE_PARSERS.items()
            if token is not TokenType.FOR
        }

        def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
            # The clause is WINDOW w AS (...).
            pairs = zip(raw_tokens, [*raw_tokens, None, None][2:], strict=True)
            tokens = [_as_name(t) if _is_name(t, after) else t for t, after in pairs]
            return list(super().parse(tokens, sql))

        # v:a.b reads a part of a VARIANT.
        COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True

        def _build_json_extract(
            self, this: exp.Expr | None, path_parts: list[exp.JSONPathPart]
        ) -> tuple[exp.Expr | None, list[exp.JSONPathPart]]:
            keys = path_parts[1:]
            if keys:
                path = exp.Literal.string("$" + "".join(map(_variant_key, keys)))
                this = exp.Anonymous(this="VARIANT_GET", expressions=[this, path])
            return this, path_parts[:1]

        def _parse_pivot_aggregation(self) -> exp.Expr | None:
            # Not only a call: Spark takes any expression over aggregates.
            return self._parse_alias(self._parse_disjunction())

        def _parse_value(self, values: bool = True) -> exp.Tuple | None:
            # VALUES 1, 2 AS t(x): the alias is the table's, not the last value's.
            if self._match(TokenType.L_PAREN, advance=False):
                return super()._parse_value(values)
            value = self._parse_disjunction()
            return exp.Tuple(expressions=[value]) if value else None

        def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
            alias: exp.TableAlias | None = super()._parse_table_alias(*args, **kwargs)
            if alias is not None and self._match_text_seq("MAX", "RECURSION", "LEVEL"):
                level = self._parse_number()
                alias.meta[_LEVEL] = int(level.name) if level is not None else None
            return alias

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

        def select_sql(self, expression: exp.Select) -> str:
            # Spark has no * REPLACE.
            made, replaced = assignments(expression)
            written = str(super().select_sql(made))
            if not replaced:
                return written
            listed = ", ".join(f"{self.sql(e, 'alias')} = {self.sql(e, 'this')}" for e in replaced)
            piped = f"{written} |> SET {listed}"
            return f"({piped})" if isinstance(expression.parent, exp.SetOperation) else piped

        def tablealias_sql(self, expression: exp.TableAlias) -> str:
            level = expression.meta.get(_LEVEL)
            written = str(super().tablealias_sql(expression))
            return f"{written} MAX RECURSION LEVEL {level}" if level is not None else written
