"""Fetches the Delta jars once, by starting a session and writing one row with it.

Then lets Java keep the classes that it loaded, so that later sessions start in half the time.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from runnel.cli.prepare import is_prepared, prepare
from runnel.errors import RunnelError
from runnel.lake.session import open_session


def main() -> int:
    print("resolving the Delta jars (the first time they are downloaded)")
    with tempfile.TemporaryDirectory(prefix="runnel-setup-") as folder:
        lake = Path(folder)
        try:
            spark = open_session(lake, {"spark.master": "local[1]"}).spark
            spark.range(1).write.format("delta").save(str(lake / "probe"))
            spark.stop()
        except RunnelError as error:
            print(f"error: {error}", file=sys.stderr)
            _show_end_of(lake / "_runnel" / "spark.log")
            return 1
    if not is_prepared():
        print("preparing Java for a quick start of Spark")
        prepare()
    return 0


def _show_end_of(log: Path) -> None:
    # The folder goes away with this process, so the log has to be shown now.
    if log.is_file():
        print(*log.read_text(errors="replace").splitlines()[-20:], sep="\n", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
