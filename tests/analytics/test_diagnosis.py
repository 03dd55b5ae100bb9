"""Diagnosis: real logs with known causes, each rule on rows made for it, what is unknown, and the anonymous form."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest

from mpiio_ext import hints
from mpiio_ext.analytics.diagnosis import Diagnosis, Limits, advice, diagnose
from mpiio_ext.analytics.diagnosis.model import CALLED
from mpiio_ext.analytics.diagnosis.words import rounded, worded
from mpiio_ext.analytics.factors.storage import count_of_osts
from mpiio_ext.analytics.tables.schema import SIZE_BINS
from mpiio_ext.errors import ArgumentError
from support import darshan_rows
from support.quiet_rows import JOB, file, small


def causes(*files: dict[str, Any], job: dict[str, Any] = JOB, **options: Any) -> dict[str, Any]:
    found = diagnose(job, files, **options)
    return {finding.cause: finding for finding in found.findings}


def test_the_bad_ost_is_found() -> None:
    """The sample's README: OST 14 degrades the whole file system."""
    job, files = darshan_rows.rows(darshan_rows.shared_data("tokio", "samples", "sample-badost.darshan"))
    found = diagnose(job, files)
    first = found.findings[0]
    assert (first.cause, list(first.osts), first.confidence) == ("slow_ost", ["14"], "high")
    assert first.share > 0.9
    assert found.critical_files[0][0].endswith("ior-posix.out.00001507")  # the file that took longest, by the log
    assert found.critical_files[0][0] == first.files[0]
    assert "OST 14 is" in found.conclusion
    assert "lfs setstripe" in found.text()


def test_the_good_osts_are_not() -> None:
    job, files = darshan_rows.rows(darshan_rows.shared_data("tokio", "samples", "sample-goodost.darshan"))
    found = diagnose(job, files)
    assert list(found.findings) == []
    assert found.conclusion.startswith("No cause was found")
    assert "explains" not in found.text()


@pytest.mark.parametrize(
    ("name", "cause"),
    [("shane_macsio", "read_modify_write"), ("ior_hdf5_example", "contention"), ("dxt.darshan", None)],
)
def test_example_logs(name: str, cause: str | None) -> None:
    folder = darshan_rows.example("dxt.darshan").parent
    (path,) = folder.glob(f"{name}*")
    found = diagnose(*darshan_rows.rows(path))
    assert (found.findings[0].cause if found.findings else None) == cause
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("count", [2, 4, 20])
def test_files_in_turn_share_the_time(count: int) -> None:
    """A rank's calls go to one file after the other: each is open all the time, and none is in calls for all of it."""
    files = [file(0.001 * at, 10, write_time=10 / count, **small()) for at in range(count)]
    (found,) = diagnose(JOB, files).findings
    assert (found.cause, found.confidence) == ("small_requests", "high")
    assert found.time == pytest.approx(10, rel=0.01) and found.share == pytest.approx(1, rel=0.01)
    named = [name for name in found.files if not name.startswith("and ")]
    assert len(named) == min(count, 5) and (count <= 5 or found.files[-1] == f"and {count - 5} more")


def test_a_file_of_each_rank_is_named() -> None:
    """Ranks write at the same time: all of their files are, the slowest first, with all of their requests."""
    own = {"mpiio_coll_writes": 0, "mpiio_indep_writes": 100}
    files = [file(0.001 * at, 9 + 0.1 * at, **small(**own)) for at in (3, 0, 1, 2)]
    (found,) = diagnose(JOB, files).findings
    assert found.files[0] == "/scratch/alice/out.0.003" and len(found.files) == 4
    assert found.time == pytest.approx(9.3, rel=0.01)
    assert [one.value for one in found.evidence if one.meaning == "requests"] == [400]
    assert not any(word in each.text + each.command for each in found.advice for word in ("_all", "delegates"))


