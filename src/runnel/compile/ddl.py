"""Statements that drop, replace or reshape what stream tables may read, told from all others."""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from runnel.compile.dialect import SparkSql
from runnel.errors import UserError
from runnel.model.ddl import SourceChange, Taken
from runnel.model.names import TableName, quote

_KINDS = {
    "TABLE": Taken.TABLE, "VIEW": Taken.VIEW, "SCHEMA": Taken.SCHEMA, "DATABASE": Taken.SCHEMA,
    "NAMESPACE": Taken.SCHEMA, "FUNCTION": Taken.FUNCTION,
}  # fmt: skip


_FIRST = re.compile(r"(?:\s+|--[^\n]*|/\*.*?\*/)*([A-Za-z]+)", re.DOTALL)


class _Plain(SparkSql):
    """Every word is a token, also behind VACUUM and its like."""

    class Tokenizer(SparkSql.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


_BETWEEN = ("OR", "REPLACE", "GLOBAL", "TEMPORARY", "TEMP")


def source_change(text: str) -> SourceChange | None:
    """What the statement takes away; None when it takes nothing, or is something else."""
    words = Words.of(text, "DROP", "CREATE", "REPLACE", "ALTER")
    if words is None:
        return None
    try:
        if words.accept("DROP"):
            return _dropped(words)
        if words.accept("CREATE", "OR", "REPLACE") or words.accept("REPLACE"):
            return _replaced(words)
        if words.accept("ALTER", "TABLE"):
            return _altered(words, words.name())
        if words.accept("ALTER", "VIEW"):
            return SourceChange("ALTER VIEW", Taken.VIEW, words.name())
    except UserError:
        pass
    return None


def new_name(text: str) -> SourceChange | None:
    """The table or view that a plain CREATE makes; None when the statement is something else."""
    words = Words.of(text, "CREATE")
    if words is None or not words.accept("CREATE"):
        return None
    while any(words.accept(word) for word in (*_BETWEEN, "EXTERNAL")):
        pass
    found = _kind(words)
    if found is None or found[1] not in (Taken.TABLE, Taken.VIEW):
        return None
    words.accept("IF", "NOT", "EXISTS")
    try:
        return SourceChange(f"CREATE {found[0]}", found[1], words.name())
    except UserError:
        return None


def new_name_of_table(text: str) -> tuple[TableName, TableName] | None:
    """The names before and after ALTER TABLE ... RENAME TO; None for any other statement."""
    words = Words.of(text, "ALTER")
    if words is None or not words.accept("ALTER", "TABLE"):
        return None
    try:
        old = words.name()
        if not words.accept("RENAME", "TO"):
            return None
        is_qualified = len(words.rest()) > 1
        new = words.name()
    except UserError:
        return None
    # A table stays in its schema where no other one is named.
    return old, new if is_qualified else TableName(old.schema, new.name)


class Words:
    """A cursor over the tokens of a statement."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = [t for t in tokens if t.token_type is not TokenType.SEMICOLON]
        self.position = 0

    @staticmethod
    def of(text: str, *beginnings: str) -> Words | None:
        """None for a statement that begins otherwise, which may be long and is not looked at."""
        match = _FIRST.match(text)
        if match is None or match.group(1).upper() not in beginnings:
            return None
        try:
            return Words(_Plain().tokenize(text))
        except SqlglotError:
            return None

    def peek(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def accept(self, *words: str) -> bool:
        """Step over these words if they come next."""
        ahead = self.rest()[: len(words)]
        if [t.text.upper() for t in ahead] != list(words) or any(map(is_quoted, ahead)):
            return False
        self.position += len(words)
        return True

    def rest(self) -> list[Token]:
        return self.tokens[self.position :]

    def take(self) -> str:
        token = self.peek()
        if token is None:
            raise UserError("the statement ends too early")
        self.position += 1
        return token.text

    def name(self) -> TableName:
        parts = [quote(self.take())]
        while self.accept("."):
            parts.append(quote(self.take()))
        return TableName.parse(".".join(parts))


def is_quoted(token: Token) -> bool:
    return token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)


def _kind(words: Words) -> tuple[str, Taken] | None:
    token = words.peek()
    kind = _KINDS.get(token.text.upper()) if token is not None else None
    return (words.take().upper(), kind) if kind is not None else None


def _dropped(words: Words) -> SourceChange | None:
    words.accept("TEMPORARY")
    if (found := _kind(words)) is None:
        return None
    words.accept("IF", "EXISTS")
    said, kind = found
    if kind is Taken.SCHEMA:
        return SourceChange(f"DROP {said}", kind, TableName(words.take(), "*"))
    return SourceChange(f"DROP {said}", kind, words.name())


def _replaced(words: Words) -> SourceChange | None:
    while any(words.accept(word) for word in _BETWEEN):
        pass
    found = _kind(words)
    if found is None or found[1] is Taken.SCHEMA:
        return None
    return SourceChange(f"CREATE OR REPLACE {found[0]}", found[1], words.name())


def _altered(words: Words, name: TableName) -> SourceChange | None:
    def change(said: str, columns: tuple[str, ...] | None = None) -> SourceChange:
        return SourceChange(said, Taken.TABLE, name, columns)

    if words.accept("RENAME", "TO"):
        return change("RENAME TO")
    if words.accept("SET", "LOCATION"):
        return change("SET LOCATION")
    if words.accept("REPLACE", "COLUMNS"):
        return change("REPLACE COLUMNS")
    if words.accept("RENAME", "COLUMN"):
        return change("RENAME COLUMN", (words.take(),))
    if words.accept("DROP", "COLUMN") or words.accept("DROP", "COLUMNS"):
        words.accept("IF", "EXISTS")
        return change("DROP COLUMN", _listed(words))
    if words.accept("CHANGE") or words.accept("ALTER"):
        words.accept("COLUMN")
        retyped = _retyped(words)
        return change("ALTER COLUMN", retyped) if retyped else None
    return None


def _listed(words: Words) -> tuple[str, ...]:
    """a, b or (a, b); of a nested field the column that holds it."""
    words.accept("(")
    names = [words.take()]
    while (token := words.peek()) is not None and token.text != ")":
        is_next = words.accept(",")
        taken = words.take()
        names += [taken] if is_next else []
    return tuple(names)


def _retyped(words: Words) -> tuple[str, ...]:
    """The columns that get another type, or in Hive's form (CHANGE a b INT) another name."""
    tokens = words.rest()
    texts = [t.text.upper() for t in tokens]
    if "TYPE" not in texts:
        harmless = {"COMMENT", "FIRST", "AFTER", "SET", "DROP"}
        is_plain = len(texts) > 1 and harmless & set(texts[1:2])
        return () if is_plain or len(texts) < 3 else (tokens[0].text,)
    starts = [0, *(i + 1 for i, text in enumerate(texts) if text == ",")]
    return tuple(tokens[i].text for i in starts if "TYPE" in texts[i + 1 : i + 4])
