"""Phase E of PIONEER: a path is carried out by any number of ranks; files, counts and order are what it says."""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
from typing import Any

import pytest

from mpiio_ext._load import get_library
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from support.launch import PROGRAMS, Launch, json_lines, python_run
from support.marks import slow
from support.pioneer_paths import BLOCK, EVERYTHING, row, save
from support.traced import tracing

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]


def run(
    folder: pathlib.Path,
    rows: list[dict[str, Any]],
    ranks: int,
    most: int = sys.maxsize,
    members: tuple[tuple[int, ...], ...] | None = None,
) -> tuple[list[Any], Launch]:
    """Carry a path out below a folder; what each rank saw."""
    (folder / "below").mkdir(exist_ok=True)
    save(rows, folder / "path.parquet", members)
    words = [PROGRAMS / "pioneer_replay.py", folder / "path.parquet", folder / "below", str(most)]
    launch = python_run(words, ranks, timeout_s=120)
    return json.loads(next(line for line in launch.stdout.splitlines() if line.startswith("SEEN "))[5:]), launch


def pattern(size: int) -> bytes:
    """Return the beginning of a file in which every byte is where it belongs."""
    return bytes(at % 251 + 1 for at in range(size))


@pytest.mark.parametrize("ranks", [*slow(1), 7, *slow(2, 3, 4)])
def test_everything_is_done(tmp_path: pathlib.Path, ranks: int) -> None:
    """By more ranks than the path was made of, and by fewer."""
    seen, launch = run(tmp_path, EVERYTHING, ranks)
    below = tmp_path / "below"
    known = [i for i, item in enumerate(EVERYTHING) if item["operation"] != "no such operation"]
    for rank, found in enumerate(seen):
        assert found["ids"] == [i for i in known if rank == 0 or EVERYTHING[i]["groups"] == 3], launch.describe()
        assert (found["failed"], found["left_out"], all(found["made"])) == (0, 0, True), launch.describe()
        assert found["written"] == (100 if rank == 0 else 0) + 60 + BLOCK + 7
        assert found["read"] == 520 + 2 * BLOCK
        assert found["earliest_ns"] >= 0  # nothing comes before its slack time is over
        assert (below / f"out/p.{rank:04}").read_bytes() == pattern(55)
        assert (below / f"own.{rank}").read_bytes() == pattern(7)
    assert (below / "all").read_bytes() == pattern(BLOCK * ranks)
    assert (below / "out/cfg").read_bytes() == pattern(100)
    assert (below / "in.txt").stat().st_size >= 500
    assert sorted(item.name for item in below.iterdir()) == sorted(
        ["all", "in.txt", "out", *(f"own.{rank}" for rank in range(ranks))]
    )


@pytest.mark.both
@pytest.mark.parametrize("ranks", [3, *slow(1)])
def test_a_limit_on_bytes(tmp_path: pathlib.Path, ranks: int) -> None:
    """What would be too much is left out; in collectives without hanging."""
    seen, launch = run(tmp_path, EVERYTHING, ranks, most=70)
    for rank, found in enumerate(seen):
        assert found["written"] <= 70, launch.describe()
        assert found["left_out"] == (2 if rank == 0 else 1), launch.describe()
    assert (tmp_path / "below" / "all").stat().st_size <= BLOCK * ranks


