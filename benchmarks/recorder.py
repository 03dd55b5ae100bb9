"""What recording costs a call: beside a trace, and as a share of small and large cached accesses.

Usage: ``python benchmarks/recorder.py [--path FOLDER] [--passes 400] [--pairs 30] [--instructions]``

Algorithm. A loop of pwrite and pread is timed in many short passes, and the fastest one counts: a pass of some 100 us
is seldom disturbed, also on a machine that is busy. What the tracer's library adds is measured with a library behind it
whose functions return at once; what an access takes alone, with files in the cache. Shares are the one over the other.
That is the least that a call costs. What it costs a program, whose calls of the system drive the recorder's lines out
of the caches, is the difference of whole runs of 100,000 writes and reads of 4 KiB, with and without in turn: median
and quartiles of the pairs, and of the fastest runs, which others have disturbed least. Loading the library is a part
of that: what a longer run adds to a shorter one is a call's own. ``--instructions`` counts them with Valgrind in place
of all that, which no other work disturbs.
The folder must be none that Darshan leaves out, as /dev/shm is: of such files nothing is counted.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from mpiio_ext._load import get_tracer  # noqa: E402
from support.launch import base_environment  # noqa: E402

TIMEOUT_S = 300
#: Of a whole run.
CALLS = 200_000
LOOP = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
enum { FILES = 4, PART = 64 << 20 };
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
int main(int argc, char **argv)
{
    const long bytes = atol(argv[2]), calls = atol(argv[3]), passes = atol(argv[4]);
    const int random = argv[5][0] == 'r', files = argv[5][0] == 'f' ? FILES : 1;
    const long places = PART / bytes < 1024 ? PART / bytes : 1024;
    char *buffer = calloc(1, (size_t)bytes), name[4096];
    double best[2] = {1e18, 1e18};
    int fd[FILES];
    unsigned drawn = 1;
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "%s.%d", argv[1], i);
        fd[i] = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
        for (long k = 0; k < places; k++)
            if (pwrite(fd[i], buffer, (size_t)bytes, k * bytes) != bytes)
                return 1;
    }
    for (long pass = 0; pass < passes; pass++)
        for (int reads = 0; reads < 2; reads++) {
            const double begun = now();
            for (long i = 0; i < calls; i++) {
                drawn = drawn * 1664525 + 1013904223;
                const off_t at = (random ? (drawn >> 8) % (unsigned)places : i % places) * bytes;
                const ssize_t n = reads ? pread(fd[i % files], buffer, (size_t)bytes, at)
                                        : pwrite(fd[i % files], buffer, (size_t)bytes, at);
                if (n != bytes)
                    return 1;
            }
            const double took = (now() - begun) / (double)calls;
            best[reads] = took < best[reads] ? took : best[reads];
        }
    printf("%.1f %.1f\n", best[0], best[1]);
    return argc != 6;
}
"""
NOTHING = r"""
#include <unistd.h>
ssize_t pwrite(int f, const void *b, size_t n, off_t at) { return f >= 0 && b && at >= 0 ? (ssize_t)n : -1; }
ssize_t pread(int f, void *b, size_t n, off_t at) { return f >= 0 && b && at >= 0 ? (ssize_t)n : -1; }
"""
ORDERS = {"one file, in order": "o", "one file, random": "r", "four files in turn": "f"}


def compiled(folder: pathlib.Path) -> tuple[str, str]:
    """Return the program and the library whose functions return at once."""
    program, library = str(folder / "loop"), str(folder / "nothing.so")
    compiler = os.environ.get("CC", "cc")
    for text, options in ((LOOP, ["-o", program]), (NOTHING, ["-shared", "-fPIC", "-o", library])):
        subprocess.run([compiler, "-O2", "-x", "c", "-", *options], input=text, text=True, check=True)
    return program, library


def measured(words: list[str], preload: list[str], folder: pathlib.Path, mode: str = "") -> tuple[float, float]:
    """Return ns of a write and of a read, of the fastest passes."""
    variables = base_environment() | {"LD_PRELOAD": ":".join(preload)}
    with tempfile.TemporaryDirectory(dir=folder) as traces:
        if mode:
            variables |= {"MPIOX_TRACE_DIR": traces, "MPIOX_TRACE_MODE": mode}
        done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    write, read = map(float, done.stdout.split())
    return write, read


