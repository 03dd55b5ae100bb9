"""What the page of a run says of its files: locks, and the arrays in them."""

from __future__ import annotations

import dataclasses
import pathlib
import re

import numpy as np
import pytest

import mpiio_ext
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls
from mpiio_ext.analytics.report.findings import findings
from mpiio_ext.analytics.report.timeline import rank_chart
from mpiio_ext.analytics.run import asked, conflicts, library
from mpiio_ext.analytics.run import files as accessed
from mpiio_ext.analytics.run.failures import Lost
from mpiio_ext.analytics.run.page import page
from mpiio_ext.common import page as pages
from mpiio_ext.partitioning import Geometry
from mpiio_ext.partitioning.locks import lustre, simulate
from mpiio_ext.pioneer.darshan.names import record_id
from support.html_page import Page
from support.run_logs import log_of


def test_writes_cost_locks_where_the_file_system_grants_them(tmp_path: pathlib.Path) -> None:
    """Ranks write 8 MiB each, one behind the other; of stripes of 3 MiB two are of two ranks."""
    name, log = "/scratch/out.h5", tmp_path / "run.darshan"
    log_of(log, 4, count=8, size=1 << 20)
    layout = {
        "file": name,
        "file_system": "lustre",
        "stripe_size": str(3 << 20),
        "stripe_count": "4",
        "servers": None,
        "lock_protocol": "server",
    }
    did = {
        "path": "./out.h5",
        "collective_writes": 2,
        "bytes_written": 64 << 20,
        "direct_bytes_written": 0,
        "rounds": 8,
        "write_partition": "even",
    }
    numbers = {name: int(np.array([record_id(name)], np.uint64).view(np.int64)[0])}
    (row,) = conflicts.table(log, numbers, [layout], [did])
    assert [row[key] for key in ("writes", "units", "shared_units", "conflicts")] == [32, 11, 2, 2]
    geometry = Geometry(end_bytes=32 << 20, stripe_size_bytes=3 << 20, servers=4, aggregators=4)
    out = {
        one: simulate(geometry, one, file_system=lustre(), window_bytes=2 << 20, collectives=2).total_conflicts
        for one in ("even", row["least_method"])
    }
    assert out["even"] == row["plan_conflicts"] > row["least_conflicts"] == out[row["least_method"]]
    document = mpiio_ext.run_report(log).document
    text = page({**document, "storage": [layout], "locks": [row]})
    assert f"even: {row['plan_conflicts']} of" in text and not Page(text).problems and document["locks"] == []
    (alone,) = conflicts.table(log, numbers, [layout], [])
    assert alone["conflicts"] == 2 and alone["method"] is None
    local = [layout | {"lock_protocol": protocol} for protocol in ("local", "none", None)]
    assert conflicts.table(log, numbers, local, [did]) == []
    log_of(log, 4, dxt=False)
    assert conflicts.table(log, numbers, [layout], [did]) == []  # nobody tells who wrote


@pytest.mark.parametrize(("order", "words"), [(None, accessed.UNTOLD), (0, "random places"), (99, "contiguous")])
def test_an_order_that_no_counter_has_is_not_called_random(order: int | None, words: str) -> None:
    row = {"reads": 100, "consec_reads": order, "seq_reads": order}
    assert accessed._pattern("read", row, None, 1) == words


def test_views_tell_the_arrays_in_a_file() -> None:
    doubles = ["MPI_DOUBLE A(64,64,64;32,32,64;0,0,0;0;8)", "MPI_DOUBLE A(64,64,64;32,32,64;32,0,0;0;8)"]
    of_hdf5 = "MPI_BYTE R(0;33554432;V(256;1;131072;V(256;16;512;C(8;1))))"
    for views, words in (
        (doubles, "64 × 64 × 64 doubles in blocks of 32 × 32 × 64"),
        (
            [*doubles, doubles[0].replace("32,32,64", "31,32,64")],
            "64 × 64 × 64 doubles in blocks of 31 × 32 × 64 to 32 × 32 × 64",
        ),
        (["MPI_FLOAT A(10,20,30;10,20,30;0,0,0;1;4)"], "30 × 20 × 10 floats as a whole"),  # Fortran's order
        (["MPI_INT D(4;1;100,60;1,0;-1,-1;4,1;0;4)"], "100 × 60 ints in blocks of 25 × 60"),
        ([of_hdf5], "256 × 256 × 64 elements of 8 B in blocks of 256 × 256 × 16"),
        (
            ["MPI_BYTE V(10;3;40;1)", " V(10;3;40;1)"],
            "… × 40 bytes in blocks of 10 × 3; … × 40 elements of 1 B in blocks of 10 × 3",
        ),
        (["MPI_INT I(1,2;0,40;4)", "MPI_INT V(10;3;42;4)", "MPI_BYTE V(2;1;8;I(1,1;0,6;1))", "MPI_BYTE x", "4"], ""),
    ):
        assert asked.described(views) == words


