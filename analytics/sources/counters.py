"""Counters of Darshan as facilities share them, in Parquet or CSV, to rows of ``darshan_job`` and ``darshan_file``.

Problem. The archive of Summit, and others, have no logs but tables that ``darshan-parser`` was turned into: names of
files and people are masked, and each counter is a column.

Forms
-----
- a row a record: ``recordid``, ``rank``, ``jobid``, ``start_time``, ``end_time``, ``filename``, ``fstype``,
  ``mountpt``, and the counters of all modules (``POSIX_BYTES_READ`` …), empty if a module has no record of the file;
- a row a log, of ``darshan-parser --total``: ``jobid``, ``start_time``, ``end_time``, ``exe``, ``nprocs``, ``runtime``,
  and ``total_POSIX_BYTES_READ`` … They have no files.

Algorithm. The rows of a file are joined by the rules of :mod:`.darshan` (:data:`RULES`): added up, the highest, the
first time but 0, the last. A negative counter is absent and changes nothing.

Guarantees. Of the records of a log the same rows come out as of the log itself, but for what the tables lack: processes
(unless there is ``nprocs``), names, OSTs, the exact run time. What no row has is NULL. A log is a job with one start
and end. A line of CSV that cannot be read is left out and named.

Source: A. M. Karimi et al., Summit Archival Dataset; darshan-util, darshan-parser(1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.sources.base import Converted, File, Head, Outcome, Parsed, Source
from mpiio_ext.analytics.sources.content import csv_values, first_lines
from mpiio_ext.analytics.sources.countertable import IDS, PARQUET, TEXTS, Counters, form_of, read_counters
from mpiio_ext.analytics.sources.jobids import job_id_of
from mpiio_ext.analytics.sources.records import Problems, SourceError, make_table
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, DARSHAN_JOB, SIZE_BINS


def _rules() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return how counters become columns of ``darshan_file``: column -> (how, counters)."""
    both = {
        "bytes_read": "BYTES_READ",
        "bytes_written": "BYTES_WRITTEN",
        "reads": "READS",
        "writes": "WRITES",
        "opens": "OPENS",
        "read_time": "F_READ_TIME",
        "write_time": "F_WRITE_TIME",
        "meta_time": "F_META_TIME",
    }
    rules: dict[str, tuple[str, tuple[str, ...]]] = {
        column: ("sum", (f"POSIX_{name}", f"STDIO_{name}")) for column, name in both.items()
    }
    for name in ("consec_reads", "consec_writes", "seq_reads", "seq_writes"):
        rules[name] = ("sum", (f"POSIX_{name.upper()}",))
    for way in ("read", "write"):
        rules |= {f"{way}_size_{name}": ("sum", (f"POSIX_SIZE_{way.upper()}_{name.upper()}",)) for name in SIZE_BINS}
        for end, how in (("start", "first"), ("end", "last")):
            counter = f"F_{way.upper()}_{end.upper()}_TIMESTAMP"
            rules[f"{way}_{end}"] = (how, (f"POSIX_{counter}", f"STDIO_{counter}"))
    rules["max_offset_read"] = ("max", ("POSIX_MAX_BYTE_READ", "STDIO_MAX_BYTE_READ"))
    rules["max_offset_written"] = ("max", ("POSIX_MAX_BYTE_WRITTEN", "STDIO_MAX_BYTE_WRITTEN"))
    rules["unaligned"] = ("sum", ("POSIX_FILE_NOT_ALIGNED",))
    rules["alignment"] = ("max", ("POSIX_FILE_ALIGNMENT",))
    for name in ("indep_reads", "indep_writes", "nb_reads", "nb_writes", "bytes_read", "bytes_written"):
        rules[f"mpiio_{name}"] = ("sum", (f"MPIIO_{name.upper()}",))
    for name in ("reads", "writes"):
        rules[f"mpiio_coll_{name}"] = ("sum", (f"MPIIO_COLL_{name.upper()}", f"MPIIO_SPLIT_{name.upper()}"))
    for column, name in (("stripe_size", "SIZE"), ("stripe_count", "WIDTH"), ("stripe_offset", "OFFSET")):
        rules[column] = ("max", (f"LUSTRE_STRIPE_{name}",))
    return rules


