"""Whether a representative has done the same as the ranks that it stands for.

Problem.   Subgroups are found by the names of calls in the first tenth of the traces (`groups`). Ranks that use other
           files, or part only later, would be in one subgroup, and what they do alone would be in no path.
Algorithm. Of every rank the operations are counted over the whole trace, by name and file; names of files are
           templates, so that a rank's own file counts as the representative's. A group is split where a rank's counts
           differ from those of all representatives that there are so far. Names that have nothing to do with ranks
           (temporary files) would make a group of each rank. Where there are more than `MOST`, operations are
           counted without files, then with the tolerance of the first tenth; then the groups stay as they were.
Guarantee. Operations without a representative are reported (`lost`), whatever was decided.

Source: He, Du, Narasimhamurthy, "PIONEER", section V-A; it looks at the first part alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import pyarrow as pa

from mpiio_ext.pioneer.path.groups import TOLERANCE
from mpiio_ext.pioneer.path.names import Template

#: Share of a rank's operations that may be other ones than its representative's: the four children of the paper's Table
#: I, "nearly identical with each other", differ by 0.6 %.
LIMIT = 0.01
#: Groups that a path has at most for the sake of likeness.
MOST = 16

#: Number of a rank's operations, by operation and template of a file; "" if there is no file.
Counts = Counter[tuple[str, str]]
_NAMED = 3  # kinds of operations that are named for a rank


def _counts(table: pa.Table, templates: Mapping[str, Template]) -> Counts:
    """Return the counts of one rank."""
    found: Counts = Counter()
    names = ["operation", "file"]
    plain = pa.table({name: table[name].cast(pa.string()) for name in names})
    grouped = plain.group_by(names, use_threads=False).aggregate([([], "count_all")])
    for operation, file, count in zip(*(grouped[name].to_pylist() for name in (*names, "count_all")), strict=True):
        known = templates.get(file) if file is not None else None
        found[operation, file or "" if known is None else known.text] += count
    return found


def counts_of_ranks(
    tables: Mapping[int, pa.Table], templates: Mapping[int, Mapping[str, Template]]
) -> dict[int, Counts]:
    """Return the counts of all ranks.

    Parameters
    ----------
    tables : operations by rank.
    templates : of each rank's files, as of `names.templates_by_rank`.
    """
    return {rank: _counts(table, templates.get(rank, {})) for rank, table in tables.items()}


def _without_files(counts: Counts) -> Counts:
    found: Counts = Counter()
    for (operation, _), count in counts.items():
        found[operation, ""] += count
    return found


def difference(one: Counts, other: Counts) -> float:
    """Return the number of operations that only one of two ranks has, as a share of the busier rank's operations."""
    apart = sum(abs(one[key] - other[key]) for key in one.keys() | other.keys())
    return apart / max(1, one.total(), other.total())


def _split(ranks: Sequence[int], counts: Mapping[int, Counts], limit: float, most: int) -> list[list[int]] | None:
    """Return a group as groups whose ranks are like their first one; None: they are more than `most`."""
    found: list[list[int]] = []
    for rank in ranks:
        own = next((group for group in found if difference(counts[group[0]], counts[rank]) <= limit), None)
        if own is not None:
            own.append(rank)
        elif len(found) == most:
            return None
        else:
            found.append([rank])
    return found


def split_by_likeness(groups: Sequence[Sequence[int]], counts: Mapping[int, Counts]) -> list[tuple[int, ...]]:
    """Return groups whose representatives, their lowest ranks, stand for all of their ranks where that can be had.

    Parameters
    ----------
    groups : ranks of each subgroup, the root's first, which stays alone.
    counts : of all ranks.
    """
    plain = {rank: _without_files(own) for rank, own in counts.items()}
    for known, limit in ((counts, LIMIT), (plain, LIMIT), (plain, TOLERANCE)):
        parts = [_split(group, known, limit, MOST) for group in groups[1:]]
        if all(part is not None for part in parts) and sum(len(part or ()) for part in parts) < MOST:
            children = sorted(tuple(group) for part in parts for group in part or ())
            return [tuple(groups[0]), *children]
    return [tuple(group) for group in groups]


# ---- the report ------------------------------------------------------------------------------------------------------


def _ranges(ranks: Sequence[int]) -> str:
    """Return ranks as text: "3", "3-7", "3 and 4 others"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]} does"
    whole = list(ranks) == list(range(ranks[0], ranks[-1] + 1))
    return f"ranks {ranks[0]}-{ranks[-1]} do" if whole else f"rank {ranks[0]} and {len(ranks) - 1} others do"


def lost_words(members: Sequence[Sequence[int]], counts: Mapping[int, Counts]) -> list[str]:
    """Return a line for ranks that have done other things than their representative, which are in no path.

    Parameters
    ----------
    members : ranks of each group; the lowest one that is in `counts` stands for it.
    counts : of all ranks that were traced.
    """
    several: dict[tuple[int, str], list[int]] = defaultdict(list)
    for group in members:
        known = [rank for rank in sorted(group) if rank in counts]
        for rank in known[1:]:
            own, stands = counts[rank], counts[known[0]]
            if difference(own, stands) <= LIMIT:
                continue
            alone = own - stands
            kinds = ", ".join(
                f"{count:,} {operation}{f' of {file}' if file else ''}"
                for (operation, file), count in alone.most_common(_NAMED)
            )
            several[known[0], kinds or f"{(stands - own).total():,} operations less"].append(rank)
    return [
        f"{_ranges(ranks)} other things than rank {first}, which stands for them: {kinds}"
        f"{' and more' if kinds.count(', ') >= _NAMED - 1 else ''}; --each-rank keeps them"
        for (first, kinds), ranks in several.items()
    ]
