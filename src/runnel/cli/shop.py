"""The demo's shop as data: its tables, the stream tables over them, and what happens to them."""

from __future__ import annotations

from dataclasses import dataclass

CUSTOMERS, PRODUCTS, ORDERS = 1_500, 200, 12_000

TABLES: dict[str, str] = {
    "customers": f"""
        CREATE TABLE customers USING delta AS
        SELECT id,
               concat('Customer ', id) AS name,
               element_at(array('Bern', 'Graz', 'Lyon', 'Oslo', 'Porto', 'Turin', 'Vienna'),
                          CAST(pmod(hash(id), 7) AS INT) + 1) AS city
        FROM range(1, {CUSTOMERS + 1})""",
    "products": f"""
        CREATE TABLE products USING delta AS
        SELECT id,
               concat('Product ', id) AS name,
               element_at(array('books', 'games', 'garden', 'kitchen', 'music'),
                          CAST(pmod(id, 5) AS INT) + 1) AS category,
               IF(pmod(id, 4) = 0, 'reduced', 'full') AS tariff
        FROM range(1, {PRODUCTS + 1})""",
    "orders": f"""
        CREATE TABLE orders USING delta AS
        SELECT id,
               CAST(pmod(hash(id, 1), {CUSTOMERS}) AS BIGINT) + 1 AS customer_id,
               date_add(DATE '2025-01-01', CAST(pmod(id, 365) AS INT)) AS placed,
               IF(pmod(hash(id, 2), 10) < 3, 'open', 'paid') AS status
        FROM range(1, {ORDERS + 1})""",
    "order_lines": f"""
        CREATE TABLE order_lines USING delta AS
        SELECT id AS order_id, line,
               CAST(pmod(hash(id, line), {PRODUCTS}) AS BIGINT) + 1 AS product_id,
               CAST(pmod(hash(line, id), 4) AS INT) + 1 AS quantity,
               CAST(5 + pmod(hash(id, 3), 900) / 10 AS DECIMAL(8,2)) AS price
        FROM range(1, {ORDERS + 1})
        LATERAL VIEW explode(sequence(1, CAST(pmod(id, 3) AS INT) + 1)) AS line""",
}
SIZES = {
    "customers": CUSTOMERS,
    "products": PRODUCTS,
    "orders": ORDERS,
    "order_lines": sum(id % 3 + 1 for id in range(1, ORDERS + 1)),
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A stream table of the demo; `mode` is what is asked of its refreshes."""

    name: str
    kind: str
    query: str
    mode: str = "AUTO"


STREAM_TABLES: tuple[Shown, ...] = (
    Shown(
        "open_orders",
        "a filter",
        "SELECT id, customer_id, placed FROM orders WHERE status = 'open'",
    ),
    Shown(
        "sold_lines",
        "a join",
        """SELECT l.order_id, l.line, p.name AS product, p.category, p.tariff,
       l.quantity * l.price AS amount
FROM order_lines l JOIN products p ON p.id = l.product_id""",
    ),
    Shown(
        "revenue_by_city",
        "an aggregate over a join",
        """SELECT c.city, COUNT(*) AS lines, SUM(l.quantity * l.price) AS revenue
FROM orders o JOIN customers c ON c.id = o.customer_id
              JOIN order_lines l ON l.order_id = o.id
GROUP BY c.city""",
        "DIFFERENTIAL",
    ),
    Shown(
        "category_totals",
        "on top of sold_lines",
        """SELECT category, tariff, COUNT(*) AS lines, SUM(amount) AS total
FROM sold_lines GROUP BY category, tariff""",
        "DIFFERENTIAL",
    ),
)


@dataclass(frozen=True, slots=True)
class Round:
    """Something that happens in the shop, and what to look at."""

    title: str
    told: str
    statements: tuple[str, ...]


_NEW = f"range({ORDERS + 1}, {ORDERS + 81})"

ROUNDS: tuple[Round, ...] = (
    Round(
        "Inserts: 80 new orders",
        "Each refresh reads only the new rows and joins them with what they refer to; "
        "category_totals reads only what changed in sold_lines.",
        (
            f"INSERT INTO orders SELECT id, CAST(pmod(id, {CUSTOMERS}) AS BIGINT) + 1, "
            f"DATE '2026-01-01', 'open' FROM {_NEW}",
            "INSERT INTO order_lines SELECT id, line, "
            f"CAST(pmod(id * line, {PRODUCTS}) AS BIGINT) + 1, 1, 12.50 "
            f"FROM {_NEW} LATERAL VIEW explode(sequence(1, 3)) AS line",
        ),
    ),
    Round(
        "Updates: orders are paid, two products change their tariff",
        "An updated row is its old version taken away and its new one added. Paid orders leave the "
        "filter; a new tariff reaches every line that sold the product.",
        (
            "UPDATE orders SET status = 'paid' WHERE status = 'open' AND id % 40 = 0",
            "UPDATE products SET tariff = 'reduced' WHERE id IN (17, 42)",
        ),
    ),
    Round(
        "Deletes: orders are cancelled together with their lines",
        "A deleted order and its deleted lines must both be found, although neither is there any "
        "more: the change of a join reads the other side as it was before.",
        (
            "DELETE FROM order_lines WHERE order_id % 150 = 7",
            "DELETE FROM orders WHERE id % 150 = 7",
        ),
    ),
    Round(
        "All at once: customers move, a product is renamed, an order grows",
        "Three of four tables change before one refresh. A customer who moves takes the revenue "
        "from one city to another.",
        (
            "UPDATE customers SET city = 'Oslo' WHERE id IN (7, 77, 777)",
            "UPDATE products SET name = 'Classic 5' WHERE id = 5",
            "INSERT INTO order_lines VALUES (1, 90, 5, 2, 9.99), (1, 91, 5, 2, 9.99)",
        ),
    ),
    Round(
        "Nothing happens",
        "A refresh looks at the versions of its sources and is done: no Spark job runs.",
        (),
    ),
)
