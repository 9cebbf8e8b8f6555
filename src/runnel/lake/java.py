"""Find a Java that can run Spark, or say exactly what to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from runnel.errors import SystemFault

MINIMUM = 17
_INSTALL = (
    "Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17; "
    "or set JAVA_HOME to a Java of version 17 or newer"
)


def find_java() -> Path:
    """The Java that Spark will start: that of JAVA_HOME, else the one on the path."""
    java = _candidate()
    version = _version_from_release_file(java) or _version_from_command(java)
    if version is None or version < MINIMUM:
        found = "an unknown version" if version is None else f"version {version}"
        raise SystemFault(
            f"java {MINIMUM} or newer is needed", detail=f"{java} is {found}", hint=_INSTALL
        )
    return java


def _candidate() -> Path:
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    if shutil.which(found) is None:
        where = f"JAVA_HOME is {home}, without bin/java" if home else "no java on the path"
        raise SystemFault(f"java {MINIMUM} or newer is needed", detail=where, hint=_INSTALL)
    return found


def _version_from_release_file(java: Path) -> int | None:
    # Reading the file takes microseconds; asking Java itself starts a JVM.
    release = java.resolve().parent.parent / "release"
    try:
        return _major(release.read_text(encoding="utf-8", errors="replace"), "JAVA_VERSION=")
    except OSError:
        return None


def _version_from_command(java: Path) -> int | None:
    try:
        done = subprocess.run(
            [java, "-version"], check=False, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return _major(done.stderr + done.stdout, "version ")


def _major(text: str, before: str) -> int | None:
    match = re.search(re.escape(before) + r'"?(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None
