"""Options, commands and settings cannot be added without being documented."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
from dataclasses import fields
from pathlib import Path

import typer

import runnel
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


def test_every_verb_and_its_arguments_are_documented() -> None:
    from runnel.api import Lake

    verbs = [n for n in dir(Lake) if callable(getattr(Lake, n)) and not n.startswith("_")]
    assert len(verbs) >= 20
    for verb in verbs:
        rows = [line for line in _PYTHON.splitlines() if f"`lake.{verb}(" in line]
        assert rows, verb
        _compare(verb, "\n".join(rows), inspect.signature(getattr(Lake, verb)))


def test_the_arguments_of_connect_are_documented() -> None:
    signature = inspect.signature(runnel.connect)
    line = next(line for line in _PYTHON.splitlines() if line.startswith("`connect("))
    _compare("connect", line, signature)
    for name in signature.parameters:
        assert name == "settings" or f"| `{name}` |" in _PYTHON, name


def _compare(verb: str, text: str, signature: inspect.Signature) -> None:
    """Each argument is named where the verb is, and with the default that it has."""
    names = [n for n in signature.parameters if n not in ("self", "lake")]
    for name in names:
        # What several tables are called is shown as a dictionary of them.
        assert re.search(rf"\b{name}\b", text) or name == "queries", f"{verb}({name})"
    calls = re.findall(rf"`(?:lake\.)?{verb}\((.*?)\)`", text)
    for name, value in re.findall(r"(\w+)=([^,)]*)", ", ".join(calls)):
        assert name in names, f"{verb} has no argument {name}"
        with contextlib.suppress(SyntaxError, ValueError):
            shown = ast.literal_eval(value)
            default = signature.parameters[name].default
            assert shown in (default, "..."), f"{verb}({name}={default!r})"


def test_every_variable_that_is_no_setting_is_documented() -> None:
    """Those of the settings are made from their names."""
    names = {f"RUNNEL_{field.name.upper()}" for field in fields(Settings)}
    found: set[str] = set()
    for file in (_ROOT / "src").rglob("*.py"):
        found |= set(re.findall(r"environ\S*[(\[][\"'](RUNNEL_[A-Z]+)", file.read_text()))
    assert {"RUNNEL_MASTER", "RUNNEL_LAKE"} <= found
    for name in found - names:
        assert f"`{name}`" in _CLI, name
    for text in (_PYTHON, _CLI):
        assert "`RUNNEL_MASTER`" in text
        assert "sc://" in text


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
        sql.ShowStreamTableGraph: "SHOW STREAM TABLE GRAPH",
        sql.ShowDiamondGroups: "SHOW DIAMOND GROUPS",
        sql.ShowCycles: "SHOW CYCLES",
    }
    statements = set(sql.Statement.__args__) - {sql.SparkStatement}
    assert statements == set(words)
    for text in words.values():
        assert text in _SQL


def test_every_option_of_with_is_documented() -> None:
    from runnel.api.speaking import WITH_OPTIONS

    line = next(line for line in _SQL.splitlines() if line.startswith("Options of `WITH`"))
    for name in WITH_OPTIONS:
        assert f"`{name}`" in line
        assert name in inspect.signature(runnel.api.Lake.create_stream_table).parameters


def test_every_command_and_flag_is_documented() -> None:
    from runnel.cli.main import app

    command = typer.main.get_command(app)
    for name, sub in command.commands.items():  # type: ignore[attr-defined]
        assert f"`runnel {name}`" in _CLI.partition("## ")[0], name
        flags = _flags_shown(name)
        known = [{*p.opts, *p.secondary_opts} for p in sub.params]
        assert flags <= set().union(*known), name
        for options in known:
            is_everywhere = options & {"--lake", "--catalog"}
            is_flag = any(o.startswith("--") for o in options)
            assert is_everywhere or not is_flag or options & flags, f"{name} {options}"
            assert all(o in _CLI for o in options if o.startswith("--")), f"{name} {options}"


def _flags_shown(command: str) -> set[str]:
    """The flags in a command's line of usage, which may go on with lines that are indented."""
    usage = re.search(rf"^runnel {command} .*(?:\n +.*)*", f"{_CLI}\n", re.MULTILINE)
    assert usage is not None, command
    return set(re.findall(r"--[\w-]+", usage.group()))


def test_every_kind_of_alert_is_documented() -> None:
    from runnel.model.alerts import AlertKind

    for kind in AlertKind:
        assert f"`{kind}`" in _PYTHON, kind
