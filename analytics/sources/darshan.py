"""Darshan logs as rows of ``darshan_job`` and ``darshan_file``.

Problem. A site has millions of logs of a few kilobytes, written by every release of Darshan since 3.0. PyDarshan needs
2 to 120 ms for one log, most of it in Python. A log may be empty, cut off, damaged, of another kind, or newer than
this.

Algorithm. The checks that do not need the contents come first: a regular file, its size, the magic number, the text of
the version. Then each part is read (:mod:`mpiio_ext.common.darshanfile`); one that fails is left out with a reason. A
module of which any byte cannot be read is left out as a whole: sums over a part of the ranks would be wrong numbers,
and absent is not wrong. Without POSIX, though the log has it, what is added up over POSIX and STDIO is absent, too;
without STDIO it is that of POSIX. The records of many logs are joined at once
(:mod:`mpiio_ext.analytics.sources.darshanjoin`), by a few vectorised steps.

Guarantees. A log that cannot be read costs itself only: it is ``skipped``, or ``partial`` without the part that cannot
be read, with the reason. Counters that a log lacks are NULL. The ID of a log is made of its job and of its file's name
without the folder, so that it is the same whenever it is converted. A log with a part that has more bytes than the
limit of logs (:mod:`mpiio_ext.common.limits`) is skipped.

Source: IOMiner, Section II-B; darshan-util, darshan-log-format.h.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.sources import darshanjoin
from mpiio_ext.analytics.sources.base import Converted, File, Head, Outcome, Parsed, Source, taken
from mpiio_ext.analytics.sources.darshandaos import with_daos
from mpiio_ext.analytics.sources.darshanlayout import Layouts, layouts
from mpiio_ext.analytics.tables.arrays import Whole
from mpiio_ext.analytics.tables.plain import column_of, column_of_array, scalar_of
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, DARSHAN_JOB, Table
from mpiio_ext.common.darshanfile import MAGIC, DamagedLogError, DarshanFile, JobRecord, text_of

#: Records of logs that are joined at once (bytes).
BATCH_BYTES = 64 << 20
#: Formats of logs whose records are known.
_VERSIONS = ("3.00", "3.10", "3.20", "3.21", "3.41")
#: Modules whose records are joined, as reasons name them; rows of files are in this order of first records.
_JOINED = ("POSIX", "MPI-IO", "LUSTRE", "STDIO")
_USES = {
    "uses_posix": {"POSIX"},
    "uses_stdio": {"STDIO"},
    "uses_mpiio": {"MPI-IO"},
    "uses_hdf5": {"H5F", "H5D"},
    "uses_pnetcdf": {"PNETCDF_FILE", "PNETCDF_VAR"},
    "uses_lustre": {"LUSTRE"},
}
_TOO_LARGE = "needs more memory than there is"
_CUT, _DAMAGED = "the log is cut off before its end", "its bytes are cut off or damaged"
#: A longer reason ends here (characters).
_MOST_REASON = 2047
_ALL_64 = (1 << 64) - 1


class _UnreadError(Exception):
    """Nothing of a log can be read; the message is the reason."""


@dataclasses.dataclass
class _Log:
    """A log as far as it can be read, with facts that its file has no more.

    ``mounts`` are types of file systems by folder. ``words`` and ``layouts`` are the records; ``left_out`` modules that
    it has, but that cannot be read.
    """

    path: str
    job: JobRecord
    version: str
    modules: Sequence[str]
    log_id: int
    names: Mapping[int, str] = dataclasses.field(default_factory=dict)
    mounts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    words: dict[str, Whole] = dataclasses.field(default_factory=dict)
    layouts: Layouts | None = None
    left_out: set[str] = dataclasses.field(default_factory=set)
    reason: str = ""


# ---- a log -----------------------------------------------------------------------------------------------------------


def _why_no_log(path: str) -> str:
    """Return the mistake of a file that has no header of a log."""
    with open(path, "rb") as stream:  # noqa: PTH123
        head, size = stream.read(16), os.fstat(stream.fileno()).st_size
    version = head[:8].partition(b"\0")[0]
    if head.startswith((b"\x1f\x8b", b"BZh")):
        return "is a compressed file: a log of Darshan 2, which is not read, or a log that was compressed again"
    if len(head) < 16:
        return f"is no Darshan log, or cut off in its header: it has {size} bytes"
    if head[8:] not in (struct.pack(f"{order}q", MAGIC) for order in "<>"):
        return "is no Darshan log: its magic number is wrong"
    return _why_no_version(version.decode("ascii", "replace")) or (
        "failed to read darshan log file header: it is cut off or damaged"
    )


def _why_no_version(version: str) -> str:
    """Return the mistake in the version of a format."""
    if not re.fullmatch(r"[0-9.]{1,7}", version):
        return "is damaged: its header names no version of the log format"
    if version not in _VERSIONS:
        return f"has version {version} of the log format, which this release of mpiio_ext cannot read"
    return ""


def _opened(path: str) -> DarshanFile:
    """Return a log whose header can be read, or raise `_UnreadError`."""
    try:
        info = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(info.st_mode):
            raise _UnreadError("is not a regular file")
        if not info.st_size:
            raise _UnreadError("is empty")
        try:
            log = DarshanFile(path)
        except DamagedLogError:
            raise _UnreadError(_why_no_log(path)) from None
    except OSError as error:
        raise _UnreadError(f"cannot be opened: {error.strerror}") from None
    if why := _why_no_version(log.version):
        raise _UnreadError(why)
    if log.compression > 2:
        raise _UnreadError("invalid compression type")
    return log


def _job(log: DarshanFile) -> JobRecord:
    """Return the job of a log, or raise `_UnreadError`."""
    try:
        job = log.job()
    except DamagedLogError as error:
        raise _UnreadError(f"its job cannot be read, it is cut off or damaged: {error.what}") from None
    if not 1 <= job.processes < 1 << 31 or job.start < 0:
        raise _UnreadError("is damaged: its job has an impossible start or number of ranks")
    return job


def _identity(job: JobRecord, path: str) -> int:
    """Return a positive number made of the job and of the file's name without its folder."""
    numbers = (job.uid, job.start, job.start_ns, job.end, job.end_ns, job.processes, job.number)
    data = struct.pack("<7q", *numbers) + job.command + b"\0" + os.fsencode(os.path.basename(path))  # noqa: PTH119
    found = 0xCBF29CE484222325
    for byte in data:
        found = (found ^ byte) * 0x100000001B3 & _ALL_64
    found = (found ^ found >> 32) * 0x9E3779B97F4A7C15 & _ALL_64
    return ((found ^ found >> 29) & _ALL_64 >> 1) or 1


