"""Arrow tables of the unified schema made by hand: a row names what matters, everything else is NULL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.analyses.source import Tables
from mpiio_ext.analytics.tables.schema import SIZE_BINS, TABLES

__all__ = ["many", "source", "table"]


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return a table; job_id, log_id and source have defaults (a log of Darshan per job)."""
    columns = TABLES[name].names()
    made = []
    for number, row in enumerate(rows, 1):
        unknown = set(row) - set(columns)
        assert not unknown, f"{name} has no {unknown}"
        full: dict[str, Any] = dict.fromkeys(columns)
        if "log_id" in full:
            full |= {"job_id": row.get("log_id", number), "log_id": row.get("job_id", number)}
        if "source" in full:
            full["source"] = "darshan"
        made.append(full | dict(row))
    return pa.Table.from_pylist(made, schema=TABLES[name].schema())


def source(**rows: Sequence[Mapping[str, Any]]) -> Tables:
    """Return a source of tables given by their rows; tables that are not named are empty."""
    return Tables({name: table(name, rows.get(name, ())) for name in TABLES})


def many(jobs: int, seed: int = 11) -> Tables:
    """Return a source of many random jobs, somewhat like those of a large system."""
    random = np.random.default_rng(seed)
    processes = np.where(random.random(jobs) < 0.3, 1, 2 ** random.integers(1, 14, jobs)).astype(np.int32)
    files = np.minimum(processes * random.choice([1, 1, 2, 5], jobs), random.integers(1, 12, jobs))
    log = np.arange(1, jobs + 1)
    start = 1.5e9 + np.sort(random.random(jobs)) * 86400 * 30
    run_time = random.exponential(1000, jobs) + 10
    mpiio = random.random(jobs) < 0.2
    per_file = _files(random, log, start, run_time, processes, files, mpiio)
    moved = {
        name: np.bincount(per_file["log_id"], weights=per_file[name], minlength=jobs + 1)[1:].astype(np.int64)
        for name in ("bytes_read", "bytes_written", "reads", "writes")
    }
    job = {
        "job_id": log,
        "log_id": log,
        "source": np.full(jobs, "darshan"),
        "uid": random.integers(1000, 1100, jobs),
        "exe": [f"/global/u{k % 40}/bin/code{k % 40} in.dat" for k in random.integers(0, 40, jobs)],
        "app": [f"code{k}" for k in np.minimum(random.geometric(0.12, jobs), 40)],
        "start_time": start,
        "end_time": start + run_time,
        "run_time": run_time,
        "processes": processes,
        "partial": np.zeros(jobs, bool),
        "files": files,
        "uses_posix": np.ones(jobs, bool),
        "uses_mpiio": mpiio,
        "uses_stdio": random.random(jobs) < 0.9,
        "uses_hdf5": mpiio & (random.random(jobs) < 0.5),
        "uses_pnetcdf": np.zeros(jobs, bool),
        "uses_lustre": np.ones(jobs, bool),
        **moved,
    }
    slurm = {
        "job_id": log,
        "start_time": start - 5,
        "end_time": start + run_time + 5,
        "run_time": run_time + 10,
        "node_count": (-(-processes // 32)).astype(np.int32),
    }
    tables = {"darshan_job": job, "darshan_file": per_file, "slurm": slurm}
    return Tables({name: _fill(name, tables.get(name, {})) for name in TABLES})


def _files(random: Any, log: Any, start: Any, run_time: Any, processes: Any, files: Any, mpiio: Any) -> dict[str, Any]:
    owner = np.repeat(np.arange(log.size), files)
    count = owner.size
    reads, writes = random.geometric(0.01, count), random.geometric(0.008, count)
    reads[random.random(count) < 0.2] = 0
    writes[random.random(count) < 0.3] = 0
    size = (2.0 ** random.integers(8, 23, count)).astype(np.int64)
    begin = start[owner] + random.random(count) * run_time[owner] * 0.7
    length = random.random(count) * run_time[owner] * 0.2 + 0.1
    shared = random.random(count) < 0.6
    osts = random.integers(0, 240, count)
    columns = {
        "job_id": log[owner],
        "log_id": log[owner],
        "source": np.full(count, "darshan"),
        "file_id": np.arange(count),
        "file": [f"/scratch/p/run{k}/out.{k}.h5" for k in range(count)],
        "mount": np.full(count, "/scratch"),
        "fs_type": np.full(count, "lustre"),
        "processes": processes[owner],
        "ranks": np.where(shared, processes[owner], 1).astype(np.int32),
        "reads": reads,
        "writes": writes,
        "bytes_read": reads * size,
        "bytes_written": writes * size,
        "consec_reads": (reads * random.beta(4, 1, count)).astype(np.int64),
        "consec_writes": (writes * random.beta(5, 1, count)).astype(np.int64),
        "seq_reads": (reads * random.beta(8, 1, count)).astype(np.int64),
        "seq_writes": writes,
        "read_start": np.where(reads > 0, begin, np.nan),
        "read_end": np.where(reads > 0, begin + length / 2, np.nan),
        "write_start": np.where(writes > 0, begin + length / 2, np.nan),
        "write_end": np.where(writes > 0, begin + length, np.nan),
        "read_time": length / 3,
        "write_time": length / 2,
        "meta_time": length / 50,
        "mpiio_coll_writes": np.where(mpiio[owner] & shared, processes[owner], 0),
        "mpiio_coll_reads": np.zeros(count, np.int64),
        "stripe_size": np.full(count, 1 << 20),
        "stripe_count": np.where(shared, 8, 1),
        "stripe_offset": np.full(count, -1),
        "osts": [[int(k)] if not s else list(range(int(k), int(k) + 8)) for k, s in zip(osts, shared, strict=True)],
    }
    upper = [bound if bound is not None else 1 << 62 for bound in SIZE_BINS.values()]
    bins = np.searchsorted(np.array(upper), size, side="left")
    for number, name in enumerate(SIZE_BINS):
        columns[f"read_size_{name}"] = np.where(bins == number, reads, 0)
        columns[f"write_size_{name}"] = np.where(bins == number, writes, 0)
    return columns


def _fill(name: str, columns: Mapping[str, Any]) -> pa.Table:
    schema = TABLES[name].schema()
    rows = len(columns["job_id"]) if columns else 0
    return pa.table(
        [
            pa.array(columns[field.name], field.type, from_pandas=True)
            if field.name in columns
            else pa.nulls(rows, field.type)
            for field in schema
        ],
        schema=schema,
    )
