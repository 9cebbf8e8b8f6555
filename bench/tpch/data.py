"""The tables of TPC-H, generated, and rounds of changes: RF1, RF2 and updates of dimensions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from runnel.api import Lake

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
_SEGMENTS = "array('BUILDING', 'AUTOMOBILE', 'MACHINERY', 'HOUSEHOLD', 'FURNITURE')"


def generate(folder: Path, scale: float) -> None:
    """One Parquet file for each table."""
    tool = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run([tool, "parquet", "-s", str(scale), "--output-dir", folder], check=True)


def load(lake: Lake, folder: Path) -> None:
    """The generated files as Delta tables."""
    for table in TABLES:
        lake.sql(
            f"CREATE TABLE {table} USING delta AS SELECT * FROM parquet.`{folder / table}.parquet`"
        )


def query(number: int) -> str:
    return (Path(__file__).parent / f"q{number:02}.sql").read_text()


def change(lake: Lake, share: float, round_: int) -> None:
    """RF1 inserts orders with their lines, RF2 deletes others; dimensions are updated as well."""
    _insert_orders(lake, share, round_)
    _delete_orders(lake, share, round_)
    _update(lake, share, round_)


def touch(lake: Lake) -> None:
    """Read every table once, so that no way pays the disk for those that come after it."""
    for table in TABLES:
        lake.sql(f"SELECT max(hash(*)) FROM {table}").collect()


def _insert_orders(lake: Lake, share: float, round_: int) -> None:
    chosen = f"WHERE {_some('{key}', share, round_, 1)}"
    # Keys of orders that never were: above all those that the generator gives out.
    moved = f"{{key}} + {(round_ + 1) * 10**10} AS {{key}}"
    orders = (
        f"SELECT {moved.format(key='o_orderkey')}, o_custkey, 'O' AS o_orderstatus, "
        "o_totalprice + 1, date_add(o_orderdate, 30), o_orderpriority, o_clerk, o_shippriority, "
        f"o_comment FROM orders {chosen.format(key='o_orderkey')}"
    )
    lines = (
        f"SELECT {moved.format(key='l_orderkey')}, l_partkey, l_suppkey, l_linenumber, "
        "l_quantity + 5, l_extendedprice + 10, l_discount, l_tax, l_returnflag, l_linestatus, "
        "date_add(l_shipdate, 30), date_add(l_commitdate, 30), date_add(l_receiptdate, 30), "
        f"l_shipinstruct, l_shipmode, l_comment FROM lineitem {chosen.format(key='l_orderkey')}"
    )
    lake.sql(f"INSERT INTO orders {orders}")
    lake.sql(f"INSERT INTO lineitem {lines}")


def _delete_orders(lake: Lake, share: float, round_: int) -> None:
    lake.sql(f"DELETE FROM orders WHERE {_some('o_orderkey', share, round_, 2)}")
    lake.sql(f"DELETE FROM lineitem WHERE {_some('l_orderkey', share, round_, 2)}")


def _update(lake: Lake, share: float, round_: int) -> None:
    """Prices, balances, segments, and keys: orders move to other customers, suppliers elsewhere."""
    updates = {
        "customer": ("c_custkey", f"c_mktsegment = {_SEGMENTS}[pmod(c_custkey, 5)], "
                     "c_acctbal = c_acctbal + 100, c_nationkey = pmod(c_nationkey + 1, 25)"),
        "orders": ("o_orderkey", "o_custkey = o_custkey + 1, o_totalprice = o_totalprice * 2"),
        "part": ("p_partkey", "p_size = pmod(p_size, 50) + 1, p_retailprice = p_retailprice + 1"),
        "partsupp": ("ps_partkey", "ps_supplycost = ps_supplycost / 2, ps_availqty = ps_availqty + 9"),
        "supplier": ("s_suppkey", "s_nationkey = pmod(s_nationkey + 1, 25), s_acctbal = -s_acctbal"),
    }  # fmt: skip
    for table, (key, values) in updates.items():
        lake.sql(f"UPDATE {table} SET {values} WHERE {_some(key, share / 4, round_, 3)}")


def _some(key: str, share: float, round_: int, salt: int) -> str:
    """A condition that chooses about this share of the keys, others in every round."""
    return f"pmod(xxhash64({key}, {round_}, {salt}), 1000000) < {max(1, int(share * 1_000_000))}"
