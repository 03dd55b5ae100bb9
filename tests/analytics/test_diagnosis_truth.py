"""First sentences held against the truth: logs of programs whose problem is known, and counters of public logs.

The counters of the large public logs (of thousands of ranks) are rebuilt as rows; what was wrong in them is written
beside each.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mpiio_ext.analytics.diagnosis import Diagnosis, Finding, diagnose
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.ledger import Ledger, of_rows
from mpiio_ext.analytics.report import job as report
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.sources.darshan import convert
from support import darshan_rows
from support.quiet_rows import JOB, fields, file, in_mpi, small

#: Truth -> the cause that is found with high confidence; None: there is none.
TRUTHS: dict[str, str | None] = {
    "one_writer": "root_writes",
    "few_aggregators": "few_aggregators",
    "small_independent": "small_requests",
    "random_reads": "small_requests",
    "metadata_storm": "metadata",
    "read_modify_write": "read_modify_write",
    "well_behaved": None,
    "little_io": None,
}


@pytest.mark.parametrize("dxt", ["", "-dxt"])
@pytest.mark.parametrize("truth", TRUTHS)
def test_known_truth(truth: str, dxt: str) -> None:
    """The first sentence is right, and no other cause is said with high confidence."""
    path = darshan_rows.shared_data("known_truth", f"{truth}-4{dxt}.darshan")
    rows = (path.parent / "truth.jsonl").read_text().splitlines()
    assert {json.loads(row)["log"]: json.loads(row)["truth"] for row in rows}[path.name] == truth
    tables = convert([path.name], str(path.parent)).tables
    told = [one["document"] for one in diagnoses(tables, Known(activity=activity_of(path, tables)))]
    high = {each["cause"] for one in told for each in one["findings"] if each["confidence"] == "high"}
    assert high == ({TRUTHS[truth]} - {None})
    first = next(iter(told[0]["findings"]), None)
    assert first is None or TRUTHS[truth] is None or first["cause"] == TRUTHS[truth]
    assert told[0]["worth_tuning"] == (truth != "little_io")


def causes(found: Diagnosis) -> list[tuple[str, str]]:
    return [(finding.cause, finding.confidence) for finding in found.findings]


SHARED = {"processes": 65536, "ranks": 65536, "fastest_rank_bytes": 0, "stripe_count": 1, "osts": [7]}
SKEW = {**JOB, "processes": 65536, "run_time": 900.0}


@pytest.mark.parametrize("collective", [0, 65536])
def test_one_of_65536_ranks_writes_all(collective: int) -> None:
    """35,283 s of metadata calls are half a second of each rank; the one OST is met by one rank."""
    found = diagnose(
        SKEW,
        [
            file(
                0,
                400,
                **{
                    **SHARED,
                    "bytes_written": 43_600_000_000,
                    "slowest_rank_bytes": 43_600_000_000,
                    "slowest_rank_time": 352.0,
                    "slowest_rank": 0,
                    "meta_time": 35283.0,
                    "write_time": 351.0,
                    "opens": 65536,
                    "root_bytes_written": None,
                    "mpiio_coll_writes": collective,
                    "mpiio_indep_writes": 0 if collective else None,
                },
            )
        ],
    )
    assert causes(found) == [("few_aggregators" if collective else "root_writes", "high")]
    words = "Too few aggregators: 1 of 65,536 processes writes all" if collective else "Rank 0 writes most of the data."
    assert found.conclusion.startswith(words)
    assert not any("rank 0" in each for each in found.unknown)
    assert "metadata" not in found.conclusion and "metadata calls" not in " ".join(found.beyond)


def test_write_amplification_by_aggregators() -> None:
    """56 of 512 ranks write: 77 GB become 305 GB, each piece after a read of no bytes that takes longer than it."""
    found = diagnose(
        {**JOB, "processes": 512, "run_time": 1000.0},
        [
            file(
                0,
                300,
                **{
                    **small(),
                    "processes": 512,
                    "ranks": 512,
                    "bytes_written": 305_000_000_000,
                    "bytes_read": 0,
                    "mpiio_bytes_written": 77_000_000_000,
                    "mpiio_bytes_read": 0,
                    "write_size_1k_10k": 0,
                    "write_size_100k_1m": 990_000,
                    "read_size_0_100": 990_000,
                    "reads": 990_000,
                    "read_time": 56 * 200.0,
                    "write_time": 56 * 57.0,
                    "slowest_rank_time": 262.0,
                    "slowest_rank_bytes": 305_000_000_000 // 56,
                    "fastest_rank_bytes": 0,
                    "mpiio_coll_writes": 998_000,
                    "mpiio_indep_writes": 2000,
                    "stripe_count": 56,
                },
            )
        ],
    )
    assert causes(found) == [("read_modify_write", "high")]
    assert "77 GB of MPI-IO writes become 305 GB at the file system" in found.conclusion
    (one,) = found.findings
    assert {each.meaning: each.value for each in one.evidence}["reads of at most 100 B among all reads"] == 1
    assert "romio_cb_write=enable" not in found.text()  # it is on


@pytest.mark.parametrize(("inside", "waits"), [(9.0, True), (4.0, False)])
@pytest.mark.parametrize("way", ["read", "write"])
def test_what_mpiio_calls_wait_for_is_not_known(way: Any, inside: float, waits: bool) -> None:
    """The MPI library's requests take 3 s of its calls: the rest is locks, or an exchange; or what the reads take."""
    row = {**file(0, 10), **file(0, 10, "read")}
    row |= fields(f"bytes_read={300 << 20} bytes_written={400 << 20} read_time=1.0 write_time=2.0")
    row |= fields(f"mpiio_bytes_written={100 << 20} mpiio_bytes_read=0 file_id=7")
    seen = in_mpi(Activity("", 64, 100.0), row, write=(inside, inside))
    (found,) = [one for one in diagnose(JOB, [row], way, activity=seen).findings if one.cause == "read_modify_write"]
    assert (found.at_most, found.confidence) == (waits or way == "read", "high")
    assert any("in MPI-IO calls" in each.meaning for each in found.evidence) == waits