def _log(path: str) -> _Log:
    """Read a log, or raise `_UnreadError`."""
    try:
        return _parts(_opened(path), path)
    except MemoryError as error:
        raise _UnreadError(str(error) or _TOO_LARGE) from None
    except OSError as error:
        raise _UnreadError(f"cannot be read: {error.strerror}") from None


def _parts(log: DarshanFile, path: str) -> _Log:
    """Return the readable part of a log, with a reason for each part that is not."""
    job = _job(log)
    found = _Log(path, job, log.version, list(log.modules), _identity(job, path))
    why: list[str] = []
    _add_names(found, log, why)
    for module in ("POSIX", "STDIO", "MPI-IO", "LUSTRE"):
        if module in log.modules and (reason := _add_module(found, log, module)):
            found.left_out.add(module)
            why.append(f"{module} left out: {reason}")
    for module in log.modules:
        if log.is_cut(module):
            why += [f"{module} is cut off"] if module not in _JOINED else []
        elif log.has_gap(module) and f"{module} left out: {_DAMAGED}" not in why:
            why.append(f"{module} may lack records: behind it are bytes that the header gives to none")
    if log.has_gap("names"):
        why.append("a module may lack records: behind the file names are bytes that the header gives to none")
    for module in log.modules:
        if log.partial(module) and not module.startswith("module "):
            why.append(f"{module} is incomplete: Darshan ran out of memory for its records in the run")
    if log.left_out:
        why.append(f"{log.left_out} records of POSIX left out: of Darshan 3.0, with calls of STDIO among them")
    found.reason = "; ".join(why)[:_MOST_REASON]
    return found


