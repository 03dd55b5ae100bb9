"""Logs of the diagnosis corpus that lie here, judged by what their programs were told to do; and how that is done."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.sources.darshan import convert
from support import cbuild

sys.path.insert(0, str(cbuild.ROOT / "benchmarks"))
import diagnosis_scores
from diagnosis_truth import KINDS

LOGS = cbuild.ROOT / "tests" / "samples" / "diagnosis"
ROWS = [json.loads(line) for line in (LOGS / "truth.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=[row["log"].removesuffix(".darshan") for row in ROWS])
def test_the_first_sentence_is_right(row: dict[str, Any]) -> None:
    """And nothing else is said with high confidence."""
    told = diagnosis_scores.judged(row, LOGS)
    assert told["right"] and not told["wrong"], told["sentences"]
    assert told["causes"] == [{"cause": cause, "share": share} for cause, share in KINDS[row["kind"]].causes.items()]


def test_one_rank_that_is_as_fast_as_memory_needs_no_advice() -> None:
    """Where the files lie behind one host's memory, all ranks would not be faster."""
    log = LOGS / "one_reader-4-2-plain.darshan"  # 1.8 GB/s
    tables = convert([log.name], str(LOGS)).tables
    for one_host, words in ((False, "Rank 0 reads most of the data"), (True, "No cause was found: the bandwidth")):
        both = diagnoses(tables, Known(activity=activity_of(log, tables), one_host=one_host))
        told = next(one for one in both if one["document"]["direction"] == "read")
        assert told["document"]["conclusion"].startswith(words) and bool(told["shown"]) != one_host


def test_every_program_has_a_truth() -> None:
    named = re.compile(r'^ +\{"(\w+)", \w+\},$', re.MULTILINE)
    folder = cbuild.ROOT / "benchmarks" / "diagnosis"
    programs = [name for path in folder.glob("*.c") for name in named.findall(path.read_text())]
    assert sorted(programs) == sorted(name for name, kind in KINDS.items() if kind.group != "mixture")


def made(kind: str, *high: str, ranks: int = 4) -> dict[str, Any]:
    return {"kind": kind, "ranks": ranks, "high": list(high), "first": high[0] if high else ""}


def test_precision_and_recall() -> None:
    """Another name of the same cause counts; a smaller part of a mixture need not be said, but may be."""
    mixture = "one_writer:0.75+metadata_storm:0.25"
    rows = [made("one_writer", "root_writes"), made("one_writer"), made("even_files", "root_writes"),
            made(mixture, "root_writes", "metadata"), made(mixture, "metadata"), made("tiny_files", "small_files"),
            made("random_samples"), made("two_writers", ranks=2), made("two_writers", ranks=4)]  # fmt: skip
    found = diagnosis_scores.by_cause(rows)
    assert found["root_writes"] == (4, 3, 2, 2)  # of four logs it is said in two, and in one that has no cause
    assert found["metadata"] == (1, 3, 3, 1)
    assert not {"few_writers", "small_files", "small_requests"} & set(found)  # what need not be said is no miss