#: Column of ``darshan_file`` -> how its counters are joined (sum, max, first, last), and which they are.
RULES = _rules()
_ACTIVITY = (
    "bytes_read",
    "bytes_written",
    "reads",
    "writes",
    "opens",
    "consec_reads",
    "consec_writes",
    "seq_reads",
    "seq_writes",
    "read_time",
    "write_time",
    "meta_time",
)
_EXTREMES = {
    "fastest_rank_time": "F_FASTEST_RANK_TIME",
    "slowest_rank_time": "F_SLOWEST_RANK_TIME",
    "fastest_rank_bytes": "FASTEST_RANK_BYTES",
    "slowest_rank_bytes": "SLOWEST_RANK_BYTES",
    "slowest_rank": "SLOWEST_RANK",
}
_SYNCS = ("POSIX_FSYNCS", "POSIX_FDSYNCS")
_OPENS = ("POSIX_OPENS", "STDIO_OPENS", "MPIIO_INDEP_OPENS", "MPIIO_COLL_OPENS")
#: Module -> counters that its records have, and the flag of a job.
_MODULES = {
    "POSIX": ("uses_posix", ("POSIX_OPENS",)),
    "MPI-IO": ("uses_mpiio", ("MPIIO_INDEP_OPENS",)),
    "H5F": ("uses_hdf5", ("H5F_OPENS",)),
    "H5D": ("uses_hdf5", ("H5D_OPENS",)),
    "PNETCDF_FILE": ("uses_pnetcdf", ("PNETCDF_FILE_OPENS", "PNETCDF_INDEP_OPENS", "PNETCDF_FILE_CREATES")),
    "LUSTRE": ("uses_lustre", ("LUSTRE_STRIPE_SIZE",)),
    "STDIO": ("uses_stdio", ("STDIO_OPENS",)),
}
WANTED = frozenset(
    {
        *IDS,
        *TEXTS,
        "rank",
        "start_time",
        "end_time",
        "nprocs",
        "runtime",
        *_OPENS,
        *(counter for _, counters in RULES.values() for counter in counters),
        *_SYNCS,
        *(f"{module}_{name}" for module in ("POSIX", "STDIO") for name in _EXTREMES.values()),
        *(counter for _, counters in _MODULES.values() for counter in counters),
    }
)
_MOST = 2.0**63
#: The time of a log is one of these years, in s since 1970.
_TIMES = (0.0, 2.0**33)


# ---- joining ---------------------------------------------------------------------------------------------------------


class _Groups:
    """Rows that belong together: the records of a file, or of a log.

    Parameters
    ----------
    keys : sequence of (rows,) arrays
        Rows with the same keys are one group; groups are in the order of their first row.
    """

    def __init__(self, *keys: Whole | Numbers) -> None:
        order = np.lexsort(keys[::-1])
        new = np.zeros(len(order), bool)
        for key in keys:
            new[1:] |= key[order][1:] != key[order][:-1]
        number = np.empty(len(order), np.int64)
        number[order] = np.cumsum(new)
        first = np.full(int(number.max(initial=-1)) + 1, len(order), np.int64)
        np.minimum.at(first, number, np.arange(len(order)))
        place = np.empty(len(first), np.int64)
        place[np.argsort(first, kind="stable")] = np.arange(len(first))
        self.of: Whole = place[number]
        self.first: Whole = np.sort(first)

    def __len__(self) -> int:
        return len(self.first)

    def join(self, how: str, values: Numbers) -> Numbers:
        """Return a value a group; NaN if no row has one. Negative values are absent, and so are times of 0."""
        known = np.isfinite(values) & (values > 0 if how in ("first", "last") else values >= 0)
        out = np.full(len(self), np.nan)
        groups, found = self.of[known], values[known]
        there = np.unique(groups)
        if how == "sum":
            out[there] = 0.0
            np.add.at(out, groups, found)
        elif how == "first":
            out[there] = np.inf
            np.minimum.at(out, groups, found)
        else:
            out[there] = -1.0
            np.maximum.at(out, groups, found)
        return out

    def any(self, flags: Flags) -> Flags:
        """Return whether any row of a group has a flag."""
        out = np.zeros(len(self), bool)
        out[self.of[flags]] = True
        return out


def _counter(table: Counters, *names: str) -> Numbers:
    """Return a column if it exists; else NaN."""
    return next((table.numbers[name] for name in names if name in table.numbers), np.full(table.rows, np.nan))


