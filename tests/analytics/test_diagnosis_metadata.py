"""Calls that move no data: which of them there are, how many, and of which ranks, as the first sentence has them."""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Mapping, Sequence

import pytest

import mpiio_ext
from mpiio_ext.analytics.run.shown import RunReport
from mpiio_ext.common.darshanfile import COUNTERS
from support.darshan_logs import Job, make_log, posix

#: Places of counters and times in a record of POSIX.
OPENS, READS, WRITES, STATS, SYNCS, READ_BYTES, WRITTEN_BYTES = 0, 3, 4, 6, 8, 14, 15
FIRST_OPEN, FIRST_READ, FIRST_WRITE, LAST_CLOSE, LAST_READ, LAST_WRITE = 0, 1, 2, 7, 5, 6
READ_S, WRITE_S, META_S = 8, 9, 10

Record = tuple[int, int, Mapping[int, int], Mapping[int, float]]


def report(folder: pathlib.Path, records: Sequence[Record], *, processes: int = 4) -> RunReport:
    """Return the report of a log: file, rank, counters and times of each record; the run lasts 10 s."""
    names = {key: f"/scratch/f{key}" for key, _, _, _ in records}
    moments = {FIRST_OPEN: 0.1, LAST_CLOSE: 9.0}
    parts = b"".join(posix(key, rank, dict(calls), {**moments, **times}) for key, rank, calls, times in records)
    log = folder / "a.darshan"
    log.write_bytes(make_log(Job(processes=processes), names, {"POSIX": (4, parts)}))
    return mpiio_ext.run_report(log)


def reads(seconds: float = 0.1) -> dict[int, float]:
    return {FIRST_READ: 0.2, LAST_READ: 8.9, READ_S: seconds}


SOME = {READS: 100, READ_BYTES: 100 << 20}


#: Of each log the records, what the sentence has, and a part of the advice.
KINDS: dict[str, tuple[list[Record], str, str]] = {
    "polled": (
        [(1, -1, {OPENS: 4, STATS: 5120, **SOME}, {META_S: 20.0, **reads()})],
        "stat calls of `f1` (1,280 times by an average rank)",
        "until a file changes",
    ),
    "looked-up": (
        [(k, -1, {OPENS: 4, STATS: 128, **SOME}, {META_S: 0.5, **reads(0.01)}) for k in range(1, 41)],
        "stat calls of 40 files such as `f1` (1,280 stat calls by an average rank)",
        "keep its result",
    ),
    "one-rank": (
        [(k, 0, {OPENS: 1, **SOME}, {META_S: 0.01, **reads(0.001)}) for k in range(1, 501)],
        "opens of 500 files such as `f1` (500 opens by rank 0)",
        "few large ones",
    ),
    "some-ranks": (
        [
            (k, rank, {OPENS: 1, **SOME}, {META_S: 0.01, **reads(0.001)})
            for k in range(1, 401)
            for rank in range(4)
            if rank != k % 4
        ],
        "opens of 400 files such as `f1` (300 opens by each rank)",
        "few large ones",
    ),
    "uneven": (
        [(1, rank, {OPENS: 200 * (1 + rank), **SOME}, {META_S: 4.0, **reads()}) for rank in range(4)],
        "opens of `f1` (500 times by an average rank)",
        "keep them open",
    ),
}


@pytest.mark.parametrize(("records", "words", "advice"), KINDS.values(), ids=KINDS)
def test_metadata_calls_are_named_and_counted(
    tmp_path: pathlib.Path, records: list[Record], words: str, advice: str
) -> None:
    """Opens and stats are not one another; a number is that of a rank only if the log has the calls of each."""
    found = report(tmp_path, records)
    assert words in found.sentence, found.sentence
    assert advice in str(found), found


def test_files_that_some_ranks_open_are_not_opened_by_every_process(tmp_path: pathlib.Path) -> None:
    times = {META_S: 0.01, **reads(0.001)}
    some = [(k, rank, {OPENS: 1, **SOME}, times) for k in range(1, 401) for rank in range(4) if rank != k % 4]
    assert "Every process" not in str(report(tmp_path, some))


def test_syncs_of_one_rank_in_many_files_at_once(tmp_path: pathlib.Path) -> None:
    """The files are open at the same time, so that few of them are critical: the syncs are those of all."""
    times = {FIRST_WRITE: 0.2, LAST_WRITE: 8.9, WRITE_S: 0.3, META_S: 0.01}
    calls = {OPENS: 100, WRITES: 100, SYNCS: 100, WRITTEN_BYTES: 10000}
    found = report(tmp_path, [(k, 0, calls, times) for k in range(1, 31)])
    assert "syncs after writes to `f1` and 29 more files" in found.sentence, found.sentence


@pytest.mark.parametrize(("read_s", "named"), [(0.3, False), (3.0, True)])
def test_a_bound_that_is_little_of_the_run_names_no_cause(tmp_path: pathlib.Path, read_s: float, named: bool) -> None:
    """Small reads take at most so long: what is at most little may be nothing."""
    found = report(tmp_path, [(1, 0, {OPENS: 1, READS: 20000, READ_BYTES: 200000}, {META_S: 0.001, **reads(read_s)})])
    assert "10 B" in found.sentence, found.sentence  # the calls with most time are named either way
    assert ("no cause of slow I/O stands out" in found.sentence) != named, found.sentence


def test_time_of_seeks_through_the_c_library_is_that_of_the_pieces_too(tmp_path: pathlib.Path) -> None:
    """Each seek fetches a buffer, and the read behind it finds its bytes there."""
    log = tmp_path / "a.darshan"
    log.write_bytes(make_log(Job(), {1: "/scratch/f1"}, {"STDIO": (2, stdio(1, -1))}))
    found = mpiio_ext.run_report(log).sentence
    assert "; all of these 8 s were 240 B reads from `f1`" in found, found


def stdio(key: int, rank: int) -> bytes:
    """Return a record of version 2: each of 4 ranks reads 240 B, 2,600 times, in 2 s, and seeks for 6 s."""
    names, times = COUNTERS["STDIO"]
    counts = {"OPENS": 4, "READS": 10400, "SEEKS": 10400, "BYTES_READ": 10400 * 240}
    moments = {"OPEN_START_TIMESTAMP": 0.1, "READ_START_TIMESTAMP": 0.2, "READ_END_TIMESTAMP": 9.0}
    moments |= {"CLOSE_END_TIMESTAMP": 9.1, "READ_TIME": 8.0, "META_TIME": 24.0}
    moments |= {"SLOWEST_RANK_TIME": 8.0, "FASTEST_RANK_TIME": 8.0}
    values = [*(counts.get(name, 0) for name in names), *(moments.get(name, 0.0) for name in times)]
    return struct.pack(f"<Qq{len(names)}q{len(times)}d", key, rank, *values)
