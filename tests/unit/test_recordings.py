"""Recordings: the recorder in C against what is made of a trace of the same calls, its bounds, and any bytes."""

from __future__ import annotations

import dataclasses
import errno
import pathlib
import random
import signal

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from mpiio_ext.pioneer.darshan import recorded, recordings, tallies
from mpiio_ext.pioneer.darshan.convert import convert
from mpiio_ext.pioneer.darshan.names import OTHERS
from mpiio_ext.pioneer.darshan.records import Calls, Layout, Records
from mpiio_ext.pioneer.darshan.steps import in_calls
from mpiio_ext.pioneer.darshan.timeline import Heat, Segments
from support import cbuild, fuzz
from support.darshan_records import read_records
from support.recorded_calls import Call, Told, counted, record, recorder

SINCE = 1000
NAMES = ["/data/a", "/data/b", "/data/sub/c", "/usr/left/out", "/data/new name"]
SIZES = (
    0,
    1,
    100,
    101,
    1024,
    1025,
    4096,
    10240,
    10241,
    102400,
    102401,
    1 << 20,
    (1 << 20) + 1,
    4 << 20,
    (4 << 20) + 1,
    10 << 20,
    (10 << 20) + 1,
    100 << 20,
    (100 << 20) + 1,
    1 << 30,
    (1 << 30) + 1,
)
MINUTE = 60 * 10**9


def only(folder: pathlib.Path) -> recordings.Recording:
    (path,) = folder.glob("*.mpioxrec")
    return recordings.read(path)


def write(start: int, size: int, *, file: int = 1, duration: int = 1) -> Call:
    """Return a write of so many bytes."""
    return Call(operation="pwrite", start=start, duration=duration, file=file, offset=0, size=size, result=size)


#: What :func:`drawn` draws from.
DRAWN = [
    "open",
    "close",
    "pwrite",
    "pwrite",
    "pread",
    "read",
    "write",
    "writev",
    "lseek",
    "stat",
    "fstat",
    "fsync",
    "dup",
    "mmap",
    "rename",
    "unlink",
    "copy_file_range",
    "sendfile",
    "ftruncate",
    "fopen",
    "fread",
    "fwrite",
    "fgets",
    "fputs",
    "fseek",
    "fflush",
    "fclose",
    "fdopen",
    "MPI_File_open",
    "MPI_File_write_at",
    "MPI_File_read_at_all",
    "MPI_File_iwrite",
    "MPI_File_set_view",
    "MPI_File_write_all_begin",
    "MPI_File_sync",
    "MPI_File_close",
    "MPI_File_read_shared_c",
    "MPI_Wait",
]


def drawn(random_: random.Random, number: int, start: int) -> Call:
    """Return a call of any kind; those that the modules count, and others."""
    operation = random_.choice(DRAWN)
    size = random_.choice(SIZES)
    copies = operation in ("copy_file_range", "sendfile")
    moves = copies or any(verb in operation for verb in ("read", "write", "fgets", "fputs"))
    mpi = operation.startswith("MPI_")
    failed = random_.random() < 0.05
    offset = random_.choice((-1, 0, 4096, 4095, 512 * random_.randrange(99), random_.randrange(1 << 40)))
    return Call(
        operation=operation,
        start=start,
        duration=random_.randrange(1, 5000),
        depth=int(random_.random() < 0.1),
        file=random_.randrange(1, len(NAMES) + 1) if number % 50 else 0,
        offset=offset if moves else -1,
        size=size if moves else -1,
        result=-1 if failed else 0 if mpi or not moves else size // 8 if operation in ("fread", "fwrite") else size,
        count=size // 8 if operation in ("fread", "fwrite") else -1,
        mode=0o640 if operation == "open" else 9 if operation == "MPI_File_open" else -1,
        file2=random_.randrange(1, len(NAMES) + 1)
        if operation == "rename" or (copies and random_.random() < 0.8)
        else -1,
        offset2=random_.choice((-1, 0, 4096, random_.randrange(1 << 40))) if copies else -1,
        comm_size=random_.choice((1, 4)) if operation == "MPI_File_open" else -1,
        hints=1 if operation in ("MPI_File_open", "MPI_File_set_view") and random_.random() < 0.5 else -1,
    )


