"""Commands that only look: status, history, graph. They read the catalog and start no JVM."""

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
    from runnel.schedule import seeing

    with reading(find_place(lake, catalog)) as reader:
        rows = seeing.status(reader, _key(reader, name))
    if name is not None and not as_json:
        say(str(rows[0]))
    else:
        emit(rows, as_json, _NONE)


def history(
    name: Annotated[
        str | None, typer.Argument(help="The stream table; else all.", metavar="NAME")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many attempts.")] = 20,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """List refresh attempts, newest first: what was done, why, and how long it took."""
    from runnel.cli.listing import emit
    from runnel.schedule import seeing

    with reading(find_place(lake, catalog)) as reader:
        rows = seeing.history(reader, _key(reader, name), limit)
    emit(rows, as_json, "no refresh yet")


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


def _key(reader: Questions, name: str | None) -> str | None:
    from runnel.model.names import TableName
    from runnel.schedule.seeing import find_table

    return None if name is None else find_table(reader, TableName.parse(name)).name.key