def test_requests_of_one_mebibyte_are_not_small() -> None:
    """They lie in the bin below the bound, which holds it; a header beside them makes none of them small."""
    wide = fields(
        "ranks=64 mpiio_coll_writes=0 mpiio_indep_writes=524_288 consec_writes=0 write_size_1m_4m=0 "
        "write_size_100k_1m=524_288 stripe_count=64"
    )
    for header in (0, 1):
        found = diagnose(JOB, [file(0, 900, **{**wide, "bytes_written": 524_288 << 20, "write_size_0_100": header})])
        assert causes(found) == [] and "small" not in " ".join([found.conclusion, *found.beyond, *found.notes])


def test_bytes_of_daos_are_said_to_be_uncounted() -> None:
    job = {**JOB, "modules": ["POSIX", "DFS", "DAOS"], "uid": 1, "partial": True}
    for files in ([file(0, 10)], []):
        text = " ".join(diagnose(job, files).unknown)
        assert "DFS" in text and "the modules of DAOS do not count all of them" in text
    assert "DAOS" not in " ".join(diagnose(JOB, [file(0, 10)]).unknown)


def test_logs_side_by_side() -> None:
    """24 programs at once for 100 s, the time of I/O 23 s: 23 % of the run time; their processes are added."""
    jobs = [{**JOB, "log_id": number, "processes": 4} for number in range(24)]
    files = [{**file(0, 23, processes=4), "log_id": number, "file_id": number} for number in range(24)]
    facts = {fact.meaning: fact.value for fact in diagnose(jobs, files).facts}
    assert facts["critical time, as a share of the run time"] == pytest.approx(0.23)
    assert facts["processes"] == 96
    after = [{**job, "start_time": JOB["start_time"] + 1000 * job["log_id"]} for job in jobs]
    facts = {fact.meaning: fact.value for fact in diagnose(after, files).facts}
    assert (facts["critical time, as a share of the run time"], facts["processes"]) == (pytest.approx(23 / 2400), 4)


def test_a_page_says_the_time_of_all_logs() -> None:
    import pyarrow as pa

    from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, DARSHAN_JOB

    jobs = [{**JOB, "log_id": number, "processes": 4, "start_time": 10.0 * number} for number in range(3)]
    tables = {
        "darshan_job": pa.Table.from_pylist(jobs, schema=DARSHAN_JOB.schema()),
        "darshan_file": DARSHAN_FILE.schema().empty_table(),
    }
    facts = dict(report.facts(tables))
    assert (facts["processes"], facts["run time"]) == ("12", "120 s")


def rank_file(rank: int, **columns: Any) -> dict[str, Any]:
    return file(0, 10, **{"file": f"f{rank}", "file_id": rank, "processes": 4, "opens": 1, **columns})