def _joined(table: Counters, groups: _Groups, column: str) -> Numbers:
    """Return a column of a group's row, of all modules that have it."""
    how, counters = RULES[column]
    parts = [groups.join(how, table.numbers[name]) for name in counters if name in table.numbers]
    if not parts:
        return np.full(len(groups), np.nan)
    with np.errstate(invalid="ignore"):
        both = np.array(parts)
        one = np.nansum(both, axis=0) if how == "sum" else (np.fmin if how == "first" else np.fmax).reduce(both)
    return np.where(np.isnan(both).all(axis=0), np.nan, one)


def _extremes(table: Counters, groups: _Groups) -> dict[str, Numbers]:
    """Return the fastest and slowest rank of shared records, of POSIX, or else of STDIO."""
    out = {column: np.full(len(groups), np.nan) for column in _EXTREMES}
    left = np.ones(len(groups), bool)
    for module in ("POSIX", "STDIO"):
        rows = np.flatnonzero((table.numbers["rank"] < 0) & ~np.isnan(_counter(table, f"{module}_OPENS")))
        rows = rows[left[groups.of[rows]]]
        left[groups.of[rows]] = False
        for column, counter in _EXTREMES.items():
            values = _counter(table, f"{module}_{counter}")[rows]
            out[column][groups.of[rows]] = np.where(values >= 0, values, np.nan)
    return out


def _root_bytes(table: Counters, groups: _Groups) -> Numbers:
    """Return the bytes that rank 0 wrote, of files whose records are all of single ranks."""
    rank = table.numbers["rank"]
    out = np.zeros(len(groups))
    data = np.zeros(table.rows, bool)
    for module in ("POSIX", "STDIO"):
        data |= ~np.isnan(_counter(table, f"{module}_OPENS"))
        written = np.nan_to_num(_counter(table, f"{module}_BYTES_WRITTEN"))
        mine = (rank == 0) & (written > 0)
        np.add.at(out, groups.of[mine], written[mine])
    return np.where(groups.any(data & (rank >= 0)) & ~groups.any(data & (rank < 0)), out, np.nan)


def _ranks(table: Counters, groups: _Groups, processes: Numbers) -> Numbers:
    """Return how many ranks opened each file; all of them if a shared record shows it."""
    rank = table.numbers["rank"]
    opened = np.zeros(table.rows, bool)
    for name in _OPENS:
        opened |= np.nan_to_num(_counter(table, name)) > 0
    by_all = groups.any(opened & (rank < 0))
    single = np.flatnonzero(opened & (rank >= 0))
    pairs = np.unique(np.stack([groups.of[single], rank[single].astype(np.int64)]), axis=1)
    return np.where(by_all, processes, np.bincount(pairs[0], minlength=len(groups)).astype(np.float64))


def _synced_until(table: Counters, groups: _Groups, columns: Mapping[str, Numbers], end: Numbers) -> Numbers:
    """Return when the last write or sync of each file ends, by the `end` of the job: as the reader of logs does."""
    synced = np.zeros(table.rows, bool)
    for name in _SYNCS:
        synced |= np.nan_to_num(_counter(table, name)) > 0
    ranks, written = np.fmax(columns["ranks"], 1.0), np.nan_to_num(columns["write_time"])
    other = np.nan_to_num(columns["meta_time"]) + np.nan_to_num(columns["read_time"])
    own = np.fmax(columns["slowest_rank_time"] - other / ranks, written / ranks)
    until = np.fmin(columns["write_start"] + np.minimum(own, written), end)
    return np.where(groups.any(synced), np.fmax(columns["write_end"], until), columns["write_end"])


# ---- rows ------------------------------------------------------------------------------------------------------------


def _list(values: Numbers, of: Callable[[float], Any] = float) -> list[Any]:
    """Return values of Python, None for NaN; counts above 63 bits are the largest."""
    top = int(_MOST) - 1
    return [None if value != value else top if of is int and value >= _MOST else of(value) for value in values.tolist()]


def _typed(columns: Mapping[str, Numbers], kinds: Mapping[str, pa.DataType]) -> dict[str, list[Any]]:
    return {
        name: _list(values, float if pa.types.is_floating(kinds[name]) else int) for name, values in columns.items()
    }


