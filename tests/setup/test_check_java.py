"""`make setup` without a Java that can run Spark says exactly what to install."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "check_java.sh"
_BASH = shutil.which("bash") or "bash"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with what the script needs and nothing else, for a user who may not install."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("sed", "head", "awk", "cat"):
        (folder / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
    _command(folder / "id", "echo 1000")
    return folder


def _command(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{_BASH}\n{script}\n")
    path.chmod(0o755)


def _java(path: Path, version: str) -> None:
    _command(path, f"echo 'openjdk version \"{version}\" 2024-01-16' >&2")


def _run(tools: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [_BASH, _SCRIPT], env={"PATH": str(tools), **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def _refused(tools: Path, words: str, **environment: str) -> None:
    done = _run(tools, **environment)
    assert done.returncode == 1
    assert words in done.stderr
    for way in (
        "sudo apt-get install openjdk-17-jre-headless",
        "sudo dnf install java-17-openjdk-headless",
        "brew install openjdk@17",
        "set JAVA_HOME to a Java 17+ installation",
    ):
        assert way in done.stderr


def test_without_java(tools: Path) -> None:
    _refused(tools, "error: Java 17 or newer is needed, and none was found")


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("11.0.22", 11), ("16", 16)])
def test_with_an_old_java(tools: Path, version: str, major: int) -> None:
    _java(tools / "java", version)
    _refused(tools, f"{tools}/java is version {major}")


@pytest.mark.parametrize("version", ["17", "17.0.10", "21.0.2", "25-ea"])
def test_with_a_java_that_will_do(tools: Path, version: str) -> None:
    _java(tools / "java", version)
    done = _run(tools)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_java_home_counts_before_the_path_as_it_does_for_spark(tools: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    _java(tools / "java", "17.0.10")
    _java(home / "bin" / "java", "11.0.22")
    _refused(tools, f"{home}/bin/java is version 11", JAVA_HOME=str(home))
    _java(home / "bin" / "java", "21.0.2")
    _java(tools / "java", "11.0.22")
    assert _run(tools, JAVA_HOME=str(home)).returncode == 0
    shutil.rmtree(home)
    _java(tools / "java", "17.0.10")
    _refused(tools, f"JAVA_HOME is {home}, without bin/java", JAVA_HOME=str(home))


@pytest.mark.skipif(not Path("/etc/debian_version").exists(), reason="only Debian has apt-get")
def test_who_may_install_gets_it_installed(tools: Path, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    _command(tools / "id", "echo 0")
    _command(tools / "apt-cache", "true")
    _command(tools / "apt-get", f'echo "$@" >> {asked}')
    assert _run(tools).returncode == 0
    assert "openjdk-17-jre-headless" in asked.read_text().splitlines()[-1]
