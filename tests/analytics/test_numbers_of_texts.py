"""Numbers of one text beside each other: whose they are, of which files, and that none contradicts another one."""

from __future__ import annotations

import functools
import json
import pathlib
import re
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mpiio_ext.analytics import ledger as ledgers
from mpiio_ext.analytics.diagnosis import diagnose
from mpiio_ext.analytics.diagnosis.model import IN_MPIIO
from mpiio_ext.analytics.run.files import _who
from mpiio_ext.cli import main
from support import darshan_rows
from support.quiet_rows import JOB, file

SAMPLES = pathlib.Path(__file__).parent.parent / "samples"
LOGS = sorted([*(SAMPLES / "diagnosis").glob("*.darshan"), *(SAMPLES / "times").glob("*.darshan")])
_OF_A_RANK = re.compile(
    r"longest time|of (a|the slowest|the fastest|an average|the late|each other) (rank|process)\b|of rank \d+ in calls"
)


of_log = functools.cache(ledgers.of_log)


@functools.cache
def told(log: pathlib.Path) -> Any:
    return json.loads(CliRunner().invoke(main, ["analyze", "logs", "--json", str(log)]).stdout)


def test_no_rank_has_more_time_than_the_run() -> None:
    """Times of each file's slowest rank once were summed up to that of a process: 3.22 s, of 997 ms in I/O."""
    seen = 0
    for log in LOGS:
        ledger, found = of_log(log), told(log)
        most_s = 1.01 * ledger.slowest().most
        for one in (each for side in found["diagnosis"] for each in side["findings"]):
            for evidence in one["evidence"]:
                if evidence["unit"] == "s" and _OF_A_RANK.search(evidence["meaning"]):
                    seen += 1
                    assert evidence["value"] <= most_s, (log.name, evidence)
    assert seen >= 30


def test_small_calls_explain_at_most_the_time_of_the_calls() -> None:
    """The requests of a rank took 1.41 s, the MPI-IO calls that made them 1.61 s; the program measured 1.79 s."""
    log = darshan_rows.shared_data("known_truth", "random_reads-4.darshan")
    reads = next(side for side in told(log)["diagnosis"] if side["direction"] == "read")
    found = next(one for one in reads["findings"] if one["cause"] == "small_requests")
    inside = next(one for one in found["evidence"] if one["meaning"] == IN_MPIIO)
    assert found["time"]["value"] == inside["value"] == pytest.approx(1.61, abs=0.01)


def test_a_sentence_of_one_rank_names_only_its_files() -> None:
    """Rank 0 syncs 30 files, and each of three other ranks 10 of its own."""
    log = SAMPLES / "times" / "many.darshan"
    cells, sentence = of_log(log).cells(0), told(log)["sentence"]
    name, more = re.search(r"`(\w+)` and (\d+) more files", sentence).groups()  # type: ignore[union-attr]
    assert name.startswith("0_") and int(more) + 1 == np.count_nonzero(cells.seconds.most.sum(axis=0)) == 30, sentence


def test_the_reads_of_a_read_modify_write_take_no_longer_than_any_rank_reads() -> None:
    """The writes of MPI-IO that read took 87.1 ms; all ranks together read for 56 ms, and any rank for 45.5 ms."""
    found = told(darshan_rows.shared_data("known_truth", "read_modify_write-4-dxt.darshan"))
    (reads,) = (each for each in found["diagnosis"] if each["direction"] == "read")
    (any_rank,) = (
        each["value"]
        for each in reads["facts"]
        if each["meaning"].startswith("critical time in which any rank reads (")
    )
    assert reads["findings"][0]["time"]["value"] <= any_rank


def test_no_rank_reads_while_none_does() -> None:
    """A rank was in MPI-IO writes for 108 of 236 ms; no file was accessed for 59 % of them, and "no rank writes"."""
    known = [
        darshan_rows.shared_data("known_truth", f"{name}-4.darshan") for name in ("read_modify_write", "one_writer")
    ]
    seen = 0
    for log in [*LOGS, *known]:
        ledger = of_log(log)
        used = ledger.slowest("read", "write").least / ledger.run_s
        for note in (each for one in told(log)["diagnosis"] for each in one["notes"]):
            if found := re.match(r"For (?:at least|more than) ([\d.]+) % of the run time, no rank reads or", note):
                assert float(found[1]) <= 100.5 - 100 * used, (log.name, note, used)
                seen += 1
    assert seen > 0


