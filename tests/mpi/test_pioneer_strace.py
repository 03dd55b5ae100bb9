"""A trace of strace or ltrace, from its lines to its replay: second names, mappings, what is left out."""

from __future__ import annotations

import json
import pathlib
import sys
from collections import Counter

import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.pioneer.compare.replayed import against_replay
from mpiio_ext.pioneer.compare.workload import load_workload
from mpiio_ext.pioneer.engine.coverage import LEFT_OUT
from mpiio_ext.pioneer.path import WorkloadPath
from support.launch import base_environment, python_run, run_bounded

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

#: What `git add` does, and a program that maps its file; -y, so that relative names can be joined.
CALLS = """openat(AT_FDCWD</w>, "lock", O_RDWR|O_CREAT|O_EXCL, 0666) = 3</w/lock>
openat(AT_FDCWD</w>, "d/tmp", O_RDWR|O_CREAT|O_EXCL, 0444) = -1 ENOENT (No such file or directory)
mkdir("d", 0777) = 0
openat(AT_FDCWD</w>, "d/tmp", O_RDWR|O_CREAT|O_EXCL, 0444) = 4</w/d/tmp>
write(4</w/d/tmp>, "x"..., 3113) = 3113
close(4</w/d/tmp>) = 0
link("d/tmp", "d/object") = 0
unlink("d/tmp") = 0
write(3</w/lock>, "x"..., 100) = 100
close(3</w/lock>) = 0
rename("lock", "index") = 0
openat(AT_FDCWD</w>, "index", O_RDONLY) = 3</w/index>
fstat(3</w/index>, {st_mode=S_IFREG|0644, st_size=100, ...}) = 0
mmap(NULL, 100, PROT_READ|PROT_WRITE, MAP_PRIVATE, 3</w/index>, 0) = 0x7f0000001000
close(3</w/index>) = 0
munmap(0x7f0000001000, 100) = 0
symlink("index", "sym") = 0
openat(AT_FDCWD</w>, "data", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3</w/data>
ftruncate(3</w/data>, 8192) = 0
mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 3</w/data>, 0) = 0x7f0000002000
msync(0x7f0000002000, 8192, MS_SYNC) = 0
munmap(0x7f0000002000, 8192) = 0
close(3</w/data>) = 0
renameat2(AT_FDCWD</w>, "data", AT_FDCWD</w>, "data.1", RENAME_NOREPLACE) = 0
linkat(AT_FDCWD</w>, "data.1", AT_FDCWD</w>, "data.2", 0) = 0
renameat(AT_FDCWD</w>, "data.2", AT_FDCWD</w>, "data.3") = 0"""


#: As ltrace prints it with the prototypes of `readers.prototypes`.
OF_LTRACE = """SYS_mkdir("/w", 0755) = 0
SYS_openat(-100, "/w/a", 01102, 0644) = 3
SYS_write(3, 0x402012, 5) = 5
SYS_ftruncate(3, 4096) = 0
SYS_mmap(0, 4096, 3, 1, 3, 0) = 0x7fef0a404000
SYS_msync(0x7fef0a404000, 4096, 4, 0x7fef0a224188) = 0
SYS_munmap(0x7fef0a404000, 4096) = 0
SYS_close(3) = 0
SYS_rename("/w/a", "/w/b") = 0
SYS_link("/w/b", "/w/c") = 0
SYS_renameat(-100, "/w/b", -100, "/w/d") = 0
SYS_linkat(-100, "/w/d", -100, "/w/e", 0) = 0
SYS_unlink("/w/c") = 0"""


