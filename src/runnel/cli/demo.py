"""`runnel demo`: a small shop, four stream tables, and rounds of changes, each checked."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from runnel.cli.options import Code
from runnel.cli.place import Place, opened, start_spark
from runnel.cli.progress import Update, working
from runnel.errors import UserError

if TYPE_CHECKING:
    from runnel.api import Lake
    from runnel.cli.scoreboard import Line, Scoreboard
    from runnel.cli.shop import Round

# A minute is too short for the optimising compiler to pay: half the processor time goes into it.
_QUICK_START = {
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1",
}


def demo(
    lake: Annotated[
        Path | None,
        typer.Option(
            "--lake",
            help="A new folder for the demo's lake, which stays there.",
            show_default=False,
            metavar="PATH",
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the temporary lake where it is.")
    ] = False,
) -> None:
    """Watch four stream tables follow a small shop; takes about a minute."""
    from runnel.cli.scoreboard import Scoreboard

    with _stage(lake, keep) as folder:
        board = Scoreboard(folder, kept=keep or lake is not None)
        with opened(Place(folder), _QUICK_START) as shop:
            _play(shop, board)
        board.summary()
    if not board.is_right:
        raise typer.Exit(Code.FAILED)


@contextmanager
def _stage(lake: Path | None, keep: bool) -> Iterator[Path]:
    if lake is not None:
        if lake.exists() and (not lake.is_dir() or any(lake.iterdir())):
            raise UserError(
                f"{lake} is not empty",
                hint="the demo wants a new folder, or none for a temporary one",
            )
        yield lake.expanduser().resolve()
    elif keep:
        yield Path(tempfile.mkdtemp(prefix="runnel-demo-"))
    else:
        with tempfile.TemporaryDirectory(prefix="runnel-demo-", ignore_cleanup_errors=True) as path:
            yield Path(path)


def _play(lake: Lake, board: Scoreboard) -> None:
    from runnel.cli.shop import ROUNDS

    with working("starting Spark") as update:
        start_spark(lake)
        board.opening(_fill(lake, update))
    for number, happening in enumerate(ROUNDS, 1):
        board.announce(number, happening)
        with working("changing the shop") as update, tempfile.TemporaryDirectory() as scratch:
            board.show(_round(lake, happening, update, scratch))


def _fill(lake: Lake, update: Update) -> dict[str, int]:
    """Make the shop and the stream tables; the number of rows of each."""
    from runnel.cli.shop import STREAM_TABLES, TABLES

    for name, statement in TABLES.items():
        update(f"creating {name}")
        lake.sql(statement)
    for shown in STREAM_TABLES:
        update(f"filling stream table {shown.name}")
        lake.create_stream_table(shown.name, shown.query, refresh_mode="DIFFERENTIAL")
    return {name: lake.table(name).count() for name in TABLES}


def _round(lake: Lake, happening: Round, update: Update, scratch: str) -> list[Line]:
    from runnel.cli.scoreboard import Line
    from runnel.cli.shop import STREAM_TABLES

    for statement in happening.statements:
        lake.sql(statement)
    update("refreshing")
    results = {result.name: result for result in lake.refresh()}
    lines = []
    for shown in STREAM_TABLES:
        update(f"recomputing {shown.name} in full, to compare the time")
        seconds = _recompute(lake, shown.query, f"{scratch}/{shown.name}")
        update(f"verifying {shown.name}")
        lines.append(Line(results[shown.name], seconds, lake.verify(shown.name)))
    return lines


def _recompute(lake: Lake, query: str, path: str) -> float:
    """How long it takes to run the whole query and store its result as a Delta table."""
    start = perf_counter()
    lake.sql(query).write.format("delta").mode("overwrite").save(path)
    return perf_counter() - start
