"""Measure the sweep line and the extraction of factors on generated jobs, read from Parquet.

``python benchmarks/analytics_sweep.py --jobs 1000000 --files 10000000 --threads 2`` writes a table of files to a
temporary folder (or to --folder, where it is kept and found again), with sizes of jobs as in production: most have few
files, few have thousands. Then, each --repeat times, best and median: the critical paths of all jobs from Parquet; with
--factors the factors of the jobs below 1 GB/s; with --memory the sweep over arrays in memory. The peak of resident
memory is that of the whole process so far; generating is done in a process of its own, so that it does not count.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from mpiio_ext.analytics.factors import extract
from mpiio_ext.analytics.sweep import critical_paths, sweep
from mpiio_ext.analytics.tables.schema import SIZE_BINS

ROW_GROUP = 1 << 17
PARTS = 16


def sizes_of_jobs(jobs: int, files: int, rng: np.random.Generator) -> Any:
    """Return the number of files of each job: log-normal, scaled to the number asked for, at least one."""
    weights = rng.lognormal(0.0, 1.6, jobs)
    sizes = np.maximum(1, (weights * files / weights.sum()).astype(np.int64))
    sizes[rng.integers(0, jobs, 1)] += max(0, files - int(sizes.sum()))
    return sizes


def part(first_job: int, sizes: Any, rng: np.random.Generator, all_columns: bool) -> pa.Table:
    """Return the rows of consecutive jobs."""
    job = np.repeat(np.arange(first_job, first_job + len(sizes)), sizes)
    n = len(job)
    begin = np.repeat(1.7e9 + rng.random(len(sizes)) * 2.6e6, sizes)
    start = begin + rng.exponential(600.0, n)
    end = start + rng.lognormal(0.0, 2.0, n)
    unknown = rng.random(n) < 0.3  # files that are only read
    columns: dict[str, Any] = {
        "job_id": job,
        "log_id": job,
        "file_id": rng.integers(0, 1 << 62, n),
        "write_start": pa.array(start, mask=unknown),
        "write_end": pa.array(end, mask=unknown),
    }
    if all_columns:
        columns |= counters(n, np.repeat(rng.integers(0, 11, len(sizes)), sizes), end - start, rng)
    return pa.table(columns)


def counters(n: int, scale: Any, duration: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Return the columns that the factors read; `scale`: binary logarithm of a job's processes."""
    processes = (1 << scale).astype(np.int32)
    ranks = np.where(rng.random(n) < 0.3, processes, 1)
    out: dict[str, Any] = {"processes": processes, "ranks": ranks}
    out |= {f"{way}_size_{name}": rng.poisson(4, n) for way in ("read", "write") for name in SIZE_BINS}
    requests = sum(out[f"write_size_{name}"] for name in SIZE_BINS)
    out |= {"writes": requests, "consec_writes": (requests * rng.random(n)).astype(np.int64)}
    out |= {name: rng.lognormal(14, 3, n).astype(np.int64) for name in ("bytes_read", "bytes_written")}
    out |= {"read_time": rng.exponential(1, n), "write_time": duration * 0.5, "meta_time": rng.exponential(0.1, n)}
    out |= {"unaligned": requests // 2, "root_bytes_written": out["bytes_written"] // processes}
    missing = rng.random(n) < 0.8
    for name in ("mpiio_coll_writes", "mpiio_indep_writes", "mpiio_nb_writes"):
        out[name] = pa.array(rng.poisson(3, n), mask=missing)
    shared = ranks > 1
    out["slowest_rank_time"] = pa.array(duration, mask=~shared)
    out["fastest_rank_bytes"] = pa.array(out["bytes_written"] // ranks, mask=~shared)
    count = rng.choice([1, 1, 1, 4, 16], n)
    offsets = pa.array(np.concatenate([[0], np.cumsum(count)]), pa.int32())
    osts = (np.repeat(rng.integers(0, 248, n), count) + np.arange(count.sum()) % 16) % 248
    return {**out, "stripe_count": count, "osts": pa.ListArray.from_arrays(offsets, pa.array(osts, pa.int32()))}


def generate(folder: Path, jobs: int, files: int, all_columns: bool) -> None:
    """Write the table as Parquet files of consecutive jobs."""
    rng = np.random.default_rng(1)
    sizes = sizes_of_jobs(jobs, files, rng)
    first = 0
    for number, chunk in enumerate(np.array_split(sizes, min(PARTS, jobs))):
        table = part(first, chunk, rng, all_columns)
        pq.write_table(table, folder / f"part{number:03}.parquet", row_group_size=ROW_GROUP, compression="zstd")
        first += len(chunk)
    (folder / "done").touch()


def measured(name: str, repeat: int, work: Callable[[], Any]) -> Any:
    """Run `work` several times and print best and median (s) and the peak of memory so far (MB)."""
    times, result = [], None
    for _ in range(repeat):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    best, median = min(times), statistics.median(times)
    print(f"{name:42} best {best:8.3f} s   median {median:8.3f} s   peak {peak:7.0f} MB", flush=True)
    return result


def measure(folder: Path, options: argparse.Namespace) -> None:
    """Print what each step takes."""
    source = ds.dataset(sorted(folder.glob("*.parquet")), format="parquet")
    threads = options.threads
    paths = measured(
        f"critical paths from Parquet, {threads} threads",
        options.repeat,
        lambda: critical_paths(source, threads=threads),
    )
    print(f"  {paths.num_rows:,} jobs, {int(paths['critical_files'].to_numpy().sum()):,} critical files")
    if options.factors:
        found = measured(
            f"factors below 1 GB/s, {threads} threads", options.repeat, lambda: extract(source, 0, 1e9, threads=threads)
        )
        print(f"  {found.num_rows:,} jobs, {found.num_columns} columns")
    if options.memory:
        table = source.to_table(columns=["job_id", "write_start", "write_end"])
        job, start, end = (table[name].to_numpy() for name in table.schema.names)
        measured("sweep over arrays in memory, 1 thread", options.repeat, lambda: sweep(start, end, job))


def main() -> None:
    """Parse the options, generate what is missing, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--factors", action="store_true", help="also all factors; the table then has their columns")
    parser.add_argument("--memory", action="store_true", help="also the sweep over arrays in memory")
    parser.add_argument("--folder", type=Path, help="where the table is kept; by default a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.folder or Path(temporary)
        folder = root / f"{options.jobs}_{options.files}_{int(options.factors)}"
        if not (folder / "done").exists():
            folder.mkdir(parents=True, exist_ok=True)
            arguments = (folder, options.jobs, options.files, options.factors)
            child = multiprocessing.get_context("spawn").Process(target=generate, args=arguments)
            child.start()
            child.join()
            if child.exitcode != 0:
                raise SystemExit(f"{folder}: the table could not be written")
        measure(folder, options)


if __name__ == "__main__":
    main()
