"""What every crash test needs: no daemon outlives the test that started it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crash.daemons import end_all


@pytest.fixture(autouse=True)
def daemons_end() -> Iterator[None]:
    yield
    end_all()
