"""Causes that need to know what ranks did when: DXT and HEATMAP for and against them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import mpiio_ext
from mpiio_ext.analytics.diagnosis import Diagnosis, diagnose
from mpiio_ext.analytics.diagnosis.activity import BINS, WINDOWS, Activity, Calls, Row
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.sources.darshan import convert
from support import cbuild
from support.quiet_rows import JOB, fields, file, in_mpi, small

MIB = 1 << 20
ROW: dict[str, Any] = fields(
    f"ranks=8 processes=8 writes=800 write_size_1m_4m=800 consec_writes=0 bytes_written={800 * MIB} "
    "mpiio_coll_writes=0 mpiio_indep_writes=800 file_id=1 write_time=8.0 slowest_rank_time=1.2"
)


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


def told(
    activity: Activity | None = None, end: float = 10, own_share: float | None = None, **columns: Any
) -> Diagnosis:
    rows = [file(0, end, **{**ROW, **columns})]
    return diagnose({**JOB, "processes": 8}, rows, activity=activity, own_share=own_share)


def causes(found: Diagnosis) -> dict[str, str]:
    return {each.cause: each.confidence for each in found.findings}


def high(found: Diagnosis) -> list[str]:
    return [each.cause for each in found.findings if each.confidence == "high"]


def test_the_share_is_of_the_time_in_calls() -> None:
    """A file that is open for 50 s and written in 8 s of them: the critical path is 50 s, the time in I/O 8 s."""
    without, with_dxt = told(end=50), told(seen(row([4.0] * 8, 8.0)), end=50)
    facts = {fact.meaning: fact.value for fact in with_dxt.facts}
    assert facts["critical time in which any rank writes (in a call of MPI-IO or POSIX on a critical file; DXT)"] == 8
    assert facts["critical time (from the first to the last access of each critical file, counted once)"] == 50
    assert facts["critical time in which any rank writes, as a share of the run time"] == pytest.approx(0.08)
    assert "critical time, as a share of the run time" in {fact.meaning for fact in without.facts}
    heat = told(seen(source="HEATMAP", wall={True: 5.0}, resolution=0.5), end=50)
    estimated = (
        "estimated critical time in which any rank writes"
        " (on a critical file: steps of time in which bytes move, and calls that move none; HEATMAP)"
    )
    assert {fact.meaning: fact.value for fact in heat.facts}[estimated] == 5
    waits = in_mpi(seen(source="HEATMAP", wall={True: 5.0}, resolution=0.5), file(0, 50, **ROW), write=(30.0, 30.0))
    empty = told(waits, end=50)
    assert {fact.meaning: fact.value for fact in empty.facts}[estimated] == 30
    lost = told(seen(row([4.0] * 8, 8.0)), end=50, writes=2000, write_size_1m_4m=2000)  # DXT has 800 of them
    assert not any("DXT" in fact.meaning for fact in lost.facts)
    assert told(seen(row([0.01] * 8, 0.1)), end=50).conclusion.startswith("No cause is reported")


@pytest.mark.parametrize(
    ("busy", "wall", "columns", "cause"),
    [
        ([1.0] * 8, 8.0, {}, "turns"),  # one after the other
        ([1.0] * 8, 1.2, {}, None),  # together
        ([1.0] * 8, 8.0, {"mpiio_coll_writes": 800, "mpiio_indep_writes": 0}, None),  # the exchange is between them
    ],
)
def test_ranks_take_turns(busy: list[float], wall: float, columns: dict[str, Any], cause: str | None) -> None:
    found = told(seen(row(busy, wall)), **columns)
    assert high(found) == ([cause] if cause else [])


def test_ranks_take_turns_in_each_of_several_files() -> None:
    """They are the cause of all of the time; ranks that share a CPU make short requests in turn, too."""
    columns = {**ROW, "writes": 400, "write_size_1m_4m": 400, "mpiio_indep_writes": 400}
    rows = [file(10 * k, 10 * k + 9, **{**columns, "file_id": k + 1}) for k in range(2)]
    for wall, short in ((8.0, False), (3.9, True)):
        one = row([wall / 8] * 8, wall)
        one = dataclasses.replace(one, requests=one.requests / 2)
        rows = [{**each, "write_end": each["write_start"] + wall, "write_time": wall} for each in rows]
        found = diagnose({**JOB, "processes": 8}, rows, activity=seen(rows={(k, True): one for k in (1, 2)}))
        turns, *others = [each for each in found.findings if each.cause in ("turns", "serialised")]
        assert turns.cause == "turns" and len(turns.files) == 2 and not others
        assert turns.by_times == short and turns.share == pytest.approx(7 / 8)


def test_turns_by_heatmap_are_possible() -> None:
    """Bytes of one rank in each bin: not requests."""
    heat = {True: np.full(8, 100.0 * MIB)}
    found = told(seen(source="HEATMAP", heat=heat, in_turn={True: (1.0, 40)}))
    assert high(found) == [] and found.findings[0].cause == "turns"
    assert "turns" not in causes(told(seen(source="HEATMAP", heat=heat, in_turn={True: (4.0, 40)})))
    for bins, turns in ((8, True), (38, False)):  # of one rank: a slow one goes on when the others are done
        found = told(seen(source="HEATMAP", heat=heat, in_turn={True: (1.1, 40)}, most_bins={True: bins}))
        assert ("turns" in causes(found)) == turns


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


@pytest.mark.parametrize(
    ("pause", "syncs", "write_time", "cause"),
    [
        (0.1, 80, 10.0, "turns"),  # as many pauses as syncs, as long as these
        (0.04, 80, 10.0, None),  # a rank writes while another one syncs
        (0.1, 120, 10.0, None),
        (0.1, 80, 4.0, None),  # ranks pause otherwise
        (0.1, 0, 10.0, None),
    ],
)
def test_syncs_between_turns(pause: float, syncs: int, write_time: float, cause: str | None) -> None:
    """8 ranks are in requests for 2 s of 10 s, one at a time."""
    one = row([0.25] * 8, 2.0, last=np.full(8, 10.0), pauses=np.full(79, pause))
    calls = {1: Calls(syncs=syncs)}
    found = causes(told(seen(one, calls=calls, wall={True: 2.0}), write_time=write_time, slowest_rank_time=1.25))
    assert found.get("turns") == ("medium" if cause else None)


@pytest.mark.parametrize(("write_time", "cause"), [(7.0, False), (8.0, True), (12.0, True), (13.0, False)])
def test_turns_by_heatmap_take_the_time_that_passes(write_time: float, cause: bool) -> None:
    """Less than that: ranks pause, and meet seldom. More: several are in calls at once."""
    heat = {True: np.full(8, 100.0 * MIB)}
    found = told(seen(source="HEATMAP", heat=heat, in_turn={True: (1.0, 40)}), write_time=write_time)
    assert ("turns" in causes(found)) == cause


def test_what_dxt_or_heatmap_have_lost_is_said() -> None:
    lost = "times of some accesses: DXT ran out of memory, or the records of DXT or HEATMAP are damaged"
    assert lost in told(seen(source="HEATMAP", partial=True)).unknown
    assert lost not in told(seen(source="HEATMAP")).unknown


@pytest.mark.parametrize(("together", "confidence"), [(1.0, "high"), (4.0, "medium"), (None, "medium")])
def test_calls_that_wait(together: float | None, confidence: str) -> None:
    """The slowest rank is in MPI-IO calls for 9 s, and for 1 s in the requests that these make."""
    one = None if together is None else row([1.0] * 8, 8.0 / together, called=9.0, calls=np.full(8, 9.0))
    calls = in_mpi(seen(one), file(0, 10, **{**ROW, "slowest_rank_time": 1.0}), write=(9.0, 9.0))
    found = told(calls, write_time=8.0, slowest_rank_time=1.0)
    assert causes(found)["waiting_calls"] == confidence and "turns" not in causes(found)
    if one is not None:
        one.calls = np.zeros(8)
    assert "waiting_calls" not in causes(told(seen(one, calls={1: Calls()})))


def test_the_rank_that_waits_is_not_the_one_that_works() -> None:
    """One rank is long in its requests, for the machine took its turn away; the others wait for its lock meanwhile."""
    one = row([1.0, 6.0, 1.0, 1.0], 9.0, called=9.5, calls=np.array([6.0, 7.0, 6.0, 6.0]))
    times = {"ranks": 4, "write_time": 9.0, "slowest_rank_time": 6.0}
    calls = in_mpi(seen(one), file(0, 10, **{**ROW, **times}), write=(6.25, 6.25))
    found = told(calls, **times)
    assert causes(found)["waiting_calls"] == "high" and "turns" not in causes(found)


@pytest.mark.parametrize("uneven", [False, True])
def test_each_rank_writes_a_file_and_reads_another_ones(uneven: bool) -> None:
    """Two ranks open each file and one of them writes it: over all files they are even, or one writes all of them."""

    def of_one(rank: int) -> Row:
        one = row([2.0], 2.0, [100.0 * MIB])
        one.ranks = np.array([0 if uneven else rank])
        one.requests = np.array([100.0])
        return one

    rows = [
        file(
            at,
            at + 2.0,
            **{
                **ROW,
                "ranks": 2,
                "processes": 8,
                "file_id": at,
                "writes": 100,
                "write_size_1m_4m": 100,
                "bytes_written": 100 * MIB,
                "write_time": 2.0,
                "slowest_rank_time": 2.0,
                "slowest_rank_bytes": 100 * MIB,
                "fastest_rank_bytes": 0,
            },
        )
        for at in range(8)
    ]
    heat = np.bincount([0 if uneven else at for at in range(8)], minlength=8) * 100.0 * MIB
    activity = Activity("DXT", 8, 100.0, rows={(at, True): of_one(at) for at in range(8)}, heat={True: heat})
    found = diagnose({**JOB, "processes": 8}, rows, activity=activity)
    assert "stragglers" not in causes(found) and (causes(found).get("root_writes") is not None) == uneven, found.text()


def test_headers_of_one_rank_between_large_pieces_of_all_are_no_turns() -> None:
    """All move as many bytes, and one at a time is in requests: one rank alone takes the time."""
    alone = row([7.6, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], 8.0)
    assert "turns" in causes(told(seen(row([1.0] * 8, 8.0)), ranks=8)) and "turns" not in causes(told(seen(alone)))


@pytest.mark.parametrize(("spent", "share"), [((90, 10), 0.9), ((5, 95), None)])
def test_small_requests_beside_large_ones_have_their_own_time(spent: tuple[int, int], share: float | None) -> None:
    """300 requests of 512 B and 30 of 4 MiB: DXT has the time of each."""
    counts = np.zeros((192, WINDOWS, 80), np.int64)
    counts[36, 0, 40], counts[88, 0, 40] = spent  # 2 ** (36 / 4) is 512 B, 2 ** (88 / 4) 4 MiB
    found = told(
        seen(row([1.0] * 8, 8.0), durations={True: counts}),
        write_size_1m_4m=80,
        write_size_100_1k=720,
        bytes_written=320 * MIB,
    )
    told_of = [each.share for each in found.findings if each.cause == "small_requests"]
    assert told_of == ([] if share is None else [pytest.approx(share * 1.2 / 8, rel=0.01)])


def test_syncs() -> None:
    """A sync after each write: Darshan's write time has them, DXT does not."""
    calls = {1: Calls(syncs=800)}
    found = told(seen(row([0.1] * 8, 0.2), calls=calls), write_time=40.0, slowest_rank_time=5.0)
    assert high(found) == ["syncs"] and not found.findings[0].at_most
    assert found.findings[0].time == pytest.approx((40 - 0.8) / 8)
    assert high(told(seen(source="", calls=calls), write_time=40.0, slowest_rank_time=5.0)) == ["syncs"]
    assert high(told(seen(source="", calls={1: Calls(syncs=8)}), write_time=40.0, slowest_rank_time=5.0)) == []


