"""The demo: what it shows, what it leaves behind, and what its exit code says."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from cli.conftest import Run
from runnel.cli import shop
from runnel.cli.demo import _stage
from runnel.cli.scoreboard import Line, Scoreboard
from runnel.errors import UserError
from runnel.model.refresh import RefreshAction
from runnel.model.results import RefreshResult, VerifyResult


def line(name: str = "sales", ok: bool = True, seconds: float = 0.5) -> Line:
    refreshed = RefreshResult(
        name, RefreshAction.DIFFERENTIAL, "12 changed of 36,000 rows: differential 0.5 s, full 2 s",
        rows_inserted=3, rows_deleted=2, change_rows=12, seconds=seconds,
    )  # fmt: skip
    return Line(refreshed, 2.0, VerifyResult(name, ok, missing=0 if ok else 1))


def test_a_round_and_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    board = Scoreboard(Path("here"), kept=True)
    board.opening()
    board.announce(1, shop.ROUNDS[0])
    board.show([line(), line("big", seconds=0.25)])
    board.summary()
    out = capsys.readouterr().out
    assert board.is_right
    assert max(map(len, out.splitlines())) <= 100
    for said in ("Round 1. Inserts", "DIFFERENTIAL", "+3 -2", "500 ms", "2.0 s", "12 changed of"):
        assert said in out
    assert "2 refreshes: 2 DIFFERENTIAL. 24 changed rows read, 10 rows written." in out
    assert "Refreshing took 750 ms; recomputing every table in every round would have" in out
    assert "all 2 times" in out
    assert "runnel --lake here sql" in out


def test_a_difference_is_shouted(capsys: pytest.CaptureFixture[str]) -> None:
    board = Scoreboard(Path("here"), kept=False)
    board.show([line(), line("big", ok=False)])
    board.summary()
    assert not board.is_right
    assert "VERIFY found differences in big." in capsys.readouterr().out
    assert not Scoreboard(Path("here"), kept=False).is_right


def test_the_last_full_recompute_is_remembered() -> None:
    board = Scoreboard(Path("here"), kept=False)
    assert board.last("sales") is None
    board.show([line()])
    shown = board.last("sales")
    assert shown is not None
    assert shown.full_seconds == 2.0


def test_where_it_plays(tmp_path: Path) -> None:
    with _stage(None, keep=False) as folder:
        (folder / "x").touch()
    assert not folder.exists()
    with _stage(tmp_path / "new", keep=False) as folder:
        assert folder == tmp_path / "new"
    with _stage(None, keep=True) as folder:
        pass
    folder.rmdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(UserError, match="is not empty"), _stage(tmp_path / "full", keep=False):
        pass


def test_sizes_are_told_right() -> None:
    assert shop.SIZES["order_lines"] == 2 * shop.ORDERS


@pytest.mark.spark
def test_a_round_ends_well(
    run: Run, spark_lake: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RUNNEL_LAKE", str(tmp_path / "never"))
    monkeypatch.setattr(shop, "ROUNDS", shop.ROUNDS[3:])
    done = run("demo", "--lake", spark_lake)
    assert done.code == 0, done.out
    assert "VERIFY found every table equal to its query, all 8 times." in done.out
    assert "8 refreshes: 5 NO_DATA, " in done.out
    # Also where nothing happened: what is shown was just looked at.
    assert sum(row.rstrip().endswith(" ok") for row in done.out.splitlines()) == 8
    with sqlite3.connect(spark_lake / "_runnel" / "catalog.db") as catalog:
        assert catalog.execute("SELECT COUNT(*) FROM verifications").fetchone() == (8,)
    assert not (tmp_path / "never").exists()
    actions = [r["action"] for r in run("history", "--lake", spark_lake, "--json").json]
    assert "DIFFERENTIAL" in actions


@pytest.mark.spark
def test_a_wrong_table_fails_it(
    run: Run, spark_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = VerifyResult("sales", False, missing=1)
    monkeypatch.setattr(shop, "ROUNDS", (shop.ROUNDS[4],))
    monkeypatch.setattr(shop, "STREAM_TABLES", shop.STREAM_TABLES[:1])
    monkeypatch.setattr("runnel.api.Lake.verify", lambda lake, name: wrong)
    assert run("--lake", spark_lake, "demo").code == 1
    assert (spark_lake / "_runnel").is_dir(), "the lake may be named before the command too"