REST = [
    row("mkdir", "d", "shared"),
    row("open", "d/a.{rank}", "private"),
    row("write", "d/a.{rank}", "private", size=300),
    row("fallocate", "d/a.{rank}", "private", at=300, size=100),
    row("mmap", "d/a.{rank}", "private", at=0, size=300),
    row("msync", "d/a.{rank}", "private"),
    row("munmap", "d/a.{rank}", "private"),
    row("sync_file_range", "d/a.{rank}", "private", at=0, size=10),
    row("close", "d/a.{rank}", "private"),
    row("truncate", "d/a.{rank}", "private", size=350),
    row("chmod", "d/a.{rank}", "private"),
    row("link", "d/a.{rank}", "private", extra={"file2": "d/c.{rank}"}),
    row("rename", "d/a.{rank}", "private", extra={"file2": "d/b.{rank}"}),
    row("opendir", "in", "shared"),
    row("readdir", "in", "shared"),
    row("closedir", "in", "shared"),
    row("open", "s.{rank}", "private", extra={"flags": 66}),
    row("fdopen", "s.{rank}", "private", "stdio"),
    row("vfprintf", "s.{rank}", "private", "stdio", size=9),
    row("ftello", "s.{rank}", "private", "stdio"),
    row("rewind", "s.{rank}", "private", "stdio"),
    row("fclose", "s.{rank}", "private", "stdio"),
    row("MPI_File_open", "all", "shared", "mpiio"),
    row("MPI_File_preallocate", "all", "shared", "mpiio", size=100),
    row("MPI_File_set_view", "all", "shared", "mpiio", extra={"displacement": 0, "filetype": "8"}),
    row("MPI_File_get_view", "all", "shared", "mpiio"),
    row("MPI_File_get_amode", "all", "shared", "mpiio"),
    row("MPI_File_get_group", "all", "shared", "mpiio"),
    row("MPI_File_get_info", "all", "shared", "mpiio"),
    row("MPI_File_set_info", "all", "shared", "mpiio"),
    row("MPI_File_get_byte_offset", "all", "shared", "mpiio", at=8),
    row("MPI_File_get_type_extent", "all", "shared", "mpiio"),
    row("MPI_File_set_atomicity", "all", "shared", "mpiio", extra={"value": 0}),
    row("MPI_File_get_atomicity", "all", "shared", "mpiio"),
    row("MPI_File_get_size", "all", "shared", "mpiio"),
    *[
        row(
            "MPI_File_iwrite_at", "all", "shared", "mpiio", at=at, size=BLOCK, step=4 * BLOCK, extra={"request": at + 1}
        )
        for at in range(0, 3 * BLOCK, BLOCK)
    ],
    row("MPI_Wait", "all", "shared", "mpi", extra={"request": BLOCK + 1}),
    row("MPI_Test", "all", "shared", "mpi", extra={"request": 1}),
    row("MPI_Waitany", "all", "shared", "mpi", extra={"request": 2 * BLOCK + 1}),
    row("MPI_File_write_at_all_begin", "all", "shared", "mpiio", at=3 * BLOCK, size=BLOCK, step=4 * BLOCK),
    row("MPI_File_write_at_all_end", "all", "shared", "mpiio"),
    row("MPI_File_iread_at_all", "all", "shared", "mpiio", at=0, size=BLOCK, step=4 * BLOCK, extra={"request": 0}),
    row("MPI_Wait", "all", "shared", "mpi", extra={"request": 0}),
    row("MPI_File_get_position", "all", "shared", "mpiio"),
    row("MPI_File_read_all_begin", "all", "shared", "mpiio", size=8),
    row("MPI_File_read_all_end", "all", "shared", "mpiio"),
    row("MPI_File_seek_shared", "all", "shared", "mpiio", at=0),
    row("MPI_File_read_shared", "all", "shared", "mpiio", size=8),
    row("MPI_File_read_ordered", "all", "shared", "mpiio", size=8),
    row("MPI_File_get_position_shared", "all", "shared", "mpiio"),
    row("MPI_File_close", "all", "shared", "mpiio"),
]


