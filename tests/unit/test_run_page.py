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
from support.expected import Expected
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


def test_the_parts_of_a_page_are_objects(tmp_path: pathlib.Path, expected: Expected) -> None:
    log_of(tmp_path / "run.darshan", 4)
    made = mpiio_ext.run_report(tmp_path / "run.darshan")
    (tmp_path / "io.html").write_text(page(made.document), encoding="utf-8")
    found = mpiio_ext.run_report(tmp_path / "io.html")
    assert found.document == json.loads(json.dumps(made.document))
    assert found.sentence in repr(found) and "<table>" in found._repr_html_()
    (row,) = found.files.rows()
    assert found.files.table().num_rows == 1
    expected({"sentence": found.sentence, "file": {name: value for name, value in row.items() if value is not None}})
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


def test_mapped_memory_withholds_the_sentence(tmp_path: pathlib.Path, expected: Expected) -> None:
    """Where the file may have taken a part of the time: a small one cannot, if calls move its data."""
    found = {"two files": said([], 0.01, 10.0, mapped=["/a/x.npy", "/a/y"])}
    for size in (1000, 30_000_000):
        (tmp_path / "mapped").write_bytes(bytes(size))
        log_of(tmp_path / "run.darshan", 1, name=str(tmp_path / "mapped"), maps=1, each_s=0.001)
        document = mpiio_ext.run_report(tmp_path / "run.darshan").document
        found[f"{size} B"] = {"sentence": document["sentence"], "unknown": document["unknown"]}
    (tmp_path / "mapped").write_bytes(bytes(1000))
    log_of(tmp_path / "run.darshan", 1, count=0, name=str(tmp_path / "mapped"), maps=1, each_s=0.001)
    expected({**found, "no other call": mpiio_ext.run_report(tmp_path / "run.darshan").document["sentence"]})


def test_failures_come_first(expected: Expected) -> None:
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
    lost = failures.of_file(tallies, "/d/out")
    assert lost.more
    fast = side("write", 2e9, 4.0, low=False)
    calls = {" ".join(way): count for way, count in lost.calls.items()}
    expected({"lines": lines, "calls": calls, "well": said([fast]), "failed": said([fast], failures=lines)})


def test_waiting_has_a_place_in_the_time_line(expected: Expected) -> None:
    line = np.zeros((7, 2, 120))
    line[5, 1], line[1, 0] = 8.0 / 120, 4.0 / 120
    chart = rank_chart(Activity("HEATMAP", 2, 8.0), line)
    assert chart is not None and chart.data["levels"]["waiting"] == [[0] * 120, [24] * 120]
    expected({"title": chart.title, "caption": chart.data["caption"]})
    assert draw(chart).count("waiting") >= 1


def test_bandwidth_of_files(expected: Expected) -> None:
    rows = [{"file": f"/d/{name}", "read_bytes": 0, "written_bytes": 1000} for name in "ab"]
    moved = np.zeros((2, 2, 120))
    moved[0, 1, 10], moved[1, 1, 20] = 1000, 500
    chart = over_time.of_files(rows, moved, 12.0)
    assert chart is not None and max(chart.data["series"][1]["y"]) == pytest.approx(5000)  # 500 B in 0.1 s
    names = [one["name"] for one in chart.data["series"]]
    expected({"title": chart.title, "caption": chart.data["caption"], "series": names})
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


def causes() -> set[str]:
    """Return the names of all causes that the diagnosis knows."""
    return {one.name for one in CAUSES}


def first(cause: str, *, of: list[dict[str, Any]] | None = None, **more: Any) -> list[dict[str, Any]]:
    """Return a diagnosis whose first finding is of a cause; behind it stands that of another one."""
    found = told(cause, **more)
    found[0]["findings"] += of[0]["findings"] if of else []
    return found


