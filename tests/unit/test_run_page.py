"""The page of a run: its first sentences, its size, its parts for Python, and what becomes of errors."""

from __future__ import annotations

import dataclasses
import errno
import html
import json
import os
import pathlib
import re
import subprocess
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mpiio_ext
from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.diagnosis.causes import CAUSES, named
from mpiio_ext.analytics.diagnosis.model import UNLESS
from mpiio_ext.analytics.factors.extract import with_jobs
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.ledger import Interval
from mpiio_ext.analytics.report import howto
from mpiio_ext.analytics.report.drawing import draw
from mpiio_ext.analytics.report.timeline import rank_chart
from mpiio_ext.analytics.run import delegated, failures, gains, gather, library, opening, over_time
from mpiio_ext.analytics.run import files as accessed
from mpiio_ext.analytics.run.failed import Stood
from mpiio_ext.analytics.run.gather import of_folder
from mpiio_ext.analytics.run.largest import Largest
from mpiio_ext.analytics.run.others import Others
from mpiio_ext.analytics.run.page import MOST_BYTES, document_of, page
from mpiio_ext.cli import logged, main
from mpiio_ext.cli.endings import Endings
from mpiio_ext.common import guide
from mpiio_ext.common import page as pages
from mpiio_ext.common.recordings import STATISTICS, has_recordings, lives
from mpiio_ext.errors import ArgumentError, FileSystemError
from mpiio_ext.launchers import RANK_VARIABLES
from mpiio_ext.pioneer.darshan.names import OTHERS
from mpiio_ext.pioneer.darshan.tallies import kind_of, of_rows
from mpiio_ext.pioneer.readers.own import Head
from support import fuzz
from support.html_page import Page
from support.launch import ROOT
from support.quiet_rows import in_mpi
from support.run_logs import log_of


def test_a_page_of_thousands_of_ranks_is_small(tmp_path: pathlib.Path) -> None:
    """Its bytes and marks do not depend on the ranks: 2,000, or 10,000 nightly."""
    sizes, many = {}, 10_000 if fuzz.all_examples() else 2_000
    for ranks in (200, many):
        log_of(tmp_path / "run.darshan", ranks)
        text = page(mpiio_ext.run_report(tmp_path / "run.darshan").document)
        assert Page(text).problems == []
        sizes[ranks] = len(text.encode()), text.count("<path"), text.count("<use")
        assert "10 s" in text and "<code>out.h5</code>" in text
    assert sizes[many][0] <= MOST_BYTES and sizes[many][1] <= 12_000
    assert sizes[many][0] <= 1.5 * sizes[200][0], sizes


def test_the_parts_of_a_page_are_objects(tmp_path: pathlib.Path) -> None:
    log_of(tmp_path / "run.darshan", 4)
    made = mpiio_ext.run_report(tmp_path / "run.darshan")
    (tmp_path / "io.html").write_text(page(made.document), encoding="utf-8")
    found = mpiio_ext.run_report(tmp_path / "io.html")
    assert found.document == json.loads(json.dumps(made.document))
    assert found.sentence in repr(found) and "<table>" in found._repr_html_()
    (row,) = found.files.rows()
    assert (row["file"], row["writes"], row["mean_write_bytes"], row["write_pattern"]) == (
        "/scratch/out.h5",
        80,
        512.0,
        "strided",
    )
    assert row["write_sizes"] == "100 % of 100 B to 1 KiB" and row["read_sizes"] is None
    assert row["who"] == "all 4 ranks" and found.files.table().num_rows == 1
    assert {"time-line-ranks", "bandwidth", "heat", "request-sizes", "places"} == set(found.figures)
    assert "<svg" in found.figures["heat"]._repr_html_() and found.figures["bandwidth"].table().num_rows == 120
    moved = sum(row["written_bytes_per_s"] for row in found.figures["bandwidth"].rows()) * 10 / 120
    assert moved == pytest.approx(4 * 20 * 512, rel=0.01)
    heat = found.figures["heat"].rows()  # in bins of the recording
    assert sum(row["bytes"] for row in heat) == pytest.approx(4 * 20 * 512, rel=0.01)
    assert {row["last_rank"] for row in heat} == {0, 1, 2, 3}
    assert min(row["to_s"] - row["from_s"] for row in heat) == pytest.approx(0.1)
    assert {row["of"] for row in found.figures["places"].rows()} == {f"rank {rank}" for rank in range(4)}
    spent = sum(row["time_s"] for row in found.figures["time-line-ranks"].rows())
    assert spent == pytest.approx(4 * 0.9 * 9.0, rel=1e-3)
    assert found.findings.rows()[0]["next_step"] and "Findings" in repr(found.findings)


