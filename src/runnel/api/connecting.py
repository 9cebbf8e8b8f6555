"""Opening a lake."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from runnel.api.lake import Lake
from runnel.catalog import Definitions, Leases, Owner, open_catalog
from runnel.errors import SystemFault, UserError
from runnel.lake.frames import SparkSession
from runnel.model.functions import OwnFunction
from runnel.model.settings import Settings
from runnel.model.startup import run_startup
from runnel.refresh.keeper import SessionKeeper
from runnel.refresh.workspace import Workspace
from runnel.schedule.alerting import AlertBook


def connect(
    path: str | Path | None = None,
    *,
    spark: SparkSession | None = None,
    catalog: str | None = None,
    spark_conf: dict[str, str] | None = None,
    **settings: Any,
) -> Lake:
    """Open a lake folder, creating it when it is new.

    `spark` is a session of your own (else one is started when needed); `catalog` a database URL
    (else SQLite inside the folder); every other keyword is a setting.
    """
    if path is None:
        raise UserError(
            "connect needs a folder", hint='runnel.connect("my_lake"), or path= beside spark='
        )
    folder = Path(path).expanduser().resolve()
    _make_folder(folder / "_runnel")
    chosen = Settings.load(folder, settings)
    url = catalog or f"sqlite:///{folder / '_runnel' / 'catalog.db'}"
    writer = open_catalog(url)
    # As far back as old contents can be read it must be known what they are of.
    writer.history_age = max(writer.history_age, timedelta(hours=chosen.trace_retention_hours))
    writer.copy_definitions(Definitions(folder / "_runnel" / "definitions"))
    leases = Leases(writer.engine, Owner.current(), ttl=chosen.lease_seconds)
    writer.close_interrupted(leases.is_alive)
    functions: dict[str, OwnFunction] = {}
    keeper = SessionKeeper(folder, writer, spark, spark_conf, functions, chosen.source_timeout)
    book = AlertBook(writer, chosen, str(folder))
    workspace = Workspace(
        folder, writer, leases, chosen, keeper.open, keeper.begin, lambda: keeper.present,
        alerts=book, renew_names=keeper.sync_if_open, functions=functions,
    )  # fmt: skip
    lake = Lake(workspace, keeper, book)
    if chosen.startup:
        run_startup(chosen.startup, lake)
    return lake


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemFault(
            f"the folder {folder} cannot be made",
            detail=error.strerror or str(error),
            hint="check the path, its permissions, and that the disk is not full",
        ) from error
