"""Times of operations and their bytes: time series of a trace or of a path.

Problem.   Traces have the times of every rank; a path has slack and execution times of each group. Figures need both as
           the same thing.
Algorithm. An operation has a start in ns from the workload's first one, an execution time, the bytes of a data
           operation, and a weight: how many operations it stands for. Of a path the starts of a group follow from its
           slack and execution times, and each of its operations stands for those of all members of the group.
           Throughput spreads the bytes of an operation evenly over its execution time. All series are sums over
           equal bins, in O(operations + bins).
Guarantee. The bins of a series add up to the total, to the last bits of a double.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import DATA, Operation, operation_of
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.path.short import moved_in_extra, moved_of

_Numbers = NDArray[np.int64]
_Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Activity:
    """The operations of a workload in time; arrays have an element for each.

    Attributes
    ----------
    start : ns from the start of the first one.
    duration : ns.
    size : bytes of a data operation, 0 if they are not known and of others.
    data : it reads or writes data of a file.
    writes : it writes.
    root : the root process has made it.
    weight : operations that it stands for.
    ranks : processes of the workload.
    """

    start: _Numbers
    duration: _Numbers
    size: _Numbers
    data: NDArray[np.bool_]
    writes: NDArray[np.bool_]
    root: NDArray[np.bool_]
    weight: _Reals
    ranks: int

    @property
    def makespan(self) -> int:
        """Ns from the start of the first operation to the end of the last."""
        return int((self.start + self.duration).max(initial=0))

    @property
    def operations(self) -> float:
        """Number of operations of all ranks."""
        return float(self.weight.sum())

    def total_bytes(self, *, writes: bool) -> float:
        """Bytes that were written, or read, by all ranks."""
        chosen = self.data & (self.writes == writes)
        return float((self.size[chosen] * self.weight[chosen]).sum())

    def with_children(self, count: int) -> Activity:
        """Return the workload as if it had so many child processes: operations of children weigh more, or less."""
        if self.ranks < 2 or count == self.ranks - 1:
            return self
        weight = np.where(self.root, self.weight, self.weight * count / (self.ranks - 1))
        return Activity(self.start, self.duration, self.size, self.data, self.writes, self.root, weight, 1 + count)

    def begun(self, width: float, bins: int, *, data: bool = False) -> _Reals:
        """Return how many operations begin in each bin.

        Parameters
        ----------
        width : of a bin, ns.
        bins : number of bins; what begins behind the last one counts there.
        data : count data operations only.
        """
        chosen = self.data if data else np.ones(self.start.size, bool)
        places = np.minimum(self.start[chosen] // max(width, 1e-9), bins - 1).astype(np.int64)
        return np.bincount(places, self.weight[chosen], bins).astype(np.float64)

    def moved(self, width: float, bins: int) -> _Reals:
        """Return the bytes that are moved in each bin; the parameters are those of `begun`."""
        chosen = self.data & (self.size > 0)
        amount = self.size[chosen] * self.weight[chosen]
        begin = np.minimum(self.start[chosen] / width, bins)
        end = np.minimum((self.start + self.duration)[chosen] / width, bins)
        return _spread(begin, end, amount, bins)


def _spread(begin: _Reals, end: _Reals, amount: _Reals, bins: int) -> _Reals:
    """Return the sums in each bin when each amount is spread evenly from its begin to its end, in bins."""
    first = np.minimum(begin.astype(np.int64), bins - 1)
    last = np.clip(np.ceil(end).astype(np.int64) - 1, first, bins - 1)
    inside = first == last
    found = np.bincount(first[inside], amount[inside], bins).astype(np.float64)
    begin, end, amount, first, last = (item[~inside] for item in (begin, end, amount, first, last))
    if begin.size:
        rate = amount / (end - begin)
        found += np.bincount(first, rate * (first + 1 - begin), bins)
        found += np.bincount(last, rate * (end - last), bins)
        steps = np.bincount(first + 1, rate, bins + 1) - np.bincount(last, rate, bins + 1)
        found += np.maximum(0, np.cumsum(steps)[:bins])
    return found


# ---- of paths and tables ---------------------------------------------------------------------------------------------


def _kinds(layers: pa.ChunkedArray, names: pa.ChunkedArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which operations move data, and which write."""
    columns = []
    words = []
    for column in (layers, names):
        plain = column.unify_dictionaries().combine_chunks()
        if isinstance(plain, pa.ChunkedArray):  # without rows
            return np.zeros(0, bool), np.zeros(0, bool)
        columns.append(np.asarray(plain.indices.fill_null(0), np.int64))
        words.append(plain.dictionary.to_pylist())
    codes, inverse = np.unique(columns[0] * len(words[1]) + columns[1], return_inverse=True)
    found: Sequence[Operation] = [
        operation_of(words[0][code // len(words[1])], words[1][code % len(words[1])]) for code in codes.tolist()
    ]
    data = np.array([item.role in DATA for item in found], bool)
    writes = np.array([bool(item.writes) for item in found], bool)
    return data[inverse.reshape(-1)], writes[inverse.reshape(-1)]


def _known(column: pa.ChunkedArray) -> _Numbers:
    return np.asarray(pc.fill_null(column, 0).to_numpy(), np.int64)


def _joined(parts: Sequence[Activity], ranks: int) -> Activity:
    """Return one workload of several, whose first operation starts at 0."""
    if not parts:
        none = np.zeros(0, np.int64)
        no = np.zeros(0, bool)
        return Activity(none, none, none, no, no, no, np.zeros(0), ranks)
    start = np.concatenate([part.start for part in parts])
    return Activity(
        start - start.min(initial=start[0] if start.size else 0),
        np.concatenate([part.duration for part in parts]),
        np.concatenate([part.size for part in parts]),
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.writes for part in parts]),
        np.concatenate([part.root for part in parts]),
        np.concatenate([part.weight for part in parts]),
        ranks,
    )


