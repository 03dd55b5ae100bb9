"""What the tracer costs: per call, and of programs.

Usage: ``python benchmarks/tracer.py [--path /dev/shm] [--ranks 2] [--repetitions 15] [--calls 200000]``

Calls: a C program that makes so many lseek(), or pwrite() of one byte, with and without the tracer. Programs: kernels
of the bench, small ones with many calls, each a launch of its own under the MPI library's own way, with and without it.
The two take turns, and the order changes with each repetition. Prints medians of the processor time (user and system,
of all ranks: others on the machine disturb it less than they do the time that passes), the median of the differences or
ratios, each formed within a repetition, with the quartiles.

Run it with the Python of the environment whose MPI is meant, ``build/openmpi/venv/bin/python`` for instance.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from mpiio_ext._load import get_tracer  # noqa: E402
from support.launch import base_environment, mpi_family, starter  # noqa: E402

TIMEOUT_S = 300
LOOP = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    const int fd = open(argv[2], O_RDWR | O_CREAT, 0600), seeks = strcmp(argv[1], "lseek") == 0;
    for (long i = 0; i < atol(argv[3]); i++)
        if (seeks ? lseek(fd, i & 7, SEEK_SET) < 0 : pwrite(fd, "x", 1, i & 4095) != 1)
            return 1;
    return argc != 4;
}
"""
KERNELS = {
    "interleaved, independent": ["-w", "interleaved", "--block", "256,8,512"],
    "mpi_io_test_strided": ["-k", "mpi_io_test_strided", "--preset", "quick"],
    "coll_perf": ["-k", "coll_perf", "--preset", "quick"],
}


def seconds_of(command: list[str], folder: pathlib.Path, traced: bool) -> float:
    """Return the processor time of a command and of all that it has started, s."""
    environment = base_environment()
    if traced:
        environment |= {"MPIOX_TRACE_DIR": str(folder / "trace"), "LD_PRELOAD": str(get_tracer())}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def pairs_of(command: Callable[[pathlib.Path], list[str]], parent: str, repetitions: int) -> list[tuple[float, float]]:
    """Return (without, with) of each repetition, s."""
    found = []
    for repetition in range(repetitions):
        seconds = {}
        for traced in (False, True) if repetition % 2 == 0 else (True, False):
            with tempfile.TemporaryDirectory(prefix="mpiox_tracer_", dir=parent) as name:
                folder = pathlib.Path(name)
                seconds[traced] = seconds_of(command(folder), folder, traced)
        found.append((seconds[False], seconds[True]))
    return found


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """Return lower quartile, median, upper quartile."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def calls(arguments: argparse.Namespace, program: pathlib.Path) -> None:
    """Print the cost of a call."""
    print(f"{'call':10s} {'without':>9s} {'with':>9s}   more, ns a call (quartiles)")
    for name in ("lseek", "pwrite"):
        def command(folder: pathlib.Path, name: str = name) -> list[str]:
            return [str(program), name, str(folder / "file"), str(arguments.calls)]

        pairs = pairs_of(command, arguments.path, arguments.repetitions)
        scale = 1e9 / arguments.calls
        low, middle, high = quartiles([scale * (traced - alone) for alone, traced in pairs])
        medians = [scale * statistics.median(pair[i] for pair in pairs) for i in (0, 1)]
        print(f"{name:10s} {medians[0]:9.0f} {medians[1]:9.0f}   {middle:.0f} ({low:.0f}–{high:.0f})", flush=True)


def programs(arguments: argparse.Namespace) -> None:
    """Print what programs take with and without the tracer."""
    mpiexec = starter()
    assert mpiexec is not None
    print(f"{'program':26s} {'without, s':>11s} {'with, s':>9s}   ratio (quartiles)")
    for name, words in KERNELS.items():
        def command(folder: pathlib.Path, words: list[str] = words) -> list[str]:
            bench = [sys.executable, "-m", "mpiio_ext.bench", *words, "-m", "native", "-i", "mpiio",
                     "--repetitions", "3", "--no-plot", "--no-report", "--path", str(folder),
                     "--output", str(folder / "results")]  # fmt: skip
            return [mpiexec, "-n", str(arguments.ranks), *bench]

        pairs = pairs_of(command, arguments.path, max(arguments.repetitions // 2, 3))
        low, middle, high = quartiles([traced / alone for alone, traced in pairs])
        medians = [statistics.median(pair[i] for pair in pairs) for i in (0, 1)]
        print(f"{name:26s} {medians[0]:11.2f} {medians[1]:9.2f}   {middle:.3f} ({low:.3f}–{high:.3f})", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--path", default="/dev/shm", help="folder for files and traces")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--calls", type=int, default=200_000)
    arguments = parser.parse_args()
    print(f"{mpi_family()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="mpiox_tracer_") as folder:
        program = pathlib.Path(folder) / "loop"
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O2", "-x", "c", "-", "-o", str(program)], input=LOOP, text=True, check=True)
        calls(arguments, program)
    programs(arguments)


if __name__ == "__main__":
    main()
