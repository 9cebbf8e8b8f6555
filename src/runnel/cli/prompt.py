"""The interactive prompt of `runnel sql`: lines in, statements run, errors told, never lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from runnel import __version__
from runnel.cli.frames import show
from runnel.cli.shell import run_statement
from runnel.cli.text import note, say, show_error
from runnel.errors import RunnelError
from runnel.sql import cut_script

if TYPE_CHECKING:
    from runnel.api import Lake

_PROMPT, _MORE = "runnel> ", "    ..> "
_LEAVE = ("exit", "quit", r"\q")
_HELP = r"""A statement ends with ; and may take several lines. Any Spark SQL, and:
  CREATE [OR REPLACE] STREAM TABLE name [SCHEDULE '5m'] [REFRESH MODE AUTO] AS query
  ALTER STREAM TABLE name SET SCHEDULE '1h' | SET REFRESH MODE FULL | SUSPEND | RESUME | AS query
  DROP STREAM TABLE name [CASCADE]
  REFRESH STREAM TABLE name        REFRESH STREAM TABLES
  VERIFY STREAM TABLE name         COMPACT STREAM TABLE name
  EXPLAIN STREAM TABLE name        EXPLAIN STREAM TABLE AS query
  SHOW STREAM TABLES               SHOW REFRESH HISTORY [FOR name]
  SHOW STREAM TABLE GRAPH          SHOW DIAMOND GROUPS          SHOW CYCLES
Ctrl-C cancels a line or a running statement; Ctrl-D, exit or \q leave."""
_WORDS = (
    "ALTER AND AS ASC BETWEEN BY CASE COMPACT COUNT CREATE CROSS DELETE DESC DESCRIBE DISTINCT DROP"
    " ELSE END EXISTS EXPLAIN FROM FULL GROUP HAVING HISTORY IN INNER INSERT INTO IS JOIN LEFT"
    " LIKE LIMIT MERGE MODE NOT NULL ON OR ORDER REFRESH REPLACE RESUME RIGHT SCHEDULE SELECT SET"
    " SHOW STREAM SUM SUSPEND TABLE TABLES THEN UNION UPDATE USING VALUES VERIFY WHEN WHERE WITH"
).split()


def converse(lake: Lake, limit: int) -> None:
    """Read and run statements until the user leaves."""
    count = len(lake.status())
    say(f"Runnel {__version__}, {count} stream table{'' if count == 1 else 's'}.")
    note(r"Statements end with ;   \? helps, Ctrl-D leaves.")
    with _line_editing(lambda: [row.name for row in lake.status()]):
        for text in _statements():
            _run(lake, text, limit)


def _statements() -> Iterator[str]:
    begun = ""
    while True:
        try:
            line = input(_MORE if begun else _PROMPT)
        except KeyboardInterrupt:
            say("^C")
            begun = ""
            continue
        except EOFError:
            say()
            return
        word = line.strip().rstrip(";").lower()
        if not begun and word in _LEAVE:
            return
        if not begun and word in ("help", r"\?", r"\h"):
            say(_HELP)
            continue
        pieces, rest = cut_script(begun + line + "\n")
        begun = rest.text if rest else ""
        yield from (piece.text for piece in pieces)


def _run(lake: Lake, text: str, limit: int) -> None:
    start = perf_counter()
    try:
        show(run_statement(lake, text, limit, counted=True), perf_counter() - start)
    except RunnelError as error:
        show_error(error)
    except KeyboardInterrupt:
        from runnel.lake.interrupts import cancel

        # Fetching rows is no verb of the lake, which would have ended its own jobs.
        cancel(lake.spark)
        note("(cancelled)")


@contextmanager
def _line_editing(tables: Callable[[], list[str]]) -> Iterator[None]:
    """A history kept between sessions, and completion, where there is readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    file = _history_file()
    # A history that cannot be kept is no reason to fail.
    with suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(2000)
    readline.set_completer(_completer(tables))
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(None)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(file)


def _history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "runnel" / "sql_history"


def _completer(tables: Callable[[], list[str]]) -> Callable[[str, int], str | None]:
    found: list[str] = []

    def complete(begun: str, number: int) -> str | None:
        if number == 0:
            words = [w if begun.isupper() else w.lower() for w in _WORDS] + tables()
            found[:] = [w for w in words if w.lower().startswith(begun.lower())]
        return found[number] if number < len(found) else None

    return complete
