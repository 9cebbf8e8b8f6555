"""Contents that cannot be right: it is said, and the next refresh computes them anew."""

from __future__ import annotations

from datetime import UTC, datetime

from runnel.catalog import StreamTable
from runnel.errors import InternalFault
from runnel.model.alerts import AlertKind
from runnel.refresh.workspace import Workspace


def note_wrong(workspace: Workspace, table: StreamTable, fault: InternalFault) -> None:
    """What was found out beside a refresh, and would be found again by every later one."""
    # With its time: a refresh clears the reason for which it was done, and no later one.
    reason = f"{fault.primary} ({datetime.now(UTC):%H:%M:%S.%f})"
    workspace.catalog.update_table(
        table.id, consecutive_errors=table.consecutive_errors + 1, last_error=str(fault),
        reinitialize=reason,
    )  # fmt: skip
    workspace.alerts.emit(
        AlertKind.REINITIALIZE_NEEDED, table.label, fault.primary, code=fault.code,
        detail=fault.detail,
    )  # fmt: skip
