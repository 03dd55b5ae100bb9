"""A run as one document of plain values: from the folder of its recordings, or from a Darshan log.

Problem. A page, a notebook and a program want the same facts of a run, which lie in a log, in statistics, and in the
file system.

Algorithm. The recordings become a Darshan log (:func:`mpiio_ext.pioneer.darshan.convert.convert`, the only place that
knows what is in them). The log is diagnosed; the statistics of the library and the layout of files stand beside it.

Guarantees. The document is JSON. Its size does not depend on the number of ranks, calls or files. A run without any
call has a document, too, which says so.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.diagnosis.case import OF_ONE_NODE
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.ledger import KINDS, Bounds, Ledger, Traced, numbers_of
from mpiio_ext.analytics.report.accesses import common_sizes, place_chart, size_chart
from mpiio_ext.analytics.report.findings import Known, diagnoses, findings
from mpiio_ext.analytics.report.job import started
from mpiio_ext.analytics.report.logs import by_job
from mpiio_ext.analytics.run import delegated, failed, failures, gains, library, opening, others, parts
from mpiio_ext.analytics.run import files as accessed
from mpiio_ext.analytics.run.spent import (
    all_files,
    is_crowded,
    ledger_of,
    mapped_files,
    names_of,
    of_the_log,
    of_the_program,
    spent_of,
)
from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.common.endings import failure_of
from mpiio_ext.common.page import Finding
from mpiio_ext.common.recordings import STATISTICS, launch_of
from mpiio_ext.common.units import amount_text, count_text, seconds_text
from mpiio_ext.errors import MpiioExtError
from mpiio_ext.pioneer.darshan.names import OTHERS
from mpiio_ext.pioneer.darshan.recordings import CLASSES, Run, heads, left_out, moved_beside
from mpiio_ext.pioneer.readers import own

if TYPE_CHECKING:
    from mpiio_ext.pioneer.darshan.steps import Seen
    from mpiio_ext.pioneer.darshan.tallies import Tallies

#: Files whose layout is asked for; they are those that took the most time.
_MOST_LAYOUTS = 4
#: Files whose bandwidth over time is shown; they are those that took the most time.
_MOST_CURVES = 3
_FACTS = ("file_system", "stripe_size", "stripe_count", "servers", "lock_protocol")
#: Programs beside the one with MPI that are named.
_MOST_BESIDE = 4
DOCTOR = "mpiio-ext doctor -- PROGRAM"
#: Words of the diagnosis that are about a Darshan log, and what they are of recordings, which no user has a log of.
_WORDS = (
    (" (DXT)", ""),
    (" (HEATMAP)", ""),
    ("; option --low-bandwidth", ""),
    ("DXT has", "the recordings have"),
    ("as far as DXT has them", "as far as they are recorded"),
    ("DXT ended early, or is damaged", "The recordings are not complete"),
    ("HEATMAP has", "the recordings have"),
    ("Darshan counts", "the recordings count"),
    ("the log has", "the recordings have"),
    ("the log does not", "the recordings do not"),
    ('The list "Unknown" below names', 'The section "What is not known" names'),
    ("the log lacks", "the recordings lack"),
    ("no module LUSTRE in the log", "the recordings have no layout of Lustre"),
    (" in the log", " in the recordings"),
    ("the log shows", "the recordings show"),
    ("start of the job", "start of the run"),
    ("known for this job", "known for this run"),
    (
        "critical time (from the first to the last access of each critical file, counted once)",
        "time in which files are accessed",
    ),
    ("critical time in which any rank", "time in which any rank"),
    (" of critical files", " of the files that the run waits for"),
    (" on shared critical files", " on shared files"),
    ("a critical file", "a file that the run waits for"),
    ("no critical file", "no file that the run waits for"),
    ("the critical files", "the files that the run waits for"),
    ("critical time", "time in which files are accessed"),
)
#: Words of advice for Lustre, and what they are for other file systems.
_TARGETS = (("OSTs", "servers"), ("an OST", "a server"), ("OST", "server"))
_NONE_OPENED = (
    "mpiio_ext was loaded, but the program opened no file with MPI-IO: it does not call MPI_File_open, or each such"
    " call failed."
)
_WITHOUT_MPI = (
    "No MPI-IO here: no process whose calls were recorded has initialised MPI. mpiio_ext speeds up only MPI"
    " programs, so it changed nothing. The page shows the program's own calls (`mpiio-ext help howto/python-loaders`)"
)
_DIAGNOSED = ("sentence", "findings", "conclusions", "unknown", "charts")


def of_folder(folder: Path, *, missing: str = "", command: str = "") -> dict[str, Any]:
    """Return the document of a folder of recordings.

    Parameters
    ----------
    folder : what ``mpiio-ext run --report`` has recorded.
    missing : what the caller knows to be missing, one line.
    command : what was run, as a shell takes it; "" where it is not known.

    Raises
    ------
    MpiioExtError
        The recordings cannot be read.
    """
    from mpiio_ext.pioneer.darshan.convert import NothingRecordedError, convert

    statistics, there = library.read(folder / STATISTICS)
    failure, launch = failure_of(folder), launch_of(folder)
    with tempfile.TemporaryDirectory(prefix=".log-", dir=folder) as scratch:
        log = Path(scratch) / "run.darshan"
        try:
            written = convert(folder, log, dxt=True, missing=missing, launch=launch)
        except NothingRecordedError as error:
            document = _without_calls(str(error), there, command, missing)
            return failed.with_failure(document, failure, launch[0], failed.Stood())
        ends = {"": launch[1], **failure.ends} if launch[1] is not None else failure.ends
        at_end = failed.stood(folder, ends) if failure else failed.Stood()
        recorded = _Recorded(run=Run(folder, written.start_ns, ends), at_end=at_end)
        document = _document(log, statistics, there, list(written.lacks), recorded)
    other = not any(row["file_system"] == "lustre" for row in [*document["storage"], *document["files"]])
    words = (*_WORDS, *(_TARGETS if other else ()))
    document |= {name: _in_words(document[name], words) for name in _DIAGNOSED}
    known = [text for text in document["unknown"] if "ran out of memory" not in text]  # `lacks` says what lacks
    return failed.with_failure(document | {"unknown": known}, failure, written.start_ns, at_end)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """The recordings of a run, and where killed ranks ended."""

    run: Run
    at_end: failed.Stood


def of_log(log: Path) -> dict[str, Any]:
    """Return the document of a Darshan log; nothing is known of the library.

    Raises
    ------
    AnalyticsError
        The log cannot be read.
    """
    return _document(log, [], None, [])


def _in_words(part: Any, words: Sequence[tuple[str, str]]) -> Any:
    """Return a part of a document in words that are true where there is no Darshan log."""
    if isinstance(part, str):
        text = functools.reduce(lambda text, pair: text.replace(*pair), (("The log", "the log"), *words), part)
        if way := re.match(r"(?:For the )?(read|write)s[:,] ", text, re.IGNORECASE):
            text = text.replace("files are accessed", f"files are {'written' if way[1].lower() == 'write' else 'read'}")
        return re.sub(r"(^|[.!?] )the recordings", r"\1The recordings", text)
    if isinstance(part, Mapping):
        return {name: _in_words(each, words) for name, each in part.items()}
    if isinstance(part, (list, tuple)):
        return [_in_words(each, words) for each in part]
    return part


def _without_calls(why: str, there: bool, command: str, missing: str) -> dict[str, Any]:
    sentence = f"{why[0].upper()}{why[1:]}."
    if there:
        sentence = "No call was recorded, although the library was called: there was no room for the recordings."
    return _plain(
        program=command,
        sentence=sentence,
        lacks=[missing] if missing else [],
        notices=[_not_reached(command, 1)] if not there else [],
    )


def _plain(**parts: Any) -> dict[str, Any]:
    """Return a document with the given values only."""
    empty: dict[str, Any] = {
        name: []
        for name in (
            "facts",
            "notices",
            "failures",
            "failed_calls",
            "lacks",
            "findings",
            "conclusions",
            "unknown",
            "files",
            "library",
            "hints",
            "storage",
            "locks",
            "parts",
            "charts",
        )
    }
    return {
        "kind": "mpiio_ext run",
        "version": 1,
        "program": "",
        "sentence": "",
        "spent_on": "",
        "help": None,
        "files_in_all": 0,
        "crowded": False,
        "ended": "",
        "at_end": [],
        **empty,
        **parts,
    }


def _without_mpi(recordings: _Recorded | None) -> bool:
    """Return whether processes have recorded, and none of them has initialised MPI."""
    folders = [recordings.run.folder] if recordings is not None else []
    ranks = [head.rank for of in (heads, own.heads) for head in of(folders)]
    return bool(ranks) and max(ranks) < 0


def _not_reached(program: str, processes: int) -> str:
    doctor = opening.concrete(DOCTOR, program or "PROGRAM", processes)
    return (
        "No call reached the library, so it changed nothing. The program is linked statically, makes no MPI-IO"
        f" calls (POSIX, serial HDF5), or does not use MPI; `{doctor}` finds the reason"
    )


def _silent(
    job: Mapping[str, Any],
    program: str,
    there: bool | None,
    at_end: failed.Stood,
    unclosed: Sequence[str],
    without_mpi: bool,
) -> list[str]:
    """Return what is known of why the library has reported on no file.

    Parameters
    ----------
    job, program : row of the log, and command.
    there : the library has said that it was under the program; None: not read yet.
    at_end : the calls that ranks were in when they were ended.
    unclosed : files that MPI-IO has opened, and that no call has closed.
    without_mpi : no process has initialised MPI.
    """
    processes = job["processes"] or 1
    if there is None or (at_end.in_mpiio and not job["uses_mpiio"]):
        return []
    if without_mpi:
        return [_WITHOUT_MPI]
    if not job["uses_mpiio"]:
        return [_NONE_OPENED if there else _not_reached(program, processes)]
    if unclosed:
        more = f" and {count_text(len(unclosed) - 1, 'more file')}" if len(unclosed) > 1 else ""
        return [
            f"The program ended without closing `{unclosed[0]}`{more}. mpiio_ext reports on a file when the program"
            " closes the file, so its work on an unclosed file is not known."
        ]
    return [
        "The program made MPI-IO calls, but the library reported on no file. This command shows whether the program"
        f" runs under the library, and whether statistics are on: `{opening.concrete(DOCTOR, program, processes)}`"
    ]


def _tables(
    log: Path, statistics: Sequence[Mapping[str, Any]], *, recorded: bool = False
) -> tuple[dict[str, pa.Table], Activity | None, list[str]]:
    """Return the rows of a log, what ranks did when, and the files that others than these have accessed."""
    converted = convert([log.name], str(log.absolute().parent))
    if converted.outcomes[0].status == "skipped":
        raise AnalyticsError(f"{log}: {converted.outcomes[0].reason}")
    tables = dict(by_job([(log, converted.tables)])[0].tables)
    files = tables["darshan_file"] if recorded else of_the_program(tables["darshan_file"])  # the recorder has its rule
    by_others = delegated.delegated(files, statistics)
    unseen = {*by_others, *delegated.mapped(files, statistics)}
    tables["darshan_file"] = delegated.as_asked_for(files, unseen)
    activity = activity_of(log, tables)
    if activity is not None:
        delegated.without_requests(activity, unseen)
    names = zip(files["file_id"].to_pylist(), files["file"].to_pylist(), strict=True)
    return tables, activity, [name or f"file {number}" for number, name in names if number in by_others]


def _concrete(
    statistics: Sequence[Mapping[str, Any]], measured: Mapping[str, str] | None, program: str, processes: int
) -> Callable[[str], str | None]:
    """Return a function that turns advised commands into those of this program, and followed ones into None."""
    values = {(each["hint"], each["value"]) for each in library.hints(statistics)}
    own = {hint for hint, _ in values}

    def concrete(command: str) -> str | None:
        by_library = opening.FORCES in command and not own & opening.FORCED  # it has looked at the calls, and chosen
        lost = opening.DELEGATES in command and measured is None  # it has seen the accesses, and they would not pay
        asked = {hint for hint in opening.HINT.findall(command) if hint[0] != "mpiox_delegates"}
        in_force = bool(asked) and asked <= values
        taken = bool(statistics) and (command == opening.TAKEN or by_library or lost or in_force)
        return None if taken else opening.concrete(command, program, processes)

    return concrete


def _spent(
    spent: opening.Spent,
    rows: list[dict[str, Any]],
    mapped: list[str],
    shares: Sequence[Mapping[str, Any]],
    given: parts.Machine,
    recordings: _Recorded | None,
) -> opening.Spent:
    """Return the run's time, and how much of it is in I/O."""
    left = left_out([recordings.run.folder] if recordings is not None else [])
    return dataclasses.replace(
        spent,
        files=rows,
        mapped=mapped,
        waiting_s=parts.waiting_s(shares),
        no_cpu=given.share if given.loaded else 0.0,
        unfinished=_at_end(recordings),
        left_s=left.ns / 1e9,
        left=str(left),
    )


