"""`runnel doctor`: is everything in order, and if not, what to do; the lake's Spark stays off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import Field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from runnel.cli.listing import emit_json
from runnel.cli.options import CatalogOption, Code, JsonOption, LakeOption
from runnel.cli.place import Place, named_place
from runnel.cli.progress import working
from runnel.cli.text import say, table
from runnel.errors import InternalFault, RunnelError

if TYPE_CHECKING:
    from runnel.model.settings import Settings
    from runnel.refresh.workspace import Workspace
    from runnel.schedule.health import Finding


def doctor(
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Remove leftovers, close interrupted refreshes, prepare Java."),
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Make a lost or damaged catalog anew from the tables."),
    ] = False,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check Java, Spark, the catalog, the settings and every table; exit code 1 on a problem."""
    place = named_place(lake, catalog)
    with working("looking"):
        done = _rebuild(place) if rebuild else []
        findings, settings = _examine(place, fix, is_named=lake is not None)
        findings = [*done, *findings]
    if as_json:
        emit_json({"findings": [f.to_dict() for f in findings], "settings": settings})
    else:
        _print(findings, settings)
    if any(f.result == "problem" for f in findings):
        raise typer.Exit(Code.FAILED)


def _examine(
    place: Place, fix: bool, *, is_named: bool
) -> tuple[list[Finding], list[dict[str, Any]]]:
    from runnel.cli import checks
    from runnel.schedule.health import Finding, examine

    findings = [checks.python(), checks.java(), checks.packages(), *checks.quick_start(fix)]
    if not place.is_lake:
        result = "problem" if is_named or fix else "warning"
        said = f"{place.folder} is not a lake"
        return [*findings, Finding("lake", result, said, "give --lake PATH")], []  # type: ignore[arg-type]
    try:
        _require_sound(place)
        with _workspace(place) as workspace:
            findings.append(_catalog(workspace))
            return [*findings, *examine(workspace, fix=fix)], _settings(workspace.settings)
    except RunnelError as error:
        return [*findings, Finding("catalog", "problem", str(error), error.hint)], []


def _require_sound(place: Place) -> None:
    """Damage may lie where no question of the checks would meet it."""
    from runnel.catalog import is_sound
    from runnel.catalog.faults import fault_of

    if place.catalog is None and not is_sound(place.catalog_file):
        raise fault_of(str(place.catalog_file), "the file is malformed")


def _rebuild(place: Place) -> list[Finding]:
    from runnel.catalog import is_sound, open_catalog, set_aside
    from runnel.refresh.rebuild import rebuild_catalog
    from runnel.schedule.health import Finding

    if not definitions_folder(place).is_dir():
        said = "there are no definitions to build a catalog from"
        return [Finding("rebuild", "problem", said, "restore the catalog from a backup")]
    aside = ""
    if place.catalog is None and place.catalog_file.exists() and not is_sound(place.catalog_file):
        aside = f"; the old file is {set_aside(place.catalog_file, datetime.now(UTC)).name}"
    open_catalog(place.catalog_url).close()
    with _workspace(place) as workspace:
        built = rebuild_catalog(workspace)
    said = f"{len(built.tables)} tables taken in: {', '.join(built.tables) or 'none'}{aside}"
    if built.empty:
        said += f"; to be filled by the next refresh: {', '.join(built.empty)}"
    if not built.lost:
        return [Finding("rebuild", "fixed", said)]
    return [Finding("rebuild", "problem", f"{said}; lost: {'; '.join(built.lost)}")]


def definitions_folder(place: Place) -> Path:
    return place.folder / "_runnel" / "definitions"


@contextmanager
def _workspace(place: Place) -> Iterator[Workspace]:
    """The parts of a lake that the checks use, opened without changing anything."""
    from runnel.catalog import Definitions, Leases, Owner, open_catalog
    from runnel.model.settings import Settings
    from runnel.refresh.workspace import Workspace

    settings = Settings.load(place.folder)
    with open_catalog(place.catalog_url, create=False) as catalog:
        catalog.definitions = Definitions(definitions_folder(place))
        leases = Leases(catalog.engine, Owner.current(), ttl=settings.lease_seconds)
        yield Workspace(place.folder, catalog, leases, settings, _no_spark)


def _no_spark() -> NoReturn:
    raise InternalFault("doctor needs no Spark")


def _catalog(workspace: Workspace) -> Finding:
    from runnel.catalog.migrate import MIGRATIONS
    from runnel.schedule.health import Finding

    address = workspace.catalog.engine.url.render_as_string(hide_password=True)
    # Opening it brought it to the current version, or failed.
    version = len(MIGRATIONS) + 1
    count = len(workspace.catalog.tables())
    return Finding(
        "catalog", "ok", f"{count} stream tables in {address} (schema version {version})"
    )


def _settings(settings: Settings) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name,
            "value": _shown(field, getattr(settings, field.name)),
            "origin": settings.origins[field.name],
            "doc": field.metadata["doc"],
        }
        for field in fields(settings)
        if field.name in settings.origins
    ]


def _shown(setting: Field[Any], value: Any) -> Any:
    """An address may hold a password: it is enough to know that there is one."""
    return "(set)" if value and setting.metadata.get("secret") else value


def _print(findings: list[Finding], settings: list[dict[str, Any]]) -> None:
    rows = [
        [f.check, f.result, f"{f.said} → {f.fix}" if f.fix and f.result != "ok" else f.said]
        for f in findings
    ]
    say(table(["check", "result", "found"], rows))
    if settings:
        say()
        titles = ["setting", "value", "origin", "meaning"]
        say(table(titles, [[s["name"], s["value"], s["origin"], s["doc"]] for s in settings]))
