"""Empirical distributions: the stored values of a characteristic, and how values are drawn from them.

Problem.   Some characteristics have few different values (sizes), others as many as there are operations (slack time).
           The profile must be small enough to be read, and exact where it matters.
Content.   Up to `MOST_VALUES` different values are kept with their counts: the distribution is exact. Beyond that it is
           reduced to `MOST_VALUES` values at equal steps of the cumulative count, each with the number of values that
           it stands for: between neighbours of the cumulative distribution lie at most 2 / MOST_VALUES of all. Known
           distributions that the samples do not contradict can be stored beside the samples (`fits`); values are drawn
           from the samples all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpiio_ext.common import documents
from mpiio_ext.common.documents import DocumentError, pointer
from mpiio_ext.pioneer.profile.fits import FAMILIES, Fit, find_fits
from mpiio_ext.pioneer.profile.form import ListedDistribution

MOST_VALUES = 4096


@dataclass(frozen=True, slots=True)
class Distribution:
    """Values and how often they occur.

    Attributes
    ----------
    values : int64, ascending, each once.
    counts : int64, > 0.
    exact : no value has been replaced by a neighbour.
    fits : known distributions that the samples do not contradict, the closest first.
    """

    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    exact: bool = True
    fits: tuple[Fit, ...] = ()

    @classmethod
    def fitted(cls, samples: ArrayLike) -> Distribution:
        """Return the distribution of samples, with fits."""
        known = np.asarray(samples, np.int64)
        return replace(cls.of(known), fits=find_fits(known))

    @classmethod
    def of(cls, samples: ArrayLike, most: int = MOST_VALUES) -> Distribution:
        """Return the distribution of samples."""
        values, counts = np.unique(np.asarray(samples, np.int64), return_counts=True)
        if values.size <= most:
            return cls(values, counts.astype(np.int64))
        ends = np.cumsum(counts)
        step = np.minimum((ends - 1) * most // ends[-1], most - 1)
        begins = np.flatnonzero(np.diff(step, prepend=-1))
        sums = np.add.reduceat(counts, begins)
        middles = np.searchsorted(ends, (ends[begins] - counts[begins]) + (sums + 1) // 2)
        return cls(values[middles], sums.astype(np.int64), exact=False)

    @property
    def total(self) -> int:
        """Number of samples."""
        return int(self.counts.sum())

    def multiset(self) -> NDArray[np.int64]:
        """Return every sample, ascending."""
        return np.repeat(self.values, self.counts)

    def draw(self, count: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return values drawn independently.

        Raises
        ------
        ValueError
            There are no samples to draw from.
        """
        if not self.values.size:
            raise ValueError("nothing can be drawn from a distribution without values")
        ends = np.cumsum(self.counts)
        found: NDArray[np.int64] = self.values[np.searchsorted(ends, random.integers(0, ends[-1], count), side="right")]
        return found

    def distance(self, other: Distribution) -> float:
        """Return the Kolmogorov-Smirnov distance of two distributions, 0 .. 1; 0 for two empty ones, 1 for one."""
        if not self.values.size or not other.values.size:
            return float(self.values.size != other.values.size)
        points = np.union1d(self.values, other.values)
        return float(np.abs(self._below(points) - other._below(points)).max())

    def _below(self, points: NDArray[np.int64]) -> NDArray[np.float64]:
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        found: NDArray[np.float64] = ends[np.searchsorted(self.values, points, side="right")] / ends[-1]
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        found = {"values": self.values.tolist(), "counts": self.counts.tolist(), "exact": self.exact}
        return found | {"fits": [fit.to_json() for fit in self.fits]} if self.fits else found

    @classmethod
    def from_json(cls, document: Any) -> Distribution:
        """Return the distribution from the output of `to_json`, possibly edited.

        Raises
        ------
        DocumentError
            The value is no distribution; the message has each mistake and its place.
        """
        return cls.checked(documents.parse(ListedDistribution, document))

    @classmethod
    def checked(cls, found: ListedDistribution) -> Distribution:
        """Return the distribution of a form.

        Raises
        ------
        DocumentError
            The lists contradict each other; the form's types cannot express this rule.
        """
        values, counts = np.asarray(found["values"], np.int64), np.asarray(found["counts"], np.int64)
        if len(values) != len(counts):
            raise DocumentError([("", f"there are {len(values)} values and {len(counts)} counts")])
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        twice = np.flatnonzero(np.diff(ordered) == 0)
        if twice.size:
            where, value = order[twice[0] + 1], ordered[twice[0]]
            raise DocumentError([(pointer("values", where), f"the value {value} stands there twice")])
        fits = tuple(found.get("fits", ()))
        for place, fit in enumerate(fits):
            wanted = FAMILIES[fit.family].names
            if set(fit.parameters) != set(wanted):
                what = f"the family {fit.family} has the parameters {' and '.join(wanted)}"
                raise DocumentError([(pointer("fits", place, "parameters"), what)])
        return cls(ordered, counts[order], found.get("exact", True), fits)
