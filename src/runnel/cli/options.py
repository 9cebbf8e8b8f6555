"""Options that several commands share, and the exit codes scripts can rely on."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import Annotated

import typer


class Code(IntEnum):
    """What the command's exit code says."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DIFFERENT = 3
    BUSY = 4
    INTERRUPTED = 130


LakeOption = Annotated[
    Path | None,
    typer.Option(
        "--lake",
        help="The lake's folder; else RUNNEL_LAKE, else this folder.",
        show_default=False,
        metavar="PATH",
    ),
]
CatalogOption = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        help="The catalog's database; else RUNNEL_CATALOG, else SQLite inside the lake.",
        show_default=False,
        metavar="URL",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
