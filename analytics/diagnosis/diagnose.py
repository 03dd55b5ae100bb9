"""Diagnose a job: why its reads or writes took as long as they did, in plain language.

Problem. A user has a slow job and its log. The numbers of factors show neither the factor that matters nor a remedy.

Algorithm. The sweep line finds the files that the job waited for. Rules inspect these files (:mod:`.causes`); each
finding has the share of the critical time that it explains. DXT and HEATMAP of a log (:mod:`.activity`) confirm a
cause, or refute it. The findings are ordered by confidence, then by that time.

Guarantees. I/O that is a trivial part of the run time (:attr:`Limits.trivial`) is reported as trivial, and has no
causes. A job whose bandwidth is not low (:attr:`Limits.fast`) is reported as such, and has only causes whose cost is
measured or computed. Findings of high confidence come first, and only they are called the cause: else no cause stands
out. Facts that a log does not have are not guessed: they are listed as unknown, with the missing module. If no rule
applies, the report states it. The anonymous form is made of rows without names, ids and dates, and its numbers have two
digits.

Source: IOMiner, Sections II-D and III-F.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.diagnosis.case import MOST_NAMES, Case, Circumstances
from mpiio_ext.analytics.diagnosis.causes import found_in
from mpiio_ext.analytics.diagnosis.causes_metadata import metadata, opening
from mpiio_ext.analytics.diagnosis.causes_time import late_to_open, without_requests
from mpiio_ext.analytics.diagnosis.limits import Limits
from mpiio_ext.analytics.diagnosis.model import LOST, Diagnosis, Evidence, Finding
from mpiio_ext.analytics.diagnosis.together import LogTime, log_time
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.factors.catalogue import factors
from mpiio_ext.analytics.factors.equations import bandwidth
from mpiio_ext.analytics.factors.extract import with_jobs
from mpiio_ext.analytics.factors.files import BACKGROUND, Files
from mpiio_ext.analytics.factors.storage import alike
from mpiio_ext.analytics.ledger import of_files
from mpiio_ext.analytics.sweep.paths import Direction, check_direction
from mpiio_ext.analytics.tables.plain import column_of_array
from mpiio_ext.common.units import count_text
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.tools.health import DiskStates

#: What is unknown without a module of Darshan: (module, factors, what they are about).
_MODULES = (
    ("POSIX", ("small", "non_consecutive", "unaligned"), "sizes and order of requests"),
    ("MPI-IO", ("collective", "no_collective"), "whether collective calls were used"),
    ("LUSTRE", ("osts", "processes_per_ost", "slow_ost"), "OSTs, contention, slow OSTs"),
)
#: Why a rank's calls may take longer than the critical time.
_ALL_CALLS = "whole calls, on all files"
#: Modules whose bytes are not among those of POSIX, and are counted by the connector where it can.
_UNCOUNTED = ("DFS", "DAOS")
#: Factor -> (limit's name, words before its value, unit). What is no fault by itself is not here: one file alone,
#: pauses, POSIX.
_BEYOND = {
    "processes_per_ost": ("contention", "processes per OST", "count"),
    "unaligned": ("unaligned", "requests that do not begin at a block boundary", "share"),
    "root_writes": ("root", "bytes that rank 0 wrote", "share"),
    "metadata": ("metadata", "metadata calls, as a share of the time in all calls", "share"),
    "straggler": (
        "straggler",
        "gap between the slowest and an average rank of a file, as a share of the time of the slowest rank",
        "share",
    ),
    "serialised": ("serialised", "time in which the files do not overlap", "share"),
    "slow_file": ("slow", "time for a byte of the slowest file, over the median of alike files", "ratio"),
    "slow_ost": ("slow", "time for a byte on the slowest OST, over the median of the OSTs", "ratio"),
}


def diagnose(
    job: Mapping[str, Any] | Sequence[Mapping[str, Any]] | Any,
    files: Sequence[Mapping[str, Any]] | Any,
    direction: Direction | None = None,
    *,
    limits: Limits | None = None,
    background: float = BACKGROUND,
    anonymous: bool = False,
    osts: int | None = None,
    activity: Activity | None = None,
    own_share: float | None = None,
    disks: DiskStates | None = None,
    without_mpi: bool = False,
) -> Diagnosis:
    """Return the diagnosis of one job.

    Parameters
    ----------
    job : mapping, sequence of mappings, or pyarrow.Table
        The job's row of ``darshan_job``, one for each of its logs.
    files : sequence of mappings, or pyarrow.Table
        Its rows of ``darshan_file``.
    direction : {"read", "write"}, optional
        None: the one with more critical time.
    limits : Limits, optional
        From which values on something is a cause.
    background : float
        Files that are left out of the sweep; see :class:`mpiio_ext.analytics.factors.files.Files`.
    anonymous : bool
        Without names of files, programs and OSTs, without ids and dates; numbers rounded to two digits.
    osts : int, optional
        OSTs that are known to exist where the files lie: advice names no more.
    activity : Activity, optional
        Facts of the log's DXT and HEATMAP (:func:`.activity_read.activity_of`).
    own_share : float, optional
        The job's bytes over those that its OSTs moved meanwhile, if the servers show it.
    disks : DiskStates, optional
        Which disks were down or not ready when the job began (:func:`mpiio_ext.analytics.tools.health.disk_states`).
    without_mpi : bool
        No process of the job has initialised MPI: advice names nothing that only MPI programs can do.

    Raises
    ------
    ArgumentError
        Rows of several jobs.
    """
    limits = limits or Limits()
    jobs, table = _arrow(job), _arrow(files)
    _check_one_job(jobs, table)
    who = _who(jobs, anonymous)
    if direction is None:
        read, write = (_files(table, jobs, way, background) for way in ("read", "write"))
        direction = "read" if _time(read) > _time(write) else "write"
    check_direction(direction)
    view = _files(table, jobs, direction, background)
    if not _time(view) > 0:
        known = Circumstances(limits=limits, anonymous=anonymous, activity=activity)
        return _without_times(who, Case(view, known) if view.jobs else None, direction, jobs)
    known = Circumstances(
        limits=limits,
        anonymous=anonymous,
        osts=osts,
        activity=activity,
        own_share=own_share,
        disks=disks,
        without_mpi=without_mpi,
    )
    return _of_case(who, direction, Case(view, known), jobs)


def _check_one_job(jobs: pa.Table, files: pa.Table) -> None:
    ids = {value for rows in (jobs, files) if "job_id" in rows.schema.names for value in rows["job_id"].to_pylist()}
    if len(ids) > 1:
        raise ArgumentError(f"a diagnosis is of one job, and these are rows of {len(ids)}: {sorted(ids)[:5]}")


def _of_case(who: str, direction: Direction, case: Case, jobs: pa.Table) -> Diagnosis:
    found, seen = _findings(case)
    return Diagnosis(
        job=who,
        direction=direction,
        facts=_facts(case),
        critical_files=_critical(case),
        findings=found,
        notes=[*seen, *_notes(case, {each.cause for each in found})],
        unknown=_unknown(case, jobs),
        not_low=_not_low(case),
        trivial=_trivial(case),
        beyond=_beyond(case),
        unseen=_unseen(case),
    )


def time_of_log(jobs: pa.Table, files: pa.Table, activity: Activity | None = None) -> LogTime:
    """Return when a log ran and its time in I/O; `jobs` and `files` are its rows."""
    row = jobs.to_pylist()[0]
    start, run_time = (float("nan") if row[name] is None else float(row[name]) for name in ("start_time", "run_time"))
    view = _files(files, jobs, "write", BACKGROUND)
    known = None if activity is None else activity.ledger
    return log_time(of_files(known, view, int(row["processes"] or 1), run_time), activity, start, run_time)


def _without_times(who: str, case: Case | None, direction: Direction, jobs: pa.Table) -> Diagnosis:
    """Return what can be said of a job that moves nothing in a direction: it may spend its time on metadata."""
    unknown = [f"the time of {direction}s: the log has no times of {direction}s for any file", *uncounted(jobs)]
    found = None if case is None or case.trivial else late_to_open(case) or metadata(case) or opening(case)
    unseen = "" if case is None else _unseen(case)
    return Diagnosis(job=who, direction=direction, findings=[found] if found else [], unknown=unknown, unseen=unseen)


def _unseen(case: Case) -> str:
    """Return that files are mapped into memory, where they are: accesses there are no calls, and in no number."""
    rows = [row for row, calls in enumerate(case.calls) if calls.maps]
    if not rows:
        return ""
    more = f" and {case.value(len(rows) - 1):.0f} more" if len(rows) > 1 else ""
    return (
        f"The program maps {case.name(rows[0])}{more} into memory (mmap): the log shows neither how many bytes the"
        " program accesses there, nor how long these accesses take."
    )


def uncounted(jobs: pa.Table) -> list[str]:
    """Return which modules have bytes that may not all be counted: of DAOS, in a log that is partial."""
    there = {name for row in jobs.to_pylist() if row.get("partial") for name in row.get("modules") or ()}
    return [
        f"bytes and times of module {name}: the job used DAOS, and the modules of DAOS do not count all of them"
        for name in _UNCOUNTED
        if name in there
    ]


def _arrow(rows: pa.Table | Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> pa.Table:
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        return rows
    found = [rows] if isinstance(rows, Mapping) else list(rows)
    names = dict.fromkeys(name for row in found for name in row)  # Arrow would take those of the first row alone
    return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in found])


@functools.cache
def _of_mpi() -> str:
    """Return an expression for the files in which MPI libraries store data of their own, not the program's."""
    from mpiio_ext.pioneer.sanitize.system_files import OF_MPI, expression

    return rf"(?s)^(?:{expression(OF_MPI)})$"