def _taken(table: Counters, name: str, rows: Whole) -> list[str | None]:
    texts = table.texts.get(name)
    return [None] * len(rows) if texts is None else [texts[row] for row in rows.tolist()]


def _files(table: Counters, logs: _Groups, ids: dict[str, list[Any]]) -> pa.Table:
    groups = _Groups(logs.of, table.ids["recordid"])
    log = logs.of[groups.first]
    start = table.numbers["start_time"][groups.first]
    processes = _counter(table, "nprocs")[groups.first]
    columns = {name: _joined(table, groups, name) for name in RULES}
    for name, (how, _) in RULES.items():
        if how in ("first", "last"):
            columns[name] += start
    columns |= _extremes(table, groups)
    columns |= {
        "root_bytes_written": _root_bytes(table, groups),
        "processes": processes,
        "ranks": _ranks(table, groups, processes),
    }
    end = start + _counter(table, "runtime")[groups.first]
    columns["write_end"] = _synced_until(table, groups, columns, end)
    schema = DARSHAN_FILE.schema()
    values = _typed(columns, {field.name: field.type for field in schema})
    values |= {name: [found[number] for number in log.tolist()] for name, found in ids.items()}
    values |= {
        "file_id": table.ids["recordid"][groups.first].tolist(),
        "source": ["darshan"] * len(groups),
        "file": _taken(table, "filename", groups.first),
        "mount": _taken(table, "mountpt", groups.first),
        "fs_type": _taken(table, "fstype", groups.first),
    }
    return make_table(DARSHAN_FILE, values)


def _of_files(files: pa.Table, log_ids: Sequence[int]) -> dict[str, list[Any]]:
    """Return how many files each log opened, read and wrote."""
    number = {log: place for place, log in enumerate(log_ids)}
    log = np.array([number[one] for one in files["log_id"].to_pylist()], np.int64)
    out = {}
    for column, counted in (("files", "opens"), ("files_read", "bytes_read"), ("files_written", "bytes_written")):
        known = np.nan_to_num(np.array(files[counted].to_pylist(), dtype=np.float64)) > 0
        if column == "files":
            known |= np.nan_to_num(np.array(files["ranks"].to_pylist(), dtype=np.float64)) > 0
        out[column] = np.bincount(log[known], minlength=len(log_ids)).tolist()
    return out


def _jobs(table: Counters, logs: _Groups, ids: dict[str, list[Any]], name: str) -> pa.Table:
    rows = logs.first
    start, end = table.numbers["start_time"][rows], table.numbers["end_time"][rows]
    run_time = _counter(table, "runtime")[rows]
    columns = {name: _joined(table, logs, name) for name in _ACTIVITY}
    for way in ("read", "write"):
        columns |= {f"{way}_{where}": start + _joined(table, logs, f"{way}_{where}") for where in ("start", "end")}
    columns |= {
        "start_time": start,
        "end_time": np.where(end >= start, end, np.nan),
        "run_time": np.where(np.isnan(run_time) & (end >= start), end - start, run_time),
        "processes": _counter(table, "nprocs")[rows],
    }
    values = _typed(columns, {field.name: field.type for field in DARSHAN_JOB.schema()})
    there = {module: logs.any(~np.isnan(_counter(table, *counters))) for module, (_, counters) in _MODULES.items()}
    uses: dict[str, Flags] = {}
    for module, (flag, _) in _MODULES.items():
        uses[flag] = uses.get(flag, np.zeros(len(logs), bool)) | there[module]
    exe = _taken(table, "exe", rows)
    uid = [
        None if text is None or not text.removesuffix(".0").isdecimal() else int(text.removesuffix(".0"))
        for text in _taken(table, "uid", rows)
    ]
    values |= {flag: found.tolist() for flag, found in uses.items()}
    values |= {
        **ids,
        "source": ["darshan"] * len(logs),
        "log_file": [name] * len(logs),
        "exe": exe,
        "uid": [one if one is not None and one < 2**63 else None for one in uid],
        "app": [(text.split() or [""])[0].rsplit("/", 1)[-1] if text else None for text in exe],
        "log_version": _taken(table, "darshan_log_version", rows),
        "partial": [False] * len(logs),
        "modules": [[module for module in _MODULES if there[module][number]] for number in range(len(logs))],
    }
    return make_table(DARSHAN_JOB, values)


