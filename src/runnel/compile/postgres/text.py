"""Functions of text, where an index below one, a NULL or an empty string is read differently."""

from __future__ import annotations

from collections.abc import Callable

from runnel.compile.postgres.casts import as_text, coerce, to_int
from runnel.compile.postgres.patterns import java_pattern, matches, require_longest
from runnel.compile.postgres.types import BOOL, INT4, TEXT, Type, array_of
from runnel.compile.postgres.values import Value, bare, call, refused, text_literal

Function = Callable[[list[Value]], Value]


def text_of(value: Value, function: str) -> Value:
    """An argument that must be text."""
    value = coerce(value, TEXT) if value.type.kind in ("unknown", "text") else value
    if value.type.kind != "text":
        raise refused(f"{function}() of {value.type}", hint="cast it to text")
    return value


def _simple(spark: str, result: Type, most: int = 1) -> Function:
    def apply(arguments: list[Value]) -> Value:
        if not 1 <= len(arguments) <= most:
            raise refused(f"{spark.lower()}() with {len(arguments)} arguments")
        return Value(call(spark, *(text_of(a, spark.lower()).sql for a in arguments)), result)

    return apply


def concatenate(left: Value, right: Value) -> Value:
    """`||` of text: NULL when either side is."""
    a, b = _piece(left), _piece(right)
    return Value(f"({a} || {b})", TEXT)


def _piece(value: Value) -> str:
    if value.type.kind == "json":
        raise refused("|| or concat() of a JSON document", hint="use ->> to get text")
    return coerce(value, TEXT).sql if value.type.kind == "unknown" else as_text(value).sql


def concat(arguments: list[Value]) -> Value:
    """concat(): NULL counts as nothing, true is written t."""
    return Value(call("CONCAT", *(f"COALESCE({_written(a)}, '')" for a in arguments)), TEXT)


def concat_ws(arguments: list[Value]) -> Value:
    separator = text_of(arguments[0], "concat_ws")
    return Value(call("CONCAT_WS", separator.sql, *map(_written, arguments[1:])), TEXT)


def _written(value: Value) -> str:
    if value.type.kind == "bool":
        return f"CASE WHEN {value.sql} THEN 't' WHEN NOT {value.sql} THEN 'f' END"
    return _piece(value)


def left(arguments: list[Value]) -> Value:
    """left(x, -n) is all but the last n characters."""
    return _end_of("left", arguments)


def right(arguments: list[Value]) -> Value:
    """right(x, -n) is all but the first n characters."""
    return _end_of("right", arguments)


def _end_of(name: str, arguments: list[Value]) -> Value:
    text, count = text_of(arguments[0], name), to_int(arguments[1], f"{name}()")
    constant = count.integer()
    rest = f"LENGTH({text.sql}) + {count.sql}"
    if constant is None:
        taken = f"CASE WHEN {count.sql} < 0 THEN {rest} ELSE {count.sql} END"
    else:
        taken = count.sql if constant >= 0 else rest
    return Value(f"{name.upper()}({text.sql}, {taken})", TEXT)


def substring(arguments: list[Value]) -> Value:
    """Positions before the first are counted too: substring('abc', -1, 3) is 'a'."""
    text = text_of(arguments[0], "substring")
    if arguments[1].type.kind in ("unknown", "text"):
        return _matched(text, arguments[1]) if len(arguments) == 2 else _no_escape()
    start = to_int(arguments[1], "substring()")
    length = to_int(arguments[2], "substring()") if len(arguments) > 2 else None
    first = start.integer()
    if first is not None and first >= 1:
        return Value(call("SUBSTRING", *(v.sql for v in (text, start, length) if v)), TEXT)
    begin = f"CASE WHEN {start.sql} < 1 THEN 1 ELSE {start.sql} END"
    if length is None:
        return Value(call("SUBSTRING", text.sql, begin), TEXT)
    rest = f"GREATEST({start.sql} + {length.sql} - 1, 0)"
    # GREATEST passes over NULL, so it must not meet one.
    known = f"{start.sql} < 1 AND {length.sql} IS NOT NULL"
    count = f"CASE WHEN {known} THEN {rest} ELSE {length.sql} END"
    return Value(call("SUBSTRING", text.sql, begin, count), TEXT)


def _no_escape() -> Value:
    raise refused("substring(... SIMILAR ... ESCAPE ...)")


def _matched(text: Value, pattern: Value) -> Value:
    """substring(x from 'pattern'): the first group, or all of the match; NULL for none."""
    regex = java_pattern(pattern)
    assert pattern.constant is not None
    require_longest(pattern.constant, "substring")
    group = "1" if "(" in pattern.constant.replace("\\(", "").replace("(?:", "") else "0"
    shown = text_literal(regex)
    found = f"REGEXP_EXTRACT({text.sql}, {shown}, {group})"
    return Value(f"CASE WHEN {text.sql} RLIKE {shown} THEN {found} END", TEXT)


def position(text: Value, part: Value) -> Value:
    text, part = text_of(text, "position"), text_of(part, "position")
    return Value(f"LOCATE({part.sql}, {text.sql})", INT4)


def overlay(arguments: list[Value]) -> Value:
    text, other = text_of(arguments[0], "overlay"), text_of(arguments[1], "overlay")
    start = to_int(arguments[2], "overlay()")
    if (start.integer() or 0) < 1:
        raise refused("overlay() from a position that is not a constant above 0")
    length = to_int(arguments[3], "overlay()").sql if len(arguments) > 3 else f"LENGTH({other.sql})"
    before = f"LEFT({text.sql}, {start.sql} - 1)"
    after = f"SUBSTRING({text.sql}, {start.sql} + {length})"
    return Value(f"CONCAT({before}, {other.sql}, {after})", TEXT)


