"""Kernels under mpirun: every one through every interface that is here, at several rank counts; faults are found."""

from __future__ import annotations

import pathlib
import sys

import pytest

from mpiio_ext.bench import kernels
from support import fuzz
from support.launch import PROGRAMS, Launch, mpi_run
from support.marks import slow

pytestmark = pytest.mark.mpi

PROGRAM = PROGRAMS / "run_kernels.py"
NAMES = list(kernels.KERNELS)


def run(folder: pathlib.Path, ranks: int, what: str, methods: str, *words: str, scale: str = "0.004") -> Launch:
    return mpi_run([sys.executable, PROGRAM, folder, what, scale, methods, *words], ranks, timeout_s=150)


@pytest.mark.parametrize("ranks", [1, *slow(4, 2, 3, 7)])
def test_every_kernel(extension: str, tmp_path: pathlib.Path, ranks: int) -> None:
    """Every byte right, the files of all methods equal, the extension at work wherever MPI-IO is beneath.

    With seven ranks on a small machine a launch takes its time: there every kernel goes through its first interface.
    """
    methods = "native,auto,group_cyclic,transpose+stripe_size_io" if ranks == 4 else "native,auto"
    words = NAMES if ranks < 7 else [f"{name}:{kernels.KERNELS[name].interfaces[0]}" for name in NAMES]
    launch = run(tmp_path, ranks, "right", methods, *words)
    rows = [line.split()[1:] for line in launch.stdout.splitlines() if line.startswith("row ")]
    assert {row[0] for row in rows} == set(NAMES), launch.describe()
    for name, interface, method, _, _, data_bytes, compared, collective, independent in rows:
        assert int(data_bytes) > 0
        if interface == "posix":
            assert method == "native"
            continue
        assert compared != "-" or method == "native", (name, interface, method)
        if method != "native":
            assert collective == "True" or int(independent) > 0, (name, interface, method)
    assert not [path for path in tmp_path.iterdir() if path.suffix], "files are left"


@pytest.mark.parametrize("ranks", [4, *slow(1, 5)])
def test_kernels_written_independently(extension: str, tmp_path: pathlib.Path, ranks: int) -> None:
    """The checkpoint kernels with every access independent leave the same files, and nothing collective is counted.

    Each interface has one way of such accesses, for all kernels: one of these goes through all.
    """
    names = ("nas_btio", *(("flash", "s3d") if fuzz.all_examples() else ("flash:mpiio", "s3d:mpiio")))
    launch = run(tmp_path, ranks, "right", "native,native+independent,auto+independent", *names)
    rows = [line.split()[1:] for line in launch.stdout.splitlines() if line.startswith("row ")]
    assert {(row[0], row[1]) for row in rows} >= {("nas_btio", "mpiio"), ("flash", "mpiio"), ("s3d", "mpiio")}
    assert {row[2] for row in rows} == {"native", "native+independent", "auto+independent"}, launch.describe()
    for name, interface, method, phase, _, _, compared, _, independent in rows:
        assert compared != "-" or method == "native", (name, interface, method)
        if method == "auto+independent":
            assert int(independent) > 0, (name, interface, phase)
    assert not [path for path in tmp_path.iterdir() if path.suffix], "files are left"


@pytest.mark.parametrize(
    "what,kernel,message",
    [
        ("written", "vpic", "VerificationError: VPIC-IO, MPI-IO, native, phase particles wrote wrong data"),
        ("read", "bdcats", "phase clustering read wrong data"),
        ("foreign", "vpic", "wrote what no rank wrote: a file of"),
        ("raises", "bdcats", "BenchError: VPIC-IO through MPI-IO, native, phase particles: made to fail (rank 1"),
        ("differs", "vpic", "files of two methods differ: vpic-mpiio.dat at byte"),
    ],
)
def test_faults_are_found(extension: str, tmp_path: pathlib.Path, what: str, kernel: str, message: str) -> None:
    """One wrong byte anywhere, or an error of one rank, ends the bench on every rank with the same line."""
    launch = run(tmp_path, 2, what, "native,auto", f"{kernel}:mpiio")
    lines = [line for line in launch.stdout.splitlines() if line.startswith("rank ")]
    assert len(lines) == 2, launch.describe()
    wanted = message.replace("VPIC-IO through", "BD-CATS-IO through") if kernel == "bdcats" else message
    assert all(wanted in line for line in lines), launch.describe()
