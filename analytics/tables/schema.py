"""The unified storage schema: every table of the store, its columns, their types, units and meanings.

Problem. Darshan, Slurm, LMT and the bench name and count things differently. A query should not have to know.

Content. One :class:`Table` for each kind of tuple that :meth:`mpiio_ext.analytics.IOMiner.load` returns. Every table
but ``lmt`` is ordered by ``job_id``; ``lmt`` is ordered by time, then OST. A counter that a log does not have is NULL,
never 0. Times are seconds since 1970-01-01 UTC (float64) or durations in seconds; sizes are bytes.

Counters of one file are added up over the ranks of the log: a row of ``darshan_file`` is one file of one log.

Source: IOMiner, Section II-B; Darshan's counter names are those of darshan-util.
"""

from __future__ import annotations

import dataclasses

import pyarrow as pa

__all__ = [
    "DARSHAN_FILE",
    "DARSHAN_JOB",
    "LAYOUT",
    "LMT",
    "OST_WORD_BITS",
    "RUNS",
    "SIZE_BINS",
    "SLURM",
    "TABLES",
    "Column",
    "Table",
    "ost_words",
]

#: OSTs per column of the bitmap (``ost_word_0`` has bit k for OST k); 62, so that no engine meets a sign bit.
OST_WORD_BITS = 62

