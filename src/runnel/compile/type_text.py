"""Nested types taken apart: what an array, a map or a struct holds, from the text of its type."""

from __future__ import annotations

from runnel.errors import NotDifferentiable


def element_of(type_: str) -> str | None:
    """The type of an array's elements; None when it is no array."""
    return _inside(type_, "array<")


def entry_of(type_: str) -> tuple[str, str] | None:
    """The types of a map's keys and values; None when it is no map."""
    inside = _inside(type_, "map<")
    if inside is None:
        return None
    key, value = _parts(inside)
    return key, value


def fields_of(type_: str) -> tuple[tuple[str, str], ...] | None:
    """The names and types of a struct's fields; None when it is no struct."""
    inside = _inside(type_, "struct<")
    if inside is None:
        return None
    pairs = [part.partition(":") for part in _parts(inside)]
    # Spark shortens the text of long structs, and writes odd names as they are.
    if any(not _is_plain(name) or not field for name, _, field in pairs):
        raise NotDifferentiable(
            f"a struct of type {type_[:60]}", hint="use refresh mode FULL or AUTO"
        )
    return tuple((name, field) for name, _, field in pairs)


def _is_plain(name: str) -> bool:
    return name.replace("_", "a").isalnum()


def _inside(type_: str, opening: str) -> str | None:
    if not type_.startswith(opening):
        return None
    return type_[len(opening) : -1]


def _parts(text: str) -> list[str]:
    """Cut at the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]
