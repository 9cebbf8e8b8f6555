"""Sessions, Spark's errors in our words, Spark's types."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from runnel.errors import (
    InvalidQuery,
    NotFound,
    QueryFailed,
    RunnelError,
    SourceError,
    SystemFault,
)
from runnel.lake import session
from runnel.lake.java import find_java
from runnel.lake.session import FEED, open_session, query_settings, worker_session
from runnel.lake.translate import translate
from runnel.lake.typing import SparkTyper, output_schema
from runnel.model.columns import Column


def test_java_is_found() -> None:
    assert find_java().name == "java"


def test_a_missing_or_old_java_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SystemFault) as caught:
        find_java()
    assert "apt-get install openjdk-17-jre-headless" in str(caught.value)
    assert "brew install openjdk@17" in str(caught.value)
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    with pytest.raises(SystemFault, match="version 8"):
        find_java()
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.1"\n')
    assert find_java() == java


class Builder:
    """As SparkSession.builder, but it starts nothing."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}

    def remote(self, url: str) -> Builder:
        self.settings["url"] = url
        return self

    def config(self, name: str, value: str) -> Builder:
        self.settings[name] = value
        return self

    def getOrCreate(self) -> Builder:  # noqa: N802 - PySpark's name
        return self


@pytest.mark.parametrize("given", [{}, {"x": "y", FEED: "false"}])
def test_new_tables_record_their_changes_on_connect_too(
    given: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = Builder()
    monkeypatch.setattr(session, "SparkSession", SimpleNamespace(builder=builder))
    monkeypatch.setenv("RUNNEL_MASTER", "sc://host:15002")
    session._start(tmp_path, given)
    assert builder.settings == {"url": "sc://host:15002", FEED: "true", **given}


def failure(spark: SparkSession, sql: str) -> RunnelError:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Py4J's own error is one of them
        spark.sql(sql).collect()
    return translate(caught.value)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sql", "kind", "primary"),
    [
        ("SELEC 1", InvalidQuery, "syntax error at or near 'SELEC' (line 1, pos 0)"),
        ("SELECT x FROM nowhere", InvalidQuery, "the table or view `nowhere` cannot be found"),
        ("SELECT 1 / id FROM range(3)", QueryFailed, "division by zero"),
        ("SELECT CAST('x' AS INT)", QueryFailed, "the value 'x' of the type"),
        ("SELECT 2147483647 + CAST(id AS INT) FROM range(3)", QueryFailed, "overflow"),
        ("SELECT (SELECT id FROM range(3))", QueryFailed, "more than one row returned"),
        ("SELECT raise_error('stop')", QueryFailed, "stop"),
        ("SELECT * FROM parquet.`/no/such/path`", SourceError, "path does not exist"),
    ],
)
def test_errors_are_told_without_a_stack_trace(
    spark: SparkSession, sql: str, kind: type[RunnelError], primary: str
) -> None:
    error = failure(spark, sql)
    assert type(error) is kind
    assert error.primary.startswith(primary)
    assert "\tat " not in str(error)
    assert "SQLSTATE" not in error.primary


@pytest.mark.spark
def test_a_file_that_vanishes_is_a_source_error(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "p"
    spark.range(3).coalesce(1).write.parquet(str(path))
    frame = spark.read.parquet(str(path))
    for file in path.iterdir():
        file.unlink()
    with pytest.raises(Exception) as caught:  # noqa: PT011
        frame.collect()
    error = translate(caught.value)
    assert type(error) is SourceError
    assert "\tat " not in str(error)


def test_our_own_errors_stay_and_others_are_faults() -> None:
    mine = NotFound("x")
    assert translate(mine) is mine
    assert isinstance(translate(OSError("disk full")), SystemFault)


@pytest.mark.spark
def test_failed_queries_are_quiet(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PySparkException):
        spark.sql("SELECT * FROM nowhere")
    assert capfd.readouterr().err == ""


@pytest.mark.spark
def test_an_active_session_is_borrowed(spark: SparkSession, lake_folder: Path) -> None:
    session = open_session(lake_folder)
    assert not session.is_owned
    assert session.spark.range(1).count() == 1


@pytest.mark.spark
def test_the_session_of_another_lake_is_not_borrowed(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SystemFault, match="already works with another lake"):
        open_session(tmp_path)


@pytest.mark.spark
def test_workers_have_settings_of_their_own(spark: SparkSession) -> None:
    settings = query_settings(spark)
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.sql.ansi.enabled"] == "true"
    worker = worker_session(spark, settings | {"spark.sql.ansi.enabled": "false"}, adaptive=False)
    assert worker.sql("SELECT 1 / 0").first()[0] is None
    assert worker.conf.get("spark.sql.adaptive.enabled") == "false"
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


@pytest.mark.spark
def test_types_are_sparks(spark: SparkSession) -> None:
    typer = SparkTyper(spark)
    columns = [Column("a b", "decimal(12,2)"), Column("n", "int"), Column("v", "array<int>")]
    expressions = ["sum(`a b`)", "count(*)", "avg(n)", "max(v)", "CAST(NULL AS VARIANT)"]
    expected = ("decimal(22,2)", "bigint", "double", "array<int>", "variant")
    assert typer.types(columns, expressions) == expected
    assert typer.types([], []) == ()
    assert typer.types([], ["1 + 1.5"]) == ("decimal(3,1)",)
    with pytest.raises(InvalidQuery):
        typer.types(columns, ["n + nope"])
    with pytest.raises(InvalidQuery):
        typer.types(columns, ["n + DATE'2020-01-01' + v"])


@pytest.mark.spark
def test_output_schema(spark: SparkSession) -> None:
    found = output_schema(spark, "SELECT id AS `x y`, CAST(id AS STRING) AS s FROM range(1)")
    assert found == (Column("x y", "bigint"), Column("s", "string"))
    with pytest.raises(InvalidQuery, match="line 1"):
        output_schema(spark, "SELECT FROM WHERE")


def test_an_interrupt_that_cleaning_up_hid_is_an_interrupt() -> None:
    def interrupted_call() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError("answer from Java side is empty")

    with pytest.raises(OSError, match="empty") as caught:
        interrupted_call()
    with pytest.raises(KeyboardInterrupt):
        translate(caught.value)


def test_causes_that_go_round_are_followed_once() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert "first" in str(translate(first))
