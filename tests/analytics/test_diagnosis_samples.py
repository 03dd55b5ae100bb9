"""Logs of the diagnosis corpus that lie here, judged by what their programs do."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import mpiio_ext
from corpora.diagnosis_truth import KINDS, judged
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.run.spent import headline
from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.common.darshanfile import DarshanFile
from support import cbuild

LOGS = cbuild.ROOT / "tests" / "samples" / "diagnosis"
ROWS = [json.loads(line) for line in (LOGS / "truth.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=[row["log"].removesuffix(".darshan") for row in ROWS])
def test_the_first_sentence_is_right(row: dict[str, Any]) -> None:
    """And nothing else is said with high confidence."""
    told = judged(row, LOGS)
    assert told["right"] and not told["wrong"], told["sentences"]
    assert told["causes"] == [{"cause": cause, "share": share} for cause, share in KINDS[row["kind"]].causes.items()]


@pytest.mark.parametrize("row", ROWS, ids=[row["log"].removesuffix(".darshan") for row in ROWS])
def test_the_headline_is_about_the_first_finding(row: dict[str, Any]) -> None:
    """The first sentence of both commands names it, or no cause at all."""
    path = LOGS / row["log"]
    tables = convert([path.name], str(LOGS)).tables
    known = Known(activity=activity_of(path, tables))
    documents = [one["document"] for one in diagnoses(tables, known)]
    sentence, findings = headline(tables, known, documents), documents[0]["findings"]
    without = "no cause of slow I/O stands out" in sentence or "too little to be worth tuning" in sentence
    assert without or findings[0]["what"] in sentence, sentence


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("late_to_close-4-1-plain", "were waits for rank 2, which is late to open or close `data`"),
        (
            "uneven_writes-4-1-slow",
            "were writes to `data` by the slowest rank for longer than by an average rank, with 3.1 times the bytes",
        ),
        ("small_rounds-4-1-slow", "were collective writes to `data` carried out in rounds of 16,384 B"),
        ("fill_values-4-1-slow", "were writes to `data` of everything twice, as one rank writes fill values, and data"),
        ("files_beside-4-1-plain", "were opens of 201 files such as `beside.0.49` (12,001 opens by an average rank)."),
        ("two_sizes-4-1-plain", "were 300 B writes at scattered offsets between larger writes to `data`."),
        ("two_tables-4-1-plain", "were 1,024 B and 2,048 B writes at scattered offsets to `data`."),
        (
            "records_of_ranks_in_turn-4-1-plain",
            "were 2,048 B independent writes to `data`, interleaved in the file with writes of other ranks.",
        ),
    ],
)
def test_the_headline_names_what_a_program_does(log: str, words: str) -> None:
    assert words in mpiio_ext.run_report(LOGS / f"{log}.darshan").sentence


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("stellar", "up to 2.36 s of 2.6 s were reads of the same data of `eos.tab` again and again."),
        ("chemstep", "nearly all of these 2 s were reads of the same data of `rates.tbl` again and again."),
        ("probes", "were 8 B reads from `snapshot.bin` through the C library, with seeks between the reads."),
        (
            "mdtraj",
            "were 4 B and 8 B writes, which go back to overwrite a few bytes (a header, for example), between larger"
            " writes to `traj_1.trj` and 3 more files.",
        ),
        ("climate", "reads and writes of `mean.dat` in turn, as the program reads each block before"),
    ],
)
def test_the_headline_names_what_a_stranger_s_program_does(log: str, words: str) -> None:
    """And nothing that a log does not have."""
    sentence = mpiio_ext.run_report(LOGS.parent / "beyond" / f"{log}.darshan").sentence
    assert words in sentence and "the log does not have" not in sentence, sentence


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            "sweep",  # 83 % of its time in I/O is waiting for flock
            "; nearly all of these 581 ms were 200 B writes, which several ranks append in turn, to `results.csv`."
            " Ranks append to `results.csv`, or overwrite it, in turn: the log does not have the time that they wait"
            " for locks.",
        ),
        (
            "coupler",  # three ranks call stat for 78 % of their time
            "an average rank: 0.8 %). Ranks read `flux.dat` while another rank writes it: the log does not have the"
            " time that they wait for new data.",
        ),
        ("rotor", "nearly all of these 663 ms were renames of 29 files such as `state.00` (435 renames by rank 0)."),
        ("tsout", " A rank sets 350 views of `series.bin`: the log does not have the time of such calls."),
    ],
)
def test_what_a_log_does_not_have_is_no_little_time(log: str, words: str) -> None:
    sentence = mpiio_ext.run_report(LOGS.parent / "beyond" / f"{log}.darshan").sentence
    assert words in sentence and "too little to be worth tuning" not in sentence, sentence


def test_one_rank_that_is_as_fast_as_memory_needs_no_advice() -> None:
    """Where the files lie behind one host's memory, all ranks would not be faster."""
    log = LOGS / "one_reader-4-2-plain.darshan"  # 1.8 GB/s
    tables = convert([log.name], str(LOGS)).tables
    nothing = "No cause was found, since the bandwidth is not low"
    for one_host, words in ((False, "Rank 0 reads most of the data"), (True, nothing)):
        both = diagnoses(tables, Known(activity=activity_of(log, tables), one_host=one_host))
        told = next(one for one in both if one["document"]["direction"] == "read")
        assert told["document"]["conclusion"].startswith(words) and bool(told["shown"]) != one_host


