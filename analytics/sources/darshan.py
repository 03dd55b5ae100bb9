"""Darshan logs as rows of ``darshan_job`` and ``darshan_file``.

Problem. A site has millions of logs of a few kilobytes, written by every release of Darshan since 3.0. PyDarshan takes
2 to 120 ms for one of them, most of it in Python.

Algorithm. ``csrc/tools/analytics`` reads a chunk of logs by libdarshan-util, the C library inside the Python package
``darshan``, in one child process, and joins the records of modules and ranks to one row a file. What comes back are
buffers of rows; here they become columns, by a few vectorised steps a chunk and no step a record.

Guarantees. A log that libdarshan-util cannot read, or that makes it crash or hang, costs itself only: it is
``skipped``, or ``partial`` without the part that cannot be read, with the reason. Counters that a log lacks are NULL.
The ID of a log is made of its job and of its file's name without the folder, so that it is the same whenever it is
converted.

Source: IOMiner, Section II-B; darshan-util, darshan-logutils.h.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.sources.base import Converted, File, Head, Outcome, Parsed, Source, taken
from mpiio_ext.analytics.sources.darshandaos import with_daos
from mpiio_ext.analytics.tables.arrays import Flags, Whole
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, DARSHAN_JOB, Table
from mpiio_ext.common.extras import darshan_library

#: Without any progress for so long, a log is given up (seconds).
PATIENCE_S = 60.0
#: Memory that reading may take beyond what the process has (bytes).
MEMORY_BYTES = 8 << 30
#: Rows of one call of the reader (bytes); more logs are read by further calls.
ROWS_BYTES = 512 << 20

#: Tables of the reader: name of its buffer -> its number.
_TABLES = {"log": 0, "job": 1, "file": 2, "summary": 3}
_STATUS: tuple[Literal["whole", "partial", "skipped"], ...] = ("whole", "partial", "skipped")
_ABSENT = np.iinfo(np.int64).min

Lengths: TypeAlias = npt.NDArray[np.int32]
#: Bytes of the reader, or none.
Buffer: TypeAlias = Any


def library_path() -> str:
    """Return where libdarshan-util is, or raise `MissingExtraError`."""
    return darshan_library("reading Darshan logs", "analytics")


@functools.cache
def _columns() -> dict[str, list[str]]:
    """Return the names of the columns of numbers, by table of the reader."""
    from mpiio_ext._tools import ffi, lib

    kind = ffi.new("int *")
    names: dict[str, list[str]] = {}
    for table, number in _TABLES.items():
        names[table] = []
        while (name := lib.mpiio_ext_darshan_column(number, len(names[table]), kind)) != ffi.NULL:
            names[table].append(ffi.string(name).decode())
    return names


@functools.cache
def _summary_schema() -> pa.Schema:
    """Return the Arrow schema of the reader's summaries: int64 or float64, as the reader has them."""
    from mpiio_ext._tools import ffi, lib

    kind = ffi.new("int *")
    fields: list[pa.Field] = []
    while (name := lib.mpiio_ext_darshan_column(_TABLES["summary"], len(fields), kind)) != ffi.NULL:
        fields.append(pa.field(ffi.string(name).decode(), pa.float64() if kind[0] else pa.int64()))
    return pa.schema(fields)


@functools.cache
def _buffers() -> dict[str, int]:
    """Return the indexes of the reader's buffers, by name."""
    from mpiio_ext._tools import ffi, lib

    names: dict[str, int] = {}
    while (name := lib.mpiio_ext_darshan_buffer_name(len(names))) != ffi.NULL:
        names[ffi.string(name).decode()] = len(names)
    return names