def _add_names(found: _Log, log: DarshanFile, why: list[str]) -> None:
    """Add the names of files and mount points."""
    names: dict[int, str] = {}
    try:
        for number, name in log.names(whole=True):
            names[number] = names.get(number) or name
        found.names = names
    except DamagedLogError:
        why.append(f"file names left out: {_CUT if log.is_cut('names') else _DAMAGED}")
    if found.job.mounts is None:
        why.append("mount points left out: cannot be read: poorly formatted mount table in darshan log file")
    found.mounts = {folder: kind for kind, folder in reversed(found.job.mounts or ())}  # the first of a folder wins


def _add_module(found: _Log, log: DarshanFile, module: str) -> str:
    """Add the records of a module, or return why they cannot be read."""
    version = log.version_of(module)
    if log.is_cut(module):
        return _CUT
    try:
        data = log.whole(module)
    except DamagedLogError:
        return _DAMAGED
    if module != "LUSTRE" and not log.knows(module):
        name = module.replace("-", "")
        return f"its records cannot be read: Invalid {name} module version number (got {version})"
    if module != "LUSTRE":
        try:
            found.words[module] = log.records(module, data)
        except DamagedLogError:
            return _DAMAGED
        return ""
    if version not in (1, 2):
        return "its version is unknown"
    try:
        found.layouts = layouts(log.words(data), version)
    except ValueError as error:
        return str(error)
    return ""


# ---- rows ------------------------------------------------------------------------------------------------------------


def _column(kind: pa.DataType, values: Any) -> pa.Array:
    """Return an Arrow array of integers, `darshanjoin.ABSENT` for absent ones, or of times, NaN for absent ones."""
    absent = np.isnan(values) if values.dtype == np.float64 else values == darshanjoin.ABSENT
    if pa.types.is_boolean(kind):
        values = values == 1
    elif pa.types.is_int32(kind):
        values = values.astype(np.int32)
    return column_of_array(values, ~absent)


def _table(table: Table, rows: int, columns: Mapping[str, Any]) -> pa.Table:
    """Return an Arrow table: columns of NumPy or Arrow, and NULL for others."""
    schema, arrays = table.schema(), []
    for field in schema:
        found = columns.get(field.name)
        if found is None:
            arrays.append(pa.nulls(rows, field.type))
        else:
            arrays.append(found if isinstance(found, pa.Array) else _column(field.type, found))
    return pa.Table.from_arrays(arrays, schema=schema)


def _texts(texts: Iterator[str | None]) -> pa.Array:
    return column_of([text or None for text in texts]).cast(pa.string())


