"""How long each rank is in the calls of a record: at least, and at most.

Problem. A record of all ranks has the sum of their times, and the time of its slowest and of its fastest rank. What one
rank has spent follows from these only within bounds.

Algorithm. A record of n ranks has the sum S, the slowest rank's time s and the fastest rank's time f. Every other rank
has a time from max(f, S - s - f - (n - 3) s) to min(s, S - s - (n - 2) f). If some kinds of calls have the sum P, a
rank with a time from a to b in all calls has a time from max(0, a - (S - P)) to min(b, P) in calls of these kinds.
Single ranks (the slowest, the fastest, the owner of a record, ranks with requests in DXT) are exceptions with bounds of
their own.

Guarantees. Every bound follows from the record; no assumption is made about how ranks differ. O(records + exceptions).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mpiio_ext.analytics.ledger.records import ALL, Records
from mpiio_ext.analytics.tables.arrays import Numbers, Whole

#: Bounds: at least, at most.
Pair: TypeAlias = tuple[Numbers, Numbers]


@dataclasses.dataclass(frozen=True)
class RankTimes:
    """Times of the ranks on some files: of each file those of any rank, and exceptions of single ranks.

    Attributes
    ----------
    least, most : array (files)
        Seconds of a rank that is no exception.
    place, rank : array (exceptions)
        The file and the rank of each exception, in the order of both; each pair once.
    own_least, own_most : array (exceptions)
        Seconds of that rank.
    """

    least: Numbers
    most: Numbers
    place: Whole
    rank: Whole
    own_least: Numbers
    own_most: Numbers

    def at(self, place: Whole, rank: Whole) -> tuple[Numbers, Numbers]:
        """Return the bounds of ranks on files."""
        least, most = self.least[place], self.most[place]
        if len(self.rank):
            found = np.searchsorted(_key(self.place, self.rank), _key(place, rank)).clip(0, len(self.rank) - 1)
            there = (self.place[found] == place) & (self.rank[found] == rank)
            least = np.where(there, self.own_least[found], least)
            most = np.where(there, self.own_most[found], most)
        return least, most


def _key(place: Whole, rank: Whole) -> Whole:
    return np.asarray((place << 32) + rank)


def spread(records: Records, place: Whole, files: int, kinds: list[int]) -> RankTimes:
    """Return the times of ranks in calls of some kinds.

    Parameters
    ----------
    records : of one layer, at most one of several ranks for each file.
    place : of each record, which of so many `files` it is of.
    kinds : numbers of kinds of calls.
    """
    part, whole = records["seconds"][:, kinds].sum(axis=1), records["seconds"].sum(axis=1)
    several = records["rank"] < 0
    least, most = np.zeros(files), np.zeros(files)
    group, at = records[several], place[several]
    low, high, slowest, fastest = _of_groups(group, whole[several])
    rest = (whole - part)[several]
    np.maximum.at(least, at, np.maximum(low - rest, 0.0))
    np.add.at(most, at, np.minimum(high, part[several]))
    ranks, places, mine_least, mine_most = [], [], [], []
    for which, time in ((group["slowest"], slowest), (group["fastest"], fastest)):
        known = (which >= 0) & (group["rank"] == ALL)
        ranks.append(which[known].astype(np.int64))
        places.append(at[known])
        mine_least.append(np.maximum(time - rest, 0.0)[known])
        mine_most.append(np.minimum(time, part[several])[known])
    own = ~several
    ranks.append(records["rank"][own].astype(np.int64))
    places.append(place[own])
    mine_least.append(part[own])
    mine_most.append(part[own])
    return unique(least, most, *map(np.concatenate, (places, ranks, mine_least, mine_most)))


def unique(least: Numbers, most: Numbers, place: Whole, rank: Whole, low: Numbers, high: Numbers) -> RankTimes:
    """Return exceptions in order: of several of a rank and file the first (the slowest rank may be the fastest)."""
    key, first = np.unique(_key(place, rank), return_index=True)
    return RankTimes(least, most, key >> 32, key & 0xFFFFFFFF, low[first], high[first])


def _of_groups(group: Records, whole: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return the least and the most time of any other rank of groups, and those of their slowest and fastest ranks."""
    count = group["ranks"].astype(float)
    known = (group["slowest"] >= 0) & (group["rank"] == ALL)
    slow = np.where(known, np.minimum(group["slowest_s"], whole), whole)
    fast = np.where(known & (group["fastest"] >= 0), np.minimum(group["fastest_s"], slow), 0.0)
    others = np.maximum(whole - slow, 0.0)
    low = np.maximum(fast, others - fast - np.maximum(count - 3, 0) * slow)
    high = np.minimum(slow, others - np.maximum(count - 2, 0) * fast)
    alone = (count <= 1) & (group["rank"] == ALL)
    low, high = np.where(alone, whole, low), np.where(alone, whole, high)
    low = np.where(known | alone, np.minimum(low, high), 0.0)
    return low, np.where(known | alone, np.maximum(high, low), whole), slow, fast


def joined(one: RankTimes, other: RankTimes, how: Callable[[Pair, Pair, Whole], Pair]) -> RankTimes:
    """Return the times of two spreads on the same files, joined by `how`: of their bounds, and the places of files."""
    key = np.unique(np.concatenate([_key(one.place, one.rank), _key(other.place, other.rank)]))
    place, rank = key >> 32, key & 0xFFFFFFFF
    files = np.arange(len(one.least))
    return RankTimes(
        *how((one.least, one.most), (other.least, other.most), files),
        place,
        rank,
        *how(one.at(place, rank), other.at(place, rank), place),
    )
