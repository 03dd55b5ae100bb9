"""Rows of the unified schema from a real Darshan log, by PyDarshan: for tests of what works on such rows.

Only what factors and diagnosis read is filled in; it is written apart from the connector of the analytics, so that the
two can be compared.
"""

from __future__ import annotations

import copy
import functools
import os
import pathlib
import warnings
from typing import Any

import pytest

from support import cbuild

#: Darshan's counters, added up over the ranks of a file.
SUMS = {
    "bytes_read": "BYTES_READ",
    "bytes_written": "BYTES_WRITTEN",
    "reads": "READS",
    "writes": "WRITES",
    "opens": "OPENS",
    "read_time": "F_READ_TIME",
    "write_time": "F_WRITE_TIME",
    "meta_time": "F_META_TIME",
}
POSIX = {
    "consec_reads": "CONSEC_READS",
    "consec_writes": "CONSEC_WRITES",
    "unaligned": "FILE_NOT_ALIGNED",
    **{
        f"{way}_size_{size}": f"SIZE_{way}_{size}".upper()
        for way in ("read", "write")
        for size in (
            "0_100",
            "100_1k",
            "1k_10k",
            "10k_100k",
            "100k_1m",
            "1m_4m",
            "4m_10m",
            "10m_100m",
            "100m_1g",
            "1g_plus",
        )
    },
}
SHARED = {
    "fastest_rank_time": "F_FASTEST_RANK_TIME",
    "slowest_rank_time": "F_SLOWEST_RANK_TIME",
    "fastest_rank_bytes": "FASTEST_RANK_BYTES",
    "slowest_rank_bytes": "SLOWEST_RANK_BYTES",
    "slowest_rank": "SLOWEST_RANK",
}
MPIIO = {
    "mpiio_indep_reads": "INDEP_READS",
    "mpiio_indep_writes": "INDEP_WRITES",
    "mpiio_coll_reads": "COLL_READS",
    "mpiio_coll_writes": "COLL_WRITES",
    "mpiio_nb_reads": "NB_READS",
    "mpiio_nb_writes": "NB_WRITES",
    "mpiio_bytes_read": "BYTES_READ",
    "mpiio_bytes_written": "BYTES_WRITTEN",
}


def shared_data(*parts: str) -> pathlib.Path:
    """Return a file of the data that lie beside the project, or skip the test."""
    root = os.environ.get("MPIOX_TEST_DATA") or cbuild.ROOT.parent / "shared" / "data"
    path = pathlib.Path(root, *parts)
    if not path.exists():
        pytest.skip(f"no {'/'.join(parts)} in ../shared/data (MPIOX_TEST_DATA names another folder)")
    return path


def example(name: str) -> pathlib.Path:
    """Return one of the example logs that come with PyDarshan, or skip the test."""
    darshan = pytest.importorskip("darshan")
    path = pathlib.Path(darshan.__file__).parent / "examples" / "example_logs" / name
    if not path.exists():
        pytest.skip(f"this PyDarshan has no example log {name}")
    return path


