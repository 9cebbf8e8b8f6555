"""Starts the processes that are made to die: each a copy of one that has imported what they need."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from runnel.model.closing import Closing

_PROGRAM = Path(__file__).parent / "victim.py"


class Victims(Closing):
    """A process of its own each, without the seconds that Python takes to import PySpark."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), str(log)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, start_new_session=True, text=True,
        )  # fmt: skip

    def close(self) -> None:
        # With the one at work, if a test gave up waiting for it.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def run(self, environment: Mapping[str, str], folder: Path, operation: str) -> tuple[int, str]:
        """How one ended, and what it wrote."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"environment": environment, "arguments": [str(folder), operation]}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        code = self._process.stdout.readline()
        return int(code), self._log.read_text()
