"""Requests of DXT and bytes of HEATMAP, against the numbers that a loop over requests gives; damaged logs."""

from __future__ import annotations

import bz2
import itertools
import math
import pathlib
import random
import re
import struct
import zlib
from typing import Any

import numpy as np
import pytest

from mpiio_ext.analytics.diagnosis import activity as module
from mpiio_ext.analytics.diagnosis import activity_counters, activity_read
from mpiio_ext.analytics.diagnosis.activity import Layout, Union
from mpiio_ext.analytics.diagnosis.activity_read import activity, activity_of
from mpiio_ext.analytics.report import drawing
from mpiio_ext.analytics.report.findings import Known
from mpiio_ext.analytics.report.job_page import job_page
from mpiio_ext.analytics.report.timeline import rank_chart
from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.common.darshanfile import Columns, DamagedLogError, DarshanFile
from support import darshan_rows
from support.darshan_logs import Job, Log, make_log, mutated_inside, packaged_logs
from support.html_page import Page

Request = tuple[int, int, float, float]
DXT, MPIIO, HEAT = 10, 11, 15


def dxt(file: int, rank: int, writes: list[Request], order: str = "<", thread: bool = True) -> bytes:
    head = struct.pack(f"{order}Qqq64sqq", file, rank, -1, b"node", len(writes), 0)
    tail = struct.pack(f"{order}q", 7) if thread else b""
    return head + b"".join(struct.pack(f"{order}qqdd", *each) + tail for each in writes)


def random_records(seed: int, files: int = 3, ranks: int = 4) -> dict[tuple[int, int], list[Request]]:
    rng = random.Random(seed)
    records = {}
    for file, rank in itertools.product(range(1, files + 1), range(ranks)):
        time, found = rng.random(), []
        for _ in range(rng.randrange(1, 40)):
            took = rng.random() * 0.2
            found.append((rng.randrange(1 << 22), rng.randrange(1, 1 << 20), time, time + took))
            time += took + rng.random() * 0.1
        records[file, rank] = found
    return records