def test_a_file_that_is_hardly_accessed_takes_no_time_from_others() -> None:
    rare = file(0, 10, write_time=0.2, bytes_written=50 << 20)
    (first, time), *_ = diagnose(JOB, [rare, file(0.5, 9.5, **small())]).critical_files
    assert first == "/scratch/alice/out.0.5" and time.value == pytest.approx(9, rel=0.03)


def test_a_quiet_job_has_no_cause() -> None:
    found = diagnose(JOB, [file(0, 10), file(1, 9)])
    assert list(found.findings) == []
    assert found.conclusion == "No cause was found: all numbers that this analysis checks are within their limits. " + (
        'The list "Unknown" below names numbers that the log lacks.'
    )
    assert [fact.value for fact in found.facts if fact.meaning.startswith("critical time")] == [10, 0.1]


def test_order_is_by_confidence_then_share() -> None:
    """The file with contention has 2 s for itself, and 1/65 of 3 s: a rank of it is in calls for 1/64 of its time."""
    files = [file(0, 10, **small()), file(7, 12, ranks=64, stripe_count=1, mpiio_coll_writes=0, mpiio_indep_writes=9)]
    found, second = diagnose(JOB, files), 2 + 3 / 65
    assert [finding.cause for finding in found.findings] == ["small_requests", "contention"]
    assert [finding.share for finding in found.findings] == pytest.approx([(12 - second) / 12, second / 12])
    assert [finding.time for finding in found.findings] == pytest.approx([12 - second, second])
    assert list(found.findings[1].files) == ["/scratch/alice/out.7"]
    surer = [file(0, 10, ranks=9, unaligned=100), file(7, 12, **small())]
    assert [finding.confidence for finding in diagnose(JOB, surer).findings] == ["high", "low"]


@pytest.mark.parametrize("way", ["read", "write"])
def test_small_requests_and_their_advice(way: str) -> None:
    independent = {"ranks": 2, f"mpiio_coll_{way}s": 0, f"mpiio_indep_{way}s": 100}
    none = {f"mpiio_{kind}_{way}s": None for kind in ("coll", "indep", "nb")}
    for extra, word in ((independent, "mpiox_delegates="), (none, "1 MB"), ({}, f"romio_cb_{way}=enable")):
        found = causes(file(0, 10, way, **small(way, **extra)))["small_requests"]
        assert any(word in each.text + each.command for each in found.advice)
    at_random = file(0, 10, way, **small(way, **independent, **{f"seq_{way}s": 10}))
    assert "at random places" in causes(at_random)["small_requests"].title
    assert not any("delegates" in each.text for each in causes(at_random)["small_requests"].advice)
    follow = small(way, **{f"consec_{way}s": 99, f"{way}_time": 0.01})
    consecutive = diagnose(JOB, [file(0, 10, way, **follow)])
    assert list(consecutive.findings) == []
    assert "most of them begin where the one before ended" in consecutive.notes[0]
    large = file(0, 10, way, **small(way, **{f"bytes_{'written' if way == 'write' else 'read'}": 1 << 40}))
    assert "small_requests" not in causes(large)


@pytest.mark.parametrize(("stored", "alone"), [(1.05, True), (1.5, False), (2.9, False), (3.1, True)])
def test_pieces_are_written_alone_where_that_gains(stored: float, alone: bool) -> None:
    """Without gaps, or with wide ones; else the tuner measures: 2 times as many bytes took 3 times as long alone."""
    asked = 99 * 2**20
    row = file(0, 10, bytes_written=asked * stored, bytes_read=10 << 20, mpiio_bytes_read=0, mpiio_bytes_written=asked)
    (found,) = (each for each in diagnose(JOB, [row]).findings if each.cause == "read_modify_write")
    commands = " ".join(each.command for each in found.advice)
    assert ("romio_ds_write=disable" in commands, "mpiio-ext tune" in commands) == (alone, not alone)