@pytest.mark.parametrize(
    ("ranks", "columns", "cause"),
    [
        # all ranks open one file again and again, and move next to nothing
        (
            4,
            {
                "opens": 20000,
                "meta_time": 32.0,
                "write_time": 0.4,
                "slowest_rank_time": 8.2,
                "slowest_rank_bytes": 4096,
                "fastest_rank_bytes": 4096,
                "bytes_written": 16384,
            },
            "shared_opens",
        ),
        # one rank has far more than the others
        (
            4,
            {
                "write_time": 13.0,
                "slowest_rank_time": 9.5,
                "slowest_rank_bytes": 70 << 20,
                "fastest_rank_bytes": 10 << 20,
                "mpiio_coll_writes": 0,
                "mpiio_indep_writes": 100,
            },
            "stragglers",
        ),
        (
            2,
            {
                "write_time": 11.0,
                "slowest_rank_time": 9.5,
                "slowest_rank_bytes": 85 << 20,
                "fastest_rank_bytes": 15 << 20,
                "mpiio_coll_writes": 0,
                "mpiio_indep_writes": 100,
            },
            "stragglers",
        ),
        # as much to do, and a little longer: nothing
        (
            4,
            {
                "write_time": 30.0,
                "slowest_rank_time": 9.5,
                "slowest_rank_bytes": 25 << 20,
                "fastest_rank_bytes": 25 << 20,
            },
            None,
        ),
        # one rank writes, and waits for most of the time: not sure
        (
            4,
            {
                "write_time": 1.0,
                "slowest_rank_time": 1.0,
                "slowest_rank_bytes": 100 << 20,
                "fastest_rank_bytes": 0,
                "mpiio_coll_writes": None,
                "mpiio_indep_writes": None,
            },
            None,
        ),
    ],
)
def test_ranks(ranks: int, columns: dict[str, Any], cause: str | None) -> None:
    found = diagnose(
        {**JOB, "processes": ranks, "run_time": 12.0},
        [file(0, 10, **{"ranks": ranks, "processes": ranks, "stripe_count": 4, **columns})],
    )
    assert [name for name, confidence in causes(found) if confidence == "high"] == ([cause] if cause else [])
    assert found.conclusion.startswith("No cause") == (cause is None)


def test_files_of_one_rank_each_that_are_uneven() -> None:
    even = [rank_file(rank) for rank in range(3)]
    output = rank_file(9, bytes_written=20, write_end=1.6e9 + 0.1, write_time=1e-5)
    assert "stragglers" not in dict(causes(diagnose({**JOB, "processes": 2}, [output, rank_file(0, processes=2)])))
    found = diagnose({**JOB, "processes": 4}, [*even, file(0, 60, processes=4, bytes_written=800 << 20, file="f3")])
    assert ("stragglers", "high") in causes(found) and "larger" in found.conclusion
    assert "mpiox_exchange=two_phase" in found.text()
    posix = [
        {**each, "mpiio_coll_writes": None, "mpiio_indep_writes": None}
        for each in (*even, file(0, 60, processes=4, bytes_written=800 << 20, file="f3"))
    ]
    found = diagnose({**JOB, "processes": 4}, posix)
    assert ("stragglers", "high") in causes(found) and "mpiox_exchange" not in found.text()
    assert causes(diagnose({**JOB, "processes": 4}, [*even, rank_file(3)])) == []


def test_few_files_of_one_rank_each_have_few_writers() -> None:
    """Three of sixteen at most; where the files are shared, nobody knows."""
    alone = {"processes": 16, "mpiio_coll_writes": None, "write_time": 9.0}
    found = diagnose({**JOB, "processes": 16, "run_time": 20.0}, [rank_file(rank, **alone) for rank in range(3)])
    assert dict(causes(found))["few_writers"] == "medium"
    assert "Possible: At most 3 of 16 processes write all of the data." in found.conclusion
    shared = [rank_file(rank, **alone, ranks=4) for rank in range(3)]
    assert "few_writers" not in dict(causes(diagnose({**JOB, "processes": 16, "run_time": 20.0}, shared)))


@pytest.mark.parametrize(("way", "cause"), [("write", "root_writes"), ("read", "root_reads")])
def test_one_rank_that_is_not_the_first_moves_all_files(way: str, cause: str) -> None:
    """No file is most of the data, and all are of one rank: HEATMAP has its bytes."""
    calls = {f"mpiio_coll_{way}s": 0}
    rows = [file(at, at + 2, way, **{"processes": 4, "file_id": at, **calls}) for at in range(0, 8, 2)]
    heat = {True: np.zeros(4), False: np.zeros(4)}
    heat[way == "write"] = np.array([0.0, 0.0, 0.0, 400.0 * (1 << 20)])
    job = {**JOB, "processes": 4, "run_time": 10.0}
    found = diagnose(job, rows, activity=Activity("HEATMAP", 4, 10.0, heat=heat))  # type: ignore[arg-type]
    assert causes(found) == [(cause, "high")] and "One rank " in found.conclusion, found.text()
    heat[way == "write"][:] = 100.0 * (1 << 20)
    assert (cause, "high") not in causes(diagnose(job, rows, activity=Activity("HEATMAP", 4, 10.0, heat=heat)))


def test_files_of_mpis_shared_memory_and_standard_output_are_not_the_programs() -> None:
    """Opens of files that are read are no matter of the lines that go to standard output."""
    stream = file(0, 10, file="<STDOUT>", bytes_written=200, file_id=90)
    memory = file(0, 9, file="/tmp/ompi.host.0/pid.17/1/out_cid-3-17.sm", file_id=91)
    small_ones = [
        file(at / 100, at / 100 + 0.01, "read", meta_time=0.09, bytes_read=4096, read_time=0.01, opens=20, file_id=at)
        for at in range(1000)
    ]
    job, rows = {**JOB, "processes": 1, "run_time": 110.0}, [stream, memory, *small_ones]
    assert "metadata" in dict(causes(diagnose(job, rows, "read")))
    written = diagnose(job, rows, "write")
    assert "metadata" not in dict(causes(written)) and ".sm" not in written.text()
    assert {fact.meaning: fact.value for fact in written.facts}["files written, including standard streams"] == 1