def test_without_every_access_the_picture_is_of_bytes(tmp_path: pathlib.Path) -> None:
    log_of(tmp_path / "run.darshan", 64, dxt=False)
    found = mpiio_ext.run_report(tmp_path / "run.darshan")
    assert list(found.figures) == ["time-line-ranks", "bandwidth", "request-sizes"]
    assert "(HEATMAP)" in found.figures["time-line-ranks"].lines()[1]
    each = found.figures["time-line-ranks"].rows()
    assert sum(row["bytes"] for row in each) == pytest.approx(64 * 20 * 512, rel=0.01)
    assert all(words in found.sentence for words in ("at least 9", "512 B", "`out.h5`"))
    assert found.files.rows()[0]["write_pattern"] == "forward, with gaps"
    moved = sum(row["written_bytes_per_s"] for row in found.figures["bandwidth"].rows()) * 10 / 120
    text = page(found.document)
    assert moved == pytest.approx(64 * 20 * 512, rel=0.01) and not Page(text).problems
    assert "<h1>I/O of app</h1>" in text


def test_what_is_no_run_is_refused(tmp_path: pathlib.Path) -> None:
    other = pages.document("Other", [], lead=["It is."], none="None.")
    (tmp_path / "other.html").write_text(other, encoding="utf-8")
    (tmp_path / "text").write_text("neither", encoding="utf-8")
    for name, message in (("other.html", "no page of"), ("none", "none: cannot be read"), ("text", "log")):
        with pytest.raises(mpiio_ext.MpiioExtError, match=message):
            mpiio_ext.run_report(tmp_path / name)
    with pytest.raises(ArgumentError):
        document_of(tmp_path / "text")


def test_a_page_without_calls_says_so(tmp_path: pathlib.Path) -> None:
    document = of_folder(tmp_path)
    assert document["files"] == document["findings"] == []
    assert "`mpiio-ext doctor -- PROGRAM`" in document["notices"][0]
    (tmp_path / STATISTICS).write_text('{"kind": "run"}\n')
    assert "no room" in of_folder(tmp_path)["sentence"] and not of_folder(tmp_path)["notices"]
    text = page(document)
    assert has_recordings(tmp_path)
    assert "<code>mpiio-ext doctor -- PROGRAM</code>" in text and "<figure>" not in text and not Page(text).problems


@pytest.mark.parametrize(
    ("uses_mpiio", "there", "unclosed", "words"),
    [
        (False, False, [], "No call reached the library"),
        (False, True, [], "opened no file"),
        (True, True, ["a", "b"], "`a` and 1 more file"),
        (None, False, [], "No MPI-IO here"),
        (True, False, [], "`mpiio-ext doctor -- mpirun -n 2 ./app`"),
    ],
)
def test_why_the_library_has_reported_on_no_file(
    uses_mpiio: bool | None, there: bool, unclosed: list[str], words: str
) -> None:
    """None: no process has initialised MPI."""
    job = {"uses_mpiio": bool(uses_mpiio), "processes": 2}
    (said,) = gather._silent(job, "./app", there, Stood(), unclosed, uses_mpiio is None)
    assert words in said and "MPIOX_STATS" not in said


def test_files_without_room_make_a_number_the_least(tmp_path: pathlib.Path) -> None:
    log_of(tmp_path / "run.darshan", 1, name=OTHERS)
    document = mpiio_ext.run_report(tmp_path / "run.darshan").document
    assert ["files accessed", "at least 1"] in document["facts"] and document["files"][0]["who"] == "the program"
    assert "at least 6 more" in page(document | {"files_in_all": 7})


def test_the_time_of_opening_is_shown(tmp_path: pathlib.Path) -> None:
    log_of(tmp_path / "run.darshan", 4, opening_s=0.5)
    document = mpiio_ext.run_report(tmp_path / "run.darshan").document
    of = "the rank with most time in I/O"
    assert ["time in opening, closing, metadata", f"500 ms, of {of}"] in document["facts"]
    assert document["files"][0]["opening_s"] == pytest.approx(0.5)
    tables, activity, _ = gather._tables(tmp_path / "run.darshan", [])
    of_log = Files(with_jobs(tables["darshan_file"], tables["darshan_job"], "job_id"), "write", "job_id")
    assert activity is not None  # where MPI-IO calls take longer to open, both have that
    in_mpi(activity, of_log.table.to_pylist()[0], opening=0.7)
    ledger = gather.ledger_of(of_log, activity, 4, 10.0)
    assert ledger.opening().max() == pytest.approx(0.7)
    (row,) = accessed.table(of_log, activity, ledger)
    assert row["opening_s"] == pytest.approx(0.7) and row["time_s"] > 9
    assert "time of a rank in opening, closing, metadata, on average</th>" in page(document)


def test_mapped_memory_withholds_the_sentence(tmp_path: pathlib.Path) -> None:
    """Where the file may have taken a part of the time: a small one cannot, if calls move its data."""
    few = said([], 0.01, 10.0, mapped=["/a/x.npy", "/a/y"])
    assert "`x.npy` and 1 more file" in few and "worth tuning" not in few, few
    for size in (1000, 30_000_000):
        (tmp_path / "mapped").write_bytes(bytes(size))
        log_of(tmp_path / "run.darshan", 1, name=str(tmp_path / "mapped"), maps=1, each_s=0.001)
        document = mpiio_ext.run_report(tmp_path / "run.darshan").document
        assert ("worth tuning" in document["sentence"]) == (size == 1000), document["sentence"]
        assert any("mapped memory" in text for text in document["unknown"]) == (size > 1000)
    (tmp_path / "mapped").write_bytes(bytes(1000))
    log_of(tmp_path / "run.darshan", 1, count=0, name=str(tmp_path / "mapped"), maps=1, each_s=0.001)
    assert "`mapped`" in mpiio_ext.run_report(tmp_path / "run.darshan").document["sentence"]


