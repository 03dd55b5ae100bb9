"""Causes that need to know what ranks did when: DXT and HEATMAP for and against them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mpiio_ext
from mpiio_ext.analytics.diagnosis import diagnose
from mpiio_ext.analytics.diagnosis.activity import BINS, WINDOWS, Activity, Calls, Row
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.sources.darshan import convert
from support import cbuild
from support.expected import Expected
from support.quiet_rows import JOB, file, in_mpi, small, summary

MIB = 1 << 20
ROW: dict[str, Any] = {
    "ranks": 8,
    "processes": 8,
    "writes": 800,
    "write_size_1m_4m": 800,
    "consec_writes": 0,
    "bytes_written": 800 * MIB,
    "mpiio_coll_writes": 0,
    "mpiio_indep_writes": 800,
    "file_id": 1,
    "write_time": 8.0,
    "slowest_rank_time": 1.2,
}


def row(busy: list[float], wall: float, moved: list[float] | None = None, **rest: Any) -> Row:
    """Return what DXT has of a file that `busy` ranks write, each with 100 requests, from 0 s to `wall`."""
    ranks = len(busy)
    moved = moved or [100.0 * MIB] * ranks
    every = np.array([800 / ranks] * ranks)
    return Row(
        np.arange(ranks),
        every,
        np.array(moved),
        np.array(busy),
        np.zeros(ranks),
        rest.pop("last", np.full(ranks, wall)),
        wall=wall,
        called=rest.pop("called", wall),
        **rest,
    )


def seen(one: Row | None = None, source: str = "DXT", **rest: Any) -> Activity:
    return Activity(source, 8, 100.0, rows=rest.pop("rows", {(1, True): one} if one else {}), **rest)


#: The files of a job, and what else is known.
Case = tuple[list[dict[str, Any]], dict[str, Any]]


def case(activity: Activity | None = None, end: float = 10, own_share: float | None = None, **columns: Any) -> Case:
    return [file(0, end, **{**ROW, **columns})], {"activity": activity, "own_share": own_share}


def several(wall: float) -> Case:
    """Return ranks that take turns in each of two files: that is the cause of all of the time; ranks that share a CPU
    make short requests in turn, too."""
    columns = {**ROW, "writes": 400, "write_size_1m_4m": 400, "mpiio_indep_writes": 400, "write_time": wall}
    rows = [file(10 * k, 10 * k + wall, **{**columns, "file_id": k + 1}) for k in range(2)]
    one = row([wall / 8] * 8, wall)
    one.requests = one.requests / 2
    return rows, {"activity": seen(rows={(k, True): one for k in (1, 2)})}


#: Bytes of one rank in each bin: not requests.
HEAT = {True: np.full(8, 100.0 * MIB)}
COLLECTIVE = {"mpiio_coll_writes": 800, "mpiio_indep_writes": 0}


def in_turn(seconds: float, **rest: Any) -> Activity:
    return seen(source="HEATMAP", heat=HEAT, in_turn={True: (seconds, 40)}, **rest)


def synced(pause: float, syncs: int, write_time: float) -> Case:
    """Return 8 ranks that are in requests for 2 s of 10 s, one at a time, with syncs between."""
    one = row([0.25] * 8, 2.0, last=np.full(8, 10.0), pauses=np.full(79, pause))
    activity = seen(one, calls={1: Calls(syncs=syncs)}, wall={True: 2.0})
    return case(activity, write_time=write_time, slowest_rank_time=1.25)


def waiting(together: float | None, in_calls: bool = True) -> Case:
    """Return a slowest rank that is in MPI-IO calls for 9 s, and for 1 s in the requests that these make."""
    calls = np.full(8, 9.0) if in_calls else np.zeros(8)
    one = None if together is None else row([1.0] * 8, 8.0 / together, called=9.0, calls=calls)
    if not in_calls:
        return case(seen(one, calls={1: Calls()}))
    activity = in_mpi(seen(one), file(0, 10, **{**ROW, "slowest_rank_time": 1.0}), write=(9.0, 9.0))
    return case(activity, write_time=8.0, slowest_rank_time=1.0)


def working() -> Case:
    """Return a rank that is long in its requests, for the machine took its turn away; the others wait for its lock
    meanwhile, so that the rank that waits is not the one that works."""
    one = row([1.0, 6.0, 1.0, 1.0], 9.0, called=9.5, calls=np.array([6.0, 7.0, 6.0, 6.0]))
    times = {"ranks": 4, "write_time": 9.0, "slowest_rank_time": 6.0}
    return case(in_mpi(seen(one), file(0, 10, **{**ROW, **times}), write=(6.25, 6.25)), **times)


def own_files(uneven: bool) -> Case:
    """Return files that two ranks open and one of them writes: over all files they are even, or one writes all."""
    shared = {
        "ranks": 2,
        "processes": 8,
        "writes": 100,
        "write_size_1m_4m": 100,
        "bytes_written": 100 * MIB,
        "write_time": 2.0,
        "slowest_rank_time": 2.0,
        "slowest_rank_bytes": 100 * MIB,
        "fastest_rank_bytes": 0,
    }
    rows = [file(at, at + 2.0, **{**ROW, **shared, "file_id": at}) for at in range(8)]
    traced = {}
    for at in range(8):
        traced[at, True] = row([2.0], 2.0, [100.0 * MIB])
        traced[at, True].ranks, traced[at, True].requests = np.array([0 if uneven else at]), np.array([100.0])
    heat = np.bincount([0 if uneven else at for at in range(8)], minlength=8) * 100.0 * MIB
    return rows, {"activity": Activity("DXT", 8, 100.0, rows=traced, heat={True: heat})}


def beside_large(small_ones: int, large: int) -> Case:
    """Return 300 requests of 512 B and 30 of 4 MiB: DXT has the time of each."""
    counts = np.zeros((192, WINDOWS, 80), np.int64)
    counts[36, 0, 40], counts[88, 0, 40] = small_ones, large  # 2 ** (36 / 4) is 512 B, 2 ** (88 / 4) 4 MiB
    sizes = {"write_size_1m_4m": 80, "write_size_100_1k": 720, "bytes_written": 320 * MIB}
    return case(seen(row([1.0] * 8, 8.0), durations={True: counts}), **sizes)


def side_by_side(dxt: bool) -> Case:
    """Return eight ranks that sync a file each for 2 s: that is 2 s, and not 16 s."""
    own = {
        "ranks": 1,
        "writes": 100,
        "bytes_written": 100 * MIB,
        "write_time": 2.5,
        "slowest_rank_time": 2.5,
        "write_size_1m_4m": 100,
        "mpiio_indep_writes": 100,
    }
    rows = [file(0, 4, **{**ROW, **own, "file_id": number, "file": f"/scratch/{number}"}) for number in range(8)]
    one = [np.array([value]) for value in (100.0, 100.0 * MIB, 0.5, 0.0, 4.0)]
    traced = {(number, True): Row(np.array([number]), *one, wall=0.5, called=0.5) for number in range(8)}
    calls = {number: Calls(syncs=100) for number in range(8)}
    activity = Activity("DXT" if dxt else "", 8, 100.0, rows=traced if dxt else {}, calls=calls)
    return rows, {"activity": activity, "direction": "write"}


def striped(slow: float) -> Case:
    times = np.array([1.0, 1.0, slow, 1.0, 1.0, 1.0, 1.0, 1.0])
    one = row([4.0] * 8, 5.0, stripe_time=times, stripe_bytes=np.full(8, 100.0 * MIB))
    return case(seen(one), stripe_count=8)


def slower(factor: int, more: int = 1) -> Activity:
    """Return requests of 8 ms; in a quarter of the windows they take `factor` times as long, and are `more` times."""
    counts = np.zeros((192, WINDOWS, 80), np.int64)
    for window in range(WINDOWS):
        slow = window % 4 == 3
        counts[80, window, round(2 * (np.log2(0.008 * (factor if slow else 1)) + 24))] = 100 * (more if slow else 1)
    line = np.ones((2, 1, BINS))
    return seen(row([4.0] * 8, 5.0), durations={True: counts}, line=line)


def unaligned(shared: int | None = None, **columns: Any) -> Case:
    activity = None if shared is None else seen(row([4.0] * 8, 8.0, blocks=100, shared=shared))
    return case(activity, **{"unaligned": 800, "stripe_count": 8, "slowest_rank_bytes": 100 * MIB, **columns})


def aggregators(shared: int | None, osts: int) -> Case:
    """Return 8 ranks that write OSTs in collective calls, in pieces of 1 MiB of stripes of 16 MiB."""
    activity = None if shared is None else seen(row([4.0] * 8, 8.0, blocks=100, shared=shared))
    columns = {**COLLECTIVE, "osts": list(range(osts)), "stripe_count": osts, "stripe_size": 16 * MIB}
    return case(activity, **columns, slowest_rank_bytes=100 * MIB, fastest_rank_bytes=100 * MIB)


TINY = {**small(), "bytes_written": 800 << 10, "write_size_1k_10k": 800, "consec_writes": 799}
EVEN = {"fastest_rank_bytes": 100 * MIB, "slowest_rank_bytes": 100 * MIB}
ALWAYS = {"write_time": 40.0, "slowest_rank_time": 5.0}
BY_HEATMAP: dict[str, Any] = {"source": "HEATMAP", "wall": {True: 5.0}, "resolution": 0.5}
CASES: dict[str, Case] = {
    "turns": case(seen(row([1.0] * 8, 8.0))),
    "together": case(seen(row([1.0] * 8, 1.2))),
    # the exchange is between them
    "turns of collective calls": case(seen(row([1.0] * 8, 8.0)), **COLLECTIVE),
    "turns in two files": several(8.0),
    "short turns in two files": several(3.9),
    "turns by HEATMAP": case(in_turn(1.0)),
    "few turns by HEATMAP": case(in_turn(4.0)),
    # of one rank: a slow one goes on when the others are done
    "turns by HEATMAP of 8 bins of a rank": case(in_turn(1.1, most_bins={True: 8})),
    "turns by HEATMAP of 38 bins of a rank": case(in_turn(1.1, most_bins={True: 38})),
    # as many pauses as syncs, as long as these
    "syncs between turns": synced(0.1, 80, 10.0),
    # a rank writes while another one syncs
    "syncs longer than pauses": synced(0.04, 80, 10.0),
    "more syncs than pauses": synced(0.1, 120, 10.0),
    "pauses longer than syncs": synced(0.1, 80, 4.0),
    "pauses without syncs": synced(0.1, 0, 10.0),
    # turns by HEATMAP take the time that passes. Less than that: ranks pause, and meet seldom. More: several are in
    # calls at once
    **{f"turns by HEATMAP, {time} s": case(in_turn(1.0), write_time=time) for time in (7.0, 8.0, 12.0, 13.0)},
    **{f"calls that wait, {together} at once": waiting(together) for together in (1.0, 4.0, None)},
    **{f"no calls that wait, {together} at once": waiting(together, in_calls=False) for together in (1.0, 4.0, None)},
    "the rank that waits is not the one that works": working(),
    "each rank writes a file": own_files(uneven=False),
    "one rank writes all files": own_files(uneven=True),
    # all move as many bytes, and one at a time is in requests: one rank alone takes the time
    "turns of eight": case(seen(row([1.0] * 8, 8.0)), ranks=8),
    "headers of one rank": case(seen(row([7.6, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], 8.0))),
    "small requests take the time": beside_large(90, 10),
    "large requests take the time": beside_large(5, 95),
    # a sync after each write: Darshan's write time has them, DXT does not
    "syncs": case(seen(row([0.1] * 8, 0.2), calls={1: Calls(syncs=800)}), **ALWAYS),
    "syncs without DXT": case(seen(source="", calls={1: Calls(syncs=800)}), **ALWAYS),
    "few syncs": case(seen(source="", calls={1: Calls(syncs=8)}), **ALWAYS),
    "syncs side by side": side_by_side(dxt=True),
    "syncs side by side without DXT": side_by_side(dxt=False),
    "a slow stripe": striped(8.0),
    "no slow stripe": striped(1.0),
    # by whom, a log does not tell
    "requests slow down": case(slower(8)),
    "requests slow down beside others": case(slower(8), own_share=0.2),
    "requests as ever": case(slower(1)),
    "the job requests more": case(slower(8, more=8)),
    "load by others": case(own_share=0.1),
    "load by the job": case(own_share=0.9),
    "unaligned on Lustre": unaligned(fs_type="lustre"),
    "unaligned on Lustre, shared blocks": unaligned(90, fs_type="lustre"),
    "unaligned on Lustre, own blocks": unaligned(0, fs_type="lustre"),
    "unaligned on ext4": unaligned(fs_type="ext4"),  # nobody locks blocks
    "unaligned on NFS": unaligned(fs_type="nfs"),
    "unaligned to unknown blocks": unaligned(fs_type="lustre", alignment=None),
    "unaligned small requests": unaligned(fs_type="lustre", **TINY),  # these cost by themselves
    # DXT speaks for and against contention
    "contention without DXT": case(stripe_count=1, **EVEN),
    "contention by DXT": case(seen(row([4.0] * 8, 4.0)), stripe_count=1),
    "no contention by DXT": case(seen(row([4.0] * 8, 16.0)), stripe_count=1),
    # one rank has five times the bytes; or takes five times as long for as many, which is not sure
    "one rank has more": case(
        seen(row([8.0] + [1.6] * 7, 8.0, [500.0 * MIB] + [300.0 * MIB / 7] * 7)), write_time=19.2, slowest_rank_time=8.0
    ),
    "one rank is slower": case(seen(row([8.0] + [0.8] * 7, 8.0)), write_time=13.6, slowest_rank_time=8.0),
    **{
        f"aggregators on {osts} OSTs, {shared} shared blocks": aggregators(shared, osts)
        for osts in (2, 8)
        for shared in (None, 80, 0)
    },
    "a small file on many OSTs": case(stripe_count=16, stripe_size=MIB, max_offset_written=MIB - 1),
    "a large file on many OSTs": case(stripe_count=16, stripe_size=MIB, max_offset_written=800 * MIB),
    # of 8 s in collective calls, some rank writes for 5 s: a note; where it does for 2 s, a finding has that time
    **{
        f"requests for {wall} s of 8 s in collective calls": case(seen(row([1.0] * 8, wall, called=8.0)), **COLLECTIVE)
        for wall in (5.0, 2.0, 7.8)
    },
    # a file that is open for 50 s and written in 8 s of them: the critical path is 50 s, the time in I/O 8 s
    "open for 50 s": case(end=50),
    "open for 50 s, DXT": case(seen(row([4.0] * 8, 8.0)), end=50),
    "open for 50 s, HEATMAP": case(seen(**BY_HEATMAP), end=50),
    "open for 50 s, HEATMAP and waits": case(
        in_mpi(seen(**BY_HEATMAP), file(0, 50, **ROW), write=(30.0, 30.0)), end=50
    ),
    # DXT has 800 of them
    "open for 50 s, DXT has lost some": case(seen(row([4.0] * 8, 8.0)), end=50, writes=2000, write_size_1m_4m=2000),
    "open for 50 s, little by DXT": case(seen(row([0.01] * 8, 0.1)), end=50),
}


@pytest.mark.parametrize("name", CASES)
def test_rules_of_time(name: str, expected: Expected) -> None:
    files, known = CASES[name]
    found = diagnose({**JOB, "processes": 8}, files, **known)
    facts = [fact.text() for fact in found.facts if "critical time" in fact.meaning]
    expected(summary(found) | ({"critical time": facts} if name.startswith("open") else {}))


def test_what_dxt_or_heatmap_have_lost_is_said() -> None:
    lost = "times of some accesses: DXT ran out of memory, or the records of DXT or HEATMAP are damaged"
    for partial in (True, False):
        files, known = case(seen(source="HEATMAP", partial=partial))
        assert (lost in diagnose({**JOB, "processes": 8}, files, **known).unknown) == partial


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("turns_synced-4-dxt", True),  # DXT has 0.31 s of 1.1 s, syncs are the rest
        ("turns-8-heat", True),  # where one rank ends and the next one begins, a bin has both
        ("together_synced-4-dxt", False),
        ("alone-4-heat", False),
        ("alone_synced-4-heat", False),
    ],
)
def test_turns_on_logs_of_known_programs(log: str, cause: bool) -> None:
    """``tests/samples/turns/README.md`` has what the programs do."""
    path = cbuild.ROOT / "tests" / "samples" / "turns" / f"{log}.darshan"
    tables = convert([path.name], str(path.parent)).tables
    (one,) = diagnoses(tables, Known(activity=activity_of(path, tables)))
    found = {each["cause"]: each["confidence"] for each in one["document"]["findings"]}
    assert found.get("turns") == ("medium" if cause else None), found
    sentence = mpiio_ext.run_report(path).sentence
    assert ("No cause is certain; possibly all of these " in sentence and "by one rank at a time" in sentence) == cause


def test_turns_that_heatmap_does_not_resolve_are_not_called_right() -> None:
    """Large requests at 46 MB/s: a rank is in calls for 0.27 s of 1.1 s, and waits for its turn else."""
    path = cbuild.ROOT / "tests" / "samples" / "turns" / "turns_short-4-heat.darshan"
    found = mpiio_ext.run_report(path).sentence
    assert found.endswith("were 1,048,576 B writes to `f` (12 calls by an average rank)."), found