def test_a_bandwidth_is_that_of_its_bytes_and_its_time() -> None:
    """The time in the sentence is that of the calls that moved the bytes, not of other calls."""
    words, seen = r"together (?:wrote|read) ([\d.]+) ([kMGT]?)B.* in ([\d.]+) (m?)s \(.*?\), ([\d.]+) ([kMGT]?)B/s", 0
    for log in LOGS:
        for one in told(log)["diagnosis"]:
            if found := re.search(words, one["conclusion"]):
                size, kilo, time, milli, rate, of = found.groups()
                moved, moves = (
                    float(each) * 1000.0 ** " kMGT".index(it or " ") for each, it in ((size, kilo), (rate, of))
                )
                seen += 1
                assert moved / (float(time) / (1000 if milli else 1)) == pytest.approx(moves, rel=0.02), log.name
    assert seen >= 5


def test_no_bandwidth_is_faster_than_the_calls_of_a_rank() -> None:
    """Critical files were read for 1.4 s, and all files by one process for 4 s: 5.5 GB "at 3.83 GB/s"."""
    seen = 0
    for log in [*LOGS, darshan_rows.shared_data("strangers", "dlio-reader-1.darshan")]:
        ledger = of_log(log)
        for one in told(log)["diagnosis"]:
            moved, slowest = one["facts"][0]["value"], ledger.slowest(one["direction"])
            rates = [each["value"] for each in one["facts"] if each["meaning"].startswith("bandwidth over")]
            if slowest.narrow and slowest.least > 0 and moved > 0:
                assert max(rates, default=0.0) <= 1.15 * moved / slowest.least, (log.name, one["direction"])
                seen += len(rates)
    assert seen > 0


def test_a_sentence_has_one_colon() -> None:
    for log in LOGS:
        for sentence in re.split(r"(?<=[.;]) ", told(log)["sentence"]):
            assert sentence.count(": ") <= 1, (log.name, sentence)


def test_what_no_log_shows_exactly_is_a_bound() -> None:
    """How long ranks exchange data is known from DXT alone."""
    seen = 0
    for log in LOGS:
        for one in (each for side in told(log)["diagnosis"] for each in side["findings"]):
            if one["cause"] == "exchange":
                assert one["at_most"] == ("-dxt" not in log.name), log.name
                seen += 1
    assert seen > 0


def test_slow_files_are_not_among_those_that_they_are_compared_with() -> None:
    rows = [file(k, k + (9.0 if k < 2 else 0.5), file=f"f{k}", stripe_count=None, osts=None) for k in range(20)]
    (found,) = (each for each in diagnose(JOB, rows).findings if each.cause == "slow_file")
    numbers = {each.meaning: each.value for each in found.evidence}
    assert (numbers["slow files"], numbers["similar files that are not slow"]) == (2, 18)
    assert "The slow rank" not in found.advice[0].text and "may explain" in "\n".join(found.lines(1))


def test_reads_that_return_nothing_are_no_small_pieces() -> None:
    row = file(0, 10, "read")
    row |= {
        "processes": 4,
        "ranks": 4,
        "reads": 4_000_000,
        "bytes_read": 0,
        "read_size_1m_4m": 0,
        "read_size_0_100": 4_000_000,
    }
    row |= {
        "read_time": 36.0,
        "slowest_rank_time": 9.0,
        "consec_reads": 3_999_996,
        "seq_reads": 0,
        "mpiio_coll_reads": None,
    }
    found = diagnose({**JOB, "processes": 4, "run_time": 12.0}, [row], "read").findings[0]
    assert found.title.startswith("Reads return no data") and "0 B a call" not in found.title
    assert not any(word in each.text for each in found.advice for word in ("flush", "buffer"))


@pytest.mark.parametrize(("calls", "advised"), [(None, False), (100, True)])
def test_only_programs_with_mpiio_are_advised_about_its_syncs(calls: int | None, advised: bool) -> None:
    from mpiio_ext.analytics.diagnosis.activity import Activity, Calls

    row = file(0, 10, file_id=7, mpiio_coll_writes=calls, mpiio_indep_writes=None, mpiio_nb_writes=None)
    seen = Activity(source="", run_time=100.0, processes=64, calls={7: Calls(syncs=9_000, asked_syncs=9_000)})
    (found,) = (each for each in diagnose(JOB, [row], "write", activity=seen).findings if each.cause == "syncs")
    assert ("MPI_File_sync" in found.advice[0].text) == advised


def test_times_of_single_ranks_are_unknown_only_of_shared_files() -> None:
    for ranks in (1, 64):
        unknown = "\n".join(diagnose(JOB, [file(0, 10, ranks=ranks, mpiio_coll_writes=None)]).unknown)
        assert ("(straggler)" in unknown) == (ranks > 1)


def test_a_file_that_all_ranks_open_is_not_that_of_one_rank_alone() -> None:
    """All open it, so its time is that of all; one alone writes it."""
    row: dict[str, Any] = {"ranks": 4}
    assert _who(row, [], {2}, 4) == "rank 2 alone; opened by all 4 ranks"
    assert _who({"ranks": 1}, [], {2}, 4) == "rank 2 alone" and _who(row, [], set(), 4) == "all 4 ranks"
