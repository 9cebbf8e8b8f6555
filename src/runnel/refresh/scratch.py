"""Folders of rows that a pass shares; their names say whose they are, so that others can tell when
they are left.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from runnel.catalog import Owner
from runnel.refresh.workspace import Workspace

# In no name of a host.
_SEPARATOR = "~"


def new_scratch(workspace: Workspace) -> Path:
    """Where a pass may keep files, in a folder that is not made yet."""
    owner = str(workspace.leases.owner).replace("/", _SEPARATOR)
    return _scratch(workspace) / f"{owner}{_SEPARATOR}{uuid.uuid4().hex}"


def forgotten(workspace: Workspace) -> list[Path]:
    """What processes left behind that were killed."""
    folder = _scratch(workspace)
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in found if not _is_used(workspace, path)]


def remove_forgotten(workspace: Workspace) -> list[Path]:
    """Delete such folders; what was found is returned."""
    found = forgotten(workspace)
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    return found


def _is_used(workspace: Workspace, path: Path) -> bool:
    owner, _, _ = path.name.rpartition(_SEPARATOR)
    try:
        return workspace.leases.is_alive(Owner.parse(owner.replace(_SEPARATOR, "/")))
    except ValueError:
        return False


def _scratch(workspace: Workspace) -> Path:
    return workspace.path / "_runnel" / "scratch"
