"""Sets of jobs drawn at random from measured patterns, as arrays, for the simulation of policies.

Problem.    10,000 sets of 16 patterns, 9 or more sizes of the pool, 7 policies: as Python objects that takes an hour.
Guarantees. Sets are drawn with replacement, also within a set; the same seed draws the same sets.
Source.     Sections 3.1 and 3.2 of the arbitration paper; options are the measured numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.jobs import Job
from mpiio_ext.delegates.arbitration.pattern import Pattern
from mpiio_ext.delegates.arbitration.solver import profiles
from mpiio_ext.errors import ArgumentError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Patterns that sets are drawn from.

    Attributes
    ----------
    names : of the patterns
    counts : (options,) numbers of I/O nodes, ascending from 0 or more, that every pattern has
    bandwidth : (patterns, options) MB/s
    compute_nodes, processes : (patterns,)
    best_counts : number of I/O nodes -> of how many patterns it is the best by the largest repetition; the smallest of
        several
    """

    names: tuple[str, ...]
    counts: Ints
    bandwidth: Floats
    compute_nodes: Ints
    processes: Ints
    best_counts: Mapping[int, int]


def catalogue(curves: Mapping[Pattern, Curve], *, statistic: Literal["mean", "max"] = "mean") -> Catalogue:
    """Return the patterns of curves that have the same numbers of I/O nodes.

    Raises
    ------
    ArgumentError
        There are fewer than one, or the curves have no number in common with all others.
    """
    if not curves:
        raise ArgumentError("there is no curve to simulate with")
    counts = np.array(sorted(set.intersection(*(set(curve.counts) for curve in curves.values()))), np.int64)
    if not counts.size:
        raise ArgumentError("the curves have no number of I/O nodes in common")
    points = [[curve.points[count] for count in counts.tolist()] for curve in curves.values()]
    largest = np.array([[point.best for point in row] for row in points])
    best = counts[largest.argmax(axis=1)]
    return Catalogue(
        names=tuple(pattern.name for pattern in curves),
        counts=counts,
        bandwidth=largest if statistic == "max" else np.array([[point.mean for point in row] for row in points]),
        compute_nodes=np.array([pattern.compute_nodes for pattern in curves]),
        processes=np.array([pattern.processes for pattern in curves]),
        best_counts={count: int((best == count).sum()) for count in counts.tolist()},
    )


class Sets:
    """Sets of patterns, and the sizes of the pool that they share.

    Parameters
    ----------
    data : what is drawn from
    members : (sets, apps) patterns, by their places
    pools : numbers of I/O nodes
    system_nodes : compute nodes of the system, for STATIC; None = those of each set

    Attributes
    ----------
    compute_nodes, processes : (sets, apps)
    total : compute nodes of the system: one for all, or (sets, 1)
    pools : (pools,) ascending
    """

    def __init__(self, data: Catalogue, members: Ints, pools: Ints, system_nodes: int | None) -> None:
        self.data, self.members, self.pools, self.system_nodes = data, members, np.unique(pools), system_nodes
        self.compute_nodes: Ints = data.compute_nodes[members]
        self.processes: Ints = data.processes[members]
        self.total = self.compute_nodes.sum(axis=1, keepdims=True) if system_nodes is None else system_nodes
        self._rows: Floats = data.bandwidth[members]

    def best_places(self) -> Ints:
        """Return the places in `Catalogue.counts` of the best option of every job, (sets, apps)."""
        places: Ints = self.data.bandwidth.argmax(axis=1)[self.members]
        return places

    def fitted_places(self, wanted: Ints, limit: int | None) -> Ints:
        """Return the places of the largest options that exceed neither the wanted number nor the limit; else the first.

        Parameters
        ----------
        wanted : (sets, apps) numbers of I/O nodes
        """
        most = int(self.data.counts[-1]) if limit is None else limit
        places: Ints = np.maximum(np.searchsorted(self.data.counts, np.minimum(wanted, most), side="right") - 1, 0)
        return places

    def reached(self, places: Ints) -> tuple[Floats, Ints]:
        """Return aggregate bandwidth in MB/s and I/O nodes of each set, (sets,), with the options of these places."""
        bandwidth: Floats = np.take_along_axis(self._rows, places[..., None], 2)[..., 0].sum(axis=1)
        given: Ints = self.data.counts[places].sum(axis=1)
        return bandwidth, given

    @cached_property
    def profile(self) -> Floats:
        """The largest aggregate bandwidth by size of the pool, (sets, from 0 to the most that all jobs use), MB/s."""
        counts, patterns = self.data.counts, len(self.data.names)
        enough = int(max(self.pools[-1], self.members.shape[1] * counts[-1]))
        found: Floats = profiles(
            np.arange(patterns + 1) * counts.size,
            np.tile(counts, patterns),
            self.data.bandwidth.ravel(),
            self.members,
            enough,
        )
        return found

    def jobs(self, number: int) -> list[Job]:
        """Return a set as jobs, the input of a policy."""
        curves = [
            Curve.of(dict(zip(self.data.counts.tolist(), row.tolist(), strict=True))) for row in self._rows[number]
        ]
        return [
            Job(name=str(place), compute_nodes=nodes, processes=processes, curve=curve)
            for place, (nodes, processes, curve) in enumerate(
                zip(self.compute_nodes[number].tolist(), self.processes[number].tolist(), curves, strict=True)
            )
        ]
