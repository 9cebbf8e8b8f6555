"""How text, values and lines are shown; no Spark."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from runnel.cli import frames, prompt, text
from runnel.cli.frames import Answer, fetch, show, show_json
from runnel.errors import UserError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard output as a terminal of 60 columns, from here to the end of the test."""
    made = Terminal()
    monkeypatch.setattr("sys.stdout", made)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return made


def test_a_table_is_aligned() -> None:
    shown = text.table(["name", "rows"], [["a", "1"], ["größer", None]], right=["rows"])
    assert shown.splitlines() == ["name    rows", "a          1", "größer"]


def test_a_terminal_wraps_the_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    lines = text.table(["a", "reason"], [["x" * 20, "word " * 20]]).splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 60
    assert lines[2].startswith(" " * 22 + "word")


def test_colours_only_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch)
    assert "\033[32mOK\033[0m" in text.table(["result"], [["OK"]])
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in text.table(["result"], [["OK"]])
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\033" not in text.table(["result"], [["OK"]])


def rows(*values: tuple[Any, ...], columns: str = "a b", more: int | None = 0) -> Answer:
    names = tuple(columns.split())
    return Answer(columns=names, types=("bigint", "string"), rows=values, more=more)


def test_rows_for_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show(rows((1, "x"), (None, None), more=1200))
    out, err = capsys.readouterr()
    assert out.splitlines() == ["   a  b", "   1  x", "NULL  NULL"]
    assert err == "(2 of 1,202 rows, see --limit)\n"


def test_rows_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    show(rows((1, "[bold]x"), (2, None)), seconds=1.5)
    shown = screen.getvalue()
    assert "╭" in shown
    assert "[bold]x" in shown
    assert "NULL" in shown


def test_wide_rows_are_shown_upright(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    names = tuple(f"column {i}" for i in range(20))
    show(Answer(columns=names, types=("int",) * 20, rows=(tuple(range(20)),)))
    assert "column 19  19\n" in screen.getvalue()


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show_json(rows((Decimal("1.50"), date(2026, 1, 2)), more=None), 3)
    show_json(Answer(("sales",)), 4)
    show_json(Answer(), 5)
    assert capsys.readouterr().out.splitlines() == [
        '{"statement": 3, "rows": [{"a": "1.50", "b": "2026-01-02"}], "truncated": true}',
        '{"statement": 4, "result": ["sales"]}',
        '{"statement": 5, "result": null}',
    ]


def test_values_as_people_and_scripts_read_them() -> None:
    struct = SimpleNamespace(asDict=lambda: {"x": 1, "y": [Decimal("2.0")]})
    assert frames._cell(struct) == '{"x": 1, "y": ["2.0"]}'
    assert frames._cell(1234567) == "1234567"
    assert frames._cell(True) == "true"
    assert frames._cell(float("nan")) == "nan"
    assert frames._cell(b"\x01\xff") == "01ff"
    assert frames._cell({"k": None}) == '{"k": null}'


def test_names_in_a_result_differ() -> None:
    assert frames._distinct(["a", "a", "a_2", "a"]) == ("a", "a_2", "a_2_2", "a_3")


def test_results_of_verbs_are_not_fetched() -> None:
    assert fetch(None, 10, counted=True) == Answer()
    assert fetch(("sales",), 10, counted=True) == Answer(("sales",))


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the prompt makes of these lines; an exception in their place is raised."""

    def statements(*lines: str | BaseException) -> list[str]:
        waiting: Iterator[str | BaseException] = iter([*lines, EOFError()])

        def answer(_: str) -> str:
            line = next(waiting)
            if isinstance(line, BaseException):
                raise line
            return line

        monkeypatch.setattr("builtins.input", answer)
        return list(prompt._statements())

    return statements


def test_statements_at_the_prompt(typed: Any) -> None:
    assert typed("SELECT 1; SELECT", "2;", "SELECT 'a;", "b';") == [
        "SELECT 1", "SELECT\n2", "SELECT 'a;\nb'",
    ]  # fmt: skip
    assert typed("SELECT", "exit", ";") == ["SELECT\nexit"]


def test_leaving_and_cancelling_at_the_prompt(
    typed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("SELECT 1;", "exit", "SELECT 2;") == ["SELECT 1"]
    assert typed(r"\q", "SELECT 2;") == []
    assert typed("SELECT wrong", KeyboardInterrupt(), "SELECT 2;") == ["SELECT 2"]
    assert typed("help", "SELECT 1;") == ["SELECT 1"]
    assert "CREATE [OR REPLACE] STREAM TABLE" in capsys.readouterr().out


def test_errors_do_not_leave_the_prompt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    running = [["1"], []]

    def run_statement(lake: Any, statement: str, *_: Any, **__: Any) -> Answer:
        raise (
            KeyboardInterrupt
            if statement == "slow"
            else UserError("it is wrong", hint="do it right")
        )

    lake: Any = SimpleNamespace(spark=SimpleNamespace(interruptAll=lambda: running.pop(0)))
    monkeypatch.setattr(prompt, "run_statement", run_statement)
    prompt._run(lake, "bad", 10)
    prompt._run(lake, "slow", 10)
    assert capsys.readouterr().err == "error: it is wrong\nhint: do it right\n(cancelled)\n"
    assert running == []


def test_completion() -> None:
    complete = prompt._completer(lambda: ["sales", "Selections"])
    assert [complete("sel", 0), complete("sel", 1), complete("sel", 2)] == [
        "select", "Selections", None,
    ]  # fmt: skip
    assert complete("SEL", 0) == "SELECT"
