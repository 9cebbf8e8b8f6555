"""What a statement gave, shown: rows as a table, verbs' results as listings, or all as JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from runnel.cli.listing import described, emit_json, told
from runnel.cli.text import is_terminal, note, say, table, terminal_width
from runnel.model.results import TableStatus
from runnel.model.tabular import Record, Rows, duration, plain

if TYPE_CHECKING:
    from runnel.lake.frames import DataFrame

_NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_ROOM = 9  # columns of a terminal that a column of a table needs to be readable
_AFFECTED = "num_affected_rows"


@dataclass(frozen=True, slots=True)
class Answer:
    """A statement's result, fetched: rows of a query, or the result of a verb."""

    result: Any = None
    columns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    more: int | None = 0

    @property
    def is_query(self) -> bool:
        return bool(self.columns)


def fetch(result: Any, limit: int, *, counted: bool) -> Answer:
    """Bring at most `limit` rows here; when there are more, count them if that is wanted."""
    if result is None or isinstance(result, Record | Rows | tuple):
        return Answer(result)
    frame: DataFrame = result
    if not frame.columns:
        return Answer()
    rows = frame.limit(limit + 1).collect()
    more: int | None = 0
    if len(rows) > limit:
        more = frame.count() - limit if counted else None
    return Answer(
        columns=_distinct(frame.columns),
        types=tuple(type_ for _, type_ in frame.dtypes),
        rows=tuple(tuple(row) for row in rows[:limit]),
        more=more,
    )


def show(answer: Answer, seconds: float | None = None) -> None:
    """Print an answer for people, and how long it took."""
    if answer.is_query and answer.columns[0] != _AFFECTED:
        _show_rows(answer)
    elif isinstance(answer.result, Record | Rows) and not isinstance(answer.result, TableStatus):
        say(told(answer.result))
    remark = _remark(answer)
    if remark or seconds is not None:
        took = duration(seconds)
        note(f"({remark}, {took})" if remark and took else f"({remark or took})")


def show_json(answer: Answer, number: int) -> None:
    """Print an answer as one line of JSON."""
    if answer.is_query:
        rows = [dict(zip(answer.columns, map(_json, row), strict=True)) for row in answer.rows]
        emit_json({"statement": number, "rows": rows, "truncated": answer.more != 0})
    else:
        emit_json({"statement": number, "result": plain(answer.result)})


def _remark(answer: Answer) -> str:
    """What is said below, or instead of, a table."""
    match answer.result:
        case None:
            return _size(answer) if answer.is_query else "ok"
        case TableStatus() as status:
            return f"ok: {described(status)}"
        case tuple() as names:
            return f"dropped {', '.join(names)}" if names else "nothing to drop"
    return ""


def _show_rows(answer: Answer) -> None:
    cells = [[_cell(value) for value in row] for row in answer.rows]
    if not is_terminal(sys.stdout):
        numbers = [c for c, t in zip(answer.columns, answer.types, strict=True) if _is_number(t)]
        say(table(answer.columns, cells, right=numbers))
    elif len(answer.columns) * _ROOM > terminal_width():
        _show_upright(answer.columns, cells)
    else:
        _show_boxed(answer, cells)


def _show_boxed(answer: Answer, cells: list[list[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.ROUNDED, header_style="bold", border_style="dim")
    for name, type_ in zip(answer.columns, answer.types, strict=True):
        drawn.add_column(Text(name), justify="right" if _is_number(type_) else "left")
    for row, values in zip(cells, answer.rows, strict=True):
        drawn.add_row(
            *(
                Text(text, style="dim" if value is None else "")
                for text, value in zip(row, values, strict=True)
            )
        )
    Console().print(drawn)


def _show_upright(columns: Sequence[str], cells: list[list[str]]) -> None:
    """One line a value: for rows that are wider than the terminal."""
    width = max(len(name) for name in columns)
    for number, row in enumerate(cells, 1):
        say(f"─ row {number} ".ljust(min(terminal_width(), 60), "─"))
        for name, text in zip(columns, row, strict=True):
            say(f"{name.ljust(width)}  {text}")


def _size(answer: Answer) -> str:
    if answer.columns[0] == _AFFECTED and answer.rows:
        return f"{answer.rows[0][0] or 0:,} rows affected"
    shown = len(answer.rows)
    if answer.more == 0:
        return f"{shown:,} row{'' if shown == 1 else 's'}"
    shown_of = "more" if answer.more is None else f"{shown + answer.more:,}"
    return f"{shown:,} of {shown_of} rows, see --limit"


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | int):
        return str(value)
    shown = _json(value)
    return shown if isinstance(shown, str) else _literal(shown)


def _literal(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _json(value: Any) -> Any:
    """Like `plain`, but a struct keeps its field names."""
    if hasattr(value, "asDict"):
        return {name: _json(item) for name, item in value.asDict().items()}
    if isinstance(value, Mapping):
        return {str(_json(key)): _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    return plain(value)


def _is_number(type_: str) -> bool:
    return type_.partition("(")[0] in _NUMERIC


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names that differ: the second `a` of a result becomes `a_2`."""
    given: list[str] = []
    for name in names:
        candidates = (name if n == 1 else f"{name}_{n}" for n in count(1))
        given.append(next(c for c in candidates if c not in given))
    return tuple(given)
