"""A process on a real terminal, for tests: what it shows, what is typed, Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 120.0


class Screen:
    """A process on a terminal; waits for what it should show."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self._seen = ""

    def wait_for(self, text: str) -> str:
        """Read until a text appears; what came up to it is returned and not seen again."""
        deadline = time.monotonic() + PATIENCE
        while text not in self._seen:
            assert time.monotonic() < deadline, f"no {text!r} in {self._seen!r}"
            if select.select([self._terminal], [], [], 1)[0]:
                self._seen += os.read(self._terminal, 65536).decode(errors="replace")
        found, _, self._seen = self._seen.partition(text)
        return found + text

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())


@contextmanager
def started(folder: Path, *arguments: str, lake: Path | None = None) -> Iterator[Screen]:
    """The command on a terminal, in a lake of the folder."""
    mine, theirs = pty.openpty()
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "100",
        "XDG_STATE_HOME": str(folder), "RUNNEL_MASTER": "local[2]",
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "runnel.cli.main", *arguments, "--lake", lake or folder / "lake"],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
        # Programs started in the background of a script ignore interrupts, and so do their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Screen(process, mine)
    finally:
        process.kill()
        process.wait()
        os.close(mine)


def interrupt(screen: Screen) -> None:
    # As a terminal does it: to the whole foreground group, the JVM included.
    os.killpg(screen.process.pid, 2)
