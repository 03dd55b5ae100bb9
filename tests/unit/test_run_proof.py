"""What the first sentence of a run proves: how files are named, and when nothing needs a change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mpiio_ext.analytics.diagnosis.words import short_name
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.ledger import Interval, Ledger
from mpiio_ext.analytics.ledger.records import LAYERS, empty
from mpiio_ext.analytics.run import failures, gather, opening
from mpiio_ext.analytics.run.failed import Stood
from mpiio_ext.analytics.run.others import Others, groups
from mpiio_ext.pioneer.darshan.steps import Seen
from mpiio_ext.pioneer.darshan.tallies import of_rows


def said(one: list[dict[str, Any]], io_s: float = 10.0, run_s: float = 26.3, *, whole: bool = True, **more: Any) -> str:
    return opening.first_sentence(one, opening.Spent(io_s=io_s, run_s=run_s, **more), whole=whole)


def side(direction: str, moved: float, rate: float, *, low: bool) -> dict[str, Any]:
    """Return a diagnosis without a cause: bytes, and bandwidth from the first to the last access and in calls."""
    return {
        "findings": [],
        "direction": direction,
        "low_bandwidth": low,
        "facts": [{"unit": "B", "value": moved}, {"unit": "B/s", "value": 1.0}, {"unit": "B/s", "value": rate}],
    }


def test_names_are_as_long_as_it_takes_to_tell_files_apart() -> None:
    """A base name, unless the run has another file of that name, whether or not the sentence is about it."""
    for name, among, short in (
        ("/a/b/out", ["/a/b/out", "/a/c/in"], "out"),
        ("/a/b/out", ["/a/b/out", "/a/c/out"], "b/out"),
        ("/a/b/out", ["/a/b/out", "/c/b/out", "/x.out"], "a/b/out"),
        ("/b/out", ["/a/b/out"], "/b/out"),
        ("out", ["/a/out"], "out"),
        ("out", [], "out"),
        ("/", [], "/"),
    ):
        assert short_name(name, among) == short
    names = ["/a/out.h5", "/b/out.h5"]
    unmoved = said([], 0.1, 26.0, logged=True, unmoved=names[1:2], names=names)
    assert "reads or writes `b/out.h5`, open for most of the run" in unmoved


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ({}, "; nothing to change."),
        ({"waiting_s": 1.9, "opening_s": 1.9, "others": [Others(words="", seconds=1.9)]}, "; nothing to change."),
        *(({name: 2.1}, "; nothing found to change.") for name in ("waiting_s", "opening_s", "left_s")),
        ({"others": [Others(words="", seconds=1.0), Others(words="", seconds=1.1)]}, "; nothing found to change."),
        ({"mapped": ["/a/b"]}, "; nothing found to change."),
        ({"logged": True}, "; nothing found to change."),  # locks, msync and failed calls are not in a log
        ({"lost": True}, "which is not low."),
        ({"whole": False}, "which is not low."),
    ],
)
def test_nothing_to_change_is_proven(more: dict[str, Any], end: str) -> None:
    """All calls are seen, and none but fast reads and writes took as much as a fifth of the time in I/O."""
    fast = side("write", 18e9, 2e9, low=False)
    assert said([fast], **more).endswith(end)
    assert said([fast, side("read", 1e8, 5e7, low=True)], **more).endswith("which is not low.")
    assert said([fast, side("read", 5e7, 5e7, low=True)], **more).endswith(end)


@pytest.mark.parametrize(
    ("nonblocking", "waited_s", "requests_s", "bounds", "in_vain"),
    [
        (12, 0.9, 1.0, (1.2, 1.3), True),
        (12, 0.9, 0.0, (1.2, 1.3), False),
        (12, 0.0, 1.0, (0.3, 1.3), False),
        (0, 0.0, 1.0, (1.3, 1.3), False),
    ],
    ids=["the program waits", "requests are not recorded", "the program computes meanwhile", "blocking calls"],
)
def test_requests_of_nonblocking_calls_may_overlap(
    nonblocking: int, waited_s: float, requests_s: float, bounds: tuple[float, float], in_vain: bool
) -> None:
    """Threads of rank 1 write one file for 1 s; by itself the rank writes another one for 0.2 s."""
    records = empty(3)
    records["file"], records["layer"], records["rank"] = [1, 1, 2], [0, LAYERS.index("MPI-IO"), 0], 1
    records["seconds"][:, 1], records["pending"] = [requests_s, 0.1, 0.2], [0, nonblocking, 0]
    rows: list[tuple[Any, ...]] = [(1, "mpiio", "write", "MPI_File_iwrite_at", "/a", "", False, True, 12, 0.1)]
    rows += [(1, "mpi", "other", "MPI_Wait", "/a", "", False, False, 12, waited_s)]
    seen = Seen(np.zeros(0), np.zeros(0), np.array([[0.0], [1.3]]) * np.ones(7) / 7, tallies=of_rows(rows))
    table = {"job_id": [1, 1], "file": ["/a", "/b"], "file_id": [1, 2], "ranks": [1, 1]}
    files = Files(pa.table(table), "write", "job_id")
    ledger = gather._recorded(Ledger(records, 2, 10.0), files, seen, Stood())
    found = ledger.slowest()
    assert (found.least, found.most) == pytest.approx(bounds)
    spent = opening.Spent(io_s=found.middle, run_s=10.0, io=found)
    assert gather._in_vain(ledger, files, seen, spent) == in_vain
    words = said([side("write", 18e9, 2e9, low=False)], in_vain=in_vain)
    assert words.endswith("which is not low; nothing overlaps the program's nonblocking or split calls.") == in_vain


@pytest.mark.parametrize("most_s", [0.5, 0.6])
def test_little_is_little_of_each_rank(most_s: float) -> None:
    words = said([], 0.1, 26.0, most_s=most_s)
    assert words.endswith("of 26 s): too little to be worth tuning.") == (most_s < 0.52)
    assert words.endswith("of 26 s); a single rank may have spent up to 600 ms.") == (most_s > 0.52)


def test_the_first_sentence_names_the_rank_of_its_time() -> None:
    """A bound is never printed as a fact: an interval that is not narrow has both ends."""
    slow = said([], 9.0, 10.0, whose="rank 3 of ", mean_s=2.0)
    assert slow.startswith("Rank 3 of your program spent 90 % of its time in I/O (9 s of 10 s; an average rank: 20 %);")
    wide = said([], 3.0, 10.0, whose="an average rank of ", io=Interval(2.0, 4.0))
    assert wide.startswith(
        "An average rank of your program spent between 20 % and 40 % of its time in I/O (between 2 s and 4 s of 10 s)."
    )
    assert said([], 3.0, 10.0, io=Interval(2.9, 3.1)).startswith("Your program spent 30 % of its time in I/O (3 s of")


def test_failures_and_other_calls_tell_files_apart() -> None:
    rows = [(0, "posix", "write", "write", "/a/out", "ENOSPC", False, False, 3, 0.5)]
    rows += [(0, "posix", "rename", "rename", "/b/out", "", False, False, 3, 0.5)]
    tallies = of_rows(rows)
    (line,) = failures.lines(tallies, {})
    assert " on `a/out` failed with ENOSPC" in line, line
    assert any(" of `b/out`" in one.words for one in groups(tallies, 0, 1))


def test_a_sentence_of_one_rank_names_no_file_of_another_one() -> None:
    """Each rank syncs a file of its own."""
    rows = [(rank, "posix", "mapping", "msync", f"/d/map.{rank}", "", False, False, 9, 1.0 + rank) for rank in range(3)]
    (alone,), (every,) = (groups(of_rows(rows), 2, 3, alone=it) for it in (True, False))
    assert "of `map.2` (msync)" in alone.words and alone.seconds == every.seconds == 3.0
    assert "of `map.2` and 2 more files (msync)" in every.words and "in such calls" in every.ranks
