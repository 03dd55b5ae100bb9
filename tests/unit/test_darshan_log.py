"""Darshan logs of traces: counters against a simple model of Darshan's runtime, and logs as PyDarshan reads them."""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
import random
import resource
from collections.abc import Iterator, Sequence
from typing import Any

import darshan
import numpy as np
import pyarrow as pa
import pytest
from darshan.backend import cffi_backend

from mpiio_ext.analytics.sources.darshan import convert as analyzed
from mpiio_ext.common import extras
from mpiio_ext.common.extras import MissingExtraError
from mpiio_ext.common.recordings import LOADED
from mpiio_ext.errors import FileSystemError, MpiioExtError
from mpiio_ext.pioneer.darshan import log
from mpiio_ext.pioneer.darshan.convert import Written, convert
from mpiio_ext.pioneer.darshan.names import record_id
from mpiio_ext.pioneer.darshan.records import Calls, Kind, Layout, Records, common
from mpiio_ext.pioneer.darshan.timeline import Heat
from mpiio_ext.pioneer.readers import own
from mpiio_ext.pioneer.table import SCHEMA, Source, TraceInfo
from support import fuzz
from support.darshan_logs import packaged_logs
from support.darshan_records import read_records

BEGIN_NS = 1_700_000_000_000_000_000
Row = dict[str, Any]


def row(operation: str, file: str | None, at_ms: float, **more: Any) -> Row:
    """Return a call that lasts 1 ms; `extra` is an object."""
    layer = "mpiio" if operation.startswith("MPI_File") else "mpi" if operation.startswith("MPI") else "posix"
    made = {
        "operation": operation,
        "file": file,
        "timestamp": BEGIN_NS + int(at_ms * 1e6),
        "duration": 10**6,
        "layer": layer,
        "depth": 0,
        "result": 0,
        "thread": 0,
        "line": 1,
        "rank": 0,
        **more,
    }
    return made | {"extra": json.dumps(more["extra"]) if "extra" in more else None}