CALLS = Largest(seconds=Interval(6.0, 6.1), words="4 B reads from `a`, 12 calls by rank 3")
WAITS = "waits for rank 3, which is late, in collective writes{at}"
#: 3,000 small files, one sure cause
OPENS = "opens{of}, 3 times by each rank"
LOCKS = Others(words="waits for locks of `lock` (flock)", seconds=4.0, ranks="4 s to 5 s by each rank")
RENAMES = Others(words="renames of `a` (rename)", seconds=2.5, named=True)
SYSTEM = "7 operations on 2 files of the system, such as /usr/share/a"
LOW = side("write", 1e9, 1e8, low=True)
SLOW = side("write", 1.6e9, 2e8, low=True)
FAST = side("write", 18e9, 2e9, low=False)
SHORT = side("write", 134e6, 2e9, low=False)
RMW = "small writes{at} carried out by read-modify-write"


def moved(least: float) -> dict[str, Any]:
    """Return writes of 1 GB, of which a rank is in calls for at least so many of its 10 s."""
    return {"write": (Interval(10.0, 10.0), 10**9, Interval(least, 10.0))}


def mean(size: float, file: str = "/a") -> list[dict[str, Any]]:
    return [{"file": file, "mean_write_bytes": size, "time_s": 9.0}]


