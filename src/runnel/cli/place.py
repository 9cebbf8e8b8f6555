"""Where a command works: the lake's folder, its catalog, and how each is opened."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.errors import NotFound, SparkEnded, UserError

if TYPE_CHECKING:
    import psutil

    from runnel.api import Lake
    from runnel.catalog import Questions

_HELP = (
    "go to a lake's folder, give --lake PATH, or set RUNNEL_LAKE; "
    "runnel sql --lake PATH makes a new lake"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A lake's folder, and its catalog when that is not the one inside the folder."""

    folder: Path
    catalog: str | None = None

    @property
    def catalog_file(self) -> Path:
        return self.folder / "_runnel" / "catalog.db"

    @property
    def catalog_url(self) -> str:
        return self.catalog or f"sqlite:///{self.catalog_file}"

    @property
    def is_lake(self) -> bool:
        return self.catalog_file.is_file() or (self.catalog is not None and self.folder.is_dir())


def find_place(lake: Path | None, catalog: str | None, *, may_be_new: bool = False) -> Place:
    """The lake that was named, else the current folder; an error when there is none."""
    place = named_place(lake, catalog)
    if place.is_lake or (may_be_new and lake is not None):
        return place
    if lake is None:
        raise UserError(
            "this folder is not a lake", detail=f"{place.folder} has no _runnel folder", hint=_HELP
        )
    if not place.folder.is_dir():
        raise NotFound(f"there is no folder {lake}", hint=_HELP)
    raise NotFound(f"{lake} is not a lake", detail="it has no _runnel/catalog.db", hint=_HELP)


def named_place(lake: Path | None, catalog: str | None) -> Place:
    return Place((lake or Path.cwd()).expanduser().resolve(), catalog)


@contextmanager
def reading(place: Place) -> Iterator[Questions]:
    """The catalog for questions: no Spark, and nothing of it imported."""
    from runnel.catalog import QuickReader, open_reader

    quick = QuickReader.open(place.catalog_file) if place.catalog is None else None
    with quick or open_reader(place.catalog_url) as reader:
        yield reader


@contextmanager
def opened(place: Place, spark_conf: dict[str, str] | None = None) -> Iterator[Lake]:
    """The lake; its Spark session, if one was started, ends with the block."""
    from runnel.api import connect

    gc.enable()
    # Py4J logs each interrupted call with its traceback; what went wrong is told by the error.
    logging.getLogger().addHandler(logging.NullHandler())
    before = _children()
    try:
        with connect(place.folder, catalog=place.catalog, spark_conf=spark_conf) as lake:
            yield lake
    except KeyboardInterrupt:
        _end(_children() - before)
        raise
    except SparkEnded:
        # The program may go on for long after it: what is dead has to be buried.
        _end(_children() - before, wait=3.0)
        raise
    except Exception as error:
        if not _is_from_spark(error):
            raise
        from runnel.lake.translate import translate

        raise translate(error) from error


def _children() -> set[psutil.Process]:
    import psutil

    return set(psutil.Process().children(recursive=True))


def _end(children: set[psutil.Process], wait: float = 0.0) -> None:
    """End a JVM that was interrupted while it started, or that is of no use any more."""
    import psutil

    for child in children:
        with suppress(psutil.Error):
            child.terminate()
    psutil.wait_procs(children, timeout=wait)


def start_spark(lake: Lake) -> None:
    """Start Spark now, where a command surely needs it, so that the wait can be named."""
    _ = lake.spark


def _is_from_spark(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark", "py4j"))