def test_of_causes_that_take_the_same_time_the_mechanism_leads() -> None:
    first, second = (
        Finding(cause="small_requests", title="", share=1.0, time=at, confidence="high", reason="", what="")
        for at in (0.76301, 0.76304)
    )
    assert first.rank == second.rank < dataclasses.replace(first, time=0.7).rank


def test_metadata_alone_is_told() -> None:
    """A job that creates files and writes nothing has no time of writes; of threads, times are more than there is."""
    nothing = {"write_start": None, "write_end": None, "bytes_written": 0, "write_time": 0.0, "opens": 1000}
    rows = [rank_file(rank, **{**nothing, "meta_time": 60.0}) for rank in range(8)]
    job = {**JOB, "processes": 4, "run_time": 130.0}
    found = diagnose(job, rows)
    assert causes(found) == [("metadata", "high")] and found.to_dict()["worth_tuning"]
    assert "Metadata storm" in found.text()
    assert causes(diagnose({**job, "run_time": 100.0}, rows)) == []
    assert causes(diagnose({**job, "run_time": 100_000.0}, rows)) == []
    assert diagnose({**job, "run_time": 100_000.0}, rows).conclusion.startswith("The log has no times of writes")


def test_opens_that_are_slow_by_chance_are_no_metadata_storm() -> None:
    """Of 1,600 temporary files of 1 MiB half have slow opens: all together take less time than the data."""

    def told(moved: int) -> dict[str, str]:
        rows = [
            rank_file(
                number,
                processes=4,
                bytes_written=(moved, 1 << 20)[number % 2],
                opens=1,
                write_time=0.02,
                meta_time=(0.028, 0.002)[number % 2],
            )
            for number in range(1600)
        ]
        return dict(causes(diagnose({**JOB, "processes": 4, "run_time": 20.0}, rows)))

    assert told(1 << 20)["metadata"] == "medium" and told(1 << 10)["metadata"] == "high"


