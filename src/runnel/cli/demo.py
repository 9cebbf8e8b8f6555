"""`runnel demo`: a small shop, four stream tables, and rounds of changes, each checked."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    from runnel.model.results import RefreshResult

# A minute is too short for Java's optimising compiler, its parallel collector and Spark's
# adaptive planning to pay.
_JAVA = (
    "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC "
    "-XX:MetaspaceSize=256m -Xms1g"
)


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
        with opened(Place(folder), _conf()) as shop:
            _play(shop, board)
        board.summary()
    if not board.is_right:
        raise typer.Exit(Code.FAILED)


def _conf() -> dict[str, str]:
    from runnel.lake.java import find_java
    from runnel.lake.quick_start import java_options

    return {
        "spark.driver.extraJavaOptions": java_options(find_java(), _JAVA),
        "spark.sql.adaptive.enabled": "false",
    }


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
        _fill(lake, update)
    board.opening()
    for number, happening in enumerate(ROUNDS, 1):
        board.announce(number, happening)
        with working("changing the shop") as update:
            for statement in happening.statements:
                lake.sql(statement)
            update("refreshing")
            lines = _lines(lake, lake.refresh(), board, update)
        board.show(lines)


def _fill(lake: Lake, update: Update) -> None:
    """Make the shop and the stream tables."""
    from runnel.cli.shop import STREAM_TABLES, TABLES

    for name, statement in TABLES.items():
        update(f"creating {name}")
        lake.sql(statement)
    for shown in STREAM_TABLES:
        update(f"filling stream table {shown.name}")
        lake.create_stream_table(shown.name, shown.query, refresh_mode=shown.mode)


def _lines(
    lake: Lake, results: Sequence[RefreshResult], board: Scoreboard, update: Update
) -> list[Line]:
    from runnel.cli.scoreboard import Line

    full: dict[str, float] = {}
    for name, last in ((r.name, None if r.change_rows else board.last(r.name)) for r in results):
        # The same sources: recomputing would take what it took.
        if last is None:
            update(f"recomputing {name} in full, to compare the time")
        full[name] = last.full_seconds if last else _recompute(lake, name)
    update("verifying")
    # Nobody times these, so they may run side by side.
    with ThreadPoolExecutor(len(results)) as pool:
        verified = list(pool.map(lake.verify, full))
    return [Line(r, full[r.name], v) for r, v in zip(results, verified, strict=True)]


def _recompute(lake: Lake, name: str) -> float:
    """How long it takes to run the whole query and store its result as Parquet files."""
    from runnel.cli.shop import STREAM_TABLES

    query = next(shown.query for shown in STREAM_TABLES if shown.name == name)
    with tempfile.TemporaryDirectory() as scratch:
        start = perf_counter()
        lake.sql(query).write.mode("overwrite").parquet(scratch)
        return perf_counter() - start
