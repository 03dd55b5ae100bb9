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
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls
from mpiio_ext.analytics.factors.extract import with_jobs
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.report import howto
from mpiio_ext.analytics.report.drawing import draw
from mpiio_ext.analytics.report.timeline import rank_chart
from mpiio_ext.analytics.run import delegated, gains, gather, library, opening, over_time
from mpiio_ext.analytics.run import files as accessed
from mpiio_ext.analytics.run.failed import Stood
from mpiio_ext.analytics.run.gather import of_folder
from mpiio_ext.analytics.run.page import MOST_BYTES, document_of, page
from mpiio_ext.cli import logged, main
from mpiio_ext.cli.endings import Endings
from mpiio_ext.common import guide
from mpiio_ext.common import page as pages
from mpiio_ext.common.recordings import STATISTICS, has_recordings, lives
from mpiio_ext.errors import ArgumentError, FileSystemError
from mpiio_ext.launchers import RANK_VARIABLES
from mpiio_ext.pioneer.darshan import recordings
from mpiio_ext.pioneer.readers.own import Head
from support import fuzz
from support.html_page import Page
from support.launch import ROOT
from support.run_logs import log_of


def test_a_page_of_thousands_of_ranks_is_small(tmp_path: pathlib.Path) -> None:
    """Its bytes and marks do not depend on the ranks: 2,000, or 10,000 nightly."""
    sizes, many = {}, 10_000 if fuzz.all_examples() else 2_000
    for ranks in (200, many):
        log_of(tmp_path / "run.darshan", ranks)
        text = page(mpiio_ext.run_report(tmp_path / "run.darshan").document)
        assert Page(text).problems == []
        sizes[ranks] = len(text.encode()), text.count("<path"), text.count("<use")
        assert "10 s" in text and "512 B writes to <code>out.h5</code>" in text
    assert sizes[many][0] <= MOST_BYTES and sizes[many][1] <= 12_000
    assert sizes[many][0] <= 1.5 * sizes[200][0], sizes


def test_the_parts_of_a_page_are_objects(tmp_path: pathlib.Path) -> None:
    log_of(tmp_path / "run.darshan", 4)
    made = mpiio_ext.run_report(tmp_path / "run.darshan")
    (tmp_path / "io.html").write_text(page(made.document), encoding="utf-8")
    found = mpiio_ext.run_report(tmp_path / "io.html")
    assert found.document == json.loads(json.dumps(made.document))
    assert repr(found).startswith("RunReport:\n  Your program spent 9") and "<table>" in found._repr_html_()
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
    assert " bytes that they move, of the most that any of them moves, " in found.figures["time-line-ranks"].lines()[1]
    assert found.sentence.startswith("Your program spent 9") and "512 B writes to `out.h5`" in found.sentence
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
    assert document["sentence"].startswith("No call was recorded: the program has done no I/O, or only on")
    assert "`mpiio-ext doctor -- PROGRAM`" in document["notices"][0]
    (tmp_path / STATISTICS).write_text('{"kind": "run"}\n')
    assert "no room for the recordings" in of_folder(tmp_path)["sentence"] and not of_folder(tmp_path)["notices"]
    text = page(document)
    assert has_recordings(tmp_path)
    assert "<code>mpiio-ext doctor -- PROGRAM</code>" in text and "<figure>" not in text and not Page(text).problems


