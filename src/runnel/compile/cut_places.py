"""Where a grouping stands in a query, and what stands there when a table has its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from runnel.compile.rewrites.determinism import written
from runnel.model.names import TableName

Known = Mapping[str, Mapping[str, str]]
"""By the key of a table, the types of its columns by their names in lower case."""

PART = "__part"
"""What the table is called where it is read."""

_NAMED_BY = (exp.From, exp.Join, exp.CTE, exp.SetOperation, exp.Lateral, exp.Table)


@dataclass(frozen=True, slots=True)
class Grouping:
    """A SELECT that groups: where it stands, the same as a query of its own, and its reader.

    The reader is what takes its place, without a FROM yet.
    """

    place: exp.Select
    alone: exp.Select
    reader: exp.Select

    @property
    def text(self) -> str:
        return written(self.alone)

    def reading(self, table: TableName) -> exp.Select:
        """What stands in its place when a table has its rows."""
        named = exp.table_(table.name, db=table.schema, quoted=True, alias=PART)
        return self.reader.from_(named)


def is_read_by_name(select: exp.Select) -> bool:
    """Whether the names of its columns mean something where it stands."""
    parent = select.parent
    while isinstance(parent, (exp.Subquery, exp.Paren)):
        parent = parent.parent
    return parent is None or isinstance(parent, _NAMED_BY)


def is_one_value(select: exp.Select) -> bool:
    """Whether it stands where a single value is wanted."""
    parent = select.parent
    if not isinstance(parent, exp.Subquery) or is_read_by_name(select):
        return False
    return not (isinstance(parent.parent, exp.In) and parent.arg_key == "query")