def covered(parts: list[tuple[float, float]]) -> float:
    total, until = 0.0, -1.0
    for start, end in sorted(parts):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def partly(requests: list[Request], size: int) -> set[int]:
    """Return the blocks of which requests cover a part at one of their ends."""
    ends = [(first, first) for first, *_ in requests]
    ends += [(first + length - 1, first + length) for first, length, *_ in requests]
    return {place // size for place, edge in ends if edge % size}


@pytest.mark.parametrize(("order", "thread", "how"), [("<", True, 0), (">", False, 0), ("<", False, 1), ("<", True, 2)])
def test_requests_against_a_loop(
    order: str, thread: bool, how: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_read, "_BATCH", 50)
    records = random_records(5)
    data = b"".join(dxt(file, rank, found, order=order, thread=thread) for (file, rank), found in records.items())
    log = bytearray(make_log(Job(), {}, {DXT: (2 if thread else 1, data)}, order=order))
    if how:
        region = bz2.compress(data[:999]) + bz2.compress(data[999:]) if how == 1 else data
        at = log.index(zlib.compress(data))
        log[at:] = region
        log[16] = how
        struct.pack_into("<Q", log, 32 + 16 * (DXT + 1) + 8, len(region))
    (tmp_path / "a.darshan").write_bytes(log)
    found = activity(tmp_path / "a.darshan", {file: Layout(4096, 1 << 16, 4) for file in (1, 2, 3)}, 4, 20.0)
    assert found is not None and found.source == "DXT" and not found.partial
    every = [(start, end) for each in records.values() for _, _, start, end in each]
    assert found.wall[True] == pytest.approx(covered(every)) == pytest.approx((found.busy[1] - found.busy[0]).sum())
    assert found.line[1].sum() == pytest.approx(sum(end - start for start, end in every))
    assert found.durations[True].sum() == len(every)
    for file in (1, 2, 3):
        row = found.rows[file, True]
        own = {rank: records[file, rank] for rank in range(4)}
        assert row.wall == pytest.approx(covered([each[2:] for part in own.values() for each in part]))
        for place, rank in enumerate(row.ranks):
            part = own[rank]
            assert (row.requests[place], row.moved[place]) == (len(part), sum(length for _, length, _, _ in part))
            assert row.busy[place] == pytest.approx(covered([each[2:] for each in part]))
            assert (row.first[place], row.last[place]) == (part[0][2], part[-1][3])
        pairs = [(b[0] - a[0] - a[1]) for part in own.values() for a, b in itertools.pairwise(part)]
        assert (row.pairs, row.forward) == (len(pairs), sum(each >= 0 for each in pairs))
        assert row.unaligned == sum(each[0] % 4096 != 0 for part in own.values() for each in part)
        parts = [partly(part, 1 << 16) for part in own.values()]
        blocks = set().union(*parts)
        assert row.blocks == len(blocks)
        assert row.shared == sum(sum(block in each for each in parts) > 1 for block in blocks)


def test_real_logs() -> None:
    """The bytes are those of the counters; of a log that ran out of memory that is said."""
    for name, write, partial in (("few_aggregators", True, False), ("random_reads", False, True)):
        path = darshan_rows.shared_data("known_truth", f"{name}-4-dxt.darshan")
        tables = convert([path.name], str(path.parent)).tables
        found = activity_of(path, tables)
        assert found is not None and found.partial == partial
        column = tables["darshan_file"]["bytes_written" if write else "bytes_read"]
        counted = max(column.to_pylist())
        told = max(row.moved.sum() for (_, way), row in found.rows.items() if way == write)
        assert (told == counted) == (not partial) and found.heat[write].sum() == pytest.approx(counted, rel=1e-6)


def test_heat_alone(tmp_path: pathlib.Path) -> None:
    """Two ranks that take turns: bytes in 3 of 4 bins, one rank in each."""

    def record(number: int, rank: int, written: list[int]) -> bytes:
        return struct.pack("<Qqdqqq", number, rank, 0.5, 4, 0, 0) + struct.pack("<8q", *written, 0, 0, 0, 0)

    heat = record(9, 0, [100, 0, 7, 0]) + record(9, 1, [0, 0, 0, 50]) + record(8, 1, [1, 1, 1, 1])
    log = make_log(Job(processes=2), {9: "heatmap:POSIX", 8: "heatmap:MPIIO"}, {HEAT: (1, heat)})
    (tmp_path / "a.darshan").write_bytes(log)
    found = activity(tmp_path / "a.darshan", {}, 2, 2.0)
    assert found is not None and found.source == "HEATMAP" and found.rows == {}
    assert (found.wall[True], found.wall[False], found.resolution) == (1.5, 0.0, 0.5)
    assert found.in_turn[True] == (1.0, 3) and found.heat[True].tolist() == [107, 50]
    assert found.line[1].sum(axis=1).tolist() == [107, 50] and not found.partial
    (tmp_path / "a.darshan").write_bytes(make_log(Job(processes=2), {9: "heatmap:POSIX"}, {HEAT: (1, heat[:-9])}))
    cut = activity(tmp_path / "a.darshan", {}, 2, 2.0)
    assert cut is not None and cut.heat == {} and cut.partial


def test_any_bytes(tmp_path: pathlib.Path) -> None:
    """Whatever a log has, before it is compressed, too: activity, or none, and no other error."""
    content = darshan_rows.shared_data("known_truth", "read_modify_write-4-dxt.darshan").read_bytes()
    rng = random.Random(3)
    for _ in range(60):
        spoilt = bytearray(content)
        for _ in range(3):
            spoilt[rng.randrange(len(spoilt) if rng.random() < 0.5 else 1500)] = rng.randrange(256)
        cut = spoilt[: rng.randrange(len(spoilt))] if rng.random() < 0.3 else spoilt
        for damaged in (cut, mutated_inside(content, rng)):
            (tmp_path / "a.darshan").write_bytes(damaged)
            activity(tmp_path / "a.darshan", {}, 4, 1.0)
    (tmp_path / "a.darshan").write_bytes(b"no log")
    with pytest.raises(DamagedLogError, match="no log of Darshan"):
        DarshanFile(tmp_path / "a.darshan")


@pytest.mark.parametrize("times", [(math.nan, 1.0), (0.5, math.nan), (-math.inf, 1.0), (0.5, math.inf)])
def test_times_that_are_none(times: tuple[float, float], tmp_path: pathlib.Path) -> None:
    """A record with such a request is left out, and the log is in part; the others count as if it were not there."""
    good = dxt(1, 0, [(0, 4096, 0.5, 1.0), (4096, 4096, 1.5, 2.0)])
    found = []
    for data in (good, dxt(1, 1, [(0, 8, 0.1, 0.2), (8, 8, *times)]) + good):
        (tmp_path / "a.darshan").write_bytes(make_log(Job(processes=2), {}, {DXT: (2, data)}))
        found.append(activity(tmp_path / "a.darshan", {}, 2, 3.0))
    alone, beside = found
    assert alone is not None and beside is not None
    assert (alone.partial, beside.partial) == (False, True)
    assert alone.wall == beside.wall and np.array_equal(alone.line, beside.line)


def test_names_and_modules_are_those_of_the_header() -> None:
    path = darshan_rows.example("ior_hdf5_example.darshan")
    log = DarshanFile(path)
    assert {"DXT_POSIX", "DXT_MPIIO", "LUSTRE", "H5D"} <= set(log.modules)
    assert "/global/cscratch1/sd/ssnyder/test123.h5" in dict(log.names()).values()
    assert not log.partial("DXT_POSIX") and Log.parse(path.read_bytes()).version == log.version


def test_a_union_of_too_many_parts_fills_its_shortest_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PARTS", 100)
    union, start = Union(), np.arange(1000) * 1.0
    for at in range(0, 1000, 10):
        union.add(start[at : at + 10], start[at : at + 10] + 0.5)
    assert len(union.parts()[0]) <= 200 and 500 <= union.seconds <= 1000


def test_a_page_shows_what_ranks_do_when(tmp_path: pathlib.Path) -> None:
    """Reads, writes and metadata by band and bin; hundreds of ranks are bands of a page that stays small."""
    path = darshan_rows.shared_data("known_truth", "metadata_storm-4-dxt.darshan")
    tables = convert([path.name], str(path.parent)).tables
    found = activity_of(path, tables)
    assert found is not None
    meta = sum(value or 0 for value in tables["darshan_file"]["meta_time"].to_pylist())
    assert found.line[2].sum() == pytest.approx(meta, rel=0.02)
    chart = rank_chart(found)
    assert chart is not None and set(chart.data["levels"]) == {"reads", "writes", "metadata"}
    assert not np.array(chart.data["levels"]["reads"]).any() and np.array(chart.data["levels"]["metadata"]).max() == 24
    page = job_page(tables, Known(activity=found))
    assert "Ranks over time" in page and "Each row is a rank" in page
    (large,) = darshan_rows.shared_data("darshan").glob("jlbez*.darshan")
    tables = convert([large.name], str(large.parent)).tables
    page = job_page(tables, Known(activity=activity_of(large, tables)))
    assert "a group of ranks" in page and len(page) < 450_000


def test_figures_of_a_job_have_a_form_for_phones(tmp_path: pathlib.Path) -> None:
    """Each as wide as a phone, 336 pixels, with names of its own, and with fewer bins."""
    (large,) = [path for path in packaged_logs() if path.name == "sample-dxt-simple.darshan"][:1]
    tables = convert([large.name], str(large.parent)).tables
    found = activity_of(large, tables)
    text = job_page(tables, Known(activity=found))
    assert Page(text).problems == []
    wide, *narrow = text.split('<div class="drawing narrow">')
    assert len(narrow) >= 2 and wide.count('<div class="drawing wide">') == 1
    assert all(re.match(r'\s*<svg[^>]* width="252(\.0)?pt"', each) for each in narrow)
    chart = rank_chart(found) if found is not None else None
    assert chart is not None
    one = drawing.figure(chart)
    assert one.narrow.count("<") < one.drawing.count("<") * 1.1


def test_files_that_no_call_moves() -> None:
    """Open for 4 s without a read or a write: all may be by mmap, where it is called, or the log does not count it."""
    counters, times = np.zeros((5, 40), np.int64), np.zeros((5, 20))
    counters[:, 7], times[:, 7] = [-1, 0, -1, -1, 1], 4.0
    counters[2, 4] = 1  # it is written
    times[3, 0] = 3.0  # opened late
    found = module.Activity("", 1, 5.0)
    records: Any = {"file": np.arange(5), "counters": counters, "times": times}
    activity_counters._add_unmoved(found, Columns(records, "POSIX"))
    assert {file: calls.unmoved for file, calls in found.calls.items()} == {0: 4.0, 3: 1.0, 4: 4.0}