@pytest.mark.parametrize("cause", ["late_rank", "serialised"])
def test_no_finding_has_more_than_the_time_in_io(cause: str) -> None:
    sentence = said(told(cause, "waits for rank 3, which is late, in collective writes{at}", time=4.0), 3.0, 10.0)
    assert "30 %" in sentence and "3 s" in sentence and "4 s" not in sentence, sentence


def test_other_calls_are_named_by_what_they_do() -> None:
    """They come first, if they explain more than a cause does, or most of what an inexact cause has."""
    locks = Others(words="waits for locks of `lock` (flock)", seconds=4.0, ranks="4 s to 5 s by each rank")
    renames = Others(words="renames of `a` (rename)", seconds=2.5, named=True)
    words = said([], 5.0, 10.0, others=[locks])
    assert locks.words in words and locks.ranks in words and "4 s of 5 s" in words, words
    for cause, seconds, first in (("late_rank", 4.5, False), ("late_rank", 3.5, True), ("metadata", 4.5, False)):
        found = told(cause, "waits for rank 3, which is late, in collective writes{at}", time=seconds)
        assert ("renames" in said(found, 5.0, 10.0, others=[renames])) == (cause == "metadata")
        assert ("locks" in said(found, 5.0, 10.0, others=[locks])) == first
    assert "locks" not in said([], 25.0, 30.0, others=[locks])
    assert "too little" in said([], 0.01, 10.0, others=[dataclasses.replace(locks, seconds=0.01)])


def test_failures_come_first() -> None:
    """They are the first sentence, and nothing is right then."""
    done = {"/d/out": {"write": 5, "read": 0}}
    names = ("MPI_File_write_at_all", "MPI_File_write_at", "MPI_Wait", "write", "stat", "open", "write", "fsync")
    errors = ("MPI_ERR_NO_SPACE",) * 3 + ("ENOSPC", "ENOENT", "EEXIST", "EINTR", "EINVAL")
    layers = ("mpiio", "mpiio", "mpi", *("posix",) * 5)
    rows = [
        (rank, layer, kind_of(name), name, "/d/out", error, False, False, 3, 0.5)
        for rank in range(2)
        for layer, name, error in zip(layers, names, errors, strict=True)
    ]
    rows += [(0, "mpiio", "write", "MPI_File_write_at", "/d/out", "", False, True, 10, 0.5)]
    rows += [(0, "posix", "write", "write", "/d/out", "EIO", True, False, 10, 0.5)]
    tallies = of_rows(rows)
    lines = failures.lines(tallies, done)
    counts = [re.findall(r"(\d+ of \d+) (\w+)", line) for line in lines]
    calls = [("6 of 6", "MPI_File_write_at_all"), ("6 of 16", "MPI_File_write_at"), ("6 of 6", "MPI_Wait")]
    assert counts == [calls, [("6 of 27", "writes")]]
    assert [error in line for error, line in zip(("MPI_ERR_NO_SPACE", "ENOSPC"), lines, strict=True)] == [True, True]
    lost = failures.of_file(tallies, "/d/out")
    assert lost.calls == {("collective", "write"): 6, ("independent", "write"): 6} and lost.more
    fast = side("write", 2e9, 4.0, low=False)
    assert said([fast]).endswith("nothing to change.")
    with_failures = said([fast], failures=lines)
    assert (
        with_failures.index(lines[0]) < with_failures.index("our program") and "nothing to change" not in with_failures
    )


def test_waiting_has_a_place_in_the_time_line() -> None:
    line = np.zeros((7, 2, 120))
    line[5, 1], line[1, 0] = 8.0 / 120, 4.0 / 120
    chart = rank_chart(Activity("HEATMAP", 2, 8.0), line)
    assert chart is not None and chart.data["levels"]["waiting"] == [[0] * 120, [24] * 120]
    assert "Waiting: " in chart.data["caption"] and "Libraries: " not in chart.data["caption"]
    assert re.findall(r"([\w ]+) (\d+) %", chart.title) == [(" waiting", "50"), (" writes and syncs", "25")]
    assert draw(chart).count("waiting") >= 1


def test_bandwidth_of_files() -> None:
    rows = [{"file": f"/d/{name}", "read_bytes": 0, "written_bytes": 1000} for name in "ab"]
    moved = np.zeros((2, 2, 120))
    moved[0, 1, 10], moved[1, 1, 20] = 1000, 500
    chart = over_time.of_files(rows, moved, 12.0)
    assert chart is not None and [one["name"] for one in chart.data["series"]] == ["a written", "b written"]
    assert max(chart.data["series"][1]["y"]) == pytest.approx(5000)  # 500 B in 0.1 s
    assert " 25 % " in chart.data["caption"] and chart.title.endswith(": a, b")
    moved[0, 1, 10] = 400
    assert over_time.of_files(rows, moved, 12.0) is None  # most of it is missing
    assert over_time.of_files(rows, np.zeros((2, 2, 120)), 12.0) is None


