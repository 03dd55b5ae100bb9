"""Kernels and suites of the bench as a user runs them: small runs, the archive, one at a time, and what goes wrong."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.launch import base_environment, launcher, run_bounded
from support.marks import slow

pytestmark = pytest.mark.mpi

BENCH = ["-m", "mpiio_ext.bench"]

SMALL = """
title = "Small"
source = "a test"
[options]
workload = "contiguous"
size = "200KiB"
method = ["native", "auto"]
repeats = 2
[[kernels]]
kernel = "vpic"
interfaces = ["mpiio"]
parameters = { particles = 500 }
[[kernels]]
kernel = "madbench"
interfaces = ["mpiio", "posix"]
parameters = { no_pix = 64 }
[[kernels]]
kernel = "madbench"
name = "madbench-two"
interfaces = ["mpiio"]
parameters = { no_pix = 96 }
"""


@pytest.fixture
def bench(extension, mpi_python, tmp_path):
    """Run the bench in a folder of its own."""

    def run(ranks, *arguments, program=BENCH, env=None, check=True, timeout_s=120):
        files = tmp_path / "files"
        files.mkdir(exist_ok=True)
        given = [] if "--path" in arguments else ["--path", files]
        return mpi_python(
            [*program, *given, *arguments], ranks, env=env, timeout_s=timeout_s, check=check, cwd=tmp_path
        )

    run.files = tmp_path / "files"
    return run


@pytest.fixture
def small(tmp_path):
    """Return the path of a small suite."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def results_of(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text())


def assert_one_clear_line(launch, status, *words):
    assert not launch.timed_out, launch.describe()
    assert launch.returncode != 0, launch.describe()
    lines = [line for line in (launch.stdout + launch.stderr).splitlines() if "mpiio-ext: " in line]
    lines = [line for line in lines if "mpiio-ext: ended early; " not in line]  # where the results lie
    assert len(lines) == 1, launch.describe()
    for word in words:
        assert word in lines[0], launch.describe()
    assert "Traceback" not in launch.stderr, launch.describe()
    if status is not None and "Exit code:" in launch.stderr:
        assert f"Exit code:    {status}" in launch.stderr, launch.describe()


# ---- kernels ----


@pytest.mark.both
def test_patterns_and_kernels_in_one_run(bench, tmp_path):
    launch = bench(
        3, "-w", "contiguous", "-s", "100KiB", "-k", "vpic,bdcats", "-P", "particles=1", "--output", "o", check=False
    )
    assert_one_clear_line(launch, 2, "--param", "exactly one --kernel")
    launch = bench(
        3,
        "-w",
        "contiguous",
        "-s",
        "100KiB",
        "-k",
        "bdcats",
        "-P",
        "particles=1000",
        "-i",
        "mpiio",
        "-r",
        "2",
        "-m",
        "native,even",
        "--output",
        "o",
        "--no-figures",
        "--no-page",
        "-H",
        "cb_nodes=2",
    )
    results = results_of(tmp_path / "o")
    runs = results["runs"]
    places = [
        (run["repetition"], run["variant"], run["strategy"], run["phase"])
        for run in runs
        if run["operation"] == "write"
    ]
    assert places == [
        (0, "contiguous", "native", ""),
        (0, "contiguous", "even", ""),
        (0, "bdcats", "native", "particles"),
        (0, "bdcats", "even", "particles"),
        (1, "contiguous", "even", ""),
        (1, "contiguous", "native", ""),
        (1, "bdcats", "even", "particles"),
        (1, "bdcats", "native", "particles"),
    ], "repetitions are interleaved over everything, the methods' order rotates"
    orders = [run["order"] for run in runs]
    assert sorted(set(orders)) == list(range(8))
    assert orders == sorted(orders)
    for run in runs:
        assert run["ranks"] == 3
        assert run["ratio_to_native"] > 0
        if run["kind"] == "kernel":
            assert run["data_bytes"] == 3 * 1000 * (32 if run["operation"] == "write" else 24)
            assert run["compared"] == ("bytes" if run["repetition"] == 0 and run["strategy"] == "even" else "")
    recorded = results["configuration"]["kernels"]["bdcats"]
    assert (recorded["particles"], recorded["given"]) == (1000, {"particles": 1000})
    assert results["configuration"]["suite"] is None
    assert pq.read_table(tmp_path / "o" / "runs.parquet").num_rows == len(runs) == 16
    assert "BD-CATS-IO [MPI-IO]" in launch.stdout
    assert "contiguous segments [MPI-IO]" in launch.stdout
    assert not list(bench.files.iterdir()), "bench files are left behind"