@dataclasses.dataclass
class Trace:
    """Traces of ranks that stand for files of the tracer."""

    ranks: Sequence[Sequence[Row]]
    processes: int
    truncated: Sequence[int] = ()

    def heads(self, _paths: object) -> list[own.Head]:
        return [
            own.Head(
                path=pathlib.Path(str(rank)),
                rank=rank if self.processes else -1,
                ranks=self.processes,
                host="node",
                pid=4711,
                command="./app -n 4",
                started_ns=BEGIN_NS,
                running=False,
            )
            for rank in range(len(self.ranks))
        ]

    def read(self, paths: Sequence[pathlib.Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
        rank = int(str(paths[0]))
        source = Source(path=str(rank))
        source.loss.truncated = rank in self.truncated
        table = pa.Table.from_pylist(list(self.ranks[rank]), SCHEMA)
        return TraceInfo(format="own", sources=[source]), iter(table.combine_chunks().to_batches(max_chunksize=500))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Any:
    """Return what makes a log of the rows of ranks: its path, and what was said of it."""

    def make(*ranks: Sequence[Row], mpi: bool = True, dxt: bool = False, **more: Any) -> tuple[pathlib.Path, Written]:
        trace = Trace(ranks, len(ranks) if mpi else 0, **more)
        monkeypatch.setattr(own, "heads", trace.heads)
        monkeypatch.setattr(own, "read", trace.read)
        path = tmp_path / "run.darshan"
        return path, convert(tmp_path, path, dxt=dxt)

    return make


def written(name: str, rank: int, size: int = 4096, offset: int = 0) -> list[Row]:
    """Return the calls of a rank that opens a file, writes once and closes it."""
    return [
        row("MPI_Init", None, 0),
        row("open", name, 2 + rank, result=3, extra={"flags": 66, "mode": 0o644}),
        row("pwrite", name, 4 + rank, result=size, size=size, offset=offset),
        row("close", name, 6 + rank),
        row("MPI_Finalize", None, 50),
    ]


# ---- counters --------------------------------------------------------------------------------------------------------


def model(calls: Sequence[tuple[int, int, int, int, int]], layout: Layout) -> tuple[list[int], list[int]]:
    """Return counters and times of one record: darshan-posix.c, call by call."""
    c, f = [0] * len(layout.counters), [0] * len(layout.times)
    at = layout.at
    last = {Kind.READ: 0, Kind.WRITE: 0}
    ends: collections.Counter[str] = collections.Counter()
    values: dict[str, dict[int, int]] = {"ACCESS": {}, "STRIDE": {}}
    before = 0

    def busy(name: str, start: int, end: int) -> None:
        f[at(f"F_{name}_TIME")] += max(end - max(start, ends[name]), 0)
        ends[name] = max(ends[name], end)

    def seen(name: str, value: int) -> None:
        if value in values[name] or len(values[name]) < 32:
            values[name][value] = values[name].get(value, 0) + 1

    for kind, offset, size, start, end in calls:
        verb = {Kind.OPEN: "OPEN", Kind.CLOSE: "CLOSE", Kind.READ: "READ", Kind.WRITE: "WRITE"}[Kind(kind)]
        first, final = at(f"F_{verb}_START_TIMESTAMP"), at(f"F_{verb}_END_TIMESTAMP")
        f[first] = min(f[first], start) if f[first] else start
        f[final] = max(f[final], end)
        busy(verb if verb in ("READ", "WRITE") else "META", start, end)
        if verb in ("OPEN", "CLOSE"):
            last = dict.fromkeys(last, 0)
            continue
        done = last[Kind(kind)]
        c[at(f"SEQ_{verb}S")] += offset > done
        c[at(f"CONSEC_{verb}S")] += offset == done + 1
        seen("STRIDE", offset - done - 1 if offset > done != 0 else 0)
        last[Kind(kind)] = offset + size - 1
        name = "BYTES_READ" if verb == "READ" else "BYTES_WRITTEN"
        c[at(name)] += size
        c[at(f"MAX_{name.replace('BYTES', 'BYTE')}")] = max(
            c[at(f"MAX_{name.replace('BYTES', 'BYTE')}")], offset + size - 1
        )
        edges = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
        c[at(f"SIZE_{verb}_0_100") + sum(size > edge for edge in edges)] += 1
        seen("ACCESS", size)
        c[at("RW_SWITCHES")] += before not in (0, kind)
        before = kind
        if end - start > f[at(f"F_MAX_{verb}_TIME")]:
            f[at(f"F_MAX_{verb}_TIME")], c[at(f"MAX_{verb}_TIME_SIZE")] = end - start, size
    for name, found in values.items():
        for number, (value, count) in enumerate(common(found)):
            c[at(f"{name}1_{name}") + number], c[at(f"{name}1_COUNT") + number] = value, count
    return c, f


def test_counters_are_those_of_the_model() -> None:
    """Drawn calls on several files by several threads, in batches of any length."""
    draw = random.Random(fuzz.seed())
    layout = Layout("POSIX")
    for _ in range(20):
        records = Records(layout)
        places = [records.place(f"/f{number}") for number in range(3)]
        calls, now = [], 1
        for _ in range(draw.randrange(1, 400)):
            now += draw.choice((0, 1, 50))
            kind = draw.choice((Kind.OPEN, Kind.CLOSE, *[Kind.READ, Kind.WRITE] * 8))
            offset = draw.choice((0, 1, 100, draw.randrange(1 << 40), draw.randrange(50) * 4096))
            size = draw.choice((0, 100, 101, 4096, 1 << 20, draw.randrange(1 << 31)))
            calls.append((draw.choice(places), kind, offset, size, now, now + draw.randrange(80)))
        at = 0
        while at < len(calls):
            step = draw.randrange(1, 100)
            record, kind, offset, size, start, end = (
                np.array(column, np.int64) for column in zip(*calls[at : at + step], strict=True)
            )
            records.add(Calls(record, kind, np.full(len(kind), -1), offset, size, start, end))
            at += step
        for place in places:
            counters, times = model([call[1:] for call in calls if call[0] == place], layout)
            for name, seen in (("ACCESS", records.sizes), ("STRIDE", records.strides)):
                for number, (value, count) in enumerate(common(seen[place])):
                    records.counters[place, layout.at(f"{name}1_{name}") + number] = value
                    records.counters[place, layout.at(f"{name}1_COUNT") + number] = count
            assert dict(zip(layout.counters, records.counters[place].tolist(), strict=True)) == dict(
                zip(layout.counters, counters, strict=True)
            ), f"seed {fuzz.seed()}"
            assert records.times[place].tolist() == times, f"seed {fuzz.seed()}"


def test_numbers_of_names_are_darshans() -> None:
    """The names of PyDarshan's own logs have the numbers that Darshan gave them, but those that were made anonymous."""
    names: dict[int, str] = {}
    for path in packaged_logs():
        handle = cffi_backend.log_open(str(path))
        if handle["handle"] != cffi_backend.ffi.NULL:
            names |= cffi_backend.log_get_name_records(handle)
    right = [name for number, name in names.items() if record_id(name) == number]
    assert len(right) > 50
    assert len({len(name) % 24 for name in right}) > 20  # ways in which a name can end


def test_heat_is_spread_over_bins_and_keeps_the_bytes() -> None:
    heat = Heat()
    one = np.array([0], np.int64)
    for kind, size, start, end in ((Kind.WRITE, 1000, 0.05, 0.25), (Kind.READ, 7, 0.31, 0.32), (Kind.WRITE, 9, 30, 31)):
        heat.add(Calls(one, one + kind, one, one, one + size, one + int(start * 1e9), one + int(end * 1e9)))
    assert heat.width_s == 0.2  # 200 bins of 0.1 s end at 20 s
    bins = np.frombuffer(heat.packed("POSIX", 3, 31.0)[48:], np.int64).reshape(2, -1)
    assert bins.shape[1] == 155
    assert bins[0, :3].tolist() == [750, 250, 0]
    assert bins.sum(axis=1).tolist() == [1000 + 10, 7]  # a fifth of 9 is 2 in each of five bins


# ---- logs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 4, 7])
def test_a_file_of_all_ranks_is_one_record(made: Any, ranks: int) -> None:
    far = 5 << 30
    traces = [written("/data/shared", rank, 1000 * (rank + 1), far) for rank in range(ranks)]
    traces[0][1:1] = written("/data/alone", 0)[1:4]
    path, told = made(*traces)
    assert told == Written(processes=ranks, records=2, lacks=[])
    found = read_records(path)
    shared = found["POSIX", "/data/shared", -1]
    assert shared["POSIX_OPENS"] == shared["POSIX_WRITES"] == ranks
    assert shared["POSIX_BYTES_WRITTEN"] == 1000 * ranks * (ranks + 1) / 2
    assert shared["POSIX_MAX_BYTE_WRITTEN"] == far + 1000 * ranks - 1
    assert shared["POSIX_MODE"] == 0o644
    assert shared["POSIX_F_OPEN_START_TIMESTAMP"] == pytest.approx(0.001)
    assert shared["POSIX_F_CLOSE_END_TIMESTAMP"] == pytest.approx(0.006 + (ranks - 1) / 1000)
    assert found["POSIX", "/data/alone", 0 if ranks > 1 else -1]["POSIX_BYTES_WRITTEN"] == 4096
    moved = [1000 * (rank + 1) for rank in range(ranks)]
    assert shared["POSIX_F_VARIANCE_RANK_BYTES"] == pytest.approx(np.var(moved))
    assert shared["POSIX_FASTEST_RANK_BYTES"] == moved[int(shared["POSIX_FASTEST_RANK"])]
    assert shared["POSIX_F_SLOWEST_RANK_TIME"] == pytest.approx(0.003)


def test_without_mpi_nothing_is_reduced(made: Any) -> None:
    path, _ = made(written("/data/f", 0)[1:-1], mpi=False)
    record = read_records(path)["POSIX", "/data/f", 0]
    assert (record["POSIX_BYTES_WRITTEN"], record["POSIX_F_SLOWEST_RANK_TIME"]) == (4096, 0)


def test_what_the_log_says_of_the_job(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "123")
    path, _ = made(written("/data/f", 0), written("/data/f", 1))
    report = darshan.DarshanReport(str(path), read_all=True)
    job = report.metadata["job"]
    assert (job["nprocs"], job["jobid"]) == (2, 123)
    assert job["run_time"] == pytest.approx(0.049)  # from the end of MPI_Init to the beginning of MPI_Finalize
    assert job["start_time_sec"] * 10**9 + job["start_time_nsec"] == BEGIN_NS + 10**6
    assert job["metadata"]["lib_ver"].startswith("mpiio_ext ")
    assert report.metadata["exe"] == "./app -n 4"
    assert set(report.modules) == {"POSIX", "HEATMAP"}
    assert [module["partial_flag"] for module in report.modules.values()] == [False, False]
    mounts = [words.split()[1] for words in pathlib.Path("/proc/mounts").read_text().splitlines()]
    assert sorted(place for place, _ in report.mounts) == sorted(mounts)


def test_other_readers_take_it(made: Any, tmp_path: pathlib.Path) -> None:
    path, _ = made(*(written("/data/f", rank) for rank in range(3)))
    found = analyzed([path.name], str(tmp_path))
    assert [outcome.status for outcome in found.outcomes] == ["whole"]
    assert found.tables["darshan_file"].num_rows == 1


@pytest.mark.parametrize("name", ["/data/größe-例", f"/data/{'n' * 255}", "/data/with blank\tand = sign"])
def test_names(made: Any, name: str) -> None:
    path, _ = made(written(name, 0))
    assert read_records(path)["POSIX", name, -1]["POSIX_BYTES_WRITTEN"] == 4096


def test_more_than_a_thousand_files(made: Any) -> None:
    rows = [written(f"/data/f{number}", 0)[1:4] for number in range(1500)]
    path, told = made([row("MPI_Init", None, 0), *(one for some in rows for one in some)])
    assert told.records == 1500
    assert {record["POSIX_BYTES_WRITTEN"] for record in read_records(path).values()} == {4096}


@pytest.mark.parametrize("mpi", [True, False])
def test_a_run_without_access(made: Any, mpi: bool) -> None:
    path, told = made([row("MPI_Init", None, 0), row("MPI_Finalize", None, 9)] if mpi else [], mpi=mpi)
    assert (told.processes, told.records) == (1, 0)
    assert darshan.DarshanReport(str(path), read_all=True).modules == {}


def test_calls_of_the_program_and_below(made: Any) -> None:
    """MPI-IO counts what the program calls; POSIX also what the library does for it."""
    name = "/data/f"
    more = {"amode": 9, "comm_size": 2, "hints": 1}
    rows = [
        row("MPI_Init", None, 0),
        row("MPI_File_open", name, 2, extra=more),
        row("open", name, 2.1, depth=1, result=3),
        row("MPI_File_write_at_all", name, 4, offset=0, size=100),
        row("pwrite", name, 4.1, depth=1, offset=0, result=100),
        row("MPI_File_iread_at_c", name, 5, offset=8, size=50),
        row("MPI_File_read_ordered_begin", name, 6, size=70),
        row("MPI_File_write_shared", name, 7, size=10, result=35),
        row("MPI_File_read_at", name, 7.5, size=10, depth=1),
        row("MPI_File_set_view", name, 8),
        row("MPI_File_sync", name, 9),
        row("MPI_File_write", name, 9.5, size=11),
        row("MPI_File_close", name, 11),
    ]
    path, _ = made(rows, rows, dxt=True)
    found = read_records(path)["MPI-IO", name, -1]
    counted = {key.removeprefix("MPIIO_"): value for key, value in found.items() if value and "_F_" not in key}
    sizes = {"SIZE_READ_AGG_0_100": 4, "SIZE_WRITE_AGG_0_100": 4, "BYTES_READ": 240, "BYTES_WRITTEN": 222}
    calls = {
        "COLL_OPENS": 2,
        "COLL_WRITES": 2,
        "INDEP_WRITES": 2,
        "NB_READS": 2,
        "SPLIT_READS": 2,
        "SYNCS": 2,
        "HINTS": 2,
        "VIEWS": 2,
        "MODE": 9,
        "RW_SWITCHES": 4,
    }
    assert counted | sizes | calls == counted
    assert read_records(path)["POSIX", name, -1]["POSIX_WRITES"] == 2
    handle = cffi_backend.log_open(str(path))
    segments = cffi_backend.log_get_dxt_record(handle, "DXT_MPIIO")
    assert [(one["offset"], one["length"]) for one in segments["write_segments"]] == [(0, 100), (-1, 11)]
    assert [(one["offset"], one["length"]) for one in segments["read_segments"]] == [(8, 50), (-1, 70)]
    assert (segments["hostname"], segments["rank"]) == ("node", 0)


def test_what_is_not_counted(made: Any) -> None:
    """Failures, calls without end, what was only looked at, and calls beside the job."""
    path, told = made(
        [
            row("open", "/data/early", 0.2, result=3),
            row("MPI_Init", None, 1),
            row("open", "/data/f", 3, result=-1),
            row("pwrite", "/data/g", 3, result=None, duration=None),
            row("stat", "/data/looked", 4),
            row("mmap", "/data/h", 5),
            row("MPI_Finalize", None, 9),
            row("open", "/data/late", 11, result=3),
        ]
    )
    assert told.lacks == []
    assert read_records(path) == {}


def test_a_rename_and_looks_at_a_regular_file(made: Any, tmp_path: pathlib.Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    renames = row("rename", "/data/a", 9, extra={"file2": "/data//b"})
    path, _ = made([*written("/data/a", 0)[:-1], renames, row("stat", str(plain), 9)])
    found = read_records(path)
    assert found["POSIX", "/data/a", -1]["POSIX_RENAME_SOURCES"] == 1
    renamed = found["POSIX", "/data/b", -1]
    assert renamed["POSIX_RENAME_TARGETS"] == 1
    assert int(renamed["POSIX_RENAMED_FROM"]) % (1 << 64) == record_id("/data/a")
    assert found["POSIX", str(plain), -1]["POSIX_STATS"] == 1


def test_what_lacks_is_marked(made: Any) -> None:
    path, told = made(written("/data/f", 0), written("/data/f", 1)[:-1], truncated=[1])
    assert len(told.lacks) == 1
    assert "rank 1" in told.lacks[0]
    handle = cffi_backend.log_open(str(path))
    assert {each["partial_flag"] for each in cffi_backend.log_get_modules(handle).values()} == {True}


def test_no_trace_is_no_log(made: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(MpiioExtError, match="no process reported that it had loaded mpiio_ext"):
        made()
    (tmp_path / LOADED).touch()
    with pytest.raises(MpiioExtError, match="no call was recorded: the program has done no I/O"):
        made()
    assert [path.name for path in tmp_path.iterdir()] == [LOADED]


def test_an_old_log_is_replaced_or_kept(made: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name stands for the old log, or for the new one, whatever Darshan's library does."""
    (tmp_path / "run.darshan").write_text("old")

    def refuses(part: pathlib.Path, *_: object) -> bool:
        part.write_text("half")
        return False

    monkeypatch.setattr(log, "_put", refuses)
    with pytest.raises(FileSystemError, match="cannot be written: it cannot be read again"):
        made(written("/data/f", 0))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"run.darshan": "old"}
    monkeypatch.undo()
    path, _ = made(written("/data/f", 0))
    assert len(read_records(path)) == 1
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask(tmp_path)


@pytest.mark.parametrize("most_bytes", [0, 64, 1000])
def test_a_full_disk_is_named_once(
    made: Any, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str], most_bytes: int
) -> None:
    """Darshan's library says of every part that it could not write it, and never why."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    trace = written("/data/f", 0)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
        with pytest.raises(FileSystemError, match=r"run\.darshan: cannot be written: File too large"):
            made(trace)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert capfd.readouterr().err == ""


def _umask(folder: pathlib.Path) -> int:
    (folder / "new").touch()
    return ~(folder / "new").stat().st_mode & 0o666


def test_without_darshan_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="which is not installed: pip install"):
        extras.darshan_library("a Darshan log", "pioneer")
