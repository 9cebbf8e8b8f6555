"""Options of Java: a collector that fits, and an archive of classes where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from runnel.lake.quick_start import archive_of, java_options


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="17.0.1"\n')
    return home / "bin" / "java"


def test_an_archive_is_used_where_there_is_one(java: Path) -> None:
    assert "SharedArchiveFile" not in java_options(java)
    archive = archive_of(java)
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"classes")
    assert f"-XX:SharedArchiveFile={archive}" in java_options(java).split()


def test_another_java_has_another_archive(java: Path) -> None:
    before = archive_of(java)
    (java.parent.parent / "release").write_text('JAVA_VERSION="21.0.1"\n')
    assert archive_of(java) != before


def test_a_collector_that_the_user_chose(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "-XX:+UseParallelGC" in java_options(java).split()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xss4m -XX:+UseZGC")
    assert "GC" not in java_options(java)
    assert "-Duser.timezone=UTC" in java_options(java).split()
