"""Persons, auctions and bids, and rounds of changes: new events, late ones, corrections, deletes."""

from __future__ import annotations

from pathlib import Path

from runnel.api import Lake

TABLES = ("person", "auction", "bid", "side_input")
QUERIES = (*range(10), *range(11, 24))
_START = "TIMESTAMP'2026-01-01 00:00:00'"


def create(lake: Lake, persons: int) -> None:
    """Empty tables, filled with the events of this many persons."""
    lake.sql(
        "CREATE TABLE person (id BIGINT, name STRING, email STRING, city STRING, state STRING, "
        "at TIMESTAMP) USING delta"
    )
    lake.sql(
        "CREATE TABLE auction (id BIGINT, item STRING, initial BIGINT, reserve BIGINT, "
        "at TIMESTAMP, expires TIMESTAMP, seller BIGINT, category INT) USING delta"
    )
    lake.sql(
        "CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, "
        "url STRING, at TIMESTAMP, extra STRING) USING delta"
    )
    lake.sql("CREATE TABLE side_input (id BIGINT, value STRING) USING delta")
    lake.sql("INSERT INTO side_input SELECT id, concat('v', id) FROM range(50)")
    _events(lake, 0, persons)


def query(number: int) -> str:
    return (Path(__file__).parent / f"q{number:02}.sql").read_text()


def change(lake: Lake, persons: int, round_: int) -> None:
    """A tenth more events, late bids, corrected prices, withdrawn bids and closed accounts."""
    more = max(5, persons // 10)
    _events(lake, persons + round_ * more, persons + (round_ + 1) * more)
    lake.sql(
        f"INSERT INTO bid SELECT auction, bidder + 1, price + 7, channel, url, "
        f"at - INTERVAL '90' SECOND, 'late' FROM bid WHERE {_some('auction, bidder, price', 5, round_)}"
    )
    lake.sql(
        "UPDATE bid SET price = price + 100, channel = 'Apple' "
        f"WHERE {_some('auction, bidder, price', 4, round_ + 10)}"
    )
    lake.sql(f"DELETE FROM bid WHERE {_some('auction, bidder, price', 4, round_ + 20)}")
    lake.sql(f"UPDATE auction SET category = 10 WHERE {_some('id', 10, round_ + 30)}")
    lake.sql(f"UPDATE person SET state = 'OR' WHERE {_some('id', 8, round_ + 40)}")
    lake.sql(f"DELETE FROM person WHERE {_some('id', 3, round_ + 50)}")
    lake.sql(f"UPDATE side_input SET value = concat(value, 'x') WHERE id % 7 = {round_}")


def _events(lake: Lake, first: int, last: int) -> None:
    ids = f"range({first}, {last})"
    states = "array('OR', 'ID', 'CA', 'AZ', 'WA', 'WY')"
    lake.sql(
        "INSERT INTO person SELECT id, concat('name ', id % 97), concat(id, '@example.com'), "
        f"concat('city ', id % 13), {states}[pmod(xxhash64(id), 6)], "
        f"{_START} + make_interval(0, 0, 0, 0, 0, 0, id * 3) FROM {ids}"
    )
    lake.sql(
        "INSERT INTO auction SELECT id, concat('item ', id), 10 + id % 90, 50 + id % 500, "
        f"{_START} + make_interval(0, 0, 0, 0, 0, 0, id * 3 + 1), "
        f"{_START} + make_interval(0, 0, 0, 0, 0, 0, id * 3 + 100 + id % 60), "
        # Some sellers have just come, which is what q08 asks for.
        f"if(id % 4 = 0, id, pmod(xxhash64(id, 1), {last})), CAST(10 + id % 5 AS INT) FROM {ids}"
    )
    channels = "array('Google', 'Facebook', 'Baidu', 'Apple', 'channel-77')"
    lake.sql(
        f"INSERT INTO bid SELECT pmod(xxhash64(id, n, 2), {last}), pmod(xxhash64(id, n, 3), {last}), "
        f"1 + pmod(xxhash64(id, n, 4), 1000), {channels}[pmod(xxhash64(id, n), 5)], "
        "concat('https://www.nexmark.com/', id % 7, '/', n, '/item.htm?channel_id=', id % 11), "
        f"{_START} + make_interval(0, 0, 0, 0, 0, 0, id * 3 + n), concat('extra ', id) "
        f"FROM {ids} LATERAL VIEW explode(sequence(1, 8)) AS n"
    )


def _some(columns: str, percent: int, salt: int) -> str:
    return f"pmod(xxhash64({columns}, {salt}), 100) < {percent}"
