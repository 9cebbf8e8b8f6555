"""What every crash test needs: a server, and that no daemon outlives the test that started it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crash.daemons import end_all
from kit.connect_server import ConnectServer


@pytest.fixture(autouse=True)
def daemons_end() -> Iterator[None]:
    yield
    end_all()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """One for all that do it no harm, since each would start cold; lakes on it share their names."""
    with ConnectServer(tmp_path_factory.mktemp("connect")) as started:
        yield started