class _Rows:
    """The rows of one call of the reader, copied where they outlive it."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.tables = {table: self._table(table) for table in _TABLES}

    def bytes(self, name: str) -> Buffer:
        """Return a buffer of the reader, which owns it."""
        from mpiio_ext._tools import ffi, lib

        size = ffi.new("int64_t *")
        data = lib.mpiio_ext_darshan_buffer(self._reader, _buffers()[name], size)
        return ffi.buffer(data, size[0]) if size[0] else b""

    def _table(self, table: str) -> Whole:
        slots = np.frombuffer(self.bytes(table), np.int64)
        found: Whole = slots.reshape(-1, len(_columns()[table])).T.copy()  # a row is a column of the table
        return found

    def numbers(self, table: str, name: str) -> Whole:
        """Return a column of integers (int64); a double is the same bits."""
        found: Whole = self.tables[table][_columns()[table].index(name)]
        return found

    def lengths(self, name: str) -> Lengths:
        """Return the lengths of a column of texts or lists (int32)."""
        return np.frombuffer(self.bytes(f"{name}_lengths"), np.int32)

    def texts(self, name: str, absent: Flags | None = None) -> pa.Array:
        """Return a column of texts, NULL where `absent` (default: where it is empty)."""
        lengths = self.lengths(name)
        return _variable(pa.string(), lengths, self.bytes(name), lengths == 0 if absent is None else absent)

    def summaries(self) -> pa.Table:
        """Return the Arrow table of the summaries, a row a log that was not skipped."""
        schema = _summary_schema()
        arrays = [_column(field.type, self.numbers("summary", field.name)) for field in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    def arrow(self, table: Table, number: str, extra: Mapping[str, pa.Array]) -> pa.Table:
        """Return an Arrow table: columns of numbers from the slots of `number`, the others from `extra` or NULL."""
        rows = self.tables[number].shape[1]
        known = set(_columns()[number])
        schema = table.schema()
        arrays = []
        for field in schema:
            if field.name in known:
                arrays.append(_column(field.type, self.numbers(number, field.name)))
            else:
                found = extra.get(field.name)
                arrays.append(pa.nulls(rows, field.type) if found is None else found)
        return pa.Table.from_arrays(arrays, schema=schema)


def _validity(absent: Flags) -> pa.Buffer | None:
    """Return an Arrow bitmap of what is there, or None when nothing is absent."""
    return pa.py_buffer(np.packbits(~absent, bitorder="little")) if absent.any() else None


def _column(kind: pa.DataType, slots: Whole) -> pa.Array:
    """Return an Arrow array of the type `kind` from slots of the reader."""
    absent = slots == _ABSENT
    if pa.types.is_boolean(kind):
        return pa.array(slots == 1, kind, mask=absent)
    values = slots if pa.types.is_int64(kind) or pa.types.is_float64(kind) else slots.astype(np.int32)
    return pa.Array.from_buffers(kind, len(slots), [_validity(absent), pa.py_buffer(values)])


def _variable(kind: pa.DataType, lengths: Lengths, data: Buffer, absent: Flags) -> pa.Array:
    """Return an Arrow array of texts or of lists of int32."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [_validity(absent), pa.py_buffer(offsets)]
    if pa.types.is_string(kind):
        return pa.Array.from_buffers(kind, len(lengths), [*buffers, pa.py_buffer(bytes(data))])
    items = pa.array(np.frombuffer(data, np.int32).copy(), kind.value_type)
    return pa.Array.from_buffers(kind, len(lengths), buffers, children=[items])


def _constant(text: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), rows)