def test_kernels_in_all_their_interfaces(bench, tmp_path):
    bench(
        3,
        "-k",
        "vpic,nas_btio,madbench",
        "--preset",
        "quick",
        "--scale",
        "0.01",
        "-r",
        "1",
        "-m",
        "native,auto",
        "--output",
        "o",
        "--no-figures",
        "--no-page",
    )
    results = results_of(tmp_path / "o")
    absent = " ".join(item["what"] for item in results["absent"])
    titles = {"hdf5": "HDF5", "pnetcdf": "PnetCDF", "mpiio": "MPI-IO", "posix": "POSIX"}
    for kernel, ways in (
        ("vpic", ("hdf5", "mpiio")),
        ("nas_btio", ("mpiio", "pnetcdf", "hdf5")),
        ("madbench", ("mpiio", "posix")),
    ):
        for way in ways:
            found = {run["strategy"] for run in results["runs"] if (run["workload"], run["interface"]) == (kernel, way)}
            if not found:
                assert titles[way] in absent
            else:
                assert found == ({"native"} if way == "posix" else {"native", "auto"})


# ---- suites ----


def test_suite_is_archived_with_everything(bench, small, tmp_path):
    log = tmp_path / "logs" / "me_python_id4242-1_1-1-1_1.darshan"
    log.parent.mkdir()
    log.write_bytes(b"log")
    os.utime(log, (4e9, 4e9))  # written after the start of the job, as Darshan does when MPI ends
    launch = bench(
        3,
        "--suite",
        small,
        "--archive",
        "kept",
        env={"LOADEDMODULES": "gcc/12", "SLURM_JOB_ID": "4242", "DARSHAN_LOGPATH": str(log.parent)},
    )
    (folder,) = (tmp_path / "kept" / "small").glob("*/*")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d/\d\d-\d\d-\d\d", str(folder.relative_to(tmp_path / "kept" / "small")))
    assert {path.name for path in folder.iterdir()} >= {
        "results.json",
        "runs.parquet",
        "summary.parquet",
        "ratios.svg",
        "table.txt",
        "environment.json",
        "small.toml",
        "report.html",
        "darshan",
    }
    results = results_of(folder)
    assert results["failure"] is None
    assert results["configuration"]["suite"] == "small"
    assert {run["variant"] for run in results["runs"]} == {"contiguous", "vpic", "madbench", "madbench-two"}
    assert {run["repetition"] for run in results["runs"]} == {0, 1}
    assert "MADBench2 (madbench-two)" in (folder / "table.txt").read_text()
    assert "madbench-two" in (folder / "report.html").read_text()
    document = json.loads((folder / "environment.json").read_text())
    assert document["modules"] == ["gcc/12"]
    assert document["job"]["SLURM_JOB_ID"] == "4242"
    assert (folder / "small.toml").read_text() == SMALL
    assert [path.name for path in (folder / "darshan").iterdir()] == [log.name]
    for words in ("report.html", "Darshan log", str(folder.relative_to(tmp_path))):
        assert words in launch.stdout
    assert not list(bench.files.iterdir())


