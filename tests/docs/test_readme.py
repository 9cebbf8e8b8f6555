"""The README's code is run as it stands, and prints what the README says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import runnel

pytestmark = pytest.mark.spark

_README = (Path(__file__).parent.parent.parent / "README.md").read_text()
_BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def test_the_tour(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean_names: None
) -> None:
    connect = runnel.connect
    monkeypatch.setattr(runnel, "connect", lambda path: connect(tmp_path / path, spark=spark))
    names: dict[str, object] = {}
    printed = ""
    checked = 0
    for language, code in _BLOCK.findall(_README):
        if language == "python":
            assert not printed.strip(), f"the output is not shown: {printed}"
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(code, names)
            printed = out.getvalue()
        elif language == "" and printed.strip():
            assert _lines(printed) == _lines(code)
            checked += 1
            printed = ""
    assert not printed.strip(), f"the output is not shown: {printed}"
    assert checked == 3


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
