"""The time in I/O of a run, and the first sentence about one log: from its tables and its ledger.

Problem. A page about a run, a report about a log and an overview of many logs name the same time in I/O, and the
same rank that has it.

Algorithm. The ledger has the bounds of each rank's time. :func:`spent_of` names the slowest rank if it is known and
much slower than the others, else an average rank, else all ranks. :func:`headline` adds values that a log does not
have.

Guarantees. A log alone suffices: no recordings are read, and nothing that draws is imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.analytics.diagnosis.words import rounded
from mpiio_ext.analytics.factors.extract import with_jobs
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.ledger import Interval, Ledger, numbers_of, of_files
from mpiio_ext.analytics.run import files as accessed
from mpiio_ext.analytics.run import opening
from mpiio_ext.analytics.run.largest import largest
from mpiio_ext.analytics.tables.plain import column_of_array
from mpiio_ext.pioneer.darshan.names import OTHERS
from mpiio_ext.pioneer.sanitize.system_files import OF_MPI, matcher

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.diagnosis.activity import Activity
    from mpiio_ext.analytics.report.findings import Known

#: Bytes a second at which the content of a mapped file may have come: that of a slow disk.
_MAPPED_RATE = 1e8


def headline(tables: Mapping[str, pa.Table], known: Known, documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the first sentence about one Darshan log, as `mpiio-ext report` and `mpiio-ext analyze` print it.

    Parameters
    ----------
    tables : rows of the log.
    known : with the facts of its DXT and HEATMAP; of an anonymous form, times are rounded.
    documents : its diagnoses, the most important first.
    """
    job, activity = tables["darshan_job"].to_pylist()[0], known.activity
    processes, run_s = job["processes"] or 1, job["run_time"] or 0.0
    files = all_files({**tables, "darshan_file": of_the_program(tables["darshan_file"])})
    ledger = ledger_of(files, activity, processes, run_s)
    rows = accessed.table(files, activity, ledger)
    mapped = mapped_files(files, activity, run_s)
    more = of_the_log(files, activity, run_s)
    spent = dataclasses.replace(spent_of(ledger, files), **more, files=rows, mapped=mapped, names=names_of(files))
    if known.anonymous:
        spent = dataclasses.replace(
            spent,
            io_s=rounded(spent.io_s, 2),
            io=None if spent.io is None or spent.io.narrow else spent.io.rounded(2),
            mean_s=rounded(spent.mean_s, 2),
            most_s=rounded(spent.most_s, 2),
            run_s=rounded(run_s, 2),
            opening_s=rounded(spent.opening_s, 2),
            files=(),
        )
    return opening.first_sentence(documents, spent, whole=not is_crowded(tables))


def seconds_in_io(tables: Mapping[str, pa.Table], known: Known) -> float:
    """Return the time in I/O of one Darshan log, as its first sentence has it."""
    job = tables["darshan_job"].to_pylist()[0]
    files = all_files({**tables, "darshan_file": of_the_program(tables["darshan_file"])})
    ledger = ledger_of(files, known.activity, job["processes"] or 1, job["run_time"] or 0.0)
    return spent_of(ledger, files).io_s


def spent_of(ledger: Ledger, files: Files) -> opening.Spent:
    """Return the time in I/O and of which rank, and its part without data calls.

    If ranks differ, the job waits for the slowest one: its time is named. If that is not known, an average rank's is.
    """
    run_s = ledger.run_s
    slowest, mean = ledger.slowest(), ledger.mean()
    (slower, rank), whose, time = ledger.ahead(), "", slowest
    if ledger.processes > 1 and slowest.most > 1.1 * mean.least:
        whose = opening.MOST_IO if rank is None else f"rank {rank} of "
        if not slower and (mean.most < slowest.most or mean.narrow):
            whose, time = opening.AVERAGE, mean
    names = dict(zip(numbers_of(files).tolist(), files.table["file"].to_pylist(), strict=True)) if len(files) else {}
    if ledger.partial:  # the source lacks records: "at least"
        time = Interval(time.least, time.least)
    each = ledger.opening()
    opening_s = float(each.mean() if whose == opening.AVERAGE else each[int(np.argmax(ledger.ranks().least))])
    return opening.Spent(
        io_s=time.middle,
        opening_s=min(opening_s, time.middle),
        run_s=run_s,
        io=time,
        most_s=0.0 if ledger.partial else slowest.most,
        whose=whose,
        mean_s=mean.middle if slower and mean.narrow else 0.0,
        largest=None if slower and rank is None else largest(ledger, names, [*filter(None, names.values())], rank),
        moved={way: (ledger.slowest(way), ledger.moved(way), ledger.total(way)) for way in ("read", "write")},
        processes=ledger.processes,
    )


def ledger_of(files: Files, activity: Activity | None, processes: int, run_s: float) -> Ledger:
    """Return the ledger of a run's files: of its log, or of rows of a store."""
    return of_files(None if activity is None else activity.ledger, files, processes, run_s)


def of_the_log(files: Files, activity: Activity | None, run_s: float) -> dict[str, Any]:
    """Return what a Darshan log does not have, as `Spent` takes it."""
    from mpiio_ext.analytics.run import uncounted

    if activity is None:
        return {"logged": True}
    names = zip(files.table["file_id"].to_pylist(), files.table["file"].to_pylist(), strict=True)
    known = {number: calls.unmoved for number, calls in activity.calls.items() if calls.unmoved >= opening.LONG * run_s}
    unmoved = [name or f"file {number}" for number, name in names if known.get(number)]
    hidden = uncounted.sentence(files, activity, run_s, names_of(files)) if len(files) else ""
    return {"logged": True, "lost": activity.lost, "unmoved": unmoved, "uncounted": hidden}


def mapped_files(files: Files, activity: Activity | None, run_s: float) -> list[str]:
    """Return the files in mapped memory whose accesses may have taken a part of the time that matters.

    Those are so large that reading them would have; or no call moves their data, and they are open for most of the run:
    a program may flush a small one again and again (msync).
    """
    found = []
    for number, name in zip(files.table["file_id"].to_pylist(), files.table["file"].to_pylist(), strict=True):
        if activity is not None and number in activity.calls and activity.calls[number].maps:
            try:
                size = Path(name or "").stat().st_size
            except OSError:
                size = None
            lasting = activity.calls[number].unmoved >= opening.LONG * run_s
            if size is None or lasting or size / _MAPPED_RATE >= opening.TRIVIAL * run_s:
                found.append(name or f"file {number}")
    return found


def all_files(tables: Mapping[str, pa.Table]) -> Files:
    """Return the files of one job, with the values of the job beside each."""
    return Files(with_jobs(tables["darshan_file"], tables["darshan_job"], "job_id"), "write", "job_id")


def is_crowded(tables: Mapping[str, pa.Table]) -> bool:
    """Return whether the counters of some files had no room of their own."""
    return OTHERS in tables["darshan_file"]["file"].to_pylist()


def of_the_program(files: pa.Table) -> pa.Table:
    """Return the rows of files without those of MPI libraries."""
    other = matcher(OF_MPI)
    return files.filter(
        column_of_array(np.array([not other.match(name or "") for name in files["file"].to_pylist()], np.bool_))
    )


def names_of(files: Files) -> list[str]:
    """Return the names of files, those that have one."""
    return [name for name in files.table["file"].to_pylist() if name]