@pytest.mark.parametrize(
    ("uses_mpiio", "there", "unclosed", "words"),
    [
        (False, False, [], "No call reached the library"),
        (False, True, [], "The library was under the program, and no file was opened with MPI-IO"),
        (True, True, ["a", "b"], "ended without closing `a` and 1 more file: what the library did is not known"),
        (None, False, [], "No MPI-IO here: no process whose calls were recorded has initialised MPI."),
        (True, False, [], "this tells whether it is under the program, and whether its statistics are on: `"),
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
    log_of(tmp_path / "run.darshan", 1, name=recordings.OTHERS)
    document = mpiio_ext.run_report(tmp_path / "run.darshan").document
    assert ["files accessed", "at least 1"] in document["facts"] and document["files"][0]["who"] == "the program"
    assert "At least 6 more files, with less time" in page(document | {"files_in_all": 7})


def test_the_time_of_opening_is_shown(tmp_path: pathlib.Path) -> None:
    log_of(tmp_path / "run.darshan", 4, opening_s=0.5)
    document = mpiio_ext.run_report(tmp_path / "run.darshan").document
    assert ["of it opening, closing, metadata", "500 ms"] in document["facts"]
    assert document["files"][0]["opening_s"] == pytest.approx(0.5)
    tables, activity, _ = gather._tables(tmp_path / "run.darshan", [])
    of_log = Files(with_jobs(tables["darshan_file"], tables["darshan_job"], "job_id"), "write", "job_id")
    assert activity is not None  # where MPI-IO calls take longer to open, both have that
    activity.calls[of_log.table["file_id"][0].as_py()] = Calls(opening=0.7)
    each, parts = accessed.own_time(of_log, activity, 10.0)
    assert accessed.in_io(of_log, activity, 4, 10.0)[1] == parts[0] == pytest.approx(0.7) and each[0] > 9
    assert "of it opening, closing, metadata</th>" in page(document)


def test_mapped_memory_withholds_the_sentence(tmp_path: pathlib.Path) -> None:
    """Where the file may have taken a part of the time: a small one cannot, if calls move its data."""
    few = said([], 0.01, 10.0, mapped=["/a/x.npy", "/a/y"])
    assert few.endswith("; how long it was in mapped memory of `x.npy` and 1 more file is not known."), few
    for size, words in ((1000, "too little to be worth tuning"), (30_000_000, "is not known")):
        (tmp_path / "mapped").write_bytes(bytes(size))
        log_of(tmp_path / "run.darshan", 1, name=str(tmp_path / "mapped"), maps=1, each_s=0.001)
        document = mpiio_ext.run_report(tmp_path / "run.darshan").document
        assert words in document["sentence"], document["sentence"]
        assert any("mapped memory" in text for text in document["unknown"]) == (size > 1000)
    (tmp_path / "mapped").write_bytes(bytes(1000))
    log_of(tmp_path / "run.darshan", 1, count=0, name=str(tmp_path / "mapped"), maps=1, each_s=0.001)
    assert (
        "mapped memory of `mapped` is not known" in mpiio_ext.run_report(tmp_path / "run.darshan").document["sentence"]
    )


@pytest.mark.parametrize(("cause", "io"), [("late_rank", "4 s of 10 s"), ("serialised", "3 s of 10 s")])
def test_sentence_and_finding_have_the_same_seconds(cause: str, io: str) -> None:
    """Each rank but the late one is 4 s in calls, 3 s on average; the time of files is no time of a rank."""
    sentence = said(told(cause, "Ranks wait in collective calls for one that comes late, rank 3.", time=4.0), 3.0, 10.0)
    assert f"of its time in I/O; all of these {io.split()[0]} s were " in sentence, sentence
    assert ("40 % of its time" in sentence) == (cause == "late_rank")
    longer = said(told(cause, "Ranks wait in collective calls for one that comes late, rank 3.", time=14.0), 3.0, 10.0)
    assert ("100 % of its time" in longer) == (cause == "late_rank"), "a clock that was set: no more than the run time"


def test_calls_that_no_counter_has_withhold_the_sentence() -> None:
    told = said([], 0.01, 10.0, other_s=5.0)
    assert told.endswith("(10 ms of 10 s), and up to 5 s in calls that fail, or that change names or sizes."), told
    assert "too little" in said([], 0.01, 10.0, other_s=0.1)


def test_waiting_has_a_place_in_the_time_line() -> None:
    line = np.zeros((7, 2, 120))
    line[5, 1], line[1, 0] = 8.0 / 120, 4.0 / 120
    chart = rank_chart(Activity("HEATMAP", 2, 8.0), line)
    assert chart is not None and chart.data["levels"]["waiting"] == [[0] * 120, [24] * 120]
    assert chart.data["caption"].endswith(
        " Of MPI-IO calls, waiting: for other ranks, in calls that this library carries out."
    )
    assert chart.title == "Ranks over time: waiting 50 %, writes 25 % of their time"
    assert draw(chart).count("waiting") >= 1


def test_bandwidth_of_files() -> None:
    rows = [{"file": f"/d/{name}", "read_bytes": 0, "written_bytes": 1000} for name in "ab"]
    moved = np.zeros((2, 2, 120))
    moved[0, 1, 10], moved[1, 1, 20] = 1000, 500
    chart = over_time.of_files(rows, moved, 12.0)
    assert chart is not None and [one["name"] for one in chart.data["series"]] == ["a written", "b written"]
    assert max(chart.data["series"][1]["y"]) == pytest.approx(5000)  # 500 B in 0.1 s
    assert "25 % of their bytes are not shown" in chart.data["caption"] and chart.title.endswith("most time: a, b")
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
    assert len(text.encode()) <= MOST_BYTES and "left out, to keep the page below 1 MB" in text


def test_what_a_program_is_called_cannot_harm_its_page(tmp_path: pathlib.Path) -> None:
    document = of_folder(tmp_path) | {"sentence": "a `</script><script>alert(1)</script>` b", "facts": [["<b>", "<i>"]]}
    text = page(document)
    assert "<script>alert" not in text and "<i>" not in text
    (tmp_path / "io.html").write_text(text, encoding="utf-8")
    assert document_of(tmp_path / "io.html")["sentence"] == document["sentence"]


# ---- sentences -------------------------------------------------------------------------------------------------------


def told(
    cause: str, title: str, *, confidence: str = "high", at_most: bool = False, time: float = 9.0, **evidence: float
) -> list[dict[str, Any]]:
    finding = {
        "cause": cause,
        "title": title,
        "time": {"value": time},
        "confidence": confidence,
        "at_most": at_most,
        "files": ["/a/out.h5", "/a/b", "and 3 more"],
        "advice": [],
        "evidence": [{"meaning": name.replace("_", " "), "value": value} for name, value in evidence.items()],
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


FEW = {"bytes of a call, all ranks together": 2048.0}
SPENT = opening.Spent(io_s=10.0, run_s=26.3)


def said(one: list[dict[str, Any]], io_s: float = 10.0, run_s: float = 26.3, *, whole: bool = True, **more: Any) -> str:
    return opening.first_sentence(one, opening.Spent(io_s=io_s, run_s=run_s, **more), whole=whole)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (
            told("small_requests", "Small and not consecutive (independent calls).", mean_request=4096.0, at_most=True),
            "Your program spent 38 % of its time in I/O; up to 9 s of 10 s were 4,096 B independent writes to `out.h5` "
            "and 4 more files.",
        ),
        (
            told("small_requests", "Collective calls have few bytes.", **FEW),
            "Your program spent 38 % of its time in I/O; 9 s of 10 s were collective writes to `out.h5` and 4 more"
            " files of few bytes, 2.05 kB a call of all ranks together.",
        ),
        (
            told("few_aggregators", "Too few aggregators: one rank writes all.", time=12.0),
            "Your program spent 38 % of its time in I/O; all of these 10 s were collective writes to "
            "`out.h5` and 4 more "
            "files that too few aggregators carry out.",
        ),
        (
            told("serialised", "Files are written one after the other.", confidence="medium"),
            "Your program spent 38 % of its time in I/O (10 s of 26.3 s). No cause is certain; "
            "possibly 9 s of 10 s were "
            "writes to `out.h5` and 4 more files, one file after the other.",
        ),
        (
            told("exchange", "Collective calls are not in requests for most of their time.", confidence="medium"),
            "Your program spent 38 % of its time in I/O (10 s of 26.3 s). No cause is certain; "
            "possibly 9 s of 10 s were "
            "collective writes to `out.h5` and 4 more files in which no rank was in a request: ranks "
            "exchanged data, or "
            "waited for one that came late.",
        ),
        ([], "Your program spent 38 % of its time in I/O (10 s of 26.3 s); no cause of slow I/O stands out."),
        (
            [side("write", 18e9, 2e9, low=False)],
            "Your program spent 38 % of its time in I/O (10 s of 26.3 s); no cause of slow I/O stands out: 18 GB were "
            "written at 2 GB/s, which is not low; nothing to change.",
        ),
        (
            [side("read", 1.6e9, 1.6e10, low=False), side("write", 1.6e9, 2e8, low=True)],  # the reads took no time
            "Your program spent 38 % of its time in I/O (10 s of 26.3 s); no cause of slow I/O stands out: 1.6 GB were "
            "written at 200 MB/s.",
        ),
        (
            told(
                "small_requests", "Small.", mean_request=512.0, time=1.0, confidence="medium"
            ),  # a tenth of the time is not worth a sentence, unless the cause is sure
            "Your program spent 38 % of its time in I/O (10 s of 26.3 s); no cause of slow I/O stands out.",
        ),
    ],
)
def test_the_first_sentence(one: list[dict[str, Any]], words: str) -> None:
    assert said(one) == words


def test_a_sure_cause_of_a_tenth_is_told_before_a_possible_one_of_the_rest() -> None:
    """Read-modify-write costs 0.9 s by its counters; what the other 9 s of collective calls are is not certain."""
    small = {"mean piece, at most": 4096.0}
    both = told("read_modify_write", "It reads what it is about to overwrite.", time=0.9, **small)
    both[0]["findings"] += told("exchange", "Calls are not in requests.", confidence="medium")[0]["findings"]
    assert "; 900 ms of 10 s were small writes to `out.h5` and 4 more files carried out by read-mod" in said(both)
    both[0]["findings"][0]["time"]["value"] = 0.4
    assert "possibly 9 s of 10 s were collective writes" in said(both)


def test_large_requests_need_no_change_however_slow() -> None:
    for each, words in ((4 << 20, "in requests of 4 MiB; nothing to change."), (4096, "in requests of 4 KiB.")):
        files = [{"file": "/a", "mean_write_bytes": each, "time_s": 9.0}]
        assert said([side("write", 1.6e9, 2e8, low=True)], files=files).endswith(words)
        assert "nothing to change" not in said([side("write", 1.6e9, 7e7, low=True)], files=files)  # 23 s, a rank 10 s
    assert said([side("write", 18e9, 2e9, low=False)], waiting_s=6.0).endswith("which is not low.")  # not alike


def test_opening_is_told_where_it_took_most_of_the_time() -> None:
    small = told("small_requests", "Small.", mean_request=512.0, time=3.0)
    words = "; 6 s of 10 s were opening and closing files, and other calls that neither read nor write."
    assert said(small, opening_s=6.0) == f"Your program spent 38 % of its time in I/O{words}"
    assert gains.help_of(small, opening.Spent(io_s=10.0, run_s=26.3, opening_s=6.0), None, "./app", 4) is None
    storm = told("metadata", "Metadata storm.", opens_of_a_process=3000.0, time=6.0)
    assert "3,000 opens by each rank" in said(storm, opening_s=6.0)


def test_a_log_does_not_have_all_calls() -> None:
    """Little I/O is little by the calls in the log; files that are open for long may be mapped."""
    assert said([], 0.1, 26.0, logged=True) == (
        "By the calls in the log, your program spent 0.4 % of its time in I/O (100 ms of 26 s): too little to be worth"
        " tuning."
    )
    assert said([], 0.1, 26.0, logged=True, unmoved=["/a/map0", "/a/map1"]) == (
        "Your program spent 0.4 % of its time in I/O calls (100 ms of 26 s); but no call in the log reads or writes"
        " `map0` and 1 more file, open for most of the run: mapped memory, or other layers, are not in it."
    )


def test_counts_of_a_log_without_all_files_are_least_ones() -> None:
    storm = told("metadata", "Metadata storm.", opens_of_a_process=1024.0, files=4096.0)
    storm[0]["findings"][0]["lost"] = True
    words = said(storm, lost=True)
    assert words.startswith("Your program spent at least 38 % of its time in I/O; ")
    assert "of at least 4,096 files, with at least 1,024 opens by each rank" in words


def test_the_file_that_took_most_of_the_time_is_named() -> None:
    files = [{"file": "/a/hello.dat", "time_s": 6.0}, {"file": "/a/small.dat", "time_s": 1.0}]
    assert said([], files=files).endswith("no cause of slow I/O stands out; most of the time was that of `hello.dat`.")
    side_by_side = [files[0] | {"file": f"/a/out{number}"} for number in range(4)]
    assert "most of the time" not in said([], files=side_by_side)
    assert "hello" not in said([], files=files[:1]) and "hello" not in said([], files=[files[0] | {"time_s": 4.0}] * 2)


def causes() -> set[str]:
    """Return the names of all causes that the diagnosis knows."""
    text = "".join(path.read_text("utf-8") for path in sorted((ROOT / "analytics/diagnosis").glob("causes*.py")))
    found = set(re.findall(r"""\.finding\(\s*((?:"\w+"|[^,\n])+),""", text))
    return {name for each in found for name in re.findall(r'"(\w+)"', each)} - {"write", "read"}


def test_every_cause_has_words() -> None:
    names = causes()
    assert len(names) > 20
    for name in names:
        one = told(name, "Title.")[0]["findings"][0]
        words = opening.phrase(one, "write")
        assert words and "Title" not in words and "title" not in words, name


def test_of_recordings_that_lack_something_no_cause_is_certain() -> None:
    one = told("metadata", "Metadata storm.", opens_of_a_process=3.0)
    assert said(one, whole=False) == (
        "As far as was recorded, your program spent 38 % of its time in I/O (10 s of 26.3 s). No cause is certain; "
        "possibly 9 s of 10 s were metadata calls (open, stat, seek, sync), with 3 opens by each rank."
    )


def test_little_io_is_said_to_be_little() -> None:
    one = told("metadata", "Metadata storm.", opens_of_a_process=3.0)
    assert said(one, 0.1, 26.0).endswith("(100 ms of 26 s): too little to be worth tuning.")


def test_what_is_hardly_likely_is_not_told_first() -> None:
    weak, seen = told("unaligned", "Requests.", confidence="low"), told("slow_file", "Files.", confidence="low")
    assert said(weak).endswith("no cause of slow I/O stands out.")
    assert gains.help_of(weak, SPENT, None, "./app", 4) is None
    weak[0]["findings"] += seen[0]["findings"]
    assert "a slow server" in said(weak)


def test_how_much_of_the_time_it_was() -> None:
    for time, words in ((9.99, "; all of these 10 s"), (9.6, "; nearly all of these 10 s"), (9.0, "; 9 s of 10 s")):
        assert words in said(told("turns", "Ranks take turns.", time=time))
    shared = told("shared_opens", "Again.", opens_of_a_process=67.0, files=200.0)
    assert "of the same 200 files by all ranks." in said(shared)


def test_a_tiny_share_is_not_told_to_its_last_digit() -> None:
    assert opening.share_text(6.8e-15, 20.0) == "less than 0.01 %"
    assert opening.share_text(0.0, 20.0) == "0 %" and opening.share_text(0.04, 20.0) == "0.2 %"


def test_time_in_delegates_is_told_where_it_is_most_of_it() -> None:
    rows = [{"delegated_s": 6.0, "flush_barrier_s": 2.0}, {"delegated_s": 0.0, "flush_barrier_s": 0.0}]
    slow = delegated.notice(["a", "b"], rows, 4, 2.5)
    assert "`a` and 1 more file" in slow and "spent 2 s, on average" in slow and "mpiox_delegates=0" in slow
    assert "on average" not in delegated.notice(["a"], rows, 4, 4.5) + delegated.notice(["a"], [], 4, 0.0)


def test_a_gain_has_a_basis() -> None:
    """What the library has measured comes first; else it is at most the time that the finding is about."""
    small = told("small_requests", "Small (independent calls).", mean_request=64.0)
    small[0]["findings"][0]["advice"] = [
        {"text": "Many files: Do.", "command": ""},
        {"text": "Sort: Use it.", "command": "mpiio-ext run -H a=1 -- app"},
    ]
    plain = gains.help_of(small, SPENT, None, "./app", 4)
    assert opening.help_sentence(plain) == (
        "What would help: use it: `mpiio-ext run -H a=1 -- app`. Gain: at most 34 % of the run, the time that"
        " this explains; `mpiio-ext tune -- mpirun -n 4 ./app` measures it."
    )
    says = "would pay here: about 2.8 to 11 times for these accesses, if …; try mpiox_delegates=2"
    paying = opening.paying([{"delegation": says}], "./app", 4)
    measured = gains.help_of(small, SPENT, paying, "./app", 4)
    assert measured is not None and measured["gain"].startswith("up to 31 % of the run, these accesses 2.8 to 11 times")
    assert opening.help_sentence(measured).startswith("What would help: delegates that collect these accesses: `")
    assert measured["command"] == "mpirun -n 4 mpiio-ext run -H mpiox_delegates=2 -- ./app"
    assert opening.paying([{"delegation": "2 delegates"}], "./app", 4) is None
    steps = ["Let the tuner: `mpiio-ext tune -- ./app`", "Sort.", "Let delegates collect them."]
    finding, way = gains.found(small, "Small (independent calls).")
    at_most = "Gain: at most 34 % of the run, the time that this explains."
    assert gains.with_gains(steps, finding, way, SPENT, 4, None) == [
        f"Sort. {at_most}",
        f"Let delegates collect them. {at_most}",
        steps[0],
    ]
    with_both = gains.with_gains(steps, finding, way, SPENT, 4, paying)
    assert "mpiox_delegates=2 -- ./app` Gain: up to 31 % of the run" in with_both[0] and with_both[2] == steps[0]


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
    assert f"no page: {tmp_path / 'io.html'}: cannot be written: No space left on device\n" in said
    assert f"the recordings stay: mpiio-ext report {recording.folder} -o FILE.html\n" in said
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
    assert sentence.startswith(f"The job failed: {words}. No call" if words else "No call")
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
    line = f"{name}, left behind by the program, still runs: what it does from now on is missing"
    printed = capsys.readouterr().err.splitlines()
    assert printed[0] == f"mpiio-ext: waits up to 0 s for {name}, which the program has left behind"
    assert (lacks, printed[1:]) == ((line, []) if counted else ("", [f"mpiio-ext: {line}"]))


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
    words = said(little, 0.118, 0.516, opening_s=0.0635, files=files)
    assert words.startswith("Your program spent 23 % of its time in I/O (118 ms of 516 ms); no cause of slow I/O st")
    assert "; 150 ms of 200 ms were opening and closing files" in said(little, 0.2, 0.516, opening_s=0.15)
    one = told("opening", "MPI-IO calls that open.", confidence="medium")
    assert "No cause is certain; possibly 9 s of 10 s were opening and closing files" in said(one, opening_s=9.0)


def test_who_makes_collective_calls_and_for_whose_locks_writes_may_wait() -> None:
    calls = {"collective MPI-IO calls, of all ranks": 4000.0, "mean request": 8192.0}
    small = told("small_requests", "Small, between those of other ranks (each rank carries out by itself).", **calls)
    assert opening.phrase(small[0]["findings"][0], "write") == (
        "8,192 B collective writes to `out.h5` and 4 more files that each rank makes by itself: collective buffering is"
        " off, or gathers nothing"
    )
    locks = told("small_requests", "Small, between those of other ranks, for whose locks of the file system they wait.")
    assert opening.phrase(locks[0]["findings"][0], "write").endswith(
        " those of other ranks, for whose locks they may wait"
    )
