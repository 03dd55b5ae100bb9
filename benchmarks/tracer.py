"""What the tracer costs: per call, and of runs of the bench; the targets are 300 ns and 5 %.

Usage: ``python benchmarks/tracer.py [--path /dev/shm] [--ranks 2] [--repetitions 15] [--seconds 280] [--json FILE]``

Calls: a C program that makes so many of one call, with and without the tracer. Programs: patterns and a kernel of the
bench, small ones with many calls, each a launch of its own under the MPI library's own way, with and without it. The
two take turns, and the order changes with each repetition. Of calls the processor time counts (user and system: others
on the machine disturb it less than they do the time that passes); of programs both the processor time of the whole
launch, and the time that the bench has measured of opening, access and closing, in which starting Python has no part.
Prints and writes as JSON the medians, the median of the differences or ratios, each formed within a repetition, with
the quartiles, and whether the targets are met. Programs stop when the seconds are over, after three pairs each.

Run it with the Python of the environment whose MPI is meant, ``build/openmpi/venv/bin/python`` for instance, on a
machine that is otherwise quiet.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from mpiio_ext._load import get_tracer  # noqa: E402
from support.launch import base_environment, launcher, mpi_family  # noqa: E402

TIMEOUT_S = 300
TARGET_CALL_NS, TARGET_RATIO = 300, 1.05
LOOP = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    const int fd = open(argv[2], O_RDWR | O_CREAT, 0600);
    FILE *stream = fdopen(dup(fd), "w");
    const long calls = atol(argv[3]);
    const char which = argc == 4 ? argv[1][0] : 0;
    struct stat about;
    long failed = 0;
    for (long i = 0; i < calls; i++)
        failed += which == 'l'   ? lseek(fd, i & 7, SEEK_SET) < 0
                  : which == 'p' ? pwrite(fd, "x", 1, i & 4095) != 1
                  : which == 'r' ? read(fd, &about, 0) != 0
                  : which == 's' ? stat(argv[2], &about) != 0
                                 : fwrite("0123456789abcdef", 16, 1, stream) != 1;
    return failed != 0;
}
"""
CALLS = ("lseek", "pwrite", "read", "stat", "fwrite")
KERNELS = {
    "interleaved, independent": ["-w", "interleaved", "--block", "512", "-s", "16MiB"],
    "random, independent": ["-w", "random", "-s", "16MiB"],
    "mpi_io_test_strided": ["-k", "mpi_io_test_strided", "--preset", "quick"],
    "contiguous, calls of 4 KiB": ["-w", "contiguous", "--transfer", "4KiB", "-s", "64MiB"],
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


def measured_seconds(folder: pathlib.Path) -> float:
    """Return the time that the bench has measured, s: medians over repetitions, summed over all that it ran."""
    import pyarrow.parquet

    runs: dict[tuple[str, ...], list[float]] = {}
    for row in pyarrow.parquet.read_table(folder / "results" / "runs.parquet").to_pylist():
        key = tuple(str(row[name]) for name in ("variant", "operation", "phase"))
        runs.setdefault(key, []).append(sum(row[f"{part}_s"] or 0 for part in ("open", "view", "data", "close")))
    return sum(statistics.median(values) for values in runs.values())


def pairs_of(
    command: Callable[[pathlib.Path], list[str]], parent: str, repetitions: int, *, benched: bool = False,
    until_s: float = float("inf"),
) -> list[list[tuple[float, ...]]]:  # fmt: skip
    """Return of each repetition what was measured without and with: processor time, and time of the bench, s."""
    found: list[list[tuple[float, ...]]] = []
    for repetition in range(repetitions):
        seconds = {}
        for traced in (False, True) if repetition % 2 == 0 else (True, False):
            with tempfile.TemporaryDirectory(prefix="mpiox_tracer_", dir=parent) as name:
                folder = pathlib.Path(name)
                seconds[traced] = (seconds_of(command(folder), folder, traced),)
                if benched:
                    seconds[traced] += (measured_seconds(folder),)
        found.append([seconds[False], seconds[True]])
        if len(found) >= 3 and time.monotonic() > until_s:
            break
    return found


def summary(values: list[float]) -> dict[str, float]:
    """Return lower quartile, median, upper quartile."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "low": low, "high": high}


def calls(arguments: argparse.Namespace, program: pathlib.Path) -> dict[str, Any]:
    """Print and return the cost of calls, ns."""
    found: dict[str, Any] = {}
    print(f"{'call':10s} {'without':>9s} {'with':>9s}   more, ns a call (quartiles)")
    for name in CALLS:
        def command(folder: pathlib.Path, name: str = name) -> list[str]:
            return [str(program), name, str(folder / "file"), str(arguments.calls)]

        pairs = pairs_of(command, arguments.path, arguments.repetitions)
        scale = 1e9 / arguments.calls
        more = summary([scale * (traced[0] - alone[0]) for alone, traced in pairs])
        alone, traced = (scale * statistics.median(pair[i][0] for pair in pairs) for i in (0, 1))
        found[name] = {"without_ns": alone, "with_ns": traced, "more_ns": more,
                       "met": more["median"] < TARGET_CALL_NS}  # fmt: skip
        print(f"{name:10s} {alone:9.0f} {traced:9.0f}   {more['median']:.0f} ({more['low']:.0f}–{more['high']:.0f})",
              flush=True)  # fmt: skip
    return found


def programs(arguments: argparse.Namespace, begun_s: float) -> dict[str, Any]:
    """Print and return what programs take with and without the tracer, s."""
    mpiexec = launcher()
    assert mpiexec is not None
    found: dict[str, Any] = {}
    print(f"{'program':26s} {'what':10s} {'without, s':>11s} {'with, s':>9s}   ratio (quartiles)")
    for place, (name, words) in enumerate(KERNELS.items()):
        def command(folder: pathlib.Path, words: list[str] = words) -> list[str]:
            bench = [sys.executable, "-m", "mpiio_ext.bench", *words, "-m", "native", "-i", "mpiio",
                     "--repetitions", "5", "--no-figures", "--no-page", "--path", str(folder),
                     "--output", str(folder / "results")]  # fmt: skip
            return [mpiexec, "-n", str(arguments.ranks), *bench]

        left_s = begun_s + arguments.seconds - time.monotonic()
        until_s = time.monotonic() + left_s / (len(KERNELS) - place)
        pairs = pairs_of(command, arguments.path, arguments.repetitions, benched=True, until_s=until_s)
        found[name] = {"pairs": len(pairs)}
        for i, what in enumerate(("processor", "bench")):
            ratio = summary([traced[i] / alone[i] for alone, traced in pairs])
            alone, traced = (statistics.median(pair[j][i] for pair in pairs) for j in (0, 1))
            found[name][what] = {"without_s": alone, "with_s": traced, "ratio": ratio,
                                 "met": ratio["median"] < TARGET_RATIO}  # fmt: skip
            print(f"{name:26s} {what:10s} {alone:11.3f} {traced:9.3f}   {ratio['median']:.3f} "
                  f"({ratio['low']:.3f}–{ratio['high']:.3f})", flush=True)  # fmt: skip
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--path", default="/dev/shm", help="folder for files and traces")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=280, help="when programs stop")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything there, too")
    arguments = parser.parse_args()
    begun_s = time.monotonic()
    load = os.getloadavg()[0]
    print(f"{mpi_family()}, {os.cpu_count()} cores, load {load:.1f}")
    found: dict[str, Any] = {"mpi": mpi_family(), "cores": os.cpu_count(), "load": load, "ranks": arguments.ranks,
                             "target": {"call_ns": TARGET_CALL_NS, "ratio": TARGET_RATIO}}  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="mpiox_tracer_") as folder:
        program = pathlib.Path(folder) / "loop"
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O2", "-x", "c", "-", "-o", str(program)], input=LOOP, text=True, check=True)
        found["calls"] = calls(arguments, program)
    found["programs"] = programs(arguments, begun_s)
    missed = [name for name, item in found["calls"].items() if not item["met"]]
    missed += [name for name, item in found["programs"].items() if not item["bench"]["met"]]
    found["missed"] = missed
    print("targets met" if not missed else f"targets missed: {', '.join(missed)}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
