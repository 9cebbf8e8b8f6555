"""`runnel sql`: statements from the command line, a file, a pipe or a prompt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runnel.cli.define import read_text
from runnel.cli.options import CatalogOption, Code, JsonOption, LakeOption
from runnel.cli.place import Place, find_place, opened, start_spark
from runnel.cli.progress import working
from runnel.cli.text import note, show_error
from runnel.errors import Busy, RunnelError

if TYPE_CHECKING:
    from runnel.api import Lake
    from runnel.sql import Piece


def sql(
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Run a script (- is standard input).")
    ] = None,
    execute: Annotated[
        str | None, typer.Option("--execute", "-e", help="Run these statements.", metavar="SQL")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="How many rows of a result to show.")
    ] = 50,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run SQL: any Spark statement and the STREAM TABLE statements; a prompt without -f or -e."""
    if file is not None and execute is not None:
        raise typer.BadParameter("--file and --execute exclude each other")
    place = find_place(lake, catalog, may_be_new=True)
    script = execute if file is None else read_text(file)
    if script is None and not sys.stdin.isatty():
        script = sys.stdin.read()
    _tell_when_new(place)
    with opened(place) as open_lake:
        with working("starting Spark"):
            start_spark(open_lake)
        if script is not None:
            run_script(open_lake, script, limit, as_json)
        else:
            from runnel.cli.prompt import converse

            converse(open_lake, limit)


def run_script(lake: Lake, script: str, limit: int, as_json: bool) -> None:
    """Run a script's statements in order, up to the first that fails."""
    from runnel.cli.frames import show, show_json
    from runnel.sql import cut_script

    pieces, rest = cut_script(script)
    differs = False
    for number, piece in enumerate([*pieces, rest] if rest else pieces, 1):
        try:
            answer = run_statement(lake, piece.text, limit, counted=not as_json)
        except RunnelError as error:
            show_error(error, at=_where(number, piece))
            raise typer.Exit(Code.BUSY if isinstance(error, Busy) else Code.FAILED) from error
        if as_json:
            show_json(answer, number)
        else:
            show(answer)
        differs |= is_difference(answer.result)
    if differs:
        raise typer.Exit(Code.DIFFERENT)


def run_statement(lake: Lake, text: str, limit: int, *, counted: bool) -> Any:
    """Run one statement and fetch what it gave, under a spinner."""
    from runnel.cli.frames import fetch
    from runnel.lake.translate import translate

    try:
        with working(_first_line(text, 60)):
            return fetch(lake.sql(text), limit, counted=counted)
    except RunnelError:
        raise
    except Exception as error:
        raise translate(error) from error


def is_difference(result: Any) -> bool:
    from runnel.model.results import VerifyResult

    return isinstance(result, VerifyResult) and not result.ok


def _tell_when_new(place: Place) -> None:
    if not place.is_lake:
        note(f"new lake: {place.folder}")


def _where(number: int, piece: Piece) -> str:
    return f"statement {number}, line {piece.line}: {_first_line(piece.text, 80)}"


def _first_line(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
