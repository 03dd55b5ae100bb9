"""Every value of a real Darshan log equals what PyDarshan's own records say, added up here in the plainest way."""

from __future__ import annotations

import functools
import math
import pathlib
import struct
import warnings
from typing import Any

import pytest

from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, DARSHAN_JOB
from support import darshan_rows
from support.darshan_logs import Log, packaged_logs, shared_logs
from support.parts import require

require("darshan")

LOGS = list({path.read_bytes(): path for path in [*shared_logs(), *packaged_logs()]}.values())  # each once

#: Counters that the connector knows beside those of the rows of other tests.
POSIX = {**darshan_rows.POSIX, "seq_reads": "SEQ_READS", "seq_writes": "SEQ_WRITES"}
MPIIO = {**darshan_rows.MPIIO, "mpiio_bytes_read": "BYTES_READ", "mpiio_bytes_written": "BYTES_WRITTEN"}
BOTH, EXTREMES = darshan_rows.SUMS, darshan_rows.SHARED
TIMES = {f"{way}_{edge}": f"F_{way}_{edge}_TIMESTAMP".upper() for way in ("read", "write") for edge in ("start", "end")}
ACTIVITY = [*BOTH, "consec_reads", "consec_writes", "seq_reads", "seq_writes"]
#: Columns that only other sources have, or that the store fills in.
OTHERS = {"method", "pattern", "rounds", "exchange_time", "storage_time", "source_log"}