def _with_gains(
    found: Sequence[Finding],
    documents: list[dict[str, Any]],
    spent: opening.Spent,
    processes: int,
    measured: Mapping[str, str] | None,
) -> list[dict[str, Any]]:
    """Return findings whose advice has its possible gain."""
    return [
        dataclasses.asdict(one)
        | {"advice": gains.with_gains(one.advice, *gains.found(documents, one.title), spent, processes, measured)}
        for one in found
    ]


def _document(
    log: Path,
    statistics: Sequence[Mapping[str, Any]],
    there: bool | None,
    lacks: list[str],
    recordings: _Recorded | None = None,
) -> dict[str, Any]:
    from mpiio_ext.analytics.run import conflicts

    tables, activity, by_others = _tables(log, statistics, recorded=recordings is not None)
    crowded = is_crowded(tables)
    if crowded and not any(OTHERS in line for line in lacks):
        lacks = [*lacks, f"there was no room for the counters of some files: {OTHERS} contains their sums"]
    job = tables["darshan_job"].to_pylist()[0]
    program, processes, run_s = job["exe"] or job["app"] or "PROGRAM", job["processes"] or 1, job["run_time"] or 0.0

    measured = opening.paying(statistics, program, processes)
    given = parts.machine_of(recordings.run.folder) if recordings is not None else parts.Machine()
    files = all_files(tables)
    ledger = ledger_of(files, activity, processes, run_s)
    seen = _seen(recordings, activity, accessed.longest(files, ledger)[:_MOST_CURVES])
    if activity is not None and activity.ledger is not None and seen is not None:
        activity.ledger = _recorded(activity.ledger, files, seen, _at_end(recordings))
        ledger = ledger_of(files, activity, processes, run_s)
    one_host = recordings is not None and _on_one_host(files)  # of a log, the mount may be of many hosts
    without_mpi = _without_mpi(recordings)
    known = Known(
        activity=activity, waited_s=given.least_s if given.loaded else 0.0, one_host=one_host, without_mpi=without_mpi
    )
    diagnosed = diagnoses(tables, known, concrete=_concrete(statistics, measured, program, processes))
    documents = [one["document"] for one in diagnosed]
    rows = accessed.table(files, activity, ledger) if len(files) else []
    _tell(rows, files, activity, seen, library.table(statistics))
    mapped, shares = mapped_files(files, activity, run_s), parts.parts(seen, run_s) if seen is not None else []
    spent = _spent(spent_of(ledger, files), rows, mapped, shares, given, recordings)
    more = of_the_log(files, activity, run_s) if recordings is None else _of_recordings(files, seen, spent)
    in_vain = seen is not None and _in_vain(ledger, files, seen, spent)
    spent = dataclasses.replace(spent, **more, names=names_of(files), in_vain=in_vain)
    storage = _storage(rows)
    names = dict(zip(files.table["file"].to_pylist(), files.table["file_id"].to_pylist(), strict=True))
    unclosed = _unclosed(files, activity)
    silent = [] if statistics else _silent(job, program, there, _at_end(recordings), unclosed, without_mpi)
    through = [delegated.notice(by_others, statistics, processes, spent.io_s)] if by_others else []
    return _plain(
        program=program,
        sentence=opening.first_sentence(documents, spent, whole=not lacks),
        parts=shares,
        spent_on=parts.sentence(shares, run_s),
        help=gains.help_of(documents, spent, measured, program, processes),
        facts=[*_facts(job, files, spent, activity, crowded=crowded), *given.facts()],
        lacks=lacks,
        crowded=crowded,
        notices=[*silent, *through, *(_beside(recordings.run.folder) if recordings else []), *given.notice()],
        failures=list(spent.failures),
        failed_calls=failures.rows(seen.tallies) if seen is not None else [],
        findings=_with_gains(findings(diagnosed), documents, spent, processes, measured),
        conclusions=opening.conclusions(documents, spent),
        unknown=[*dict.fromkeys(text for one in documents for text in one["unknown"]), *map(_of_mapped, mapped[:1])],
        files=rows,
        files_in_all=len(files),
        library=library.table(statistics),
        hints=library.hints(statistics),
        storage=storage,
        locks=conflicts.table(log, names, storage, statistics),
        charts=[dataclasses.asdict(chart) for chart in _charts(log, activity, seen, rows, files.table)],
    )