def _printable(path: str) -> str:
    """Return a path with U+FFFD for bytes that are not UTF-8."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "replace")


def _of_jobs(logs: Sequence[_Log]) -> dict[str, Any]:
    """Return the facts of jobs without their records."""
    jobs = [log.job for log in logs]
    numbers = np.array(
        [(job.number, job.uid, job.processes, job.start, job.end, job.start_ns, job.end_ns) for job in jobs], np.int64
    ).reshape(-1, 7)
    seconds = numbers[:, 3:5].astype(np.float64)
    start, end = (seconds + numbers[:, 5:7].astype(np.float64) * 1e-9).T
    began, ended = (seconds + numbers[:, 5:7].astype(np.float64) / 1e9).T
    new = np.array([log.version == _VERSIONS[-1] for log in logs], bool)
    run = np.where(new, ended - began, seconds[:, 1] - seconds[:, 0] + 1)
    return {
        "job_id": numbers[:, 0],
        "uid": numbers[:, 1],
        "processes": numbers[:, 2],
        "log_id": np.array([log.log_id for log in logs], np.int64),
        "start_time": start,
        "end_time": np.where(numbers[:, 4] >= numbers[:, 3], end, np.nan),
        "run_time": np.where(run >= 0, run + 0.0, np.nan),
        "partial": np.array([log.reason != "" for log in logs], np.int64),
        **{
            name: np.array([not modules.isdisjoint(log.modules) for log in logs], np.int64)
            for name, modules in _USES.items()
        },
    }


def _app(command: bytes) -> str:
    return text_of(re.split(rb"[ \t]", command, maxsplit=1)[0].rpartition(b"/")[2])


def _of_layouts(rows: Whole, every: Sequence[Layouts], count: int) -> dict[str, Any]:
    """Return the columns of layouts of `count` files; `rows` of the layouts."""
    values = np.full((count, 4), -1, np.int64)
    place = np.full(count, -1, np.int64)
    values[rows], place[rows] = np.concatenate([each.values for each in every]), np.arange(len(rows))
    values = np.where(values < 0, darshanjoin.ABSENT, values)
    ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *(each.counts for each in every)]))
    osts = pa.ListArray.from_arrays(
        *(column_of_array(each.astype(np.int32)) for each in (ends, np.concatenate([each.osts for each in every])))
    )
    names = ("stripe_size", "stripe_count", "stripe_offset", "components")
    return {**dict(zip(names, values.T, strict=True)), "osts": osts.take(column_of_array(place, place >= 0))}


#: Bytes of the record of a job, which has the mount points.
_LONGEST_MOUNT = 4096
_NO_LAYOUTS = Layouts(*(np.zeros(shape, np.int64) for shape in (0, (0, 4), 0, 0)))


def _mount_of(name: str, mounts: Mapping[str, str]) -> tuple[str, str]:
    """Return folder and type of the mount point of a file: the longest that is a prefix of whole names; else empty."""
    end = len(name) if len(name) <= _LONGEST_MOUNT else name.rfind("/", 0, _LONGEST_MOUNT + 1)
    while end >= 0:
        for folder in (name[: end + 1], name[:end]):  # with its slash, and without
            if folder in mounts:
                return folder, mounts[folder]
        end = name.rfind("/", 0, end)
    return "", ""


def _joined(logs: Sequence[_Log]) -> tuple[pa.Table, pa.Table, pa.Table, Whole]:
    """Return jobs, files and summaries of logs, and the number of files of each."""
    count, jobs = len(logs), _of_jobs(logs)
    records = {
        module: darshanjoin.Records(module, [log.words.get(module) for log in logs])
        for module in ("POSIX", "MPI-IO", "STDIO")
    }
    every = [log.layouts or _NO_LAYOUTS for log in logs] or [_NO_LAYOUTS]
    of_layouts = np.repeat(np.arange(len(every)), [len(each.files) for each in every])
    parts = [
        (of_layouts, np.concatenate([each.files for each in every]))
        if module == "LUSTRE"
        else (records[module].log, records[module].file)
        for module in _JOINED
    ]
    rows, (posix, mpiio, stdio) = darshanjoin.Rows(parts), records.values()
    lost, hurt = (
        np.array([not modules.isdisjoint(log.left_out) for log in logs], bool)
        for modules in ({"POSIX"}, {"POSIX", "STDIO", "MPI-IO"})
    )
    files = darshanjoin.files(rows, posix, mpiio, stdio, jobs, lost)
    opened = darshanjoin.opened(rows, (posix, mpiio, stdio))
    sums = darshanjoin.sums(rows, files, opened, count)
    for name, gone in (("files", hurt), ("files_read", lost), ("files_written", lost)):
        sums[name] = np.where(gone, darshanjoin.ABSENT, sums[name])
    files |= _of_layouts(rows.of[2], every, rows.count)
    files |= {name: jobs[name][rows.log] for name in ("job_id", "log_id", "processes")} | _names(rows, logs)
    scalars = darshanjoin.summary(posix, mpiio, stdio, count) | {"log_id": jobs["log_id"]}
    summary = pa.table({name: _column(pa.from_numpy_dtype(each.dtype), each) for name, each in scalars.items()})
    texts = {
        "source": pa.repeat(scalar_of("darshan"), count),
        "log_file": _texts(_printable(log.path) for log in logs),
        "exe": _texts(text_of(log.job.command) for log in logs),
        "app": _texts(_app(log.job.command) for log in logs),
        "log_version": _texts(log.version for log in logs),
        "modules": pa.ListArray.from_arrays(
            column_of_array(np.cumsum([0, *(len(log.modules) for log in logs)], dtype=np.int32)),
            _texts(module for log in logs for module in log.modules),
        ),
    }
    tables = (_table(DARSHAN_JOB, count, jobs | sums | texts), _table(DARSHAN_FILE, rows.count, files), summary)
    return *tables, np.bincount(rows.log, minlength=count)


def _names(rows: darshanjoin.Rows, logs: Sequence[_Log]) -> dict[str, Any]:
    """Return the columns of texts of files."""
    keys = zip(rows.log.tolist(), rows.file.view(np.uint64).tolist(), strict=True)
    names = [logs[log].names.get(file, "") for log, file in keys]
    mounts = [_mount_of(name, logs[log].mounts) for log, name in zip(rows.log.tolist(), names, strict=True)]
    return {
        "source": pa.repeat(scalar_of("darshan"), rows.count),
        "file_id": rows.file,
        "file": _texts(iter(names)),
        "mount": _texts(folder for folder, _ in mounts),
        "fs_type": _texts(kind for _, kind in mounts),
    }


def _batches(logs: Sequence[str], root: str) -> Iterator[tuple[list[_Log], list[Outcome]]]:
    """Yield logs that are joined at once, and the outcomes known so far, also those of unreadable logs."""
    batch: list[_Log] = []
    outcomes: list[Outcome] = []
    size = 0
    for path in logs:
        try:
            log = _log(os.path.join(root, path))  # noqa: PTH118 (a path per log)
        except _UnreadError as error:
            outcomes.append(Outcome(path, "skipped", str(error)))
            continue
        log.path = path
        outcomes.append(Outcome(path, "partial" if log.reason else "whole", log.reason, log.log_id))
        batch.append(log)
        size += sum(words.nbytes for words in log.words.values())
        if size > BATCH_BYTES:
            yield batch, outcomes
            batch, outcomes, size = [], [], 0
    yield batch, outcomes


def read_logs(logs: Sequence[str], root: str) -> Converted:
    """Read Darshan logs, with a summary of each.

    Parameters
    ----------
    logs, root
        As of :func:`convert`.

    Returns
    -------
    Converted
        As of :func:`convert`, and ``summary``: one row a log that was not skipped, with the sum (``tot_``), the number
        (``num_``), the least and the greatest value (``min_``, ``max_``) of counters of POSIX over the log's records.
        It has bytes and records with bytes of ``posix``, ``stdio`` and ``mpiio``. In seconds it has the I/O time of the
        slowest rank on files of its own (``unique_time``) and of the slowest ranks of shared files (``shared_time``).
    """
    parts: list[tuple[pa.Table, ...]] = []
    outcomes: list[Outcome] = []
    for batch, new in _batches(logs, root):
        try:
            jobs, files, summary, counts = _joined(batch)
        except MemoryError:  # one log alone, or few: a batch is small
            jobs, files, summary, counts = _joined([])
            new = [each if each.status == "skipped" else Outcome(each.log, "skipped", _TOO_LARGE) for each in new]
        parts.append((jobs, files, summary))
        found = iter(counts.tolist())
        outcomes += [
            each
            if each.status == "skipped"
            else dataclasses.replace(each, rows={"darshan_job": 1, "darshan_file": next(found)})
            for each in new
        ]
    names = ("darshan_job", "darshan_file", "summary")
    tables = {name: pa.concat_tables(part) for name, part in zip(names, zip(*parts, strict=True), strict=True)}
    return with_daos(Converted(tables=tables, outcomes=outcomes), root)


def convert(logs: Sequence[str], root: str) -> Converted:
    """Convert Darshan logs (of formats 3.00 to 3.41).

    Parameters
    ----------
    logs : paths of the logs, relative to `root`.
    root : folder.

    Returns
    -------
    Converted
        ``darshan_job``, one row a log that was not skipped, in the order of `logs`, and ``darshan_file``; an outcome
        for each log.
    """
    found = read_logs(logs, root)
    return Converted(
        tables={name: found.tables[name] for name in ("darshan_job", "darshan_file")}, outcomes=found.outcomes
    )


class Darshan(Source):
    """A log of Darshan."""

    NAME = "darshan"
    MEANING = "runs of programs: logs of Darshan"
    ROLE = "programs"
    PATTERNS = ("*.darshan", "*.darshan_partial")
    TABLES = (DARSHAN_JOB, DARSHAN_FILE)

    def recognizes(self, head: Head) -> bool:
        return head.path.suffix in (".darshan", ".darshan_partial")

    def parse(self, file: File) -> Parsed:
        return taken(convert([file.path.name], str(file.path.parent)), file), {}


SOURCE = Darshan()