@functools.cache
def report(path: pathlib.Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import darshan

        opened = darshan.DarshanReport(str(path), read_all=False)
        opened.read_name_records()
        for module in ("POSIX", "STDIO", "MPI-IO"):
            if module in opened.modules:
                opened.mod_read_all_records(module, warnings=False)
        if "LUSTRE" in opened.modules:
            opened.mod_read_all_lustre_records(dtype="dict", warnings=False)
        return opened


def records(opened: Any, module: str) -> dict[int, list[dict[str, Any]]]:
    """Return the records of a module by file, each as {counter without the prefix: value}, from its data frames."""
    if module not in opened.modules:
        return {}
    prefix = {"MPI-IO": "MPIIO_"}.get(module, f"{module}_")
    frames = opened.records[module].to_df()
    joined: dict[int, list[dict[str, Any]]] = {}
    doubles = frames["fcounters"].to_dict("records")
    for row, more in zip(frames["counters"].to_dict("records"), doubles, strict=True):
        assert (row["id"], row["rank"]) == (more["id"], more["rank"])
        both = {name.removeprefix(prefix): value for name, value in {**row, **more}.items()}
        joined.setdefault(int(row["id"]), []).append(both)
    return joined


def total(rows: list[dict[str, Any]], counter: str) -> Any:
    values = [row[counter] for row in rows if row.get(counter, -1) >= 0]
    return sum(values) if values else None


def pick(choose: Any, rows: list[dict[str, Any]], counter: str, above: float) -> Any:
    values = [row[counter] for row in rows if row.get(counter, -1) > above]
    return choose(values) if values else None


def mount_of(name: str | None, mounts: list[tuple[str, str]]) -> tuple[str | None, str | None]:
    parts = [
        (path, kind)
        for path, kind in mounts
        if name is not None and pathlib.PurePosixPath(path) in (p := pathlib.PurePosixPath(name), *p.parents)
    ]
    return max(parts, key=lambda part: len(part[0]), default=(None, None))


def layouts(path: pathlib.Path, opened: Any) -> dict[int, dict[str, Any]]:
    """Return the Lustre columns by file: of logs of version 1, which have one component."""
    if "LUSTRE" not in opened.modules:
        return {}
    assert opened.modules["LUSTRE"]["ver"] == 1
    raw = Log.parse(path.read_bytes()).module("LUSTRE")
    offsets, at = {}, 0
    while at < len(raw):
        key, _, _, _, offset, _, width = struct.unpack_from("<Q6q", raw, at)
        offsets[key] = offset
        at += 56 + 8 * width
    found: dict[int, dict[str, Any]] = {}
    for record in opened.records["LUSTRE"]:
        (component,) = record["components"]
        osts = sorted(set(component["ost_ids"]))
        if record["id"] in found and len(osts) <= len(found[record["id"]]["osts"]):
            continue
        found[record["id"]] = {
            "stripe_size": component["counters"]["LUSTRE_COMP_STRIPE_SIZE"],
            "stripe_count": component["counters"]["LUSTRE_COMP_STRIPE_COUNT"],
            "stripe_offset": offsets[record["id"]] if offsets[record["id"]] >= 0 else None,
            "components": 1,
            "osts": osts,
        }
    return found


def ranks_of(rows: list[dict[str, Any]], processes: int) -> Any:
    if not rows:
        return None
    opened = [
        row["rank"] for row in rows if any(row.get(name, 0) > 0 for name in ("OPENS", "INDEP_OPENS", "COLL_OPENS"))
    ]
    return processes if -1 in opened else len(set(opened))


def expected_file(posix: list[Any], stdio: list[Any], mpiio: list[Any], processes: int, start: float) -> dict[str, Any]:
    data = posix + stdio
    row = {column: total(data, counter) for column, counter in BOTH.items()}
    row |= {column: total(posix, counter) for column, counter in POSIX.items()}
    row |= {column: total(mpiio, counter) for column, counter in MPIIO.items()}
    for column, counter in TIMES.items():
        value = pick(min if column.endswith("start") else max, data, counter, 0)
        row[column] = None if value is None else start + value
    row["max_offset_read"] = pick(max, data, "MAX_BYTE_READ", -1)
    row["max_offset_written"] = pick(max, data, "MAX_BYTE_WRITTEN", -1)
    row["alignment"] = pick(max, posix, "FILE_ALIGNMENT", -1)
    shared = [each for each in data if each["rank"] == -1]
    for column, counter in EXTREMES.items():
        row[column] = shared[0][counter] if shared and shared[0][counter] >= 0 else None
    root = [each["BYTES_WRITTEN"] for each in data if each["rank"] == 0]
    row["root_bytes_written"] = None if shared or not data else sum(root)
    row["ranks"] = ranks_of(data + mpiio, processes)
    return row


@functools.cache
def expected_files(path: pathlib.Path) -> dict[int, dict[str, Any]]:
    opened = report(path)
    job = opened.metadata["job"]
    start = job["start_time_sec"] + job["start_time_nsec"] * 1e-9
    modules = [records(opened, module) for module in ("POSIX", "STDIO", "MPI-IO")]
    stripes = layouts(path, opened)
    files = {}
    for key in {key for module in (*modules, stripes) for key in module}:
        row = expected_file(*(module.get(key, []) for module in modules), job["nprocs"], start)
        row |= dict.fromkeys(("stripe_size", "stripe_count", "stripe_offset", "components", "osts"))
        row |= stripes.get(key, {})
        row["file"] = opened.name_records.get(key)
        row["mount"], row["fs_type"] = mount_of(row["file"], opened.mounts)
        row |= {"job_id": job["jobid"], "processes": job["nprocs"], "source": "darshan"}
        if any(total(modules[0].get(key, []), counter) for counter in ("FSYNCS", "FDSYNCS")):
            row["write_end"] = darshan_rows.synced_until(row, start + job["run_time"])
        row["file_id"] = key - (1 << 64) if key >= 1 << 63 else key
        files[row["file_id"]] = row
    return files


def expected_job(path: pathlib.Path, files: list[dict[str, Any]]) -> dict[str, Any]:
    opened = report(path)
    job, modules = opened.metadata["job"], set(opened.modules)
    row = {name: total([{name: -1 if f[name] is None else f[name]} for f in files], name) for name in ACTIVITY}
    row |= {
        "job_id": job["jobid"],
        "source": "darshan",
        "uid": job["uid"],
        "exe": opened.metadata["exe"] or None,
        "start_time": job["start_time_sec"] + job["start_time_nsec"] * 1e-9,
        "end_time": job["end_time_sec"] + job["end_time_nsec"] * 1e-9,
        "run_time": job["run_time"],
        "processes": job["nprocs"],
        "log_version": job["log_ver"],
        "partial": any(module["partial_flag"] for module in opened.modules.values()),
        "modules": list(opened.modules),
        "files": sum(bool(f["ranks"]) for f in files),
        "files_read": sum((f["bytes_read"] or 0) > 0 for f in files),
        "files_written": sum((f["bytes_written"] or 0) > 0 for f in files),
        "uses_posix": "POSIX" in modules,
        "uses_stdio": "STDIO" in modules,
        "uses_mpiio": "MPI-IO" in modules,
        "uses_hdf5": bool(modules & {"H5F", "H5D"}),
        "uses_pnetcdf": bool(modules & {"PNETCDF_FILE", "PNETCDF_VAR"}),
        "uses_lustre": "LUSTRE" in modules,
    }
    for way in ("read", "write"):
        for end, pick in (("start", min), ("end", max)):
            known = [f[f"{way}_{end}"] for f in files if f[f"{way}_{end}"] is not None]
            row[f"{way}_{end}"] = pick(known, default=None)
    return row


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal; sums of times may be added in another order."""
    if isinstance(a, float) and isinstance(b, (float, int)):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)
    return bool(a == b)


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    return [f"{k}: {found[k]!r} is not {wanted[k]!r}" for k in wanted if not same(found[k], wanted[k])]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.name[:30]}")
def test_every_value_is_pydarshans(path: pathlib.Path) -> None:
    converted = convert([path.name], str(path.parent))
    (outcome,) = converted.outcomes
    (job,) = converted.tables["darshan_job"].to_pylist()
    files = converted.tables["darshan_file"].to_pylist()
    wanted = expected_files(path)
    assert (outcome.status, outcome.reason) == ("whole", "")
    assert outcome.rows == {"darshan_job": 1, "darshan_file": len(wanted)}
    assert {row["file_id"] for row in files} == set(wanted)
    assert len(files) == len(wanted)
    for row in files:
        assert differences(row, wanted[row["file_id"]]) == [], row["file"]
    assert differences(job, expected_job(path, list(wanted.values()))) == []
    assert {row["log_id"] for row in [*files, job]} == {outcome.log_id}
    assert {row["source_log"] for row in [*files, job]} == {None}, "the log is the run; the store fills it in"
    assert job["log_file"] == path.name
    assert job["app"] == (pathlib.PurePosixPath(job["exe"].split()[0]).name if job["exe"] else None)
    checked = set(wanted[files[0]["file_id"]]) | set(expected_job(path, [])) | OTHERS
    checked |= {"log_id", "source_log", "log_file", "app"}
    assert checked >= {*DARSHAN_FILE.names(), *DARSHAN_JOB.names()}


def test_there_are_logs_of_every_kind() -> None:
    """The cases above are worth something only with shared and private records, MPI-IO, STDIO and Lustre."""
    assert len(packaged_logs()) >= 10
    found = [row for path in packaged_logs() for row in expected_files(path).values()]
    for column in ("slowest_rank", "root_bytes_written", "mpiio_coll_writes", "stripe_offset", "read_start", "mount"):
        assert any(row[column] is not None for row in found), column
        assert any(row[column] is None for row in found), column


def test_all_logs_in_one_chunk() -> None:
    """A chunk gives the rows of its logs, in their order, as one by one."""
    names = [str(path)[1:] for path in packaged_logs()]
    together = convert(names, "/")
    alone = [convert([name], "/") for name in names]
    for table in ("darshan_job", "darshan_file"):
        rows = [row for one in alone for row in one.tables[table].to_pylist()]
        assert together.tables[table].to_pylist() == rows
        together.tables[table].validate(full=True)
    assert list(together.outcomes) == [one.outcomes[0] for one in alone]
    assert together.tables["darshan_job"].schema == DARSHAN_JOB.schema()
    assert together.tables["darshan_file"].schema == DARSHAN_FILE.schema()