def rows(path: pathlib.Path, job_id: int | None = None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the row of the log in darshan_job and its rows in darshan_file. A log is read once by a process."""
    return copy.deepcopy(_rows(path, job_id))


@functools.cache
def _rows(path: pathlib.Path, job_id: int | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    darshan = pytest.importorskip("darshan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = darshan.DarshanReport(str(path), read_all=False)
        modules = set(report.modules)
        for name in modules & {"POSIX", "STDIO", "MPI-IO"}:
            report.mod_read_all_records(name)
        if "LUSTRE" in modules:
            report.mod_read_all_lustre_records()
        frames = {name: _frame(report, name) for name in modules & {"POSIX", "STDIO", "MPI-IO"}}
        lustre = _lustre(report) if "LUSTRE" in modules else {}
    meta = report.metadata["job"]
    start, end = float(meta["start_time_sec"]), float(meta["end_time_sec"])
    job = {
        "job_id": job_id if job_id is not None else int(meta["jobid"]),
        "log_id": 1,
        "uid": int(meta["uid"]),
        "log_file": path.name,
        "exe": report.metadata["exe"],
        "app": pathlib.Path((report.metadata["exe"].split() or [""])[0]).name,
        "start_time": start,
        "end_time": end,
        "run_time": float(meta["run_time"]),
        "processes": int(meta["nprocs"]),
        "partial": any(module["partial_flag"] for module in report.modules.values()),
        "modules": sorted(modules),
        "uses_mpiio": "MPI-IO" in modules,
    }
    names = {int(key): str(value) for key, value in report.name_records.items()}
    ids = sorted({number for frame in frames.values() for number in frame} | set(lustre))
    files = [_file(number, job, names, frames, lustre) for number in ids]
    return job, [row for row in files if row["opens"] or row["bytes_read"] or row["bytes_written"]]


def _frame(report: Any, module: str) -> dict[int, Any]:
    """Return the records of each file, as a frame whose columns are counters without the module's name."""
    both = report.records[module].to_df()
    frame = both["counters"].merge(both["fcounters"], on=["id", "rank"])
    prefix = {"POSIX": "POSIX_", "STDIO": "STDIO_", "MPI-IO": "MPIIO_"}[module]
    frame.columns = [name.removeprefix(prefix) for name in frame.columns]
    return {int(number): each for number, each in frame.groupby("id")}


def _lustre(report: Any) -> dict[int, dict[str, Any]]:
    frame = report.records["LUSTRE"].to_df()["components"]
    out = {}
    for number, each in frame.groupby("id"):
        largest = each.loc[each["LUSTRE_COMP_STRIPE_COUNT"].idxmax()]
        osts = sorted({int(ost) for ids in each["LUSTRE_OST_IDS"] for ost in ids if ost >= 0})
        count, size = int(largest["LUSTRE_COMP_STRIPE_COUNT"]), int(largest["LUSTRE_COMP_STRIPE_SIZE"])
        out[int(number)] = {"stripe_count": count, "stripe_size": size, "osts": osts}
    return out


def _file(
    number: int, job: dict[str, Any], names: dict[int, str], frames: dict[str, dict[int, Any]], lustre: dict[int, Any]
) -> dict[str, Any]:
    records = [frames[name][number] for name in ("POSIX", "STDIO") if number in frames.get(name, {})]
    row = {key: job[key] for key in ("job_id", "log_id", "processes")}
    row |= {"file_id": number - (1 << 64) if number >= 1 << 63 else number, "file": names.get(number)}
    ranks = {int(rank) for record in records for rank in record["rank"]}
    row["ranks"] = job["processes"] if -1 in ranks else len(ranks)
    for name, counter in SUMS.items():
        row[name] = sum(record[counter].sum().item() for record in records)
    for name, (way, edge) in {
        f"{way}_{edge}": (way, edge) for way in ("read", "write") for edge in ("start", "end")
    }.items():
        times = [time for record in records for time in record[f"F_{way}_{edge}_TIMESTAMP".upper()] if time > 0]
        pick = min if edge == "start" else max
        row[name] = job["start_time"] + pick(times) if times else None
    posix = frames.get("POSIX", {}).get(number)
    for name, counter in POSIX.items():
        row[name] = None if posix is None else int(posix[counter].sum())
    shared = posix is not None and list(posix["rank"]) == [-1]
    for name, counter in SHARED.items():
        row[name] = posix[counter].iloc[0].item() if shared else None
    if posix is not None and posix[["FSYNCS", "FDSYNCS"]].to_numpy().max() > 0:
        row["write_end"] = synced_until(row, job["start_time"] + job["run_time"])
    own = [record for record in records if -1 not in set(record["rank"])]
    row["root_bytes_written"] = (
        sum(int(record.loc[record["rank"] == 0, "BYTES_WRITTEN"].sum()) for record in own)
        if len(own) == len(records) and own
        else None
    )
    mpiio = frames.get("MPI-IO", {}).get(number)
    for name, counter in MPIIO.items():
        row[name] = None if mpiio is None else int(mpiio[counter].sum())
    return {**row, "stripe_count": None, "stripe_size": None, "osts": None, **lustre.get(number, {})}


def synced_until(row: dict[str, Any], end: float) -> float | None:
    """Return until when the slowest rank writes and syncs, which Darshan's time of writes has and their end has not."""
    if row["write_start"] is None:
        return None
    ranks = row["ranks"] or row["processes"]
    busy = row["write_time"] / ranks
    if row["slowest_rank_time"] is not None:
        busy = max(busy, row["slowest_rank_time"] - (row["meta_time"] + row["read_time"]) / ranks)
    return float(max(row["write_end"], min(end, row["write_start"] + min(busy, row["write_time"]))))