def test_read_modify_write_is_told_from_reads_of_the_program() -> None:
    sieved = {"bytes_read": 10 << 20, "mpiio_bytes_read": 0, "mpiio_bytes_written": 99 << 20}
    found = causes(file(0, 10, **sieved))["read_modify_write"]
    assert [(each.meaning.split()[-1], each.value / (1 << 20)) for each in found.evidence] == [
        ("POSIX", 10),
        ("MPI-IO", 0),
        ("POSIX", 100),
        ("MPI-IO", 99),
    ]
    assert found.at_most and found.confidence == "high"
    assert any("romio_ds_write=disable" in each.command for each in found.advice)
    for other in (
        {"mpiio_bytes_read": 9 << 20},
        {"mpiio_bytes_read": None},
        {"mpiio_bytes_written": 0},
        {"bytes_read": 4 << 20},
        {"mpiio_bytes_written": 100 << 20},
    ):
        assert "read_modify_write" not in causes(file(0, 10, **{**sieved, **other}))


def test_read_modify_write_of_a_real_log() -> None:
    """The .h5 of the sample: no MPI-IO read, 25.9 GB of POSIX reads for 257.7 GB of MPI-IO writes."""
    (path,) = darshan_rows.shared_data("darshan").glob("jlbez*.darshan")
    job, files = darshan_rows.rows(path)
    for direction in ("read", "write"):
        found = diagnose(job, files, direction, limits=Limits(fast=1e12))  # type: ignore[arg-type]
        (one,) = [each for each in found.findings if each.cause == "read_modify_write"]
        assert [each.value for each in one.evidence] == pytest.approx([25.9e9, 0, 266.1e9, 257.7e9], rel=0.002)
        assert one.at_most == (direction == "write")
    notes = diagnose(job, files, "write").notes  # 23.6 GB/s: seen, and not called a cause
    assert any("reads what it is about to overwrite" in note and "MPI-IO: 258 GB" in note for note in notes)


def test_contention_counts_processes_not_aggregators() -> None:
    shared = {"ranks": 64, "stripe_count": 1, "mpiio_coll_writes": 0, "mpiio_indep_writes": 100}
    found = causes(file(0, 10, **shared))["contention"]
    assert (found.title, found.confidence) == ("64 processes write a file that lies on 1 OST.", "high")
    assert any("group_cyclic" in each.command for each in found.advice)
    assert "contention" not in causes(file(0, 10, **{**shared, "mpiio_coll_writes": 900}))
    assert "contention" not in causes(file(0, 10, **shared), limits=Limits(contention=65))
    assert "contention" not in causes(file(0, 10, **{**shared, "stripe_count": None}))
    nothing = causes(file(0, 10, **shared, slowest_rank_bytes=0, fastest_rank_bytes=0))["contention"]
    assert (nothing.title, nothing.confidence) == ("64 processes open a file that lies on 1 OST.", "medium")
    assert "contention" not in causes(file(0, 10, "read", **{**shared, "bytes_read": 0}))


def test_root_and_serialised_and_straggler() -> None:
    root = file(0, 10, root_bytes_written=100 << 20)
    assert causes(root)["root_writes"].share == 1
    assert "root_writes" not in causes(root, file(0, 10), file(0, 10), file(0, 10))
    series = causes(file(0, 10), file(10, 20), file(20, 40))["serialised"]
    assert series.time == pytest.approx(40 - 20)
    assert "serialised" not in causes(file(0, 10), file(0, 11), file(0, 40))
    assert "serialised" not in causes(*(file(10 * k, 10 * k + 10, log_id=k) for k in range(3)))  # three programs
    pending = {"mpiio_coll_writes": None, "mpiio_nb_writes": 100}  # the program goes on while data are written
    assert "serialised" not in causes(file(0, 10, **pending), file(10, 20, **pending), file(20, 40, **pending))
    slow = {"ranks": 10, "slowest_rank_time": 10.0, "slowest_rank_bytes": 50, "fastest_rank_bytes": 5}
    collective = {"mpiio_coll_writes": 100, "mpiio_indep_writes": 0}  # a rank then carries out what others have
    assert "stragglers" not in causes(file(0, 10, write_time=20.0, **{**slow, **collective}))
    slow |= {"mpiio_coll_writes": 0, "mpiio_indep_writes": 100}
    found = causes(file(0, 10, write_time=20.0, **slow))["stragglers"]
    assert (found.time, found.confidence) == (pytest.approx(8), "medium")
    alike = causes(file(0, 10, write_time=20.0, **{**slow, "fastest_rank_bytes": 50}))["stragglers"]
    assert (alike.confidence, "as much to do" in alike.title) == ("low", True)


