"""Through which interface jobs of which size do their I/O.

Problem. MPI-IO and its collective optimisations are twenty years old. Who uses them?

Algorithm. Jobs are classed by their processes: One, Small (2 to 1,024), Medium (1,025 to 8,192), Large (more). A job
counts as *MPI-IO, collective* when it made a collective MPI-IO call on any file, else as *MPI-IO, independent* when it
has records of MPI-IO, else as *POSIX* when it has records of POSIX or STDIO, else as *none*. HDF5 and PnetCDF lie on
top of MPI-IO or POSIX and are counted beside it.

Source: IOMiner, Section III-E, Figure 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.analyses.counting import count_words, jobs_of, leading, share, share_words
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.analyses.source import Source, fetch

if TYPE_CHECKING:
    import ibis.expr.types as ir

#: Class -> (name, processes from, to); None: no bound.
CLASSES = (("One", 1, 1), ("Small", 2, 1024), ("Medium", 1025, 8192), ("Large", 8193, None))
_KINDS = ("POSIX", "MPI-IO, independent", "MPI-IO, collective", "none")


def _jobs(source: Source, origin: str | None) -> ir.Table:
    """Return one row a job: its class, its interface, HDF5, PnetCDF."""
    import ibis

    uses = [f"uses_{name}" for name in ("posix", "stdio", "mpiio", "hdf5", "pnetcdf")]
    jobs = jobs_of(source, origin, ["log_id", "processes", *uses])
    files = jobs_of(source, origin, ["log_id", "mpiio_coll_reads", "mpiio_coll_writes"], "darshan_file")
    made = files["mpiio_coll_reads"].fill_null(0) + files["mpiio_coll_writes"].fill_null(0)
    collective = files.filter(made > 0).select("log_id").distinct().mutate(collective=True)
    joined = jobs.left_join(collective, "log_id")
    processes = joined["processes"]
    return joined.select(
        size=ibis.cases(
            (processes.isnull(), -1),
            (processes <= 1, 0),
            (processes <= CLASSES[1][2], 1),
            (processes <= CLASSES[2][2], 2),
            else_=3,
        ),
        kind=ibis.cases(
            (joined["collective"].fill_null(False), 2),
            (joined["uses_mpiio"].fill_null(False), 1),
            ((joined["uses_posix"].fill_null(False) | joined["uses_stdio"].fill_null(False)), 0),
            else_=3,
        ),
        hdf5=joined["uses_hdf5"].fill_null(False).cast("int64"),
        pnetcdf=joined["uses_pnetcdf"].fill_null(False).cast("int64"),
    )


def _range_words(low: int, high: int | None) -> str:
    return f"> {low - 1:,}" if high is None else f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _rows(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    counts = {(row["size"], row["kind"]): row for row in found}
    rows = []
    for number, (name, low, high) in enumerate(CLASSES):
        of_class = [row for row in found if row["size"] == number]
        total = sum(row["jobs"] for row in of_class)
        for kind, label in enumerate(_KINDS):
            row = counts.get((number, kind), {"jobs": 0, "hdf5": 0, "pnetcdf": 0})
            rows.append(
                {
                    "class": name,
                    "processes": _range_words(low, high),
                    "interface": label,
                    "jobs": row["jobs"],
                    "percent": share(row["jobs"], total),
                    "hdf5": row["hdf5"],
                    "pnetcdf": row["pnetcdf"],
                }
            )
    return rows


def _finding(rows: list[dict[str, Any]]) -> str:
    """Return the message of the figure: the most frequent interface."""
    jobs = [sum(row["jobs"] for row in rows if row["interface"] == kind) for kind in _KINDS]
    first = leading(_KINDS, jobs)
    if first is None:
        return "No interface is the most frequent"
    return f"{first[0]} is the most frequent interface: {share_words(first[1])} of the jobs"


def _caption(rows: list[dict[str, Any]], unknown: int) -> str:
    words = []
    for name, _, _ in CLASSES:
        of_class = [row for row in rows if row["class"] == name]
        total = sum(row["jobs"] for row in of_class)
        if total:
            posix = next(row["percent"] for row in of_class if row["interface"] == "POSIX")
            words.append(f"{name}: {count_words(total, 'job')}, {share_words(posix)} of them POSIX only.")
    libraries = ", ".join(
        f"{label} in {count_words(sum(row[key] for row in rows), 'job')}"
        for key, label in (("hdf5", "HDF5"), ("pnetcdf", "PnetCDF"))
    )
    words.append(f"Beside these: {libraries}.")
    if unknown:
        words.append(f"{count_words(unknown, 'job')} left out: the number of processes is not known.")
    return " ".join(words)


def middleware(source: Source, *, origin: str | None = "darshan") -> Result:
    """Return through which interface jobs of which size do their I/O.

    Parameters
    ----------
    source : with the tables ``darshan_job`` and ``darshan_file``.
    origin : logs to count: ``darshan``, ``bench``, ``library``, or all (None).

    Returns
    -------
    Result
        Rows: ``class``, ``processes``, ``interface``, ``jobs``, ``percent`` of the class, and how many of the jobs
        have records of ``hdf5`` and ``pnetcdf``.
    """
    import pyarrow as pa

    jobs = _jobs(source, origin)
    found = fetch(
        jobs.group_by(["size", "kind"]).agg(jobs=jobs.count(), hdf5=jobs["hdf5"].sum(), pnetcdf=jobs["pnetcdf"].sum())
    ).to_pylist()
    unknown = sum(row["jobs"] for row in found if row["size"] == -1)
    rows = _rows(found)
    of_class = {name: sum(row["jobs"] for row in rows if row["class"] == name) for name, _, _ in CLASSES}
    schema = pa.schema(
        [
            ("class", pa.string()),
            ("processes", pa.string()),
            ("interface", pa.string()),
            ("jobs", pa.int64()),
            ("percent", pa.float64()),
            ("hdf5", pa.int64()),
            ("pnetcdf", pa.int64()),
        ]
    )
    shown = [kind for kind in _KINDS if any(row["jobs"] for row in rows if row["interface"] == kind)]
    chart = Chart(
        kind="bars",
        name="middleware",
        title=_finding(rows),
        data={
            "labels": [
                f"{name}\n{_range_words(low, high)}\n{count_words(of_class[name], 'job')}"
                for name, low, high in CLASSES
            ],
            "series": [
                {"name": kind, "values": [row["percent"] for row in rows if row["interface"] == kind]} for kind in shown
            ],
            "x_label": "processes of the job",
            "y_label": "jobs of the class [%]",
            "y_range": [0, 100],
            "legend": True,
        },
    )
    return Result(
        name="middleware",
        title="Middleware by process count",
        unit="jobs",
        caption=_caption(rows, unknown),
        parameters={"origin": origin},
        table=pa.Table.from_pylist(rows, schema=schema),
        charts=[chart] if any(of_class.values()) else [],
    )
