"""Many small variables, one collective call each: native, two-phase, and cached by the delegates.

Usage: ``python benchmarks/small_variables.py [--path /dev/shm] [--ranks 4] [--variables 500] [--bytes 65536]``

A file of many variables that lie one behind the other, as climate codes write them: each is written by one collective
call, in which every rank has an equal part, and read by one after the file was opened again. Launches itself on the MPI
of the Python that runs this; ways take turns within each round, the order rotated:

native      the MPI library alone
two_phase   this library without delegates
cached      ``mpiox_collective=cached`` with ``--delegates`` delegates
collective  the same with ``romio_no_indep_rw=true``: ranks need not come together for a call

The time of writing runs from the first call to the end of the close, when all bytes are in the file; that of reading
likewise. Ratios are formed within a round. Every byte is compared, of the file and of what was read.

``--latency-us`` and ``--mbps`` make each request to the file system take so much time, for all ways alike
(``slow_storage.c``). The delegates' requests to the file are counted by their statistics.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.cbuild import slow_storage

WAYS = ("native", "two_phase", "cached", "collective")
STRIPE = 1024 * 1024


def work(path: str, variables: int, size: int) -> None:
    """Run as a rank: write, read, compare."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    part = size // comm.size
    mine = [np.random.default_rng([number, comm.rank]).bytes(part) for number in range(variables)]
    buffer, seconds, wrong = bytearray(part), [], 0
    for reads in (False, True):
        file = MPI.File.Open(comm, path, MPI.MODE_RDONLY if reads else MPI.MODE_CREATE | MPI.MODE_RDWR)
        comm.Barrier()
        begun = MPI.Wtime()
        for number, content in enumerate(mine):
            offset = number * size + comm.rank * part
            if reads:
                file.Read_at_all(offset, buffer)
                wrong += buffer != content
            else:
                file.Write_at_all(offset, content)
        file.Close()
        seconds.append(comm.allreduce(MPI.Wtime() - begun, MPI.MAX))
    comm.Barrier()
    with Path(path).open("rb") as stored:
        for number, content in enumerate(mine):
            stored.seek(number * size + comm.rank * part)
            wrong += stored.read(part) != content
    if comm.allreduce(wrong):
        raise SystemExit(f"rank {comm.rank}: {wrong} parts are wrong")
    if comm.rank == 0:
        print("RESULT " + json.dumps({"write": seconds[0], "read": seconds[1]}), flush=True)


def counted(statistics_file: Path) -> dict[str, float]:
    """Return the delegates' requests: how many wrote, and the part of their bytes in those of a stripe or more."""
    if not statistics_file.exists():
        return {}
    rows = [json.loads(line) for line in statistics_file.read_text().splitlines()]
    found = next((row["delegates"] for row in rows if row["kind"] == "run" and row.get("delegates")), None)
    if found is None:
        return {}
    whole = sum(found["flush_size_log2"][STRIPE.bit_length() - 1 :])
    return {"requests": found["flush_requests"], "whole": whole / max(1, found["flush_requests"]),
            "read_requests": found["fill_requests"]}


def launch(options: argparse.Namespace, way: str, slow: Path) -> dict[str, float]:
    """Run one way once."""
    tools = Path(sys.executable).parent
    mpirun = shutil.which("mpirun", path=f"{tools}:{os.environ['PATH']}")
    with tempfile.TemporaryDirectory(dir=options.path, prefix="mpiio_ext_variables_") as folder:
        environment = os.environ | {
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        if options.latency_us or options.mbps:
            environment |= {"LD_PRELOAD": str(slow), "SLOW_STORAGE_PATH": f"{folder}/data",
                            "SLOW_STORAGE_US": str(options.latency_us), "SLOW_STORAGE_MBPS": str(options.mbps)}
        run = [str(tools / "mpiio-ext"), "run", f"--stats={folder}/stats"]
        if way in ("cached", "collective"):
            run += ["-H", f"mpiox_delegates={options.delegates}", "-H", "mpiox_collective=cached"]
        if way == "collective":
            run += ["-H", "romio_no_indep_rw=true"]
        command = [str(mpirun), "-n", str(options.ranks), *([] if way == "native" else [*run, "--"]), sys.executable,
                   __file__, "--work", f"{folder}/data", str(options.variables), str(options.bytes)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
        if done.returncode != 0 or line is None:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
        return {**json.loads(line[7:]), **counted(Path(folder, "stats"))}


def measure(options: argparse.Namespace, slow: Path) -> dict[str, list[dict[str, float]]]:
    """All ways in turns."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for number in range(options.rounds):
        turn = number % len(WAYS)
        for way in WAYS[turn:] + WAYS[:turn]:
            runs[way].append(launch(options, way, slow))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return runs


def show(options: argparse.Namespace, runs: dict[str, list[dict[str, float]]]) -> None:
    """Print a table in Markdown."""
    what = f"{options.variables} variables of {options.bytes} bytes, {options.ranks} ranks"
    print(f"{what}, load {os.getloadavg()[0]:.1f}\n")
    print("| way | write s | gain | read s | gain | write requests | of a stripe or more | read requests |")
    print("|---|---|---|---|---|---|---|---|")
    for way, found in runs.items():
        row: list[Any] = [way]
        for name in ("write", "read"):
            gains = [native[name] / mine[name] for native, mine in zip(runs["native"], found, strict=True)]
            row += [f"{statistics.median(run[name] for run in found):.3f}",
                    f"{statistics.median(gains):.1f} ({min(gains):.1f} to {max(gains):.1f})"]
        counts = found[-1]
        row += ([f"{counts['requests']:.0f}", f"{100 * counts['whole']:.0f} %", f"{counts['read_requests']:.0f}"]
                if "requests" in counts else ["–"] * 3)
        print("| " + " | ".join(row) + " |")


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--path", default="/dev/shm", help="folder for the files")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--variables", type=int, default=500)
    parser.add_argument("--bytes", type=int, default=65536, help="of a variable")
    parser.add_argument("--delegates", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency-us", type=int, default=0, help="of each request")
    parser.add_argument("--mbps", type=int, default=0, help="MB/s at which a request's bytes arrive; 0: at once")
    options = parser.parse_args()
    show(options, measure(options, Path(slow_storage())))


if __name__ == "__main__":
    main()