def activity_of_tables(tables: Mapping[int, pa.Table]) -> Activity:
    """Return the activity of the operations (`table.SCHEMA`) of each rank; the lowest one is the root."""
    parts = []
    for rank, table in tables.items():
        data, writes = _kinds(table["layer"], table["operation"])
        moved = moved_of(table)
        size = np.where(data, np.where(moved >= 0, moved, np.maximum(0, _known(table["size"]))), 0)
        parts.append(
            Activity(
                _known(table["timestamp"]),
                np.maximum(0, _known(table["duration"])),
                size,
                data,
                writes,
                np.full(data.size, rank == min(tables)),
                np.ones(data.size),
                1,
            )
        )
    return _joined(parts, len(tables))


def activity_of_path(path: WorkloadPath) -> Activity:
    """Return the activity of a workload path, each group on its own from 0 on."""
    data, writes = _kinds(path.table["layer"], path.table["operation"])
    groups, moved = path.table["groups"].to_numpy(), moved_in_extra(path.table["extra"])
    parts = []
    for group in range(path.group_count):
        rows = np.flatnonzero(groups >> group & 1)
        slack, duration = (np.maximum(0, _known(path.table[f"{name}_{group}"])[rows]) for name in ("slack", "duration"))
        start = np.cumsum(slack) + np.concatenate([[0], np.cumsum(duration)[:-1]]) if rows.size else slack
        asked = np.maximum(0, _known(path.table[f"size_{group}"])[rows])
        size = np.where(data[rows], np.where(moved[rows] >= 0, moved[rows], asked), 0)
        members = 1 if group == 0 else max(1, len(path.info.members[group]))
        parts.append(
            Activity(
                start,
                duration,
                size,
                data[rows],
                writes[rows],
                np.full(rows.size, group == 0),
                np.full(rows.size, float(members)),
                1,
            )
        )
    return _joined(parts, 1 + sum(max(1, len(ranks)) for ranks in path.info.members[1:]))