def test_metadata_small_files_and_alignment() -> None:
    found = causes(file(0, 10, meta_time=30.0))["metadata"]
    assert (found.share, found.of) == (pytest.approx(0.75), CALLED)
    found = causes(file(0, 10, meta_time=5.0, write_time=1.0))["metadata"]  # of 6 s in calls, and 10 s of I/O
    assert (found.share, found.of) == (pytest.approx(0.5), "critical time")
    many = [file(k, k + 1, bytes_written=4096, file=f"f{k}") for k in range(120)]
    found = causes(*many)["small_files"]
    assert (len(found.files), found.files[-1]) == (6, "and 115 more")
    assert causes(file(0, 10, ranks=9, unaligned=100))["unaligned"].confidence == "low"


def test_a_fast_job_has_causes_only_where_they_are_shown_to_cost_time() -> None:
    """19.8 GB/s with unaligned requests: seen, and no cause; an OST that is slower than the others still is one."""
    unaligned = {"ranks": 9, "unaligned": 100}
    found = diagnose(JOB, [file(0, 10, bytes_written=198 * 10**9, **unaligned)])
    assert list(found.findings) == []
    assert found.conclusion == (
        "No cause was found, since the bandwidth is not low: all ranks together wrote 198 GB in 10 s (critical time),"
        " 19.8 GB/s (low: below 1 GB/s; option --low-bandwidth)."
    )
    (seen,) = [note for note in found.notes if "do not begin at blocks" in note]
    assert "The time is at most 10 s" in seen and "the finding is no cause" in seen
    assert "explains" not in found.text() and found.to_dict()["low_bandwidth"] is False

    slow = diagnose(JOB, [file(0, 10, **unaligned)])
    assert "The cause may explain at most 10 s (10 % of the run time)." in slow.conclusion
    assert slow.to_dict()["low_bandwidth"] is True and slow.findings[0].at_most
    assert "unaligned" in causes(file(0, 10, bytes_written=198 * 10**9, **unaligned), limits=Limits(fast=20e9))

    many = [
        file(0, 90 if k % 6 == 4 else 3, osts=[k % 6], stripe_count=1, bytes_written=10**10, file=f"f{k}")
        for k in range(36)
    ]
    both = diagnose(JOB, many)
    assert [finding.cause for finding in both.findings] == ["slow_ost"] and not both.findings[0].at_most
    moved = "all ranks together wrote 360 GB in 90 s (critical time), 4 GB/s"
    end = f"But the bandwidth is not low: {moved} (low: below 1 GB/s; option --low-bandwidth)."
    assert both.conclusion.endswith(end)


def test_sizes_of_a_diagnosis_are_of_one_family() -> None:
    """Powers of 1000 everywhere, as bandwidths have; blocks and bounds exactly."""
    found = diagnose(JOB, [file(0, 10, ranks=9, unaligned=100, **small(alignment=4096))]).text()
    assert not re.search(r"\b[KMGT]iB", found)
    assert "4,096 B" in found and "at most 1,048,576 B" in found and "kB" in found


def test_slow_ost_on_rows() -> None:
    files = [file(0, 90 if k % 6 == 4 else 3, osts=[k % 6], stripe_count=1, file=f"f{k}") for k in range(36)]
    found = causes(*files)["slow_ost"]
    assert (list(found.osts), found.time) == (["4"], pytest.approx(87))
    unknown = [{**each, "osts": None} for each in files]
    assert causes(*unknown)["slow_file"].confidence == "low"
    in_step = [file(k / 100, 90, file=f"s{k}", osts=None, write_time=60.0 if k == 1 else 2.0) for k in range(4)]
    found = causes(*in_step)["slow_file"]  # each is open for as long: without it, the sweep would take as long
    assert (found.time, found.files) == (60.0, ["s1"])