def trim(text: Value, characters: Value | None, where: str) -> Value:
    text = text_of(text, "trim")
    set_ = text_of(characters, "trim").sql if characters is not None else "' '"
    return Value(f"TRIM({where} {set_} FROM {text.sql})", TEXT)


def _trimming(where: str) -> Function:
    def apply(arguments: list[Value]) -> Value:
        return trim(arguments[0], arguments[1] if len(arguments) > 1 else None, where)

    return apply


def _padding(spark: str) -> Function:
    def apply(arguments: list[Value]) -> Value:
        text, count = text_of(arguments[0], spark.lower()), to_int(arguments[1], spark.lower())
        fill = text_of(arguments[2], spark.lower()).sql if len(arguments) > 2 else "' '"
        return Value(call(spark, text.sql, count.sql, fill), TEXT)

    return apply


def repeat(arguments: list[Value]) -> Value:
    count = to_int(arguments[1], "repeat()")
    return Value(call("REPEAT", text_of(arguments[0], "repeat").sql, count.sql), TEXT)


def split_part(arguments: list[Value]) -> Value:
    text, separator = (text_of(a, "split_part") for a in arguments[:2])
    count = to_int(arguments[2], "split_part()")
    return Value(call("SPLIT_PART", text.sql, separator.sql, count.sql), TEXT)


def string_to_array(arguments: list[Value]) -> Value:
    text, separator = (text_of(a, "string_to_array") for a in arguments[:2])
    if not separator.constant or len(arguments) > 2:
        raise refused("string_to_array() without a constant separator")
    pattern = "".join(
        f"\\{c}" if not c.isalnum() and c.isascii() else c for c in separator.constant
    )
    parts = f"SPLIT({text.sql}, {text_literal(pattern)})"
    empty = "CAST(ARRAY() AS ARRAY<STRING>)"
    return Value(f"CASE WHEN {text.sql} = '' THEN {empty} ELSE {parts} END", array_of(TEXT))


def regexp_replace(arguments: list[Value]) -> Value:
    """Without the flag g only the first match is replaced."""
    text, pattern = text_of(arguments[0], "regexp_replace"), arguments[1]
    flags = arguments[3].constant if len(arguments) > 3 else ""
    replacement = arguments[2].constant
    if flags is None or set(flags) - set("gi") or replacement is None or len(arguments) > 4:
        raise refused("regexp_replace() with these arguments", hint="constants, flags g and i")
    regex = java_pattern(pattern, flags)
    assert pattern.constant is not None
    require_longest(pattern.constant, "regexp_replace")
    if "g" in flags:
        shown = _java_replacement(replacement, 0)
        return Value(
            call("REGEXP_REPLACE", text.sql, text_literal(regex), text_literal(shown)), TEXT
        )
    options, _, body = regex.partition(")")
    once = f"{options})\\A(.*?)({body})(.*)\\z"
    groups = body.replace("\\(", "").replace("(?:", "").count("(")
    shown = f"$1{_java_replacement(replacement, 2)}${groups + 3}"
    return Value(call("REGEXP_REPLACE", text.sql, text_literal(once), text_literal(shown)), TEXT)


def _java_replacement(text: str, shift: int) -> str:
    out, position = "", 0
    while position < len(text):
        character = text[position]
        following = text[position + 1 : position + 2]
        if character == "\\" and following and (following.isdigit() or following in "&\\"):
            if following == "\\":
                out += "\\\\"
            else:
                out += f"${shift + (0 if following == '&' else int(following))}"
            position += 1
        else:
            out += f"\\{character}" if character in "\\$" else character
        position += 1
    return out


def regexp_like(arguments: list[Value]) -> Value:
    flags = arguments[2].constant if len(arguments) > 2 else ""
    if flags is None or flags not in ("", "i", "c"):
        raise refused("regexp_like() with these flags")
    return matches(arguments[0], arguments[1], flags == "i")


def _replacing(spark: str) -> Function:
    def apply(arguments: list[Value]) -> Value:
        return Value(call(spark, *(text_of(a, spark.lower()).sql for a in arguments)), TEXT)

    return apply


def starts_with(arguments: list[Value]) -> Value:
    text, start = (text_of(a, "starts_with") for a in arguments)
    return Value(f"STARTSWITH({bare(text.sql)}, {bare(start.sql)})", BOOL)


FUNCTIONS: dict[str, Function] = {
    "lower": _simple("LOWER", TEXT), "upper": _simple("UPPER", TEXT),
    "length": _simple("LENGTH", INT4), "char_length": _simple("LENGTH", INT4),
    "character_length": _simple("LENGTH", INT4), "octet_length": _simple("OCTET_LENGTH", INT4),
    "bit_length": _simple("BIT_LENGTH", INT4), "reverse": _simple("REVERSE", TEXT),
    "md5": _simple("MD5", TEXT),
    "concat": concat, "concat_ws": concat_ws, "left": left, "right": right,
    "substr": substring, "substring": substring,
    "btrim": _trimming("BOTH"), "ltrim": _trimming("LEADING"), "rtrim": _trimming("TRAILING"),
    "lpad": _padding("LPAD"), "rpad": _padding("RPAD"), "repeat": repeat,
    "replace": _replacing("REPLACE"), "translate": _replacing("TRANSLATE"),
    "split_part": split_part, "strpos": lambda a: position(a[0], a[1]),
    "string_to_array": string_to_array, "regexp_replace": regexp_replace,
    "regexp_like": regexp_like, "starts_with": starts_with,
}  # fmt: skip