Case = tuple[list[dict[str, Any]], dict[str, Any]]
#: Diagnoses, and what else is known: of 10 s in I/O of a run of 26.3 s.
SENTENCES: dict[str, Case] = {
    # half of the time in I/O, 4 % of the run: only a sure cause is named
    "a possible cause of little time": (told("exchange", confidence="medium", time=1.0), {"io_s": 2.0, "run_s": 80.0}),
    "a sure cause of little time": (told("exchange", time=1.0), {"io_s": 2.0, "run_s": 80.0}),
    # nor what a wait for a CPU explains: twice as long
    "an unlikely cause beside short waits for a CPU": (told("exchange", confidence="low", time=4.0), {"no_cpu": 0.3}),
    "an unlikely cause beside waits for a CPU": (told("exchange", confidence="low", time=4.0), {"no_cpu": 0.31}),
    # a bandwidth has no upper bound of calls that return early
    "a bandwidth of calls that return early": ([LOW], {"moved": moved(0.1)}),
    "a bandwidth with two bounds": ([LOW], {"moved": moved(5.0)}),
    "a bandwidth of a rank": ([LOW], {"moved": moved(5.0), "processes": 4}),
    "at most": (told("small_requests", at_most=True), {}),
    "a sure cause": (told("small_requests"), {}),
    "all of the time": (told("few_aggregators", time=12.0), {}),
    "a possible cause": (told("serialised", confidence="medium"), {}),
    "a possible exchange": (told("exchange", confidence="medium"), {}),
    "nothing is known": ([], {}),
    "fast": ([FAST], {}),
    "reads took no time": ([side("read", 1.6e9, 1.6e10, low=False), SLOW], {}),
    # a tenth of the time is not worth a sentence, unless the cause is sure
    "a possible cause of a tenth": (told("small_requests", time=1.0, confidence="medium"), {}),
    # read-modify-write costs 0.9 s by its counters; what the other 9 s of collective calls are is not certain
    "a sure cause of a tenth before a possible one of the rest": (
        first("read_modify_write", what=RMW, time=0.9, of=told("exchange", confidence="medium")),
        {},
    ),
    "a possible cause before a sure one of less": (
        first("read_modify_write", what=RMW, time=0.4, of=told("exchange", confidence="medium")),
        {},
    ),
    "large requests": ([SLOW], {"files": mean(4 << 20)}),
    "small requests": ([SLOW], {"files": mean(4096)}),
    # 23 s, a rank 10 s
    "large requests that are slower": ([side("write", 1.6e9, 7e7, low=True)], {"files": mean(4 << 20)}),
    "ranks that are not alike": ([FAST], {"waiting_s": 6.0}),
    "opening took most of the time": (told("small_requests", time=3.0), {"opening_s": 6.0}),
    # ranks that wait for a CPU meet late
    "opening beside waits for a CPU": (told("small_requests", time=3.0), {"opening_s": 6.0, "no_cpu": 0.2}),
    "metadata took most of the time": (
        told("metadata", "opens{of}, 3,000 times by each rank", time=6.0),
        {"opening_s": 6.0},
    ),
    # MPI_File_open and MPI_File_close of one file take 63 ms of a healthy run of 0.5 s
    "opening of any run": (
        [SHORT],
        {
            "io_s": 0.118,
            "run_s": 0.516,
            "opening_s": 0.0635,
            "files": [{"file": "/a/start.pyc", "mean_write_bytes": None, "time_s": 0.01}],
        },
    ),
    "opening of more than any run": ([SHORT], {"io_s": 0.2, "run_s": 0.516, "opening_s": 0.15}),
    "opening that is possible": (told("opening", confidence="medium"), {"opening_s": 9.0}),
    # little I/O is little by the calls in the log; files that are open for long may be mapped
    "little by a log": ([], {"io_s": 0.1, "run_s": 26.0, "logged": True}),
    "little by a log that does not count all": (
        [],
        {"io_s": 0.1, "run_s": 26.0, "logged": True, "uncounted": "Ranks wait."},
    ),
    "at least by a log": ([], {"io_s": 9.0, "run_s": 26.0, "logged": True}),
    "between two bounds by a log": ([], {"io_s": 9.0, "logged": True, "io": Interval(6.0, 12.0)}),
    "little by a log, beside files that may be mapped": (
        [],
        {"io_s": 0.1, "run_s": 26.0, "logged": True, "unmoved": ["/a/map0", "/a/map1"]},
    ),
    "mapped files": ([], {"io_s": 0.01, "run_s": 10.0, "mapped": ["/a/x.npy", "/a/y"]}),
    # at least half of the time in I/O, and longer than the cause beside which they stand
    "calls with most of the time": ([], {"largest": CALLS}),
    "calls with less than half": ([], {"largest": dataclasses.replace(CALLS, seconds=Interval(4.9, 9.0))}),
    "calls with at least so much": ([], {"largest": dataclasses.replace(CALLS, seconds=Interval(6.0, 9.0))}),
    "calls with more than the cause": (told("metadata", "opens{of}", time=4.0), {"largest": CALLS}),
    "calls with hardly more than the cause": (told("metadata", "opens{of}", time=5.0), {"largest": CALLS}),
    "calls beside a possible cause": (told("metadata", "opens{of}", time=4.0, confidence="medium"), {"largest": CALLS}),
    "all is recorded": (told("metadata", OPENS), {}),
    "recordings lack something": (told("metadata", OPENS), {"whole": False}),
    "little I/O": (told("metadata", OPENS), {"io_s": 0.1, "run_s": 26.0}),
    "hardly likely": (told("unaligned", confidence="low"), {}),
    "hardly likely, and seen": (first("unaligned", confidence="low", of=told("slow_file", confidence="low")), {}),
    **{f"{time} s of 10 s": (told("turns", time=time), {}) for time in (9.99, 9.6, 9.0)},
    # no finding has more than the time in I/O
    **{
        f"{cause} of more than the time in I/O": (told(cause, WAITS, time=4.0), {"io_s": 3.0, "run_s": 10.0})
        for cause in ("late_rank", "serialised")
    },
    # other calls come first, if they explain more than a cause does, or most of what an inexact cause has
    "locks alone": ([], {"io_s": 5.0, "run_s": 10.0, "others": [LOCKS]}),
    **{
        f"{name} beside {cause} of {time} s": (
            told(cause, WAITS, time=time),
            {"io_s": 5.0, "run_s": 10.0, "others": [other]},
        )
        for name, other in (("locks", LOCKS), ("renames", RENAMES))
        for cause, time in (("late_rank", 4.5), ("late_rank", 3.5), ("metadata", 4.5))
    },
    "locks of a long time in I/O": ([], {"io_s": 25.0, "run_s": 30.0, "others": [LOCKS]}),
    "locks of little time": ([], {"io_s": 0.01, "run_s": 10.0, "others": [dataclasses.replace(LOCKS, seconds=0.01)]}),
    # a page does not say 0 % of a run whose I/O nobody counts
    **{
        f"{left} s on files of the system beside {io} s": (
            [],
            {"io_s": io, "run_s": 10.0, "left_s": left, "left": SYSTEM},
        )
        for io, left in ((0.0, 4.0), (0.0, 1e-6), (0.1, 0.01))
    },
}