def test_one_file_takes_the_time() -> None:
    found = causes(file(0, 95), file(90, 96))
    assert list(found) == ["dominant_file"]
    assert list(found["dominant_file"].files) == ["/scratch/alice/out.0"]
    assert "dominant_file" not in causes(file(0, 95, **small()), file(90, 96))  # the other finding names it


def test_a_file_with_the_bytes_is_not_said_to_dominate() -> None:
    """One file of data beside a small one takes the time, as it must; of unknown bytes nothing is said."""
    config = file(0, 0.5, bytes_written=2000, file="/home/config")
    assert causes(file(0, 95), config) == {}
    assert "dominant_file" in causes(file(0, 95), file(90, 96, bytes_written=100 << 20))
    assert "dominant_file" not in causes(file(0, 95, bytes_written=None), file(90, 96, bytes_written=None))


def test_io_that_is_a_trivial_part_of_the_run_has_no_findings() -> None:
    slow = [file(0, 10, ranks=64, stripe_count=1, mpiio_coll_writes=0, mpiio_indep_writes=100, **small())]
    assert diagnose({**JOB, "run_time": 499.0}, slow).findings
    found = diagnose({**JOB, "run_time": 1000.0}, slow)
    assert list(found.findings) == [] and found.to_dict()["worth_tuning"] is False
    assert found.conclusion == (
        "No cause is reported, since the critical time is 1 % of the run time (10 s), too little to be worth tuning."
    )
    assert diagnose({**JOB, "run_time": 1000.0}, slow, limits=Limits(trivial=0)).findings
    assert diagnose({**JOB, "run_time": None}, slow).findings  # nobody knows what part of the run it is


@pytest.mark.parametrize(
    ("name", "direction"),
    [("sample-badost.darshan", "read"), ("noposix.darshan", "read"), ("noposix.darshan", "write")],
)
def test_trivial_io_of_real_logs(name: str, direction: Any) -> None:
    """203 ms of 780 s, and 1 s of 39,213 s; a file written to now and then for all of these, some seconds in calls."""
    sample = name.startswith("sample-")  # the same file as above, which is read once
    log = darshan_rows.shared_data("tokio", "samples", name) if sample else darshan_rows.example(name)
    found = diagnose(*darshan_rows.rows(log), direction)
    assert list(found.findings) == [] and "too little to be worth tuning" in found.conclusion


def test_a_file_that_is_open_all_along_and_hardly_used_is_not_worth_tuning() -> None:
    """Unless MPI-IO may wait beside its requests, or the log has lost some."""
    plain = {"write_time": 0.5, "mpiio_coll_writes": None, "mpiio_indep_writes": None, "mpiio_nb_writes": None}
    found = diagnose(JOB, [file(0, 95, **plain)])
    assert found.conclusion == (
        "No cause is reported, since the sum of the times of all ranks in I/O calls is 0.5 % of the run time"
        " (500 ms), too little to be worth tuning."
    )
    assert found.to_dict()["worth_tuning"] is False
    for other in ({"mpiio_indep_writes": 9}, {"partial": True}, {"write_time": 2.5}, {"write_time": None}):
        assert not diagnose(JOB, [file(0, 95, **{**plain, **other})]).trivial