@pytest.mark.parametrize("ranks", [3, *slow(1)])
def test_every_other_operation(tmp_path: pathlib.Path, ranks: int) -> None:
    """Is made, succeeds, and does what it says."""
    seen, launch = run(tmp_path, REST, ranks)
    below = tmp_path / "below"
    for rank, found in enumerate(seen):
        assert found["ids"] == list(range(len(REST))), launch.describe()
        assert (found["failed"], found["left_out"], all(found["made"])) == (0, 0, True), launch.describe()
        assert (found["written"], found["read"]) == (309 + 4 * BLOCK, BLOCK + 24)
        assert (below / f"d/b.{rank}").read_bytes() == pattern(300) + bytes(50)
        assert (below / f"d/b.{rank}").samefile(below / f"d/c.{rank}")
        assert not (below / f"d/a.{rank}").exists()
        assert (below / f"s.{rank}").read_bytes() == pattern(9)
    content = (below / "all").read_bytes()
    for rank in range(ranks):  # what a split collective writes begins with the first byte of the pattern
        begin = 4 * BLOCK * rank
        assert content[begin : begin + 3 * BLOCK] == pattern(begin + 3 * BLOCK)[begin:]
        assert content[begin + 3 * BLOCK : begin + 4 * BLOCK] == pattern(BLOCK)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [8, 4])
def test_ranks_keep_their_groups(tmp_path: pathlib.Path, ranks: int) -> None:
    """Odd ranks have other files than even ones, by as many as were traced and by twice as many."""
    rows = [
        row(name, f"{kind}.{{rank}}", "private", groups=groups, size=9)
        for kind, groups in (("odd", 2), ("even", 4))
        for name in ("open", "write", "close")
    ]
    _, launch = run(tmp_path, rows, ranks, members=((0,), (1, 3), (2,)))
    names = {f"{'odd' if rank % 2 else 'even'}.{rank}" for rank in range(1, ranks)}
    assert {item.name for item in (tmp_path / "below").iterdir()} == names, launch.describe()


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [5, 2, 4])
def test_files_of_other_ranks(tmp_path: pathlib.Path, ranks: int) -> None:
    """Neighbours read what ranks that are late have written; the root looks at files, and removes one."""
    late = {"slack": 100_000_000, "groups": 2}
    own, following, third = "part.{rank}", "part.{rank~1}", "part.{rank=3}"
    rows = [
        row("stat", "in", "shared", **late),
        *[row(name, own, "private", size=300) for name in ("open", "write", "close")],
        *[row(name, following, "private", size=300) for name in ("open", "read", "close")],
        row("stat", third, "private", groups=1),
        row("stat", "in", "shared", **late),
        row("unlink", third, "private", groups=1),
        *[row(name, own, "private", size=200) for name in ("open", "write", "close")],
    ]
    seen, launch = run(tmp_path, rows, ranks)
    for found in seen:
        assert found["read"] == 300, launch.describe()
        calls = dict(zip(found["ids"], found["results"], strict=True))
        assert calls[5] == 300, launch.describe()
        assert calls.get(7, 0) == calls.get(9, 0) == 0, launch.describe()
    sizes = [(tmp_path / "below" / f"part.{rank}").stat().st_size for rank in range(ranks)]
    assert sizes == [200 if rank == 3 % ranks else 300 for rank in range(ranks)], launch.describe()


def test_the_root_waits_before_it_removes_a_file(tmp_path: pathlib.Path) -> None:
    """It is far ahead of the children, who have still to open what it has made and what it will remove."""
    late = {"slack": 150_000_000}
    rows = [
        row("open", "a", "root", groups=1, extra={"flags": 66}),
        row("write", "a", "root", groups=1, size=9),
        row("close", "a", "root", groups=1),
        row("open", "a", "shared", extra={"flags": 0}),
        row("read", "a", "shared", size=9),
        row("stat", "b", "shared", groups=2, **late),
        row("stat", "a", "shared"),
        row("close", "a", "shared"),
        row("unlink", "a", "root", groups=1),
    ]
    seen, launch = run(tmp_path, rows, 3)
    assert [found["ids"] for found in seen] == [[0, 1, 2, 3, 4, 6, 7, 8], [3, 4, 5, 6, 7], [3, 4, 5, 6, 7]]
    for found in seen:
        results = dict(zip(found["ids"], found["results"], strict=True))
        assert (results[4], results[6]) == (9, 0), launch.describe()
        assert (found["failed"], found["left_out"]) == (0, 0), launch.describe()
    assert not (tmp_path / "below" / "a").exists()


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, 1])
def test_a_trace_without_opens(tmp_path: pathlib.Path, ranks: int) -> None:
    """As Darshan DXT's: accesses alone, at their offsets."""
    rows = [row("write", "a", "shared", at=at, size=BLOCK, step=2 * BLOCK) for at in (BLOCK, 0)]
    rows += [row("MPI_File_write", "b", "shared", "mpiio", at=at, size=BLOCK, step=2 * BLOCK) for at in (BLOCK, 0)]
    seen, launch = run(tmp_path, rows, ranks)
    for found in seen:
        assert (found["failed"], found["left_out"], found["written"]) == (0, 0, 4 * BLOCK), launch.describe()
    for name in ("a", "b"):
        assert (tmp_path / "below" / name).read_bytes() == pattern(2 * BLOCK * ranks)