def check_times(found: recordings.Recording, module: str, places: dict[int, int], heat: Heat, accesses: Calls) -> None:
    """Compare bytes by time, and accesses one by one, with those of a trace."""
    mine, kept = Heat(), Segments()
    recorded.warm(found, module, mine, found.since_ns + SINCE)
    assert mine.width_s == heat.width_s
    assert abs(mine._bins - heat._bins).max() <= 4  # rounded otherwise where a call is in two bins
    assert mine._bins.sum() == accesses.size.sum()
    if module == "STDIO":
        return
    recorded.keep(found, places, module, kept, -SINCE)
    (batch,) = kept._batches
    for name in ("kind", "offset", "size", "start", "end"):
        assert getattr(batch, name).tolist() == getattr(accesses, name).tolist(), (module, name)


def test_the_counters_are_those_of_a_trace(tmp_path: pathlib.Path) -> None:
    """Of drawn calls that partly overlap: every counter, time, size, stride and access of every module."""
    for case in range(fuzz.examples(24, 3)):
        random_ = random.Random(f"{fuzz.seed()} {case}")
        starts = sorted(random_.randrange(1, 10**9) for _ in range(random_.choice((30, 300, 2000))))
        calls = [
            Call(operation=each, start=0, duration=1, file=file)
            for file in range(1, len(NAMES) + 1)
            for each in ("open", "fopen", "MPI_File_open")
        ]
        calls += [drawn(random_, number, start) for number, start in enumerate(starts)]
        ends = np.maximum.accumulate([call.start + call.duration for call in calls])  # as they are committed
        calls = [
            Call(**{name: getattr(call, name) for name in Call.__slots__} | {"duration": int(end) - call.start})
            for call, end in zip(calls, ends, strict=True)
        ]
        folder = tmp_path / str(case)
        folder.mkdir()
        done = record(folder, NAMES, calls, since=SINCE)
        assert (done.returncode, done.stderr) == (0, "")
        found = only(folder)
        assert (found.problem, found.others) == ("", 0)
        for module in recordings.MODULES:
            expected, heat, accesses = counted(NAMES, calls, module, SINCE, SINCE)
            mine = Records(Layout(module))
            places = recorded.fill(found, module, mine, -SINCE)
            check_times(found, module, places, heat, accesses)
            assert mine.names.keys() == expected.names.keys()
            for name, place in expected.names.items():
                there = mine.names[name]
                layout = expected.layout
                unequal = np.flatnonzero(mine.counters[there] != expected.counters[place])
                assert [layout.counters[at] for at in unequal] == [], (module, name, case)
                unequal = np.flatnonzero(mine.times[there] != expected.times[place])
                assert [layout.times[at] for at in unequal] == [], (module, name, case)
                assert mine.sizes[there] == expected.sizes[place]
                assert mine.strides[there] == expected.strides[place]


def test_accesses_like_the_ones_before(tmp_path: pathlib.Path) -> None:
    """Of those whose counters the recorder remembers nothing is lost: counters, sizes, strides, time and bytes."""
    random_, at, calls, place = random.Random(fuzz.seed()), 10_000, [Call(operation="open", start=0, duration=1)], 0
    for _ in range(6000):
        file, size = random_.choice((1, 1, 1, 2, 3)), random_.choice((4096, 4096, 4096, 100, 512, 777, 64, 1 << 20))
        place = random_.choice((place, place, size * random_.randrange(50)))
        way = random_.choice(("pwrite", "pwrite", "pread"))
        took = random_.choice((300, 700, 50_000))
        calls.append(Call(operation=way, start=at, duration=took, file=file, offset=place, size=size, result=size))
        place += size
        at += random_.choice((-200, took, took, took + 100, took + 100, took + 9_000_000))
    ends = np.maximum.accumulate([call.start + call.duration for call in calls])
    calls = [dataclasses.replace(call, duration=int(end) - call.start) for call, end in zip(calls, ends, strict=True)]
    done = record(tmp_path, NAMES, calls, since=SINCE, variables={"MPIOX_RECORDING_BYTES": str(128 << 10)})
    repeats, found = int(done.stdout.split()[0]), only(tmp_path)
    assert found.unkept > repeats > 1000
    assert len(found.segments) + found.unkept == 6000
    expected, mine = counted(NAMES, calls, "POSIX", SINCE, SINCE)[0], Records(Layout("POSIX"))
    recorded.fill(found, "POSIX", mine, -SINCE)
    for name, there in expected.names.items():
        at = mine.names[name]
        assert mine.counters[at].tolist() == expected.counters[there].tolist(), name
        assert mine.times[at].tolist() == expected.times[there].tolist(), name
        assert (mine.sizes[at], mine.strides[at]) == (expected.sizes[there], expected.strides[there])
    for lane, way in ((0, "pread"), (1, "pwrite")):
        some = [call for call in calls if call.operation == way]
        steps = found.steps[found.steps["class"] == lane]
        sums = (sum(call.size for call in some), sum(call.duration for call in some), len(some))
        assert (int(found.lanes[lane].sum()), int(found.lanes[6 + lane].sum())) == sums[:2]
        assert (int(steps["bytes"].sum()), int(steps["busy"].sum()), int(steps["calls"].sum())) == sums