def spent(words: list[str], variables: dict[str, str]) -> tuple[float, float]:
    """Run a program, and return its time and its processor time (s)."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, env=variables, capture_output=True, timeout=TIMEOUT_S, check=True)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_programs(words: list[str], tracer: str, folder: pathlib.Path, pairs: int) -> None:
    """Print what a recording adds to whole runs, with and without in turn."""
    every: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for number in range(pairs):
        for on in (True, False) if number % 2 else (False, True):
            variables = base_environment()
            with tempfile.TemporaryDirectory(dir=folder) as traces:
                if on:
                    variables |= {"LD_PRELOAD": tracer, "MPIOX_TRACE_DIR": traces, "MPIOX_TRACE_MODE": "recording"}
                every[on].append(spent(words, variables))
    for place, what in enumerate(("time", "processor time")):
        there, without = ([each[place] * 1e9 / CALLS for each in every[on]] for on in (True, False))
        low, middle, high = statistics.quantiles(np.subtract(there, without), n=4)
        print(f"  added to a call, {what}, {pairs} pairs: {middle:.0f} ns ({low:.0f} to {high:.0f}); fastest run less"
              f" fastest run: {min(there) - min(without):.0f} ns of {min(without):.0f} ns", flush=True)  # fmt: skip


def instructions(program: str, preload: list[str], folder: pathlib.Path, order: str, mode: str = "") -> float:
    """Return the instructions of a call: those of a long run less those of a short one."""
    counts = []
    for calls in (20_000, 40_000):
        with tempfile.TemporaryDirectory(dir=folder) as traces:
            variables = base_environment() | {"LD_PRELOAD": ":".join(preload)}
            variables |= {"MPIOX_TRACE_DIR": traces, "MPIOX_TRACE_MODE": mode} if mode else {}
            words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, str(folder / "file"),
                     "4096", str(calls), "1", order]  # fmt: skip
            done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        counts.append(int(re.findall(r"Collected : (\d+)", done.stderr)[0]))
    return (counts[1] - counts[0]) / 40_000


def longer(words: list[str], tracer: str, folder: pathlib.Path) -> None:
    """Print what a recording adds to each call of a run that is ten times as long, and to a run of hardly any."""
    least: dict[int, float] = {}
    for calls in (1000, CALLS // 2, 5 * CALLS):
        run, times = [*words[:3], str(calls), *words[4:]], {True: [], False: []}
        for _ in range(5):
            for on, found in times.items():
                with tempfile.TemporaryDirectory(dir=folder) as traces:
                    variables = {"LD_PRELOAD": tracer, "MPIOX_TRACE_DIR": traces, "MPIOX_TRACE_MODE": "recording"}
                    found.append(spent(run, base_environment() | (variables if on else {}))[1])
        least[calls] = min(times[True]) - min(times[False])
    few, some, many = least
    each_ns = 1e9 * (least[many] - least[some]) / (2 * (many - some))
    print(f"  fastest runs, processor time: {each_ns:.0f} ns a call, {1e3 * least[few]:.1f} ms a process", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--path", type=pathlib.Path, help="folder of files and traces (default: of temporary files)")
    parser.add_argument("--passes", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=30, help="runs with and without, for what it costs a program")
    parser.add_argument("--instructions", action="store_true", help="count instructions, with Valgrind")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mpiox_recorder_", dir=arguments.path) as name:
        folder = pathlib.Path(name)
        program, nothing = compiled(folder)
        tracer = str(get_tracer())
        for title, order in ORDERS.items() if arguments.instructions else ():
            alone = instructions(program, [nothing], folder, order)
            found = [instructions(program, [tracer, nothing], folder, order, mode) - alone
                     for mode in ("trace", "recording")]  # fmt: skip
            print(f"{title:22s} instructions added to a call: {found[0]:.0f} trace, {found[1]:.0f} recording")
        if arguments.instructions:
            return

        def words(size: int, calls: int, order: str) -> list[str]:
            return [program, str(folder / "file"), str(size), str(calls), str(arguments.passes), order]

        print(f"{'added to a call, ns':22s} {'trace':>7s} {'recording':>10s}")
        for title, order in ORDERS.items():
            alone = measured(words(4096, 2000, order), [nothing], folder)[0]
            added = {mode: measured(words(4096, 2000, order), [tracer, nothing], folder, mode)[0] - alone
                     for mode in ("trace", "recording")}  # fmt: skip
            print(f"{title:22s} {added['trace']:7.0f} {added['recording']:10.0f}", flush=True)
        for size, calls in ((4096, 200), (1 << 20, 4)):
            for verb, took in zip(("write", "read"), measured(words(size, calls, "o"), [], folder), strict=True):
                share = 100 * added["recording"] / took
                print(f"a cached {verb} of {size >> 10} KiB takes {took:,.0f} ns: a recording adds {share:.2f} %")
        for title, order in ORDERS.items():
            print(f"{title}:")
            run = [program, str(folder / "file"), "4096", str(CALLS // 2), "1", order]
            of_programs(run, tracer, folder, arguments.pairs)
            longer(run, tracer, folder)


if __name__ == "__main__":
    main()