@pytest.mark.parametrize("spin_us", [*slow(0), 40, *slow(None)])
def test_slack_times_are_spun_for_as_asked(tmp_path: pathlib.Path, spin_us: int | None) -> None:
    """By the command: what is spun is what was asked for; by itself next to nothing where ranks share a core."""
    save([row("stat", "in", "shared", slack=1_000_000)] * 5, tmp_path / "path.parquet")
    words = ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "path.parquet", tmp_path / "below"]
    ranks = 1 + len(os.sched_getaffinity(0))
    launch = python_run([*words, *([] if spin_us is None else ["--spin", f"{spin_us}us"])], ranks, timeout_s=60)
    found = re.search(r"slack times ended (\S+) us late at the median.* spun for the last (\S+) us", launch.stdout)
    assert found is not None, launch.describe()
    assert float(found[1]) >= 0, launch.describe()
    assert (0 < float(found[2]) <= 20) if spin_us is None else float(found[2]) == spin_us, launch.describe()


def test_calls_that_fail(tmp_path: pathlib.Path) -> None:
    """An open that cannot be made: what needs it is left out, everything else is done."""
    rows = [
        row("mkdir", "d", "shared"),
        row("open", "d", "shared", extra={"flags": 1}),
        row("write", "d", "shared", size=5),
        row("close", "d", "shared"),
        row("open", "e.{rank}", "private"),
        row("write", "e.{rank}", "private", size=5),
        row("close", "e.{rank}", "private"),
    ]
    seen, launch = run(tmp_path, rows, 2)
    for rank, found in enumerate(seen):
        assert (found["failed"], found["left_out"], found["written"]) == (1, 2, 5), launch.describe()
        assert (tmp_path / "below" / f"e.{rank}").read_bytes() == pattern(5)


def test_command(tmp_path: pathlib.Path) -> None:
    """Dry run and run, by the command; a name that leads out ends it with a message."""
    save(EVERYTHING, tmp_path / "path.parquet")
    words = ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "path.parquet", tmp_path / "below"]
    launch = python_run([*words, "--dry-run"], 3, timeout_s=60)
    assert "3 ranks would make 81 calls on 11 files" in launch.stdout, launch.describe()
    assert not (tmp_path / "below").exists()
    launch = python_run([*words, "--time-scale", "0"], 3, timeout_s=60)
    assert "3 ranks made 81 calls in " in launch.stdout, launch.describe()
    assert "0 calls failed, 3 were left out" in launch.stdout, launch.describe()
    save([row("stat", "../out", "shared")], tmp_path / "path.parquet")
    launch = python_run(words, 2, timeout_s=60, check=False)
    assert launch.returncode != 0
    assert "'../out' has no place below" in launch.stderr, launch.describe()


