"""Statistics as text: one line for each file with true numbers, the block once, the levels."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from support.launch import Launch, json_lines, python_run
from support.marks import slow

pytestmark = pytest.mark.mpi

BYTES = 1 << 16
#: Each rank writes alone, then all together, and reads; then MORE files. Prints the seconds of each rank in calls.
PROGRAM = """
import json, sys, time
import mpiio_ext
from mpi4py import MPI
world, (path, size, more) = MPI.COMM_WORLD, (sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
spent = {"write": 0.0, "read": 0.0}
def timed(kind, call, *arguments):
    begun = time.perf_counter()
    call(*arguments)
    spent[kind] += time.perf_counter() - begun
for number in range(1 + more):
    file = MPI.File.Open(world, path + str(number), MPI.MODE_CREATE | MPI.MODE_RDWR)
    timed("write", file.Write_at, world.rank * size, bytes(size))
    timed("write", file.Write_at_all, world.rank * size, bytes(size))
    if not number:
        timed("read", file.Read_at_all, 0, bytearray(size))
    file.Close()
everybody = world.gather(spent)
if world.rank == 0:
    print(json.dumps(everybody), flush=True)
"""


def run(folder: pathlib.Path, level: str, *, ranks: int = 2, more: int = 0, **variables: str) -> Launch:
    words = ["-c", PROGRAM, str(folder / "data"), str(BYTES), str(more)]
    return python_run(words, ranks, timeout_s=60, env={"MPIOX_STATS": level, **variables})


def said(launch: Launch) -> list[str]:
    lines = (line for line in launch.stderr.splitlines() if "fault injection" not in line)
    return [line for line in lines if line.startswith("mpiio_ext: ")]


@pytest.mark.parametrize("slow", [0, 2])
def test_the_line_is_true(tmp_path: pathlib.Path, slow: int) -> None:
    """Times lie between the requests' delays and what the program measured; waiting makes no rank the slowest."""
    delay_s = 0.2
    fault = f"op=write,rank={slow},delay_ms={1000 * delay_s:.0f}"
    launch = run(tmp_path, "line", ranks=3, MPIOX_STATS_FILE=str(tmp_path / "lines"), MPIOX_FAULT=fault)
    line = next(one for one in json_lines(tmp_path / "lines") if one["kind"] == "file")
    measured = json.loads(launch.stdout)
    for kind in ("write", "read"):
        assert line[f"{kind}_s"] <= sum(rank[kind] for rank in measured)
        assert line[f"{kind}_s"] / 3 <= line[f"{kind}_longest_s"] <= max(rank[kind] for rank in measured)
    assert line["write_longest_s"] >= delay_s
    assert line["slowest_rank"] == slow
    assert delay_s <= line["slowest_s"] <= line["write_longest_s"] + line["read_longest_s"] + 1e-5
    moved = 2 * 3 * BYTES
    assert said(launch) == [
        f"mpiio_ext: {tmp_path}/data0: 3 ranks wrote {moved / 1e3:.1f} kB at "
        f"{speed(moved / 1e6 / line['write_longest_s'])} MB/s, read {moved / 2e3:.1f} kB at "
        f"{speed(moved / 2e6 / line['read_longest_s'])} MB/s; "
        f"{seconds((line['write_s'] + line['read_s']) / 3)} in I/O a rank, "
        f"{seconds(line['wait_s'] / 3)} of it waiting; "
        f"slowest rank {slow}: {seconds(line['slowest_s'])} without waiting"
    ]


def speed(value: float) -> str:
    return f"{value:.{0 if value >= 100 else 1 if value >= 1 else 3}f}"


def seconds(value: float) -> str:
    if value >= 0.9995:
        return f"{value:.2f} s"
    return f"{1e3 * value:.{1 if value < 0.1 else 0}f} ms" if value >= 0.9995e-3 else f"{1e6 * value:.0f} us"


def test_statistics_that_cannot_be_appended_say_why(tmp_path: pathlib.Path) -> None:
    launch = run(tmp_path, "line", ranks=1, MPIOX_STATS_FILE="/dev/full")
    assert "mpiio_ext: cannot append statistics to /dev/full: No space left on device" in said(launch)


def test_the_run_of_one_file_is_not_told_twice(tmp_path: pathlib.Path) -> None:
    texts = said(run(tmp_path, "1"))
    assert len(texts) == 2 and texts[0].startswith(f"mpiio_ext: {tmp_path}/data0: 2 ranks wrote "), texts
    assert texts[1] == f"mpiio_ext: statistics of {tmp_path}/data0, summed over 2 ranks"


def test_the_run_of_two_files_adds_them_up(tmp_path: pathlib.Path) -> None:
    texts = said(run(tmp_path, "line", more=1))
    assert [text.split(":")[1].strip() for text in texts] == [f"{tmp_path}/data0", f"{tmp_path}/data1", "the run"]
    assert texts[-1].startswith(f"mpiio_ext: the run: 2 files, 2 ranks wrote {8 * BYTES / 1e3:.1f} kB at "), texts


def test_a_file_left_out_is_in_the_run(tmp_path: pathlib.Path) -> None:
    """Then the run is not its only reported file, and has a line of its own."""
    texts = said(run(tmp_path, "line", more=1, MPIOX_HINTS="*1:mpiox_stats=false"))
    assert [text.split(":")[1].strip() for text in texts] == [f"{tmp_path}/data0", "the run"]
    assert f" wrote {8 * BYTES / 1e3:.1f} kB at " in texts[-1], texts


def test_the_delegates_of_one_file_are_told(tmp_path: pathlib.Path) -> None:
    texts = said(run(tmp_path, "full", MPIOX_HINTS="mpiox_delegates=1:mpiox_delegate_mode=thread"))
    assert [text.split()[1:3] for text in texts] == [[f"{tmp_path}/data0:", "2"], ["statistics", "of"], ["what", "the"]]


@pytest.mark.slow_with("*-true", "*-1", "True-line", "True-full")
@pytest.mark.parametrize("level", ["json", "line", "full", "true", "1", "0"])
@pytest.mark.parametrize("to_file", [False, True])
def test_levels(tmp_path: pathlib.Path, level: str, *, to_file: bool) -> None:
    """A file gets JSON at every level; text is left out where the level does not ask for it."""
    lines = tmp_path / "lines"
    launch = run(tmp_path, level, **({"MPIOX_STATS_FILE": str(lines)} if to_file else {}))
    objects: list[dict[str, Any]] = json_lines(lines) if lines.exists() else []
    if level == "json" and not to_file:
        objects = [json.loads(text) for text in launch.stderr.splitlines() if text.startswith("{")]
    told = [one["kind"] for one in objects]
    assert told == (["file", "run"] if (to_file and level != "0") or level == "json" else [])
    texts = {"line": 1, "full": 2, "true": 2, "1": 2}.get(level, 0)
    assert len(said(launch)) == (0 if to_file and level in ("true", "1") else texts)


@pytest.mark.parametrize("level", [*slow("true"), "line", "json", "some"])
def test_levels_of_one_file(tmp_path: pathlib.Path, level: str) -> None:
    """The hint has the same values; another one is refused."""
    launch = python_run(
        ["-c", PROGRAM, str(tmp_path / "data"), str(BYTES), "1"],
        2,
        timeout_s=60,
        env={"MPIOX_HINTS": f"*1:mpiox_stats={level}"},
    )
    texts = said(launch)
    if level == "some":
        assert "allowed: true | false | line | full | json" in texts[0]
    else:
        assert len(texts) == {"true": 2, "line": 1, "json": 0}[level]
        assert all("data1" in text for text in texts)
    assert launch.stderr.count('{"kind": "file"') == (level == "json")
