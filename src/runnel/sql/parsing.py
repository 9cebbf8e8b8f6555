"""The grammar of the STREAM TABLE statements."""

from __future__ import annotations

from runnel.errors import UserError
from runnel.model.names import TableName
from runnel.sql.others import spark_statement
from runnel.sql.statements import (
    AlterStreamTable,
    CompactStreamTable,
    CreateStreamTable,
    DropStreamTable,
    ExplainStreamTable,
    RefreshStreamTable,
    ShowAlerts,
    ShowCycles,
    ShowDiamondGroups,
    ShowRefreshHistory,
    ShowStreamTableGraph,
    ShowStreamTables,
    ShowStreamTableStats,
    Statement,
    VerifyStreamTable,
)
from runnel.sql.tokens import Tokens


def parse_statement(text: str) -> Statement:
    """Read one statement; what is not about stream tables is left to Spark."""
    tokens = Tokens(text)
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
    elif (shown := _show(tokens)) is not None:
        return shown
    elif tokens.accept("USE") and not _is_default(tokens):
        raise UserError(
            "USE is not followed: a name without a schema means the schema default",
            hint="write schema.table",
        )
    return spark_statement(text)


def _is_default(tokens: Tokens) -> bool:
    for word in ("SCHEMA", "DATABASE", "NAMESPACE"):
        tokens.accept(word)
    keys = ("default.default", "spark_catalog.default")
    return tokens.peek() is not None and tokens.name().key in keys


def _schedule(tokens: Tokens) -> str:
    if tokens.accept("DOWNSTREAM"):
        return "DOWNSTREAM"
    return tokens.string("a quoted schedule such as '5m', or DOWNSTREAM")


def _create(tokens: Tokens, or_replace: bool) -> CreateStreamTable:
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


def _explain(tokens: Tokens) -> ExplainStreamTable:
    options = _options(tokens) if tokens.accept("WITH") else {}
    if unknown := options.keys() - {"dialect"}:
        raise UserError(f"{min(unknown)!r} is not an option of EXPLAIN", detail="expected dialect")
    if options:
        tokens.expect("AS")
        return ExplainStreamTable(None, tokens.rest(), options["dialect"])
    if tokens.accept("AS"):
        return ExplainStreamTable(None, tokens.rest())
    return tokens.end(ExplainStreamTable(tokens.name()))


def _options(tokens: Tokens) -> dict[str, str]:
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


def _value(tokens: Tokens) -> str:
    text = tokens.peek() or ""
    if text[:1] in "'\"":
        return tokens.string("a value")
    return tokens.take("number" if text[:1].isdigit() else "word", "a value")


def _alter(tokens: Tokens) -> AlterStreamTable:
    name = tokens.name()
    if tokens.accept("AS"):
        return AlterStreamTable(name, query=tokens.rest())
    if tokens.accept("SUSPEND"):
        return tokens.end(AlterStreamTable(name, status="SUSPENDED"))
    if tokens.accept("RESUME"):
        return tokens.end(AlterStreamTable(name, status="ACTIVE"))
    if tokens.accept("SET", "SCHEDULE", "NONE"):
        return tokens.end(AlterStreamTable(name, unschedule=True))
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


def _show(tokens: Tokens) -> Statement | None:
    """What can be looked at; None when this is something else."""
    if tokens.accept("SHOW", "STREAM", "TABLES"):
        return tokens.end(ShowStreamTables())
    if tokens.accept("SHOW", "REFRESH", "HISTORY"):
        return tokens.end(ShowRefreshHistory(*_whose(tokens, 20)))
    if tokens.accept("SHOW", "STREAM", "TABLE", "STATS"):
        return _stats(tokens)
    if tokens.accept("SHOW", "STREAM", "TABLE", "GRAPH"):
        return tokens.end(ShowStreamTableGraph())
    if tokens.accept("SHOW", "DIAMOND", "GROUPS"):
        return tokens.end(ShowDiamondGroups())
    if tokens.accept("SHOW", "CYCLES"):
        return tokens.end(ShowCycles())
    if tokens.accept("SHOW", "ALERTS"):
        return tokens.end(ShowAlerts(*_whose(tokens, 50)))
    return None


def _stats(tokens: Tokens) -> ShowStreamTableStats:
    name = tokens.name() if tokens.accept("FOR") else None
    window = tokens.string("a quoted duration such as '1d'") if tokens.accept("WINDOW") else "1d"
    return tokens.end(ShowStreamTableStats(name, window))


def _whose(tokens: Tokens, limit: int) -> tuple[TableName | None, int]:
    """[FOR name] [LIMIT n]"""
    name = tokens.name() if tokens.accept("FOR") else None
    return name, int(tokens.take("number", "a number")) if tokens.accept("LIMIT") else limit
