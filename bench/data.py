"""The data of the benchmark: a fact table, two dimensions, and mixed changes of a given share."""

from __future__ import annotations

from runnel.api import Lake

CUSTOMERS = 1_000_000
PRODUCTS = 1_000
GROUPS = 50_000
CITIES = 50_000


def create(lake: Lake, rows: int) -> None:
    """Generate the tables; every value follows from the row's number."""
    customers = max(1_000, min(CUSTOMERS, rows // 10))
    groups = max(100, min(GROUPS, rows // 200))
    lake.sql(
        "CREATE TABLE sales (id BIGINT, customer BIGINT, product INT, bucket INT, quantity INT, "
        "amount DECIMAL(12,2), day DATE) USING delta"
    )
    lake.sql("CREATE TABLE customers (id BIGINT, name STRING, segment INT, city INT) USING delta")
    lake.sql("CREATE TABLE products (id INT, label STRING, price DECIMAL(12,2)) USING delta")
    lake.sql(f"INSERT INTO sales {sale_rows(f'range({rows})', customers, groups)}")
    lake.sql(
        "INSERT INTO customers SELECT id, concat('customer ', id), CAST(pmod(id, 25) AS INT), "
        f"CAST(pmod(xxhash64(id), {min(CITIES, customers // 20)}) AS INT) FROM range({customers})"
    )
    lake.sql(
        "INSERT INTO products SELECT CAST(id AS INT), concat('product ', id), "
        f"CAST(pmod(id * 37, 9900) / 100 AS DECIMAL(12,2)) FROM range({PRODUCTS})"
    )


def sale_rows(source: str, customers: int, groups: int) -> str:
    return (
        f"SELECT id, pmod(xxhash64(id), {customers}) AS customer, "
        f"CAST(pmod(xxhash64(id, 1), {PRODUCTS}) AS INT) AS product, "
        f"CAST(pmod(xxhash64(id, 2), {groups}) AS INT) AS bucket, "
        "CAST(pmod(id, 10) + 1 AS INT) AS quantity, "
        "CAST(pmod(xxhash64(id, 3), 100000) / 100 AS DECIMAL(12,2)) AS amount, "
        f"date_add(DATE'2026-01-01', CAST(pmod(id, 365) AS INT)) AS day FROM {source}"
    )


def change(lake: Lake, rows: int, share: float, round_: int) -> int:
    """Update, delete and insert about `share` of the fact's rows; also change a few customers."""
    changed = max(4, int(rows * share))
    updated, deleted, inserted = changed // 2, changed // 4, changed // 4
    customers = max(1_000, min(CUSTOMERS, rows // 10))
    groups = max(100, min(GROUPS, rows // 200))
    lake.sql(
        f"UPDATE sales SET amount = amount + 1, quantity = quantity + 1 "
        f"WHERE pmod(xxhash64(id, {round_}), {rows}) < {updated}"
    )
    lake.sql(f"DELETE FROM sales WHERE pmod(xxhash64(id, {round_}, 7), {rows}) < {deleted}")
    first = rows * (10 + round_)
    lake.sql(
        f"INSERT INTO sales {sale_rows(f'range({first}, {first + inserted})', customers, groups)}"
    )
    few = max(1, int(customers * share * 0.05))
    lake.sql(
        f"UPDATE customers SET segment = pmod(segment + 1, 25), city = city + 1 "
        f"WHERE pmod(xxhash64(id, {round_}), {customers}) < {few}"
    )
    return changed


def touch(lake: Lake) -> None:
    """Read every source once, so that no way pays the disk for those that come after it."""
    for table in ("sales", "customers", "products"):
        lake.sql(f"SELECT max(hash(*)) FROM {table}").collect()