def test_reads_of_read_modify_write_are_not_the_exchange_of_its_calls() -> None:
    """Of 2 s in collective writes 0.33 s are reads and writes of the file system by the slowest rank."""
    path = LOGS / "collective_holes-4-2-plain.darshan"
    tables = convert([path.name], str(LOGS)).tables
    both = [one["document"] for one in diagnoses(tables, Known(activity=activity_of(path, tables)))]
    (reads,) = next(one for one in both if one["direction"] == "read")["findings"]
    assert reads["cause"] == "read_modify_write" and reads["time"]["value"] == pytest.approx(0.33, abs=0.01)


@pytest.mark.parametrize(
    ("log", "cause", "lowered"),
    [
        ("late_to_collectives-4-2-dxt", "late_rank", True),
        ("direct_writes-4-2-plain", "small_requests", True),  # each waits for the storage
        ("append_all-4-2-plain", "small_requests", False),  # counts and sizes show it
        ("uneven_files-4-2-plain", "stragglers", False),  # the slowest rank has the largest file
        ("restart-4-2-plain", "exchange", True),
    ],
)
def test_what_times_alone_show_is_not_sure_where_ranks_wait_for_a_cpu(log: str, cause: str, lowered: bool) -> None:
    path = LOGS / f"{log}.darshan"
    tables = convert([path.name], str(LOGS)).tables
    found = [
        next(each for one in diagnoses(tables, known) for each in one["document"]["findings"] if each["cause"] == cause)
        for known in (Known(activity=activity_of(path, tables), waited_s=waited) for waited in (0.0, 1e3))
    ]
    assert found[0]["confidence"] != "low" and found[0]["by_times"] == lowered
    assert (found[1]["confidence"] == "low") == lowered == ("waited for a CPU" in found[1]["reason"])


def test_every_program_has_a_truth() -> None:
    named = re.compile(r'^ +\{"(\w+)", \w+\},$', re.MULTILINE)
    folder = cbuild.ROOT / "tests" / "corpora" / "diagnosis"
    programs = [name for path in folder.glob("*.c") for name in named.findall(path.read_text())]
    assert sorted(programs) == sorted(name for name in KINDS if "+" not in name)


def test_no_log_names_folders_of_the_machine_that_made_it() -> None:
    """Darshan stores the table of mounts: a new log has to lose what it says of one machine."""
    named = {
        folder
        for path in LOGS.parent.rglob("*.darshan")
        for _, folder in DarshanFile(path).job().mounts or ()
        if folder not in ("/", "/dev", "/scratch", "/sys/fs/cgroup/unified")
    }
    assert not named