def test_files_that_cannot_be_made(tmp_path: pathlib.Path) -> None:
    """All ranks end with the reason of the one that has failed: here rank 1's folder is a file."""
    (tmp_path / "below" / "sub").mkdir(parents=True)
    (tmp_path / "below" / "sub" / "1").write_bytes(b"")
    save([row("open", "sub/{rank}/f", "private"), row("close", "sub/{rank}/f", "private")], tmp_path / "path.parquet")
    words = ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "path.parquet", tmp_path / "below"]
    launch = python_run([*words, "--existing"], 3, timeout_s=60, check=False)
    assert launch.returncode == 1, launch.describe()
    assert "mpiio-ext: rank 1: " in launch.stderr, launch.describe()
    assert "sub/1" in launch.stderr, launch.describe()


def test_under_the_extension(tmp_path: pathlib.Path) -> None:
    """A path in JSON, with hints: the same files, and the hints are in force; the reasons of what is left out."""
    save(EVERYTHING, tmp_path / "path.parquet")
    WorkloadPath.load(tmp_path / "path.parquet").save(tmp_path / "path.json")
    again = WorkloadPath.load(tmp_path / "path.json")
    assert again.table.equals(WorkloadPath.load(tmp_path / "path.parquet").table)
    words = [
        "-m",
        "mpiio_ext",
        "pioneer",
        "replay",
        tmp_path / "path.json",
        tmp_path / "below",
        "--time-scale",
        "0",
        "-H",
        "mpiox_partition=group_cyclic",
        "-H",
        "mpiox_exchange=two_phase",
    ]
    launch = python_run(words, 4, timeout_s=60, env={"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")})
    assert "0 calls failed, 4 were left out" in launch.stdout, launch.describe()
    assert "left out: 4 x no such operation: the engine does not know it" in launch.stdout
    assert (tmp_path / "below" / "all").read_bytes() == pattern(4 * BLOCK)
    lines = json_lines(tmp_path / "stats")
    used = [line for line in lines if line["kind"] == "file" and line["path"].endswith("/all")]
    assert [line["hints"]["mpiox_partition"]["value"] for line in used] == ["group_cyclic"], lines
    assert used[0]["collective_writes"] > 0


@pytest.mark.parametrize("asked", [*slow(""), "--extension", *slow("preloaded"), "traced"])
def test_the_extension_is_used_when_it_is_asked_for(tmp_path: pathlib.Path, asked: str) -> None:
    """Where nobody asks for the extension the path meets the MPI library alone, as its program did."""
    save(EVERYTHING, tmp_path / "path.parquet")
    words = ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "path.parquet", tmp_path / "below", "--time-scale", "0"]
    variables = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    if asked == "preloaded":
        variables["LD_PRELOAD"] = str(get_library())
    if asked == "traced":  # which looks for what is behind it
        variables |= tracing(tmp_path / "trace")
    launch = python_run([*words, *(["--extension"] if asked == "--extension" else [])], 2, timeout_s=60, env=variables)
    assert "0 calls failed, " in launch.stdout, launch.describe()
    stats = tmp_path / "stats"
    lines = json_lines(stats) if stats.exists() else []
    made = sum(line["collective_writes"] for line in lines if line["kind"] == "file" and line["path"].endswith("/all"))
    assert (made > 0) == (asked not in ("", "traced")), launch.describe()


def test_a_folder_with_files_of_others(tmp_path: pathlib.Path) -> None:
    """Nothing is written over that no replay has made, not even by names that are the program's own."""
    own = tmp_path / "data" / "own"
    own.parent.mkdir()
    own.write_bytes(b"mine")
    name = str(own)
    save(
        [
            row("open", name, "shared", extra={"flags": 577}),
            row("write", name, "shared", size=2),
            row("close", name, "shared"),
        ],
        tmp_path / "path.parquet",
    )
    words = ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "path.parquet"]
    for place, said in (("/", "name another folder"), (own.parent, "has files that no replay has made")):
        launch = python_run([*words, place], 2, timeout_s=60, check=False)
        assert launch.returncode == 2 and said in launch.stderr, launch.describe()
        assert list(own.parent.iterdir()) == [own] and own.read_bytes() == b"mine"
    for _ in range(2):  # the second time into the folder of the first
        python_run([*words, tmp_path / "new"], 2, timeout_s=60)
    assert (tmp_path / "new" / name.lstrip("/")).read_bytes() == pattern(2)


