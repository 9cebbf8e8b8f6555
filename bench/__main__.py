"""`make bench`: every query, every way, every share of change, in one run; contents verified."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import runnel
from bench import data
from bench.queries import Case, cases, chain
from runnel.api import Lake
from runnel.model.tabular import text_table

RESULTS = Path(__file__).parent / "results"
WAYS = ("DIFFERENTIAL", "FULL", "AUTO", "CTAS", "MERGE")


def main() -> int:
    options = _options()
    folder = Path(options.lake or tempfile.mkdtemp(prefix="runnel-bench-"))
    conf = {"spark.driver.memory": options.memory}
    try:
        with runnel.connect(folder, spark_conf=conf) as lake:
            report = Bench(lake, options).run()
    finally:
        if not options.lake:
            shutil.rmtree(folder, ignore_errors=True)
    _write(report, options)
    print(_table(report))
    return 0 if all(r["verified"] for r in report["rounds"]) else 1


class Bench:
    """One run over one lake."""

    def __init__(self, lake: Lake, options: argparse.Namespace) -> None:
        self.lake = lake
        self.options = options
        chosen = set(options.queries.split(",")) if options.queries else None
        self.cases = [c for c in cases() if chosen is None or c.name in chosen]
        self.has_chain = chosen is None or "chain" in chosen

    def run(self) -> dict[str, Any]:
        say(f"generating {self.options.rows:,} rows")
        data.create(self.lake, self.options.rows)
        self._create()
        rounds = []
        # The first round warms the JVM up and is not reported.
        for number, share in enumerate([self.options.shares[0], *self.options.shares]):
            rounds += self._round(number, share) if number else self._round(number, share)[:0]
        return {
            "rows": self.options.rows,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": f"{platform.machine()}, {__import__('os').cpu_count()} cores",
            "no_data_ms": self._no_data(),
            "rounds": rounds,
        }

    def _create(self) -> None:
        for case in self.cases:
            for mode in ("DIFFERENTIAL", "FULL", "AUTO"):
                say(f"creating {mode.lower()}_{case.name}")
                self.lake.create_stream_table(
                    f"{mode.lower()}_{case.name}", case.query, refresh_mode=mode
                )
            self.lake.sql(f"CREATE TABLE merge_{case.name} USING delta AS {case.query}")
        for mode in ("DIFFERENTIAL", "FULL") if self.has_chain else ():
            prefix = f"{mode.lower()}_"
            for name, query in chain():
                self.lake.create_stream_table(
                    prefix + name, query.format(p=prefix), refresh_mode=mode
                )

    def _round(self, number: int, share: float) -> list[dict[str, Any]]:
        versions = {t: self._version(t) for t in ("sales", "customers")}
        changed = data.change(self.lake, self.options.rows, share, number)
        say(f"round {number}: {share:.2%}, {changed:,} rows")
        found = [self._case(case, share, versions) for case in self.cases]
        if self.has_chain:
            found.append(self._chain(share))
        return found

    def _case(self, case: Case, share: float, versions: dict[str, int]) -> dict[str, Any]:
        seconds: dict[str, float] = {}
        phases: dict[str, Any] = {}
        verified = True
        actions = {}
        for mode in ("DIFFERENTIAL", "FULL", "AUTO"):
            name = f"{mode.lower()}_{case.name}"
            result = self.lake.refresh(name)
            seconds[mode], phases[mode] = result.seconds, result.phases
            actions[mode] = result.action.value
            verified &= self.lake.verify(name).ok
        seconds["CTAS"] = _timed(
            lambda: self.lake.sql(
                f"CREATE OR REPLACE TABLE ctas_{case.name} USING delta AS {case.query}"
            )
        )
        seconds["MERGE"] = _timed(lambda: self._merge(case, versions))
        say(f"  {case.name}: " + ", ".join(f"{w} {seconds[w]:.2f}" for w in WAYS))
        return {
            "query": case.name, "share": share, "seconds": seconds, "actions": actions,
            "phases": phases, "verified": verified,
        }  # fmt: skip

    def _chain(self, share: float) -> dict[str, Any]:
        seconds = {}
        verified = True
        for mode in ("DIFFERENTIAL", "FULL"):
            seconds[mode] = _timed(lambda m=mode: self.lake.refresh(f"{m.lower()}_chain3"))  # type: ignore[misc]
            verified &= all(self.lake.verify(f"{mode.lower()}_{n}").ok for n, _ in chain())
        say("  chain: " + ", ".join(f"{w} {s:.2f}" for w, s in seconds.items()))
        return {
            "query": "chain of three", "share": share, "seconds": seconds, "verified": verified
        }  # fmt: skip

    def _merge(self, case: Case, versions: dict[str, int]) -> None:
        """What one writes by hand: recompute the touched keys, MERGE them, delete what vanished."""
        spark = self.lake.spark
        for view, table in (("bench_k", "sales"), ("bench_kc", "customers")):
            reader = spark.read.option("readChangeFeed", "true")
            reader = reader.option("startingVersion", versions[table] + 1)
            reader.table(table).createOrReplaceTempView(view)
        query = case.restricted.format(k="bench_k", kc="bench_kc")
        touched = self._touched(case)
        match = " AND ".join(f"t.{k} <=> q.{k}" for k in case.keys)
        columns = spark.sql(query).columns
        source = (
            f"SELECT k.*, q.* EXCEPT ({', '.join(case.keys)}), q.{case.keys[0]} IS NOT NULL AS present "
            f"FROM ({touched}) k LEFT JOIN ({query}) q ON "
            + " AND ".join(f"k.{k} <=> q.{k}" for k in case.keys)
        )
        values = ", ".join(f"q.{c}" for c in columns)
        spark.sql(
            f"MERGE INTO merge_{case.name} t USING ({source}) q ON {match} "
            f"WHEN MATCHED AND NOT q.present THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{c} = q.{c}' for c in columns)} "
            f"WHEN NOT MATCHED AND q.present THEN INSERT ({', '.join(columns)}) VALUES ({values})"
        )

    def _touched(self, case: Case) -> str:
        if case.keys == ("id",):
            base = "SELECT id FROM bench_k"
            if "{kc}" in case.restricted:
                base += " UNION SELECT s.id FROM sales s JOIN bench_kc k ON s.customer = k.id"
            return f"SELECT DISTINCT id FROM ({base})"
        keys = ", ".join(case.keys)
        current = f"SELECT {keys} FROM merge_{case.name}"
        new = case.restricted.format(k="bench_k", kc="bench_kc")
        buckets = "SELECT bucket FROM bench_k"
        if "{kc}" in case.restricted:
            buckets += " UNION SELECT s.bucket FROM sales s JOIN bench_kc k ON s.customer = k.id"
        return (
            f"SELECT DISTINCT {keys} FROM ({current} WHERE bucket IN ({buckets}) "
            f"UNION ALL SELECT {keys} FROM ({new}))"
        )

    def _no_data(self) -> float:
        """Milliseconds of a refresh with nothing to do, the middle of eleven."""
        name = f"differential_{self.cases[0].name}" if self.cases else "differential_chain1"
        self.lake.refresh(name)
        return sorted(_timed(lambda: self.lake.refresh(name)) * 1000 for _ in range(11))[5]

    def _version(self, table: str) -> int:
        row = self.lake.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()
        return int(row["version"])


def _timed(work: Any) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def _table(report: dict[str, Any]) -> str:
    titles = ["query", "changed", *WAYS, "FULL / DIFF", "best by hand / DIFF", "verified"]
    rows = []
    for r in report["rounds"]:
        s = r["seconds"]
        by_hand = min((s[w] for w in ("CTAS", "MERGE") if w in s), default=None)
        rows.append(
            [
                r["query"],
                f"{r['share']:.2%}",
                *(f"{s[w]:.2f}" if w in s else "" for w in WAYS),
                f"{s['FULL'] / s['DIFFERENTIAL']:.1f}x",
                f"{by_hand / s['DIFFERENTIAL']:.1f}x" if by_hand else "",
                "yes" if r["verified"] else "NO",
            ]
        )
    head = f"{report['rows']:,} rows; NO_DATA {report['no_data_ms']:.1f} ms; seconds below\n"
    return head + text_table(titles, rows)


def _write(report: dict[str, Any], options: argparse.Namespace) -> None:
    RESULTS.mkdir(exist_ok=True)
    name = options.out or f"spine-{report['rows']}.json"
    (RESULTS / name).write_text(json.dumps(report, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--shares", type=_shares, default=[0.0001, 0.001, 0.01, 0.1])
    parser.add_argument("--queries", help="comma-separated; all by default")
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--lake", help="keep the lake in this folder")
    parser.add_argument("--out", help="name of the JSON file in bench/results")
    return parser.parse_args()


def _shares(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
