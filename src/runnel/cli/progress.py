"""What is going on, while it goes on: a spinner on standard error, where that is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from runnel.cli.text import is_terminal

Update = Callable[[str], None]


@contextmanager
def working(text: str) -> Iterator[Update]:
    """Show a text and the elapsed time during a block; the block may change the text."""
    if not is_terminal(sys.stderr):
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # Spark's start points descriptor 2 at its log for a while, so the spinner has one of its own.
    with os.fdopen(os.dup(sys.stderr.fileno()), "w") as stream:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
        with Progress(
            *columns,
            TimeElapsedColumn(),
            console=Console(file=stream, force_terminal=True),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as progress:
            task = progress.add_task(text, total=None)
            yield lambda text: progress.update(task, description=text)
