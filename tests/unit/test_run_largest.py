"""The calls that took most of a rank's time, in words: kind, size, files, number."""

from __future__ import annotations

import numpy as np
import pytest

from mpiio_ext.analytics.ledger import KINDS, Ledger
from mpiio_ext.analytics.ledger import records as kept
from mpiio_ext.analytics.run.largest import largest

#: One record: file, rank, kind, seconds, calls, bytes.
Row = tuple[int, int, str, float, int, int]
NAMES = {number: f"/scratch/f{number}" for number in range(40)}


def ledger(rows: list[Row], processes: int = 4, layer: str = "POSIX") -> Ledger:
    """Return the ledger of one record for each file and rank."""
    keys = list(dict.fromkeys(row[:2] for row in rows))
    records = kept.empty(len(keys))
    records["layer"] = kept.LAYERS.index(layer)
    for file, rank, kind, seconds, calls, moved in rows:
        record = records[keys.index((file, rank))]
        record["file"], record["rank"] = file, rank
        record["seconds"][KINDS.index(kind)], record["calls"][KINDS.index(kind)] = seconds, calls
        if kind in ("read", "write"):
            record["bytes"][("read", "write").index(kind)] = moved
    return Ledger(records, processes, 100.0)


MIXED: list[Row] = [(1, 0, "read", 6.0, 300, 1200), (2, 0, "write", 2.0, 1, 4)]
MANY: list[Row] = [(number, 0, "read", 1.0, 1, 4) for number in range(40)]
EVEN: list[Row] = [(1, rank, "read", 4.0, 8, 64) for rank in range(4)]


@pytest.mark.parametrize(
    ("rows", "rank", "words", "seconds"),
    [
        (MIXED, 0, "4 B reads from `f1` (300 calls by rank 0)", 6),
        (MIXED, 1, None, 0),
        ([(1, 3, "write", 1.0, 3, 1000)], 3, "writes of 333 B on average to `f1` (3 calls by rank 3)", 1),
        ([(1, 3, "meta", 1.0, 3, 0)], 3, "opens, closes, seeks and queries of `f1` (3 calls by rank 3)", 1),
        (EVEN, None, "8 B reads from `f1` (8 calls by an average rank)", 4),
        ([(1, 0, "read", 1.0, 1, 4), (2, 0, "read", 9.0, 1, 4)], 0, "4 B reads from `f2` (1 call by rank 0)", 9),
        (MANY, 0, "4 B reads from `f0` and 35 more files (36 calls by rank 0)", 36),
    ],
)
def test_the_kind_with_most_time_and_its_files(
    rows: list[Row], rank: int | None, words: str | None, seconds: float
) -> None:
    """As many files as have nine tenths of the time of such calls."""
    found = largest(ledger(rows), NAMES, list(NAMES.values()), rank)
    assert (found.words if found else None) == words
    assert found is None or found.seconds.least == found.seconds.most == pytest.approx(seconds)


def test_syncs_whose_time_is_that_of_writes_are_named() -> None:
    """Darshan adds their time to that of writes."""
    rows: list[Row] = [(1, 0, "write", 5.0, 10, 40), (1, 0, "sync", 0.0, 10, 0)]
    found = largest(ledger(rows), NAMES, [], 0)
    assert found is not None and found.words.startswith("writes and syncs to `/scratch/f1`")
    timed: list[Row] = [(1, 0, "write", 5.0, 10, 40), (1, 0, "sync", 1.0, 10, 0)]
    found = largest(ledger(timed), NAMES, [], 0)
    assert found is not None and found.words.startswith("4 B writes to `/scratch/f1`")


def test_a_call_of_mpi_io_counts_once() -> None:
    """The MPI library carries out 3 calls by 3,000 requests inside of them."""
    records = np.concatenate(
        [
            ledger([(1, 0, "write", 5.0, 3, 3072)], layer="MPI-IO").records,
            ledger([(1, 0, "write", 4.0, 3000, 3072)]).records,
        ]
    )
    records["opens"], records["first"], records["last"] = 1, 1.0, 9.0
    found = largest(Ledger(records, 4, 100.0), NAMES, [], 0)
    assert found is not None and found.words == "1,024 B writes to `/scratch/f1` (3 calls by rank 0)"
    assert found.seconds.least == pytest.approx(5.0)


def test_of_a_shared_record_bounds_are_given() -> None:
    """All ranks together read for 8 s, the slowest one for 5 s; nothing shows how many of the calls are its."""
    found = ledger([(1, kept.ALL, "read", 8.0, 40, 160)])
    found.records["ranks"], found.records["slowest"], found.records["slowest_s"] = 4, 2, 5.0
    part = largest(found, NAMES, [], 2)
    assert part is not None and (part.seconds.least, part.seconds.most) == (5.0, 5.0)
    assert part.words == "4 B reads from `/scratch/f1`"
    mean = largest(found, NAMES, [], None)
    assert mean is not None and mean.words == "4 B reads from `/scratch/f1` (10 calls by an average rank)"
