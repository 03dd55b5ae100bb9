"""What a first pass over a trace finds: clocks that differ and drift, and names that the tracer has cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mpiio_ext.pioneer.clocks import corrected, fit
from mpiio_ext.pioneer.readers import ltrace, strace
from mpiio_ext.pioneer.sanitize.survey import MOST_POINTS, take_survey
from mpiio_ext.pioneer.table import SCHEMA, Source, TraceInfo, info_of, with_info

Row = dict[str, Any]
SECOND = 10**9
START = 1_700_000_000 * SECOND


def batches_of(rows: list[Row], size: int = 1000) -> list[pa.RecordBatch]:
    defaults: Row = {"layer": "posix", "thread": 0, "line": 1, "timestamp": 0, "rank": 0, "depth": 0}
    return pa.Table.from_pylist([defaults | row for row in rows], SCHEMA).to_batches(max_chunksize=size)


def trace_of(
    ranks: int,
    moments: int,
    offset_ns: list[int],
    drift: list[float],
    noise_ns: float,
    seed: int = 1,
    *,
    late_share: float = 0.05,
) -> list[Row]:
    """Return barriers, which all ranks leave together but for noise, and a write of each rank at the same moment."""
    random = np.random.default_rng(seed)
    rows = []
    for rank in range(ranks):
        for k in range(moments):
            leave = START + k * 10 * SECOND
            late = abs(random.normal(0, noise_ns)) + (random.random() < late_share) * 2_000_000  # not scheduled at once
            waited = int(random.integers(1_000_000, 900_000_000))
            begin, end = leave - waited, leave + late
            own = [round(when + offset_ns[rank] + drift[rank] * (when - START)) for when in (begin, end)]
            rows.append(
                {
                    "operation": "MPI_Barrier",
                    "layer": "mpi",
                    "rank": rank,
                    "timestamp": own[0],
                    "duration": own[1] - own[0],
                    "extra": '{"comm":"world"}',
                }
            )
            when = leave + 5 * SECOND
            rows.append(
                {
                    "operation": "write",
                    "rank": rank,
                    "duration": 1000,
                    "file": "f",
                    "timestamp": round(when + offset_ns[rank] + drift[rank] * (when - START)),
                }
            )
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_offset_and_drift_are_found(seed: int) -> None:
    """Clocks half a second off that gain 30 us a second: after 1000 seconds the ranks agree to 20 us."""
    offsets, drifts = [0, 500_000_000, -123_456_789, 7], [0.0, 30e-6, -12e-6, 0.0]
    rows = trace_of(4, 100, offsets, drifts, 5_000, seed)
    info = TraceInfo(format="test")
    survey = take_survey(info, iter(batches_of(rows)))
    for rank in (1, 2):
        clock = survey.clocks[rank]
        assert clock.points == 100
        assert abs(clock.drift - drifts[rank]) < 0.2e-6
        assert clock.spread_ns < 50_000
    assert abs(survey.clocks[3].offset_ns) < 20_000
    assert info.clocks[0].offset_ns == 0
    fixed = pa.Table.from_batches(list(survey.apply(batches_of(rows)))).to_pylist()
    writes: dict[int, list[int]] = {
        rank: [row["timestamp"] for row in fixed if row["rank"] == rank and row["operation"] == "write"]
        for rank in range(4)
    }
    for rank in range(1, 4):
        assert max(abs(a - b) for a, b in zip(writes[rank], writes[0], strict=True)) < 20_000
    assert [row["duration"] for row in fixed if row["operation"] == "write"] == [1000] * 400
    lines = list(survey.report())
    assert any("rank 1: its clock is " in line and "100 moments" in line for line in lines)
    assert info_of(with_info(SCHEMA, info)).clocks == info.clocks


def test_clocks_that_agree_are_left_alone() -> None:
    rows = trace_of(3, 10, [0, 0, 0], [0.0] * 3, 0.0, late_share=0)
    survey = take_survey(TraceInfo(format="test"), iter(batches_of(rows)))
    assert {(clock.drift, clock.offset_ns, clock.points) for clock in survey.clocks.values()} == {(0.0, 0, 10)}
    assert list(survey.apply(batches_of(rows))) == batches_of(rows)


def test_ranks_of_one_host_have_one_clock() -> None:
    offsets = [0, 0, 70_000_000, 70_000_000]
    rows = trace_of(4, 20, offsets, [0.0] * 4, 3_000)
    sources = [Source(path="x", rank=rank, host="ab"[rank // 2]) for rank in range(4)]
    survey = take_survey(TraceInfo(format="test", sources=sources), iter(batches_of(rows)))
    found = [survey.clocks[rank].offset_ns for rank in range(4)]
    assert found[0] == found[1] == 0
    assert found[2] == found[3]
    assert abs(found[2] - 70_000_000) < 10_000


def test_nothing_is_made_up() -> None:
    """No barrier, one rank, or ranks with different numbers of barriers: no clock is corrected."""
    rows = trace_of(2, 5, [0, 10**9], [0.0, 0.0], 0.0)
    for kept in (
        [row for row in rows if row.get("layer") != "mpi"],
        [row for row in rows if row["rank"] == 0],
        rows[:-2] + rows[-1:],
    ):
        info = TraceInfo(format="test")
        survey = take_survey(info, iter(batches_of(kept)))
        assert survey.clocks == {}
        assert list(survey.report()) == []
        assert pa.Table.from_batches(list(survey.apply(batches_of(kept)))) == pa.Table.from_batches(batches_of(kept))
    one = [{**row, "extra": '{"comm":"self"}'} if row.get("layer") == "mpi" else row for row in rows]
    assert take_survey(TraceInfo(format="test"), iter(batches_of(one))).clocks == {}


@pytest.mark.parametrize(("ahead_ns", "corrected_by"), [(55_000, 0), (10**9, 10**9)])
def test_one_moment_corrects_only_clocks_that_are_far_off(ahead_ns: int, corrected_by: int) -> None:
    """Ranks leave a single barrier at times that say nothing of single microseconds."""
    rows = trace_of(2, 1, [0, ahead_ns], [0.0, 0.0], 0.0)
    survey = take_survey(TraceInfo(format="test"), iter(batches_of(rows)))
    assert abs(survey.clocks[1].offset_ns - corrected_by) <= 10_000 * bool(corrected_by)
    assert len(list(survey.report())) == bool(corrected_by)


def test_two_moments_give_an_offset_and_no_drift() -> None:
    clock = fit([100, 1_000_000_100], [0, 1_000_000_050], rank=1)
    assert (clock.drift, clock.points) == (0.0, 2)
    assert corrected(np.array([100]), clock)[0] in (0, 50)


def test_the_moments_that_are_kept_are_bounded() -> None:
    """And thinned out in the same way on all ranks."""
    rows = trace_of(2, 3 * MOST_POINTS, [0, 40_000_000], [0.0, 20e-6], 2_000)
    survey = take_survey(TraceInfo(format="test"), iter(batches_of(rows, 5000)))
    assert MOST_POINTS // 2 <= survey.clocks[1].points <= MOST_POINTS
    assert abs(survey.clocks[1].drift - 20e-6) < 1e-8


def test_timing_file_of_lanl_trace(tmp_path: Path) -> None:
    """Barriers at the start and the end give offset and drift; times of day have no date."""
    midnight = 1_159_747_200
    lines = []
    for seconds in (40_000, 40_100, 40_200, 40_300):
        for rank, (ahead, gain) in enumerate(((0, 0), (2.5, 1e-4))):
            when = midnight + seconds + ahead + gain * (seconds - 40_000)
            lines.append(f"{rank}: host{rank} ({100 + rank}) Exited barrier at {when:.6f}")
    (tmp_path / "timing").write_text("\n".join(lines) + "\n")
    for rank in (0, 1):
        clock = 40_250 + (2.5 + 1e-4 * 250) * rank
        hours, rest = divmod(clock, 3600)
        text = f"{int(hours):02}:{int(rest // 60):02}:{rest % 60:09.6f}"
        (tmp_path / f"trace.{100 + rank}").write_text(f'{text} SYS_open("/f", 0, 0) = 3 <0.000001>\n' * 3)
    info, batches = ltrace.read([tmp_path])
    table = pa.Table.from_batches(list(batches))
    times = {rank: next(row["timestamp"] for row in table.to_pylist() if row["rank"] == rank) for rank in (0, 1)}
    assert times[0] == 40_250 * SECOND
    assert abs(times[1] - times[0]) < 5_000
    assert info.clocks[1].drift == pytest.approx(1e-4, rel=1e-3)


# ---- names -----------------------------------------------------------------------------------------------------------


def test_cut_names_are_found_whole_or_reported() -> None:
    cut = json.dumps({"cut": True})
    rows = [
        {"operation": "open", "file": "/scratch/run/part", "extra": cut},
        {"operation": "write", "file": "/scratch/run/part.0001", "handle": 3},
        {"operation": "open", "file": "/scratch/run/part", "extra": cut, "rank": 1},
        {"operation": "write", "file": "/scratch/run/part.0002", "rank": 1},
        {"operation": "open", "file": "/s/many", "extra": cut, "rank": 1},
        {"operation": "stat", "file": "/s/many1", "rank": 1},
        {"operation": "stat", "file": "/s/many2", "rank": 1},
        {"operation": "open", "file": "/alone", "extra": cut},
    ]
    survey = take_survey(TraceInfo(format="test"), iter(batches_of(rows, 3)))
    found = pa.Table.from_batches(list(survey.apply(batches_of(rows, 3)))).to_pylist()
    assert [row["file"] for row in found] == [
        "/scratch/run/part.0001",
        "/scratch/run/part.0001",
        "/scratch/run/part.0002",
        "/scratch/run/part.0002",
        "/s/many",
        "/s/many1",
        "/s/many2",
        "/alone",
    ]
    assert survey.cut == [(0, "/alone"), (1, "/s/many")]
    lines = list(survey.report())
    assert lines[0] == "2 names that the tracer had cut were found whole"
    assert "2 names are cut" in lines[1]
    assert "'/alone' of rank 0" in lines[1]


def test_names_of_32_bytes_are_suspect() -> None:
    """The N-N traces of LANL: private files look like one that is shared, without a mark."""
    name = "/panfs/scratch1/nobody/tests/OUT"
    rows = [{"operation": "open", "file": name, "rank": rank} for rank in range(3)]
    survey = take_survey(TraceInfo(format="test"), iter(batches_of(rows)))
    assert survey.suspects == [name]
    assert "private files then look shared" in next(survey.report())
    rows.append({"operation": "open", "file": f"{name}PUT", "rank": 0})
    assert take_survey(TraceInfo(format="test"), iter(batches_of(rows))).suspects == []


def test_strace_shows_the_whole_name_behind_the_descriptor(tmp_path: Path) -> None:
    """With -y, where the text of the argument is cut."""
    (tmp_path / "t").write_text(
        '12 1795249976.5 openat(AT_FDCWD</home/me>, "/scratch/ab"..., O_RDWR, 0644) = 3</scratch/abcdef> <0.000012>\n'
        '12 1795249976.6 openat(AT_FDCWD</home/me>, "/scratch/xy"..., O_RDONLY) = -1 ENOENT (No such file) <0.000001>\n'
    )
    table = pa.Table.from_batches(list(strace.read([tmp_path / "t"])[1])).to_pylist()
    assert [row["file"] for row in table] == ["/scratch/abcdef", "/scratch/xy"]
    assert [json.loads(row["extra"]).get("cut") for row in table] == [None, True]
