"""How results show themselves: aligned text in a terminal, HTML in a notebook, JSON in scripts."""

from __future__ import annotations

import dataclasses
import html
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar, overload

_WIDEST = 60


class Record:
    """Base of result dataclasses; `COLUMNS` are the fields that a table of them shows."""

    __slots__ = ()
    COLUMNS: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields as values that JSON knows."""
        return {name: plain(getattr(self, name)) for name in _field_names(self)}

    def __str__(self) -> str:
        rows = [(_title(name), cell(getattr(self, name))) for name in _field_names(self)]
        width = max(display_width(title) for title, _ in rows)
        return "\n".join(f"{_pad(title, width)}  {text}".rstrip() for title, text in rows)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [(_title(name), cell(getattr(self, name))) for name in _field_names(self)]
        return html_table(("", type(self).__name__), rows)


RecordT_co = TypeVar("RecordT_co", bound=Record, covariant=True)


class Rows(Sequence[RecordT_co], Generic[RecordT_co]):
    """A list of results that prints as a table."""

    def __init__(self, records: Iterable[RecordT_co], columns: Sequence[str] | None = None) -> None:
        self._records = tuple(records)
        self._columns = tuple(columns) if columns is not None else None

    @overload
    def __getitem__(self, index: int) -> RecordT_co: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[RecordT_co]: ...
    def __getitem__(self, index: int | slice) -> RecordT_co | Rows[RecordT_co]:
        if isinstance(index, slice):
            return Rows(self._records[index], self._columns)
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[RecordT_co]:
        return iter(self._records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._records == other._records

    def __hash__(self) -> int:
        return hash(self._records)

    def to_dicts(self) -> list[dict[str, Any]]:
        return [record.to_dict() for record in self._records]

    @property
    def columns(self) -> tuple[str, ...]:
        if self._columns is not None or not self._records:
            return self._columns or ()
        return self._records[0].COLUMNS or _field_names(self._records[0])

    def __str__(self) -> str:
        return text_table(*self._table()) if self._records else "(none)"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(*self._table()) if self._records else "<em>none</em>"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        cells = [[cell(getattr(record, name)) for name in self.columns] for record in self._records]
        return [_title(name) for name in self.columns], cells


def text_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned by width; those of numbers to the right."""
    rows = [[_shorten(text) for text in row] for row in rows]
    columns = list(zip(titles, *rows, strict=True))
    widths = [max(display_width(text) for text in column) for column in columns]
    right = [_is_numeric(column[1:]) for column in columns]
    lines = [titles, ["-" * width for width in widths], *rows]
    return "\n".join("  ".join(map(_pad, line, widths, right)).rstrip() for line in lines)


def html_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def plain(value: Any) -> Any:
    """A value that JSON knows, in the nearest meaning."""
    match value:
        case Enum():
            return value.value
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes() | bytearray():
            return value.hex()
        case Record():
            return value.to_dict()
        case Mapping():
            return {str(name): plain(item) for name, item in value.items()}
        case list() | tuple() | set() | frozenset() | Rows():
            return [plain(item) for item in value]
    return plain(value.to_json()) if hasattr(value, "to_json") else str(value)


def cell(value: Any) -> str:
    """A value as people read it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Enum():
            return str(value.value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.3f}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}"
        case Mapping():
            return ", ".join(f"{name} {cell(item)}" for name, item in value.items())
        case list() | tuple():
            return ", ".join(cell(item) for item in value)
    return str(value)


def duration(seconds: float | None) -> str:
    """Seconds in the unit that reads best."""
    if seconds is None:
        return ""
    for limit, size, unit in (
        (1, 0.001, "ms"),
        (120, 1, "s"),
        (7200, 60, "min"),
        (172800, 3600, "h"),
    ):
        if seconds < limit:
            digits = 1 if unit == "s" and seconds < 10 else 0
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds / 86400:.0f} d"


def _field_names(record: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(record))


def _title(name: str) -> str:
    return name.replace("_", " ")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"


def _is_numeric(texts: Sequence[str]) -> bool:
    filled = [text for text in texts if text]
    return bool(filled) and all(text[0] in "+-0123456789" and _is_number(text) for text in filled)


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(",", "").replace(".", "", 1).isdigit()


def display_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    combining = sum(bool(unicodedata.combining(character)) for character in text)
    return len(text) + wide - combining


def _pad(text: str, width: int, right: bool = False) -> str:
    space = " " * (width - display_width(text))
    return space + text if right else text + space