def test_a_page_that_is_too_large_leaves_things_out() -> None:
    document = {
        "kind": "mpiio_ext run",
        "program": "./app",
        "sentence": "s",
        "help": None,
        "notices": [],
        "lacks": [],
        "facts": [["a", "b"]],
        "findings": [],
        "conclusions": [],
        "unknown": [],
        "files": [],
        "files_in_all": 0,
        "library": [],
        "hints": [],
        "storage": [],
        "charts": [],
        "ballast": "x" * MOST_BYTES,
    }
    text = page(document)
    assert len(text.encode()) <= MOST_BYTES and "left out" in text


def test_what_a_program_is_called_cannot_harm_its_page(tmp_path: pathlib.Path) -> None:
    document = of_folder(tmp_path) | {"sentence": "a `</script><script>alert(1)</script>` b", "facts": [["<b>", "<i>"]]}
    text = page(document)
    assert "<script>alert" not in text and "<i>" not in text
    (tmp_path / "io.html").write_text(text, encoding="utf-8")
    assert document_of(tmp_path / "io.html")["sentence"] == document["sentence"]


# ---- sentences -------------------------------------------------------------------------------------------------------


def told(
    cause: str, what: str = "", *, confidence: str = "high", at_most: bool = False, time: float = 9.0
) -> list[dict[str, Any]]:
    """Return a diagnosis with one finding, which has the phrase of its cause, or else `what`."""
    phrase = what or named(cause).phrase or "calls{at}"
    finding = {
        "cause": cause,
        "title": "Title.",
        "what": phrase.format(way="write", at=" to `out.h5` and 4 more files", of=" of `out.h5` and 4 more files"),
        "time": {"value": time},
        "confidence": confidence,
        "at_most": at_most,
        "files": ["/a/out.h5", "/a/b", "and 3 more"],
        "advice": [],
        "evidence": [],
    }
    return [{"findings": [finding], "direction": "write", "low_bandwidth": True, "conclusion": "", "facts": []}]


def side(direction: str, moved: float, rate: float, *, low: bool) -> dict[str, Any]:
    """Return a diagnosis without a cause: bytes, and bandwidth from the first to the last access and in calls."""
    return {
        "findings": [],
        "direction": direction,
        "low_bandwidth": low,
        "facts": [{"unit": "B", "value": moved}, {"unit": "B/s", "value": 1.0}, {"unit": "B/s", "value": rate}],
    }


SPENT = opening.Spent(io_s=10.0, run_s=26.3)


def said(one: list[dict[str, Any]], io_s: float = 10.0, run_s: float = 26.3, *, whole: bool = True, **more: Any) -> str:
    return opening.first_sentence(one, opening.Spent(io_s=io_s, run_s=run_s, **more), whole=whole)


def led(one: list[dict[str, Any]], io_s: float = 10.0, run_s: float = 26.3, **more: Any) -> str:
    """Return the cause that the first sentence names; "" for none."""
    first = opening.leading(one, opening.Spent(io_s=io_s, run_s=run_s, **more))
    return "" if first is None else str(first[0]["cause"])


def test_what_is_not_worth_tuning_is_no_possible_cause() -> None:
    """Half of the time in I/O, 4 % of the run: only a sure cause is named; nor what a wait for a CPU explains."""
    for confidence, is_named in (("medium", False), ("high", True)):
        one = told("exchange", confidence=confidence, time=1.0)
        assert (led(one, io_s=2.0, run_s=80.0) == "exchange") == is_named
    one = told("exchange", confidence="low", time=4.0)
    for no_cpu, is_named in ((0.3, True), (0.31, False)):  # twice as long
        assert (led(one, no_cpu=no_cpu) == "exchange") == is_named


def test_a_bandwidth_has_no_upper_bound_of_calls_that_return_early() -> None:
    moved = {"write": (Interval(10.0, 10.0), 10**9, Interval(0.1, 10.0))}
    assert "100 MB/s or more" in said([side("write", 1e9, 1e8, low=True)], moved=moved)
    moved = {"write": (Interval(10.0, 10.0), 10**9, Interval(5.0, 10.0))}
    assert "100 MB/s and 200 MB/s" in said([side("write", 1e9, 1e8, low=True)], moved=moved)
    assert "In its writes, a rank moved between 100 MB/s and 200 MB/s on average" in said(
        [side("write", 1e9, 1e8, low=True)], moved=moved, processes=4
    )