@pytest.mark.parametrize("dxt", [True, False])
def test_syncs_of_ranks_with_own_files_are_side_by_side(dxt: bool) -> None:
    """Eight ranks sync a file each for 2 s: that is 2 s, and not 16 s."""
    rows, traced = [], {}
    for number in range(8):
        one = file(
            0,
            4,
            **{
                **ROW,
                "ranks": 1,
                "writes": 100,
                "file_id": number,
                "bytes_written": 100 * MIB,
                "write_time": 2.5,
                "slowest_rank_time": 2.5,
                "file": f"/scratch/{number}",
                "write_size_1m_4m": 100,
                "mpiio_indep_writes": 100,
            },
        )
        rows.append(one)
        traced[number, True] = Row(
            np.array([number]),
            np.array([100.0]),
            np.array([100.0 * MIB]),
            np.array([0.5]),
            np.zeros(1),
            np.full(1, 4.0),
            wall=0.5,
            called=0.5,
        )
    activity = Activity(
        "DXT" if dxt else "",
        8,
        100.0,
        rows=traced if dxt else {},
        calls={number: Calls(syncs=100) for number in range(8)},
    )
    (found,) = [
        each
        for each in diagnose({**JOB, "processes": 8, "run_time": 5.0}, rows, "write", activity=activity).findings
        if each.cause == "syncs"
    ]
    assert found.time == pytest.approx(2.0 if dxt else 2.5, rel=0.01) and found.confidence == "high"


