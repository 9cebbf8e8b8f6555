"""A database of the PostgreSQL server that holds the corpus' tables, ordered as COLLATE "C"."""

from __future__ import annotations

from typing import Any

import psycopg
import psycopg.conninfo

from postgres.data import COLUMNS, ROWS


def fill(url: str) -> psycopg.Connection[Any]:
    """A connection to a new database with the tables in it."""
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("DROP DATABASE IF EXISTS corpus")
        server.execute("CREATE DATABASE corpus TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'")
    connection = psycopg.connect(_other_database(url), autocommit=True)
    connection.execute("SET TIME ZONE 'UTC'")
    for table, columns in COLUMNS.items():
        listed = ", ".join(f"{name} {type_}" for name, type_, _ in columns)
        connection.execute(f"CREATE TABLE {table} ({listed})")
        marks = ", ".join(f"%s::{type_}" for _, type_, _ in columns)
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", ROWS[table])
    return connection


def _other_database(url: str) -> str:
    """The same server's database `corpus`."""
    return psycopg.conninfo.make_conninfo(url, dbname="corpus")