def test_syncs_after_writes() -> None:
    """A sync after each write is the cause, not the size of the writes; unless syncs are few or cost nothing."""
    columns = {**small(), "write_time": 36.0, "file_id": 7, "mpiio_coll_writes": None, "mpiio_indep_writes": None}
    row = file(0, 10, **{**columns, "processes": 4, "ranks": 4, "slowest_rank_time": 9.0})
    writes = sum(value for name, value in row.items() if name.startswith("write_size_"))

    def told(syncs: int, **changed: Any) -> list[tuple[str, str]]:
        seen = Activity("HEATMAP", 4, 12.0, calls={7: Calls(syncs=syncs)})
        return causes(diagnose({**JOB, "processes": 4, "run_time": 12.0}, [{**row, **changed}], activity=seen))

    assert told(writes)[0] == ("syncs", "high") and "small_requests" not in dict(told(writes))
    assert "syncs" not in dict(told(writes, write_time=writes * 5e-5))
    assert "syncs" not in dict(told(writes // 10)) and dict(told(writes // 10))["small_requests"] == "high"


@pytest.mark.parametrize(("ends", "cause"), [(100_000 * 200, "small_requests"), (4 * 100_000 * 200, None)])
def test_small_pieces_that_all_ranks_append(ends: int, cause: str | None) -> None:
    """By Darshan's count each rank writes from the beginning, each piece behind the one before: they append."""
    found = diagnose(
        {**JOB, "processes": 4, "run_time": 12.0},
        [
            file(
                0,
                10,
                **{
                    **small(),
                    "processes": 4,
                    "ranks": 4,
                    "write_size_1k_10k": 0,
                    "write_size_100_1k": 400_000,
                    "consec_writes": 399_996,
                    "seq_writes": 399_996,
                    "bytes_written": 80_000_000,
                    "max_offset_written": ends - 1,
                    "slowest_rank_bytes": 20_000_000,
                    "fastest_rank_bytes": 20_000_000,
                    "slowest_rank_time": 9.0,
                    "write_time": 36.0,
                    "mpiio_coll_writes": None,
                    "mpiio_indep_writes": None,
                },
            )
        ],
    )
    assert dict(causes(found))["small_requests"] == "high"
    words = "several ranks append in turn" if cause else "Tiny pieces are written by read and write, 200 B"
    assert words in found.conclusion


def test_standard_output_makes_no_writer() -> None:
    """Of a job that writes 20 B, all of them by rank 0, that is not told."""
    row = file(0, 10, processes=4, bytes_written=20, root_bytes_written=20, write_time=9.0)
    assert "root_writes" not in dict(causes(diagnose({**JOB, "processes": 4, "run_time": 12.0}, [row])))
    row |= {"bytes_written": 2 << 20, "root_bytes_written": 2 << 20}
    assert "root_writes" in dict(causes(diagnose({**JOB, "processes": 4, "run_time": 12.0}, [row])))


@pytest.mark.parametrize(
    ("opening", "opens", "cause"), [(9.0, 4000, "shared_opens"), (0.25, 4000, None), (9.0, 4, None)]
)
def test_opens_through_mpiio_for_each_request(opening: float, opens: int, cause: str | None) -> None:
    """The file system sees short opens; the ranks spend the time in MPI_File_open."""
    row = file(0, 10)
    row |= fields(f"processes=4 ranks=4 opens={opens} writes=4000 write_size_10k_100k=4000 write_size_1m_4m=0")
    row |= fields("write_time=0.1 meta_time=0.05 slowest_rank_time=0.04 consec_writes=0")
    seen = in_mpi(Activity("HEATMAP", 4, 12.0), row, opening=opening)
    found = diagnose({**JOB, "processes": 4, "run_time": 12.0}, [row], activity=seen)
    assert [name for name, confidence in causes(found) if confidence == "high"] == ([cause] if cause else [])


def test_seeks_of_the_c_library() -> None:
    """Few opens, many small reads that POSIX did not count, and more time in neither reads nor writes: seeks."""
    row = file(0, 10, "read")
    row |= fields(f"processes=4 ranks=4 reads=400_000 bytes_read={400_000 * 128} read_size_1m_4m=0 opens=4")
    row |= fields("read_time=6.0 meta_time=30.0 slowest_rank_time=9.0 mpiio_coll_reads=None")
    job = {**JOB, "processes": 4, "run_time": 12.0}
    assert causes(diagnose(job, [row]))[0] == ("seeks", "high")
    assert ("seeks", "high") not in causes(diagnose(job, [{**row, "reads": 40}]))


def test_one_rank_reads_what_all_have_written() -> None:
    """The log has the bytes of a rank both ways: that each has written its part does not say that each reads."""
    row = file(0, 10, "read")
    row |= fields(f"processes=2 ranks=2 bytes_read={1 << 30} bytes_written={64 << 20} read_time=9.0 slowest_rank=0")
    row |= fields(f"slowest_rank_bytes={(1 << 30) + (32 << 20)} fastest_rank_bytes={32 << 20} slowest_rank_time=9.5")
    row |= fields("mpiio_coll_reads=None mpiio_indep_reads=None")
    found = diagnose({**JOB, "processes": 2, "run_time": 12.0}, [row], "read")
    assert causes(found)[0] == ("root_reads", "high")


@pytest.mark.parametrize(
    ("sources", "written", "copied"),
    [(None, 96, True), (None, 48, False), (0, 96, True), (2, 96, False)],
    ids=["gathers", "reads to select", "copies", "others read, too"],
)
def test_one_rank_copies_files(sources: int | None, written: int, copied: bool) -> None:
    """Rank 0 reads 96 MiB of files of all ranks, or of its own, and writes `written` MiB; that takes 4 s and 4 s."""
    common = {"processes": 4, "mpiio_coll_writes": None, "mpiio_indep_writes": None, "root_bytes_written": None}
    source = file(0, 10, "read", bytes_read=96 << 20, reads=1536, read_time=4.0, file_id=1, **common)
    source |= {"ranks": 1, "bytes_written": 0} if sources == 0 else {"ranks": 4, "bytes_written": 24 << 20}
    target = file(0, 10, bytes_written=written << 20, writes=1536, write_time=4.0, file_id=2, **common)
    heat = {False: np.zeros(4), True: np.array([written, 8.0, 8.0, 8.0])}
    heat[False][[0, sources or 0]] = 96.0 if not sources else 48.0
    heat = {way: each * (1 << 20) for way, each in heat.items()}
    seen = Activity("HEATMAP", 4, 12.0, heat=heat, owners={2: 0} | ({1: 0} if sources == 0 else {}))
    for way in ("read", "write"):
        found = diagnose({**JOB, "processes": 4, "run_time": 12.0}, [source, target], way, activity=seen)
        assert ("copies" in dict(causes(found))) == copied, found.text()
        if copied:
            assert causes(found)[0] == ("copies", "high") and "root_reads" not in dict(causes(found))
            what = "reads and writes of `out.0` and 1 more file by rank 0 alone, which writes as much as it reads"
            assert found.findings[0].what == f"{what} (101 MB), as if it copies files"


@pytest.mark.parametrize(("other", "cause"), [(2, None), (1, "root_writes")])
def test_rank_0_is_not_alone_beside_one_with_as_much(other: int, cause: str | None) -> None:
    """Ranks 0 and 2 of four write 4 MiB each; or rank 2 writes half of that, and rank 0 two thirds of all."""
    rows = [
        rank_file(rank, processes=4, bytes_written=count << 21, mpiio_coll_writes=None, file_id=rank)
        for rank, count in ((0, 2), (2, other))
    ]
    rows[0]["root_bytes_written"] = rows[0]["bytes_written"]
    seen = Activity("", 4, 20.0, owners={0: 0, 2: 2})
    found = diagnose({**JOB, "processes": 4, "run_time": 20.0}, rows, activity=seen)
    assert ("root_writes" in dict(causes(found))) == bool(cause), found.text()


@pytest.mark.parametrize(("times", "cause"), [(55, "redundant_reads"), (12, "root_reads")])
def test_one_rank_of_four_reads_a_log_from_its_beginning_again_and_again(times: int, cause: str) -> None:
    """Each of four ranks appends: of what is there then, 55 times the file are 14. That one rank reads it is second."""
    end, read = 3600 << 10, (3600 << 10) * times
    row = file(0, 10, "read")
    row |= fields(f"processes=4 ranks=4 bytes_read={read} bytes_written={end} read_time=9.0 slowest_rank=3")
    row |= fields(f"slowest_rank_bytes={read + end // 4} fastest_rank_bytes={end // 4} slowest_rank_time=9.5")
    row |= fields(f"reads={read >> 16} seq_reads={(read >> 16) - times} consec_reads={(read >> 16) - times}")
    row |= fields(f"read_size_1m_4m=0 read_size_10k_100k={read >> 16} max_offset_read={end - 1}")
    row |= fields(f"max_offset_written={end // 4 - 1} mpiio_coll_reads=None mpiio_indep_reads=None")
    found = diagnose({**JOB, "processes": 4, "run_time": 12.0}, [row], "read")
    assert causes(found)[0] == (cause, "high"), found.text()


@pytest.mark.parametrize(("writers", "cause"), [(2, "few_writers"), (6, None)])
def test_two_of_seven_ranks_write_all(writers: int, cause: str | None) -> None:
    """HEATMAP has the bytes of each rank; whether the others wait is not known."""
    share = (140 << 20) // writers
    row = file(0, 10)
    row |= fields(f"processes=7 ranks=7 bytes_written={140 << 20} write_time={9.0 * writers} slowest_rank_time=9.5")
    row |= fields(f"slowest_rank_bytes={share} fastest_rank_bytes=0 mpiio_coll_writes=None")
    heat = np.where(np.arange(7) < writers, float(share), 0.0)
    seen = Activity("HEATMAP", 7, 12.0, heat={True: heat, False: np.zeros(7)})
    found = diagnose({**JOB, "processes": 7, "run_time": 12.0}, [row], activity=seen)
    assert dict(causes(found)).get("few_writers") == ("medium" if cause else None)
    assert ("2 of 7 processes write all of the data." in found.text()) == bool(cause)


def of_ranks(rows: list[dict[str, Any]], ranks: Sequence[int]) -> Activity:
    """Return what a log of 64 ranks says of files of one rank each."""
    records = of_rows(Files(pa.Table.from_pylist(rows), "write"), 64, 100.0).records
    records["rank"] = ranks
    return Activity("HEATMAP", 64, 100.0, ledger=Ledger(records, 64, 100.0))


def test_metadata_calls_of_one_rank_are_not_divided_by_all() -> None:
    """Rank 5 of 64 makes 1,000 files in 30 s: that is 30 s of the job, not half a second of each rank."""
    nothing = {"write_start": None, "write_end": None, "bytes_written": 0, "write_time": 0.0}
    rows = [rank_file(rank, **nothing, processes=64, opens=100, meta_time=3.0) for rank in range(10)]
    job = {**JOB, "processes": 64, "run_time": 100.0}
    alone = of_ranks(rows, [5] * 10)
    found = diagnose(job, rows, activity=alone)
    assert causes(found) == [("metadata", "high")]
    assert found.findings[0].title == (
        "Metadata storm of one rank: metadata calls (opens) of rank 5 alone take most of its I/O time."
    )
    assert found.findings[0].time == 30.0 and found.findings[0].of_run == pytest.approx(0.3)
    told = {each.meaning: each.value for each in found.findings[0].evidence}
    counted = ("longest time of a rank in metadata calls", "opens of rank 5", "processes")
    assert tuple(told[each] for each in counted) == (30.0, 1000.0, 64.0)
    lost = diagnose(job, rows, activity=dataclasses.replace(alone, full=True)).findings[0]
    assert lost.what == "opens of at least 10 files such as `f0` (at least 1,000 opens by rank 5)", lost.what
    spread = diagnose(job, rows, activity=of_ranks(rows, range(10)))
    assert [each for each in spread.findings if "alone" in each.title] == []
    assert "calls (opens) of ranks 0, 1, 2, 3, 4 and 5 more take" in spread.findings[0].title
    many = [rank_file(rank, **nothing, processes=64, opens=100, meta_time=3.0) for rank in range(40)]
    every = diagnose(job, many, activity=of_ranks(many, range(40)))
    assert not any(" of rank" in each.title for each in every.findings), "most of the ranks: none is named"


def test_opens_are_those_of_the_program() -> None:
    """Each MPI_File_open is two opens of POSIX; a program that opens besides, by POSIX, has these counted."""
    row = {"ranks": 4, "opens": 1200, "meta_time": 30.0, "bytes_written": 400, "writes": 4, "processes": 4}
    for opens, told, below in ((600, 150, 150), (3, 300, None)):
        one = file(0, 10, **row, file_id=0)
        seen = in_mpi(Activity("HEATMAP", 4, 10.0, calls={0: Calls(opens=opens)}), one, opening=8.0)
        found = diagnose({**JOB, "processes": 4, "run_time": 10.0}, [one], activity=seen)
        known = {each.meaning: each.value for each in found.findings[0].evidence}
        assert found.findings[0].cause == "shared_opens"
        assert (
            known["opens of a process"],
            known.get("opens that MPI libraries make in addition, of each process"),
        ) == (told, below)
    quick = file(0, 0.01, **row | {"meta_time": 0.01}, file_id=0)  # ranks wait for one another, not for the storage
    seen = in_mpi(Activity("", 4, 10.0, calls={0: Calls(opens=600)}), quick, opening=8.0)
    assert causes(diagnose({**JOB, "processes": 4, "run_time": 10.0}, [quick], activity=seen)) == [
        ("shared_opens", "high")
    ]


@pytest.mark.parametrize(
    ("piece", "calls", "busy", "cause"),
    [
        (1, 4_000_000, 9.0, True),
        (45, 4_000_000, 9.0, True),
        (100_000, 4_000_000, 9.0, False),
        (1, 4_000, 9.0, False),
        (1, 4_000_000, 0.5, False),
    ],
)
def test_tiny_pieces_through_the_c_library(piece: int, calls: int, busy: float, cause: bool) -> None:
    """POSIX has none of these calls: there is no histogram, only how many they are, how large, and how long."""
    row = file(0, 10)
    row |= fields(f"processes=4 ranks=4 writes={calls} bytes_written={calls * piece} write_size_1m_4m=0")
    row |= fields(f"write_time={busy * 4} slowest_rank_time={busy} consec_writes=0 mpiio_coll_writes=None")
    found = diagnose({**JOB, "processes": 4, "run_time": 12.0}, [row])
    assert (("small_requests", "high") in causes(found)) == cause
    if cause:
        assert f"through the C library, {piece} B a call: the calls take the time" in found.conclusion
        seen = Activity("", 4, 12.0, calls={row["file_id"]: Calls(flushes=calls // 2)})
        flushed = diagnose({**JOB, "processes": 4, "run_time": 12.0}, [row], activity=seen)
        assert f"{piece} B a call, and flushed again and again: each flush is a request." in flushed.conclusion
        advised = "> Flush when a step is done"
        assert advised in flushed.text() and advised not in found.text()


@pytest.mark.parametrize(("piece", "mpi_calls", "cause"), [(100, None, True), (4096, None, False), (100, 10, False)])
def test_tiny_pieces_that_are_requests(piece: int, mpi_calls: int | None, cause: bool) -> None:
    """One behind the other, by POSIX: as of a program that flushes its own buffer after each piece."""
    calls = 4_000_000
    row = file(0, 10)
    row |= fields(f"processes=4 ranks=4 writes={calls} bytes_written={calls * piece} write_size_1m_4m=0")
    row |= fields(f"write_size_100_1k={calls} write_time=36.0 slowest_rank_time=9.0 consec_writes={calls}")
    row |= fields(f"seq_writes={calls} mpiio_coll_writes={mpi_calls}")
    found = diagnose({**JOB, "processes": 4, "run_time": 12.0}, [row])
    assert ("Tiny pieces are written by read and write, 100 B a call" in found.text()) == cause
    assert ("Avoid flush=True and buffering=0" in found.text()) == cause


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, "high"),
        ({"mpiio_indep_writes": 40_000}, None),  # 100 calls hand over what becomes 10,000 requests
        ({"mpiio_coll_writes": 4, "mpiio_indep_writes": 3_999_996}, None),
        ({"bytes_written": 4096 * 4_000_000, "write_size_1k_10k": 4_000_000, "write_size_100_1k": 0}, None),
    ],
)
def test_tiny_pieces_by_independent_calls(changed: dict[str, Any], cause: str | None) -> None:
    """One behind the other, and each call is a request: the operating system merges the bytes, not the calls."""
    count = 4_000_000
    requests = {"writes": count, "write_size_1m_4m": 0, "write_size_100_1k": count, "consec_writes": count}
    row = file(0, 10, **requests)
    row |= fields(f"processes=4 ranks=4 bytes_written={200 * count} write_time=36.0 slowest_rank_time=9.0")
    row |= fields(f"mpiio_coll_writes=0 mpiio_indep_writes={count} seq_writes={count}")
    found = diagnose({**JOB, "processes": 4, "run_time": 12.0}, [{**row, **changed}])
    assert dict(causes(found)).get("small_requests") == cause
    assert ("Tiny pieces are written by independent MPI-IO calls, 200 B a call" in found.text()) == bool(cause)
    assert ("Give each call more" in found.text()) == bool(cause)


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, "redundant_reads"),
        (
            {"bytes_read": 64 << 20, "reads": 64, "slowest_rank_bytes": 1 << 20, "fastest_rank_bytes": 1 << 20},
            "contention",
        ),  # each its own part
        ({"slowest_rank_bytes": 4000 << 20, "fastest_rank_bytes": 1 << 20}, "root_reads"),  # one rank, again and again
    ],
)
def test_ranks_that_read_the_same_data_from_one_target(changed: dict[str, Any], cause: str) -> None:
    """Each of 64 ranks reads all of a file on one OST: the target is not the cause, what is asked of it is."""
    row = file(0, 10, "read", osts=[3])
    row |= fields(
        f"processes=64 ranks=64 bytes_read={4096 << 20} reads=4096 read_size_1m_4m=4096 consec_reads=4000 "
        f"max_offset_read={(64 << 20) - 1} stripe_count=1 read_time=600.0 slowest_rank_time=9.9 "
        f"slowest_rank_bytes={64 << 20} fastest_rank_bytes={64 << 20} mpiio_coll_reads=None mpiio_indep_reads=None"
    )
    found = diagnose({**JOB, "run_time": 12.0}, [{**row, **changed}], "read")
    assert (
        causes(found)[0] == (cause, "high")
        and len([name for name, _ in causes(found) if name in ("redundant_reads", "contention")]) <= 1
    ), found.text()
    tiny = {**row, **changed, "osts": [0, 1, 2, 3]}
    tiny |= fields(f"max_offset_read={(64 << 10) - 1} bytes_read={4 << 20} read_size_1m_4m=0 read_size_10k_100k=64")
    tiny |= fields("reads=64")
    assert "redundant_reads" not in dict(causes(diagnose({**JOB, "run_time": 12.0}, [tiny], "read")))
    if cause == "redundant_reads":
        told = {each.meaning: each.value for each in found.findings[0].evidence}
        assert (told["bytes read"], told["bytes up to the highest offset that is read"]) == (4 << 30, 64 << 20)
        assert "MPI_Bcast" in found.text()


