"""Why large jobs had a low bandwidth: their contributing factors, as parallel coordinates and by application.

Problem. Among the jobs that should have been fast, which were not, and what do they have in common?

Algorithm. The table of jobs gives the jobs of more than 1,000 processes each of which moved at least 10 MB; only the
files of these jobs are read. :func:`mpiio_ext.analytics.factors.extract` chooses the jobs below 1 GB/s on the critical
path (or, on request, over the span of Equation 1, which counts pauses as I/O). It returns the five factors of the
paper, weighted by exclusive time (Equation 2). The number of nodes comes from Slurm, since one node may be the limit. A
line of the figure is a job, a colour an application. Axes go from the smallest to the largest value, on a logarithmic
scale if the largest value is a hundred times the smallest. For each application the table has the job of the median
bandwidth, because jobs of one application are alike, and a mean of several jobs is no job. The table also has the least
and the greatest value of each factor among the application's jobs. If these two values are far apart, the jobs are not
alike after all: Physics1 in Table II has two kinds of jobs.

Source: IOMiner, Section III-F, Figures 11 and 12, Tables I and II.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from mpiio_ext.analytics.analyses.applications import NO_NAME, labels
from mpiio_ext.analytics.analyses.counting import count_words, jobs_of, share, share_words
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.analyses.source import Source, columns_of, expression, fetch, has
from mpiio_ext.analytics.tables.requeued import runs_of_logs
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE
from mpiio_ext.common.units import digits_text, size_text

if TYPE_CHECKING:
    import pyarrow as pa

#: The factors of the figure: name of the factor -> name of the axis.
FACTORS = {
    "small": "small\nrequests",
    "non_consecutive": "non-\nconsecutive",
    "collective": "collective",
    "osts": "OSTs",
    "processes_per_ost": "processes\nper OST",
}
_SHARES = ("small", "non_consecutive")
_AXES = {**FACTORS, "nodes": "nodes", "bandwidth": "bandwidth"}
#: Columns whose least and greatest value among the jobs of an application are printed, too.
_RANGED = ("processes", "nodes", "bandwidth", *FACTORS)
#: Applications with a colour and a row of the legend of their own; lines in a figure.
_MOST_GROUPS, _MOST_LINES = 7, 400
#: Divisor of bytes.
_OVER = {
    "critical": "of the time in which their files are accessed",
    "span": "of the time from the first access to the last one",
}


_DIRECTIONS: tuple[Literal["read", "write"], ...] = ("read", "write")
_MOVED = {"read": "bytes_read", "write": "bytes_written"}


def _candidates(source: Source, limits: Mapping[str, Any], origin: str | None) -> tuple[pa.Table, pa.Table]:
    """Return the jobs that should be fast in one of the directions, and their files, with the columns of the factors.

    One query a table serves both directions; its rows are divided by direction afterwards.
    """
    from mpiio_ext.analytics.factors.catalogue import find
    from mpiio_ext.analytics.factors.extract import JOB_COLUMNS, base_columns

    own = ["job_id", "log_id", "processes", *_MOVED.values(), *JOB_COLUMNS]
    jobs = jobs_of(source, origin, own)
    least = limits["process_bytes"] * jobs["processes"]
    enough = (jobs["bytes_read"] >= least) | (jobs["bytes_written"] >= least)
    large = jobs.filter((jobs["processes"] > limits["processes"]) & enough)
    needed = {name for way in _DIRECTIONS for name in base_columns(find(list(FACTORS), way), way)}
    columns = ["log_id", *(name for name in DARSHAN_FILE.names() if name in needed and name != "log_id")]
    files = jobs_of(source, origin, columns, "darshan_file")
    return fetch(large), fetch(files.semi_join(large, "log_id").order_by("log_id"))


def _of_direction(jobs: pa.Table, files: pa.Table, direction: str, least: float) -> tuple[pa.Table, pa.Table]:
    """Return the jobs that moved enough in one direction, and their files."""
    import pyarrow.compute as pc

    moved, processes = (jobs[name].cast("float64", safe=False) for name in (_MOVED[direction], "processes"))
    jobs = jobs.filter(pc.greater_equal(moved, pc.multiply(processes, float(least))))
    return jobs, files.filter(pc.is_in(files["log_id"], value_set=jobs["log_id"].combine_chunks()))


def _nodes(source: Source, logs: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Return the nodes of the run of each log, by ``log_id``."""
    if not logs or not has(source, "slurm"):
        return {}
    names = ["job_id", "start_time", "end_time", "node_count"]
    slurm = columns_of(expression(source, "slurm"), names)
    runs = fetch(slurm.filter(slurm["job_id"].isin(sorted({log["job_id"] for log in logs}))).select(*names)).to_pylist()
    return {log: run["node_count"] for log, run in runs_of_logs(logs, runs).items()}