@pytest.mark.slow
def test_limits_on_what_is_made(tmp_path: pathlib.Path) -> None:
    """Preallocation counts as writing; input that is longer than the limit is refused, and told by a dry run."""
    save(
        [
            row("open", "f", "shared", extra={"flags": 66}),
            row("posix_fallocate", "f", "shared", at=0, size=50_000),
            row("write", "f", "shared", size=10),
            row("close", "f", "shared"),
        ],
        tmp_path / "path.parquet",
    )
    words = ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "path.parquet", tmp_path / "below"]
    launch = python_run([*words, "--most-bytes", "1000"], 2, timeout_s=60)
    assert "2 were left out" in launch.stdout, launch.describe()
    assert (tmp_path / "below" / "f").stat().st_size == 10
    save(
        [row("open", "g", "shared"), row("read", "g", "shared", at=0, size=5000), row("close", "g", "shared")],
        tmp_path / "path.parquet",
    )
    launch = python_run([*words, "--most-bytes", "1000"], 2, timeout_s=60, check=False)
    assert launch.returncode == 2 and "made longer by 5,000 bytes; --most-bytes allows 1,000" in launch.stderr
    assert not (tmp_path / "below" / "g").exists()
    launch = python_run([*words, "--dry-run"], 2, timeout_s=60)
    assert "made longer by 10,000 bytes" in launch.stdout, launch.describe()


def test_no_room(tmp_path: pathlib.Path) -> None:
    """A path that needs more room than there is on the file system is not begun."""
    save(
        [
            row("open", "f", "shared", extra={"flags": 66}),
            row("pwrite", "f", "shared", at=2**60, size=2**60),
            row("close", "f", "shared"),
        ],
        tmp_path / "path.parquet",
    )
    words = ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "path.parquet", tmp_path / "below"]
    launch = python_run(words, 2, timeout_s=60, check=False)
    assert launch.returncode == 1 and "needs room for up to" in launch.stderr, launch.describe()
    assert not (tmp_path / "below" / "f").exists()


def test_reasons_of_calls_that_fail(tmp_path: pathlib.Path) -> None:
    """The function and its error; the status tells those that had not failed in the trace from those that had."""
    rows = [row("open", "sub/nothing", "shared", extra={"flags": 0, "errno": 2})]
    save(rows, tmp_path / "path.parquet")
    words = ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "path.parquet", tmp_path / "below"]
    launch = python_run(words, 2, timeout_s=60)
    assert "failed: 2 x open: ENOENT (in the trace, too)" in launch.stdout, launch.describe()
    alone = {"amode": "RDONLY", "comm": "self"}
    save(
        [
            *rows,
            row("unlink", "sub/other", "shared", groups=1),
            row("open", "sub/other", "shared", extra={"flags": 0}),
            row("unlink", "sub/third", "shared", groups=1),
            row("MPI_File_open", "sub/third", "shared", "mpiio", extra=alone),
        ],
        tmp_path / "path.parquet",
    )
    launch = python_run(words, 2, timeout_s=60, check=False)
    assert launch.returncode == 3, launch.describe()
    assert "failed: 2 x open: ENOENT (first on rank 0)" in launch.stderr, launch.describe()
    said = re.search("failed: 2 x MPI_File_open: .*(NO_SUCH_FILE|File does not exist)", launch.stderr)
    assert said, launch.describe()


