"""What `runnel doctor` looks at beside the lake: the machine and what is installed on it."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

from runnel.cli.prepare import is_prepared, prepare
from runnel.errors import RunnelError
from runnel.lake.java import find_java
from runnel.schedule.health import Finding


def python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok", f"{version} at {sys.executable}")


def java() -> Finding:
    try:
        found = find_java()
    except RunnelError as error:
        return Finding("java", "problem", f"{error.primary}; {error.detail}", error.hint)
    try:
        done = subprocess.run(
            [found, "-version"], check=False, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("java", "problem", f"{found} does not run: {error}")
    return Finding("java", "ok", f"{(done.stderr or done.stdout).partition(chr(10))[0]} at {found}")


def packages() -> Finding:
    from runnel.lake.session import DELTA_VERSION

    versions = f"Spark {metadata.version('pyspark')}, Delta Lake {DELTA_VERSION}"
    return Finding("packages", "ok", f"{versions}, delta-rs {metadata.version('deltalake')}")


def quick_start(fix: bool) -> list[Finding]:
    """Whether Java has what lets Spark start quickly; without Java nothing."""
    try:
        if is_prepared():
            return [Finding("quick start", "ok", "Java has kept the classes that Spark loads")]
    except RunnelError:
        return []
    if fix and prepare():
        return [Finding("quick start", "fixed", "Java keeps the classes that Spark loads")]
    said = "Spark starts slowly: Java has not kept the classes that it loads"
    return [Finding("quick start", "warning", said, "runnel doctor --fix")]
