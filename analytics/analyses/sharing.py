"""How processes share files: N-N, N-M, N-1, by Equation 5.

Problem. Benchmarks write a file per process (N-N) or one file of all (N-1). What do programs do?

Algorithm. R = F / P: files over processes (Equation 5). R = 1 is N-N. A job is N-1 when it has one file, or when all of
its files are opened by all of its processes: files shared one after another, which the paper counts as N-1. Everything
else is N-M: files shared by some of the processes (R < 1), or several files for each (R > 1), in decades of R. Files of
which no byte was read or written do not count, nor do the standard streams, which Darshan records of every program that
prints. Jobs of one process are both patterns, and are left out.

R = 1 is exact. By this rule a job with a file for each process and one input that all processes read is N-M, against
common usage. Such jobs are counted separately, beside the figure.

Source: IOMiner, Section III-D, Equation 5, Figure 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpiio_ext.analytics.analyses.counting import count_words, jobs_of, leading, share, share_words
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.analyses.source import Source, fetch

if TYPE_CHECKING:
    import ibis.expr.types as ir

#: Pattern, what R is, label; in the order of the figure.
_CLASSES = (
    ("N-1", "1/P, or all files shared by all", "N-1"),
    ("N-M", "R < 0.01", "N-M\nR < 0.01"),
    ("N-M", "0.01 ≤ R < 0.1", "N-M\n0.01–0.1"),
    ("N-M", "0.1 ≤ R < 1", "N-M\n0.1–1"),
    ("N-N", "R = 1", "N-N\nR = 1"),
    ("N-M", "1 < R ≤ 10", "N-M\n1–10"),
    ("N-M", "10 < R ≤ 100", "N-M\n10–100"),
    ("N-M", "R > 100", "N-M\nR > 100"),
)


def _per_job(source: Source, origin: str | None) -> ir.Table:
    """Return one row a job of several processes: P, F, and files that all processes open."""
    columns = ["log_id", "file", "bytes_read", "bytes_written", "processes", "ranks"]
    files = jobs_of(source, origin, columns, "darshan_file")
    moved = files["bytes_read"].fill_null(0) + files["bytes_written"].fill_null(0)
    data = files.filter((moved > 0) & ~files["file"].fill_null("").startswith("<") & (files["processes"] > 1))
    everywhere = (data["ranks"] >= data["processes"]).fill_null(False)
    return data.group_by("log_id").agg(
        processes=data["processes"].max(), files=data.count(), shared=everywhere.cast("int64").sum()
    )


def _class_of(jobs: ir.Table) -> ir.StringValue:
    import ibis

    files, processes = jobs["files"].cast("int64"), jobs["processes"].cast("int64")
    return ibis.cases(
        ((files == 1) | (jobs["shared"] == files), 0),
        (files == processes, 4),
        (files * 100 < processes, 1),
        (files * 10 < processes, 2),
        (files < processes, 3),
        (files <= processes * 10, 5),
        (files <= processes * 100, 6),
        else_=7,
    )


def _finding(jobs: Sequence[int]) -> str:
    """Return the message of the figure: the most frequent pattern."""
    first = leading([" ".join(label.split()) for _, _, label in _CLASSES], jobs)
    if first is None:
        return "No pattern is the most frequent"
    return f"{first[0]} is the most frequent pattern: {share_words(first[1])} of the jobs"


def _caption(by_pattern: dict[str, int], one: int, without: int, beside: int) -> str:
    every = sum(by_pattern.values())
    words = []
    if every:
        parts = ", ".join(f"{name} {share_words(share(count, every))}" for name, count in by_pattern.items())
        words.append(f"Of {count_words(every, 'job')} of several processes: {parts}.")
    words.append("R is the number of files over the number of processes.")
    if beside:
        verb = "has" if beside == 1 else "have"
        words.append(
            f"Of N-M, {count_words(beside, 'job')} {verb} a file for each process beside files that all share,"
            " such as one input: N-N but for these."
        )
    if one:
        words.append(f"{count_words(one, 'job')} of one process left out.")
    if without:
        words.append(f"{count_words(without, 'job')} left out that moved no bytes to or from files.")
    return " ".join(words)


def sharing(source: Source, *, origin: str | None = "darshan") -> Result:
    """Return how many jobs share files in which pattern (Equation 5).

    Parameters
    ----------
    source : with the tables ``darshan_job`` and ``darshan_file``.
    origin : logs to count: ``darshan``, ``bench``, ``library``, or all (None).

    Returns
    -------
    Result
        Rows: ``pattern`` (N-1, N-M, N-N), ``ratio`` (the range of R), ``jobs``, ``percent`` of the jobs counted,
        ``n_n_beside_shared`` (jobs among these with a file for each process, beside files that all of them open).
    """
    import pyarrow as pa

    per_job = _per_job(source, origin)
    own = per_job["files"] - per_job["shared"] == per_job["processes"]
    classes = per_job.select(kind=_class_of(per_job), own=(own & (per_job["shared"] > 0)).cast("int64"))
    rows = fetch(classes.group_by("kind").agg(jobs=classes.count(), own=classes["own"].sum())).to_pylist()
    jobs = jobs_of(source, origin, ["processes"])
    every = fetch(jobs.aggregate(jobs=jobs.count(), one=(jobs["processes"] <= 1).cast("int64").sum())).to_pylist()[0]
    counts = {row["kind"]: row["jobs"] for row in rows}
    beside = {row["kind"]: row["own"] or 0 for row in rows}
    known = sum(counts.values())
    by_pattern = {
        name: sum(counts.get(k, 0) for k, (other, _, _) in enumerate(_CLASSES) if other == name)
        for name in ("N-1", "N-M", "N-N")
    }
    numbers = [counts.get(k, 0) for k in range(len(_CLASSES))]
    table = pa.table(
        {
            "pattern": [name for name, _, _ in _CLASSES],
            "ratio": [ratio for _, ratio, _ in _CLASSES],
            "jobs": pa.array(numbers, pa.int64()),
            "percent": pa.array([share(count, known) for count in numbers], pa.float64()),
            "n_n_beside_shared": pa.array([beside.get(k, 0) for k in range(len(_CLASSES))], pa.int64()),
        }
    )
    chart = Chart(
        kind="bars",
        name="sharing",
        title=_finding(numbers),
        data={
            "labels": [label for _, _, label in _CLASSES],
            "series": [{"name": "jobs", "values": numbers}],
            "notes": [share_words(share(count, known)) for count in numbers],
            "x_label": "pattern, and R = files / processes",
            "y_label": "jobs",
        },
    )
    one = every["one"] or 0
    caption = _caption(by_pattern, one, every["jobs"] - one - known, sum(beside.values()))
    return Result(
        name="sharing",
        title="File-sharing patterns",
        unit="jobs",
        caption=caption,
        parameters={"origin": origin},
        table=table,
        charts=[chart] if known else [],
    )
