"""Commands that define stream tables: create, alter, drop, suspend, resume."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runnel.cli.listing import described
from runnel.cli.options import CatalogOption, LakeOption
from runnel.cli.place import find_place, opened, start_spark
from runnel.cli.progress import working
from runnel.cli.text import note, say
from runnel.errors import UserError

if TYPE_CHECKING:
    from runnel.api import Lake
    from runnel.model.results import TableStatus

QueryFile = Annotated[
    Path | None,
    typer.Option("--file", "-f", help="Read the query from a file (- is standard input)."),
]
ScheduleOption = Annotated[
    str | None,
    typer.Option("--schedule", "-s", help="How stale it may be: 30s, 5m, 1h30m.", metavar="TIME"),
]
ModeOption = Annotated[
    str | None, typer.Option("--refresh-mode", "-m", help="AUTO, DIFFERENTIAL, FULL or IMMEDIATE.")
]
DialectOption = Annotated[
    str | None, typer.Option("--dialect", help="What the query is written in: spark, postgres.")
]
DiamondOption = Annotated[
    str | None,
    typer.Option(
        "--diamond-consistency", help="none, or atomic: advance with those it meets again."
    ),
]
CommentOption = Annotated[str | None, typer.Option("--comment", help="A note about the table.")]


def create(
    name: Annotated[str, typer.Argument(help="The new table.", metavar="NAME")],
    query: Annotated[str | None, typer.Argument(help="Its query.", metavar="SQL")] = None,
    file: QueryFile = None,
    schedule: ScheduleOption = None,
    mode: ModeOption = None,
    comment: CommentOption = None,
    dialect: DialectOption = None,
    diamonds: DiamondOption = None,
    initialize: Annotated[
        bool, typer.Option("--initialize/--no-initialize", help="Fill it now, or at a refresh.")
    ] = True,
    or_replace: Annotated[
        bool, typer.Option("--or-replace", help="Replace a table of that name.")
    ] = False,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave a table of that name.")
    ] = False,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Define a stream table and fill it."""
    text = _query(query, file)
    if text is None:
        raise typer.BadParameter("give the query as SQL or with --file")
    with opened(find_place(lake, catalog)) as place:
        with working("starting Spark") as update:
            start_spark(place)
            update(f"filling {name}" if initialize else f"defining {name}")
            status = place.create_stream_table(
                name, text, schedule=schedule, refresh_mode=mode or "AUTO", comment=comment,
                initialize=initialize, or_replace=or_replace, if_not_exists=if_not_exists,
                dialect=dialect or "spark", diamond_consistency=diamonds,
            )  # fmt: skip
        _tell(place, status)


def alter(
    name: Annotated[str, typer.Argument(help="The stream table.", metavar="NAME")],
    query: Annotated[str | None, typer.Argument(help="A new query.", metavar="SQL")] = None,
    file: QueryFile = None,
    schedule: ScheduleOption = None,
    unschedule: Annotated[
        bool, typer.Option("--no-schedule", help="Refresh only when asked to.")
    ] = False,
    mode: ModeOption = None,
    comment: CommentOption = None,
    dialect: DialectOption = None,
    diamonds: DiamondOption = None,
    suspend: Annotated[bool, typer.Option("--suspend", help="Leave it out of refreshes.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="End a suspension.")] = False,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Change a definition; only a new query computes anything."""
    if suspend and resume:
        raise typer.BadParameter("--suspend and --resume exclude each other")
    if unschedule and schedule is not None:
        raise typer.BadParameter("--schedule and --no-schedule exclude each other")
    text = _query(query, file)
    status = "SUSPENDED" if suspend else "ACTIVE" if resume else None
    if dialect is not None and text is None:
        raise typer.BadParameter("--dialect goes with a new query")
    given = {"refresh_mode": mode, "comment": comment, "status": status, "query": text,
             "dialect": dialect, "diamond_consistency": diamonds}  # fmt: skip
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if schedule is not None or unschedule:
        changes["schedule"] = schedule
    if not changes:
        raise typer.BadParameter("say what to change: a query, --schedule, --refresh-mode ...")
    with opened(find_place(lake, catalog)) as place:
        place.status(name)
        with working("starting Spark" if text else "altering") as update:
            if text is not None:
                start_spark(place)
                update(f"filling {name}")
            altered = place.alter_stream_table(name, **changes)
        if text is not None:
            _tell(place, altered)
        else:
            say(f"altered {described(altered)}")


def drop(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The stream tables.")],
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Also drop the tables that read them.")
    ] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Do nothing when there is none.")
    ] = False,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Remove stream tables and what they stored."""
    with opened(find_place(lake, catalog)) as place:
        for name in names:
            dropped = place.drop_stream_table(name, cascade=cascade, if_exists=if_exists)
            say(f"dropped {', '.join(dropped)}" if dropped else f"{name} does not exist")


def suspend(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The stream tables.")],
    lake: LakeOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Leave stream tables out of refreshes; they keep serving their last contents."""
    with opened(find_place(lake, catalog)) as place:
        for name in names:
            say(f"suspended {place.suspend(name).name}")


def resume(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The stream tables.")],
    lake: LakeOption = None,
    catalog: CatalogOption = None,
) -> None:
    """End a suspension; earlier errors are forgotten."""
    with opened(find_place(lake, catalog)) as place:
        for name in names:
            say(f"resumed {place.resume(name).name}")


def _query(text: str | None, file: Path | None) -> str | None:
    if file is None:
        return text
    if text is not None:
        raise typer.BadParameter("give the query as SQL or with --file, not both")
    return read_text(file)


def read_text(file: Path) -> str:
    """A file's text; `-` is standard input."""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read", detail=str(error)) from None


def _tell(lake: Lake, status: TableStatus) -> None:
    from runnel.model.tabular import duration

    if status.epoch == 0:
        say(f"defined {described(status)}; it is filled by runnel refresh {status.name}")
        return
    last = lake.history(status.name, 1)
    filled = f": {last[0].rows_inserted:,} rows in {duration(last[0].seconds)}" if last else ""
    say(f"filled {described(status)}{filled}")
    if status.refresh_reason:
        note(f"every refresh is FULL: {status.refresh_reason}")
