"""Time and size of the pages of the log analytics, as whole commands: of one job, and of a store of many.

Usage: ``python benchmarks/analytics_report.py FOLDER [--repeats 5] [--json FILE]``, where FOLDER is what
``benchmarks/analytics_data.py FOLDER --jobs 100000 --report`` has written. Run it on a quiet machine.

============  ==========================================================================
`store`       ``mpiio-ext analyze report``: all jobs of FOLDER
`store-one`   the same of a store of one log
`job`         ``mpiio-ext analyze job``: the page of one job of FOLDER, that which wrote most
============  ==========================================================================

The target of each is 2 s and 1 MB.

A command is timed from its start to its end, the start of the interpreter and the writing of the page included. Its CPU
time is that of all its processes: where other programs use the machine it says more than the time on the clock.
Medians after one run that does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from mpiio_ext.analytics.store.manifest import FileEntry, Manifest, write_manifest

TARGET_S, TARGET_BYTES = 2.0, 1_000_000
_MPIIO_EXT = [sys.executable, "-m", "mpiio_ext", "analyze"]
_KEYS = {"darshan_job": "job_id", "darshan_file": "job_id", "lmt": "time"}


def adopted(folder: Path, place: Path, job: int | None = None) -> Path:
    """Make a store of generated files, or of the rows of one job in them, and return its set-up."""
    facts = json.loads((folder / "store.json").read_text(encoding="utf-8"))
    store = place / "store"
    entries = []
    for table, key in _KEYS.items():
        (store / table).mkdir(parents=True)
        for path in sorted(folder.glob(f"{table}_[0-9]*.parquet")):
            target = store / table / path.name
            if job is None or table == "lmt":
                target.symlink_to(path.resolve())
            else:
                rows = pq.read_table(path, filters=[("job_id", "=", job)])
                if not rows.num_rows:
                    continue
                pq.write_table(rows, target)
            ends = pc.min_max(pq.read_table(target, columns=[key])[key]).as_py()
            entries.append(FileEntry(table, f"{table}/{path.name}", pq.read_metadata(target).num_rows,
                                     target.stat().st_size, int(ends["min"]), int(ends["max"]),
                                     osts=int(facts["osts"]) if table == "darshan_file" else 0))  # fmt: skip
    write_manifest(store, Manifest(commit=1, files=tuple(entries), osts=int(facts["osts"])))
    setup = place / "setup.json"
    engine = {"name": "duckdb", "threads": 2, "memory": "4GB"}
    setup.write_text(json.dumps({"store": "store", "inputs": {"darshan": []}, "engine": engine}), encoding="utf-8")
    return setup


def largest_job(folder: Path) -> int:
    """Return the job that wrote most."""
    jobs = pq.read_table(sorted(folder.glob("darshan_job_[0-9]*.parquet")), columns=["job_id", "bytes_written"])
    return int(jobs.take(pc.select_k_unstable(jobs, 1, [("bytes_written", "descending")]))["job_id"][0].as_py())


def timed(command: list[str], page: Path) -> dict[str, float]:
    """Run a command once and return the time on the clock, the CPU time of all its processes, and the page's size."""
    page.unlink(missing_ok=True)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": wall, "cpu_s": cpu, "bytes": page.stat().st_size}


def measured(command: list[str], page: Path, repeats: int) -> dict[str, Any]:
    """Return the medians of a command's runs."""
    runs = [timed(command, page) for _ in range(repeats + 1)][1:]
    found: dict[str, Any] = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    found["met"] = found["wall_s"] <= TARGET_S and found["bytes"] <= TARGET_BYTES
    return found | {"times_s": [run["wall_s"] for run in runs], "target_s": TARGET_S, "target_bytes": TARGET_BYTES}


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file for the result; standard output otherwise")
    arguments = parser.parse_args()
    job = largest_job(arguments.folder)
    result: dict[str, Any] = {
        "store": json.loads((arguments.folder / "store.json").read_text(encoding="utf-8")),
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "load": os.getloadavg()},
        "pages": {},
    }
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "page.html"
        setups = [adopted(arguments.folder, Path(place) / name, which) for name, which in (("all", None), ("one", job))]
        ends = [["-o", str(page), "--setup", str(setup)] for setup in setups]
        commands = {"store": ["report", *ends[0]], "store-one": ["report", *ends[1]]}
        commands["job"] = ["job", str(job), *ends[0]]
        for name, command in commands.items():
            result["pages"][name] = measured([*_MPIIO_EXT, *command], page, arguments.repeats)
            print(f"{name:10s} {json.dumps(result['pages'][name])}", file=sys.stderr)
    text = json.dumps(result, indent=1)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
