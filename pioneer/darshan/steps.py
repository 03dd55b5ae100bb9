"""Ranks over time, from the steps of their recordings: seconds in calls by band and bin, bytes of files by bin.

Problem. A log has the time in metadata calls, not when that was, and DXT only of runs of few accesses; of MPI-IO calls
it has no times. Algorithm: the time and the bytes of a step are spread evenly over it; the sum so far, which is a line
of few corners, is read at the edges of bins. Of an MPI-IO call a step has what is left without the calls on files in
it, and without waits and messages where the library has reported them, spread over the whole call. What threads of a
rank do beside each other counts once, calls on files first.
Guarantees. Sums over bins are those of the steps, as far as they lie within the run. Memory does not depend on the
number of ranks, but for a sum of each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mpiio_ext.pioneer.darshan import recordings, unfinished
from mpiio_ext.pioneer.darshan.names import clean
from mpiio_ext.pioneer.darshan.tallies import Tallies, of_rows, rows_of

_READ, _WRITE, _META = range(3)
_CLASSES = len(recordings.CLASSES)
#: Most files whose views, and times in MPI-IO calls, are stored.
_MOST_VIEWED = 100
_Line = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Seen:
    """The recordings of a run over time.

    Attributes
    ----------
    line : array (classes, bands, bins)
        Seconds in each of `recordings.CLASSES`, which do not overlap.
    moved : array (files, 2, bins)
        Bytes read and written of the files that were asked for, as far as a step is of one file.
    spent_s : array (processes, classes)
        Seconds of each rank in each class.
    views : of files, the different views that ranks have set first, as a recording has them.
    in_mpi : of files, array (processes, 4)
        Seconds of each rank in MPI-IO calls that read, that write, and that open, close and the like. Those of the last
        ones in which it has waited for others. NaN of ranks that have not opened the file.
    tallies : calls by rank, kind, file and outcome, of MPI-IO and of all that are no reads and writes.
    """

    line: _Line
    moved: _Line
    spent_s: _Line
    views: Mapping[str, Collection[str]] = field(default_factory=dict)
    in_mpi: Mapping[str, _Line] = field(default_factory=dict)
    tallies: Tallies = field(default_factory=of_rows)


def _so_far(steps: recordings.Structured, what: str, edges: _Line, since: int) -> _Line:
    """Return the sum of a field of steps up to each edge (s)."""
    starts, ends = ((steps[name].astype(np.float64) + since) / 1e9 for name in ("start", "end"))
    order = np.argsort(starts, kind="stable")
    sums = np.cumsum(steps[what][order].astype(np.float64))
    corners = np.maximum.accumulate(np.stack([starts[order], ends[order]], axis=1).ravel())  # steps may overlap
    values = np.stack([np.append(0, sums[:-1]), sums], axis=1).ravel()
    found: _Line = np.interp(edges, corners, values, left=0.0)
    return found


def _binned(steps: recordings.Structured, what: str, edges: _Line, since: int) -> _Line:
    return np.diff(_so_far(steps, what, edges, since)) if len(steps) else np.zeros(len(edges) - 1)


def _not_beside(mine: _Line, steps: recordings.Structured) -> float:
    """Return the share of the rests of MPI-IO calls that is not beside calls on files of other threads."""
    order = np.argsort(steps["start"], kind="stable")
    starts, ends = steps["start"][order], np.maximum.accumulate(steps["end"][order])
    whole_s = float((ends - np.maximum(starts, np.append(0, ends)[: len(ends)])).clip(0).sum()) / 1e9
    rests_s = float(mine[_META + 1 :].sum())
    return min(1.0, max(whole_s - float(mine[: _META + 1].sum()), 0.0) / rests_s) if rests_s > 0 else 1.0


def _add_in_mpi(in_mpi: dict[str, _Line], recording: recordings.Recording, rank: int, processes: int) -> None:
    """Add the time of a rank in MPI-IO calls, by file."""
    records = recording.records
    for row in records[(records["module"] == recordings.MODULES.index("MPI-IO")) & (rank < processes)]:
        name = clean(recording.names[int(row["name"])])
        if name in in_mpi or len(in_mpi) < _MOST_VIEWED:
            mine = in_mpi.setdefault(name, np.full((processes, 4), np.nan))
            mine[rank] = np.nan_to_num(mine[rank]) + np.append(row["busy"], row["waited"][1]) / 1e9


def in_calls(
    run: recordings.Run, run_s: float, *, bands: int, bins: int, files: Sequence[str] = (), processes: int = 0
) -> Seen | None:
    """Return the times of ranks by band of ranks and bin of the run; None: no recordings.

    Parameters
    ----------
    run : its recordings; without ends, calls in which processes were last do not count.
    run_s : seconds from the first rank's start.
    bands, bins : how many.
    files : names of those whose bytes are asked for.
    processes : how many there are; 0: the ranks.
    """
    heads = recordings.heads([run.folder])
    heads = [head for head in heads if head.rank >= 0] or heads
    if not heads:
        return None
    line, moved = np.zeros((_CLASSES, bands, bins)), np.zeros((len(files), 2, bins))
    origin = min(head.started_ns for head in heads) if run.origin_ns is None else run.origin_ns
    processes = processes or max(1, *(head.ranks for head in heads))
    spent = np.zeros((processes, _CLASSES))
    without_mpi, views, in_mpi = recordings.WithoutMPI(), dict[str, dict[str, None]](), dict[str, _Line]()
    tallied = list[tuple[Any, ...]]()
    edges, wanted = np.linspace(0, run_s, bins + 1), {name: place for place, name in enumerate(files)}
    for head in heads:
        recording = recordings.read(head.path)
        since, steps = recording.since_ns - origin, recording.steps
        if (end := run.ends.get(f"{head.host} {head.pid}", run.ends.get(""))) is not None:
            steps = unfinished.steps(recording, end)
        of_kinds = (steps[steps["class"] == kind] for kind in range(_CLASSES))
        mine = np.stack([_binned(some, "busy", edges, since) for some in of_kinds]) / 1e9
        rank = head.rank if head.rank >= 0 else without_mpi.number(recording)
        mine[_META + 1 :] *= _not_beside(mine, steps)
        line[:, min(rank * bands // processes, bands - 1)] += mine
        spent[min(rank, processes - 1)] += mine.sum(axis=1)
        tallied += rows_of(recording, min(rank, processes - 1))
        _add_in_mpi(in_mpi, recording, rank, processes)
        for number, text in recording.views:
            if (name := clean(recording.names.get(number, ""))) in views or len(views) < _MOST_VIEWED:
                views.setdefault(name, {})[text] = None
        for number, name in recording.names.items() if files else ():
            if (place := wanted.get(clean(name))) is not None:
                for way in (_READ, _WRITE):
                    of_it = steps[(steps["class"] == way) & (steps["name"] == number)]
                    moved[place, way] += _binned(of_it, "bytes", edges, since)
    return Seen(line, moved, spent, views, in_mpi, of_rows(tallied))
