"""``mpiio-ext pioneer all``: from the trace of a program to its workload carried out by more ranks, and compared."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from mpiio_ext.pioneer.compare.metrics import TIMED
from mpiio_ext.pioneer.path import WorkloadPath
from support.launch import PROGRAMS, Launch, base_environment, launcher, python_run, run_bounded

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

TRACED, RANKS = 3, 5


def everything(folder: pathlib.Path, *more: str, ranks: int = RANKS) -> Launch:
    """Run all steps on the trace of a folder."""
    command = [
        sys.executable,
        "-m",
        "mpiio_ext",
        "pioneer",
        "all",
        str(folder / "trace"),
        "-n",
        str(ranks),
        "-o",
        str(folder / "out"),
        "--only",
        f"{folder}/data/*",
        *more,
    ]
    return run_bounded(command, env=base_environment(), timeout_s=120, check=False)


@pytest.mark.both
def test_from_a_trace_to_a_comparison(tmp_path: pathlib.Path) -> None:
    """Every limit of what is not time holds, and everything that the steps leave is there."""
    (tmp_path / "data").mkdir()
    words = [
        "-m",
        "mpiio_ext",
        "trace",
        "-o",
        tmp_path / "trace",
        "--",
        sys.executable,
        PROGRAMS / "pioneer_checkpoint.py",
        tmp_path / "data",
    ]
    python_run(words, TRACED, timeout_s=120)
    launch = everything(tmp_path, "--time-scale", "0")
    assert launch.returncode == 0, launch.describe()
    out = tmp_path / "out"
    document = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert document["failed"] == [], launch.describe()
    assert {item["name"] for item in document["metrics"] if not item["judged"]} == {*TIMED, "total"}
    assert (document["original"]["ranks"], document["synthetic"]["ranks"]) == (TRACED, RANKS)
    per_rank = (document["original"]["bytes_written"] - 4) / TRACED
    assert document["synthetic"]["bytes_written"] == 4 + RANKS * per_rank
    assert all(item["difference"] == 0 for item in document["operations"])
    assert "MPI_File_set_errhandler" in document["choices"]["left_out_of_original"]
    report = json.loads((out / "run" / "replay.json").read_text(encoding="utf-8"))
    assert (report["ranks"], report["failed"]) == (RANKS, 0)
    assert report["bytes_written"] == document["synthetic"]["bytes_written"]
    assert WorkloadPath.load(out / "path.parquet").info.ranks == TRACED
    assert len(list((out / "run" / "trace").glob("*.mpioxtrace"))) == RANKS
    below = out.joinpath("run", "files", *tmp_path.parts[1:], "data")
    assert {item.name for item in below.iterdir()} == {
        "all.dat",
        "log.txt",
        *(f"own_{rank:03}.txt" for rank in range(RANKS)),
    }
    assert "All limits hold" in (out / "comparison.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_which_bytes_every_rank_touches(tmp_path: pathlib.Path) -> None:
    """Views of seven kinds: with each rank in the path all bytes are touched again, by the same ranks."""
    (tmp_path / "data").mkdir()
    words = [
        "-m",
        "mpiio_ext",
        "trace",
        "-o",
        tmp_path / "trace",
        "--",
        sys.executable,
        PROGRAMS / "pioneer_views.py",
        tmp_path / "data",
    ]
    python_run(words, 4, timeout_s=120)
    launch = everything(tmp_path, "--time-scale", "0", "--each-rank", ranks=4)
    assert launch.returncode == 0, launch.describe()
    found = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert [item["value"] for item in found["metrics"] if item["name"] == "shared.touched"] == [0.0]


#: What `tar` does: it reads a folder through a descriptor, closes what the trace has not opened, leaves a file open.
LIKE_TAR = """\
openat(AT_FDCWD</d>, "/d/sub", O_RDONLY|O_DIRECTORY) = 4</d/sub>
fcntl(4</d/sub>, F_GETFD) = 0
getdents64(4</d/sub>, 0x55 /* 10 entries */, 32768) = 300
getdents64(4</d/sub>, 0x55 /* 0 entries */, 32768) = 0
openat(AT_FDCWD</d>, "/d/out.tar", O_WRONLY|O_CREAT, 0666) = 3</d/out.tar>
write(3</d/out.tar>, "x"..., 512) = 512
write(3</d/out.tar>, "x"..., 512) = 512
close(9</d/elsewhere>) = 0
close(3</d/out.tar>) = 0
"""


def test_what_the_engine_leaves_out_is_not_in_the_total(tmp_path: pathlib.Path) -> None:
    """Nor single calls of a name of which it makes others; what it closes at its end is not in its trace."""
    lines = LIKE_TAR.splitlines()
    (tmp_path / "trace").write_text(
        "".join(f"7 1700000000.{1000 * number:06} {line} <0.000010>\n" for number, line in enumerate(lines)),
        encoding="utf-8",
    )
    launch = everything(tmp_path, "--time-scale", "0", "--only", "/d/*", ranks=1)
    document = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    (total,) = (item for item in document["metrics"] if item["name"] == "total")
    assert (total["judged"], total["value"]) == (True, 0), document["operations"]
    assert document["failed"] == [] and launch.returncode == 0, launch.describe()
    assert {item["operation"]: (item["original"], item["synthetic"]) for item in document["operations"]} == {
        "open": (2, 2),
        "write": (2, 2),
        "close": (1, 1),
    }
    assert document["original"]["operations"] == document["synthetic"]["operations"] == 5
    assert document["choices"]["left_out_of_original"].startswith("1 close, 1 fcntl, 2 getdents: ")


def test_ranks_that_fail_are_the_error_of_their_step(tmp_path: pathlib.Path) -> None:
    """A launcher's option that is none: the step is named, its output shown, and no run looks whole."""
    (tmp_path / "data").mkdir()
    python_run(
        [
            "-m",
            "mpiio_ext",
            "trace",
            "-o",
            tmp_path / "trace",
            "--",
            sys.executable,
            PROGRAMS / "pioneer_checkpoint.py",
            tmp_path / "data",
        ],
        2,
        timeout_s=120,
    )
    launch = everything(tmp_path, "--launcher", f"{launcher()} --no-such-option-of-any-launcher 1")
    assert launch.returncode == 2, launch.describe()
    assert "step 5 of 6, replay: " in launch.stderr, launch.describe()
    assert "run.failed" in {item.name for item in (tmp_path / "out").iterdir()}
    assert not (tmp_path / "out" / "run").exists()


