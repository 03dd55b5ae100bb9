"""The columns of a job's summary: names, types, units, meanings.

Names are those of the published tables of TOKIO wherever they have the quantity, so that a history of either kind can
be read by the same analyses. Prefixes name the source of a value: ``darshan_`` the program's log, ``fs_`` the servers
while it ran, ``fshealth_`` the state of the file system before, ``jobsdb_`` the scheduler, ``topology_`` the machine's
network; ``coverage_factor_`` are quotients of these. A column with ``_`` in front identifies the row.

What is not known is NULL. Binary units stand in the names: ``gibs`` are GiB, ``kib`` KiB.

Where a value is not made as in the published tables: ``_datetime_start`` and ``_datetime_end`` are seconds since 1970
UTC (there: local times taken for UTC). ``darshan_io_time`` counts shared files, too (there: 0 without files of single
ranks). see :mod:`mpiio_ext.analytics.tools.health` for ``fshealth_``.

Source: TOKIO, Section "Data integration"; pytokio, summarize_job; tokio-abcutils, core (coverage factors).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpiio_ext.analytics.tables.schema import Column, Table

#: Counters of POSIX of which the row has sum, number, mean, least and greatest value over the records: unit, meaning.
COUNTERS: dict[str, tuple[str, str]] = {
    "bytes_read": ("B", "read"),
    "bytes_written": ("B", "written"),
    "reads": ("count", "read requests"),
    "writes": ("count", "write requests"),
    "opens": ("count", "opens"),
    "seq_reads": ("count", "reads behind the end of the one before"),
    "seq_writes": ("count", "writes behind the end of the one before"),
    "stats": ("count", "stat calls"),
    "file_not_aligned": ("count", "requests that do not begin at a block of the file system"),
    "mem_not_aligned": ("count", "requests from unaligned memory"),
    "f_meta_time": ("s", "in metadata calls"),
    "f_read_time": ("s", "in reads"),
    "f_write_time": ("s", "in writes"),
}
#: Those that are times.
TIMES = ("f_meta_time", "f_read_time", "f_write_time")
#: Operations of metadata servers in the row. Of GPFS: read, write, readdir, inode_updates.
OPERATIONS = (
    "open",
    "close",
    "mknod",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "rename",
    "getattr",
    "setattr",
    "getxattr",
    "statfs",
    "read",
    "write",
    "readdir",
    "inode_updates",
)

#: Times of a measurement of the bench in the row, in s: meaning.
BENCH_TIMES: dict[str, str] = {
    "open": "opening",
    "close": "closing",
    "plan": "planning in the extension, longest rank",
    "exchange": "exchange among the ranks, longest rank",
    "io": "access to the file system, longest rank",
    "wait": "waiting in the extension, longest rank",
    "independent": "accesses of single ranks in the extension, longest rank",
}
#: Its counts: unit, meaning.
BENCH_COUNTS: dict[str, tuple[str, str]] = {
    "rounds": ("count", "two-phase rounds of the busiest aggregator"),
    "requests": ("count", "requests to the file system, of all ranks"),
    "request_bytes": ("B", "bytes of these requests"),
    "messages": ("count", "messages between nodes"),
    "message_bytes": ("B", "bytes of these messages"),
    "cache_hits": ("count", "page accesses that found the page in a delegate's cache"),
    "cache_misses": ("count", "page accesses that did not"),
}

#: Columns whose names have no pattern: name, type, unit, meaning.
_IDENTITY = (
    ("_jobid", "int64", "", "ID of the job in the scheduler"),
    ("_log_id", "int64", "", "made of the log's job and file name: the key of a row"),
    ("_log", "string", "", "name of the log; of a measurement of the bench its names, as run_id of the store"),
    ("_datetime_start", "float64", "s since 1970 UTC", "begin of the period that the row is about: start of the job"),
    (
        "_datetime_end",
        "float64",
        "s since 1970 UTC",
        "its end: that of the job, and a step in which servers still write",
    ),
    ("_file_system", "string", "", "file system with most of the job's bytes, by the site's name"),
    (
        "_benchmark_id",
        "string",
        "",
        "kind of I/O: names, ranks and bytes a rank of a measurement of the bench; NULL for logs",
    ),
    ("_edges", "string", "", "which steps count at the edges of the period: begin, touch or share"),
    ("_sources", "string", "", "sources of the row, in order, with commas"),
    ("_notes", "string", "", "what is missing or damaged, and why; a line each; NULL if nothing is"),
)
_JOB = (
    ("darshan_jobid", "int64", "", "ID of the job in the log"),
    ("darshan_app", "string", "", "path of the executable"),
    ("darshan_nprocs", "int64", "count", "processes"),
    ("darshan_start_time", "int64", "s since 1970 UTC", "start, in whole seconds"),
    ("darshan_end_time", "int64", "s since 1970 UTC", "end, in whole seconds"),
    ("darshan_walltime", "int64", "s", "end - start + 1, as darshan-parser prints it"),
    ("darshan_total_gibs_posix", "float64", "GiB", "read and written by POSIX"),
    ("darshan_io_time", "float64", "s", "slowest rank on files of its own, and slowest ranks of shared files"),
    ("darshan_agg_perf_by_slowest_posix", "float64", "MiB/s", "bytes of POSIX by darshan_io_time"),
)
_FULLNESS = (
    ("fshealth_ost_count", "int64", "count", "OSTs with a known size"),
    ("fshealth_ost_avg_full_kib", "float64", "KiB", "used, mean of the OSTs"),
    ("fshealth_ost_avg_full_pct", "float64", "%", "used share of all OSTs together"),
)
_HEALTH = (
    ("fshealth_ost_requested_timestamp", "float64", "s since 1970 UTC", "moment that the state is asked of"),
    ("fshealth_ost_actual_timestamp", "float64", "s since 1970 UTC", "of the sample of fullness before it"),
    ("fshealth_ost_next_timestamp", "float64", "s since 1970 UTC", "of the sample behind that"),
    ("fshealth_ost_fullness_lead_secs", "float64", "s", "age of the sample of fullness"),
    ("fshealth_ost_failures_lead_secs", "float64", "s", "age of the map of OSTs"),
    ("fshealth_ost_overloaded_oss_count", "int64", "count", "servers with another number of OSTs than usual"),
    ("fshealth_ost_overloaded_ost_count", "int64", "count", "OSTs on them"),
    ("fshealth_ost_overloaded_pct", "float64", "%", "share of the OSTs on them"),
    ("fshealth_ost_avg_overloaded_ost_per_oss", "float64", "count", "OSTs of such a server; 0 without any"),
    ("fshealth_ost_avg_overloaded_overload_factor", "float64", "", "the same by the usual number; 1 without any"),
    ("fshealth_disk_states_lead_secs", "float64", "s", "GPFS: age of the list of disks"),
    ("fshealth_disk_count", "int64", "count", "GPFS: disks in it"),
    ("fshealth_disk_down_count", "int64", "count", "GPFS: disks that are not up"),
    ("fshealth_disk_not_ready_count", "int64", "count", "GPFS: disks that are not ready: suspended, being emptied …"),
    ("fshealth_disk_faults", "string", "", "GPFS: these disks with their states; NULL without any"),
)
_OTHERS = (
    ("jobsdb_concurrent_jobs", "int64", "count", "jobs that ran in the period, this one included"),
    ("jobsdb_concurrent_nodes", "int64", "count", "their nodes"),
    ("jobsdb_concurrent_nodehrs", "float64", "h", "their nodes by their time in the period"),
    ("jobsdb_frac_missing", "float64", "", "share of the period that no list of jobs covers"),
    ("jobsdb_nodes", "int64", "count", "nodes of the job"),
    ("topology_job_min_radius", "float64", "", "distance of the nearest of the job's nodes from their centre"),
    ("topology_job_max_radius", "float64", "", "distance of the farthest"),
    ("topology_job_avg_radius", "float64", "", "mean distance"),
)
_BENCH = (
    ("bench_method", "string", "", "method of the measurement"),
    ("bench_interface", "string", "", "interface"),
    ("bench_operation", "string", "", "write, read, or both"),
    ("bench_mpi_library", "string", "", "the MPI library, with its version"),
    ("bench_revision", "string", "", "revision of this package"),
    ("bench_repetitions", "int64", "count", "repetitions; performance and answers of sources are their medians"),
    ("bench_spread", "float64", "", "largest less smallest bandwidth of the repetitions, over their median"),
    ("bench_ratio_to_native", "float64", "", "bandwidth over that of the MPI library alone"),
)
Row = tuple[str, str, str, str]


def _darshan() -> Iterator[Row]:
    yield from _JOB
    for way, past in (("read", "read"), ("write", "written")):
        for name, kind, unit, meaning in (
            ("api", "string", "", f"interface by which most bytes were {past}: posix, mpiio, stdio"),
            ("api_bytes", "int64", "B", f"{past} by it"),
            ("api_files", "int64", "count", f"its records with bytes {past}"),
            ("fs", "string", "", f"mount point where most bytes were {past}; _unknown without one"),
            ("fs_bytes", "int64", "B", f"{past} there, by POSIX and STDIO"),
        ):
            yield f"darshan_biggest_{way}_{name}", kind, unit, meaning
    for name, (own, meaning) in COUNTERS.items():
        whole = "float64" if name in TIMES else "int64"
        for how, kind, unit, words in (
            ("tot", whole, own, f"{meaning}, by POSIX: sum over all records"),
            ("ave", "float64", own, f"{meaning}, by POSIX: mean of the records"),
            ("num", "int64", "count", f"records of POSIX that have it: {meaning}"),
            ("min", whole, own, f"{meaning}, by POSIX: least of the records"),
            ("max", whole, own, f"{meaning}, by POSIX: greatest of the records"),
        ):
            yield f"darshan_{how}_{name}_posix", kind, unit, words


def _servers() -> Iterator[Row]:
    for way in ("read", "written"):
        for unit in ("bytes", "gibs"):
            yield f"fs_tot_{unit}_{way}", "float64", "B" if unit == "bytes" else "GiB", f"{way} by all data targets"
        for how, meaning in (("ave", "mean"), ("max", "greatest"), ("min", "least")):
            words = f"{meaning} rate of a step, all targets together"
            yield f"fs_{how}_bytes_{way}_per_sec", "float64", "B/s", words
            yield f"fs_{how}_gibs_{way}_per_sec", "float64", "GiB/s", words
        yield f"fs_frac_zero_{way}", "float64", "", f"share of known values (target, step) without bytes {way}"
    for kind, meaning in (("oss", "data servers"), ("mds", "metadata servers")):
        yield f"fs_ave_{kind}_cpu", "float64", "%", f"mean load of the {meaning}"
        yield f"fs_max_{kind}_cpu", "float64", "%", f"greatest load of any of the {meaning}"
    for name in OPERATIONS:
        yield f"fs_tot_{name}_ops", "float64", "count", f"{name} operations of metadata servers"
        for how, words in (
            ("ave", "mean rate of a server"),
            ("max", "greatest rate of a server in a step"),
            ("min", "least rate of a server in a step"),
        ):
            yield f"fs_{how}_{name}_ops_per_sec", "float64", "1/s", f"{name}: {words}"
    yield "fs_frac_missing", "float64", "", "share of the values (target, step) of the period that no source has"
    yield "fs_step_s", "float64", "s", "length of a step"
    yield "fs_targets", "int64", "count", "data targets with values"


def _health() -> Iterator[Row]:
    yield from _FULLNESS
    for which in ("least", "most"):
        for name, kind, unit, meaning in (
            ("name", "string", "", f"OST with the {which} used"),
            ("id", "int64", "", "its index"),
            ("kib", "float64", "KiB", "used of it"),
            ("pct", "float64", "%", "used share of it"),
        ):
            yield f"fshealth_ost_{which}_full_{name}", kind, unit, meaning
    yield from _HEALTH


def _shares() -> Iterator[Row]:
    for name, what in (
        ("read_bw", "bytes read"),
        ("write_bw", "bytes written"),
        ("bw", "bytes read and written"),
        ("opens", "opens"),
        ("stats", "stat calls, by getattr of the servers"),
        ("nodehrs", "node hours of all jobs"),
    ):
        yield (
            f"coverage_factor_{name}",
            "float64",
            "",
            f"the job's share: {what}, its own by all; NULL if all is 0, or more than 1/6 of it is missing",
        )


def _bench() -> Iterator[Row]:
    yield from _BENCH
    yield from ((f"bench_{name}_s", "float64", "s", f"{meaning}: median") for name, meaning in BENCH_TIMES.items())
    for name, (unit, meaning) in BENCH_COUNTS.items():
        yield f"bench_{name}", "int64", unit, f"{meaning}: median"


#: A row a log, or a measurement of the bench.
SUMMARY = Table(
    "summary",
    "one row a log or measurement: everything that is known of the I/O of a job",
    tuple(Column(*row) for row in (*_IDENTITY, *_darshan(), *_servers(), *_health(), *_OTHERS, *_shares(), *_bench())),
)

#: A row for each thing that is missing or damaged.
NOTES = Table(
    "notes",
    "one row for each source that is missing or damaged",
    (
        Column("_jobid", "int64", "", "as in summary"),
        Column("_log_id", "int64", "", "as in summary"),
        Column("source", "string", "", "darshan, servers, fullness, failovers, disks, jobs, topology, or a connector"),
        Column("status", "string", "", "missing (also in part), partial (rows were lost) or skipped (cannot be read)"),
        Column("what", "string", "", "which file, and why"),
    ),
)
