"""A trace as a Darshan log.

Problem. Darshan's own runtime cannot separate this library's requests from the MPI library's, and people have tools for
its logs, not for traces. Algorithm: the converter reads each rank's trace once, in batches, into the counters of three
modules and their heat maps. It reduces the records of all ranks. Darshan's library writes the log. The job lasts, as
for Darshan's runtime, from the end of MPI_Init to the beginning of MPI_Finalize; what was called before and after is
not counted. Without MPI it lasts as long as the process.

Guarantees. The log is there whole or not at all. If a module lacks data (a rank without a trace, a killed rank, calls
that were not recorded), it is marked as partial, and `Written.lacks` gives the reason. Memory depends on the files, and
with DXT on the accesses, not on the calls.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.common.recordings import nothing_recorded, scheduler_job
from mpiio_ext.common.units import count_text
from mpiio_ext.errors import MpiioExtError
from mpiio_ext.pioneer.darshan import recorded, recordings
from mpiio_ext.pioneer.darshan.calls import Module
from mpiio_ext.pioneer.darshan.log import Job, write
from mpiio_ext.pioneer.darshan.names import OTHERS, record_id
from mpiio_ext.pioneer.darshan.records import Layout, Records
from mpiio_ext.pioneer.darshan.shared import packed, record_type
from mpiio_ext.pioneer.darshan.timeline import Heat, Segments
from mpiio_ext.pioneer.readers import own
from mpiio_ext.pioneer.table import LeftOut, Source

#: Variables in which batch systems pass the number of the job.
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID", "JOB_ID")
#: Command lines that are listed for a run of several programs.
_MOST_COMMANDS = 4
#: Ranks that are listed by number.
_MOST_RANKS = 8
#: Accesses of recordings that a log has at most, since all are in memory at once.
_MOST_ACCESSES = 1 << 24
_HEATS = {"POSIX": "POSIX", "MPI-IO": "MPIIO", "STDIO": "STDIO"}


class NothingRecordedError(MpiioExtError):
    """There is no trace of any process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The result of a conversion.

    Attributes
    ----------
    processes : of the job.
    start_ns : of the job, since 1970.
    records : in the log, of files and modules; without heat maps and DXT.
    lacks : what the log lacks, one line each.
    left_out : of the process with most of it, operations on files of the system.
    """

    processes: int
    start_ns: int = field(default=0, compare=False)
    records: int
    lacks: Sequence[str]
    left_out: LeftOut = field(default_factory=LeftOut, compare=False)


@dataclass(slots=True)
class _Rank:
    """The I/O of one rank."""

    modules: dict[str, Module]
    heats: dict[str, Heat]
    segments: dict[str, Segments]
    host: str = ""


@dataclass(slots=True)
class _Run:
    """The facts of all ranks so far; moments in ns since 1970; `active`: traces and recordings with accesses."""

    start_ns: int
    end_ns: int = 0
    ranks: dict[int, _Rank] = field(default_factory=dict)
    lacks: list[str] = field(default_factory=list)
    cut: dict[str, list[int]] = field(default_factory=dict)
    crowded: dict[int, int] = field(default_factory=dict)
    kept: int = 0
    unkept: int = 0
    active: set[Path] = field(default_factory=set)
    left_out: LeftOut = field(default_factory=LeftOut)
    without_mpi: recordings.WithoutMPI = field(default_factory=recordings.WithoutMPI)


def _batches(head: own.Head) -> Iterator[tuple[pa.RecordBatch, Source]]:
    info, batches = own.read([head.path])
    for batch in batches:
        yield batch, info.sources[-1]  # the one before it may be of other ranks


def _moment(batch: pa.RecordBatch, pattern: str, *, end: bool) -> int | None:
    """Return when the first call of a name began or ended; None if no row has that name."""
    names = batch.column("operation").dictionary.to_pylist()
    codes = [code for code, name in enumerate(names) if re.fullmatch(pattern, name)]
    found = np.flatnonzero(np.isin(batch.column("operation").indices.to_numpy(), codes))
    if len(found) == 0:
        return None
    row = batch.slice(int(found[0]), 1).to_pylist()[0]
    return int(row["timestamp"]) + (int(row["duration"] or 0) if end else 0)


def _start(head: own.Head) -> int:
    """Return when a process began to count: when it had MPI, or with its first call, during which its trace is made."""
    first = next(_batches(head), None)
    if first is None:
        return head.started_ns
    moment = _moment(first[0], "MPI_Init(_thread)?", end=True)
    return min(head.started_ns, pc.min(first[0]["timestamp"]).as_py()) if moment is None else moment


def _rank_of(head: own.Head, rank: int, run: _Run, layouts: Sequence[Layout], *, dxt: bool) -> _Rank:
    one = run.ranks.get(rank)
    if one is None:
        one = run.ranks[rank] = _Rank(
            {each.module: Module(each) for each in layouts},
            {each.module: Heat() for each in layouts},
            {each.module: Segments() for each in layouts if dxt},
            head.host,
        )
    return one


def _read(head: own.Head, start_ns: int, run: _Run, layouts: Sequence[Layout], *, dxt: bool) -> None:
    """Count the calls of one trace file."""
    rank = max(head.rank, 0)
    one = _rank_of(head, rank, run, layouts, dxt=dxt)
    for module in one.modules.values():
        module.begin()
    last_ns, stop_ns, source = head.started_ns, None, Source(path="")
    for batch, source in _batches(head):  # noqa: B007  (it grows while the file is read)
        stamps = batch.column("timestamp").to_numpy()
        spans = batch.column("duration").fill_null(0).to_numpy()
        stop_ns = stop_ns or _moment(batch, "MPI_Finalize", end=False)
        inside = stamps >= start_ns
        if stop_ns is not None:
            inside &= stamps < stop_ns
        last_ns = max(last_ns, int((stamps + spans)[inside].max(initial=0)))
        rows = batch.filter(pa.array(inside))
        for name, module in one.modules.items():
            counted = module.add(rows, run.start_ns)
            if len(counted.kind):
                run.active.add(head.path)
            one.heats[name].add(counted)
            if name in one.segments and name != "STDIO":
                one.segments[name].add(counted)
    run.end_ns = max(run.end_ns, stop_ns or last_ns)
    run.left_out = max(run.left_out, source.left_out, key=lambda one: one.operations)
    if source.loss.truncated or source.loss.skipped:
        run.cut.setdefault("its trace has no end or misses calls: it was killed, or its disk is full", []).append(rank)


def _read_recording(head: own.Head, run: _Run, layouts: Sequence[Layout], *, dxt: bool) -> None:
    """Take the counters of one recording."""
    recording = recordings.read(head.path)
    rank = head.rank if head.rank >= 0 else run.without_mpi.number(recording)
    one = _rank_of(head, rank, run, layouts, dxt=dxt)
    since = recording.since_ns - run.start_ns
    if len(recording.records):
        run.active.add(head.path)
    for name, module in one.modules.items():
        places = recorded.fill(recording, name, module.records, since)
        recorded.warm(recording, name, one.heats[name], run.start_ns)
        if name in one.segments and name != "STDIO" and not run.unkept:
            recorded.keep(recording, places, name, one.segments[name], since)
    run.end_ns = max(run.end_ns, recording.stopped_ns or recording.last_ns)
    run.kept += len(recording.segments)
    run.unkept += recording.unkept + max(run.kept - _MOST_ACCESSES, 0)
    if head.running or recording.problem:
        why = recording.problem or "its recording has no end, since the process was killed"
        run.cut.setdefault(why, []).append(rank)
    if recording.others:
        run.crowded[rank] = run.crowded.get(rank, 0) + recording.others


def _mounts() -> list[tuple[str, str]]:
    """Return type and folder of the file systems that are mounted here, the deepest first."""
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = [(words[2], words[1]) for words in map(str.split, lines) if len(words) > 2]
    return sorted(found, key=lambda pair: -len(pair[1]))


def _identity(folder: Path, default: int) -> int:
    """Return the batch system's number of the job: the ranks know it, this process may be outside of the job."""
    known = (scheduler_job(folder), *(os.environ.get(name, "") for name in _JOBS))
    numbers = (re.match(r"\d+", text) for text in known)
    found = next((number for number in numbers if number), None)
    return int(found[0]) if found else default


