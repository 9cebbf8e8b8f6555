"""Commands that work on stream tables: refresh, verify, compact, explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from runnel.cli.listing import emit, emit_json
from runnel.cli.options import CatalogOption, Code, JsonOption, LakeOption
from runnel.cli.place import find_place, opened, start_spark
from runnel.cli.progress import Update, working
from runnel.cli.text import note, say

if TYPE_CHECKING:
    from runnel.api import Lake
    from runnel.model.results import CompactResult, RefreshResult, VerifyResult

_NONE = "no stream tables yet"
Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="The stream tables; else all.")
]


def refresh(
    names: Names = None,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring stream tables up to date, each after those it reads."""
    results: list[RefreshResult] = []
    try:
        with opened(find_place(lake, catalog)) as place, working("looking for changes") as update:
            wanted: list[str | None] = [*names] if names else [None]
            for name in wanted:
                _refresh(place, name, results, update)
    finally:
        # Also when a later table failed: what was refreshed before it is done.
        if results:
            emit(results, as_json, _NONE)
    if not results:
        emit(results, as_json, _NONE)


def _refresh(lake: Lake, name: str | None, done: list[RefreshResult], update: Update) -> None:
    order = lake.refresh_order(name)
    before = len(done)

    def announce() -> None:
        position = len(done) - before
        if position < len(order):
            update(f"refreshing {order[position]} ({position + 1} of {len(order)})")

    def notice(result: RefreshResult) -> None:
        done.append(result)
        announce()

    announce()
    lake.refresh(name, notice=notice)


def verify(
    names: Names = None,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare stream tables with their queries, row by row; exit code 3 when one differs."""
    with opened(find_place(lake, catalog)) as place, working("starting Spark") as update:
        wanted = names or _filled(place)
        results: list[VerifyResult] = []
        for position, name in enumerate(wanted, 1):
            place.status(name)
            start_spark(place)
            update(f"verifying {name} ({position} of {len(wanted)})")
            results.append(place.verify(name))
    emit(results, as_json, _NONE)
    if not all(results):
        raise typer.Exit(Code.DIFFERENT)


def _filled(lake: Lake) -> list[str]:
    """All tables but those without contents, which are named."""
    rows = lake.status()
    for row in rows:
        if row.epoch == 0:
            note(f"{row.name} was never filled: skipped")
    return [row.name for row in rows if row.epoch > 0]


def compact(
    names: Names = None,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rewrite stored changes that no reader needs any more into one sorted run."""
    results: list[CompactResult] = []
    with opened(find_place(lake, catalog)) as place, working("compacting") as update:
        wanted = names or [row.name for row in place.status()]
        for position, name in enumerate(wanted, 1):
            update(f"compacting {name} ({position} of {len(wanted)})")
            results.append(place.compact(name))
    emit(results, as_json, _NONE)


def explain(
    name: Annotated[str | None, typer.Argument(help="The stream table.", metavar="NAME")] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", "-q", help="A query, instead of a table.", metavar="SQL"),
    ] = None,
    mode: Annotated[
        str, typer.Option("--refresh-mode", help="The mode to explain the query for.")
    ] = "AUTO",
    dialect: Annotated[
        str, typer.Option("--dialect", help="What the query is written in: spark, postgres.")
    ] = "spark",
    full: Annotated[
        bool, typer.Option("--full", help="With the SQL of every step of the change program.")
    ] = False,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how a table is, or a query would be, kept up to date."""
    if (name is None) == (query is None):
        raise typer.BadParameter("give the name of a stream table, or --query SQL")
    with opened(find_place(lake, catalog)) as place, working("starting Spark") as update:
        if name is not None:
            place.status(name)
        start_spark(place)
        update("compiling")
        told = place.explain(name, query=query, refresh_mode=mode, dialect=dialect)
    if as_json:
        emit_json(told.to_dict())
    else:
        say(told.text(full=full))
