"""Spark's exceptions told as Runnel's: what went wrong, without the stack trace."""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException, PySparkException

from runnel.errors import (
    InternalFault,
    InvalidQuery,
    QueryFailed,
    RunnelError,
    SourceError,
    SystemFault,
    UserError,
)
from runnel.lake.ended import HINT, is_cut_off
from runnel.lake.interrupts import was_interrupted
from runnel.model.names import TableName

NEGATIVE_TOTAL = "runnel: a row has a negative total weight"
"""What a plan raises when a trace would show a row less than zero times."""

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] ([^\n]*)")
_TAIL = re.compile(r"\s*SQLSTATE: \w+;?(?P<position> \(?line \d+,? pos \d+\)?)?[;\s]*$")
_CONTEXT = re.compile(r"== SQL[^\n]*==\n.*?\n *\^+", re.DOTALL)
_LOST_FILES = (
    "FILE_NOT_EXIST", "PATH_NOT_FOUND", "DELTA_FILE_NOT_FOUND", "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_CANNOT_RECREATE_TABLE_STATE", "DELTA_LOG_FILE_NOT_FOUND", "DELTA_VERSION_NOT_FOUND",
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_MISSING_CHANGE_DATA", "CANNOT_READ_FILE_FOOTER",
)  # fmt: skip
# What the machine ran out of: signs of it in any error, what happened, and what helps.
_SHORTAGES = (
    (
        ("No space left on device", "ENOSPC", "Disk quota exceeded", "os error 28"),
        "the disk is full",
        "free some space where the lake and Spark's temporary files lie, and try again",
    ),
    (
        ("OutOfMemoryError", "UNABLE_TO_ACQUIRE_MEMORY", "GC overhead limit exceeded",
         "Not enough memory to build and broadcast", "Container killed by YARN",
         "OOMKilled", "Cannot allocate memory", "os error 12"),
        "Spark ran out of memory",
        'give it more: spark_conf={"spark.driver.memory": "8g"} of connect, or less work at a time',
    ),
)  # fmt: skip
_HINTS = {
    "AMBIGUOUS_REFERENCE": "write the table's name before the column",
    "DIVIDE_BY_ZERO": "use try_divide, or filter out the rows with a zero divisor",
    "REMAINDER_BY_ZERO": "use try_mod, or filter out the rows with a zero divisor",
    "NUMERIC_VALUE_OUT_OF_RANGE": "cast to a wider type, or use try_cast",
    "INVALID_ARRAY_INDEX": "use get(array, index) to get NULL beyond the end",
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": "make the subquery give one row, by an aggregate for example",
    "DATATYPE_MISMATCH": "cast one of them to the type that is expected",
    "MISSING_AGGREGATION": "add it to GROUP BY, or put it into an aggregate function",
    "PARSE_SYNTAX_ERROR": "look at that place, and just before it, for a misspelt word",
    "UNRESOLVED_COLUMN": "check the spelling; DESCRIBE TABLE lists the columns of a table",
    "ARITHMETIC_OVERFLOW": "cast to a wider type, or use try_add, try_subtract or try_multiply",
    "BINARY_ARITHMETIC_OVERFLOW": "cast to a wider type, or use the try_ function of it",
    "CAST_INVALID_INPUT": "use try_cast to get NULL for malformed values",
    "CAST_OVERFLOW": "cast to a wider type, or use try_cast",
    "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE": "cast the column to the wider type in the first part",
    "UNRESOLVED_ROUTINE": "check the spelling; a stream table sees no temporary functions, but "
    "those that this process gave to lake.register_function",
    "TABLE_OR_VIEW_NOT_FOUND": "check the spelling, or qualify the name with its schema",
}
_HINT_OF: dict[type[RunnelError], str] = {
    InvalidQuery: "correct the query; EXPLAIN STREAM TABLE AS ... checks one and creates nothing",
    QueryFailed: "correct the rows for which it fails, or let the query pass over them",
}


