"""What each STREAM TABLE statement calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runnel import sql as statements
from runnel.errors import RunnelError, UserError
from runnel.model.results import TableStatus
from runnel.model.stats import TableStats
from runnel.model.tabular import Rows

if TYPE_CHECKING:
    from runnel.api.lake import Lake

WITH_OPTIONS = (
    "schedule",
    "refresh_mode",
    "comment",
    "initialize",
    "dialect",
    "diamond_consistency",
)


def carry_out(lake: Lake, statement: statements.Statement) -> Any:
    match statement:
        case statements.CreateStreamTable():
            return _create(lake, statement)
        case statements.AlterStreamTable():
            return _alter(lake, statement)
        case statements.DropStreamTable():
            return lake.drop_stream_table(
                statement.name, cascade=statement.cascade, if_exists=statement.if_exists
            )
        case statements.RefreshStreamTable():
            return lake.refresh(statement.name) if statement.name else lake.refresh()
        case statements.VerifyStreamTable():
            return lake.verify(statement.name)
        case statements.CompactStreamTable():
            return lake.compact(statement.name)
        case statements.ExplainStreamTable():
            return lake.explain(statement.name, query=statement.query, dialect=statement.dialect)
        case _:
            return _show(lake, statement)


def _show(lake: Lake, statement: statements.Statement) -> Any:
    match statement:
        case statements.ShowStreamTables():
            return lake.status()
        case statements.ShowStreamTableStats():
            if statement.name is None:
                return lake.stats(window=statement.window)
            return Rows([lake.stats(statement.name, window=statement.window)], TableStats.COLUMNS)
        case statements.ShowStreamTableGraph():
            return lake.graph()
        case statements.ShowDiamondGroups():
            return lake.diamond_groups()
        case statements.ShowCycles():
            return lake.scc_status()
        case statements.ShowAlerts():
            return lake.alerts(statement.name, limit=statement.limit)
        case statements.ShowRefreshHistory():
            return lake.history(statement.name, statement.limit)
        case _:
            raise RunnelError(f"no verb for {statement}")


def _create(lake: Lake, statement: statements.CreateStreamTable) -> TableStatus:
    given: dict[str, Any] = dict(statement.options)
    for name in given:
        if name not in WITH_OPTIONS:
            raise UserError(
                f"{name!r} is not an option of a stream table",
                detail=f"expected {', '.join(WITH_OPTIONS[:-1])} or {WITH_OPTIONS[-1]}",
                hint="leave it out, or check the spelling",
            )
        if getattr(statement, name, None) is not None:
            raise UserError(
                f"{name} is given twice", hint="as a clause or in WITH (...), not in both"
            )
    if "initialize" in given:
        given["initialize"] = _boolean("initialize", given["initialize"])
    for name in ("schedule", "refresh_mode", "comment"):
        if (value := getattr(statement, name)) is not None:
            given[name] = value
    return lake.create_stream_table(
        statement.name, statement.query, or_replace=statement.or_replace,
        if_not_exists=statement.if_not_exists, **given,
    )  # fmt: skip


def _alter(lake: Lake, statement: statements.AlterStreamTable) -> TableStatus:
    given: dict[str, Any] = {"schedule": None} if statement.unschedule else {}
    given |= {
        name: value
        for name in (
            "schedule",
            "refresh_mode",
            "comment",
            "status",
            "query",
            "diamond_consistency",
        )
        if (value := getattr(statement, name)) is not None
    }
    return lake.alter_stream_table(statement.name, **given)


def _boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UserError(f"{name} = {text!r} is not valid", detail="expected true or false")
    return text.lower() == "true"