def test_advice_names_no_more_osts_than_there_are() -> None:
    """A store, or a job that met them all, tells how many; a few OSTs tell nothing."""
    many = {"processes": 2048, "ranks": 2048, "mpiio_coll_writes": 0, "mpiio_indep_writes": 100}

    def commands(known: int | None = None, **layout: Any) -> str:
        (found,) = [
            one
            for one in diagnose(JOB, [file(0, 90, **many, **layout)], osts=known).findings
            if one.cause == "contention"
        ]
        return " ".join(each.command + each.text for each in found.advice)

    assert "setstripe -c 800" in commands(stripe_count=100, osts=[*range(100, 200)])
    assert "setstripe -c 248" in commands(248, stripe_count=100, osts=[*range(100, 200)])
    assert "striping_factor=248" in commands(248, stripe_count=100, osts=[*range(100, 200)])
    for found in (commands(stripe_count=248, osts=[*range(248)]), commands(248, stripe_count=248, osts=None)):
        assert "strip" not in found and "collective calls" in found
    assert "setstripe -c 8 " in commands(stripe_count=1, osts=[0])
    assert [count_of_osts(met) for met in ([], range(8), range(248), range(0, 248, 2))] == [None, None, 248, None]


def test_files_that_are_open_for_long() -> None:
    found = diagnose(JOB, [file(0, 95, write_time=0.2), file(90, 96, write_time=0.1)])
    assert list(found.findings) == []
    assert any("of the critical time passes in calls" in note for note in found.notes)


def test_what_is_unknown_is_said() -> None:
    job = {**JOB, "modules": ["POSIX"], "partial": True, "uses_mpiio": False}
    nothing = {"stripe_count": None, "osts": None, "root_bytes_written": None}
    found = diagnose(job, [file(0, 10, **nothing, mpiio_coll_writes=None, mpiio_indep_writes=None)])
    text = " ".join(found.unknown)
    for word in ("no module LUSTRE", "no module MPI-IO", "ran out of memory"):
        assert word in text
    assert "sizes" not in text
    stdio = file(0, 10, consec_writes=None, unaligned=None, **{f"write_size_{name}": None for name in SIZE_BINS})
    assert "module POSIX has no record of the critical files" in " ".join(diagnose(JOB, [stdio]).unknown)


def test_factors_beyond_their_limits_that_explain_nothing_are_named() -> None:
    """The example's reads: 100 % metadata and unaligned requests, while its critical file is open and hardly used."""
    found = diagnose(*darshan_rows.rows(darshan_rows.example("dxt.darshan")), "read")
    assert list(found.findings) == [] and "is suspicious" not in found.text()
    for words in (
        "beyond their limits, but do not explain the time of these files: ",
        "metadata calls, as a share of the time in all calls (100 %)",
        "requests that do not begin at a block boundary (100 %)",
    ):
        assert words in found.conclusion
    assert len(found.to_dict()["beyond_limits"]) == len(found.beyond) >= 2
    assert list(diagnose(JOB, [file(0, 10)]).beyond) == []


def test_why_osts_cannot_be_compared() -> None:
    text = " ".join(diagnose(JOB, [file(0, 10)]).unknown)
    assert "(slow_ost): 1 alike file to compare, and 4 are needed" in text and "counters" not in text
    four = [file(k, 10, file=f"f{k}", stripe_count=1, osts=[0]) for k in range(4)]
    assert any("(slow_ost): the alike files lie on fewer than 4 OSTs" in each for each in diagnose(JOB, four).unknown)


def test_direction_is_the_longer_one_and_times_may_be_missing() -> None:
    files = [file(0, 10), file(0, 30, "read")]
    assert diagnose(JOB, files).direction == "read"
    assert diagnose(JOB, files, "write").direction == "write"
    tables = [pa.Table.from_pylist([each]) for each in files]
    assert (
        diagnose(JOB, pa.concat_tables(tables, promote_options="default")).to_dict() == diagnose([JOB], files).to_dict()
    )
    nothing = diagnose(JOB, [{**file(0, 1), "write_start": None}])
    assert nothing.conclusion == "The log has no times of writes, so there are no slow writes to explain."
    assert diagnose(JOB, []).unknown == ["the time of writes: the log has no times of writes for any file"]
    with pytest.raises(ArgumentError, match="of one job, and these are rows of 2"):
        diagnose(JOB, [{**file(0, 1), "job_id": 5}])