def test_the_layout_is_that_of_c() -> None:
    """Each field lies where the recorder writes it."""
    lines = [line.split() for line in cbuild.check(recorder(), "any", "print").splitlines()]
    other = {"bytes": "done"}
    kind = recordings._RECORD_TYPE
    for name, offset in (line for line in lines if len(line) == 2):
        assert kind.fields is not None and kind.fields[other.get(name, name)][1] == int(offset), name
    sizes, header = lines[-2][1:], lines[-1][1:]
    more = (recordings._VALUES_TYPE, recordings._LANE_TYPE, recordings._SEGMENT_TYPE)
    types = (kind, *more, recordings.STEP_TYPE, recordings.TALLY_TYPE)
    assert [int(each) for each in sizes] == [each.itemsize for each in types]
    fields = recordings._HEADER.fields
    assert fields is not None
    assert [int(each) for each in header] == [fields[name][1] for name in ("used", "others", "doing")] + [
        recordings._HEADER.itemsize
    ]


# ---- bounds ----------------------------------------------------------------------------------------------------------


def test_a_week_keeps_its_hours(tmp_path: pathlib.Path) -> None:
    """10,000 minutes with a write each, and a stop in the middle: sums are exact, and the stop is seen."""
    calls = [Call(operation="open", start=0, result=3)]
    busy = [minute for minute in range(1, 10_000) if not 4000 <= minute < 5000]
    calls += [write(minute * MINUTE, 4096, duration=MINUTE // 2) for minute in busy]
    assert record(tmp_path, NAMES, calls, variables={"MPIOX_RECORDING_BYTES": str(128 << 10)}).returncode == 0
    found = only(tmp_path)
    assert found.lanes[1].sum() == 8999 * 4096
    assert found.lanes[7].sum() == 8999 * (MINUTE // 2)
    hour = 60 * MINUTE
    assert found.bin_ns <= hour
    steps = found.steps[found.steps["class"] == 1]
    assert (steps["bytes"].sum(), steps["calls"].sum()) == (8999 * 4096, 8999)
    assert steps["busy"].sum() == 8999 * (MINUTE // 2)
    assert (np.diff(steps["start"]) > 0).all()
    gap = np.diff(np.append(steps["start"], steps["end"][-1])) - (steps["end"] - steps["start"])
    assert np.count_nonzero(gap > 15 * hour) == 1  # 1000 minutes without
    assert len(steps) > 100
    assert found.unkept > 0
    assert len(found.segments) + found.unkept == 8999
    assert (found.segments["length"] == 4096).all()
    assert next(tmp_path.glob("*.mpioxrec")).stat().st_size <= 128 << 10


def test_what_ranks_do_when(tmp_path: pathlib.Path) -> None:
    """Two ranks: seconds in reads, writes and metadata calls by time, as the calls were."""
    second = 10**9
    calls = [
        Call(operation="open", start=0, duration=second // 2, result=3),
        write(2 * second, 8, duration=second),
        Call(operation="pread", start=6 * second, duration=2 * second, offset=0, size=4, result=4),
    ]
    for rank, some in enumerate((calls, calls[:2])):
        assert record(tmp_path, NAMES, some, begin=f"RANK {rank} 2").returncode == 0
    assert [head.rank for head in recordings.heads([tmp_path])] == [0, 1]
    seen = in_calls(recordings.Run(tmp_path), 8.0, bands=2, bins=8, files=[NAMES[1], NAMES[0]])
    assert seen is not None and seen.tallies.function.tolist() == ["open", "open"]
    # Each process reads two clocks, microseconds apart on a busy machine: as much of a call lies in the next step.
    assert seen.moved[1].sum() == pytest.approx(8 + 8 + 4, abs=1e-3)
    assert seen.moved[1, 1, 2] == pytest.approx(16, abs=1e-3)
    assert not seen.moved[0].any()
    found = seen.line
    assert found[2][:, 0] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert found[1][:, 2] == pytest.approx([1, 1], abs=1e-3)
    assert found[0].sum(axis=0) == pytest.approx([0, 0, 0, 0, 0, 0, 1, 1], abs=1e-3)
    assert found[0][1].sum() == 0
    assert found.sum() == pytest.approx(5, abs=1e-3)
    assert in_calls(recordings.Run(tmp_path / "nothing"), 8.0, bands=2, bins=8) is None


def test_the_parts_of_a_call(tmp_path: pathlib.Path) -> None:
    """A collective of two ranks, of which one carries the requests out, once by the MPI library and once by this one.

    Calls that no counter has take time.
    """
    second = 10**9
    call = Call(operation="MPI_File_write_at_all", start=2 * second, duration=4 * second, size=8, offset=0)
    own = write(3 * second, 8, duration=2 * second)
    removed = Call(operation="unlink", start=7 * second, duration=second)
    begin = Call(operation="stat", start=0, duration=1)
    told = [
        Told(waiting=True, start=5 * second, duration=second // 2),
        Told(waiting=False, start=11 * second // 2, duration=second // 4),
    ]
    for library, more in ((False, []), (True, told)):
        folder = tmp_path / str(library)
        folder.mkdir()
        for rank, some in enumerate(([begin, own, *more, call], [begin, call, removed])):
            assert record(folder, NAMES, some, begin=f"RANK {rank} 2").returncode == 0
        seen = in_calls(recordings.Run(folder), 8.0, bands=2, bins=8)
        assert seen is not None
        parts = [2, 0, 0, 0] if not library else [0, 1.25, 0.5, 0.25]
        assert seen.line.sum(axis=2)[3:, 0] == pytest.approx(parts, abs=1e-3)
        assert seen.line[3:, 0, [0, 1, 6, 7]].sum() == pytest.approx(0, abs=1e-3)
        assert seen.line[3, 1] == pytest.approx([0, 0, 1, 1, 1, 1, 0, 0], abs=1e-3)
        assert seen.line[5, 0, 5] == pytest.approx(0.5 * library, abs=1e-3)
        assert seen.spent_s == pytest.approx(seen.line.sum(axis=2).T, abs=1e-3)
        unlinked = seen.tallies.where(seen.tallies.kind == "unlink")
        assert unlinked.by_rank(2).tolist() == [0, 1] and not unlinked.counted.any()


def test_a_sync_of_what_the_c_library_has_opened(tmp_path: pathlib.Path) -> None:
    """Its time is the file's, although POSIX has not opened it."""
    calls = [Call(operation="fopen", start=0, result=1), Call(operation="fsync", start=5000, duration=10**9)]
    assert record(tmp_path, NAMES, calls).returncode == 0
    (found,) = only(tmp_path).records[only(tmp_path).records["module"] == recordings.MODULES.index("POSIX")]
    assert found["busy"].tolist() == [0, 10**9, 0]


def test_tallies_have_the_first_files_by_name(tmp_path: pathlib.Path) -> None:
    """Of each function; all others are together, and by outcome. Sums are exact, and room does not depend on files."""
    names = [f"/data/{number}" for number in range(1000)]
    calls = [Call(operation="unlink", start=10 * at, duration=3, file=at + 1) for at in range(1000)]
    failed = [dataclasses.replace(call, result=-1, error=errno.ENOENT, start=call.start + 5) for call in calls]
    calls = [each for pair in zip(calls, failed, strict=True) for each in pair]
    calls += [
        Call(operation="MPI_File_write_at_c", start=20_000, duration=9, offset=0, size=8),
        Call(operation="MPI_File_write_at", start=20_010, duration=9, offset=0, size=8, result=7, error=18),
        Call(operation="pwrite", start=20_030, duration=9, depth=1, offset=0, size=8, result=-1, error=errno.EIO),
        Call(operation="fcntl", start=20_050, duration=4),
        Call(operation="posix_fallocate", start=20_060, duration=4, result=errno.ENOSPC),
    ]
    assert record(tmp_path, names, calls).returncode == 0
    found = tallies.of_rows([*tallies.rows_of(only(tmp_path), 2)])
    removed = found.where(found.function == "unlink")
    assert sorted(removed.file) == ["", "", *(f"/data/{number}" for number in (0, 0, 1, 1, 2, 2, 3, 3))]
    for error in ("", "ENOENT"):
        mine = removed.where(removed.error == error)
        assert (mine.calls.sum(), round(mine.by_rank(3)[2] * 1e9)) == (1000, 3000)
    rest = found.where(found.function != "unlink")
    rows = {
        (function, error, inside): (kind, layer, counted, calls)
        for function, error, inside, kind, layer, counted, calls in zip(
            *(rest.function, rest.error, rest.inside.tolist(), rest.kind, rest.layer),
            *(rest.counted.tolist(), rest.calls.tolist()),
            strict=True,
        )
    }
    assert rows == {
        ("MPI_File_write_at", "", False): ("write", "mpiio", True, 1),
        ("MPI_File_write_at", "MPI_ERR_NO_SPACE", False): ("write", "mpiio", False, 1),
        ("pwrite", "EIO", True): ("write", "posix", False, 1),
        ("fcntl", "", False): ("lock", "posix", False, 1),
        ("posix_fallocate", "ENOSPC", False): ("other", "posix", False, 1),
    }


def test_many_files_share_a_record(tmp_path: pathlib.Path) -> None:
    """100,000 files in 1 MiB: the first have records of their own, all others together one, and nothing is lost."""
    names = [f"/data/folder/file.{number:06d}" for number in range(100_000)]
    calls = []
    for number in range(1, 100_001):
        calls += [
            Call(operation="open", start=number * 10, duration=1, file=number, result=3),
            write(number * 10 + 2, 10, file=number),
            Call(operation="close", start=number * 10 + 4, duration=1, file=number),
        ]
    assert record(tmp_path, names, calls, variables={"MPIOX_RECORDING_BYTES": str(1 << 20)}).returncode == 0
    found = only(tmp_path)
    assert next(tmp_path.glob("*.mpioxrec")).stat().st_size <= 1 << 20
    assert found.problem == ""
    assert found.records["done"][:, 1].sum() == 1_000_000
    assert found.records["counts"][:, 0].sum() == 100_000
    (number,) = (number for number, name in found.names.items() if name == OTHERS)
    others = found.records[found.records["name"] == number]
    own = len(found.records) - len(others)
    assert own > 300
    assert others["counts"][:, 0].tolist() == [100_000 - own]
    assert 0 < found.others <= 100_000 - own
    written = convert(tmp_path, tmp_path / "log")
    assert any("files had no room of their own" in line for line in written.lacks)
    assert read_records(tmp_path / "log")["POSIX", OTHERS, 0]["POSIX_OPENS"] == 100_000 - own


@pytest.mark.parametrize(("most", "there"), [(40 << 10, True), (8 << 10, False)])
def test_no_room_on_the_disk(tmp_path: pathlib.Path, most: int, there: bool) -> None:
    """No space for more is no signal: what had room goes on; where nothing has, one line says so."""
    names = [f"/data/{number}" for number in range(400)]
    calls = [write(number * 10, 1, file=number % 400 + 1) for number in range(4000)]
    done = record(tmp_path, names, calls, most_bytes=most)
    assert (done.returncode, done.stderr.count("\n")) == (0, 0 if there else 1)
    assert [path.stat().st_size <= most for path in tmp_path.glob("*.mpioxrec")] == [True] * there
    if there:
        found = only(tmp_path)
        assert (found.problem, found.records["done"][:, 1].sum()) == ("", 4000)
        assert found.others > 300
    else:
        assert "no space is left here" in done.stderr


def test_the_node_has_a_bound(tmp_path: pathlib.Path) -> None:
    """Process after process, each with more than its share: together they take what the node may have."""
    names = [f"/data/{number}" for number in range(200)]
    calls = [write(number * 10, 1, file=number % 200 + 1) for number in range(2000)]
    variables = {"MPIOX_RECORDING_NODE_BYTES": str(1 << 20)}
    done = [record(tmp_path, names, calls, variables=variables) for _ in range(12)]
    assert all(each.returncode == 0 for each in done)
    files = list(tmp_path.glob("*.mpioxrec"))
    assert sum(path.stat().st_size for path in files) <= 1 << 20
    assert len(files) < 12
    assert sum("no space is left here, or none for more recordings of this node" in each.stderr for each in done) == 1
    assert recordings.refused(tmp_path) == 12 - len(files)
    assert convert(tmp_path, tmp_path / "log").lacks[-1].startswith(f"{12 - len(files)} processes have no recording")
    for path in files:
        found = recordings.read(path)
        assert (found.problem, found.records["done"][:, 1].sum()) == ("", 2000)


def test_ranks_share_the_node(tmp_path: pathlib.Path) -> None:
    """Of 512 ranks each has an eighth of a MiB at most, by what the launcher says."""
    calls = [write(number * 10, 1) for number in range(20_000)]
    for variable in ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"):
        folder = tmp_path / variable
        folder.mkdir()
        assert record(folder, NAMES, calls, variables={variable: "512"}).returncode == 0
        assert next(folder.glob("*.mpioxrec")).stat().st_size <= 128 << 10


def test_mpi_bounds_what_counts(tmp_path: pathlib.Path) -> None:
    """Calls before the end of MPI_Init and after the beginning of MPI_Finalize are not counted."""
    calls = [
        Call(operation="open", start=0, result=3),
        write(2000, 7),
        Call(operation="MPI_Init", start=5000, duration=5000, file=0),
        write(20_000, 100),
        Call(operation="MPI_Finalize", start=30_000, file=0),
        write(40_000, 7),
    ]
    assert record(tmp_path, NAMES, calls, begin="RANK 2 4", since=SINCE).returncode == 0
    found = only(tmp_path)
    assert (found.head.rank, found.head.ranks) == (2, 4)
    assert found.records["done"].tolist() == [[0, 100]]
    assert found.started_ns - found.since_ns == SINCE + 10_000
    assert found.stopped_ns == found.since_ns + SINCE + 30_000
    assert found.segments["length"].tolist() == [100]


def test_a_killed_process(tmp_path: pathlib.Path) -> None:
    """What was counted until then is there, and the log says that the end is missing."""
    calls = [write(number * 10, 3) for number in range(1, 500)]
    assert record(tmp_path, NAMES, calls, end="KILL").returncode == -signal.SIGKILL
    found = only(tmp_path)
    assert found.head.running
    assert found.records["done"].tolist() == [[0, 3 * 499]]
    written = convert(tmp_path, tmp_path / "log", dxt=True)
    assert written.lacks == ["rank 0: its recording has no end, since the process was killed"]


# ---- any bytes -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("good")
    random_ = random.Random(7)
    assert record(folder, NAMES, [drawn(random_, n, n * 10_000) for n in range(1, 400)]).returncode == 0
    return next(folder.glob("*.mpioxrec")).read_bytes()


def use(path: pathlib.Path) -> None:
    """Do with a recording all that is done with one."""
    try:
        found = recordings.read(path)
    except ValueError:
        return
    recordings.heads([path])
    for module in recordings.MODULES:
        records = Records(Layout(module))
        recorded.fill(found, module, records, 0)
        heat = Heat()
        recorded.warm(found, module, heat, found.started_ns)


@hypothesis.given(st.data())
@hypothesis.settings(
    max_examples=fuzz.examples(400),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_damaged_bytes_are_read_or_refused(good: bytes, tmp_path: pathlib.Path, data: st.DataObject) -> None:
    changed = bytearray(good[: data.draw(st.integers(0, len(good)))])
    for _ in range(data.draw(st.integers(0, 8))):
        if changed:
            at = data.draw(st.integers(0, len(changed) - 1))
            changed[at : at + 8] = data.draw(st.binary(min_size=1, max_size=8))
    path = tmp_path / "any.mpioxrec"
    path.write_bytes(changed)
    use(path)


def test_what_is_damaged_is_said(good: bytes, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "rank0.host.1.mpioxrec"
    path.write_bytes(good[:-100])
    assert "bytes are there" in recordings.read(path).problem
    path.write_bytes(good[:4096] + b"\xff" * (len(good) - 4096))
    assert recordings.read(path).problem == "its bytes behind 4,096 are damaged"
    for wrong in (b"", b"MPIOXREC", b"x" * 8000, good[:8] + b"\x63" + good[9:]):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="recording"):
            recordings.read(path)
        assert recordings.heads([tmp_path]) == []
