"""`runnel run`: the scheduler in the foreground, with a live view or plain lines."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from runnel.cli.again import start_again
from runnel.cli.listing import emit
from runnel.cli.options import CatalogOption, Code, JsonOption, LakeOption
from runnel.cli.place import find_place, opened
from runnel.cli.text import is_terminal, note
from runnel.errors import SparkEnded

if TYPE_CHECKING:
    from runnel.cli.board import Board
    from runnel.cli.lines import Lines


def run(
    once: Annotated[
        bool, typer.Option("--once", help="Refresh what is due now, then end.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, help="Tables side by side; else max_concurrent_refreshes."
        ),
    ] = None,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep every stream table within its schedule; Ctrl-C ends it."""
    place = find_place(lake, catalog)
    try:
        with opened(place) as found, _stopping() as stop, _shown(as_json, once) as onlooker:
            done = found.run(once=once, workers=workers, stop=stop, onlooker=onlooker)
    except SparkEnded as error:
        if once:
            raise
        start_again(error)
    if not once:
        note("stopped")
        return
    emit(done, as_json, "nothing was refreshed" if onlooker.failed else "nothing was due")
    if onlooker.failed:
        raise typer.Exit(Code.FAILED)


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """An event that SIGTERM sets; Ctrl-C is seen by the loop itself."""
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _shown(as_json: bool, once: bool) -> Iterator[Board | Lines]:
    from runnel.cli.board import Board
    from runnel.cli.lines import Lines

    if once or as_json or not is_terminal(sys.stdout):
        if not once:
            note("running; Ctrl-C or SIGTERM ends it")
        yield Lines(as_json, is_silent=once)
        return
    with Board.live() as board:
        yield board