@pytest.mark.parametrize(
    ("one", "cause", "words"),
    [
        (told("small_requests", at_most=True), "small_requests", "; up to 9 s of 10 s were "),
        (told("small_requests"), "small_requests", "; 9 s of 10 s were "),
        (told("few_aggregators", time=12.0), "few_aggregators", "; all of these 10 s were "),
        (told("serialised", confidence="medium"), "serialised", "; possibly 9 s of 10 s were "),
        (told("exchange", confidence="medium"), "exchange", "; possibly 9 s of 10 s were "),
        ([], "", "stands out."),
        ([side("write", 18e9, 2e9, low=False)], "", "; nothing to change."),
        (
            [side("read", 1.6e9, 1.6e10, low=False), side("write", 1.6e9, 2e8, low=True)],  # the reads took no time
            "",
            "written at 200 MB/s.",
        ),
        # a tenth of the time is not worth a sentence, unless the cause is sure
        (told("small_requests", time=1.0, confidence="medium"), "", "stands out."),
    ],
)
def test_the_first_sentence(one: list[dict[str, Any]], cause: str, words: str) -> None:
    sentence = said(one)
    assert led(one) == cause and words in sentence and "38 %" in sentence, sentence
    assert not cause or one[0]["findings"][0]["what"] in sentence


def test_a_sure_cause_of_a_tenth_is_told_before_a_possible_one_of_the_rest() -> None:
    """Read-modify-write costs 0.9 s by its counters; what the other 9 s of collective calls are is not certain."""
    both = told("read_modify_write", "small writes{at} carried out by read-modify-write", time=0.9)
    both[0]["findings"] += told("exchange", confidence="medium")[0]["findings"]
    assert led(both) == "read_modify_write" and "900 ms" in said(both)
    both[0]["findings"][0]["time"]["value"] = 0.4
    assert led(both) == "exchange" and "possibly 9 s" in said(both)


def test_large_requests_need_no_change_however_slow() -> None:
    for each in (4 << 20, 4096):
        files = [{"file": "/a", "mean_write_bytes": each, "time_s": 9.0}]
        assert ("nothing to change" in said([side("write", 1.6e9, 2e8, low=True)], files=files)) == (each > 4096)
        assert "nothing to change" not in said([side("write", 1.6e9, 7e7, low=True)], files=files)  # 23 s, a rank 10 s
    assert "nothing to change" not in said([side("write", 18e9, 2e9, low=False)], waiting_s=6.0)  # not alike


def test_opening_is_told_where_it_took_most_of_the_time() -> None:
    small = told("small_requests", time=3.0)
    words = "opening and closing"
    assert words in said(small, opening_s=6.0) and "6 s of 10 s" in said(small, opening_s=6.0)
    assert words not in said(small, opening_s=6.0, no_cpu=0.2)  # ranks that wait for a CPU meet late
    assert gains.help_of(small, opening.Spent(io_s=10.0, run_s=26.3, opening_s=6.0), None, "./app", 4) is None
    storm = told("metadata", "opens{of}, 3,000 times by each rank", time=6.0)
    assert led(storm, opening_s=6.0) == "metadata"


def test_a_log_does_not_have_all_calls() -> None:
    """Little I/O is little by the calls in the log; files that are open for long may be mapped."""
    assert said([], 0.1, 26.0, logged=True).endswith(f"worth tuning{UNLESS}.")
    uncounted = said([], 0.1, 26.0, logged=True, uncounted="Ranks wait.")
    assert uncounted.endswith(" Ranks wait.") and "worth tuning" not in uncounted
    assert "at least 35 %" in said([], 9.0, 26.0, logged=True)
    assert "at least" not in said([], io_s=9.0, logged=True, io=Interval(6.0, 12.0))
    unmoved = said([], 0.1, 26.0, logged=True, unmoved=["/a/map0", "/a/map1"])
    assert "`map0` and 1 more file" in unmoved and "worth tuning" not in unmoved


def test_the_calls_that_took_most_of_the_time_are_named() -> None:
    """At least half of the time in I/O, and longer than the cause beside which they stand."""
    calls = Largest(Interval(6.0, 6.1), "4 B reads from `a`, 12 calls by rank 3")
    assert said([], largest=calls).endswith("stands out. 6 s of 10 s were 4 B reads from `a`, 12 calls by rank 3.")
    assert "`a`" not in said([], largest=dataclasses.replace(calls, seconds=Interval(4.9, 9.0)))
    wide = dataclasses.replace(calls, seconds=Interval(6.0, 9.0))
    assert "stands out. At least 6 s of 10 s were 4 B reads" in said([], largest=wide)
    little, most = (told("metadata", "opens{of}", time=time) for time in (4.0, 5.0))
    assert "; 6 s of 10 s were 4 B reads from `a`, 12 calls by rank 3. A sure cause explains 4 s: opens" in said(
        little, largest=calls
    )
    assert "4 B reads" not in said(most, largest=calls)
    possible = told("metadata", "opens{of}", time=4.0, confidence="medium")
    assert "by rank 3. No cause is certain; possibly 4 s of 10 s were opens" in said(possible, largest=calls)


def causes() -> set[str]:
    """Return the names of all causes that the diagnosis knows."""
    return {one.name for one in CAUSES}


def test_of_recordings_that_lack_something_no_cause_is_certain() -> None:
    one = told("metadata", "opens{of}, 3 times by each rank")
    assert "possibly 9 s" in said(one, whole=False) and "possibly" not in said(one)


def test_little_io_is_said_to_be_little() -> None:
    one = told("metadata", "opens{of}, 3 times by each rank")
    assert said(one, 0.1, 26.0).endswith(" worth tuning.")


