"""A PostgreSQL query to Spark SQL, by the types of what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runnel.compile.parse import parse
from runnel.compile.places import point
from runnel.compile.postgres.dialect import PostgresSql, parse_postgres
from runnel.compile.postgres.queries import translate_query
from runnel.compile.postgres.relation import Known
from runnel.compile.postgres.scope import Scope
from runnel.compile.rewrites.quantified import rewrite_quantifiers
from runnel.errors import UserError
from runnel.model.columns import Column
from runnel.model.names import TableName

SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.sizeOfNull": "false",
}
"""Session settings under which the translation means what PostgreSQL means."""


def translate(query: str, columns_of: Callable[[TableName], tuple[Column, ...]]) -> str:
    """Spark SQL that answers as PostgreSQL would; InvalidQuery names what cannot be."""
    tree = parse_postgres(query)
    try:
        rewrite_quantifiers(tree, PostgresSql)
        relation = translate_query(tree, Known(columns_of, {}), Scope())
    except UserError as error:
        point(error, query)
        raise
    parse(relation.sql)
    return relation.sql