def _rows(
    source: Source,
    direction: Literal["read", "write"],
    limits: Mapping[str, Any],
    candidates: tuple[pa.Table, pa.Table],
) -> tuple[list[dict[str, Any]], int]:
    """Return the slow ones among the candidates of a direction, and how many there are that should have been fast."""
    from mpiio_ext.analytics.factors import extract

    jobs, files = _of_direction(*candidates, direction, limits["process_bytes"])
    if not files.num_rows:
        return [], jobs.num_rows
    low, high = limits["from_bandwidth"], limits["bandwidth"]
    every = bool(limits["osts"])
    found = extract(
        files,
        None if every else low,
        None if every else high,
        direction,
        jobs=jobs,
        by="log_id",
        names=list(FACTORS),
        time=limits["time"],
    ).to_pylist()
    speed = "critical_bandwidth" if limits["time"] == "critical" else "bandwidth"
    able = jobs.num_rows
    if limits["osts"]:  # known only after the files were read; fast jobs count, too
        found = [row for row in found if (row["osts"] or 0) >= limits["osts"]]
        able = len(found)
        found = [row for row in found if row[speed] is not None and low <= row[speed] < high]
    logs = {row["log_id"]: row for row in jobs.select(["log_id", "job_id", "start_time"]).to_pylist()}
    nodes = _nodes(source, [logs[row["log_id"]] for row in found])
    return [
        {
            "direction": direction,
            "application": row["app"] or NO_NAME,
            "job_id": logs[row["log_id"]]["job_id"],
            "processes": None if row["processes"] is None else int(row["processes"]),
            "nodes": nodes.get(row["log_id"]),
            "bandwidth": row[speed],
            **{name: row[name] for name in FACTORS},
        }
        for row in found
    ], able