def test_what_is_hardly_likely_is_not_told_first() -> None:
    weak, seen = told("unaligned", confidence="low"), told("slow_file", confidence="low")
    assert not led(weak)
    assert gains.help_of(weak, SPENT, None, "./app", 4) is None
    weak[0]["findings"] += seen[0]["findings"]
    assert led(weak) == "slow_file"


def test_how_much_of_the_time_it_was() -> None:
    for time, words in ((9.99, "; all of these 10 s"), (9.6, "; nearly all of these 10 s"), (9.0, "; 9 s of 10 s")):
        assert words in said(told("turns", time=time))


def test_a_tiny_share_is_not_told_to_its_last_digit() -> None:
    assert opening.share_text(6.8e-15, 20.0) == "less than 0.01 %"
    assert opening.share_text(0.0, 20.0) == "0 %" and opening.share_text(0.04, 20.0) == "0.2 %"


def test_time_in_delegates_is_told_where_it_is_most_of_it() -> None:
    rows = [{"delegated_s": 6.0, "flush_barrier_s": 2.0}, {"delegated_s": 0.0, "flush_barrier_s": 0.0}]
    slow = delegated.notice(["a", "b"], rows, 4, 2.5)
    assert "`a` and 1 more file" in slow and " 2 s " in slow and "mpiox_delegates=0" in slow
    assert "On average" not in delegated.notice(["a"], rows, 4, 4.5) + delegated.notice(["a"], [], 4, 0.0)


def test_a_gain_has_a_basis() -> None:
    """What the library has measured comes first; else it is at most the time that the finding is about."""
    small = told("small_requests")
    small[0]["findings"][0]["advice"] = [
        {"text": "Many files: Do.", "command": ""},
        {"text": "Sort: Use it.", "command": "mpiio-ext run -H a=1 -- app"},
    ]
    plain = gains.help_of(small, SPENT, None, "./app", 4)
    assert plain is not None and (plain["text"], plain["command"]) == ("Sort: Use it", "mpiio-ext run -H a=1 -- app")
    assert plain["gain"].startswith("at most 34 % ") and "`mpiio-ext tune -- mpirun -n 4 ./app`" in plain["gain"]
    assert ": use it: `mpiio-ext run" in opening.help_sentence(plain)
    says = "would pay here: …; with mpiox_delegates=2 they become about 2.8 to 11 times faster, if …"
    paying = opening.paying([{"delegation": says}], "./app", 4)
    measured = gains.help_of(small, SPENT, paying, "./app", 4)
    assert measured is not None and measured["gain"].startswith("up to 31 % ") and "2.8 to 11" in measured["gain"]
    assert measured["command"] == "mpirun -n 4 mpiio-ext run -H mpiox_delegates=2 -- ./app"
    assert opening.paying([{"delegation": "2 delegates"}], "./app", 4) is None
    steps = ["Let the tuner: `mpiio-ext tune -- ./app`", "Sort.", "Let delegates collect them."]
    finding, way = gains.found(small, "Title.")
    without = gains.with_gains(steps, finding, way, SPENT, 4, None)
    assert [text.partition(" Gain: at most 34 % ")[0] for text in without] == [*steps[1:], steps[0]]
    with_both = gains.with_gains(steps, finding, way, SPENT, 4, paying)
    assert "mpiox_delegates=2" in with_both[0] and "up to 31 %" in with_both[0] and with_both[2] == steps[0]


def test_columns_without_values_are_left_out(tmp_path: pathlib.Path) -> None:
    (tmp_path / STATISTICS).write_text('{"kind":"file","path":"a","write_requests":3,"write_request_bytes":3}')
    document = {"facts": [["a", "b"]], "library": library.table(library.read(tmp_path / STATISTICS)[0])}
    document = of_folder(tmp_path) | document
    assert '<section id="library">' not in page(document) and log_of(tmp_path / "run.darshan", 1) is None
    text = page({**document, "files": mpiio_ext.run_report(tmp_path / "run.darshan").document["files"]})
    assert "mean request</th>" in text and "between nodes</th>" not in text and ">why</th>" not in text


