"""Request scheduling in delegates: throughput and latency of clients that interleave, for each scheduler.

Usage: ``python benchmarks/delegate_schedulers.py [--path /dev/shm] [--seconds 2] [--rounds 3] [--json s.json]``

Launches itself as an MPI program on one delegate whose requests take time (``slow_storage.c``: a latency and a
bandwidth), schedulers taking turns within each round, the order rotated from round to round. Cases:

mixed      two ranks stream into files of their own, which fills the cache with dirty pages; two read pages of cold
           files at random: who waits for whom?
strided    all ranks read one cold file whose pages are dealt out in turn: are neighbours merged?
weights    two ranks stream, one into a file of weight 1, one of weight 4: who gets how much?
small      one rank asks for a page now and then, three stream: does little wait behind much?

Reading ahead is off, so that what is measured is the order. Latencies are those of single calls, throughput is that
of all ranks of a kind until everything is in the file. Every byte that is read is checked, and the files in the end.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCHEDULERS = ("elevator", "fifo", "sjf", "to_agg", "aioli", "mlf", "hbrr", "twins", "wfq")
#: What each rank of a case is.
CASES = {
    "mixed": ("writer", "writer", "reader", "reader"),
    "strided": ("strided", "strided", "strided", "strided"),
    "weights": ("weight1", "weight4"),
    "small": ("writer", "writer", "writer", "rare"),
}
UNITS = {"mb_s": "MB/s (10^6 bytes a second), all ranks of the kind", "median_ms": "milliseconds of one call",
         "p99_ms": "milliseconds of one call, 99th percentile", "calls": "calls of all ranks of the kind",
         "merged": "requests that joined another one's", "reordered": "requests served before older ones",
         "windows": "times that the scheduler let requests wait", "queued_most": "most requests that waited at once"}
PAGE = 65536
READ_PAGES = 1024
WRITE_PAGES = 2048


# ---- the program that is measured ------------------------------------------------------------------------------------


def work(case: str, folder: Path, seconds: float) -> None:
    """Be one rank; rank 0 prints a line of JSON."""
    import mpiio_ext.delegates  # before mpi4py.MPI: the library takes the calls over

    # isort: split
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    kind = CASES[case][comm.rank]
    reads = kind in ("reader", "strided", "rare")
    shared = kind == "strided"
    path = folder / (case if shared else f"{case}.{kind}.{comm.rank}")
    if reads and (not shared or comm.rank == 0):
        np.repeat(np.arange(READ_PAGES, dtype=np.uint64) + 1, PAGE // 8).tofile(path)
    comm.Barrier()
    mode = MPI.MODE_RDONLY if reads else MPI.MODE_CREATE | MPI.MODE_WRONLY
    file = MPI.File.Open(comm if shared else MPI.COMM_SELF, str(path), mode)
    rng = np.random.default_rng(comm.rank)
    data = np.empty(PAGE // 8, np.uint64)
    latencies: list[float] = []
    comm.Barrier()
    start = time.perf_counter()
    while (began := time.perf_counter()) < start + seconds:
        if reads:
            page = (len(latencies) * comm.size + comm.rank if shared else int(rng.integers(READ_PAGES))) % READ_PAGES
            file.Read_at(page * PAGE, data)
        else:
            page = len(latencies) % WRITE_PAGES
            data[:] = page + 1
            file.Write_at(page * PAGE, data)
        latencies.append(time.perf_counter() - began)
        if reads and not (data == page + 1).all():
            raise SystemExit(f"rank {comm.rank}: page {page} of {path} is wrong")
        if kind == "rare":
            time.sleep(0.01)
    if not reads:
        file.Sync()
    elapsed = time.perf_counter() - start
    own = mpiio_ext.delegates.own()
    counted = {name: sum(item.counters[name] for item in own)
               for name in ("merged", "reordered", "windows", "queued_most")} if own else {}
    comm.Barrier()
    file.Close()
    if not reads:
        pages = min(len(latencies), WRITE_PAGES)
        stored = np.fromfile(path, np.uint64)
        if not (stored == np.repeat(np.arange(pages, dtype=np.uint64) + 1, PAGE // 8)).all():
            raise SystemExit(f"rank {comm.rank}: {path} is wrong")
    found = comm.gather({"kind": kind, "latencies": latencies, "elapsed": elapsed})
    if found is not None:
        print("RESULT " + json.dumps({"ranks": found, "counters": counted}), flush=True)


# ---- measuring -------------------------------------------------------------------------------------------------------


def compile_slow_storage(folder: Path) -> Path:
    """Return the library that delays requests."""
    library = folder / "slow_storage.so"
    source = Path(__file__).parents[1] / "tests" / "programs" / "slow_storage.c"
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"],
                   check=True)
    return library


def launch(options: argparse.Namespace, case: str, scheduler: str, slow: Path) -> dict[str, Any]:
    """Run a case once; what the ranks of each kind saw."""
    mpirun = shutil.which("mpirun", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    with tempfile.TemporaryDirectory(dir=options.path, prefix="mpiio_ext_schedulers_") as folder:
        common = (f"mpiox_delegates=1:mpiox_delegate_mode={options.mode}:mpiox_delegate_page={PAGE}:"
                  f"mpiox_delegate_cache={options.cache}:mpiox_delegate_prefetch=0:mpiox_delegate_bypass=0:"
                  f"mpiox_delegate_scheduler={scheduler}:mpiox_delegate_quantum={options.quantum}:"
                  f"mpiox_delegate_time_slice={options.window}:striping_unit={PAGE}:striping_factor=4")
        environment = os.environ | {
            "MPIOX_HINTS": f"*:{common},*weight4*:mpiox_delegate_weight=4",
            "LD_PRELOAD": str(slow), "SLOW_STORAGE_PATH": folder, "SLOW_STORAGE_US": str(options.latency_us),
            "SLOW_STORAGE_MBPS": str(options.mbps),
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        command = [str(mpirun), "-n", str(len(CASES[case])), sys.executable, __file__, "--work", case, folder,
                   str(options.seconds)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    if done.returncode != 0 or line is None:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    result = json.loads(line[7:])
    kinds = {}
    for kind in dict.fromkeys(CASES[case]):
        ranks = [rank for rank in result["ranks"] if rank["kind"] == kind]
        latencies = sorted(1e3 * each for rank in ranks for each in rank["latencies"])
        kinds[kind] = {
            "mb_s": sum(len(rank["latencies"]) * PAGE / rank["elapsed"] / 1e6 for rank in ranks),
            "median_ms": statistics.median(latencies),
            "p99_ms": latencies[min(len(latencies) - 1, int(0.99 * len(latencies)))],
            "calls": len(latencies),
        }
    return {"kinds": kinds, "counters": result["counters"]}


def measure(options: argparse.Namespace, slow: Path) -> list[dict[str, Any]]:
    """All cases and schedulers in turns; medians over the rounds."""
    rows = []
    for case in options.cases.split(","):
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in options.schedulers.split(",")}
        for number in range(options.rounds):
            names = list(runs)
            for name in names[number % len(names) :] + names[: number % len(names)]:
                runs[name].append(launch(options, case, name, slow))
                print(".", end="", file=sys.stderr, flush=True)
        for name, found in runs.items():
            counters = {key: statistics.median(run["counters"].get(key, 0) for run in found)
                        for key in ("merged", "reordered", "windows", "queued_most")}
            for kind in found[0]["kinds"]:
                values = {key: [run["kinds"][kind][key] for run in found] for key in found[0]["kinds"][kind]}
                rows.append({"case": case, "scheduler": name, "kind": kind, **counters, "rounds": values,
                             **{key: statistics.median(value) for key, value in values.items()}})
    print(file=sys.stderr)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print a table in Markdown."""
    print("| case | scheduler | ranks | MB/s | median ms | 99 % ms | merged | reordered | windows | queued |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['case']} | {row['scheduler']} | {row['kind']} | {row['mb_s']:.1f} | {row['median_ms']:.2f} | "
              f"{row['p99_ms']:.1f} | {row['merged']:.0f} | {row['reordered']:.0f} | {row['windows']:.0f} | "
              f"{row['queued_most']:.0f} |")


def main() -> None:
    """Measure, print, and write the file."""
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--path", default="/dev/shm", help="file system in memory for the files")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--schedulers", default=",".join(SCHEDULERS))
    parser.add_argument("--mode", default="spawn", help="how the delegate is started")
    parser.add_argument("--latency-us", type=int, default=200, help="of each request")
    parser.add_argument("--mbps", type=int, default=200, help="MB/s at which a request's bytes arrive")
    parser.add_argument("--cache", default="8M", help="memory of the delegate")
    parser.add_argument("--quantum", default="1M")
    parser.add_argument("--window", type=int, default=1000, help="microseconds")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    before = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(options, compile_slow_storage(Path(folder)))
    show(rows)
    if options.json is not None:
        document = {
            "units": UNITS, "rows": rows, "command_line": " ".join(["python", *sys.argv]), "page_bytes": PAGE,
            "host": platform.node(), "machine": platform.platform(), "cores": os.cpu_count(),
            "load_average_before": before, "python": platform.python_version(),
            "options": {name: str(value) for name, value in vars(options).items()},
        }
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
