"""`make setup` with a Python that cannot make virtual environments says what to install."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "make_venv.sh"
_BASH = shutil.which("bash") or "bash"
_LACKS = "The virtual environment was not created successfully because ensurepip is not available."


def _command(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{_BASH}\n{script}\n")
    path.chmod(0o755)
    return path


def _python(tmp_path: Path, *, has_ensurepip: bool) -> Path:
    """A Python whose venv makes one with pip, or says what it lacks, as Debian's does."""
    made = "true" if has_ensurepip else f'echo "{_LACKS}"; exit 1'
    inner = "exit 0" if has_ensurepip else "exit 1"
    return _command(
        tmp_path / "python3",
        f"mkdir -p $3/bin; printf '#!{_BASH}\\n{inner}\\n' > $3/bin/python; "
        f"chmod +x $3/bin/python; echo made >> {tmp_path}/calls; {made}",
    )


def _run(python: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [_BASH, _SCRIPT, python, folder], capture_output=True, text=True, check=False
    )


def test_one_is_made_once(tmp_path: Path) -> None:
    python, folder = _python(tmp_path, has_ensurepip=True), tmp_path / ".venv"
    for _ in range(2):
        done = _run(python, folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "calls").read_text() == "made\n"


@pytest.mark.parametrize("is_there", [False, True])
def test_without_ensurepip(tmp_path: Path, is_there: bool) -> None:
    folder = tmp_path / ".venv"
    if is_there:
        # What such a Python left behind before.
        _command(folder / "bin" / "python", "exit 1")
    done = _run(_python(tmp_path, has_ensurepip=False), folder)
    assert done.returncode == 1
    for words in ("error: ", "made no virtual environment with pip", _LACKS, "hint: "):
        assert words in done.stderr
    assert "sudo apt-get install python3-venv" in done.stderr
    # With the package installed the next run succeeds.
    assert _run(_python(tmp_path, has_ensurepip=True), folder).returncode == 0


def test_make_asks_it() -> None:
    makefile = (_SCRIPT.parent.parent / "Makefile").read_text()
    assert "@scripts/make_venv.sh $(PYTHON) $(VENV)" in makefile