@pytest.mark.parametrize("name", SENTENCES)
def test_first_sentences(name: str, expected: Expected) -> None:
    one, known = SENTENCES[name]
    sure = {key: value for key, value in known.items() if key != "whole"}
    expected({"cause": led(one, **sure), "sentence": said(one, **known)})


def test_no_help_where_a_cause_is_unlikely_or_opening_takes_the_time() -> None:
    weak, small = told("unaligned", confidence="low"), told("small_requests", time=3.0)
    opened = opening.Spent(io_s=10.0, run_s=26.3, opening_s=6.0)
    assert gains.help_of(weak, SPENT, None, "./app", 4) is None
    assert gains.help_of(small, opened, None, "./app", 4) is None


def test_sentences_beside_the_first_one(expected: Expected) -> None:
    """Why the library has reported on no file (None: no process has initialised MPI); shares; time in delegates."""
    silent = [(False, False, []), (False, True, []), (True, True, ["a", "b"]), (None, False, []), (True, False, [])]
    rows = [{"delegated_s": 6.0, "flush_barrier_s": 2.0}, {"delegated_s": 0.0, "flush_barrier_s": 0.0}]
    expected(
        {
            "silent": [
                gather._silent(
                    {"uses_mpiio": bool(uses), "processes": 2}, "./app", there, Stood(), unclosed, uses is None
                )
                for uses, there, unclosed in silent
            ],
            "shares": [opening.share_text(seconds, 20.0) for seconds in (6.8e-15, 0.0, 0.04)],
            "delegates": delegated.notice(["a", "b"], rows, 4, 2.5),
            "delegates, fast": delegated.notice(["a"], rows, 4, 4.5),
            "delegates, unknown": delegated.notice(["a"], [], 4, 0.0),
        }
    )


def test_a_gain_has_a_basis(expected: Expected) -> None:
    """What the library has measured comes first; else it is at most the time that the finding is about."""
    small = told("small_requests")
    small[0]["findings"][0]["advice"] = [
        {"text": "Many files: Do.", "command": ""},
        {"text": "Sort: Use it.", "command": "mpiio-ext run -H a=1 -- app"},
    ]
    plain = gains.help_of(small, SPENT, None, "./app", 4)
    says = "would pay here: …; with mpiox_delegates=2 they become about 2.8 to 11 times faster, if …"
    paying = opening.paying([{"delegation": says}], "./app", 4)
    steps = ["Let the tuner: `mpiio-ext tune -- ./app`", "Sort.", "Let delegates collect them."]
    finding, way = gains.found(small, "Title.")
    assert plain is not None and opening.paying([{"delegation": "2 delegates"}], "./app", 4) is None
    expected(
        {
            "plain": plain,
            "sentence": opening.help_sentence(plain),
            "measured": gains.help_of(small, SPENT, paying, "./app", 4),
            "steps": gains.with_gains(steps, finding, way, SPENT, 4, None),
            "steps, measured": gains.with_gains(steps, finding, way, SPENT, 4, paying),
        }
    )


def test_columns_without_values_are_left_out(tmp_path: pathlib.Path) -> None:
    (tmp_path / STATISTICS).write_text('{"kind":"file","path":"a","write_requests":3,"write_request_bytes":3}')
    document = {"facts": [["a", "b"]], "library": library.table(library.read(tmp_path / STATISTICS)[0])}
    document = of_folder(tmp_path) | document
    assert '<section id="library">' not in page(document) and log_of(tmp_path / "run.darshan", 1) is None
    text = page({**document, "files": mpiio_ext.run_report(tmp_path / "run.darshan").document["files"]})
    assert "mean request</th>" in text and "between nodes</th>" not in text and ">why</th>" not in text


def test_statistics_of_a_file_are_added_up(tmp_path: pathlib.Path, expected: Expected) -> None:
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
    expected({"there": there, "files": library.table(files), "hints": library.hints(files)})
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

    recording = logged.Recording.of([logged.RunPage(target=tmp_path / "io.html")])
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
    recording = logged.Recording.of([logged.RunPage(target=tmp_path / "io.html", command=("./a b", "x"))])
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
    recording = logged.Recording.of([logged.RunPage(target=tmp_path / "io.html")])
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
