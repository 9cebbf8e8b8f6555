"""The live view of `runnel run`: what it shows of a scheduler driven by hand."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from runnel.cli.board import Board
from runnel.model.refresh import RefreshAction
from runnel.model.results import RefreshResult
from runnel.schedule.sight import sights
from runnel.schedule.views import Ending, Finished, Start
from schedule.by_hand import T0, ByHand, table


def shown(board: Board, width: int = 100) -> list[str]:
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(board.drawn())
    return [line.rstrip() for line in captured.get().splitlines()]


def line(board: Board, start: str) -> str:
    return next((text for text in shown(board) if text.startswith(start)), "")


def started(lake: ByHand, board: Board, now: float) -> dict[str, Start]:
    starts = {str(start.unit): start for start in lake.machine.decide(now)}
    board.looked(now, lake.machine)
    for start in starts.values():
        board.started(start)
    return starts


def result(name: str) -> RefreshResult:
    return RefreshResult(name, RefreshAction.DIFFERENTIAL, "2 rows changed", 1200, 7, epoch=2)


def test_what_runs_how_tables_stand_and_what_ended() -> None:
    lake = ByHand(table("a", "1m", "x", seconds=4.0), table("b", "1m", "a"), table("c", None, "x"))
    board = Board()
    starts = started(lake, board, T0)
    assert shown(board)[0] == "1 running, 0 done, 0 failed"
    assert any(text.startswith("a ") and "of about 4.0 s" in text for text in shown(board))
    assert "never filled" in line(board, "b ")
    event = Finished(starts["a"], Ending.DONE, (result("a"),))
    lake.world.commit(starts["a"].unit, starts["a"].snapshot)  # type: ignore[arg-type]
    lake.machine.finished(T0 + 2, event)
    board.ended(event)
    board.looked(T0 + 6, lake.machine)
    assert "6.0 s" in line(board, "a ")
    assert "60 s" in line(board, "a ")
    text = "\n".join(shown(board))
    assert "+1,200 -7" in text
    assert "DIFFERENTIAL" in text
    assert "0 running, 1 done, 0 failed" in text


def test_the_last_error_stays_until_the_table_is_well() -> None:
    lake = ByHand(table("a", "1m", "x"))
    board = Board()
    start = started(lake, board, T0)["a"]
    event = Finished(start, Ending.FAILED, error="division by zero [markup]\nhint", failed="a")
    lake.machine.finished(T0, event)
    board.ended(event)
    board.looked(T0, lake.machine)
    assert "1 failed in a row: division by zero [markup]" in line(board, "a ")
    assert shown(board)[0] == "0 running, 0 done, 1 failed"
    board.ended(Finished(start, Ending.DONE, (result("a"),)))
    assert board.errors == {}


def test_trouble_comes_first_and_the_rest_is_counted() -> None:
    lake = ByHand(*(table(f"t{i:02}", "1m", "x") for i in range(15)), table("z", "1m", "x"))
    board = Board()
    lake.run_all(T0)
    lake.machine.tables["z"] = replace(lake.machine.tables["z"], errors=2)
    assert sights(lake.machine, T0)[0].name == "z"
    board.looked(T0, lake.machine)
    assert "and 4 more" in "\n".join(shown(board))


def test_an_empty_lake_says_so() -> None:
    board = Board()
    assert "no stream tables yet" in "\n".join(shown(board))
