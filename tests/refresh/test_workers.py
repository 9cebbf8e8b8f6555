"""The sessions that refreshes work in, where Spark is on a Connect server."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from runnel.model.settings import Settings
from runnel.refresh import workspace as workspaces
from runnel.refresh.workspace import Workspace


class Remote:
    """A session as Connect's are: it has settings and no newSession, and the server can end it."""

    def __init__(self, settings: dict[str, str], made: list[Remote]) -> None:
        self.settings = settings
        self.is_ended = False
        self.made = made
        made.append(self)

    def cloneSession(self) -> Remote:  # noqa: N802 - PySpark's name
        return Remote(dict(self.settings), self.made)

    @property
    def conf(self) -> Remote:
        return self

    @property
    def client(self) -> Remote:
        return self

    def get(self, name: str, default: str | None = None) -> str | None:
        if self.is_ended:
            raise PySparkException("[INVALID_HANDLE.SESSION_CLOSED]")
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

    def release_session(self) -> None:
        self.is_ended = True

    def close(self) -> None:
        assert self.is_ended


@pytest.fixture
def session() -> Remote:
    return Remote({"zone": "UTC", "views": "mine"}, [])


@pytest.fixture
def workspace(session: Remote, tmp_path: Path) -> Workspace:
    nothing = cast(Any, None)
    return Workspace(tmp_path, nothing, nothing, Settings(), lambda: cast(Any, session))


def used(workspace: Workspace, **settings: str) -> Remote:
    with workspace.worker(settings, adaptive=True) as worker:
        return cast(Remote, worker)


def test_each_has_its_settings_and_the_users_session_keeps_its_own(
    workspace: Workspace, session: Remote
) -> None:
    first, other = used(workspace, zone="Asia/Tokyo"), used(workspace, zone="Europe/Rome")
    assert used(workspace, zone="Asia/Tokyo") is first
    assert first.settings["zone"] == "Asia/Tokyo"
    assert other.settings["zone"] == "Europe/Rome"
    assert session.settings == {"zone": "UTC", "views": "mine"}


def test_one_that_the_server_has_forgotten_is_replaced(workspace: Workspace) -> None:
    first = used(workspace, zone="UTC")
    first.is_ended = True
    second = used(workspace, zone="UTC")
    assert second is not first
    assert used(workspace, zone="UTC") is second


def test_who_is_stopped_is_stopped_alone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run in a thread ends while the same lake refreshes a table by hand."""
    cancelled: list[Any] = []
    done = threading.Event()

    def cancel(session: Any) -> None:
        cancelled.append(session)
        done.set()

    monkeypatch.setattr(workspaces, "cancel", cancel)
    run = workspace.for_run()
    with workspace.worker({}, adaptive=True) as by_hand, run.worker({}, adaptive=True) as of_run:
        run.abandon()
        assert done.wait(10)
        assert (cancelled, run.is_ending.is_set()) == ([of_run], True)
        assert not workspace.is_ending.is_set(), "what fails here has failed"
    assert used(workspace) is by_hand
    with workspace.worker({}, adaptive=True), workspace.worker({}, adaptive=True) as another:
        assert another is not of_run, "it may still be cancelled"


def test_a_run_uses_the_sessions_of_its_lake(workspace: Workspace) -> None:
    run = workspace.for_run()
    first = used(workspace)
    assert used(run) is first
    workspace.forget_functions()
    assert used(run) is not first


def test_they_are_given_back_at_the_end(workspace: Workspace, session: Remote) -> None:
    used(workspace, zone="UTC")
    used(workspace, zone="Asia/Tokyo")
    workspace.forget_sessions()
    assert [made.is_ended for made in session.made] == [False, True, True]