def test_step_by_step_with_duplicates(tmp_path: pathlib.Path) -> None:
    """The same by the commands of the single steps, as the how-to page has them; closes of duplicates do not count."""
    (tmp_path / "data").mkdir()
    program = tmp_path / "program.py"
    program.write_text(f"""
import os
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
fd = os.open({str(tmp_path / "data")!r} + f"/own.{{rank}}", os.O_CREAT | os.O_RDWR)
os.write(fd, b"x" * 100)
other = os.dup(fd)
os.close(fd)
os.write(other, b"y" * 50)
os.close(other)
""")
    tool = ["-m", "mpiio_ext"]

    def words(command: str) -> list[str]:
        return [word.replace("@", str(tmp_path)) for word in command.split()]

    python_run([*tool, *words("trace -o @/trace --"), sys.executable, program], 2, timeout_s=120)
    path = [sys.executable, *tool, *words("pioneer path @/trace -o @/run.parquet --only @/data/*")]
    run_bounded(path, env=base_environment(), timeout_s=60)
    replay = [sys.executable, *tool, *words("pioneer replay @/run.parquet @/run")]
    python_run([*tool, *words("trace --folders -o @/again --"), *replay], 2, timeout_s=120)
    compare = words("pioneer compare @/run.parquet @/again --below @/run --time-scale 2 --replayed --json")
    launch = run_bounded([sys.executable, *tool, *compare], env=base_environment(), timeout_s=60, check=False)
    found = json.loads(launch.stdout)
    assert launch.returncode == 0, launch.describe()
    assert found["failed"] == []
    assert {item["operation"]: item["synthetic"] for item in found["operations"]} == {"open": 1, "write": 2, "close": 1}
