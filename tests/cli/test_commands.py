"""The commands that work, over a real lake in the shared session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Run
from runnel.model.results import VerifyResult

pytestmark = pytest.mark.spark

ORDERS = """
-- the source
CREATE TABLE orders (id BIGINT, cust INT, amount DECIMAL(12,2)) USING delta;
INSERT INTO orders VALUES (1, 1, 10.00), (2, 1, 20.00), (3, 2, 5.50);
"""
SALES = "SELECT cust, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY cust"


@pytest.fixture
def lake(run: Run, spark_lake: Path) -> Path:
    """A lake with a source and `sales` over it."""
    done = run("sql", "--lake", spark_lake, input=ORDERS)
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines()[0] == f"new lake: {spark_lake}"
    done = run(
        "create", "sales", SALES, "-s", "1m", "-m", "differential", "--lake", spark_lake
    )  # fmt: skip
    assert done.out.startswith("filled sales (DIFFERENTIAL, at most 1m behind): 2 rows in ")
    return spark_lake


def test_a_table_from_create_to_drop(run: Run, lake: Path) -> None:
    run("sql", "--lake", lake, "-e", "INSERT INTO orders VALUES (4, 2, 1.00)")
    done = run("refresh", "--lake", lake, "--json")
    assert [(r["name"], r["action"], r["change_rows"]) for r in done.json] == [
        ("sales", "DIFFERENTIAL", 1)
    ]  # fmt: skip
    assert "NO_DATA" in run("refresh", "sales", "--lake", lake).out
    assert "OK" in run("verify", "--lake", lake).out
    assert run("verify", "sales", "--lake", lake, "--json").json[0]["ok"] is True
    assert run("compact", "--lake", lake, "--json").json[0]["compacted"] is True
    assert "change program" in run("explain", "sales", "--lake", lake).out
    examined = run("doctor", "--lake", lake, "--json")
    assert not [f for f in examined.json["findings"] if f["result"] == "problem"], examined.out
    assert run("alter", "sales", "--suspend", "--no-schedule", "--lake", lake).out == (
        "altered sales (DIFFERENTIAL, suspended)\n"
    )  # fmt: skip
    assert "SKIP" in run("refresh", "--lake", lake).out
    altered = run("alter", "sales", "--resume", SALES + " HAVING COUNT(*) > 2", "--lake", lake)
    assert altered.out.startswith("filled sales (DIFFERENTIAL): ")
    assert run("drop", "sales", "--lake", lake).out == "dropped sales\n"
    assert run("drop", "sales", "--if-exists", "--lake", lake).out == "sales does not exist\n"
    assert run("refresh", "--lake", lake).out == "no stream tables yet\n"


def test_defining_without_filling(run: Run, lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "query.sql"
    file.write_text("SELECT cust FROM sales WHERE n > 1")
    done = run("create", "big", "--file", file, "--no-initialize", "--lake", lake)
    assert done.out == "defined big (AUTO, uninitialized); it is filled by runnel refresh big\n"
    verified = run("verify", "--lake", lake, "--json")
    assert [r["name"] for r in verified.json] == ["sales"]
    assert verified.err == "big was never filled: skipped\n"
    read = run("sql", "-e", "SELECT n.cust FROM sales JOIN Big n USING (cust)", "--lake", lake)
    assert (read.code, read.out) == (1, "")
    assert "big was never filled" in read.err
    assert "REFRESH STREAM TABLE big first" in read.err
    assert [r["name"] for r in run("refresh", "big", "--lake", lake, "--json").json] == [
        "sales", "big"
    ]  # fmt: skip
    assert "depend on it" in run("drop", "sales", "--lake", lake).err
    assert run("drop", "sales", "--cascade", "--lake", lake).out == "dropped sales, big\n"


def test_full_only_is_told(run: Run, lake: Path) -> None:
    query = "SELECT hll_sketch_agg(id) AS r FROM orders"
    assert "every refresh is FULL: " in run("create", "ranks", query, "--lake", lake).err
    done = run("explain", "--query", query, "--lake", lake, "--json")
    assert done.json["differentiable"] is False
    assert "hll_sketch_agg(id)" in done.json["place"]
    assert "FULL or AUTO" in done.json["hint"]


WRONG = (
    (["create", "sales", SALES], "stream table sales already exists"),
    (["create", "new", "SELECT nothing FROM orders"], "nothing"),
    (["create", "new", "SELECT FROM WHERE"], "error: "),
    (["create", "new", SALES, "--schedule", "often"], "'often' is not a schedule"),
    (["create", "new", SALES, "--refresh-mode", "fast"], "'fast' is not a refresh mode"),
    (["create", "new", "--file", "missing.sql"], "missing.sql cannot be read"),
    (["alter", "sales", "--schedule", "-1m"], "'-1m' is not a schedule"),
    (["alter", "slaes", "--suspend"], "did you mean sales?"),
    (["drop", "slaes"], "did you mean sales?"),
    (["refresh", "slaes"], "did you mean sales?"),
    (["verify", "slaes"], "did you mean sales?"),
    (["compact", "slaes"], "did you mean sales?"),
    (["explain", "slaes"], "did you mean sales?"),
)


def test_errors_are_told(run: Run, lake: Path) -> None:
    for arguments, said in WRONG:
        done = run(*arguments, "--lake", lake)
        assert (done.code, done.out) == (1, ""), arguments
        assert done.err.startswith("error: ")
        assert said in done.err, arguments
        assert "Traceback" not in done.err
    assert [r["name"] for r in run("status", "--lake", lake, "--json").json] == ["sales"]


def test_results_before_a_failure_are_listed(run: Run, lake: Path) -> None:
    run("create", "worse", "SELECT id, 1 / (amount - 7) AS x FROM orders", "--lake", lake)
    run("sql", "--lake", lake, "-e", "INSERT INTO orders VALUES (9, 9, 7.00)")
    done = run("refresh", "--lake", lake, "--json")
    assert done.code == 1
    assert [r["name"] for r in done.json] == ["sales"]
    assert "division by zero" in done.err.lower()


def test_a_difference_is_3(run: Run, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = VerifyResult(
        "sales", False, 1, 0, ({"difference": "missing", "times": 1, "cust": 7},), seconds=0.1
    )
    monkeypatch.setattr("runnel.api.Lake.verify", lambda lake, name: wrong)
    done = run("verify", "sales", "--lake", lake)
    assert done.code == 3
    assert "DIFFERENT" in done.out
    assert "missing: cust = 7" in done.out
    assert run("sql", "-e", "VERIFY STREAM TABLE sales", "--lake", lake).code == 3


def test_a_script_stops_at_the_first_error(run: Run, lake: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("SELECT 1 AS one;\n\nSELECT *\nFROM nowhere;\nDROP STREAM TABLE sales")
    done = run("sql", "-f", script, "--lake", lake)
    assert done.code == 1
    assert done.out.splitlines() == ["one", "  1"]
    assert "at: statement 2, line 3: SELECT * FROM nowhere\n" in done.err
    assert len(run("status", "--lake", lake, "--json").json) == 1


def test_a_failure_while_fetching_is_told(run: Run, lake: Path) -> None:
    done = run("sql", "-e", "SELECT 1 / (cust - 1) FROM orders", "--lake", lake)
    assert (done.code, done.out) == (1, "")
    assert "at: statement 1, line 1: SELECT 1 / (cust - 1) FROM orders" in done.err


def test_rows_are_limited_and_counted(run: Run, lake: Path) -> None:
    done = run("sql", "-e", "UPDATE orders SET cust = 3 WHERE id < 3", "--lake", lake)
    assert (done.out, done.err) == ("", "(2 rows affected)\n")
    done = run("sql", "-e", "SELECT id FROM range(120)", "-n", "3", "--lake", lake)
    assert done.out.splitlines() == ["id", " 0", " 1", " 2"]
    assert done.err == "(3 of 120 rows, see --limit)\n"


def test_json_of_statements(run: Run, lake: Path) -> None:
    script = """
        SELECT cust AS c, cust AS c, named_struct('a', array(total)) AS s FROM sales ORDER BY cust;
        SHOW STREAM TABLES;
        REFRESH STREAM TABLE sales;
        CREATE STREAM TABLE big AS SELECT cust FROM sales;
        DROP STREAM TABLE big"""
    done = run("sql", "-e", script, "-n", "1", "--json", "--lake", lake)
    rows, tables, refreshed, created, dropped = map(json.loads, done.out.splitlines())
    assert rows == {
        "statement": 1, "rows": [{"c": 1, "c_2": 1, "s": {"a": ["30.00"]}}], "truncated": True,
    }  # fmt: skip
    assert tables["result"][0]["name"] == "sales"
    assert refreshed["result"]["action"] == "NO_DATA"
    assert created["result"]["name"] == "big"
    assert dropped["result"] == ["big"]


def test_statements_shown_for_people(run: Run, lake: Path) -> None:
    script = (
        "SHOW STREAM TABLES; SHOW REFRESH HISTORY FOR sales; DROP STREAM TABLE IF EXISTS nothing"
    )
    done = run("sql", "-e", script, "--lake", lake)
    assert "sales  ACTIVE" in done.out
    assert "first fill" in done.out
    assert done.err == "(nothing to drop)\n"
