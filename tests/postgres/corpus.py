"""The corpus: queries by topic, and those that are refused with the construct they name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Query:
    label: str
    text: str

    def __str__(self) -> str:
        return self.label


def accepted() -> list[Query]:
    """Queries that PostgreSQL and Spark must answer alike."""
    found: list[Query] = []
    for part in re.split(r"^-- topic: ", (_FOLDER / "corpus.sql").read_text(), flags=re.MULTILINE):
        topic, _, rest = part.partition("\n")
        statements = [s.strip() for s in re.split(r";$", rest, flags=re.MULTILINE)]
        queries = [s for s in statements if s]
        found += [Query(f"{topic} {n}", text) for n, text in enumerate(queries, 1)]
    return found


def refused() -> list[tuple[Query, str]]:
    """Queries and what the error must name."""
    text = (_FOLDER / "refused.sql").read_text()
    pairs = re.findall(r"^-- refuse: (.*)\n(.*);$", text, flags=re.MULTILINE)
    return [(Query(construct, query), construct) for construct, query in pairs]