def _checked(table: Counters, path: str) -> None:
    """Refuse impossible times and ranks, and numbers of processes that do not fit.

    Raises
    ------
    SourceError
        There is one.
    """
    for name, low, high in (
        ("start_time", *_TIMES),
        ("end_time", *_TIMES),
        ("rank", -1.0, 2.0**31 - 1),
        ("nprocs", 0.0, 2.0**31 - 1),
    ):
        values = table.numbers.get(name)
        if values is None or (name == "nprocs" and table.form == "records" and np.isnan(values).all()):
            continue
        if not ((values >= low) & (values <= high)).all():
            raise SourceError(path, 0, f"{name} has an invalid value")


def _tables(table: Counters, path: Path, source_log: int) -> dict[str, pa.Table]:
    """Return the rows of the jobs and files of a table."""
    _checked(table, str(path))
    logs = _Groups(table.ids["jobid"], table.numbers["start_time"], table.numbers["end_time"])
    jobs = table.ids["jobid"][logs.first].tolist()
    begins = table.numbers["start_time"][logs.first].tolist()
    log_ids = [
        job_id_of(path.name, f"{job}:{begin:.3f}:{number}")
        for number, (job, begin) in enumerate(zip(jobs, begins, strict=True))
    ]
    ids: dict[str, list[Any]] = {"job_id": jobs, "log_id": log_ids, "source_log": [source_log] * len(jobs)}
    found = _jobs(table, logs, ids, path.name)
    if table.form == "totals":
        return {"darshan_job": found, "darshan_file": DARSHAN_FILE.schema().empty_table()}
    files = _files(table, logs, ids)
    for name, counts in _of_files(files, log_ids).items():
        field = found.schema.field(name)
        found = found.set_column(found.schema.get_field_index(name), field, pa.array(counts, field.type))
    return {"darshan_job": found, "darshan_file": files}


def convert(logs: Sequence[str], root: str) -> Converted:
    """Convert tables of counters to rows of ``darshan_job`` and ``darshan_file``.

    Parameters
    ----------
    logs : relative to `root`.
    """
    jobs, files = [DARSHAN_JOB.schema().empty_table()], [DARSHAN_FILE.schema().empty_table()]
    outcomes = []
    for number, log in enumerate(logs, 1):
        path = Path(root) / log
        problems = Problems(str(path))
        try:
            found = _tables(read_counters(path, WANTED, problems), path, number)
        except SourceError as error:
            outcomes.append(Outcome(log, "skipped", error.what))
            continue
        jobs.append(found["darshan_job"])
        files.append(found["darshan_file"])
        bad = problems.all()
        more = f", and {len(bad) - 1:,} more like it" if len(bad) > 1 else ""
        outcomes.append(
            Outcome(
                log,
                "partial" if bad else "whole",
                f"line {bad[0].line}: {bad[0].what}{more}" if bad else "",
                number,
                {name: table.num_rows for name, table in found.items()},
            )
        )
    return Converted({"darshan_job": pa.concat_tables(jobs), "darshan_file": pa.concat_tables(files)}, outcomes)


class DarshanCounters(Source):
    """A table of Darshan's counters."""

    NAME = "counters"
    MEANING = "runs of programs: Darshan's counters as facilities share them (Summit), Parquet or CSV"
    ROLE = "programs"
    PATTERNS = ("*.parquet", "*.csv", "*.csv.gz")
    TABLES = (DARSHAN_JOB, DARSHAN_FILE)

    def recognizes(self, head: Head) -> bool:
        if head.data.startswith(PARQUET):
            import pyarrow.parquet as pq

            try:
                return form_of(pq.read_schema(head.path).names) is not None
            except (pa.ArrowException, OSError, ValueError):
                return True  # no other source reads Parquet: reading it names the mistake
        lines = first_lines(head.text, 1)
        try:
            return bool(lines) and form_of(csv_values(lines[0])) is not None
        except ValueError:
            return False

    def parse(self, file: File) -> Parsed:
        table = read_counters(file.path, WANTED, file.problems)
        if not table.rows:
            raise SourceError(str(file.path), 0, f"no row: {file.problems.first or 'there is only a heading'}")
        return _tables(table, file.path, 1), {"form": table.form}


SOURCE = DarshanCounters()
