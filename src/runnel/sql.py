"""The STREAM TABLE statements, read into values; also what other statements create or write to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from runnel.errors import UserError
from runnel.model.names import TableName

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<word>[^\W\d]\w*)
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<mark>=>|.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class CreateStreamTable:
    name: TableName
    query: str
    or_replace: bool = False
    if_not_exists: bool = False
    schedule: str | None = None
    refresh_mode: str | None = None
    comment: str | None = None
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlterStreamTable:
    name: TableName
    schedule: str | None = None
    refresh_mode: str | None = None
    comment: str | None = None
    status: str | None = None
    query: str | None = None
    diamond_consistency: str | None = None


@dataclass(frozen=True, slots=True)
class DropStreamTable:
    name: TableName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RefreshStreamTable:
    name: TableName | None


@dataclass(frozen=True, slots=True)
class VerifyStreamTable:
    name: TableName


@dataclass(frozen=True, slots=True)
class CompactStreamTable:
    name: TableName


@dataclass(frozen=True, slots=True)
class ExplainStreamTable:
    name: TableName | None
    query: str | None = None
    dialect: str = "spark"


@dataclass(frozen=True, slots=True)
class ShowStreamTables:
    pass


@dataclass(frozen=True, slots=True)
class ShowRefreshHistory:
    name: TableName | None
    limit: int = 20


@dataclass(frozen=True, slots=True)
class ShowStreamTableStats:
    name: TableName | None
    window: str = "1d"


@dataclass(frozen=True, slots=True)
class ShowAlerts:
    name: TableName | None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class SparkStatement:
    """Any other statement. `verb` and `target` are set when it defines, writes or drops a table."""

    text: str
    verb: str | None = None
    target: TableName | None = None


Statement = (
    CreateStreamTable
    | AlterStreamTable
    | DropStreamTable
    | RefreshStreamTable
    | VerifyStreamTable
    | CompactStreamTable
    | ExplainStreamTable
    | ShowStreamTables
    | ShowRefreshHistory
    | ShowStreamTableStats
    | ShowAlerts
    | SparkStatement
)


def parse_statement(text: str) -> Statement:
    """Read one statement; what is not about stream tables is left to Spark."""
    tokens = _Tokens(text)
    if tokens.accept("CREATE"):
        or_replace = tokens.accept("OR", "REPLACE")
        if tokens.accept("STREAM", "TABLE"):
            return _create(tokens, or_replace)
    elif tokens.accept("ALTER", "STREAM", "TABLE"):
        return _alter(tokens)
    elif tokens.accept("DROP", "STREAM", "TABLE"):
        if_exists = tokens.accept("IF", "EXISTS")
        name = tokens.name()
        return tokens.end(DropStreamTable(name, if_exists, tokens.accept("CASCADE")))
    elif tokens.accept("REFRESH", "STREAM", "TABLES"):
        return tokens.end(RefreshStreamTable(None))
    elif tokens.accept("REFRESH", "STREAM", "TABLE"):
        return tokens.end(RefreshStreamTable(tokens.name()))
    elif tokens.accept("VERIFY", "STREAM", "TABLE"):
        return tokens.end(VerifyStreamTable(tokens.name()))
    elif tokens.accept("COMPACT", "STREAM", "TABLE"):
        return tokens.end(CompactStreamTable(tokens.name()))
    elif tokens.accept("EXPLAIN", "STREAM", "TABLE"):
        return _explain(tokens)
    elif tokens.accept("SHOW", "STREAM", "TABLES"):
        return tokens.end(ShowStreamTables())
    elif tokens.accept("SHOW", "REFRESH", "HISTORY"):
        return tokens.end(ShowRefreshHistory(*_whose(tokens, 20)))
    elif tokens.accept("SHOW", "STREAM", "TABLE", "STATS"):
        return _stats(tokens)
    elif tokens.accept("SHOW", "ALERTS"):
        return tokens.end(ShowAlerts(*_whose(tokens, 50)))
    elif tokens.accept("USE"):
        raise UserError(
            "USE is not followed: a name without a schema means the schema default",
            hint="write schema.table",
        )
    return _spark_statement(text)


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a script, and the line on which it begins."""

    text: str
    line: int


def split_statements(script: str) -> Iterator[str]:
    """Cut a script at its semicolons, but not those inside strings, names or comments."""
    pieces, rest = cut_script(script)
    yield from (piece.text for piece in pieces)
    if rest is not None:
        yield rest.text.strip()


