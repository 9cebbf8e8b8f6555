"""Options, commands and settings cannot be added without being documented."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import typer

from runnel.model.settings import Settings

_ROOT = Path(__file__).parent.parent.parent
_PYTHON = (_ROOT / "docs" / "python.md").read_text()
_SQL = (_ROOT / "docs" / "sql.md").read_text()
_CLI = (_ROOT / "docs" / "cli.md").read_text()


def test_every_setting_is_documented_with_its_default() -> None:
    for field in fields(Settings):
        if field.name != "origins":
            assert f"| `{field.name}` | {field.default} |" in _PYTHON
            assert field.metadata["doc"] in _PYTHON


def test_every_verb_and_its_options_are_documented() -> None:
    from runnel.api import Lake

    verbs = [n for n in dir(Lake) if callable(getattr(Lake, n)) and not n.startswith("_")]
    assert len(verbs) >= 20
    for verb in verbs:
        assert f"`lake.{verb}(" in _PYTHON, verb
    options = inspect.signature(Lake.create_stream_table).parameters
    assert all(f"{name}" in _PYTHON for name in options if name != "self")


def test_every_statement_is_documented() -> None:
    from runnel import sql

    words = {
        sql.CreateStreamTable: "CREATE [OR REPLACE] STREAM TABLE",
        sql.AlterStreamTable: "ALTER STREAM TABLE name AS query",
        sql.DropStreamTable: "DROP STREAM TABLE",
        sql.RefreshStreamTable: "REFRESH STREAM TABLES",
        sql.VerifyStreamTable: "VERIFY STREAM TABLE",
        sql.CompactStreamTable: "COMPACT STREAM TABLE",
        sql.ExplainStreamTable: "EXPLAIN STREAM TABLE AS query",
        sql.ShowStreamTables: "SHOW STREAM TABLES",
        sql.ShowRefreshHistory: "SHOW REFRESH HISTORY",
        sql.ShowStreamTableStats: "SHOW STREAM TABLE STATS [FOR name] [WINDOW '1d']",
        sql.ShowAlerts: "SHOW ALERTS [FOR name] [LIMIT n]",
    }
    statements = set(sql.Statement.__args__) - {sql.SparkStatement}
    assert statements == set(words)
    for text in words.values():
        assert text in _SQL


def test_every_command_and_flag_is_documented() -> None:
    from runnel.cli.main import app

    command = typer.main.get_command(app)
    for name, sub in command.commands.items():  # type: ignore[attr-defined]
        assert f"runnel {name}" in _CLI, name
        for parameter in sub.params:
            for flag in parameter.opts:
                if flag.startswith("--") and flag != "--help":
                    assert flag in _CLI, f"{name} {flag}"


def test_every_kind_of_alert_is_documented() -> None:
    from runnel.model.alerts import AlertKind

    for kind in AlertKind:
        assert f"`{kind}`" in _PYTHON, kind