def test_input_is_as_long_as_what_was_read(tmp_path: pathlib.Path) -> None:
    """A read of 1 MiB that has met 6 bytes meets 6 bytes again; one that has met the end makes no file longer."""
    read = {"at": 0, "size": 1 << 20, "extra": {"moved": 6}}
    save(
        [
            row("open", "f", "shared", extra={"flags": 0}),
            row("read", "f", "shared", **read),
            row("read", "f", "shared", at=6, size=1 << 20, extra={"moved": 0}),
            row("close", "f", "shared"),
        ],
        tmp_path / "path.parquet",
    )
    words = ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "path.parquet", tmp_path / "below"]
    launch = python_run(words, 2, timeout_s=60)
    assert "and read 12 bytes" in launch.stdout, launch.describe()
    assert (tmp_path / "below" / "f").stat().st_size == 6


#: A replay on a disk that fills although there was room before: no file grows beyond 100,000 bytes from then on. What
#: the MPI library needs files for is there already.
FILLING = """
import resource, signal, sys
import mpiio_ext
from mpi4py import MPI
from mpiio_ext.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
main(sys.argv[1:])
"""


def on_a_filling_disk(folder: pathlib.Path, rows: list[dict[str, Any]], ranks: int) -> Launch:
    save(rows, folder / "path.parquet")
    words = ["-c", FILLING, "pioneer", "replay", folder / "path.parquet", folder / "below"]
    return python_run(words, ranks, timeout_s=60, check=False)


def test_a_disk_that_fills_meanwhile(tmp_path: pathlib.Path) -> None:
    """Calls fail and are told, each rank goes on to its end, and what comes behind them is made.

    Open MPI's own MPI_File_write_at prints the error and returns MPI_SUCCESS; others, the extension among them, say it.
    """
    rows = [
        row("open", "own.{rank}", "private", extra={"flags": 66}),
        *(row("write", "own.{rank}", "private", at=30_000 * at, size=30_000) for at in range(6)),
        row("close", "own.{rank}", "private"),
        row("MPI_File_open", "mpi.{rank}", "private", "mpiio", extra={"amode": 9, "comm": "self"}),
        row("MPI_File_write_at", "mpi.{rank}", "private", "mpiio", at=0, size=1000),
        row("MPI_File_write_at", "mpi.{rank}", "private", "mpiio", at=200_000, size=1000),
        row("MPI_File_close", "mpi.{rank}", "private", "mpiio"),
        row("open", "last.{rank}", "private", extra={"flags": 66}),
        row("write", "last.{rank}", "private", size=10),
        row("close", "last.{rank}", "private"),
    ]
    launch = on_a_filling_disk(tmp_path, rows, 2)
    assert launch.returncode == 3, launch.describe()
    assert "failed: 4 x write: EFBIG (first on rank 0)" in launch.stderr, launch.describe()
    told = "failed: 2 x MPI_File_write_at: " in launch.stderr
    assert told or "File too large" in launch.stderr, launch.describe()
    said = f"wrote {202_020 if told else 204_020:,} and read 0 bytes; {6 if told else 4} calls failed, 0 were left out"
    assert said in launch.stdout, launch.describe()
    for rank in range(2):
        assert (tmp_path / "below" / f"own.{rank}").read_bytes() == pattern(100_000)
        assert (tmp_path / "below" / f"mpi.{rank}").stat().st_size == 1000
        assert (tmp_path / "below" / f"last.{rank}").stat().st_size == 10


def test_a_disk_that_has_no_room_for_what_is_read(tmp_path: pathlib.Path) -> None:
    """Nothing is carried out; the file is named once."""
    rows = [
        row("open", "made", "root", groups=1, extra={"flags": 66}),
        row("close", "made", "root", groups=1),
        row("open", "in.{rank}", "private", extra={"flags": 0}),
        row("read", "in.{rank}", "private", at=0, size=300_000),
        row("close", "in.{rank}", "private"),
    ]
    launch = on_a_filling_disk(tmp_path, rows, 2)
    assert launch.returncode == 1, launch.describe()
    assert launch.stderr.count("cannot be made 300,000 bytes long: ") == 1, launch.describe()
    assert "rank 0: " in launch.stderr and f"{tmp_path}/below/in.0" in launch.stderr, launch.describe()
    assert not (tmp_path / "below" / "made").exists()
