"""A query in another dialect is translated to Spark SQL once, when it is defined."""

from __future__ import annotations

from dataclasses import dataclass

from runnel.compile.postgres.translate import SETTINGS, translate
from runnel.errors import InvalidQuery, NotFound, UserError
from runnel.lake.typing import output_schema
from runnel.model.columns import Column
from runnel.model.names import TableName
from runnel.refresh.workspace import Workspace

DIALECTS = ("spark", "postgres")


@dataclass(frozen=True, slots=True)
class Wording:
    """A query as Spark reads it, the settings it means that under, and what the user wrote."""

    query: str
    settings: dict[str, str]
    options: dict[str, str]

    @property
    def translation(self) -> str:
        """The Spark SQL, when the user wrote something else."""
        return self.query if self.options else ""


def worded(workspace: Workspace, query: str, dialect: str, settings: dict[str, str]) -> Wording:
    """The query in Spark SQL; InvalidQuery names what has no equal there."""
    if dialect.lower() not in DIALECTS:
        raise UserError(f"{dialect!r} is not a dialect", detail=f"expected {' or '.join(DIALECTS)}")
    if dialect.lower() == "spark":
        return Wording(query, settings, {})
    translated = translate(query, lambda name: _columns_of(workspace, name))
    return Wording(
        translated, {**settings, **SETTINGS}, {"dialect": dialect.lower(), "query": query}
    )


def _columns_of(workspace: Workspace, name: TableName) -> tuple[Column, ...]:
    stream = workspace.find(name.key)
    if stream is not None:
        return stream.layout.columns
    try:
        return output_schema(workspace.spark, f"SELECT * FROM {name.sql}")
    except InvalidQuery:
        raise NotFound(
            f"table {name} does not exist",
            hint="create it first, or check the spelling; SHOW TABLES lists what there is",
        ) from None
