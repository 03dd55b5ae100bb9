"""Times of the analytics' target queries on a production-like store, on DuckDB and beside it on Spark.

Usage: ``python benchmarks/analytics.py FOLDER [--repeats 5] [--spark 1,2] [--json FILE]``, where FOLDER is what
``benchmarks/analytics_data.py`` has written. Run it on a quiet machine.

Every query is what a user calls, from its building to its result as an Arrow table in this process:

custom_stripes   files with a customised layout                      (target 0.1 s)
custom_stripes_scan  the same of a store that has not set files with uncommon layouts aside: all rows are read
ost_union        number of OSTs of each job                          (target 0.4 s)
critical_paths   sweep line over the writes of every job, no engine  (target 5 s)
interference     each OST's traffic while a file was written, for    (target 1 s)
                 about a million (file, OST) pairs of the day of LMT
join_by_job      bytes and OSTs of each job's files beside what the  (no target)
                 job's row says: a join and a group by job ID

On Spark all of it runs twice: on the files as Spark divides them, and *placed*, with the files of each range of jobs as
a storage target of their own, so that a task joins and groups without a shuffle.

DuckDB has two threads and 4 GB. Medians after one run that does not count (the files are in the page cache then); the
result is one JSON document, with the rows of each result and what the store and the machine were.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.analyses.interference import interference
from mpiio_ext.analytics.analyses.striping import custom_stripes, ost_union
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query import Engine, Tuples, load, open_engine
from mpiio_ext.analytics.site import StripeDefault
from mpiio_ext.analytics.store.catalog import Catalog

TARGETS_S = {"custom_stripes": 0.1, "ost_union": 0.4, "critical_paths": 5.0, "interference": 1.0}
MEMORY = "4GB"
THREADS = 2
PAIRS = 1_000_000


class Folder(Catalog):
    """A folder of generated Parquet files as a store; `placed`: with each range of jobs on a target of its own."""

    def __init__(self, folder: Path, *, placed: bool = False) -> None:
        super().__init__(folder)
        self.facts: dict[str, Any] = json.loads((folder / "store.json").read_text(encoding="utf-8"))
        if placed:
            parts = len(self.entries("darshan_file"))
            placement = {"folders": [str(folder)] * parts, "subtables": parts}
            self.manifest = dataclasses.replace(self.manifest, placement=placement)


def critical_paths(store: Folder) -> Any:
    """Return the critical paths of the writes of all jobs; the sweep line reads the files by itself."""
    sweep = importlib.import_module("mpiio_ext.analytics.sweep")
    return sweep.critical_paths(store.files("darshan_file"), "write", threads=THREADS)


def scanned(engine: Engine, store: Folder) -> Tuples:
    """Return the files with a customised layout, by reading all rows."""
    rows = load(engine, store, "darshan_file").expression
    return custom_stripes(Tuples(engine, rows, "darshan_file"), StripeDefault(stripe_offset=-1))


def joined_by_job(jobs: Tuples, files: Tuples) -> Tuples:
    """Return each job's bytes by its own row and by its files, and its OSTs."""
    told = jobs.project("job_id", told="bytes_written")
    added = told.join(files.project("job_id", "bytes_written", *ost_words(files.columns)), "job_id")
    return added.group("job_id", told="max(told)", added="sum(bytes_written)", osts="ost_count()")


def ost_words(columns: list[str]) -> list[str]:
    """Return the words of the OST bitmap among columns."""
    return [name for name in columns if name.startswith("ost_word_")]


def queries(engine: Engine, store: Folder) -> dict[str, Callable[[], Any]]:
    """Return the target queries."""
    files, lmt = load(engine, store, "darshan_file"), load(engine, store, "lmt")
    day = lmt.expression.aggregate(low=lmt.expression.time.min(), high=lmt.expression.time.max())
    [bounds] = engine.arrow(day).to_pylist()
    of_day = files.filter(f"write_start between {bounds['low']} and {bounds['high']}").limit(PAIRS)
    found: dict[str, Callable[[], Any]] = {
        "custom_stripes": lambda: custom_stripes(files, StripeDefault(stripe_offset=-1)).arrow(),
        "custom_stripes_scan": lambda: scanned(engine, store).arrow(),
        "ost_union": lambda: ost_union(files).arrow(),
        "interference": lambda: interference(of_day, lmt).arrow(),
        "join_by_job": lambda: joined_by_job(load(engine, store, "darshan_job"), files).arrow(),
    }
    if engine.name == "duckdb":  # it runs on no engine
        found["critical_paths"] = lambda: critical_paths(store)
    return found


def measured(query: Callable[[], Any], repeats: int) -> dict[str, Any]:
    """Return the times of a query in seconds, and its rows."""
    times = []
    for number in range(repeats + 1):
        started = time.perf_counter()
        found = query()
        if number:
            times.append(time.perf_counter() - started)
    return {"median_s": statistics.median(times), "times_s": times, "rows": found.num_rows}


def measure(engine: Engine, store: Folder, repeats: int, only: list[str]) -> dict[str, Any]:
    """Measure the queries on one engine."""
    found: dict[str, Any] = {}
    for name, query in queries(engine, store).items():
        if only and name not in only:
            continue
        try:
            found[name] = measured(query, repeats)
        except (AnalyticsError, ImportError) as error:
            found[name] = {"missing": str(error)}
        found[name]["target_s"] = TARGETS_S.get(name)
        print(f"{engine.name:8s} {name:16s} {json.dumps(found[name])}", file=sys.stderr)
    return found


def versions() -> dict[str, str]:
    """Return the versions of what the times depend on."""
    found = {"python": platform.python_version()}
    for package in ("duckdb", "ibis-framework", "pyspark", "pyarrow"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--spark", default="", help="numbers of threads of Spark, such as 1,2; none by default")
    parser.add_argument("--only", default="", help="names of queries")
    parser.add_argument("--json", type=Path, help="file for the result; standard output otherwise")
    arguments = parser.parse_args()
    store = Folder(arguments.folder)
    only = [name for name in arguments.only.split(",") if name]
    result: dict[str, Any] = {
        "store": store.facts,
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "load": os.getloadavg()},
        "versions": versions(),
        "engines": {},
    }
    duckdb = open_engine("duckdb", memory=MEMORY, threads=THREADS)
    result["engines"][f"duckdb, {THREADS} threads, {MEMORY}"] = measure(duckdb, store, arguments.repeats, only)
    duckdb.close()
    for threads in filter(None, arguments.spark.split(",")):
        try:
            spark = open_engine("spark", master=f"local[{threads}]", memory="4g")
        except AnalyticsError as error:
            result["engines"][f"spark, local[{threads}]"] = {"missing": str(error)}
            continue
        for name, source in (("", store), (", placed", Folder(arguments.folder, placed=True))):
            found = measure(spark, source, arguments.repeats, only)
            result["engines"][f"spark, local[{threads}]{name}"] = found
        spark.close()
    text = json.dumps(result, indent=1)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
