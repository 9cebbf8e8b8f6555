"""`runnel doctor`: is everything in order, and if not, what to do; no Spark is started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from runnel.cli.listing import emit_json
from runnel.cli.options import CatalogOption, Code, JsonOption, LakeOption
from runnel.cli.place import Place, named_place
from runnel.cli.progress import working
from runnel.cli.text import say, table
from runnel.errors import InternalFault, RunnelError

if TYPE_CHECKING:
    from runnel.cli.checks import Finding
    from runnel.model.settings import Settings
    from runnel.refresh.workspace import Workspace


def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Remove leftovers, close interrupted refreshes.")
    ] = False,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check Java, Spark, the catalog, the settings and every table; exit code 1 on a problem."""
    with working("looking"):
        findings, settings = _examine(named_place(lake, catalog), fix, is_named=lake is not None)
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
    from runnel.cli.checks import Finding

    findings = [checks.python(), checks.java(), checks.packages()]
    if not place.is_lake:
        result = "problem" if is_named or fix else "warning"
        said = f"{place.folder} is not a lake"
        return [*findings, Finding("lake", result, said, "give --lake PATH")], []  # type: ignore[arg-type]
    try:
        with _workspace(place) as workspace:
            findings.append(_catalog(workspace))
            done = checks.repair(workspace) if fix else []
            return [*findings, *done, *(c(workspace) for c in checks.LAKE)], _settings(
                workspace.settings
            )
    except RunnelError as error:
        return [*findings, Finding("catalog", "problem", str(error), error.hint)], []


@contextmanager
def _workspace(place: Place) -> Iterator[Workspace]:
    """The parts of a lake that the checks use, opened without changing anything."""
    from runnel.catalog import Leases, Owner, open_catalog
    from runnel.model.settings import Settings
    from runnel.refresh.workspace import Workspace

    settings = Settings.load(place.folder)
    with open_catalog(place.catalog_url, create=False) as catalog:
        leases = Leases(catalog.engine, Owner.current(), ttl=settings.lease_seconds)
        yield Workspace(place.folder, catalog, leases, settings, _no_spark)


def _no_spark() -> NoReturn:
    raise InternalFault("doctor needs no Spark")


def _catalog(workspace: Workspace) -> Finding:
    from runnel.catalog.migrate import MIGRATIONS
    from runnel.cli.checks import Finding

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
