"""Spark's pipe operators, read as the subselects that they stand for.

    FROM t |> WHERE c           SELECT * FROM t WHERE c
    ... |> EXTEND e AS x        SELECT *, e AS x FROM (...)
    ... |> SET x = e            SELECT * REPLACE (e AS x) FROM (...)
    ... |> DROP x               SELECT * EXCEPT (x) FROM (...)
    ... |> AS u                 SELECT * FROM (...) AS u
    ... |> AGGREGATE f GROUP BY k       SELECT k, f FROM (...) GROUP BY k

A subselect is made only where the one before cannot hold the next clause, so that names of tables
stay in sight. The user's own text is what Spark runs; the tree is what is kept differentially.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from runnel.compile.passed_names import pass_names
from runnel.errors import InvalidQuery

_OPEN = frozenset({"expressions", "from_", "joins", "laterals"})
_LISTED = frozenset({"expressions", "distinct", "hint", "windows"})
_ANALYTICS = (TokenType.CUBE, TokenType.ROLLUP, TokenType.GROUPING_SETS)


def assignments(select: exp.Select) -> tuple[exp.Select, list[exp.Expr]]:
    """The SELECT before |> SET, and what that sets; nothing for any other one."""
    star = select.expressions[0] if len(select.expressions) == 1 else None
    if not isinstance(star, exp.Star) or not star.args.get("replace"):
        return select, []
    made = select.copy()
    made.set("expressions", [exp.Star()])
    return made, list(star.args["replace"])


class PipeParser(SparkParser):
    """Reads `query |> operator |> operator ...`; a pipe binds weaker than UNION and the like."""

    def _parse_select(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
        consume_pipe: bool = True,
    ) -> exp.Expr | None:
        return super()._parse_select(
            nested, table, parse_subquery_alias, parse_set_operation, consume_pipe=False
        )

    def _parse_set_operations(self, this: exp.Expr | None) -> exp.Expr | None:
        query = super()._parse_set_operations(this)
        if isinstance(query, exp.Query) and self._match(TokenType.PIPE_GT, advance=False):
            return self._parse_pipe_syntax_query(query)
        return query

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query:
        while self._match(TokenType.PIPE_GT):
            word = self._curr.text.upper() if self._curr else ""
            operator = self._OPERATORS.get(word.partition(" ")[0])
            query = operator(self, query) if operator else self._join_or_set(query)
        return query

    def _select(self, query: exp.Query) -> exp.Query:
        listed = super()._parse_select(parse_set_operation=False, consume_pipe=False)
        given = {name: v for name, v in listed.args.items() if v} if listed else {}
        if not given or given.keys() - _LISTED:
            self.raise_error("expected nothing but a list after |> SELECT")
            return query
        made = _over(query, "where")
        for name, value in given.items():
            made.set(name, value)
        return made

    def _where(self, query: exp.Query) -> exp.Query:
        made = _over(query)
        made.set("where", self._parse_where())
        return made

    def _extend(self, query: exp.Query) -> exp.Query:
        self._advance()
        made = _over(query, "where")
        made.set("expressions", [exp.Star(), *self._parse_expressions()])
        return made

    def _set(self, query: exp.Query) -> exp.Query:
        """One column after the other: what comes later sees the new value of what came before."""
        self._advance()
        for assignment in self._parse_csv(self._parse_assignment):
            if not isinstance(assignment, exp.EQ) or not isinstance(assignment.this, exp.Column):
                self.raise_error("expected column = expression after |> SET")
                break
            value = exp.Alias(this=assignment.expression, alias=assignment.this.this)
            query = _over(query, "where")
            query.set("expressions", [exp.Star(replace=[value])])
        return query

    def _drop(self, query: exp.Query) -> exp.Query:
        self._advance()
        made = _over(query, "where")
        made.set("expressions", [exp.Star(except_=self._parse_csv(self._parse_id_var))])
        return made

    def _as(self, query: exp.Query) -> exp.Query:
        self._advance()
        return _nested(query, self._parse_id_var())

    def _aggregate(self, query: exp.Query) -> exp.Query:
        self._advance()
        calls, keys = self._parse_expressions(), []
        has_keys = self._match(TokenType.GROUP_BY)
        if has_keys:
            keys = self._parse_csv(self._key)
        made = _over(query, "where")
        made.set("expressions", [*keys, *calls])
        if has_keys:
            made.set("group", exp.Group(expressions=[key.unalias().copy() for key in keys]))
        return made

    def _key(self) -> exp.Expr | None:
        if self._match_set(_ANALYTICS, advance=False):
            raise _refusal(self._curr.text.upper(), "write SELECT ... GROUP BY around the query")
        key = self._parse_expression()
        if key is not None and key.unalias().is_number:
            raise _refusal("a column's number", "write the column's name")
        return key

    def _organize(self, query: exp.Query) -> exp.Query:
        """ORDER BY, LIMIT and OFFSET; the last two go with the order just before them."""
        if self._curr.token_type is TokenType.ORDER_BY:
            made: exp.Query = _over(query, "where")
        else:
            made = query if _takes_limit(query, self._curr.token_type) else _nested(query)
        return self._parse_query_modifiers(made) or made

    def _pivot(self, query: exp.Query) -> exp.Query:
        made = _nested(query)
        made.args["from_"].this.set("pivots", self._parse_pivots())
        return made

    def _sample(self, query: exp.Query) -> exp.Query:
        made = _nested(query)
        made.args["from_"].this.set("sample", self._parse_table_sample())
        return made

    def _join_or_set(self, query: exp.Query) -> exp.Query:
        word = self._curr.text.upper() if self._curr else ""
        left = query if _is_open(query, "where") else _nested(query)
        combined = self.parse_set_operation(left)
        if combined is not None:
            return combined
        join = self._parse_join()
        if join is None:
            self.raise_error(f"|> {word} is no pipe operator of Spark")
            return query
        made = _over(query)
        made.append("joins", join)
        return made

    _OPERATORS: ClassVar[dict[str, Callable[[PipeParser, exp.Query], exp.Query]]] = {
        "SELECT": _select,
        "WHERE": _where,
        "EXTEND": _extend,
        "SET": _set,
        "DROP": _drop,
        "AS": _as,
        "AGGREGATE": _aggregate,
        "ORDER": _organize,
        "LIMIT": _organize,
        "OFFSET": _organize,
        "PIVOT": _pivot,
        "UNPIVOT": _pivot,
        "TABLESAMPLE": _sample,
    }


def _over(query: exp.Query, *clauses: str) -> exp.Select:
    """A SELECT that the next operator's clause can be put into; `clauses` may stand in it."""
    if isinstance(query, exp.Select) and _is_open(query, *clauses):
        return query
    return _nested(query)