#: Darshan's histogram of request sizes: name in the columns -> upper bound in bytes (None: no bound). A bin holds its
#: bound: a request of exactly 1 KiB is in 100_1k.
SIZE_BINS: dict[str, int | None] = {
    "0_100": 100,
    "100_1k": 1 << 10,
    "1k_10k": 10 << 10,
    "10k_100k": 100 << 10,
    "100k_1m": 1 << 20,
    "1m_4m": 4 << 20,
    "4m_10m": 10 << 20,
    "10m_100m": 100 << 20,
    "100m_1g": 1 << 30,
    "1g_plus": None,
}


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
    type : str
        ``int32``, ``int64``, ``float64``, ``string``, ``bool``, ``list<int32>`` or ``list<string>``.
    unit : str
        ``B``, ``s``, ``s since 1970 UTC``, ``count``, or ``""``.
    meaning : str
        One line for people.
    """

    name: str
    type: str
    unit: str
    meaning: str

    @property
    def arrow(self) -> pa.DataType:
        """Return the Arrow data type."""
        return _ARROW[self.type]

    @property
    def field(self) -> pa.Field:
        """Return the Arrow field; its metadata has the ``unit``, if there is one."""
        return pa.field(self.name, self.arrow, metadata={"unit": self.unit} if self.unit else None)


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of the store: a name, a line of explanation, and columns in order."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    def schema(self, osts: int = 0) -> pa.Schema:
        """Return the Arrow schema, with units; ``darshan_file`` gets the words of a bitmap of `osts` OSTs."""
        fields = [column.field for column in self.columns]
        if self.name == "darshan_file":
            fields += [pa.field(name, pa.int64()) for name in ost_words(osts)]
        return pa.schema(fields)

    def names(self) -> list[str]:
        """Return the names of the columns, without the words of the OST bitmap."""
        return [column.name for column in self.columns]


def ost_words(osts: int) -> list[str]:
    """Return the names of the columns of a bitmap of `osts` OSTs, from ``ost_word_0``."""
    return [f"ost_word_{word}" for word in range(-(-osts // OST_WORD_BITS))]


_ARROW = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "list<int32>": pa.list_(pa.int32()),
    "list<string>": pa.list_(pa.string()),
}


def _columns(*rows: tuple[str, str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


def _histogram(direction: str) -> tuple[Column, ...]:
    """Return the columns of the POSIX requests by size (Darshan's POSIX_SIZE_READ_0_100 and so on)."""
    return tuple(
        Column(f"{direction}_size_{name}", "int64", "count", f"POSIX {direction} requests of this size")
        for name in SIZE_BINS
    )


#: Activity of a job, or of a file, through POSIX and STDIO together (what reached the file system's interface).
_ACTIVITY = _columns(
    ("bytes_read", "int64", "B", "read through POSIX and STDIO"),
    ("bytes_written", "int64", "B", "written through POSIX and STDIO"),
    ("reads", "int64", "count", "POSIX and STDIO read requests"),
    ("writes", "int64", "count", "POSIX and STDIO write requests"),
    ("opens", "int64", "count", "POSIX and STDIO opens"),
    ("consec_reads", "int64", "count", "POSIX reads that begin where the one before ended"),
    ("consec_writes", "int64", "count", "POSIX writes that begin where the one before ended"),
    ("seq_reads", "int64", "count", "POSIX reads behind the end of the one before"),
    ("seq_writes", "int64", "count", "POSIX writes behind the end of the one before"),
    ("read_time", "float64", "s", "in POSIX and STDIO reads, added up over the ranks"),
    ("write_time", "float64", "s", "in POSIX and STDIO writes, added up over the ranks"),
    ("meta_time", "float64", "s", "in POSIX and STDIO metadata calls, added up over the ranks"),
)

#: Whose tuple it is; in every table about jobs.
_IDENTITY = _columns(
    ("job_id", "int64", "", "ID of the job in the scheduler; of a run of the bench, a number made of its run ID"),
    ("log_id", "int64", "", "ID of the run (positive): of a log of Darshan, or of one job of a log with several"),
    ("source_log", "int64", "", "ID of the log as the manifest has it; that of the run where a log has one run"),
    ("source", "string", "", "darshan, or bench (a run of mpiio_ext.bench), or library (statistics of the extension)"),
)

DARSHAN_JOB = Table(
    "darshan_job",
    "one row a log: a program's run, added up over its files",
    (
        *_IDENTITY,
        *_columns(
            ("log_file", "string", "", "name of the log, relative to its input folder"),
            ("uid", "int64", "", "user ID"),
            ("exe", "string", "", "command line as logged"),
            ("app", "string", "", "file name of the executable"),
            ("start_time", "float64", "s since 1970 UTC", "start of the run"),
            ("end_time", "float64", "s since 1970 UTC", "end of the run"),
            ("run_time", "float64", "s", "duration of the run"),
            ("processes", "int32", "count", "ranks"),
            ("log_version", "string", "", "version of the log's format, of its library"),
            ("partial", "bool", "", "a module ran out of memory, or part of the log could not be read"),
            ("modules", "list<string>", "", "modules with records: POSIX, MPI-IO, LUSTRE …"),
            ("method", "string", "", "of a run of the bench: method (native, even, group_cyclic …)"),
            ("pattern", "string", "", "of a run of the bench: pattern or kernel"),
        ),
        *_ACTIVITY,
        *_columns(
            ("files", "int64", "count", "files opened"),
            ("files_read", "int64", "count", "files with bytes read"),
            ("files_written", "int64", "count", "files with bytes written"),
            ("uses_posix", "bool", "", "has records of POSIX"),
            ("uses_stdio", "bool", "", "has records of STDIO"),
            ("uses_mpiio", "bool", "", "has records of MPI-IO"),
            ("uses_hdf5", "bool", "", "has records of HDF5"),
            ("uses_pnetcdf", "bool", "", "has records of PnetCDF"),
            ("uses_lustre", "bool", "", "has records of Lustre"),
            ("read_start", "float64", "s since 1970 UTC", "first read of any file"),
            ("read_end", "float64", "s since 1970 UTC", "end of the last read of any file"),
            ("write_start", "float64", "s since 1970 UTC", "first write to any file"),
            ("write_end", "float64", "s since 1970 UTC", "end of the last write to any file, or sync of it"),
        ),
    ),
)

DARSHAN_FILE = Table(
    "darshan_file",
    "one row a file of a log, added up over its ranks",
    (
        *_IDENTITY,
        *_columns(
            ("file_id", "int64", "", "Darshan's record ID, as a signed number"),
            ("file", "string", "", "name of the file"),
            ("mount", "string", "", "mount point"),
            ("fs_type", "string", "", "type of the file system: lustre, gpfs …"),
            ("processes", "int32", "count", "ranks of the run"),
            ("ranks", "int32", "count", "ranks that opened the file"),
        ),
        *_ACTIVITY,
        *_histogram("read"),
        *_histogram("write"),
        *_columns(
            ("read_start", "float64", "s since 1970 UTC", "first read of any rank"),
            ("read_end", "float64", "s since 1970 UTC", "end of the last read of any rank"),
            ("write_start", "float64", "s since 1970 UTC", "first write of any rank"),
            ("write_end", "float64", "s since 1970 UTC", "end of the last write of any rank, or sync"),
            ("max_offset_read", "int64", "B", "highest byte read"),
            ("max_offset_written", "int64", "B", "highest byte written"),
            ("unaligned", "int64", "count", "POSIX requests that do not begin at a block of the file system"),
            ("alignment", "int64", "B", "block of the file system, as Darshan saw it"),
            ("fastest_rank_time", "float64", "s", "in I/O, fastest rank (shared files only)"),
            ("slowest_rank_time", "float64", "s", "in I/O, slowest rank (shared files only)"),
            ("fastest_rank_bytes", "int64", "B", "moved by the fastest rank (shared files only)"),
            ("slowest_rank_bytes", "int64", "B", "moved by the slowest rank (shared files only)"),
            ("slowest_rank", "int32", "", "slowest rank (shared files only)"),
            ("root_bytes_written", "int64", "B", "written by rank 0, where ranks are recorded by themselves"),
            ("mpiio_indep_reads", "int64", "count", "independent MPI-IO reads"),
            ("mpiio_indep_writes", "int64", "count", "independent MPI-IO writes"),
            ("mpiio_coll_reads", "int64", "count", "collective MPI-IO reads, also split ones (each rank's call)"),
            ("mpiio_coll_writes", "int64", "count", "collective MPI-IO writes, also split ones (each rank's call)"),
            ("mpiio_nb_reads", "int64", "count", "nonblocking MPI-IO reads"),
            ("mpiio_nb_writes", "int64", "count", "nonblocking MPI-IO writes"),
            ("mpiio_bytes_read", "int64", "B", "read through MPI-IO"),
            ("mpiio_bytes_written", "int64", "B", "written through MPI-IO"),
            ("stripe_size", "int64", "B", "Lustre stripe size; of a composite layout, of its largest component"),
            ("stripe_count", "int64", "count", "Lustre stripe count; of a composite layout, of its largest component"),
            ("stripe_offset", "int64", "", "Darshan's LUSTRE_STRIPE_OFFSET: mostly 0, whatever was asked for"),
            ("components", "int32", "count", "components of the Lustre layout"),
            ("osts", "list<int32>", "", "OSTs of all components, ascending, each once"),
            ("method", "string", "", "file-domain method of the extension (source library)"),
            ("rounds", "int64", "count", "rounds of two-phase I/O of the extension (source library)"),
            ("exchange_time", "float64", "s", "in the exchange of the extension (source library), all ranks"),
            ("storage_time", "float64", "s", "in the storage of the extension (source library), all ranks"),
        ),
    ),
)

#: The columns of ``darshan_file`` that say which Lustre layout a file has.
LAYOUT: tuple[str, ...] = ("stripe_size", "stripe_count", "stripe_offset", "components")

SLURM = Table(
    "slurm",
    "one row a run of a job of the scheduler: a job that was requeued has several",
    _columns(
        ("job_id", "int64", "", "ID of the job (of an array's task, its own)"),
        ("job_name", "string", "", ""),
        ("user", "string", "", ""),
        ("account", "string", "", ""),
        ("partition", "string", "", ""),
        ("qos", "string", "", ""),
        ("state", "string", "", "COMPLETED, FAILED, TIMEOUT …"),
        ("exit_code", "int32", "", ""),
        ("submit_time", "float64", "s since 1970 UTC", ""),
        ("start_time", "float64", "s since 1970 UTC", ""),
        ("end_time", "float64", "s since 1970 UTC", "NULL while it runs"),
        ("run_time", "float64", "s", "duration"),
        ("node_count", "int32", "count", "nodes allocated"),
        ("cores", "int32", "count", "CPUs allocated"),
        ("tasks", "int32", "count", "tasks of the largest step"),
        ("nodes", "list<string>", "", "names of the nodes"),
    ),
)

LMT = Table(
    "lmt",
    "one row a step of 5 s and an OST: what a server of the file system moved",
    _columns(
        ("time", "float64", "s since 1970 UTC", "start of the half-open step, a multiple of 5"),
        ("ost", "int32", "", "index of the OST"),
        ("ost_name", "string", "", "name of the OST"),
        ("file_system", "string", "", "name of the file system"),
        ("bytes_read", "float64", "B", "in this step; NULL where LMT lost it"),
        ("bytes_written", "float64", "B", "in this step; NULL where LMT lost it"),
    ),
)

RUNS = Table(
    "runs",
    "one row a measurement of mpiio_ext.bench, or a program's accesses by one method, with hints and statistics",
    _columns(
        ("job_id", "int64", "", "same as in darshan_job and darshan_file"),
        ("log_id", "int64", "", "same as in darshan_job and darshan_file"),
        ("source_log", "int64", "", "same as in darshan_job and darshan_file"),
        ("run_id", "string", "", "ID of the run that the bench, or the library, gave"),
        ("time", "float64", "s since 1970 UTC", "start"),
        ("kind", "string", "", "pattern or kernel; program: not the bench, but statistics of the library"),
        ("pattern", "string", "", "name of the pattern, kernel or program"),
        ("interface", "string", "", "mpiio, hdf5, pnetcdf, netcdf4, posix"),
        ("operation", "string", "", "write, read, or both"),
        ("phase", "string", "", "part of a kernel that is timed by itself; NULL if it has none"),
        ("method", "string", "", "native, even, group_cyclic …"),
        ("ranks", "int32", "count", ""),
        ("bytes", "int64", "B", "moved by the measurement"),
        ("seconds", "float64", "s", "median over the repetitions; of a program, the time in which files were accessed"),
        ("bandwidth", "float64", "B/s", ""),
        ("verified", "bool", "", "the bytes were compared"),
        ("family", "string", "", "MPI library"),
        ("hints", "string", "", "hints in force, as JSON"),
        ("statistics", "string", "", "the extension's statistics, as JSON"),
    ),
)

#: Every table, by name.
#:
#: :meta hide-value:
TABLES: dict[str, Table] = {table.name: table for table in (DARSHAN_JOB, DARSHAN_FILE, SLURM, LMT, RUNS)}
