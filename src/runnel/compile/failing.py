"""Expressions that may fail on a row, and so must not be computed for rows that are never there."""

from __future__ import annotations

import re

from runnel.algebra.scalar import Scalar

_LITERALS = re.compile(r"CAST\(('[^']*'|-?\d+) AS [^()]*(\([^()]*\))?\)|'[^']*'", re.IGNORECASE)
_TO_TEXT = re.compile(r"CAST\([\w .]* AS STRING\)", re.IGNORECASE)
_OPERATORS = re.compile(r"[/%\[]|\bDIV\b", re.IGNORECASE)
_FUNCTIONS = re.compile(r"([A-Za-z_]\w*)\(")
_SAFE = frozenset(
    """abs array coalesce concat concat_ws contains day dayofmonth endswith explode extract
    get_json_object greatest if ifnull isnan isnotnull isnull least length lower lpad ltrim
    month named_struct nullif nvl nvl2 posexplode quarter replace reverse rpad rtrim split stack
    startswith struct substr substring trim upper year""".split()
)


def may_fail(scalar: Scalar) -> bool:
    """Whether it may raise an error; sums and products that overflow are not looked for."""
    text = _LITERALS.sub("", scalar.render())
    text = _TO_TEXT.sub("", text)
    names = {name.lower() for name in _FUNCTIONS.findall(text)}
    return bool(_OPERATORS.search(text)) or not names <= _SAFE


def raises(scalar: Scalar) -> bool:
    """Whether it raises an error on purpose."""
    return "raise_error(" in scalar.render().lower()
