"""Small accesses with and without the library.

Usage: ``python benchmarks/small_accesses.py [--path /dev/shm] [--ranks 1] [--bytes 64] [--repetitions 11] [CALL...]``

Compiles ``small_accesses.c`` and runs it with the MPI library alone and with the extension's defaults, or ``--hints``,
under it. The two take turns, and the order changes with each repetition. Prints, for each call, the medians in
microseconds, and the median of the ratios, each formed within a repetition, with the smallest and the largest. One rank
is bound to a core. ``--latency-us`` makes every request to the file system take so much longer (``slow_storage.c``).

Run it with the Python of the environment whose MPI is meant, ``build/openmpi/venv/bin/python`` for instance, on a quiet
machine.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from support.launch import base_environment, launcher, mpi_family, preload_environment, run_bounded  # noqa: E402

CALLS = ("write_at", "read_at", "write", "read", "write_at_all", "read_at_all", "write_all", "read_all")
OTHERS = ("strided_write", "strided_read", "strided_write_at", "strided_read_at", "open_close")
TIMEOUT_S = 120.0


def compile_programs(folder: pathlib.Path) -> tuple[str, str]:
    """Return the paths of the program and of the preloaded slow storage."""
    mpicc = pathlib.Path(sys.prefix) / "bin" / "mpicc"
    program, slow = str(folder / "small_accesses"), str(folder / "slow_storage.so")
    subprocess.run([str(mpicc), "-O2", "-o", program, str(HERE / "small_accesses.c")], check=True)
    source = str(HERE / "slow_storage.c")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC", "-o", slow, source, "-ldl"], check=True)
    return program, slow


def measure(words: list[str], arguments: argparse.Namespace, preload: list[str], env: dict[str, str]) -> float:
    """Run the program once; return microseconds per call."""
    command = [launcher() or "mpiexec", "-n", str(arguments.ranks)]
    if arguments.ranks == 1 and shutil.which("taskset"):
        command += ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
    command += ["env", f"LD_PRELOAD={':'.join(preload)}", *words]
    launch = run_bounded(command, env=base_environment() | env, timeout_s=TIMEOUT_S)
    return float(launch.stdout.split()[-1])


def row(call: str, arguments: argparse.Namespace, folder: pathlib.Path, programs: tuple[str, str]) -> str:
    """Measure one call and return its line of the table."""
    program, slow = programs
    words = [program, str(folder / "file"), call, str(arguments.count), str(arguments.bytes)]
    env, common = {}, []
    if arguments.latency_us:
        common = [slow]
        env = {"SLOW_STORAGE_PATH": str(folder), "SLOW_STORAGE_US": str(arguments.latency_us)}
    extension = preload_environment()["LD_PRELOAD"]
    times: dict[bool, list[float]] = {False: [], True: []}
    for repetition in range(arguments.repetitions):
        for ours in (False, True) if repetition % 2 == 0 else (True, False):
            hints = {"MPIOX_HINTS": arguments.hints} if ours and arguments.hints else {}
            preload = [*common, extension] if ours else common
            times[ours].append(measure(words, arguments, preload, env | hints))
    ratios = [b / a for a, b in zip(times[False], times[True], strict=True)]
    return (
        f"{call:18s} {statistics.median(times[False]):10.3f} {statistics.median(times[True]):10.3f}"
        f" {statistics.median(ratios):6.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
    )


def main() -> None:
    """Print the table, a line as soon as it is measured."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", default="/dev/shm", help="folder on the file system to measure (default: /dev/shm)")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--bytes", type=int, default=64, help="of one access (default: 64)")
    parser.add_argument("--count", type=int, default=100_000, help="accesses of a run (default: 100,000)")
    parser.add_argument("--repetitions", type=int, default=11)
    parser.add_argument("--latency-us", type=int, default=0, help="what each request takes longer (default: 0)")
    parser.add_argument("--hints", default="", help="MPIOX_HINTS of the extension's runs (default: none)")
    parser.add_argument("call", nargs="*", help=f"of: {', '.join(CALLS + OTHERS)} (default: the first eight)")
    arguments = parser.parse_args()
    if unknown := set(arguments.call) - set(CALLS + OTHERS):
        parser.error(f"no such call: {', '.join(sorted(unknown))}")
    print(f"{mpi_family()}, {arguments.ranks} ranks, {arguments.bytes} bytes, {arguments.path}; microseconds a call")
    print(f"{'':18s} {'native':>10s} {'ours':>10s}  ratio")
    with tempfile.TemporaryDirectory(prefix="mpiox_small_", dir=arguments.path) as name:
        folder = pathlib.Path(name)
        with tempfile.TemporaryDirectory() as built:
            programs = compile_programs(pathlib.Path(built))
            for call in arguments.call or CALLS:
                print(row(call, arguments, folder, programs), flush=True)


if __name__ == "__main__":
    main()