def _is_open(query: exp.Query, *clauses: str) -> bool:
    """Whether the query is FROM ... as it stands, but for some clauses."""
    if not isinstance(query, exp.Select) or query.expressions != [exp.Star()]:
        return False
    return not any(v and name not in _OPEN.union(clauses) for name, v in query.args.items())


def _nested(query: exp.Query, alias: exp.Expr | None = None) -> exp.Select:
    """SELECT * FROM the query, under the name that its rows had if they had one."""
    inner = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
    if not inner.alias:
        name = alias or _name_of(query)
        if name is not None:
            inner.set("alias", exp.TableAlias(this=name.copy()))
        else:
            pass_names(inner)
    elif alias is not None:
        return _nested(exp.select("*").from_(inner, copy=False), alias)
    return exp.select("*").from_(inner, copy=False)


def _name_of(query: exp.Query) -> exp.Expr | None:
    """What the only table of a SELECT is called there."""
    if not isinstance(query, exp.Select) or query.args.get("joins") or query.args.get("laterals"):
        return None
    from_ = query.args.get("from_")
    item = from_.this if from_ is not None else None
    if not isinstance(item, (exp.Table, exp.Subquery)) or item.args.get("joins"):
        return None
    alias = item.args.get("alias")
    if alias is not None:
        return alias.this  # type: ignore[no-any-return]
    return item.this if isinstance(item.this, exp.Identifier) else None


def _takes_limit(query: exp.Query, token: TokenType) -> bool:
    """LIMIT after ORDER BY and OFFSET; OFFSET after ORDER BY alone: SQL skips rows first."""
    if not query.args.get("order") or query.args.get("limit"):
        return False
    return token is TokenType.LIMIT or not query.args.get("offset")


def _refusal(what: str, hint: str) -> InvalidQuery:
    return InvalidQuery(f"|> AGGREGATE ... GROUP BY {what} is not supported", hint=hint)