def write_traces(folder: pathlib.Path, ranks: int) -> pathlib.Path:
    """Write the traces of so many ranks; each has its own folder."""
    (folder / "trace").mkdir()
    for rank in range(ranks):
        lines = [
            f"{77 + rank} {1700000000 + at / 1000:.6f} {call.replace('/w', f'/w{rank}')} <0.000010>"
            for at, call in enumerate(CALLS.splitlines())
        ]
        (folder / "trace" / f"t.{rank}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "trace"


def test_second_names_and_mappings_come_into_the_path(tmp_path: pathlib.Path) -> None:
    done = CliRunner().invoke(main, ["pioneer", "path", str(write_traces(tmp_path, 1)), "-o", str(tmp_path / "p.json")])
    assert done.exit_code == 0, done.output
    path = WorkloadPath.load(tmp_path / "p.json")
    found = [
        (name, file, json.loads(extra or "{}").get("file2"))
        for name, file, extra in zip(path.words("operation"), path.words("file"), path.words("extra"), strict=True)
    ]
    assert [item for item in found if item[0] in ("rename", "link")] == [
        ("link", "/w0/d/tmp", "/w0/d/object"),
        ("rename", "/w0/lock", "/w0/index"),
        ("rename", "/w0/data", "/w0/data.1"),
        ("link", "/w0/data.1", "/w0/data.2"),
        ("rename", "/w0/data.2", "/w0/data.3"),
    ]
    assert [item[1] for item in found if item[0] in ("mmap", "munmap", "msync")] == (
        ["/w0/index"] * 2 + ["/w0/data"] * 3
    )
    checked = CliRunner().invoke(main, ["pioneer", "check", str(tmp_path / "p.json")])
    assert checked.exit_code == 0, checked.output


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [4, 1, 2])
def test_the_replay_makes_the_calls_of_the_trace(tmp_path: pathlib.Path, ranks: int) -> None:
    """Every one but the symbolic link, which is left out with a reason; nothing besides."""
    made = CliRunner().invoke(
        main, ["pioneer", "path", str(write_traces(tmp_path, ranks)), "--each-rank", "-o", str(tmp_path / "p.parquet")]
    )
    assert made.exit_code == 0, made.output
    launch = python_run(
        ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "p.parquet", tmp_path / "out", "--time-scale", "0"],
        ranks,
        timeout_s=120,
    )
    calls = len(CALLS.splitlines()) - 1
    assert f"{ranks} ranks made {calls * ranks} calls" in launch.stdout, launch.describe()
    assert f"left out: {ranks} x symlink: a link could lead out of the folder" in launch.stdout, launch.describe()
    assert f"0 calls failed, {ranks} were left out" in launch.stdout, launch.describe()
    for rank in range(ranks):
        below = tmp_path / "out" / f"w{rank}"
        assert sorted(str(item.relative_to(below)) for item in below.rglob("*") if item.is_file()) == [
            "d/object",
            "data.1",
            "data.3",
            "index",
        ], launch.describe()
        assert (below / "data.1").samefile(below / "data.3")
        assert (below / "d/object").stat().st_size == 3113


def test_the_replay_makes_the_calls_of_a_trace_of_ltrace(tmp_path: pathlib.Path) -> None:
    (tmp_path / "trace").write_text(
        "".join(f"77 11:15:05.{1000 * at:06} {call} <0.000010>\n" for at, call in enumerate(OF_LTRACE.splitlines())),
        encoding="utf-8",
    )
    made = CliRunner().invoke(main, ["pioneer", "path", str(tmp_path / "trace"), "-o", str(tmp_path / "p.parquet")])
    assert made.exit_code == 0, made.output
    launch = python_run(
        ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "p.parquet", tmp_path / "out", "--time-scale", "0"],
        1,
        timeout_s=120,
    )
    assert f"1 ranks made {len(OF_LTRACE.splitlines())} calls" in launch.stdout, launch.describe()
    assert "0 calls failed, 0 were left out" in launch.stdout, launch.describe()
    assert sorted(item.name for item in (tmp_path / "out" / "w").iterdir()) == ["d", "e"]
    assert (tmp_path / "out" / "w" / "d").samefile(tmp_path / "out" / "w" / "e")
    assert (tmp_path / "out" / "w" / "d").stat().st_size == 4096


def test_all_of_it(tmp_path: pathlib.Path) -> None:
    """`pioneer all`: the trace of the replay has the operations of the trace, and no other one."""
    words = [
        "pioneer",
        "all",
        str(write_traces(tmp_path, 1)),
        "-n",
        "1",
        "-o",
        str(tmp_path / "all"),
        "--time-scale",
        "0",
    ]
    launch = run_bounded(
        [sys.executable, "-m", "mpiio_ext", *words], env=base_environment(), timeout_s=240, check=False
    )
    report = tmp_path / "all"
    assert (report / "comparison.json").exists(), launch.describe()
    original = load_workload(report / "sanitized.parquet", without=LEFT_OUT)
    again = load_workload(report / "run" / "trace", below=f"{(report / 'run' / 'files').resolve()}/")
    wanted, found = (Counter(item.path.words("operation").tolist()) for item in against_replay(original, again, 1))
    assert wanted == found
    judged = json.loads((report / "comparison.json").read_text(encoding="utf-8"))["metrics"]
    failed = [item["name"] for item in judged if item["judged"] and not item["passed"]]
    assert failed == [], launch.describe()