def _looked_at_only(run: _Run) -> set[str]:
    """Return names that were queried, that no rank opens, and that are no regular files (as far as they exist)."""
    opened: set[str] = set()
    looked: set[str] = set()
    for one in run.ranks.values():
        records = one.modules["POSIX"].records
        used = [records.layout.at(name) for name in ("OPENS", "READS", "WRITES", "RENAME_TARGETS", "FSYNCS", "FDSYNCS")]
        for name, place in records.names.items():
            (opened if records.counters[place, used].any() else looked).add(name)
    return {name for name in looked - opened if not Path(name).is_file()}


def _modules(run: _Run, layouts: Sequence[Layout], everyone: int) -> tuple[dict[str, bytes], dict[int, str], int]:
    """Return the records of every module, the names of files by number, and how many records there are."""
    regions: dict[str, bytes] = {}
    names: dict[int, str] = {}
    total = 0
    left_out = _looked_at_only(run)
    length_s = max(run.end_ns - run.start_ns, 0) / 1e9
    heats = []
    for layout in layouts:
        ranks: dict[int, Records] = {rank: one.modules[layout.module].records for rank, one in run.ranks.items()}
        regions[layout.module], found = packed(layout, ranks, everyone, left_out)
        names |= found
        total += len(regions[layout.module]) // record_type(layout).itemsize
        trace = f"DXT_{_HEATS[layout.module]}"
        accesses = []
        for rank, one in sorted(run.ranks.items()):
            if layout.module in one.segments and not run.unkept:
                accesses.append(one.segments[layout.module].packed(ranks[rank].names, rank, one.host))
            if heat := one.heats[layout.module].packed(_HEATS[layout.module], rank, length_s):
                heats.append(heat)
                names[record_id(f"heatmap:{_HEATS[layout.module]}")] = f"heatmap:{_HEATS[layout.module]}"
        regions[trace] = b"".join(accesses)
    regions["HEATMAP"] = b"".join(heats)
    return regions, names, total


