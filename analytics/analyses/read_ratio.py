"""The share of reads in the bytes of jobs: the distribution of Equation 4.

Problem. Is reading worth optimising, or do jobs write checkpoints only?

Algorithm. P_read = B_read / (B_read + B_write) of each job (Equation 4), in bins of 1 %. Jobs that only write and jobs
that only read have bins of their own, so that "no byte read" is not mixed with "few". Bin k holds k % ≤ P_read < k + 1
%, but for the two ends. A job that moved no bytes, or whose counters are unknown, has no ratio and is left out.

Source: IOMiner, Section III-C, Equation 4, Figure 8.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.analyses.counting import count_words, jobs_of, share, share_words
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.analyses.source import Source, fetch

_BINS = 100
#: Bins of their own: nothing read; nothing written.
_WRITE_ONLY, _READ_ONLY = -1, _BINS


def _finding(jobs: list[int]) -> str:
    """Return the message of the figure: how many jobs only write, only read, or do both."""
    only = [share_words(share(jobs[end], sum(jobs))) for end in (0, -1)]
    both = share_words(share(sum(jobs[1:-1]), sum(jobs)))
    return f"{only[0]} of the jobs only write, {only[1]} only read, {both} do both"


def _caption(counts: dict[int, int], left_out: int) -> str:
    jobs = sum(counts.values())
    words = []
    if jobs:
        ends = [share_words(share(counts.get(end, 0), jobs)) for end in (_WRITE_ONLY, _READ_ONLY)]
        mostly = sum(count for number, count in counts.items() if number >= 90)
        words.append(
            f"Of {count_words(jobs, 'job')}, {ends[0]} only write and {ends[1]} only read; in "
            f"{share_words(share(mostly, jobs))} at least 90 % of the bytes are read."
        )
    if left_out:
        words.append(f"{count_words(left_out, 'job')} left out: no bytes moved, or not known.")
    return " ".join(words) or "No jobs."


def read_ratio(source: Source, *, origin: str | None = "darshan") -> Result:
    """Return how many jobs have which read ratio (Equation 4).

    Parameters
    ----------
    source : with the table ``darshan_job``.
    origin : logs to count: ``darshan``, ``bench``, ``library``, or all (None).

    Returns
    -------
    Result
        102 rows: ``bin`` ("0", "0-1", …, "99-100", "100"), ``low`` and ``high`` [%], ``jobs``, ``percent`` of jobs.
    """
    import ibis
    import pyarrow as pa

    jobs = jobs_of(source, origin, ["bytes_read", "bytes_written"])
    read, written = jobs["bytes_read"], jobs["bytes_written"]
    ratio = (read.cast("float64") * _BINS / ibis.greatest(read + written, 1).cast("float64")).floor().cast("int64")
    number = ibis.cases(
        ((read.isnull() | written.isnull() | (read + written <= 0)), None),
        (read == 0, _WRITE_ONLY),
        (written == 0, _READ_ONLY),
        else_=ibis.least(ratio, _BINS - 1),
    )
    binned = jobs.select(bin=number)
    rows = fetch(binned.group_by("bin").agg(jobs=binned.count())).to_pylist()
    counts = {row["bin"]: row["jobs"] for row in rows if row["bin"] is not None}
    left_out = sum(row["jobs"] for row in rows if row["bin"] is None)
    every = sum(counts.values())
    numbers = range(_WRITE_ONLY, _READ_ONLY + 1)
    low = np.clip(np.array(numbers), 0, _BINS)
    high = np.clip(np.array(numbers) + 1, 0, _BINS)
    number_of = [counts.get(k, 0) for k in numbers]
    table = pa.table(
        {
            "bin": [str(a) if a == b else f"{a}-{b}" for a, b in zip(low.tolist(), high.tolist(), strict=True)],
            "low": pa.array(low, pa.float64()),
            "high": pa.array(high, pa.float64()),
            "jobs": pa.array(number_of, pa.int64()),
            "percent": pa.array([share(count, every) for count in number_of], pa.float64()),
        }
    )
    chart = Chart(
        kind="bars",
        name="read-ratio",
        title=_finding(number_of),
        data={
            "x": [k + 0.5 for k in range(_BINS)],
            "series": [{"name": "read and write", "values": number_of[1:-1]}],
            "ends": {"x": [-2, 102], "values": [number_of[0], number_of[-1]], "names": ["write only", "read only"]},
            "x_label": "read ratio: bytes read among bytes moved [%]",
            "y_label": "jobs",
            "x_range": [-4, 104],
            "log": True,
        },
    )
    return Result(
        name="read-ratio",
        title="Read ratio",
        unit="jobs",
        caption=_caption(counts, left_out),
        parameters={"origin": origin},
        table=table,
        charts=[chart] if every else [],
    )
