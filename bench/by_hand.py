"""What one writes without Runnel: recompute it all, or recompute the touched keys and MERGE them."""

from __future__ import annotations

from collections.abc import Mapping

from bench.queries import Case, chain, chain_base
from runnel.api import Lake


def replace(lake: Lake, case: Case) -> None:
    _replace(lake, f"ctas_{case.name}", case.query)


def replace_chain(lake: Lake, prefix: str, first: int = 0) -> None:
    """The tables of the chain from the `first` one on, each over the one before it."""
    for name, query in chain()[first:]:
        _replace(lake, f"{prefix}{name}", query.format(p=prefix))


def merge_chain(lake: Lake, versions: Mapping[str, int]) -> None:
    """The large table by MERGE; the two small ones over it are recomputed."""
    merge(lake, chain_base(), versions)
    replace_chain(lake, "merge_", first=1)


def _replace(lake: Lake, name: str, query: str) -> None:
    lake.sql(f"CREATE OR REPLACE TABLE {name} USING delta AS {query}")


def merge(lake: Lake, case: Case, versions: Mapping[str, int]) -> None:
    """Bring `merge_<case>` up to date; `versions` are the tables' versions at its last update."""
    spark = lake.spark
    for table, version in versions.items():
        reader = spark.read.option("readChangeFeed", "true").option("startingVersion", version + 1)
        reader.table(table).createOrReplaceTempView(f"changed_{table}")
    match = " AND ".join(f"t.{k} <=> q.{k}" for k in case.keys)
    columns = spark.table(f"merge_{case.name}").columns
    values = ", ".join(f"q.{c}" for c in columns)
    spark.sql(
        f"MERGE INTO merge_{case.name} t USING ({_source(case)}) q ON {match} "
        f"WHEN MATCHED AND NOT q.present THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{c} = q.{c}' for c in columns)} "
        f"WHEN NOT MATCHED AND q.present THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )


def _source(case: Case) -> str:
    """One row for each touched key: the query's row, or `present` false when there is none."""
    query = case.restricted.format(touched=case.touched)
    same = " AND ".join(f"k.{key} <=> q.{key}" for key in case.keys)
    others = "".join(f", q.{c}" for c in case.others)
    return (
        f"SELECT k.*{others}, q.present IS NOT NULL AS present FROM ({case.touched}) k "
        f"LEFT JOIN (SELECT *, TRUE AS present FROM ({query})) q ON {same}"
    )