@pytest.mark.slow
def test_second_suite_ends_at_once(bench, small, tmp_path):
    archive = tmp_path / "kept"
    archive.mkdir()
    with (archive / ".suite.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write("suite nightly on elsewhere, process 7, since noon\n")
        file.flush()
        launch = bench(3, "--suite", small, "--archive", archive, check=False)
        assert_one_clear_line(launch, 2, "one suite at a time", "suite nightly on elsewhere, process 7, since noon")
        assert launch.stdout == ""
        bench(
            2, "-w", "contiguous", "-s", "1KiB", "-r", "1", "-m", "native", "--no-figures", "--no-page", "--output", "o"
        )
    assert [path.name for path in archive.iterdir()] == [".suite.lock"]
    assert bench(1, "--suite", small, "--archive", archive, "-r", "1", "--no-figures").returncode == 0


def test_report_that_fails_is_a_warning(bench, script, tmp_path):
    program = script("""
        import mpiio_ext, sys
        from mpiio_ext.bench import __main__
        sys.modules["mpiio_ext.report.page"] = None
        __main__.main(sys.argv[1:])
    """)
    launch = bench(2, "-w", "contiguous", "-s", "1KiB", "-r", "1", "-m", "native", "--output", "o", program=[program])
    assert "warning: no report.html" in launch.stdout
    assert (tmp_path / "o" / "results.json").exists()
    assert not (tmp_path / "o" / "report.html").exists()


# ---- without MPI ----


def alone(tmp_path, *arguments, env=None, check=True):
    """Run the bench as one process without a launcher."""
    return run_bounded(
        [sys.executable, *BENCH, *map(str, arguments)],
        env=base_environment() | (env or {}),
        timeout_s=60,
        cwd=tmp_path,
        check=check,
    )


def test_dry_run_needs_no_launcher_and_touches_nothing(family, small, tmp_path):
    launch = alone(tmp_path, "--suite", small, "--dry-run", "--ranks", "6", "--path", "/nonexistent")
    lines = [line.strip() for line in launch.stdout.splitlines()]
    commands = [line for line in lines if line.startswith("mpirun -n 6 python -m mpiio_ext.bench ")]
    assert len(commands) == 5
    assert "suite small: Small" in lines
    assert "parameters: a test" in lines
    assert any(re.fullmatch(r"18 runs: [\d.,]+ MB written, [\d.,]+ MB read, 18 files", line) for line in lines)
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_dry_run_and_list_print_once_under_a_launcher(bench, small):
    assert bench(3, "--suite", small, "--dry-run").stdout.count("18 runs:") == 1
    assert bench(2, "--list").stdout.count("sizes on 2 ranks") == 1


def test_commands_without_mpi_say_what_is_wrong(family, tmp_path):
    for arguments, word in (
        (("--suite", "none.toml", "--dry-run"), "none.toml"),
        (("-k", "vpix", "--list"), "'vpic'"),
        (("-k", "vpic", "-i", "posix", "--dry-run"), "nothing to run"),
    ):
        launch = alone(tmp_path, *arguments, check=False)
        assert launch.returncode == 2
        assert_one_clear_line(launch, 2, word)


# ---- what goes wrong ----


SERIAL_H5PY = """
__version__ = "3.0-serial"
class _Config:
    mpi = False
def get_config():
    return _Config()
"""


@pytest.mark.parametrize("kind", ["serial", *slow("missing")])
def test_h5py_that_cannot_be_used(bench, tmp_path, kind):
    fake = tmp_path / "fake" / "h5py"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text(SERIAL_H5PY if kind == "serial" else "raise ImportError('there is no h5py')")
    env = {"PYTHONPATH": str(fake.parent)}
    word = "built without MPI" if kind == "serial" else "there is no h5py"
    launch = bench(2, "-k", "vpic", "-P", "particles=10", "-i", "hdf5", env=env, check=False)
    assert_one_clear_line(launch, 2, "--interface hdf5", word)
    launch = bench(
        2, "-k", "vpic", "-P", "particles=10", "-r", "1", "-m", "native", "--no-figures", "--output", "o", env=env
    )
    assert "not run: HDF5 variants" in launch.stdout
    assert {run["interface"] for run in results_of(tmp_path / "o")["runs"]} == {"mpiio"}


def test_missing_pnetcdf(bench, tmp_path):
    launch = bench(
        2,
        "-k",
        "s3d",
        "-i",
        "pnetcdf",
        check=False,
        program=[
            "-c",
            """
import sys
import mpiio_ext
from mpiio_ext.bench import pnetcdf
def load():
    raise ImportError("libpnetcdf.so cannot be loaded")
pnetcdf.library.load = load
from mpiio_ext.bench import __main__
__main__.main(sys.argv[1:])
""",
        ],
    )
    assert_one_clear_line(launch, 2, "--interface pnetcdf: libpnetcdf.so cannot be loaded")


def test_not_enough_space(bench):
    launch = bench(
        2,
        "-k",
        "vpic",
        "--preset",
        "published",
        "--scale",
        "1000",
        "-P",
        "particles=1000000000",
        "-i",
        "mpiio",
        check=False,
    )
    assert_one_clear_line(launch, 2, "B needed", "B free")
    assert not list(bench.files.iterdir())


#: Every rank has a part of the file and writes it itself.
OWNERS = "even+cb_nodes=4+mpiox_io_rank=owner+striping_unit=4096"


@pytest.mark.parametrize(
    "interface, method, rule",
    [
        ("mpiio", "auto", "op=write,errno=ENOSPC,times=1"),
        *slow(("mpiio", OWNERS, "op=write,rank=2,errno=ENOSPC"), ("pnetcdf", "auto", "op=write,errno=ENOSPC,after=1")),
    ],
)
def test_no_space_in_the_middle(bench, tmp_path, interface, method, rule):
    """Wherever a disk is full, all ranks end with one line, and what was measured before is kept."""
    launch = bench(
        4,
        "-k",
        "nas_btio",
        "--preset",
        "S",
        "-i",
        interface,
        "-m",
        f"native,{method}",
        "-r",
        "1",
        "--output",
        "o",
        "--no-figures",
        check=False,
        env={"MPIOX_FAULT": rule},
    )
    if "--interface" in launch.stderr:
        pytest.skip(launch.stderr.strip().splitlines()[0])
    assert_one_clear_line(launch, 1, "NAS BT-IO full", "ranks failed")
    results = results_of(tmp_path / "o")
    assert {run["strategy"] for run in results["runs"]} == {"native"}
    assert "ranks failed" in results["failure"]
    assert not list(bench.files.iterdir()), "bench files are left behind"


IMPATIENT = """
import mpiio_ext
import sys
from mpiio_ext.bench import __main__
from mpiio_ext.bench.execution import last_words
last_words.PATIENCE_S = 3
__main__.main(sys.argv[1:])
"""


@pytest.mark.hdf5
def test_no_space_where_hdf5_does_not_come_back(bench, script):
    """HDF5's collective close waits for ranks that have given up: one rank says why, and the launch ends."""
    launch = bench(
        4,
        "-k",
        "nas_btio",
        "--preset",
        "S",
        "-i",
        "hdf5",
        "-m",
        "native,auto",
        "-r",
        "1",
        "--output",
        "o",
        "--no-figures",
        "--no-page",
        check=False,
        program=[script(IMPATIENT)],
        timeout_s=60,
        env={"MPIOX_FAULT": "op=write,errno=ENOSPC,after=1"},
    )
    if "--interface" in launch.stderr:
        pytest.skip(launch.stderr.strip().splitlines()[0])
    assert_one_clear_line(launch, None, "NAS BT-IO full", "rank")


KILLED = """
import mpiio_ext
import os, pathlib, signal, sys
from mpi4py import MPI
from mpiio_ext.bench import __main__
from mpiio_ext.bench.execution.player import Player

phase = Player.phase

def die(player, what):
    if MPI.COMM_WORLD.rank == 1 and what.operation == "read" and any(pathlib.Path("kept").rglob("results.json")):
        os.kill(os.getpid(), signal.SIGKILL)
    return phase(player, what)

Player.phase = die
__main__.main(sys.argv[1:])
"""


def test_killed_rank_ends_the_launch_and_frees_the_lock(bench, script, small, tmp_path):
    program = script(KILLED)
    launch = bench(4, "--suite", small, "--archive", "kept", "-r", "1000", program=[program], check=False, timeout_s=60)
    assert not launch.timed_out, launch.describe()
    assert launch.returncode != 0, launch.describe()
    assert re.search(r"signal 9|KILLED|Killed", launch.stdout + launch.stderr), launch.describe()
    assert "Traceback" not in launch.stderr, launch.describe()
    (kept,) = (tmp_path / "kept").rglob("results.json")
    document = json.loads(kept.read_text(encoding="utf-8"))
    assert document["runs"] and document["failure"] == "the bench had not ended when this was written"
    assert bench(2, "--suite", small, "--archive", "kept", "-r", "1", "--no-figures", "--no-page").returncode == 0


def test_suite_that_is_interrupted_frees_the_lock(extension, small, tmp_path):
    """The lock of a launch that was ended from outside does not stay."""
    held = tmp_path / "kept" / ".suite.lock"
    command = [
        str(launcher()),
        "-n",
        "2",
        sys.executable,
        *BENCH,
        "--suite",
        str(small),
        "--archive",
        "kept",
        "-r",
        "1000",
        "--path",
        str(tmp_path),
        "--no-figures",
        "--no-page",
    ]
    process = subprocess.Popen(
        command,
        env=base_environment(),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(600):
            if held.exists() and "suite small" in held.read_text():
                break
            try:
                process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail("the suite ended by itself")
        else:
            pytest.fail("the suite did not begin")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
    launch = alone(
        tmp_path, "--suite", small, "--archive", "kept", "-r", "1", "--no-figures", "--no-page", "--path", tmp_path
    )
    assert "results:" in launch.stdout
