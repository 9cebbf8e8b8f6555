"""Preparing Java: where that cannot be done, everything goes on without it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from runnel.cli import prepare


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache" / "classes.jsa"
    monkeypatch.setattr(prepare, "find_java", lambda: Path("java"))
    monkeypatch.setattr(prepare, "archive_of", lambda java: place)
    return place


def _runs(monkeypatch: pytest.MonkeyPatch, outcome: bytes | Exception | None) -> None:
    """What the child does: writes an archive, raises, or ends without one."""

    def run(command: list[str], **options: Any) -> None:
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is not None:
            Path(command[-1]).write_bytes(outcome)

    monkeypatch.setattr(prepare.subprocess, "run", run)


def test_the_archive_is_put_in_its_place(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _runs(monkeypatch, b"classes")
    assert not prepare.is_prepared()
    assert prepare.prepare()
    assert prepare.is_prepared()
    assert archive.read_bytes() == b"classes"
    assert [p.name for p in archive.parent.iterdir()] == [archive.name], "nothing is left over"


@pytest.mark.parametrize("outcome", [None, subprocess.TimeoutExpired("python", 1.0)])
def test_a_java_that_cannot(
    archive: Path, monkeypatch: pytest.MonkeyPatch, outcome: Exception | None
) -> None:
    _runs(monkeypatch, outcome)
    assert not prepare.prepare()
    assert not prepare.is_prepared()


def test_a_cache_that_cannot_be_written(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.parent.write_text("a file")
    _runs(monkeypatch, b"classes")
    assert not prepare.prepare()