def _tell(
    rows: Sequence[dict[str, Any]],
    files: Files,
    activity: Activity | None,
    seen: Seen | None,
    library_rows: Sequence[Mapping[str, Any]],
) -> None:
    """Add to rows of files, in words, the program's accesses, the requests to the file system, and the arrays."""
    from mpiio_ext.analytics.run import asked

    numbers = dict(zip(files.table["file"].to_pylist(), files.table["file_id"].to_pylist(), strict=True))
    for row in rows:
        views = seen.views.get(row["file"], ()) if seen is not None else ()
        calls = Calls() if activity is None else activity.calls.get(numbers.get(row["file"], 0), Calls())
        mine = [one for one in library_rows if library.is_of({"path": one["file"]}, row["file"])]
        lost = failures.of_file(seen.tallies, row["file"]) if seen is not None else failures.Lost()
        row["asked"] = asked.by_program(row, calls, views, lost)
        row["reached"] = asked.by_storage(row, mine, mapped=not (row["reads"] or row["writes"]))
        row["arrays"] = asked.described(views)


def _at_end(recordings: _Recorded | None) -> failed.Stood:
    return failed.Stood() if recordings is None else recordings.at_end


def _of_recordings(files: Files, seen: Seen | None, spent: opening.Spent) -> dict[str, Any]:
    """Return the facts that only recordings have, as `Spent` needs them: calls by kind, and calls that failed."""
    if seen is None:
        return {}
    counts = (np.nan_to_num(files[f"{kind}s"]).astype(int).tolist() for kind in ("read", "write"))
    names = files.table["file"].to_pylist()
    done = {name or "": {"read": reads, "write": writes} for name, reads, writes in zip(names, *counts, strict=True)}
    busiest = None if spent.of_average else int(seen.spent_s.sum(axis=1).argmax())
    return {
        "others": others.groups(seen.tallies, busiest, len(seen.spent_s), alone=spent.whose.startswith("rank ")),
        "failures": failures.lines(seen.tallies, done),
    }