def _by_application(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the job of the median bandwidth of each application and direction, those with most jobs first.

    With ``_least`` and ``_greatest`` of each factor among the jobs, as far as it is known.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["direction"], row["application"]), []).append(row)
    chosen = []
    for group in groups.values():
        group.sort(key=lambda row: row["bandwidth"])
        known = {name: [row[name] for row in group if row[name] is not None] for name in _RANGED}
        least = {f"{name}_least": min(values, default=None) for name, values in known.items()}
        greatest = {f"{name}_greatest": max(values, default=None) for name, values in known.items()}
        chosen.append({**group[(len(group) - 1) // 2], "jobs": len(group), **least, **greatest})
    return sorted(chosen, key=lambda row: (row["direction"], -row["jobs"], row["application"]))


def _shown(applications: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the table as people read it: ranges below each other, where an application has several jobs."""
    found = []
    for row in applications:
        several = row["jobs"] > 1
        found.append({**row, "of": "median job" if several else "only job"})
        for which in ("least", "greatest") if several else ():
            own = {"direction": row["direction"], "application": row["application"], "of": which}
            found.append({**own, **{name: row[f"{name}_{which}"] for name in _RANGED}})
    return found


# ---- the figure ------------------------------------------------------------------------------------------------------


def _end_words(name: str, value: float) -> str:
    if name in _SHARES:
        return f"{100 * value:.0f} %"
    if name == "collective":
        return "yes" if value else "no"
    if name == "bandwidth":
        return f"{size_text(value)}/s"
    return digits_text(value)


def _words(name: str, value: float | None) -> str:
    """Return the meaning of a point on an axis; empty if unknown."""
    title = _AXES[name].replace("-\n", "-").replace("\n", " ")
    return "" if value is None else f"{title}: {_end_words(name, value)}"


def _axis(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = [row[name] for row in rows if row[name] is not None]
    low, high = (0.0, 1.0) if name in (*_SHARES, "collective") else (min(known), max(known)) if known else (0.0, 1.0)
    one = low == high  # its lines meet in the middle, and the ends of the axis are no values
    log = low > 0 and high / low >= 100
    return {
        "name": _AXES[name] + ("\n(log)" if log else ""),
        "low": "" if one else _end_words(name, low),
        "high": "" if one else _end_words(name, high),
        "only": _end_words(name, low) if one else "",
        "from": low,
        "to": high,
        "log": log,
    }


def _place(axis: Mapping[str, Any], value: float | None) -> float | None:
    if value is None:
        return None
    if axis["only"]:
        return 0.5
    if axis["log"]:
        return math.log(value / axis["from"]) / math.log(axis["to"] / axis["from"])
    return float((value - axis["from"]) / (axis["to"] - axis["from"]))


def _chart(rows: Sequence[Mapping[str, Any]], direction: str) -> Chart:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["application"]] = counts.get(row["application"], 0) + 1
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    own = ordered[: _MOST_GROUPS if len(ordered) <= _MOST_GROUPS else _MOST_GROUPS - 1]
    rest = sum(counts[name] for name in ordered[len(own) :])
    group_of = {name: f"{name} ({counts[name]})" for name in own}
    others = f"others ({rest})"
    names = [name for name in _AXES if any(row[name] is not None for row in rows)]
    axes = [_axis(name, rows) for name in names]
    shown = rows if len(rows) <= _MOST_LINES else [rows[k * len(rows) // _MOST_LINES] for k in range(_MOST_LINES)]
    lines = [
        {
            "group": group_of.get(row["application"], others),
            "values": [_place(axis, row[name]) for axis, name in zip(axes, names, strict=True)],
            "words": [_words(name, row[name]) for name in names],
        }
        for row in shown
    ]
    title = f"{direction.capitalize()}s: {count_words(len(rows), 'job')}"
    title += f", of them {counts[ordered[0]]:,} of {ordered[0]}" if len(counts) > 1 else f", all of {ordered[0]}"
    return Chart(
        kind="parallel",
        name=f"root-causes-{direction}",
        title=title,
        data={"axes": axes, "lines": lines, "groups": [*group_of.values(), *([others] if rest else [])]},
    )


def _caption(rows: Sequence[Mapping[str, Any]], able: Mapping[str, int], limits: Mapping[str, Any]) -> str:
    least = size_text(limits["process_bytes"])
    below = f"less than {size_text(limits['bandwidth'])}/s" if math.isfinite(limits["bandwidth"]) else ""
    where = f", on {limits['osts']:,} OSTs or more" if limits["osts"] else ""
    above = f"{size_text(limits['from_bandwidth'])}/s or more" if limits["from_bandwidth"] else ""
    speed = " and ".join(filter(None, [above, below]))
    words = [
        f"Jobs of more than {limits['processes']:,} processes that moved at least {least} each{where}, "
        f"at {speed or 'any bandwidth'} {_OVER[limits['time']]}."
    ]
    named = "slow" if not above else "at this bandwidth"
    for direction, past in (("read", "reading"), ("write", "writing")):
        slow = [row for row in rows if row["direction"] == direction]
        apps = len({row["application"] for row in slow})
        verb = "was" if len(slow) == 1 else "were"
        words.append(
            f"Of {count_words(able[direction], 'such job')} {past}, {len(slow):,} {verb} {named}"
            + (f", of {count_words(apps, 'application')}." if slow else ".")
        )
        known = [row["processes_per_ost"] for row in slow if row["processes_per_ost"] is not None]
        if known:
            percent = share_words(share(sum(value > 3 for value in known), len(known)))
            among = "these" if len(known) == len(slow) else f"the {len(known):,} whose layout is known"
            words.append(f"{percent} of {among} have more than 3 processes per OST.")
        if len(slow) > _MOST_LINES:
            words.append(f"The figure shows {_MOST_LINES} of them, evenly spaced.")
    shown = [name for name in _AXES if any(row[name] is not None for row in rows)]
    if any(row[name] is None for row in rows for name in shown):
        words.append("A dotted line passes an axis for which the job's log has no value.")
    return " ".join(words)


def _schema(rows: Literal["jobs", "applications", "shown"]) -> pa.Schema:
    import pyarrow as pa

    values = {name: pa.int64() if name in ("processes", "nodes") else pa.float64() for name in _RANGED}
    ends = {f"{name}_{end}": kind for name, kind in values.items() for end in ("least", "greatest")}
    return pa.schema(
        [
            ("direction", pa.string()),
            ("application", pa.string()),
            ("job_id" if rows == "jobs" else "jobs", pa.int64()),
            *([("of", pa.string())] if rows == "shown" else []),
            *values.items(),
            *(ends.items() if rows == "applications" else []),
        ]
    )


def _tables(rows: list[dict[str, Any]], *, each_job: bool) -> tuple[pa.Table, pa.Table | None]:
    """Return the table of the result, and the one for people where that is another."""
    import pyarrow as pa

    if each_job:
        return pa.Table.from_pylist(rows, _schema("jobs")), None
    found = _by_application(rows)
    return pa.Table.from_pylist(found, _schema("applications")), pa.Table.from_pylist(_shown(found), _schema("shown"))


def _named(rows: list[dict[str, Any]], areas: Mapping[str, str] | None, *, anonymous: bool) -> list[dict[str, Any]]:
    """Return the rows in their order, with areas or numbers in place of programs and jobs if requested."""
    if anonymous or areas is not None:
        label = labels(sorted({row["application"] for row in rows}), areas or {})
        rows = [{**row, "application": label[row["application"]], "job_id": None} for row in rows]
    return sorted(rows, key=lambda row: (row["direction"], row["application"], row["bandwidth"]))


def _charts(rows: Sequence[dict[str, Any]]) -> list[Chart]:
    known = {row["direction"] for row in rows}
    return [
        _chart([row for row in rows if row["direction"] == direction], direction)
        for direction in _DIRECTIONS
        if direction in known
    ]


def root_causes(
    source: Source,
    *,
    processes: int = 1000,
    process_bytes: float = 10e6,
    bandwidth: float = 1e9,
    from_bandwidth: float = 0.0,
    osts: int = 0,
    time: Literal["critical", "span"] = "critical",
    each_job: bool = False,
    anonymous: bool = False,
    areas: Mapping[str, str] | None = None,
    origin: str | None = "darshan",
) -> Result:
    """Return the contributing factors of large jobs with a low bandwidth.

    Parameters
    ----------
    source : with the tables ``darshan_job``, ``darshan_file`` and, for the nodes, ``slurm``.
    processes : jobs of more processes are looked at.
    process_bytes : bytes that each process moved at least, on average.
    bandwidth : bandwidth below which a job is slow [B/s].
    from_bandwidth : float
        Least bandwidth of the jobs [B/s]; with a `bandwidth` of infinity these are the fast jobs.
    osts : only jobs whose files lie on so many OSTs at least (Tables I and II: all OSTs of the file system).
    time : {"critical", "span"}
        What bytes are divided by for it: the time in which files are accessed, or the span of Equation 1.
    each_job : a row a job, instead of the median one of each application and the ranges.
    anonymous, areas
        As in :func:`mpiio_ext.analytics.analyses.applications.applications`; there are no job IDs then.
    origin : logs to count: ``darshan``, ``bench``, ``library``, or all (None).

    Returns
    -------
    Result
        ``direction``, ``application``, ``jobs`` or ``job_id``, ``processes``, ``nodes``, ``bandwidth`` [B/s], and as
        factors ``small``, ``non_consecutive`` (shares), ``collective`` (0 or 1), ``osts``, ``processes_per_ost``. By
        application of each also the least and the greatest value among its jobs, such as ``small_least``.
    """
    limits = {
        "processes": processes,
        "process_bytes": float(process_bytes),
        "bandwidth": bandwidth,
        "time": time,
        "from_bandwidth": from_bandwidth,
        "osts": osts,
    }
    candidates = _candidates(source, limits, origin)
    found = {direction: _rows(source, direction, limits, candidates) for direction in _DIRECTIONS}
    able: dict[str, int] = {direction: count for direction, (_, count) in found.items()}
    rows = _named([row for slow, _ in found.values() for row in slow], areas, anonymous=anonymous)
    table, shown = _tables(rows, each_job=each_job)
    return Result(
        name="root-causes",
        title="Low bandwidth of large jobs",
        unit="jobs",
        caption=_caption(rows, able, limits),
        parameters={**limits, "bandwidth": bandwidth if math.isfinite(bandwidth) else None, "origin": origin},
        table=table,
        charts=_charts(rows),
        shown=shown,
    )
