"""A quicker start of Spark: an archive of the classes it loads, which Java maps into memory."""

from __future__ import annotations

import hashlib
import os
import re
from importlib import metadata
from pathlib import Path

_ENDING = ".jsa"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_OWN = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Where users tell every Java of theirs what to use."""


# Many short jobs: a collector that works beside them costs more than it saves. Spark loads more
# classes, and compiles more, than Java has room for by default. A thread that ended for want of
# memory is waited for without end, such as the one that plans what is fetched by Arrow, and
# evaluates expressions over few rows while it does: so all of it ends, and says why in its log.
_JAVA = (
    "-Duser.timezone=UTC -XX:+UseParallelGC -XX:MetaspaceSize=256m -XX:ReservedCodeCacheSize=512m "
    "-XX:+ExitOnOutOfMemoryError -XX:+DisplayVMOutputToStderr"
)


def java_options(java: Path, given: str = _JAVA) -> str:
    """What an embedded Spark's Java is started with."""
    if _COLLECTOR.search(" ".join(os.environ.get(name, "") for name in _OWN)):
        # Java refuses to start with two collectors.
        given = _COLLECTOR.sub("", given)
    archive = archive_of(java)
    if not archive.is_file() or " " in str(archive):
        return given
    # Java goes on without an archive that does not fit; what it says of that goes to the log.
    return f"{given} -XX:SharedArchiveFile={archive} -Xlog:disable -Xlog:all=error:stderr"


def archive_of(java: Path) -> Path:
    """Where the archive for a Java and for the installed Spark is, or is to be put."""
    home = java.resolve().parent.parent
    release = home / "release"
    told = release.read_bytes() if release.is_file() else b""
    spark = metadata.version("pyspark") + str(metadata.distribution("pyspark").locate_file(""))
    name = hashlib.sha256(b"\0".join([str(home).encode(), told, spark.encode()])).hexdigest()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "runnel" / f"{name[:16]}{_ENDING}"


def recording(archive: Path) -> str:
    """Options of a Java that makes the archive when it ends."""
    return f"{_JAVA} -XX:ArchiveClassesAtExit={archive}"