def _printable(path: str) -> str:
    """Return a path with U+FFFD for bytes that are not UTF-8."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "replace")


def _jobs(rows: _Rows, logs: Sequence[str]) -> pa.Table:
    """Return the Arrow table of jobs; `logs` are those that were not skipped."""
    modules = rows.texts("job_modules", absent=rows.lengths("job_modules") < 0)
    extra = {
        "source": _constant("darshan", len(logs)),
        "log_file": pa.array([_printable(log) for log in logs], pa.string()),
        "exe": rows.texts("job_exe"),
        "app": rows.texts("job_app"),
        "log_version": rows.texts("job_log_version"),
        "modules": _split(modules),
    }
    return rows.arrow(DARSHAN_JOB, "job", extra)


def _split(texts: pa.Array) -> pa.Array:
    """Return lists of the lines of texts; no line where a text is empty."""
    import pyarrow.compute as pc

    lines = pc.split_pattern(texts, "\n")
    empty = pa.array([[]], pa.list_(pa.string()))[0]
    return pc.if_else(pc.equal(texts, ""), empty, lines)


def _files(rows: _Rows) -> pa.Table:
    extra = {
        "source": _constant("darshan", rows.tables["file"].shape[1]),
        "file": rows.texts("file_file"),
        "mount": rows.texts("file_mount"),
        "fs_type": rows.texts("file_fs_type"),
        "osts": _variable(
            pa.list_(pa.int32()),
            rows.lengths("file_osts"),
            rows.bytes("file_osts"),
            rows.numbers("file", "components") == _ABSENT,
        ),
    }
    return rows.arrow(DARSHAN_FILE, "file", extra)


def _with_ends(jobs: pa.Table, files: pa.Table) -> pa.Table:
    """Return the jobs with the time of the first and last access to any of their files, by direction."""
    import pyarrow.compute as pc

    ends = {f"{way}_{end}": how for way in ("read", "write") for end, how in (("start", "min"), ("end", "max"))}
    found = files.group_by("log_id").aggregate(list(ends.items()))
    place = pc.index_in(jobs["log_id"], value_set=found["log_id"].combine_chunks())
    for name, how in ends.items():
        number = jobs.schema.get_field_index(name)
        jobs = jobs.set_column(number, jobs.schema.field(number), found[f"{name}_{how}"].take(place))
    return jobs


def _outcomes(rows: _Rows, logs: Sequence[str]) -> list[Outcome]:
    status, ids, files = (rows.numbers("log", name).tolist() for name in ("status", "log_id", "files"))
    reasons = rows.texts("log_reason", absent=np.zeros(len(logs), bool)).to_pylist()
    unread = "failed to read darshan log file"  # libdarshan-util's words, which do not say why
    reasons = [f"{reason}: it is cut off or damaged" if reason.startswith(unread) else reason for reason in reasons]
    return [
        Outcome(log, _STATUS[state], reason, log_id, {} if state == 2 else {"darshan_job": 1, "darshan_file": count})
        for log, state, reason, log_id, count in zip(logs, status, reasons, ids, files, strict=True)
    ]


def _read(reader: Any, logs: Sequence[str], root: str) -> _Rows:
    """Read as many of `logs` as one call takes.

    Raises
    ------
    AnalyticsError
        There is no memory, or no child process can be started.
    """
    from mpiio_ext._tools import ffi, lib

    paths = b"".join(os.fsencode(os.path.join(root, log)) + b"\0" for log in logs)  # noqa: PTH118 (a path per log)
    done = lib.mpiio_ext_darshan_read(reader, paths, len(logs), PATIENCE_S, MEMORY_BYTES, ROWS_BYTES)
    if done < 0:
        why = os.strerror(ffi.errno) if ffi.errno else ffi.string(lib.mpiio_ext_tools_error_name(done)).decode()
        raise AnalyticsError(f"Darshan logs cannot be read in {root}: no memory or no child process ({why})")
    return _Rows(reader)


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

    Raises
    ------
    AnalyticsError
        As of :func:`convert`.
    """
    from mpiio_ext._tools import ffi, lib

    opened, problem = ffi.new("mpiio_ext_darshan **"), ffi.new("char[512]")
    if lib.mpiio_ext_darshan_open(os.fsencode(library_path()), opened, problem, len(problem)) != 0:
        raise AnalyticsError(ffi.string(problem).decode("utf-8", "replace") or "no memory to read Darshan logs")
    jobs, files = [DARSHAN_JOB.schema().empty_table()], [DARSHAN_FILE.schema().empty_table()]
    summaries = [_summary_schema().empty_table()]
    outcomes: list[Outcome] = []
    try:
        while len(outcomes) < len(logs):
            rows = _read(opened[0], logs[len(outcomes) :], root)
            new = _outcomes(rows, logs[len(outcomes) : len(outcomes) + rows.tables["log"].shape[1]])
            files.append(_files(rows))
            read = _jobs(rows, [outcome.log for outcome in new if outcome.status != "skipped"])
            jobs.append(_with_ends(read, files[-1]))
            summaries.append(rows.summaries())
            outcomes += new
    finally:
        lib.mpiio_ext_darshan_free(opened[0])
    tables = {"darshan_job": jobs, "darshan_file": files, "summary": summaries}
    return with_daos(Converted({name: pa.concat_tables(parts) for name, parts in tables.items()}, outcomes), root)


def convert(logs: Sequence[str], root: str) -> Converted:
    """Convert Darshan logs (of any version that the installed libdarshan-util reads).

    Parameters
    ----------
    logs : paths of the logs, relative to `root`.
    root : folder.

    Returns
    -------
    Converted
        ``darshan_job``, one row a log that was not skipped, in the order of `logs`, and ``darshan_file``; an outcome
        for each log.

    Raises
    ------
    AnalyticsError
        The package ``darshan`` is not installed, or there is no memory or process to read with; never for a bad log.
    """
    found = read_logs(logs, root)
    return Converted({name: found.tables[name] for name in ("darshan_job", "darshan_file")}, found.outcomes)


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
