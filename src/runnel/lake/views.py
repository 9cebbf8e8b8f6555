"""Views as Spark's catalog knows them: their text, and whether it is still the same."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import SparkSession

from runnel.errors import InvalidQuery
from runnel.lake.session import QUERY_SETTINGS, query_settings
from runnel.lake.typing import output_schema
from runnel.model.names import TableName, quote
from runnel.model.views import View

NOT_A_VIEW = ""
"""The stamp of a name that something else than a view has."""

_SETTINGS = "view_creation_spark_configuration"
_STAMPED = (
    "type", "view_text", "view_catalog_and_namespace", "view_query_output_columns",
    "view_schema_mode",
)  # fmt: skip
# What a setting was when a view does not say it: Spark's own default, not the session's.
_DEFAULTS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}


def find_view(spark: SparkSession, name: TableName, *, is_temporary: bool) -> View | None:
    """The view with a name; None when there is none. InvalidQuery when it cannot be inlined.

    `is_temporary`: the temporary view that a name without a schema means.
    """
    place = _place(name, is_temporary)
    facts = _describe(spark, place)
    if not facts or (is_temporary and not _is_temporary(facts)):
        return None
    text = _text(name, facts)
    if not _is_temporary(facts):
        _check_settings(spark, name, facts.get(_SETTINGS) or {})
    columns = output_schema(spark, f"SELECT * FROM {place}")
    outputs = tuple(facts.get("view_query_output_columns") or ())
    if len(outputs) != len(columns) or facts.get("view_schema_mode") == "EVOLUTION":
        outputs = tuple(column.name for column in columns)
    return View(
        name, _is_temporary(facts), text, _schema(name, facts), columns, outputs, _stamp(facts)
    )


def stamp_of(spark: SparkSession, view: View) -> str | None:
    """The stamp of what has a view's name now; None when nothing has. No job is run."""
    is_local = view.is_temporary and view.name.schema.lower() != "global_temp"
    facts = _describe(spark, _place(view.name, is_local))
    if facts is None or (is_local and facts and not _is_temporary(facts)):
        return None
    return _stamp(facts) if facts else NOT_A_VIEW


def view_text(spark: SparkSession, name: TableName, is_free: bool) -> tuple[str, str] | None:
    """The text of whatever view has a name, and the schema it looks for names in. No job is run.

    `is_free`: a temporary view of that name comes first.
    """
    facts = _describe(spark, _place(name, is_free)) or {}
    text = facts.get("view_text")
    with contextlib.suppress(InvalidQuery):
        return (str(text), _schema(name, facts)) if text else None
    return None


def is_lasting(spark: SparkSession) -> bool:
    """Whether the session's catalog outlives it, so that a view not in it was dropped."""
    return spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "hive"


def _place(name: TableName, is_temporary: bool) -> str:
    return quote(name.name) if is_temporary else name.sql


def _describe(spark: SparkSession, place: str) -> dict[str, Any] | None:
    """What Spark says of a view; None when nothing has the name, empty when it is no view."""
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {place} AS JSON").collect()
    except (AnalysisException, UnsupportedOperationException) as error:
        return None if "NOT_FOUND" in (error.getCondition() or "") else {}
    facts: dict[str, Any] = json.loads(rows[0][0])
    return facts if "VIEW" in str(facts.get("type")) or _is_temporary(facts) else {}


def _is_temporary(facts: Mapping[str, Any]) -> bool:
    return facts.get("catalog_name") == "system"


def _text(name: TableName, facts: Mapping[str, Any]) -> str:
    if facts.get("type") == "METRIC_VIEW":
        raise InvalidQuery(f"{name} is a metric view", hint="name the tables it reads instead")
    text = facts.get("view_text")
    if not text:
        raise InvalidQuery(
            f"temporary view {name} has no SQL text",
            detail="it was made from a DataFrame or a data source, which Runnel cannot follow",
            hint=f"create it with CREATE TEMPORARY VIEW {name} AS SELECT ..., or save its rows as "
            "a Delta table",
        )
    return str(text)


def _schema(name: TableName, facts: Mapping[str, Any]) -> str:
    """Where the view's text looks for names."""
    place = str(facts.get("view_catalog_and_namespace") or "spark_catalog.default")
    catalog, _, schema = place.partition(".")
    if catalog.strip("`").lower() != "spark_catalog" or not schema:
        raise InvalidQuery(
            f"view {name} reads tables of {place}",
            detail="expected a view over tables of spark_catalog",
            hint="name the tables in the query instead",
        )
    return schema[1:-1].replace("``", "`") if schema.startswith("`") else schema


def _check_settings(spark: SparkSession, name: TableName, recorded: Mapping[str, str]) -> None:
    """A view keeps the settings it was created with; inlined it would get the session's."""
    for setting, now in query_settings(spark).items():
        then = recorded.get(setting, _DEFAULTS.get(setting))
        if then is not None and then.lower() != now.lower():
            raise InvalidQuery(
                f"view {name} was created with {setting} = {then}",
                detail=f"this session has {now}, and a stream table has one value for all",
                hint=f"create the view again in this session, or SET {setting} = {then}",
            )


def _stamp(facts: Mapping[str, Any]) -> str:
    known: dict[str, Any] = {name: facts.get(name) for name in _STAMPED}
    known["columns"] = [[c.get("name"), c.get("type")] for c in facts.get("columns") or ()]
    settings = facts.get(_SETTINGS) or {}
    known["settings"] = {name: settings.get(name) for name in QUERY_SETTINGS}
    text = json.dumps(known, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
