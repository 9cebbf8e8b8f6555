"""Commands that only look. They read the catalog and start no JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from runnel.cli.options import CatalogOption, JsonOption, LakeOption
from runnel.cli.place import find_place, reading

if TYPE_CHECKING:
    from runnel.catalog import Questions

_NONE = "no stream tables yet"


def status(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Everything about this table; else all, one line each.", metavar="NAME"
        ),
    ] = None,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how each stream table stands: state, lag, last refresh."""
    from runnel.cli.listing import emit
    from runnel.cli.text import say
    from runnel.model.settings import Settings
    from runnel.schedule import seeing

    place = find_place(lake, catalog)
    with reading(place) as reader:
        rows = seeing.status(reader, Settings.load(place.folder), _key(reader, name))
    if name is not None and not as_json:
        say(str(rows[0]))
    else:
        emit(rows, as_json, _NONE)


def history(
    name: Annotated[
        str | None, typer.Argument(help="The stream table; else all.", metavar="NAME")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many attempts.")] = 20,
    details: Annotated[
        bool, typer.Option("--details", help="Everything about each, one value a line.")
    ] = False,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """List refresh attempts, newest first: what was done, why, and how long it took."""
    from runnel.cli.listing import emit
    from runnel.cli.text import say
    from runnel.schedule import seeing

    with reading(find_place(lake, catalog)) as reader:
        rows = seeing.history(reader, _key(reader, name), limit)
    if details and rows and not as_json:
        say("\n\n".join(str(row) for row in rows))
    else:
        emit(rows, as_json, "no refresh yet")


def stats(
    name: Annotated[
        str | None,
        typer.Argument(help="Everything of this table; else all, one line each.", metavar="NAME"),
    ] = None,
    window: Annotated[
        str,
        typer.Option(
            "--window", "-w", help="How far back: 1h, 7d; all of it: all.", metavar="TIME"
        ),
    ] = "1d",
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sum up refreshes: how many, how long, how often the lag was within its target."""
    from runnel.cli.listing import emit
    from runnel.cli.text import say
    from runnel.model.settings import Settings
    from runnel.schedule import seeing

    length = None if window.strip().lower() == "all" else window
    place = find_place(lake, catalog)
    with reading(place) as reader:
        rows = seeing.stats(reader, Settings.load(place.folder), _key(reader, name), length)
    if name is not None and not as_json:
        say(str(rows[0]))
    else:
        emit(rows, as_json, _NONE)


def alerts(
    name: Annotated[
        str | None, typer.Argument(help="Of this table; else all.", metavar="NAME")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", "-k", help="Only this kind: stale, refresh_failed ...")
    ] = None,
    lasting: Annotated[
        bool, typer.Option("--lasting", help="Only what has begun and is not over.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many alerts.")] = 50,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """List alerts, newest first: what went wrong, and what has come right again."""
    from runnel.cli.listing import emit
    from runnel.model.alerts import AlertKind
    from runnel.model.names import TableName
    from runnel.schedule import seeing

    wanted = TableName.parse(name) if name is not None else None
    chosen = AlertKind.parse(kind) if kind is not None else None
    with reading(find_place(lake, catalog)) as reader:
        rows = seeing.alerts(reader, wanted, chosen, limit, lasting=lasting)
    emit(rows, as_json, "no alerts")


def graph(
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid diagram.")] = False,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw which tables read which."""
    from runnel.cli.listing import emit_json
    from runnel.cli.text import say
    from runnel.schedule import seeing

    with reading(find_place(lake, catalog)) as reader:
        drawn = seeing.graph(reader)
    if as_json:
        emit_json(drawn.to_dict())
    else:
        say(drawn.mermaid() if mermaid else str(drawn))


def diamond_groups(
    lake: LakeOption = None, catalog: CatalogOption = None, as_json: JsonOption = False
) -> None:
    """List tables that meet again further down, and which of them advance together."""
    from runnel.cli.listing import emit
    from runnel.model.settings import Settings
    from runnel.schedule import diamonds

    place = find_place(lake, catalog)
    with reading(place) as reader:
        rows = diamonds.diamond_groups(reader, Settings.load(place.folder))
    emit(rows, as_json, "no diamonds")


def scc_status(
    lake: LakeOption = None, catalog: CatalogOption = None, as_json: JsonOption = False
) -> None:
    """List the cycles of stream tables, and how finding their rows ended the last time."""
    from runnel.cli.listing import emit
    from runnel.schedule import seeing

    with reading(find_place(lake, catalog)) as reader:
        rows = seeing.cycles(reader)
    emit(rows, as_json, "no cycles")


def _key(reader: Questions, name: str | None) -> str | None:
    from runnel.model.names import TableName
    from runnel.schedule.seeing import find_table

    return None if name is None else find_table(reader, TableName.parse(name)).name.key
