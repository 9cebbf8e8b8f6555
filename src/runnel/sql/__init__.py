"""The STREAM TABLE statements, read into values; also what other statements create or write to."""

from runnel.sql.parsing import parse_statement
from runnel.sql.scripts import Piece, cut_script, split_statements
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
    SparkStatement,
    Statement,
    VerifyStreamTable,
)

__all__ = [
    "AlterStreamTable",
    "CompactStreamTable",
    "CreateStreamTable",
    "DropStreamTable",
    "ExplainStreamTable",
    "Piece",
    "RefreshStreamTable",
    "ShowAlerts",
    "ShowCycles",
    "ShowDiamondGroups",
    "ShowRefreshHistory",
    "ShowStreamTableGraph",
    "ShowStreamTableStats",
    "ShowStreamTables",
    "SparkStatement",
    "Statement",
    "VerifyStreamTable",
    "cut_script",
    "parse_statement",
    "split_statements",
]
