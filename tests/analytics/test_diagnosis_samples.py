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
from mpiio_ext.analytics.run.gather import headline
from mpiio_ext.analytics.run.opening import phrase
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
    assert without or phrase(findings[0], documents[0]["direction"]) in sentence, sentence


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("late_to_close-4-1-plain", "were waiting for rank 2, which comes late to open or close `data`"),
        ("uneven_writes-4-1-slow", "were writes to `data` of the slowest rank, which has 3.1 times the bytes"),
        (
            "small_rounds-4-1-slow",
            "were collective writes to `data` carried out in rounds of 16,384 B (cb_buffer_size)",
        ),
        ("fill_values-4-1-slow", "were writes to `data` of everything twice: one rank writes fill values, and data"),
        (
            "files_beside-4-1-plain",
            "were metadata calls (open, stat, seek, sync) of 201 files, with 12,001 opens by each",
        ),
        ("two_sizes-4-1-plain", "were 300 B writes to `data`, beside larger ones."),
        ("two_tables-4-1-plain", "were 1,024 B and 2,048 B writes to `data`."),
        (
            "records_of_ranks_in_turn-4-1-plain",
            "were 2,048 B independent writes to `data` between those of other ranks.",
        ),
    ],
)
def test_the_headline_names_what_a_program_does(log: str, words: str) -> None:
    assert words in mpiio_ext.run_report(LOGS / f"{log}.darshan").sentence


def test_one_rank_that_is_as_fast_as_memory_needs_no_advice() -> None:
    """Where the files lie behind one host's memory, all ranks would not be faster."""
    log = LOGS / "one_reader-4-2-plain.darshan"  # 1.8 GB/s
    tables = convert([log.name], str(LOGS)).tables
    for one_host, words in ((False, "Rank 0 reads most of the data"), (True, "No cause was found: the bandwidth")):
        both = diagnoses(tables, Known(activity=activity_of(log, tables), one_host=one_host))
        told = next(one for one in both if one["document"]["direction"] == "read")
        assert told["document"]["conclusion"].startswith(words) and bool(told["shown"]) != one_host


def test_reads_of_read_modify_write_are_not_the_exchange_of_its_calls() -> None:
    """Of 2 s in collective writes 0.24 s are reads and writes of the file system, by their counters."""
    path = LOGS / "collective_holes-4-2-plain.darshan"
    tables = convert([path.name], str(LOGS)).tables
    both = [one["document"] for one in diagnoses(tables, Known(activity=activity_of(path, tables)))]
    (reads,) = next(one for one in both if one["direction"] == "read")["findings"]
    assert reads["cause"] == "read_modify_write" and 0.15 < reads["time"]["value"] < 0.3


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
        if folder not in ("/", "/dev", "/sys/fs/cgroup/unified")
    }
    assert not named