@pytest.mark.parametrize(("written", "cause"), [(398 << 20, "medium"), (200 << 20, None)])
def test_fill_values_are_writes_however_fast(written: int, cause: str | None) -> None:
    """All but a header is written twice at 4 GB/s: half of the time is needless, and 2 GB/s of data are not low."""
    row = file(0, 0.1, bytes_written=written, max_offset_written=(200 << 20) - 1, mpiio_coll_writes=None)
    found = diagnose({**JOB, "processes": 1, "run_time": 0.2}, [row])
    assert dict(causes(found)).get("redundant_writes") == cause
    assert ("the bandwidth is not low" in found.conclusion and "H5D_FILL_TIME_NEVER" in found.text()) or cause is None
    assert ("of distinct bytes in 100 ms" in found.conclusion) == bool(cause)


@pytest.mark.parametrize(("meta", "cause"), [(1.2e-3, "medium"), (0.2e-3, None)])
def test_opens_that_take_longer_than_the_data_of_many_files(meta: float, cause: str | None) -> None:
    """200 files of 1 MB are written at 2 GB/s each: that says nothing of the opens."""
    each = {"bytes_written": 1_000_000, "writes": 1, "write_size_1m_4m": 0, "write_size_100k_1m": 1, "consec_writes": 0}
    own = {"write_time": 0.5e-3, "meta_time": meta, "mpiio_coll_writes": None, "processes": 8}
    rows = [file(at / 100, at / 100 + 0.5e-3, **each, **own) for at in range(200)]
    found = diagnose({**JOB, "processes": 8, "run_time": 4.0}, rows)
    assert dict(causes(found)).get("small_files") == cause, found.text()
    assert ("not low" in found.conclusion) == (cause is None)


