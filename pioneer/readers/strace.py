"""strace: ``strace -f -ttt -T -y -o FILE``, and with ``-ff`` a file for each thread, named FILE.THREAD.

Problem.    Calls of threads are cut into two lines; with -ff the threads of a process are in several files.
Algorithm.  Lines by the parser in C (csrc/tools/pioneer/mpiox_rawtrace_text.h). With -ff the files of a rank are read
            side by side and merged by time.
Ranks.      Files RANK or RANK.THREAD behind a common name, or NAME.0 alone: these. Else processes, separated by the
            lines of clone and fork, in the order of their numbers; a line says so. Start strace once for each rank and
            put the rank into the name: then it has the processes that it makes.
Guarantee.  Every line is a row, part of one, a signal or exit, or is counted in Loss.
Missing.    ``depth`` and MPI calls. Without -y the file of a call that has a descriptor; without -T durations, except
            of calls in two lines. Strings that strace cut (-s) are marked ``cut`` in ``extra``. Relative names stay so
            until a line shows the working folder (with -y the first ``openat`` of a process, which its start has).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from mpiio_ext.common.units import count_text
from mpiio_ext.pioneer.readers._files import CHUNK_BYTES, begin_of, chunks_of, files_of, ranks_by_name, samples
from mpiio_ext.pioneer.readers._order import merged, ordered
from mpiio_ext.pioneer.readers._processes import Family, Threads, children_of, order_ranks
from mpiio_ext.pioneer.readers._rawtrace import TAKEN_BYTES, RawTrace
from mpiio_ext.pioneer.table import Source, TraceInfo

NAME = "strace"
LACKS = ["MPI calls and depth", "without -y: the files of descriptors"]
_CALL = rb"[a-z_][a-z0-9_]*\([^\n]* = (?:-?\d|\?|0x)"
_THREAD = rb"^(?:\[pid\s+\d+\] |\d+ +)?"
_LINE = re.compile(
    _THREAD + rb"(?:\d{9,}(?:\.\d+)?|\d\d:\d\d:\d\d(?:\.\d+)?|\d+\.\d+) "
    rb"(?:" + _CALL + rb"|[a-z_][a-z0-9_]*\([^\n]*<unfinished \.\.\.>|\+\+\+ |--- )",
    re.MULTILINE,
)
_WITHOUT_TIME = re.compile(_THREAD + _CALL, re.MULTILINE)
_LTRACE = re.compile(rb"\bSYS_\w+\(|->\w+\(|@SYS\(")


def recognizes(path: Path) -> bool:
    """Return whether a file, or the first file of a folder that is not empty, has lines of strace with times."""
    return _has_lines(path, _LINE)


def has_no_times(path: Path) -> bool:
    """Return the same of lines of strace without times, which no reader takes."""
    return _has_lines(path, _WITHOUT_TIME)


def _has_lines(path: Path, line: re.Pattern[bytes]) -> bool:
    if path.is_dir():
        return any(_has_lines(item, line) for item in samples(files_of([path])))
    begin = begin_of(path)
    return b"\0" not in begin and line.search(begin) is not None and _LTRACE.search(begin) is None


def _suffix(path: Path) -> int:
    """Return the number at the end of a name, 0 without one."""
    match = re.search(r"\.(\d+)(?:\.gz)?$", path.name)
    return int(match[1]) if match else 0


def _has_numbers(path: Path) -> bool:
    """Return whether the lines of a file begin with the number of the thread."""
    return re.match(rb"\[pid|\d+ +[\d\[]", begin_of(path, 256)) is not None


def _family_of(files: Sequence[Path]) -> Family:
    """Return the process of each thread: a pass over the files, needed if names do not give the ranks."""
    family = Family()
    for path in files:
        for made in children_of(path, _suffix(path)):
            family.add(*made)
    return family


def _group(files: Sequence[Path]) -> tuple[list[list[Path]], bool, Family]:
    """Return the files of each rank, whether names gave the ranks, and which threads are of which process."""
    if len(files) == 1 and re.search(r"\.0(?:\.gz)?$", files[0].name):  # no process has this number
        return [list(files)], True, Family()
    if len(files) < 2 or any(_has_numbers(path) for path in files):
        ranks = ranks_by_name([path.name for path in files])
        if ranks is None:
            return [list(files)] if len(files) == 1 else [[path] for path in files], len(files) > 1, _family_of(files)
        return [[path] for _, path in sorted(zip(ranks, files, strict=True))], True, Family()
    stems = sorted({path.name.removesuffix(".gz").rpartition(".")[0] for path in files})
    by_name = ranks_by_name(stems)
    if by_name is not None:
        groups: dict[int, list[Path]] = {rank: [] for rank in by_name}
        for path in files:
            groups[by_name[stems.index(path.name.removesuffix(".gz").rpartition(".")[0])]].append(path)
        return [groups[rank] for rank in sorted(groups)], True, Family()
    family = _family_of(files)
    processes: dict[int, list[Path]] = {}
    for path in sorted(files, key=_suffix):
        processes.setdefault(family.process_of(_suffix(path)), []).append(path)
    return [processes[process] for process in sorted(processes)], True, family


def _rows(
    files: Sequence[Path], sources: Sequence[Source], family: Family, ranks: dict[int, int] | None, rank: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one rank (`ranks`: of one file with several)."""
    threads = Threads(family, ranks, rank)
    taken_bytes = max(TAKEN_BYTES // len(files), 1 << 16)

    def stream(path: Path, source: Source) -> Iterator[pa.RecordBatch]:
        own = _suffix(path) if len(files) > 1 else 0

        def place(processes: np.ndarray, numbers: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return threads(processes, numbers + own * (numbers == 0), lines)

        chunks = chunks_of(path, source, min(CHUNK_BYTES, taken_bytes))
        rows = RawTrace().batches("text", chunks, source, place, taken_bytes)
        yield from ordered(rows, source) if len(files) > 1 else rows  # a file is in order; merging relies on it
        if source.lines == 0:
            source.loss.truncated = True
            source.loss.add(0, "empty file", count=0)

    streams = [stream(path, source) for path, source in zip(files, sources, strict=True)]
    yield from streams[0] if len(streams) == 1 else merged(streams)


def read(paths: Sequence[Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return the facts of a trace, and its rows; see `Reader.read`."""
    groups, named, family = _group(files_of(paths))
    info = TraceInfo(format=NAME, lacks=list(LACKS), clock=clock_of([path for group in groups for path in group]))
    ranks = None if named else order_ranks([family.process_of(thread) for thread in family.process])
    info.ranks = len(groups) if named else 0
    info.sources = [
        Source(path=str(path), rank=rank if named else -1) for rank, files in enumerate(groups) for path in files
    ]

    if family.children:
        who = count_text(len(family.children), "process was", "processes were")
        info.sources[0].loss.add(
            0,
            f"{who} made by another one of this trace, and each counts as a rank: start strace"
            " once for each rank, with -o NAME.RANK (NAME.0 for one), to have its children in it",
            count=0,
        )

    def rows() -> Iterator[pa.RecordBatch]:
        start = 0
        for rank, files in enumerate(groups):
            yield from _rows(files, info.sources[start : start + len(files)], family, ranks, rank)
            start += len(files)
        if ranks is not None:
            info.ranks = max(len(ranks), 1)

    return info, rows()


def clock_of(files: Sequence[Path]) -> str:
    """Return the origin of the times in files of strace or ltrace, one of `table.CLOCKS`."""
    begin = b"".join(map(begin_of, samples(files)))
    found = re.search(rb"^(?:\[pid\s+\d+\] +|\d{1,8} +)?(\d+[:.]?\d*)", begin, re.MULTILINE)
    if found is None:
        return "arbitrary"
    if b":" in found[1]:
        return "midnight"
    return "unix" if float(found[1]) >= 1e8 else "arbitrary"