def _beside(folder: Path) -> list[str]:
    """Return a note on programs without MPI beside one that has it."""
    programs = [
        f"`{command}` ({', '.join(f'{amount_text(each)} {verb}' for verb, each in done if each)})"
        for command, *done in moved_beside([folder])
    ]
    if not programs:
        return []
    more = f" and {count_text(len(programs) - _MOST_BESIDE, 'more program')}" if len(programs) > _MOST_BESIDE else ""
    return [
        f"Beside the MPI program, programs without MPI ran: {', '.join(programs[:_MOST_BESIDE])}{more}. No number of"
        " this page includes these programs. Run such a program by itself to get a page about the program."
    ]


def _unclosed(files: Files, activity: Activity | None) -> list[str]:
    """Return the files that MPI-IO has opened, and that no call has closed."""
    calls = {} if activity is None else activity.calls
    names = zip(files.table["file_id"].to_pylist(), files.table["file"].to_pylist(), strict=True)
    return [name or f"file {number}" for number, name in names if number in calls and calls[number].unclosed]


def _of_mapped(name: str) -> str:
    return (
        f"time and bytes of accesses to mapped memory (mmap), for example of `{name}`: such an access is no call, and"
        " no number of this page includes such accesses"
    )


def _facts(
    job: Mapping[str, Any], files: Files, spent: opening.Spent, activity: Activity | None, *, crowded: bool
) -> list[list[str]]:
    least_s = opening.TRIVIAL * spent.run_s
    others = [f"{one.words}: {seconds_text(one.seconds)}" for one in spent.others if one.seconds >= least_s]
    used = np.nansum([files[name] for name in ("opens", "bytes_read", "bytes_written")], axis=0) > 0
    names = files.table["file"].to_pylist()
    opened = sum(bool(it) and not (name or "").startswith("<STD") for name, it in zip(names, used, strict=True))
    moved, whose = map(float, accessed.asked_bytes(files)), spent.whose.removesuffix(" of ") or opening.MOST_IO
    return [
        ["program", str(job["exe"] or job["app"] or "not known")],
        *map(list, started(job["start_time"])),
        ["processes", f"{job['processes'] or 1:,}"],
        ["run time", seconds_text(spent.run_s)],
        [
            "time in I/O",
            f"{seconds_text(spent.io_s) if spent.io is None else opening.bounds_text(spent.io)}"
            f" ({opening.spent_text(spent)} of the run time), of {whose}",
        ],
        ["time in opening, closing, metadata", f"{seconds_text(spent.opening_s)}, of {whose}"],
        *([["time in other calls on files", "; ".join(others)]] if others else []),
        ["read, written by the program", ", ".join(map(amount_text, moved))],
        *map(list, common_sizes(activity)),
        ["files accessed", f"{'at least ' if crowded else ''}{opened:,}"],
        *(
            [
                [
                    "not counted",
                    f"{spent.left}: {seconds_text(spent.left_s)} of the rank with most such operations;"
                    " mpiio-ext run --only GLOB counts such operations",
                ]
            ]
            if spent.left
            else []
        ),
    ]