def test_json_has_units() -> None:
    found = diagnose(JOB, [file(0, 10, **small())]).to_dict()
    again = json.loads(json.dumps(found, allow_nan=False))
    finding = again["findings"][0]
    assert finding["time"] == {"value": 10.0, "unit": "s"}
    assert {each["unit"] for each in finding["evidence"]} == {"share", "B", "count"}
    assert again["facts"][0] == {"meaning": "bytes written", "value": 102400.0, "unit": "B"}


def leaks(found: Diagnosis) -> str:
    return found.text() + json.dumps(found.to_dict())


def test_the_anonymous_form_leaks_nothing() -> None:
    """Neither names, nor ids, nor times to the second: of a job made for it, and of a real log."""
    files = [
        file(
            0.123456, 12.345678, **small(mpiio_coll_writes=0, mpiio_indep_writes=1), osts=[71], stripe_count=1, ranks=64
        ),
        file(12.0, 33.333333, root_bytes_written=104857600),
    ]
    text = leaks(diagnose(JOB, files, anonymous=True))
    secrets = tuple("4711 31337 alice secret solver scratch out. 71 1600000 12.34 33.2 21.3".split())
    assert [secret for secret in secrets if secret in text] == []
    assert "file 1" in text
    assert "4711" in leaks(diagnose(JOB, files))

    job, rows = darshan_rows.rows(darshan_rows.shared_data("tokio", "samples", "sample-badost.darshan"))
    text = leaks(diagnose(job, rows, anonymous=True))
    words = [str(job["job_id"]), str(job["uid"]), "glock", "scratch", "ior", "727.", "1507", "778"]
    assert [word for word in words if word in text] == []
    assert re.search(r"OST 14\b", text) is None
    assert "slow_ost" in text


def test_every_hint_in_advice_exists() -> None:
    """And every document that it names."""
    known = {spec.name for spec in hints.registry()}
    pieces = [
        advice.MEASURE,
        advice.DELEGATES,
        advice.align(collective=True),
        advice.align(collective=False),
        advice.BUNDLE,
        advice.metadata(again=True),
        advice.overlap(),
    ]
    pieces += [*advice.NO_SIEVING, *advice.contact(["1"]), *advice.stripes(64, 1, None)]
    pieces += [made(way) for way in ("read", "write") for made in (advice.use_collective, advice.collective_buffering)]
    pieces += [made for way in ("read", "write") for made in (advice.parallel_root(way), advice.aggregators(way, 4))]
    pieces += [advice.imbalance(by_bytes) for by_bytes in (True, False)]
    pieces += [
        advice.larger_requests(way, mpiio=mpiio, hdf5=hdf5)
        for way in ("read", "write")
        for mpiio, hdf5 in ((True, False), (False, True), (False, False))
    ]
    assert len(pieces) > 15
    named = {name for each in pieces for name in re.findall(r"(?:^|[ :])(\w+)=", each.command)}
    assert named
    assert named <= known
    for each in pieces:
        assert not each.see or (darshan_rows.cbuild.ROOT / each.see).exists()


def test_numbers_in_words() -> None:
    assert [worded(value, "share") for value in (0.0, 0.004, 0.5, 1.0)] == ["0 %", "0.4 %", "50 %", "100 %"]
    assert worded(7.06e8, "B/s") == "706 MB/s"
    assert worded(19.8e9, "B/s") == "19.8 GB/s"
    assert [worded(value, "B") for value in (100, 4096, 5000, 1 << 20, 3 << 20, 1 << 30, 999_950, 2.5e15)] == [
        "100 B",
        "4.1 kB",
        "5 kB",
        "1.05 MB",
        "3.15 MB",
        "1.07 GB",
        "1 MB",
        "2.5 PB",
    ]
    assert worded(39211.7, "s") == "39,212 s"
    assert [rounded(value, 2) for value in (0.0, 727.18, 0.0123, 2050, 1.0)] == [0.0, 730, 0.012, 2000, 1.0]