def _files(table: pa.Table, jobs: pa.Table, direction: Direction, background: float) -> Files:
    """Return the program's files as one group, with what only the job's row knows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "file" in table.schema.names and not pa.types.is_null(table.schema.field("file").type):
        named, of_mpi = pc.is_valid(table["file"]), pc.match_substring_regex(table["file"], _of_mpi())
        table = table.filter(pc.invert(pc.and_kleene(named, of_mpi)))
    if "log_id" in table.schema.names or "job_id" in table.schema.names:
        table = with_jobs(table, jobs, "job_id")
    table = table.append_column("this_job", column_of_array(np.zeros(table.num_rows, np.int64)))
    return Files(table, direction, "this_job", background=background)


def _time(files: Files) -> float:
    return float(np.nan_to_num(files.critical_time[0])) if files.jobs else 0.0


def _who(jobs: pa.Table, anonymous: bool) -> str:
    row = jobs.to_pylist()[0] if jobs.num_rows else {}
    if anonymous or not row:
        return "A job"
    number = f"job {row['job_id']}" if row.get("job_id") is not None else "a job"
    return f"{row['app']} ({number})" if row.get("app") else number.capitalize()


def _streams(files: Files) -> str:
    """Return that standard streams are among the files with times, where they are."""
    names = files.table["file"].to_pylist() if "file" in files.table.schema.names else []
    among = any(name and name.startswith("<STD") and timed for name, timed in zip(names, files.timed(), strict=False))
    return ", including standard streams" if among else ""


def _facts(case: Case) -> list[Evidence]:
    files = case.files
    first, last = files.counted_span
    moved = float(files.sum(files["{bytes}"])[0])
    verb = "written" if files.direction == "write" else "read"
    return [
        *case.evidence(f"bytes {verb}", moved, "B"),
        *case.evidence("time from the first access to the last", float((last - first)[0]), "s"),
        *case.evidence("bandwidth from the first access to the last", float(bandwidth([moved], first, last)[0]), "B/s"),
        *case.evidence(
            "critical time (from the first to the last access of each critical file, counted once)", case.swept, "s"
        ),
        *(
            case.evidence(f"{case.of_time} ({case.time_meant})", case.time, "s")
            if case.of_time != "critical time"
            else []
        ),
        *(case.evidence(f"{case.of_calling} ({_ALL_CALLS})", case.calling, "s") if case.calling > case.time else []),
        *(
            case.evidence(f"bandwidth over the {case.of_calling}, each byte counted once", case.of_distinct, "B/s")
            if case.of_distinct < case.bandwidth
            else []
        ),
        *case.evidence(f"bandwidth over the {case.of_calling}", case.bandwidth, "B/s"),
        *case.evidence(f"{case.of_calling}, as a share of the run time", case.of_run, "share"),
        *case.evidence(f"files {verb}{_streams(files)}", float(files.timed().sum()), "count"),
        *case.evidence("critical files", float(len(case.order)), "count"),
        *case.evidence("processes", case.processes, "count"),
    ]


def _critical(case: Case) -> list[tuple[str, Evidence]]:
    shown = []
    for row in case.order[:MOST_NAMES]:
        share = case.value(case.exclusive[row] / case.time) if case.time > 0 else 0.0
        shown.append((case.name(row), Evidence(worded(share, "share"), case.value(case.exclusive[row]), "s")))
    return shown


def _not_low(case: Case) -> str:
    if not case.fast:
        return ""
    here, bound = (worded(value, "B/s") for value in (case.value(case.of_distinct), case.limits.fast))
    of = " of distinct bytes" if here != worded(case.value(case.bandwidth), "B/s") else ""
    moved, time = worded(case.value(case.of_distinct * case.calling), "B"), worded(case.value(case.calling), "s")
    done = f"{'wrote' if case.write else 'read'} {moved}{of} in {time} ({case.of_calling})"
    return f"the bandwidth is not low: all ranks together {done}, {here} (low: below {bound}; option --low-bandwidth)"


def _trivial(case: Case) -> str:
    if not case.trivial:
        return ""
    way, what, spent = case.files.direction, f"the {case.of_calling}", case.io_time
    if case.in_all_calls < spent:
        what, spent = "the sum of the times of all ranks in I/O calls", case.in_all_calls
    elif spent > case.calling:
        of = f"{way}s and syncs" if case.busiest(way, "sync") >= spent else "opens, closes, stat calls and seeks"
        what = f"the time of the slowest rank in {of}"
    share, time = worded(case.value(spent / case.run_time), "share"), worded(case.value(spent), "s")
    if case.activity is not None and case.activity.lost:
        left = f"by the records that are left, {what} is {share} of the run time ({time})"
        return f"{left}. {LOST[0].upper()}{LOST[1:]}"
    return f"{what} is {share} of the run time ({time}), too little to be worth tuning"


def _findings(case: Case) -> tuple[list[Finding], list[str]]:
    """Return causes and observations; if the bandwidth is not low, a cause without a proven cost is an observation."""
    if case.trivial:
        return [], []
    found = found_in(case)
    if not case.fast:
        return found, []
    seen = [
        f"{each.title} The time is {'at most ' * each.at_most}{worded(each.time, 's')}"
        f" ({'; '.join(one.text() for one in each.evidence)}). Since the bandwidth is not low, the finding is no cause."
        for each in found
        if not each.costs
    ]
    return [each for each in found if each.costs], seen


def _least(case: Case, share: float) -> str:
    """Return a lower bound of a share in words: less than all is never "100 %"."""
    text = worded(case.value(share), "share")
    return "more than 99 %" if text == "100 %" and share < 1 else f"at least {text}"


def _idle(case: Case, outside: float) -> float:
    """Return the share of the run time in which no rank reads or writes, at least; `outside` of all accesses to files.

    MPI-IO calls begin before their accesses, and end after these: then the calls of all ranks count, as if in turn.
    """
    if not case.ledger.mean("read", "write", layer="MPI-IO").least > 0:
        return outside
    return min(outside, max(0.0, 1 - case.ledger.clock("read", "write").most / case.run_time))


def _notes(case: Case, found: Set[str]) -> list[str]:
    """Return what was seen and is no cause; `found`: the names of the causes."""
    notes, way, aside = [], case.files.direction, int(case.files.background().sum())
    other: Direction = "write" if way == "read" else "read"
    these, every = (" a critical file" if it else "" for it in (aside, aside or case.files.background(other).any()))
    small, jumps = case.small, case.per_job["non_consecutive"]
    if small >= case.limits.small and jumps < case.limits.non_consecutive and "small_requests" not in case.about:
        notes.append(
            f"{worded(case.value(small), 'share')} of the requests are small, but most of them begin where the one"
            " before ended: the operating system can merge such requests."
        )
    gaps, of_logs = case.per_job["gaps"], float(case.files.by_log("run_time")[0]) / (case.run_time or float("nan"))
    idle = _idle(case, float(np.clip(1 - (1 - case.per_job["idle"]) * of_logs, 0, 1)))
    if gaps >= case.limits.gaps and case.calling <= case.time:  # else it is in calls meanwhile
        notes.append(
            f"Between the first {way} and the last one, no rank {way}s{these} for {_least(case, gaps)} of the"
            f" time. So the bandwidth from the first {way} to the last is lower than the bandwidth of the {way}s."
        )
    lost = case.activity is not None and case.activity.lost
    if idle >= case.limits.gaps and case.calling <= case.time and not (lost or case.trivial):
        others = not every and case.ledger.slowest().least > (1 - idle) * case.run_time
        beside = "; calls that neither read nor write take a part of this time" if others else ""
        notes.append(f"For {_least(case, idle)} of the run time, no rank reads or writes{every}{beside}.")
    called = case.busiest(case.files.direction) / case.time if case.time > 0 else 0.0  # also on other files
    if case.busy < case.limits.busy and called < case.limits.busy:
        notes.append(
            f"At most {worded(case.value(case.busy), 'share')} of the critical time passes in calls: the files are open"
            " for long, and accessed only now and then. So the critical time shows little about the I/O."
        )
    calls = [without_requests(case, place) for place in case.order]
    idle, called = (sum(each) for each in zip(*calls, strict=True)) if calls else (0.0, 0.0)
    if idle >= 0.2 * case.time > 0 and not found & {"exchange", "late_rank"}:  # these have the same time
        least, source = ("", " (DXT)") if any(case.complete) else ("at least " if idle < 0.99 * called else "", "")
        notes.append(
            f"For {least}{worded(case.value(min(1.0, idle / called)), 'share')} of the time in collective calls no rank"
            f" is in a POSIX {way}: ranks exchange data, or wait{source}."
        )
    if aside:
        do, them = ("do", "them") if aside > 1 else ("does", "it")
        count = count_text(case.value(aside), "file")
        notes.append(f"{count} {do} not count as critical: ranks access {them} now and then during the whole run.")
    return notes


def _on_lustre(case: Case) -> bool:
    """Return whether a critical file lies on Lustre, or on a file system that is not known."""
    kinds = zip(case.file_systems, case.files.critical, strict=True)
    return any(kind in (None, "", "lustre") for kind, it in kinds if it)


def _unknown(case: Case, jobs: pa.Table) -> list[str]:
    """Return what could not be examined, and why."""
    unknown = []
    modules = {name for row in jobs.to_pylist() for name in row.get("modules") or ()}
    for module, names, about in _MODULES:
        missing = [name for name in names if np.isnan(case.per_job[name])]
        if module == "LUSTRE" and missing and not _on_lustre(case):
            continue
        if len(missing) == len(names):
            there = module in modules
            why = f"module {module} has no record of the critical files" if there else f"no module {module} in the log"
            unknown.append(f"{about} ({', '.join(missing)}): {why}")
        else:
            unknown += [
                f"{factors()[name].meaning.partition(';')[0]} ({name}): {_why_unknown(case, name)}" for name in missing
            ]
    ranked = (case.files["ranks"] > 1) & ~np.isnan(case.movers)  # the bytes of the slowest rank show it
    several = case.processes > 1
    of_one = {"root_writes", "root_reads"} & case.about.keys()
    if several and np.isnan(case.per_job.get("root_writes", 0.0)) and not (of_one or ranked[case.files.critical].all()):
        unknown.append(
            "bytes that rank 0 wrote (root_writes): for a shared file, the log has only the sum over all ranks"
        )
    apart = any(case.calls[place].apart[2] > 0 for place in case.order)  # by their MPI-IO calls
    most = case.files.critical & (case.exclusive >= case.limits.reported * case.time)
    shared = bool((case.files["ranks"] > 1)[most].any())  # files of one rank each need no such times
    if several and shared and np.isnan(case.per_job["straggler"]) and not apart:
        unknown.append(
            "speeds of single ranks (straggler): this analysis knows no times of single ranks on shared critical files"
            + (", or only aggregators access these files" if (case.collective & case.files.critical).any() else "")
        )
    if case.activity is not None and case.activity.partial:
        unknown.append("times of some accesses: DXT ran out of memory, or the records of DXT or HEATMAP are damaged")
    unknown += uncounted(jobs)
    if any(row.get("partial") for row in jobs.to_pylist()):
        unknown.append(
            "records that the log has lost (files, counters or requests of DXT): Darshan ran out of memory, or the"
            " log is damaged"
        )
    return unknown


def _beyond(case: Case) -> list[str]:
    """Return each factor of the job that is beyond its limit, in words."""
    values = {**case.per_job, "metadata": case.metadata}
    if case.swept - float(case.files.largest(case.files.duration)[0]) < case.limits.reported * case.swept:
        values["serialised"] = float("nan")  # the others take no time, one after the other or not
    found = [
        f"{words} ({worded(case.value(value), unit)})"
        for name, (limit, words, unit) in _BEYOND.items()
        if (value := values.get(name, float("nan"))) >= getattr(case.limits, limit)
    ]
    small, jumps = case.small, case.per_job["non_consecutive"]
    if small >= case.limits.small and jumps >= case.limits.non_consecutive:
        small, jumps = case.value(small), case.value(jumps)
        found.append(f"small requests ({worded(small, 'share')})")
        found.append(f"requests that do not begin where the one before ended ({worded(jumps, 'share')})")
    return found


def _why_unknown(case: Case, name: str) -> str:
    """Return why a factor is unknown whose module has counters of the critical files."""
    limits = case.limits
    if name != "slow_ost":
        return f"the log lacks the counters for {'most of the critical files' if len(case.order) > 1 else 'the file'}"
    likes = int(np.count_nonzero(~np.isnan(alike(case.files))))
    if likes < limits.alike_files:
        files = f"{case.value(likes):.0f} alike file{'' if likes == 1 else 's'}"
        return f"{files} to compare, and {limits.alike_files} are needed"
    return f"the alike files lie on fewer than {limits.alike_osts} OSTs"