def _command(heads: Sequence[own.Head], run: _Run) -> str:
    """Return the command lines of the programs of the run: without MPI that of the first process with accesses."""
    if heads[0].rank < 0:
        return next((head for head in heads if head.path in run.active), heads[0]).command
    used = dict.fromkeys(head.command for head in heads if head.path in run.active)
    found = list(used or dict.fromkeys(head.command for head in heads))
    more = [f"… {len(found) - _MOST_COMMANDS:,} more"] if len(found) > _MOST_COMMANDS else []
    return "; ".join([*found[:_MOST_COMMANDS], *more])


def _ranks(numbers: Sequence[int]) -> str:
    """Return which ranks have something in common."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    more = f" and {len(numbers) - _MOST_RANKS:,} more" if len(numbers) > _MOST_RANKS else ""
    return f"ranks {', '.join(map(str, numbers[:_MOST_RANKS]))}{more}, each"


def heads_of(folder: Path) -> list[own.Head]:
    """Return the heads of recordings, or of traces without any, by rank and start."""
    return recordings.heads([folder]) or own.heads([folder])


def convert(
    traces: Path,
    target: Path,
    *,
    dxt: bool = False,
    missing: str = "",
    launch: tuple[int | None, int | None] = (None, None),
) -> Written:
    """Write a trace of ``mpiio-ext trace``, or a recording, as a Darshan log.

    Parameters
    ----------
    traces : folder with the trace files of one run, or with its recordings.
    target : the log.
    dxt : with every access (modules DXT_POSIX and DXT_MPIIO); of recordings only where all have room for theirs.
    missing : what the caller knows to be missing, one line.
    launch : when the program was started and had ended (ns since 1970), from when to when the job lasts then.

    Raises
    ------
    NothingRecordedError
        There is no trace.
    FileSystemError, MissingExtraError
        As of `log.write`.
    """
    recorded_heads = recordings.heads([traces])
    heads = recorded_heads or own.heads([traces])
    if any(head.rank >= 0 for head in heads):
        heads = [head for head in heads if head.rank >= 0]  # not shells and launchers of ranks
    if not heads:
        raise NothingRecordedError(nothing_recorded(traces))
    layouts = [Layout(module) for module in _HEATS]
    starts = [head.started_ns if recorded_heads else _start(head) for head in heads]
    began_ns, ended_ns = launch
    run = _Run(min(starts) if began_ns is None else min(began_ns, *starts), ended_ns or 0)
    for head, start_ns in zip(heads, starts, strict=True):
        if recorded_heads:
            _read_recording(head, run, layouts, dxt=dxt)
        else:
            _read(head, start_ns, run, layouts, dxt=dxt)
    processes = max(1, run.without_mpi.count, *(head.ranks for head in heads))
    run.lacks += [f"{_ranks(ranks)}: {what}" for what, ranks in run.cut.items()] + ([missing] if missing else [])
    if run.crowded:
        run.lacks.append(
            f"{count_text(sum(run.crowded.values()), 'file')} had no room of their own, in "
            f"{len(run.crowded):,} of {count_text(processes, 'rank')}: they are together in the records "
            f"of {OTHERS}"
        )
    if refused := recordings.refused(traces):
        who = count_text(refused, "process has", "processes have")
        run.lacks.append(f"{who} no recording: the area of the node was full")
    if lost := processes - len(run.ranks):
        run.lacks.append(f"{lost:,} of {count_text(processes, 'rank has', 'ranks have')} no trace")
    regions, names, total = _modules(run, layouts, processes if heads[0].rank >= 0 else 0)
    job = Job(
        start_ns=run.start_ns,
        end_ns=max(run.end_ns, run.start_ns),
        processes=processes,
        identity=_identity(traces, heads[0].pid),
        exe=_command(heads, run),
        mounts=_mounts(),
        metadata={"lib_ver": f"mpiio_ext {version('mpiio_ext')}"},
    )
    write(target, job, names, regions, [name for name, data in regions.items() if data] if run.lacks else [])
    left_out = recordings.left_out([traces]) if recorded_heads else run.left_out
    return Written(processes=processes, start_ns=run.start_ns, records=total, lacks=run.lacks, left_out=left_out)