def test_statistics_of_a_file_are_added_up(tmp_path: pathlib.Path) -> None:
    line = {
        "kind": "file",
        "path": "a",
        "ranks": 4,
        "write_requests": 3,
        "write_request_bytes": 300,
        "rounds": 1,
        "collective_writes": 2,
        "exchange_s": 4.0,
        "slowest_rank": 3,
        "slowest_s": 2.5,
        "write_partition": "even",
        "write_reason": "why: 2 of 4 aggregators for 1 server",
        "hints": {
            "cb_nodes": {"value": "4", "source": "MPI_Info"},
            "mpiox_stats": {"value": "true", "source": "MPIOX_REPORT_STATS"},
        },
    }
    again = {**line, "ranks": 2, "slowest_rank": 1, "slowest_s": 0.5}
    every = [line, again, {**line, "path": "b", "hints": {}}, {"kind": "run"}]
    (tmp_path / STATISTICS).write_text("".join(f"{json.dumps(one)}\n" for one in every) + '{"kind": "fi')
    files, there = library.read(tmp_path / STATISTICS)
    first, second = library.table(files)
    assert there and (first["file"], first["requests"], first["ranks"], first["mean_request_bytes"]) == ("a", 6, 4, 100)
    assert [first[name] for name in ("aggregators", "exchange_s", "slowest_rank")] == ["2 of 4 ranks", 2.0, 3]
    assert (second["requests"], second["method"], second["why"]) == (
        3,
        "two-phase, file domains even",
        "why: 2 of 4 aggregators for 1 server",
    )
    assert library.hints(files) == [
        {"hint": "cb_nodes", "value": "4", "set_by": "MPI_Info", "files": 1, "for_example": "a"}
    ]
    many = "".join(f"{json.dumps({**line, 'path': str(at), 'write_request_bytes': at})}\n" for at in range(1000))
    (tmp_path / STATISTICS).write_text(many)
    files, _ = library.read(tmp_path / STATISTICS)
    assert [row["path"] for row in files[:2]] == ["999", "998"] and len(files) == 200


# ---- the writer ------------------------------------------------------------------------------------------------------


def test_a_full_disk_keeps_the_recordings(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: pathlib.Path, _content: str) -> None:
        raise FileSystemError(errno.ENOSPC, "cannot be written: No space left on device", str(path))

    recording = logged.Recording.of([logged.RunPage(tmp_path / "io.html")])
    recording.prepare()
    monkeypatch.setattr(logged, "write_whole", full)
    logged._results([b"1", b"ended", b"0"], recording, Endings(recording.folder))
    said = capsys.readouterr().err
    assert f"{tmp_path / 'io.html'}: cannot be written: {os.strerror(errno.ENOSPC)}\n" in said
    assert f"mpiio-ext report {recording.folder} -o FILE.html\n" in said
    assert recording.folder.is_dir() and not (tmp_path / "io.html").exists()
    monkeypatch.undo()
    logged._results([b"1", b"ended", b"0"], recording, Endings(recording.folder))
    assert not recording.folder.exists() and (tmp_path / "io.html").is_file()


@pytest.mark.parametrize(
    ("status", "words"),
    [(b"3", "the program ended with status 3"), (b"-9", "the program was ended by signal SIGKILL"), (b"0", "")],
)
def test_how_the_program_ended_is_told(
    status: bytes, words: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    recording = logged.Recording.of([logged.RunPage(tmp_path / "io.html", ("./a b", "x"))])
    recording.prepare()
    logged._results([b"1", b"ended", status], recording, Endings(recording.folder))
    document = document_of(tmp_path / "io.html")
    assert document["ended"] == words and document["lacks"] == []
    sentence = mpiio_ext.run_report(tmp_path / "io.html").sentence
    assert words in sentence and ("job failed" in sentence) == bool(words)
    assert sentence.split("`")[0] in (tmp_path / "io.html").read_text("utf-8")
    assert "`mpiio-ext doctor -- './a b' x`" in document["notices"][0]  # of what was run, though nothing was recorded


def head_of(pid: int, rank: int, ranks: int = 1) -> Head:
    """Return what the recording of a living process of this host shows."""
    return Head(
        path=pathlib.Path("x"),
        rank=rank,
        ranks=ranks,
        host=os.uname().nodename,
        pid=pid,
        command=f"./app {rank}",
        started_ns=0,
        running=True,
    )


def settled(monkeypatch: pytest.MonkeyPatch, heads: list[Head], launcher: int | None) -> str:
    """Return what `_settle` returns for these recordings, after short waits."""
    monkeypatch.setattr(logged, "_OTHERS_S", 0.3)
    monkeypatch.setattr(logged, "_PATIENT_S", 0.1)
    monkeypatch.setattr("mpiio_ext.pioneer.darshan.convert.heads_of", lambda _folder: heads)
    return logged._settle(pathlib.Path("x"), 0.0, launcher)


@pytest.mark.parametrize(("rank", "counted"), [(-1, False), (0, True)])
def test_a_process_that_the_program_has_left_behind_is_given_up(
    rank: int, counted: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers of a run lack something only if they have that process."""
    ended = dataclasses.replace(head_of(1, 0), running=False)
    with subprocess.Popen(["sleep", "60"]) as left:
        try:
            lacks = settled(monkeypatch, [ended, head_of(left.pid, rank)], None)
        finally:
            left.kill()
    name = f"process {left.pid} (./app {rank})"
    waits, *further = capsys.readouterr().err.splitlines()
    assert name in waits and (len(further), bool(lacks)) == (not counted, counted)
    assert name in (lacks if counted else further[0])


@pytest.mark.parametrize("known", [True, False])
def test_ranks_are_waited_for_as_long_as_they_run(
    known: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They run longer than what was left behind may, below their launcher or where that is not known."""
    with subprocess.Popen(["sleep", "2"]) as rank:
        assert settled(monkeypatch, [head_of(rank.pid, 0)], os.getpid() if known else 0) == ""
        assert not lives(rank.pid)
    assert capsys.readouterr().err == ""


def test_the_recorder_leaves_its_own_folder_out(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIOX_TRACE_SKIP", "*.tmp")
    recording = logged.Recording.of([logged.RunPage(tmp_path / "io.html")])
    assert re.fullmatch(
        rf"\*\.tmp\n{re.escape(str(tmp_path))}/\.io\.html\.[0-9a-f]{{16}}\.run/\*",
        recording.settings({})["MPIOX_TRACE_SKIP"],
    )


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("./app -n 4", "app"),
        ("/usr/bin/python3.11 -u /a/solve.py x.py", "solve.py"),
        ("python -c 'a b'", "python"),
        ("python3 -m mpi4py -W ignore ./solve.py x", "solve.py"),
        ("python3 -m solver.main -n 4", "solver.main"),
        ("bash ./job.sh", "job.sh"),
        ("bash -c './app x'", "bash"),
        ("./it's", "it's"),
        ("", "a run"),
    ],
)
def test_a_page_is_called_by_its_program(command: str, name: str, tmp_path: pathlib.Path) -> None:
    assert f"<h1>I/O of {name}</h1>" in html.unescape(page(of_folder(tmp_path) | {"program": command}))


def test_chart_kinds_of_a_document_are_known() -> None:
    """A document is read by later versions: what it holds is drawn by `Chart` alone."""
    assert set(Chart.__dataclass_fields__) == {"kind", "name", "title", "data"}


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("./app 'a b' -n 3", "./app 'a b' -n 3"),
        ("./app $(touch b)", "PROGRAM"),  # of a log: Darshan does not quote
        ("./app it's", "PROGRAM"),
        ("./app …", "PROGRAM"),
        ("./app " + "x" * 200, "PROGRAM"),
    ],
)
def test_a_command_can_be_pasted_or_is_none(program: str, shown: str) -> None:
    assert opening.concrete("mpiio-ext run -- PROGRAM", program, 1) == f"mpiio-ext run -- {shown}"


