"""Calls on files that are neither reads nor writes, by what they do: waits for locks, renames, msync and the like.

Problem. Darshan has no counter for most of these calls, and one time for all others, so that no cause of the diagnosis
names them.
Algorithm. The tallies of a run (:mod:`mpiio_ext.pioneer.darshan.tallies`) are grouped by kind, or, of kinds without a
name, by function.
Guarantees. A time is that of one rank, the rank whose time is the run's time in I/O; the range is over all ranks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.diagnosis.words import short_name
from mpiio_ext.analytics.ledger.records import KINDS, Records, empty
from mpiio_ext.common.units import count_text, seconds_text

if TYPE_CHECKING:
    from mpiio_ext.pioneer.darshan.tallies import Tallies

#: Kinds of calls of which records have the time only among others, and that are shown by their names.
_BY_NAME = ("rename", "unlink", "lock")

_WORDS = {
    "lock": "waits for locks",
    "rename": "renames",
    "unlink": "removing files",
    "mapping": "mapping files into memory",
    "stat": "queries",
}
#: Kinds of calls that a ledger has among others.
_KINDS = {"open": "meta", "stat": "meta"}
#: Functions whose kind is one that records have, but for these.
_OF_FUNCTION = {"msync": "syncs of mapped memory"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """Calls of one kind.

    Attributes
    ----------
    words : what they are, of which files: of those of the rank whose seconds they are.
    seconds : of the rank with most time in I/O, or of an average one.
    ranks : which ranks spend how long in them, in words; "" for a run of one rank.
    named : their time is also that of causes with less exact names.
    """

    words: str
    seconds: float
    ranks: str = ""
    named: bool = False


def _where(some: Tallies, among: Collection[str]) -> str:
    spent: dict[str, float] = {}
    for name, seconds in zip(some.file, some.seconds, strict=True):
        spent[name] = spent.get(name, 0.0) + float(seconds)
    names = sorted((name for name in spent if name), key=lambda name: -spent[name])
    if not names:
        return ""
    more = f" and {count_text(len(names) - 1, 'more file')}" if len(names) > 1 else ""
    return f" of `{short_name(names[0], among)}`{' and many more files' if '' in spent else more}"


def _of_ranks(each: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    if len(each) == 1:
        return ""
    if each.min() >= each.max() / 2:
        least, most = seconds_text(float(each.min())), seconds_text(float(each.max()))
        return f"Each rank spent {least if least == most else f'{least} to {most}'} in such calls"
    return (
        f"Rank {int(each.argmax())} spent {seconds_text(float(each.max()))} in such calls,"
        f" an average rank {seconds_text(float(each.mean()))}"
    )


def groups(tallies: Tallies, busiest: int | None, processes: int, *, alone: bool = False) -> list[Others]:
    """Return the kinds of calls, those with most time first.

    Parameters
    ----------
    tallies : of a run.
    busiest : the rank with most time in I/O, whose seconds are returned; None: those of an average rank.
    processes : how many ranks there are.
    alone : the sentence is of that rank: only its files are named.
    """
    of_mpi = np.isin(tallies.layer, ("mpiio", "mpi"))
    some = tallies.where(~of_mpi & (~tallies.counted | np.isin(tallies.kind, _BY_NAME)))
    named = [
        (_OF_FUNCTION.get(function) or _WORDS.get(kind) or f"{function} calls", failed)
        for kind, function, failed in zip(some.kind, some.function, some.error != "", strict=True)
    ]
    found, tallied = [], {name for name in tallies.file if name}
    for key in dict.fromkeys(named):
        mine = some.where(np.array([each == key for each in named], bool))
        each, own = (
            mine.by_rank(processes),
            mine.where(np.minimum(mine.rank, processes - 1) == busiest) if alone else mine,
        )
        own = own if len(own) else mine
        functions = [function for function in dict.fromkeys(own.function) if not key[0].startswith(f"{function} ")]
        errors = [f"failed with {', '.join(dict.fromkeys(own.error))}"] if key[1] else []
        more = f" ({', '.join([*functions, *errors])})" if functions or errors else ""
        found.append(
            Others(
                words=f"{key[0]}{_where(own, tallied)}{more}",
                seconds=float(each.mean() if busiest is None else each[busiest]),
                ranks=_of_ranks(each),
                named=bool(mine.counted.any()),
            )
        )
    return sorted(found, key=lambda one: -one.seconds)


def records_of(tallies: Tallies, unfinished: Mapping[tuple[str, int], float], numbers: Mapping[str, int]) -> Records:
    """Return the calls that no counter has, and that no call of MPI-IO contains, as records of a ledger.

    Parameters
    ----------
    tallies : of a run.
    unfinished : name of a file and rank -> seconds in a call that had not ended.
    numbers : of files in the ledger, by name; calls on others are left out.
    """
    some = tallies.where(~tallies.counted & ~tallies.inside & ~np.isin(tallies.layer, ("mpiio", "mpi")))
    rows = [*zip(some.file, some.rank, some.kind, some.seconds, some.calls, strict=True)]
    rows += [(name, rank, "other", seconds, 1) for (name, rank), seconds in unfinished.items()]
    rows = [row for row in rows if row[0] in numbers]
    keys = dict.fromkeys((numbers[name], int(rank)) for name, rank, *_ in rows)
    found = empty(len(keys))
    found["file"], found["rank"] = np.array(list(keys), np.int64).reshape(-1, 2).T
    places = {key: place for place, key in enumerate(keys)}
    for name, rank, kind, seconds, calls in rows:
        place, number = places[numbers[name], int(rank)], KINDS.index(_KINDS.get(kind, kind))
        found["seconds"][place, number] += seconds
        found["calls"][place, number] += calls
    return found
