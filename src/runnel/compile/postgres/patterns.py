"""LIKE, SIMILAR TO and POSIX regular expressions as Spark's LIKE and Java's patterns.

A constant pattern is read here and written anew; what the two sides could read differently is
refused.
"""

from __future__ import annotations

import re

from runnel.compile.postgres.casts import coerce
from runnel.compile.postgres.types import BOOL, TEXT
from runnel.compile.postgres.values import Value, refused, text_literal

_CLASSES = {
    "alpha": r"\p{Alpha}", "digit": "0-9", "alnum": r"\p{Alnum}", "upper": r"\p{Upper}",
    "lower": r"\p{Lower}", "space": r"\s", "punct": r"\p{Punct}", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_ESCAPES = {
    "d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": r"\s", "S": r"\S", "y": r"\b",
    "Y": r"\B", "m": r"\b(?=\w)", "M": r"\b(?<=\w)", "A": r"\A", "Z": r"\z", "n": r"\n",
    "t": r"\t", "r": r"\r",
}  # fmt: skip
_BOUND = re.compile(r"\{\d+(?:,\d*)?\}")


def like(value: Value, pattern: Value, escape: str | None, is_blind: bool) -> Value:
    """LIKE or ILIKE; in PostgreSQL an escaped ordinary character stands for itself."""
    value, pattern = _require_text(value, "LIKE"), _require_text(pattern, "LIKE")
    shown = pattern.sql
    if pattern.constant is not None:
        shown = text_literal(_like_pattern(pattern.constant, "\\" if escape is None else escape))
    elif escape is not None:
        raise refused("LIKE ... ESCAPE with a pattern that is not constant")
    return Value(f"({value.sql} {'ILIKE' if is_blind else 'LIKE'} {shown})", BOOL)


def _like_pattern(pattern: str, escape: str) -> str:
    out, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        if escape and character == escape:
            position += 1
            if position == len(pattern):
                raise refused("a LIKE pattern that ends with its escape character")
            character = pattern[position]
            out += f"\\{character}" if character in "%_\\" else character
        else:
            out += "\\\\" if character == "\\" else character
        position += 1
    return out


def similar(value: Value, pattern: Value) -> Value:
    """SIMILAR TO: the whole text must match."""
    value = _require_text(value, "SIMILAR TO")
    if pattern.constant is None:
        raise refused("SIMILAR TO a pattern that is not constant")
    regex = f"(?s)\\A(?:{_similar_pattern(pattern.constant)})\\z"
    return Value(f"({value.sql} RLIKE {text_literal(regex)})", BOOL)


def _similar_pattern(pattern: str) -> str:
    out, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\" and position + 1 < len(pattern):
            position += 1
            out += re.escape(pattern[position])
        elif character == "[":
            bracket, position = _bracket(pattern, position)
            out += bracket
            continue
        elif character in "%_":
            out += ".*" if character == "%" else "."
        elif character in "|*+?(){},0123456789" or character.isalnum():
            out += character
        else:
            out += re.escape(character)
        position += 1
    return _valid(out, pattern)


def matches(value: Value, pattern: Value, is_blind: bool) -> Value:
    """`~` and `~*`."""
    value = _require_text(value, "a regular expression")
    regex = java_pattern(pattern, "i" if is_blind else "")
    return Value(f"({value.sql} RLIKE {text_literal(regex)})", BOOL)


def java_pattern(pattern: Value, flags: str = "") -> str:
    """A POSIX pattern in Java's syntax: . takes a line's end too, $ only the text's end."""
    if pattern.constant is None:
        raise refused("a regular expression that is not constant")
    return ("(?is)" if "i" in flags else "(?s)") + translate_regex(pattern.constant)


def translate_regex(pattern: str) -> str:
    if pattern.startswith(("***", "(?")):
        raise refused(f"the regular expression '{pattern}'", detail="options at its beginning")
    out, position = "", 0
    while position < len(pattern):
        piece, position = _piece(pattern, position)
        out += piece
    return _valid(out, pattern)


def _piece(pattern: str, position: int) -> tuple[str, int]:
    character = pattern[position]
    if character == "[":
        return _bracket(pattern, position)
    if character == "\\":
        if position + 1 == len(pattern):
            raise refused(f"the regular expression '{pattern}'")
        return _escape(pattern[position + 1], pattern), position + 2
    if character == "{":
        bound = _BOUND.match(pattern, position)
        if bound is None:
            raise refused(f"the regular expression '{pattern}'", detail="{ that begins no bound")
        return bound.group(), bound.end()
    if pattern.startswith("(?", position) and not pattern.startswith("(?:", position):
        raise refused(f"the regular expression '{pattern}'", detail="lookaround")
    if character == "$":
        return r"\z", position + 1
    if character == "^":
        return r"\A", position + 1
    return ("\\" + character if character in "}]" else character), position + 1


def _escape(character: str, pattern: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isalnum():
        raise refused(f"the regular expression '{pattern}'", detail=f"the escape \\{character}")
    return "\\" + character


def _bracket(pattern: str, start: int) -> tuple[str, int]:
    """A bracket expression; inside it Java gives & [ and \\ a meaning of their own."""
    position, out = start + 1, "["
    if pattern.startswith("^", position):
        out, position = "[^", position + 1
    first = position
    while position < len(pattern) and (pattern[position] != "]" or position == first):
        if pattern.startswith("[:", position):
            name, found, _ = pattern[position + 2 :].partition(":]")
            if not found or name not in _CLASSES:
                raise refused(f"the regular expression '{pattern}'", detail="a character class")
            out += _CLASSES[name]
            position += len(name) + 4
        elif pattern[position] == "\\" and position + 1 < len(pattern):
            out += _escape(pattern[position + 1], pattern)
            position += 2
        elif pattern.startswith(("[.", "[="), position):
            raise refused(f"the regular expression '{pattern}'", detail="a collating element")
        else:
            character = pattern[position]
            out += "\\" + character if character in "[]&^~#" else character
            position += 1
    if position >= len(pattern):
        raise refused(f"the regular expression '{pattern}'", detail="[ without ]")
    return out + "]", position + 1


def _valid(regex: str, pattern: str) -> str:
    try:
        re.compile(re.sub(r"\\p\{\w+\}", "a", regex).replace(r"\z", r"\Z"))
    except re.error as error:
        raise refused(f"the regular expression '{pattern}'", detail=str(error)) from None
    return regex


def require_longest(pattern: str, function: str) -> None:
    """Refuse patterns for which the longest match (PostgreSQL) may not be Java's match."""
    plain = re.sub(r"\\.|\[[^]]*\]", "a", pattern)
    quantifiers = re.findall(r"[*+?]|\{[^}]*\}", plain)
    if "|" in plain or len(quantifiers) > 1 or re.search(r"\)[*+?{]", plain):
        raise refused(
            f"{function} with the regular expression '{pattern}'",
            detail="PostgreSQL takes the longest match, Spark the first that it finds",
            hint="at most one repetition and no | can be told to be the same",
        )


def _require_text(value: Value, where: str) -> Value:
    if value.type.kind not in ("text", "unknown"):
        raise refused(f"{where} of {value.type}", hint="cast it to text")
    return coerce(value, TEXT)
