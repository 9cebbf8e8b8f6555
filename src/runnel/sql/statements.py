"""The STREAM TABLE statements as values."""

from __future__ import annotations

from dataclasses import dataclass, field

from runnel.model.names import TableName


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
    """What is to become of a table; `unschedule`: it has no schedule any more."""

    name: TableName
    schedule: str | None = None
    refresh_mode: str | None = None
    comment: str | None = None
    status: str | None = None
    query: str | None = None
    diamond_consistency: str | None = None
    unschedule: bool = False


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
class ShowStreamTableGraph:
    pass


@dataclass(frozen=True, slots=True)
class ShowDiamondGroups:
    pass


@dataclass(frozen=True, slots=True)
class ShowCycles:
    pass


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
    | ShowStreamTableGraph
    | ShowDiamondGroups
    | ShowCycles
    | SparkStatement
)
