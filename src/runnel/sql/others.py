"""Statements that are left to Spark: what they create, write to or drop."""

from __future__ import annotations

from runnel.errors import UserError
from runnel.sql.statements import SparkStatement
from runnel.sql.tokens import Tokens

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


def spark_statement(text: str) -> SparkStatement:
    """What a statement defines, writes to or drops, if it does."""
    tokens = Tokens(text)
    verb = None
    if tokens.accept("CREATE"):
        tokens.accept("OR", "REPLACE")
        tokens.accept("EXTERNAL")
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
