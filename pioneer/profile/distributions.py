"""Empirical distributions: what is kept of a characteristic, and how values are drawn from it.

Problem.   Some characteristics have few different values (sizes), others as many as there are operations (slack time).
           The profile must be small enough to be read, and exact where it matters.
Content.   Up to `MOST_VALUES` different values are kept with their counts: the distribution is exact. Beyond that it is
           reduced to `MOST_VALUES` values at equal steps of the cumulative count, each with the number of values that
           it stands for: between neighbours of the cumulative distribution lie at most 2 / MOST_VALUES of all. Known
           distributions that the samples do not contradict can be kept beside them (`fits`); values are drawn from
           the samples all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpiio_ext.pioneer.profile.fits import FAMILIES, Fit, find_fits

__all__ = ["MOST_VALUES", "Distribution", "PlacedError"]

MOST_VALUES = 4096


class PlacedError(ValueError):
    """A JSON value is no distribution.

    Attributes
    ----------
    place : JSON pointer in it, "" of itself.
    what : what is wrong there.
    """

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"{place}: {what}")
        self.place, self.what = place, what


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
        """Return what `to_json` has made of one, possibly edited.

        Raises
        ------
        PlacedError
            It is none; the message says what is wrong, and where.
        """
        if not isinstance(document, dict) or set(document) - {"exact", "fits"} != {"values", "counts"}:
            raise PlacedError("", 'a distribution is an object with "values" and "counts"')
        values, counts = _integers(document["values"], "values"), _integers(document["counts"], "counts")
        if len(values) != len(counts):
            raise PlacedError("", f"there are {len(values)} values and {len(counts)} counts")
        low = next((place for place, count in enumerate(counts) if count <= 0), None)
        if low is not None:
            raise PlacedError(f"/counts/{low}", f"{counts[low]} is less than 1")
        order = np.argsort(np.asarray(values, np.int64), kind="stable")
        ordered = np.asarray(values, np.int64)[order]
        twice = np.flatnonzero(np.diff(ordered) == 0)
        if twice.size:
            raise PlacedError(f"/values/{order[twice[0] + 1]}", f"the value {ordered[twice[0]]} stands there twice")
        fits = tuple(_fit(place, item) for place, item in enumerate(document.get("fits", [])))
        return cls(ordered, np.asarray(counts, np.int64)[order], bool(document.get("exact", True)), fits)


def _fit(place: int, found: Any) -> Fit:
    """Return a fit whose members have been checked against the schema."""
    if not isinstance(found, dict) or found.get("family") not in FAMILIES:
        raise PlacedError(f"/fits/{place}", f"no fit of a known family; there are {', '.join(FAMILIES)}")
    wanted = FAMILIES[found["family"]].names
    if set(found.get("parameters", ())) != set(wanted):
        raise PlacedError(f"/fits/{place}/parameters",
                          f"the family {found['family']} has the parameters {' and '.join(wanted)}")
    return Fit.from_json(found)


def _integers(found: Any, name: str) -> Sequence[int]:
    if not isinstance(found, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in found):
        raise PlacedError(f"/{name}", "not a list of whole numbers")
    large = next((place for place, item in enumerate(found) if abs(item) >= 1 << 63), None)
    if large is not None:
        raise PlacedError(f"/{name}/{large}", "outside of 64 bits")
    return found
