"""How sequential the requests of jobs are: the distribution of Equation 3.

Problem. Requests that begin where the one before ended can be put together. How many jobs would gain by that?

Algorithm. P_seq = N_seq / N_tot of each job (Equation 3). N_seq counts the requests that "immediately access the end
byte of the previous I/O operation", Darshan's CONSEC. On request the analysis uses Darshan's SEQ, which counts requests
anywhere behind that byte. Darshan counts neither for STDIO, so that N_tot are the POSIX requests, by their histogram of
sizes. A job without POSIX requests, or of a log without these counters, has no ratio, is left out, and is reported.

Ratios are counted in steps of 0.1 % in one pass, for reads, writes and both; percentiles come from the counts. So they
are the same on every engine, and off by 0.1 % at most. A ratio above 100 % (Darshan counts a first request at offset 0
as consecutive) cannot arise, since a first request is a request.

Source: IOMiner, Section III-C, Equation 3, Figure 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.analyses.counting import count_words, jobs_of, share, share_words
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.analyses.source import Source, fetch
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.tables.schema import SIZE_BINS

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from numpy.typing import NDArray

#: Steps of the ratio.
_STEPS = 1000
_KINDS = ("both", "read", "write")
_COUNTERS = {"consec": "begins where the one before ended", "seq": "begins behind the end of the one before"}


def _total(files: ir.Table, direction: str) -> ir.NumericValue:
    columns = [files[f"{direction}_size_{name}"].fill_null(0) for name in SIZE_BINS]
    total = columns[0]
    for column in columns[1:]:
        total = total + column
    return total


def _per_job(files: ir.Table, counter: str) -> ir.Table:
    """Return one row a log: requests and sequential requests, of the files that have the counters."""
    known = files.filter(files[f"{counter}_reads"].notnull() | files[f"{counter}_writes"].notnull())
    return known.group_by("log_id").agg(
        n_read=_total(known, "read").sum(),
        n_write=_total(known, "write").sum(),
        s_read=known[f"{counter}_reads"].fill_null(0).sum(),
        s_write=known[f"{counter}_writes"].fill_null(0).sum(),
    )


def _steps(part: ir.NumericValue, whole: ir.NumericValue) -> ir.NumericValue:
    """Return the ratio in steps, rounded down; -1 without requests."""
    import ibis

    ratio = (part.cast("float64") * _STEPS / ibis.greatest(whole, 1).cast("float64")).floor().cast("int64")
    return ibis.ifelse(whole > 0, ibis.least(ratio, _STEPS), -1)


def _percentiles(counts: NDArray[np.int64], percents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the smallest ratio [%] that so many percent of the jobs do not exceed."""
    jobs = counts.sum()
    if not jobs:
        return np.full(percents.size, np.nan)
    wanted = np.maximum(1, np.ceil(percents / 100 * jobs))
    steps: NDArray[np.intp] = np.searchsorted(np.cumsum(counts), wanted, side="left")
    return steps.astype(np.float64) * (100.0 / _STEPS)


def _counts(source: Source, origin: str | None, counter: str) -> dict[str, NDArray[np.int64]]:
    sizes = [f"{way}_size_{name}" for way in ("read", "write") for name in SIZE_BINS]
    columns = ["log_id", f"{counter}_reads", f"{counter}_writes", *sizes]
    jobs = _per_job(jobs_of(source, origin, columns, "darshan_file"), counter)
    steps = jobs.select(
        read=_steps(jobs["s_read"], jobs["n_read"]),
        write=_steps(jobs["s_write"], jobs["n_write"]),
        both=_steps(jobs["s_read"] + jobs["s_write"], jobs["n_read"] + jobs["n_write"]),
    )
    rows = fetch(steps.group_by(list(_KINDS)).agg(jobs=steps.count()))
    number = rows["jobs"].to_numpy()
    found = {}
    for kind in _KINDS:
        step = rows[kind].to_numpy()
        found[kind] = np.bincount(step[step >= 0], weights=number[step >= 0], minlength=_STEPS + 1).astype(np.int64)
    return found


def _finding(jobs: NDArray[np.int64]) -> str:
    """Return the message of the figure: how many jobs make most of their requests sequentially."""
    most = share_words(share(int(jobs[_STEPS * 8 // 10 :].sum()), int(jobs.sum())))
    return f"{most} of the jobs make at least 80 % of their requests sequentially"


def _caption(counts: dict[str, NDArray[np.int64]], every: int, counter: str) -> str:
    both = counts["both"]
    jobs = int(both.sum())
    words = [f"A request is sequential when it {_COUNTERS[counter]}."]
    if jobs:
        half, most = int(both[: _STEPS // 2].sum()), int(both[_STEPS * 8 // 10 :].sum())
        words.append(
            f"Of {count_words(jobs, 'job')}, {share_words(share(half, jobs))} make fewer than half of their "
            f"requests sequentially, and {share_words(share(most, jobs))} at least 80 % of them."
        )
    if every > jobs:
        words.append(f"{count_words(every - jobs, 'job')} left out: no POSIX requests, or a log without the counters.")
    return " ".join(words)


def sequential(source: Source, *, counter: str = "consec", origin: str | None = "darshan") -> Result:
    """Return the distribution of the sequential ratio over the jobs (Equation 3).

    Parameters
    ----------
    source : with the tables ``darshan_job`` and ``darshan_file``.
    counter : {"consec", "seq"}
        Darshan's counter that is called sequential.
    origin : logs to count: ``darshan``, ``bench``, ``library``, or all (None).

    Returns
    -------
    Result
        Rows: ``percentile`` of jobs (0 to 100), and the ratio in percent that they do not exceed: ``both``, ``read``,
        ``write``; NULL if no job has requests.
    """
    import pyarrow as pa

    if counter not in _COUNTERS:
        raise AnalyticsError(f"counter {counter!r}: one of {', '.join(_COUNTERS)}")
    counts = _counts(source, origin, counter)
    every = fetch(jobs_of(source, origin, []).agg(jobs=lambda jobs: jobs.count()))["jobs"][0].as_py()
    percents = np.arange(101)
    lines = {kind: _percentiles(counts[kind], percents) for kind in _KINDS}
    columns = {kind: pa.array(line, pa.float64(), from_pandas=True) for kind, line in lines.items()}
    table = pa.table({"percentile": pa.array(percents, pa.int32()), **columns})
    names = {"both": "reads and writes", "read": "reads", "write": "writes"}
    series = [
        {
            "name": f"{names[kind]} ({count_words(int(counts[kind].sum()), 'job')})",
            "x": percents.tolist(),
            "y": np.round(line, 1).tolist(),
        }
        for kind, line in lines.items()
        if counts[kind].sum()
    ]
    chart = Chart(
        kind="lines",
        name="sequential",
        title=_finding(counts["both"]),
        data={
            "series": series,
            "x_label": "jobs, least sequential first [%]",
            "y_label": "sequential requests [%]",
            "x_range": [0, 100],
            "y_range": [0, 100],
        },
    )
    return Result(
        name="sequential",
        title="Sequential I/O",
        unit="%",
        caption=_caption(counts, every, counter),
        parameters={"counter": counter, "origin": origin},
        table=table,
        charts=[chart] if series else [],
    )