def _on_one_host(files: Files) -> bool:
    """Return whether the files that were read and written lie in file systems of one host, behind its page cache."""
    moved = np.nansum([files["bytes_read"], files["bytes_written"]], axis=0) > 0
    kinds = [kind for kind, it in zip(files.table["fs_type"].to_pylist(), moved, strict=True) if it]
    return bool(kinds) and all(kind in OF_ONE_NODE for kind in kinds)


def _recorded(ledger: Ledger, files: Files, seen: Seen, at_end: failed.Stood) -> Ledger:
    """Return the ledger with what recordings have of ranks: in MPI-IO calls on files, in all calls, and in others."""
    spent = seen.spent_s.sum(axis=1)
    in_mpi = {}
    for number, name in zip(files.table["file_id"].to_pylist(), files.table["file"].to_pylist(), strict=True):
        if (known := seen.in_mpi.get(name or "")) is not None:
            ranks = np.flatnonzero(~np.isnan(known[:, 0]))
            seconds = np.zeros((len(ranks), len(KINDS)))
            seconds[:, [KINDS.index(kind) for kind in ("read", "write", "meta", "waiting")]] = known[ranks]
            seconds[:, KINDS.index("meta")] -= known[ranks, 3]
            in_mpi[number] = Traced(ranks, seconds)
    working = spent - seen.spent_s[:, CLASSES.index("waiting")]
    names = dict(zip(files.table["file"].to_pylist(), numbers_of(files).tolist(), strict=True))
    uncounted = others.records_of(seen.tallies, at_end.of_files, names)
    return ledger.recorded(in_mpi, _measured(ledger, files, seen), working, uncounted)