def test_a_share_of_at_most_all_is_not_told() -> None:
    """At most 100 % says nothing; the share of the run time does, and else the time."""
    row = file(0, 10, ranks=9, unaligned=100)
    assert diagnose(JOB, [row]).conclusion.endswith("The cause may explain at most 10 s (10 % of the run time).")
    assert diagnose({**JOB, "run_time": 10.0}, [row]).conclusion.endswith("The cause may explain at most 10 s.")


def test_bytes_of_one_sentence_have_one_form() -> None:
    """32 MiB are 33.6 MB beside 537 MB; blocks and requests are said as they were set."""
    row = file(0, 10)
    row |= fields(f"processes=4 ranks=4 bytes_written={512 << 20} mpiio_bytes_written={32 << 20} bytes_read=0")
    row |= fields("read_size_0_100=100 mpiio_bytes_read=0 write_time=9.0 slowest_rank_time=9.0")
    found = diagnose({**JOB, "processes": 4, "run_time": 12.0}, [row])
    assert "(33.6 MB of MPI-IO writes become 537 MB at the file system, 16 times as much)" in found.conclusion
    assert "written through MPI-IO: 33.6 MB" in found.text()
    blocks = diagnose(JOB, [file(0, 10, ranks=9, unaligned=100)]).text()
    assert "block of the file system: 1,048,576 B" in blocks