def test_commands_of_advice_are_accepted() -> None:
    """With any number in the places of what the diagnosis knows."""
    text = (ROOT / "analytics/diagnosis/advice.py").read_text("utf-8")
    commands = re.findall(r'"((?:mpirun -n RANKS )?mpiio-ext run [^"]*PROGRAM)"', text)
    assert len(commands) > 5
    for command in commands:
        words = command.replace("{direction}", "write").partition("mpiio-ext run ")[2]
        words = re.sub(r"\{\w+\}", "4", words).replace("PROGRAM", "./app").split()
        done = CliRunner().invoke(main, ["run", "--dry-run", *words])
        assert done.exit_code == 0, (command, done.output)


def test_each_cause_leads_to_what_to_do(tmp_path: pathlib.Path) -> None:
    """The page has the text with it, once, without links out of it; what is told is installed."""
    build = (ROOT / "csrc/cmake/pages.cmake").read_text()
    (kinds,) = re.findall(r"foreach\(kind ([^)]*)\)\s+install\(DIRECTORY docs/", build)
    assert kinds.split() == list(guide.KINDS) and {f"howto/{name}" for name in howto.PAGES} <= guide.titles().keys()
    assert all(howto.links(cause) for cause in causes())
    every = [
        pages.Finding(title=cause, links=howto.links(cause, ["a.h5"], ["docs/explanation/delegates.md"]))
        for cause in causes()
    ]
    (section,) = howto.section([*every, pages.Finding(title="twice", links=howto.links("syncs"))])
    anchors = {anchor for one in every for anchor, _ in one.links}
    assert len(section.folds) == len({fold.anchor for fold in section.folds} | anchors) == 8 + 3
    assert not any("<a" in fold.body or "<!--" in fold.body or len(fold.body) < 300 for fold in section.folds)
    log_of(tmp_path / "run.darshan", 4)
    locks = dict.fromkeys(("file", "locks", "method", "least_method"), "") | {"unit_bytes": 1.0, "writes": None}
    found = Page(page(mpiio_ext.run_report(tmp_path / "run.darshan").document | {"locks": [locks]}))
    assert not re.search(r"\bdocs/|\.md\b", found.text)  # nobody has them where the page is read
    assert found.problems == [] and "howto-small-requests-one-by-one" in found.links
    assert "howto-my-hdf5-code-is-slow" in found.links and "howto-the-storage-was-slow" not in found.ids
    assert "with dataset.collective" in found.text and not howto.section([])


def test_opening_and_closing_is_told_only_where_it_is_more_than_that_of_any_run() -> None:
    """MPI_File_open and MPI_File_close of one file take 63 ms of a healthy run of 0.5 s; and no cause is sure."""
    little = [side("write", 134e6, 2e9, low=False)]
    files = [{"file": "/a/start.pyc", "mean_write_bytes": None, "time_s": 0.01}]
    assert "opening and closing" not in said(little, 0.118, 0.516, opening_s=0.0635, files=files)
    assert "150 ms of 200 ms" in said(little, 0.2, 0.516, opening_s=0.15)
    one = told("opening", confidence="medium")
    assert led(one, opening_s=9.0) == "opening" and "possibly 9 s" in said(one, opening_s=9.0)