def _pending(ledger: Ledger, files: Files, seen: Seen) -> Tallies:
    """Return the MPI calls on files with nonblocking or split accesses, waits included."""
    numbers = np.isin(numbers_of(files), ledger.files[ledger.pending])
    of_mpi = np.isin(seen.tallies.layer, ("mpiio", "mpi"))
    names = [name for name, pending in zip(files.table["file"].to_pylist(), numbers, strict=True) if pending]
    return seen.tallies.where(of_mpi & np.isin(seen.tallies.file, names))


def _measured(ledger: Ledger, files: Files, seen: Seen) -> Bounds:
    """Return the seconds of each rank in any call.

    Of a nonblocking access another thread makes the requests, maybe while the program computes: the program is at least
    in its own calls, and at most in these and in the requests.
    """
    every, own = seen.spent_s.sum(axis=1), _pending(ledger, files, seen)
    others = ledger.of(ledger.files[~ledger.pending].tolist()).ranks().least
    return Bounds(np.minimum(own.by_rank(len(every)) + others, every) if len(own) else every, every)


def _in_vain(ledger: Ledger, files: Files, seen: Seen, spent: opening.Spent) -> bool:
    """Return whether nothing overlaps nonblocking and split accesses that take most of the time in I/O.

    They and their waits take as long as the requests: an MPI library may make requests that no recording has.
    """
    own = _pending(ledger, files, seen)
    calls_s = own.where(np.isin(own.kind, ("read", "write")) | (own.layer == "mpi")).by_rank(ledger.processes).max()
    requests_s = ledger.of(ledger.files[ledger.pending].tolist()).slowest("read", "write", layer="POSIX").least
    least_s = opening.MOST * max(spent.io_s, requests_s)
    return (
        bool(calls_s >= least_s > 0) and requests_s >= opening.MOST * calls_s and (spent.io is None or spent.io.narrow)
    )


