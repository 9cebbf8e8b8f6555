"""`pip install .` gives a typed package and the command, and the code is public PySpark's alone."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent
_SOURCE = _ROOT / "src" / "runnel"
# What leads from PySpark's objects into the JVM, and is not there through Spark Connect.
_INSIDE = re.compile(
    r"_j(vm|sc|df|c|rdd|conf|seq|map|schema|write|reader|sparkSession)|_sc|_gateway"
)
_PRIVATE = ("py4j", "pyspark.java_gateway", "pyspark.core", "pyspark.sql.classic")


def test_pip_install_gives_a_typed_package_and_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--no-build-isolation", "--no-index", "--target", tmp_path, _ROOT,
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert _files(tmp_path / "runnel") == _files(_SOURCE)
    assert "py.typed" in _files(_SOURCE)
    facts = next(tmp_path.glob("runnel-*.dist-info"))
    about = HeaderParser().parsestr((facts / "METADATA").read_text())
    assert (about["License-Expression"], about["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert "Apache License" in (facts / "licenses" / "LICENSE").read_text()
    told = subprocess.run(
        [sys.executable, tmp_path / "bin" / "runnel", "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert about["Version"] in told.stdout


def _files(folder: Path) -> set[str]:
    return {
        str(p.relative_to(folder))
        for p in folder.rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }


def test_nothing_reaches_into_the_jvm() -> None:
    found = [
        f"{file.relative_to(_ROOT)}:{node.lineno} {name}"
        for file in sorted(_SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if (name := _inside(node)) is not None
    ]
    assert found == []


def _inside(node: ast.AST) -> str | None:
    """The name by which a piece of code uses what is not public, if it does."""
    match node:
        case ast.Attribute(attr=name) if _INSIDE.fullmatch(name):
            return name
        case ast.Constant(value=str(name)) if _INSIDE.fullmatch(name):
            return name  # getattr(spark, "_jvm")
        case ast.ImportFrom(module=str(name)) if name.startswith(_PRIVATE):
            return name
    return None