def test_a_slow_stripe() -> None:
    times = np.array([1.0, 1.0, 8.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    one = row([4.0] * 8, 5.0, stripe_time=times, stripe_bytes=np.full(8, 100.0 * MIB))
    found = told(seen(one), stripe_count=8)
    assert high(found) == ["slow_ost"] and "stripe 2 of a file is 8 times slower" in found.conclusion
    one.stripe_time = np.ones(8)
    assert high(told(seen(one), stripe_count=8)) == []


def slower(factor: int, more: int = 1) -> Activity:
    """Return requests of 8 ms; in a quarter of the windows they take `factor` times as long, and are `more` times."""
    counts = np.zeros((192, WINDOWS, 80), np.int64)
    for window in range(WINDOWS):
        slow = window % 4 == 3
        counts[80, window, round(2 * (np.log2(0.008 * (factor if slow else 1)) + 24))] = 100 * (more if slow else 1)
    line = np.ones((2, 1, BINS))
    return seen(row([4.0] * 8, 5.0), durations={True: counts}, line=line)


def test_requests_that_slow_down() -> None:
    found = told(slower(8))
    assert high(found) == [] and found.findings[0].cause == "slowed_down"  # by whom, a log does not tell
    assert high(told(slower(8), own_share=0.2)) == ["slowed_down"]
    for activity in (slower(1), slower(8, more=8)):  # as ever; the job asks for more
        assert "slowed_down" not in causes(told(activity))


def test_load_by_others() -> None:
    found = told(own_share=0.1)
    assert causes(found) == {"load_by_others": "medium"}
    assert "90 % of the bytes that the OSTs moved" in found.conclusion and told(own_share=0.9).findings == []


@pytest.mark.parametrize(
    ("columns", "shared", "confidence"),
    [
        ({"fs_type": "lustre"}, None, "high"),
        ({"fs_type": "lustre"}, 90, "high"),
        ({"fs_type": "lustre"}, 0, "low"),  # ranks do not share blocks
        ({"fs_type": "ext4"}, None, None),  # nobody locks blocks
        ({"fs_type": "nfs"}, None, "medium"),
        ({"fs_type": "lustre", "alignment": None}, None, "medium"),
        (
            {
                "fs_type": "lustre",
                **small(),
                "bytes_written": 800 << 10,
                "write_size_1k_10k": 800,
                "consec_writes": 799,
            },
            None,
            "low",
        ),  # small requests cost by themselves
    ],
)
def test_unaligned_requests(columns: dict[str, Any], shared: int | None, confidence: str | None) -> None:
    activity = None if shared is None else seen(row([4.0] * 8, 8.0, blocks=100, shared=shared))
    found = told(activity, **{"unaligned": 800, "stripe_count": 8, "slowest_rank_bytes": 100 * MIB, **columns})
    assert causes(found).get("unaligned") == confidence


def test_dxt_speaks_for_and_against_contention() -> None:
    assert high(told(stripe_count=1, fastest_rank_bytes=100 * MIB, slowest_rank_bytes=100 * MIB)) == []
    assert high(told(seen(row([4.0] * 8, 4.0)), stripe_count=1)) == ["contention"]
    assert "contention" not in causes(told(seen(row([4.0] * 8, 16.0)), stripe_count=1))


def test_dxt_has_the_time_of_every_rank() -> None:
    """One rank has five times the bytes; or takes five times as long for as many, which is not sure."""
    uneven = row([8.0] + [1.6] * 7, 8.0, [500.0 * MIB] + [300.0 * MIB / 7] * 7)
    assert high(told(seen(uneven), write_time=19.2, slowest_rank_time=8.0)) == ["stragglers"]
    slow = told(seen(row([8.0] + [0.8] * 7, 8.0)), write_time=13.6, slowest_rank_time=8.0)
    assert high(slow) == [] and causes(slow)["stragglers"] == "medium"


@pytest.mark.parametrize(("shared", "confidence"), [(None, "medium"), (80, "high"), (0, "medium")])
def test_too_many_aggregators(shared: int | None, confidence: str) -> None:
    """8 ranks write two OSTs in collective calls, in pieces of 1 MiB of stripes of 16 MiB."""
    activity = None if shared is None else seen(row([4.0] * 8, 8.0, blocks=100, shared=shared))
    columns = {"osts": [0, 1]}
    columns |= fields(f"mpiio_coll_writes=800 mpiio_indep_writes=0 stripe_count=2 stripe_size={16 * MIB}")
    columns |= fields(f"slowest_rank_bytes={100 * MIB} fastest_rank_bytes={100 * MIB}")
    assert causes(told(activity, **columns))["many_aggregators"] == confidence
    columns |= {"stripe_count": 8, "osts": list(range(8))}
    assert "many_aggregators" not in causes(told(activity, **columns))


def test_too_many_osts() -> None:
    columns = {"stripe_count": 16, "stripe_size": MIB, "max_offset_written": MIB - 1}
    assert "many_osts" in causes(told(**columns))
    assert "many_osts" not in causes(told(**{**columns, "max_offset_written": 800 * MIB}))


def test_time_of_the_exchange_is_a_note() -> None:
    """Of 8 s in collective calls, some rank writes for 5 s; where it does for 2 s, a finding has that time."""
    columns = {"mpiio_coll_writes": 800, "mpiio_indep_writes": 0}
    notes, less = (" ".join(told(seen(row([1.0] * 8, wall, called=8.0)), **columns).notes) for wall in (5.0, 2.0))
    assert "For 38 % of the time in collective calls no rank is in a POSIX write" in notes
    assert "collective calls" not in less and "collective calls" not in " ".join(
        told(seen(row([1.0] * 8, 7.8, called=8.0)), **columns).notes
    )
