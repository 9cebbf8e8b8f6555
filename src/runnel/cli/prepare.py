"""Preparing this machine: the archive of classes with which Spark starts in half the time."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from runnel.lake.java import find_java
from runnel.lake.quick_start import archive_of, recording

_SECONDS = 300


def is_prepared() -> bool:
    return archive_of(find_java()).is_file()


def prepare() -> bool:
    """Make the archive; False when that cannot be done, which only costs time at each start."""
    archive = archive_of(find_java())
    try:
        return _made(archive)
    except (OSError, subprocess.SubprocessError):
        return False


def _made(archive: Path) -> bool:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=archive.parent) as folder:
        made = Path(folder) / archive.name
        # The pipes are open as long as Java is: it makes the archive when Python has ended.
        subprocess.run(
            [sys.executable, "-m", __name__, folder, str(made)],
            env={**os.environ, "RUNNEL_MASTER": "local[2]"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
        if not made.is_file():
            return False
        made.replace(archive)
    return True


def exercise(folder: Path, archive: Path) -> None:
    """Do once what refreshes do, so that what they need is loaded."""
    import runnel

    conf = {"spark.driver.extraJavaOptions": recording(archive)}
    with runnel.connect(folder / "lake", spark_conf=conf) as lake:
        lake.sql("CREATE TABLE a (id INT, k INT, v DECIMAL(12,2)) USING delta")
        lake.sql("CREATE TABLE b (k INT, name STRING) USING delta")
        lake.sql("INSERT INTO a SELECT id, id % 5, id FROM range(100)")
        lake.sql("INSERT INTO b SELECT id, concat('n', id) FROM range(5)")
        lake.create_stream_table(
            "joined", "SELECT a.id, a.v, b.name FROM a LEFT JOIN b ON a.k = b.k",
            refresh_mode="DIFFERENTIAL",
        )  # fmt: skip
        lake.create_stream_table(
            "summed", "SELECT name, SUM(v) AS v, MAX(v) AS most FROM joined GROUP BY name",
            refresh_mode="DIFFERENTIAL",
        )  # fmt: skip
        for statement in (
            "UPDATE a SET v = v + 1 WHERE id < 3", "DELETE FROM b WHERE k = 2",
            "INSERT INTO b VALUES (2, 'again')",
        ):  # fmt: skip
            lake.sql(statement)
            lake.refresh("summed")
        lake.verify("summed")
        lake.table("summed").collect()


if __name__ == "__main__":
    exercise(Path(sys.argv[1]), Path(sys.argv[2]))