def cut_script(script: str) -> tuple[list[Piece], Piece | None]:
    """The statements that a semicolon ends, and what was begun after the last of them."""
    pieces: list[Piece] = []
    start: int | None = None
    for match in _TOKEN.finditer(script):
        if match.group() == ";":
            if start is not None:
                pieces.append(_piece(script, start, script[start : match.start()].strip()))
            start = None
        elif match.lastgroup != "space":
            start = match.start() if start is None else start
            if _is_open(script, match):
                break
    return pieces, None if start is None else _piece(script, start, script[start:])


def _piece(script: str, start: int, text: str) -> Piece:
    return Piece(text, script.count("\n", 0, start) + 1)


def _is_open(script: str, match: re.Match[str]) -> bool:
    """Whether a string, a quoted name or a comment begins here that never ends."""
    return match.group() in ("'", '"', "`") or script.startswith("/*", match.start())


S = TypeVar("S")


class _Tokens:
    """A cursor over the words of a statement."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._matches = [m for m in _TOKEN.finditer(text) if m.lastgroup != "space"]
        while self._matches and self._matches[-1].group() == ";":
            self._matches.pop()
        self._position = 0

    def peek(self) -> str | None:
        return (
            self._matches[self._position].group() if self._position < len(self._matches) else None
        )

    def accept(self, *words: str) -> bool:
        """Step over these words if they come next, in any case."""
        ahead = self._matches[self._position : self._position + len(words)]
        if [m.group().upper() for m in ahead] != list(words):
            return False
        self._position += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.wrong(" ".join(words))

    def take(self, kind: str, what: str) -> str:
        match = self._matches[self._position] if self.peek() is not None else None
        if match is None or match.lastgroup != kind:
            raise self.wrong(what)
        self._position += 1
        return match.group()

    def string(self, what: str) -> str:
        text = self.take("string", what)
        quote = text[0]
        return text[1:-1].replace(quote * 2, quote).replace("\\" + quote, quote)

    def name(self) -> TableName:
        parts = []
        while True:
            match = self._matches[self._position] if self.peek() is not None else None
            if match is None or match.lastgroup not in ("word", "quoted"):
                raise self.wrong("a table name")
            parts.append(match.group())
            self._position += 1
            if self.peek() != ".":
                return TableName.parse(".".join(parts))
            self._position += 1

    def rest(self) -> str:
        """The text from here on: a query."""
        if self.peek() is None:
            raise self.wrong("a query")
        return self.text[self._matches[self._position].start() : self._matches[-1].end()]

    def end(self, statement: S) -> S:
        if self.peek() is not None:
            raise self.wrong("the end of the statement")
        return statement

    def wrong(self, expected: str) -> UserError:
        found = self.peek()
        return UserError(
            f"expected {expected}, found {found or 'the end of the statement'}",
            detail=f"in: {' '.join(self.text.split())[:120]}",
            hint="docs/sql.md lists the statements",
        )


def _schedule(tokens: _Tokens) -> str:
    if tokens.accept("DOWNSTREAM"):
        return "DOWNSTREAM"
    return tokens.string("a quoted schedule such as '5m', or DOWNSTREAM")


def _create(tokens: _Tokens, or_replace: bool) -> CreateStreamTable:
    if_not_exists = tokens.accept("IF", "NOT", "EXISTS")
    name = tokens.name()
    schedule = refresh_mode = comment = None
    options: dict[str, str] = {}
    while not tokens.accept("AS"):
        if tokens.accept("SCHEDULE"):
            schedule = _schedule(tokens)
        elif tokens.accept("REFRESH", "MODE"):
            refresh_mode = tokens.take("word", "a refresh mode")
        elif tokens.accept("COMMENT"):
            comment = tokens.string("a quoted comment")
        elif tokens.accept("DIAMOND", "CONSISTENCY"):
            options["diamond_consistency"] = tokens.take("word", "NONE or ATOMIC")
        elif tokens.accept("WITH"):
            options |= _options(tokens)
        else:
            raise tokens.wrong(
                "SCHEDULE, REFRESH MODE, COMMENT, DIAMOND CONSISTENCY, WITH (...) or AS query"
            )
    return CreateStreamTable(
        name, tokens.rest(), or_replace, if_not_exists, schedule, refresh_mode, comment, options
    )


def _explain(tokens: _Tokens) -> ExplainStreamTable:
    options = _options(tokens) if tokens.accept("WITH") else {}
    if unknown := options.keys() - {"dialect"}:
        raise UserError(f"{min(unknown)!r} is not an option of EXPLAIN", detail="expected dialect")
    if options:
        tokens.expect("AS")
        return ExplainStreamTable(None, tokens.rest(), options["dialect"])
    if tokens.accept("AS"):
        return ExplainStreamTable(None, tokens.rest())
    return tokens.end(ExplainStreamTable(tokens.name()))


def _options(tokens: _Tokens) -> dict[str, str]:
    tokens.expect("(")
    options: dict[str, str] = {}
    while not tokens.accept(")"):
        name = tokens.take("word", "an option name").lower()
        if not tokens.accept("="):
            tokens.expect("=>")
        options[name] = _value(tokens)
        if not tokens.accept(",") and tokens.peek() != ")":
            raise tokens.wrong(", or )")
    return options


def _value(tokens: _Tokens) -> str:
    text = tokens.peek() or ""
    if text[:1] in "'\"":
        return tokens.string("a value")
    return tokens.take("number" if text[:1].isdigit() else "word", "a value")


def _alter(tokens: _Tokens) -> AlterStreamTable:
    name = tokens.name()
    if tokens.accept("AS"):
        return AlterStreamTable(name, query=tokens.rest())
    if tokens.accept("SUSPEND"):
        return tokens.end(AlterStreamTable(name, status="SUSPENDED"))
    if tokens.accept("RESUME"):
        return tokens.end(AlterStreamTable(name, status="ACTIVE"))
    if tokens.accept("SET", "SCHEDULE"):
        schedule = _schedule(tokens)
        return tokens.end(AlterStreamTable(name, schedule=schedule))
    if tokens.accept("SET", "REFRESH", "MODE"):
        mode = tokens.take("word", "a refresh mode")
        return tokens.end(AlterStreamTable(name, refresh_mode=mode))
    if tokens.accept("SET", "COMMENT"):
        return tokens.end(AlterStreamTable(name, comment=tokens.string("a quoted comment")))
    if tokens.accept("SET", "DIAMOND", "CONSISTENCY"):
        consistency = tokens.take("word", "NONE or ATOMIC")
        return tokens.end(AlterStreamTable(name, diamond_consistency=consistency))
    raise tokens.wrong(
        "SET SCHEDULE, SET REFRESH MODE, SET COMMENT, SET DIAMOND CONSISTENCY, SUSPEND, RESUME or "
        "AS query"
    )


def _stats(tokens: _Tokens) -> ShowStreamTableStats:
    name = tokens.name() if tokens.accept("FOR") else None
    window = tokens.string("a quoted duration such as '1d'") if tokens.accept("WINDOW") else "1d"
    return tokens.end(ShowStreamTableStats(name, window))


def _whose(tokens: _Tokens, limit: int) -> tuple[TableName | None, int]:
    """[FOR name] [LIMIT n]"""
    name = tokens.name() if tokens.accept("FOR") else None
    return name, int(tokens.take("number", "a number")) if tokens.accept("LIMIT") else limit


_WRITES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("INSERT", "INTO", "TABLE"), "write"), (("INSERT", "INTO"), "write"),
    (("INSERT", "OVERWRITE", "TABLE"), "write"), (("INSERT", "OVERWRITE"), "write"),
    (("DELETE", "FROM"), "write"), (("UPDATE",), "write"), (("MERGE", "INTO"), "write"),
    (("TRUNCATE", "TABLE"), "write"),
    (("DROP", "TABLE", "IF", "EXISTS"), "drop"), (("DROP", "TABLE"), "drop"),
    (("DROP", "VIEW", "IF", "EXISTS"), "drop"), (("DROP", "VIEW"), "drop"),
    (("ALTER", "TABLE"), "alter"), (("ALTER", "VIEW"), "alter"),
    (("REPLACE", "TABLE"), "create"), (("RESTORE", "TABLE"), "write"),
)  # fmt: skip


def _spark_statement(text: str) -> SparkStatement:
    tokens = _Tokens(text)
    verb = None
    if tokens.accept("CREATE"):
        tokens.accept("OR", "REPLACE")
        is_temporary = tokens.accept("TEMPORARY") or tokens.accept("TEMP")
        is_object = tokens.accept("TABLE") or tokens.accept("VIEW")
        if is_object and not is_temporary:
            tokens.accept("IF", "NOT", "EXISTS")
            verb = "create"
    else:
        verb = next((v for words, v in _WRITES if tokens.accept(*words)), None)
    if verb is None:
        return SparkStatement(text)
    try:
        return SparkStatement(text, verb, tokens.name())
    except UserError:
        return SparkStatement(text)
