"""Whether representatives stand for their ranks: splitting subgroups, and what is told of the rest."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.pioneer.path import find_groups
from mpiio_ext.pioneer.path.likeness import LIMIT, MOST, Counts, difference, lost_words, split_by_likeness
from mpiio_ext.pioneer.show import show
from mpiio_ext.pioneer.table import SCHEMA, TraceInfo
from mpiio_ext.pioneer.traces import not_represented, path_of


def trace(rank: int, calls: list[tuple[str, str]]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "timestamp": 1000 + 100 * i,
                "operation": operation,
                "file": file.format(rank),
                "rank": rank,
                "thread": 0,
                "layer": "posix",
                "duration": 10,
                "line": i + 1,
            }
            for i, (operation, file) in enumerate(calls)
        ],
        SCHEMA,
    )


def calls(count: int, file: str, *, reads: int = 0) -> list[tuple[str, str]]:
    return [("open", file), *[("pwrite", file)] * count, *[("pread", file)] * reads, ("close", file)]


def test_ranks_that_part_late_are_no_group() -> None:
    """Ranks 2 and 3 read back what they have written, long behind the first tenth."""
    tables = {rank: trace(rank, calls(2500, "own.{}", reads=2500 * (rank > 1))) for rank in range(4)}
    path = path_of(tables, TraceInfo(format="own", ranks=4))
    assert path.info.members == ((0,), (1,), (2, 3))
    assert not_represented(tables, path) == []


def test_ranks_with_other_files_are_no_group() -> None:
    tables = {rank: trace(rank, calls(300, ("even.dat", "odd.dat")[rank % 2])) for rank in range(6)}
    assert path_of(tables, TraceInfo(format="own", ranks=6)).info.members == ((0,), (1, 3, 5), (2, 4))


def test_files_of_ranks_keep_them_together() -> None:
    tables = {rank: trace(rank, calls(300, "own.{}")) for rank in range(40)}
    assert path_of(tables, TraceInfo(format="own", ranks=40)).info.members == ((0,), tuple(range(1, 40)))


def test_names_without_ranks_do_not_make_a_group_of_each() -> None:
    """Temporary files: the operations are alike, and what is in no path is said."""
    names = [f"tmp.{'abcdefghijklmnopqrst'[rank]}x" for rank in range(20)]
    tables = {rank: trace(rank, calls(300, names[rank])) for rank in range(20)}
    path = path_of(tables, TraceInfo(format="own", ranks=20))
    assert path.info.members == ((0,), tuple(range(1, 20)))
    said = not_represented(tables, path)
    assert len(said) == 18
    assert said[0].startswith("rank 2 does other things than rank 1, which stands for them: 300 pwrite of tmp.cx, ")


def test_ranks_that_lack_something_are_told_together() -> None:
    whole: Counts = Counter({("write", "a"): 100, ("read", "a"): 100})
    less: Counts = Counter({("write", "a"): 100})
    said = lost_words([(0,), (1, 2, 3)], {0: whole, 1: whole, 2: less, 3: less})
    assert said == [
        "ranks 2-3 do other things than rank 1, which stands for them: 100 operations less; --each-rank keeps them"
    ]


def test_ranks_that_were_not_traced_are_not_judged() -> None:
    whole: Counts = Counter({("write", "a"): 100})
    assert lost_words([(0,), (1, 2, 3)], {0: whole, 2: whole}) == []


#: Table I of the paper: the children x1 to x4, then the root; MPI_Barrier and MPI_Wtime are no I/O.
TABLE_I = {
    "open": (195, 195, 195, 195, 257),
    "close": (82, 79, 76, 77, 126),
    "read": (10737, 10309, 10522, 10306, 11907),
    "write": (9905, 9889, 9891, 9887, 21995),
    "fstat": (56, 56, 56, 56, 101),
    "fcntl": (102, 102, 96, 96, 334),
    "statfs": (4, 4, 4, 4, 5),
    "MPI_File_seek": (18724,) * 5,
    "MPI_File_iwrite": (9362,) * 5,
    "MPI_File_iread": (9362,) * 5,
    "MPI_Wait": (18724,) * 5,
    "MPI_File_close": (2,) * 5,
}


def test_no_rank_is_called_root_but_rank_0() -> None:
    """The lowest rank that was traced has the root's place in a path; people are told whose it is."""
    tables = {rank: trace(rank, calls(9 if rank == 12 else 5, "f")) for rank in (12, 13, 14)}
    path = path_of(tables, TraceInfo(format="own", ranks=48))
    (line,) = not_represented(tables, path)
    assert line.startswith("rank 0 has no operations in the trace: rank 12 is in the place of the root")
    groups = [text.partition("ranks")[0].split()[2:] for text in show(path, "p", brief=True) if text[:5] == "group"]
    assert groups == [["as", "root"], ["children"]]


def test_the_root_and_the_children_of_table_1() -> None:
    """Two groups: "the operational statistics of the child processes are nearly identical with each other"."""
    by_rank = {0: 4, 1: 0, 2: 1, 3: 2, 4: 3}
    numbers = {}
    for rank, column in by_rank.items():
        places = [(np.arange(row[column]) + 0.5) / row[column] for row in TABLE_I.values()]
        names = np.repeat(np.arange(len(places), dtype=np.int32), [place.size for place in places])
        numbers[rank] = names[np.argsort(np.concatenate(places), kind="stable")]  # evenly spread over the run
    groups = find_groups(numbers)
    assert groups == ((0,), (1, 2, 3, 4))
    counts = {
        rank: Counter({(name, ""): row[column] for name, row in TABLE_I.items()}) for rank, column in by_rank.items()
    }
    assert split_by_likeness(groups, counts) == [(0,), (1, 2, 3, 4)]
    assert split_by_likeness([(5,), (0, 1, 2, 3, 4)], counts) == [(5,), (0,), (1, 2, 3, 4)]  # the root is no child


counted = st.dictionaries(
    st.tuples(st.sampled_from(["read", "write"]), st.sampled_from(["a", "b", ""])), st.integers(1, 300), max_size=4
)


@given(st.lists(counted, min_size=2, max_size=12))
def test_groups_hold_all_ranks_and_like_ranks(several: list[dict[tuple[str, str], int]]) -> None:
    counts = {rank: Counter(own) for rank, own in enumerate(several)}
    found = split_by_likeness([(0,), tuple(range(1, len(several)))], counts)
    assert sorted(rank for group in found for rank in group) == list(counts)
    assert found[0] == (0,)
    assert [group[0] for group in found] == sorted(group[0] for group in found)
    assert all(difference(counts[group[0]], counts[rank]) <= LIMIT for group in found for rank in group)


def test_no_more_groups_than_a_person_can_read() -> None:
    counts = {rank: Counter({("write", "a"): 100 * rank}) for rank in range(2 * MOST)}
    assert split_by_likeness([(0,), tuple(range(1, 2 * MOST))], counts) == [(0,), tuple(range(1, 2 * MOST))]