def test_metadata_calls_without_times_are_no_picture() -> None:
    """Spread evenly over the time in which files are open they say nothing of what ranks do when."""
    seen = Activity("", 2, 10.0, line=np.ones((3, 2, 4)))
    assert rank_chart(seen) is None
    assert rank_chart(dataclasses.replace(seen, source="HEATMAP")) is not None


def test_a_finding_of_both_directions_is_told_once() -> None:
    def told(direction: str, confidence: int, title: str, *advice: str) -> dict[str, object]:
        evidence = [f"For the {direction}s", f"files of {direction}s"]
        one = pages.Finding(title=title, evidence=evidence, advice=advice)
        return {"shown": [((confidence, 0.0), one)]}

    every = [
        told("read", 1, "Storm.", "Open once."),
        told("write", 0, "Storm.", "Open once."),
        told("read", 2, "Storm.", "Another advice."),
    ]
    first, other = findings(every)
    assert first.evidence == ["For the writes", "For the reads", "files of writes"]
    assert (other.title, other.advice) == ("Storm.", ("Another advice.",))


@pytest.mark.parametrize(
    ("views", "words"),
    [
        (["MPI_BYTE V(4096;512;1024;1)"], "in pieces of 512 B, strided by a view"),
        (
            ["MPI_DOUBLE A(512,512,64;256,256,64;0,0,0;0;8)", "MPI_BYTE V(9;512;1024;1)"],
            "in pieces of 512 B to 128 KiB, strided by a view",
        ),
        (["MPI_BYTE 1", "MPI_DOUBLE A(100,8;25,8;0,0;0;8)"], ""),  # a block of whole rows is contiguous
        (["MPI_BYTE I(1,2;0,100;1)"], "in pieces, strided by a view"),
        (["MPI_BYTE nonsense"], "in pieces, strided by a view"),
        ([], ""),
    ],
)
def test_in_which_pieces_a_view_has_a_file(views: list[str], words: str) -> None:
    assert asked.pieces(views) == words


def test_on_a_phone_a_wide_table_is_a_list(tmp_path: pathlib.Path) -> None:
    """Each cell of it says of which column it is; the words of the library are apart from its numbers."""
    log_of(tmp_path / "run.darshan", 2)
    row = library.table(
        [
            {"path": "a"}
            | library._NOTHING
            | {"write_requests": 1, "write_request_bytes": 9, "rounds": 1, "write_reason": "2 of 2 aggregators: why"}
        ]
    )[0]
    text = page(mpiio_ext.run_report(tmp_path / "run.darshan").document | {"library": [row]})
    (tables,) = re.findall(r'<section id="library">(.*?)</section>', text, re.S)
    words, numbers = re.findall(r"<table.*?</table>", tables, re.S)
    for table in (words, numbers):
        columns = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
        assert columns == re.findall(r'data-label="(.*?)"', table) and columns[0] == "file" and "cards" in table
    assert "why" in words and "why" not in numbers and "rounds" in numbers


def test_one_call_has_no_order() -> None:
    row = {
        "collective_writes": 0,
        "independent_writes": 1,
        "collective_reads": 0,
        "independent_reads": 0,
        "writes": 1,
        "reads": 0,
        "asked_written_bytes": 1024,
        "write_pattern": "one request a rank",
        "read_pattern": None,
        "write_sizes": None,
        "mean_write_bytes": 1024.0,
    }
    alone = Calls(asked={True: np.zeros(5)}, askers={0})
    assert asked.by_program(row, alone, (), Lost()) == "written: 1 independent call of 1 KiB"
    assert asked.by_storage(row, ()) == "written: 1 request of 1 KiB"
    many, did = row | {"writes": 7, "write_pattern": "random places"}, {"rounds": 0, "requests": 7, "request_bytes": 9}
    assert asked.by_storage(many, [did]).endswith(", random places")
    assert asked.by_storage(many, [did | {"rounds": 9}]).endswith(", by rounds of aggregators")
