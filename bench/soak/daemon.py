"""The daemon of a soak: `runnel run` in a process of its own, that can be killed at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from runnel.model.refresh import RefreshAction

END_SECONDS = 10.0
# What a shell starts in the background ignores Ctrl-C, and so would this. Not by `preexec_fn`: with
# that Python forks, and in a process that speaks gRPC the child may abort before it has begun.
_PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from runnel.cli.main import app; app()"
)
_OF_CONNECT = {"SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE"}
WORK = (RefreshAction.DIFFERENTIAL, RefreshAction.FULL, RefreshAction.REINITIALIZE)


@dataclass
class Daemon:
    """Starts in a process group of its own, so that its Spark can be killed with it."""

    folder: Path
    log: Path
    workers: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None
    _from: int = 0

    def start(self) -> None:
        command = [sys.executable, "-c", _PROGRAM, "run", "--lake", str(self.folder)]
        with self.log.open("ab") as log:
            self._from = log.tell()
            self._process = subprocess.Popen(
                [*command, "--workers", str(self.workers)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**_surroundings(), **self.environment},
            )  # fmt: skip

    @property
    def ended_with(self) -> int | None:
        """The exit code, when it is not running."""
        return self.process.poll()

    @property
    def has_worked(self) -> bool:
        """Whether it has told of a refresh since it was started."""
        with self.log.open("rb") as log:
            log.seek(self._from)
            text = log.read()
        return any(action.encode() in text for action in WORK)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def kill(self, *, with_spark: bool) -> None:
        """kill -9; without its Spark, that ends by itself a moment later, or commits before."""
        if with_spark:
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> tuple[int | None, float]:
        """Ask it to end: its exit code (None: it had to be killed) and how long that took."""
        asked = monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code: int | None = self.process.wait(6 * END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill(with_spark=True)
            code = None
        return code, monotonic() - asked


def _surroundings() -> dict[str, str]:
    """Without what a Connect client of this process left there: the daemon has a Spark of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_CONNECT}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path)}