def _seen(recordings: _Recorded | None, activity: Activity | None, files: Sequence[str]) -> Seen | None:
    """Return the values of recordings by time; for the files that took the most time also bytes."""
    from mpiio_ext.pioneer.darshan.steps import in_calls

    if recordings is None or activity is None:
        return None
    bands, bins = activity.line.shape[1:]
    return in_calls(
        recordings.run, activity.run_time, bands=bands, bins=bins, processes=activity.processes, files=files
    )


def _charts(
    log: Path, activity: Activity | None, seen: Seen | None, rows: Sequence[Mapping[str, Any]], files: pa.Table
) -> list[Chart]:
    from mpiio_ext.analytics.report.timeline import rank_chart
    from mpiio_ext.analytics.run import over_time

    if activity is None:
        return []
    every = sum(float(row[f"{done}_bytes"] or 0) for row in rows for done in ("read", "written"))
    line, others = rank_chart(activity, None if seen is None else seen.line), over_time.charts(log, activity, every)
    if line is not None and activity.source != "DXT" and seen is None:
        own = [one.data["exact"] for one in others if one.name == "heat"]
        line = dataclasses.replace(line, data={**line.data, "exact": own[0] if own else line.data["exact"]})
        others = [one for one in others if one.name != "heat"]  # it is the same
    if seen is not None and len(rows) > 1 and (of_files := over_time.of_files(rows, seen.moved, activity.run_time)):
        others.insert(1, of_files)
    others += [chart for chart in (size_chart(files), place_chart(activity, files)) if chart is not None]
    return [*([line] if line is not None else []), *others]


def _storage(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return how the files that took the most time lie on servers, as far as the file system shows it after the run."""
    from mpiio_ext.layout import inspect

    out: list[dict[str, Any]] = []
    for row in rows:
        if len(out) == _MOST_LAYOUTS:
            break
        if re.match(r"<STD|/dev/(?!shm/)|/proc/", row["file"]) or not Path(row["file"]).is_file():
            continue
        try:
            layout = inspect(row["file"])
        except MpiioExtError:
            continue
        values = {name: layout.value(name) for name in _FACTS}
        out.append(
            {"file": row["file"]} | {name: None if value is None else str(value) for name, value in values.items()}
        )
    return out
