"""The current time in a query is the data timestamp of the refresh: a value like any other.

current_timestamp(), now()  ->  timestamp_micros(n)
current_date(), curdate()   ->  CAST(timestamp_micros(n) AS DATE)            in the session's zone
localtimestamp()            ->  CAST(timestamp_micros(n) AS TIMESTAMP_NTZ)
unix_timestamp()            ->  unix_timestamp(timestamp_micros(n))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlglot import Token, TokenType, exp

from runnel.compile.dialect import SparkSql
from runnel.compile.parse import parse
from runnel.compile.places import at
from runnel.errors import InvalidQuery, NotDifferentiable

_FORMS = {
    "current_timestamp": "{now}",
    "now": "{now}",
    "current_date": "CAST({now} AS DATE)",
    "curdate": "CAST({now} AS DATE)",
    "localtimestamp": "CAST({now} AS TIMESTAMP_NTZ)",
    "unix_timestamp": "unix_timestamp({now})",
}
_BARE = frozenset({"current_timestamp", "current_date"})
_NODES: dict[type[exp.Expr], str] = {
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
    exp.Localtimestamp: "localtimestamp",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TimeCall:
    """One mention of the current time; a bare one has no parentheses."""

    name: str
    start: int
    end: int
    is_bare: bool

    def __str__(self) -> str:
        return self.name if self.is_bare else f"{self.name}()"


def fix_time(query: str, instant: datetime) -> str:
    """The query with the instant in the place of every function that asks for the time."""
    now = f"timestamp_micros({(instant - _EPOCH) // timedelta(microseconds=1)})"
    for call in sorted(_calls(query), key=lambda c: c.start, reverse=True):
        query = query[: call.start] + _FORMS[call.name].format(now=now) + query[call.end :]
    return query


def time_calls(query: str) -> tuple[TimeCall, ...]:
    """Where the query asks for the time; InvalidQuery when that cannot be told for certain."""
    calls = tuple(_calls(query))
    if len(calls) != len(_nodes(parse(query))):
        raise InvalidQuery(
            "the query asks for the current time in a way that is not understood",
            hint="write current_timestamp(), current_date() or localtimestamp(), without arguments",
        )
    return calls


def refuse_time(tree: exp.Query) -> None:
    """Raise when the query asks for the time: then its result changes while its sources do not."""
    for node in _nodes(tree):
        name = _NODES.get(type(node), node.name)
        with at(node):
            raise NotDifferentiable(
                f"a query that asks for the current time ({name.lower()}())",
                detail="its rows come and go without any change of a source",
                hint="use refresh mode AUTO or FULL, which compute it anew at each refresh; or "
                "leave the time out here, and filter by it when the stream table is read",
            )


def _nodes(tree: exp.Query) -> list[exp.Expr]:
    return [node for node in tree.walk() if type(node) in _NODES or _asks_by_name(node)]


def _asks_by_name(node: exp.Expr) -> bool:
    """unix_timestamp(x) is a moment as a number; without an argument it is the present one."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() not in _FORMS:
        return False
    return node.name.lower() != "unix_timestamp" or not node.expressions


def _calls(query: str) -> Iterator[TimeCall]:
    tokens = SparkSql().tokenize(query)
    for place, token in enumerate(tokens):
        name = token.text.lower()
        if name not in _FORMS or token.token_type is TokenType.STRING or _follows(tokens, place):
            continue
        if _kinds(tokens, place + 1, 2) == [TokenType.L_PAREN, TokenType.R_PAREN]:
            yield TimeCall(name, token.start, tokens[place + 2].end + 1, is_bare=False)
        elif name in _BARE and _is_bare(tokens, place):
            yield TimeCall(name, token.start, token.end + 1, is_bare=True)


def _follows(tokens: list[Token], place: int) -> bool:
    """Whether it is a part of a longer name, or an alias."""
    return place > 0 and tokens[place - 1].token_type in (TokenType.DOT, TokenType.ALIAS)


def _is_bare(tokens: list[Token], place: int) -> bool:
    is_quoted = tokens[place].token_type is TokenType.IDENTIFIER
    return not is_quoted and _kinds(tokens, place + 1, 1) not in (
        [TokenType.DOT],
        [TokenType.L_PAREN],
    )


def _kinds(tokens: list[Token], start: int, count: int) -> list[TokenType]:
    return [token.token_type for token in tokens[start : start + count]]