def translate(error: Exception) -> RunnelError:
    """The Runnel error that says the same; a Runnel error comes back as it is."""
    if was_interrupted(error):
        raise KeyboardInterrupt from error
    if isinstance(error, RunnelError):
        return error
    text = str(error)
    if NEGATIVE_TOTAL in text:
        return InternalFault("a stored row has a negative total weight", hint="rebuild the table")
    if (shortage := _shortage(error, text)) is not None:
        return shortage
    if "Traceback (most recent call last):" in text and isinstance(error, PySparkException):
        return _own_function_failed(text)
    condition, message = _condition_and_message(error, text)
    kind = _kind(error, condition, text)
    return kind(message, detail=_detail(condition, text), hint=_hint(condition, kind))


def missing_table(error: Exception) -> TableName | None:
    """The table or view that Spark did not find, if that is what the error says."""
    if not isinstance(error, AnalysisException):
        return None
    if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    try:
        return TableName.parse((error.getMessageParameters() or {}).get("relationName", ""))
    except UserError:
        return None


def _shortage(error: Exception, text: str) -> SystemFault | None:
    """What the query is not to blame for; the statement quoted in the text is left out."""
    if is_cut_off(error):
        return SystemFault("the Spark process has ended", detail=text[:300] or None, hint=HINT)
    told = f"{type(error).__name__}: {_CONTEXT.sub('', text)}"
    for signs, what, hint in _SHORTAGES:
        sign = next((sign for sign in signs if sign in told), None)
        if sign is not None:
            line = next(line for line in told.splitlines() if sign in line)
            return SystemFault(what, detail=line.strip()[:300], hint=hint)
    return None


def _own_function_failed(text: str) -> RunnelError:
    """A function of the user's own raised: its error comes last, what led to it before."""
    trace = [line for line in text.splitlines() if line.strip()]
    return QueryFailed(
        f"a Python function of the query failed: {trace[-1].strip()}",
        detail="\n".join(line for line in trace[1:-1] if "pyspark" not in line),
    )


def _kind(error: Exception, condition: str | None, text: str) -> type[RunnelError]:
    name = condition or ""
    if any(lost in name for lost in _LOST_FILES) or "java.io.FileNotFoundException" in text:
        return SourceError
    if isinstance(error, AnalysisException):
        return InvalidQuery
    if not isinstance(error, PySparkException) and "org.apache.spark" not in text:
        return SystemFault
    return QueryFailed if _is_the_querys_fault(error, name, text) else SystemFault


def _is_the_querys_fault(error: Exception, condition: str, text: str) -> bool:
    if condition.startswith(("INTERNAL_ERROR", "DELTA_", "FAILED_READ_FILE", "TASK_WRITE_FAILED")):
        return False
    # SQLSTATE class 22 is "data exception", 21 "cardinality violation", P0 is raise_error.
    if re.search(r"SQLSTATE: (22|21|P0|42|54)", text):
        return True
    return isinstance(error, PySparkException) and type(error).__name__ in (
        "ArithmeticException",
        "ArrayIndexOutOfBoundsException",
        "DateTimeException",
        "NumberFormatException",
        "PythonException",
        "SparkRuntimeException",
        "SparkUpgradeException",
    )


def _condition_and_message(error: Exception, text: str) -> tuple[str | None, str]:
    # The quoted statement may hold brackets of its own. The last condition is the cause:
    # "[TASK_WRITE_FAILED] ..." wraps the one that matters.
    found = _CONDITION.findall(_CONTEXT.sub("", text))
    if not found:
        return None, _tidy(_first_line(error, text))
    condition, message = found[-1]
    return condition, _tidy(message)


def _first_line(error: Exception, text: str) -> str:
    for line in (raw.strip().removeprefix(": ") for raw in text.splitlines()):
        if line and not line.startswith("An error occurred while calling"):
            return line
    return type(error).__name__


def _tidy(message: str) -> str:
    match = _TAIL.search(message)
    position = (match.group("position") or "") if match else ""
    plain = _TAIL.sub("", message).strip().rstrip(".")
    # Only a capitalised word is lowered: `INSERT`, `A.b` and quoted names stay as they are.
    if re.match(r"[A-Z][a-z ]", plain):
        plain = plain[0].lower() + plain[1:]
    return plain + position


def _detail(condition: str | None, text: str) -> str | None:
    context = _CONTEXT.search(text)
    parts = [condition or "", context.group() if context else ""]
    return "\n".join(part for part in parts if part) or None


def _hint(condition: str | None, kind: type[RunnelError]) -> str | None:
    return _HINTS.get((condition or "").partition(".")[0], _HINT_OF.get(kind))
