"""A scratch file of all hosts (``mpiox_close=never``), beside one of each host: what is lost by sharing it.

Usage: ``python benchmarks/scratch_hosts.py [--hosts 4] [--ranks-per-host 1] [--pattern block] [--rate 1gbit]``

The hosts are namespaces of this machine (tests/support/hosts.py; needs root), a delegate on each. *own*: a job on each
host, all at the same time, each with a scratch file of its own. *shared*: one job, one file. Both take turns within a
round, and do the same: each rank writes its pieces and reads them; of the shared file it then reads those of a rank of
the next host. Each of these phases begins on all ranks at one moment. In the end every byte is compared.

MiB/s: of all ranks, from the first that begins to the last that ends. CPU: what all processes of the jobs, delegates
too, have run during a phase, us per MiB: it says more on a machine that does other work. Ratios are own to shared for
CPU, shared to own for MiB/s; all are medians of the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support import hosts
from support.launch import marked_processes
from support.processes import Job, job

OWN, SHARED = "own", "shared"
PHASES = {OWN: ("write", "read"), SHARED: ("write", "read", "read others'")}
LIMIT_S, POLL_S = 300.0, 0.002


def parse() -> argparse.Namespace:
    """Return the options."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks-per-host", type=int, default=1)
    parser.add_argument("--pieces", type=int, default=64, help="of a rank")
    parser.add_argument("--piece", type=int, default=1 << 20, help="bytes")
    parser.add_argument("--pattern", choices=["block", "inter"], default="block", help="a region a rank, or in turns")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cache", default="", help="of a delegate (default: twice what its node writes)")
    parser.add_argument("--cache-dir", default="", help="a folder for each host's cache, with {} for its number")
    parser.add_argument("--hints", default="", help="more of them, name=value:name=value")
    parser.add_argument("--rate", default="", help="of each host's link, in each direction")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rank", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


# ---- a rank ----------------------------------------------------------------------------------------------------------


def play(options: argparse.Namespace) -> None:
    """Carry out the phases on a rank; `rank` is the folder where they are agreed, and the file."""
    import numpy as np
    from mpi4py import MPI

    comm, folder = MPI.COMM_WORLD, options.rank
    others = (comm.rank + options.ranks_per_host) % comm.size
    noise = np.random.default_rng(1).integers(0, 256, options.piece + 4096, np.uint8)
    found = np.zeros(options.piece, np.uint8)

    def place(rank: int, number: int) -> int:
        turn = rank * options.pieces + number if options.pattern == "block" else number * comm.size + rank
        return turn * options.piece

    def content(rank: int, number: int) -> np.ndarray:
        return noise[(rank * 64 + number) % 4096:][: options.piece]

    def read(rank: int) -> int:
        wrong = 0
        for number in range(options.pieces):
            file.Read_at(place(rank, number), found)
            wrong += not (found[::509] == content(rank, number)[::509]).all()
        return wrong

    file = MPI.File.Open(comm, str(folder / "scratch"), MPI.MODE_CREATE | MPI.MODE_RDWR)
    for phase in PHASES[SHARED if comm.size > options.ranks_per_host else OWN]:
        (folder / f"ready {comm.rank}").touch()
        while not (folder.parent / f"go {phase}").exists():
            time.sleep(POLL_S)
        (folder / f"ready {comm.rank}").unlink()
        wrong, begun = 0, time.monotonic()
        if phase == "write":
            for number in range(options.pieces):
                file.Write_at(place(comm.rank, number), content(comm.rank, number))
        else:
            wrong = read(comm.rank if phase == "read" else others)
        said = json.dumps({"begun": begun, "ended": time.monotonic(), "wrong": wrong})
        (folder / f"part {comm.rank}").write_text(said, encoding="utf-8")
        (folder / f"part {comm.rank}").rename(folder / f"done {comm.rank}")
        while (folder.parent / f"go {phase}").exists():
            time.sleep(POLL_S)
    for rank in range(comm.size if comm.size > options.ranks_per_host else 0):
        for number in range(options.pieces):
            file.Read_at(place(rank, number), found)
            assert (found == content(rank, number)).all(), (rank, number)
    file.Close()


# ---- the jobs --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def jobs(cluster: hosts.Cluster, options: argparse.Namespace, way: str) -> Iterator[list[tuple[Job, Path, int]]]:
    """Start the jobs of a way: each with its folder and the number of its ranks."""
    each, count = options.ranks_per_host, options.hosts
    cache = options.cache or f"{max(64, 2 * options.pieces * options.piece * each >> 20)}m"
    places = [dict.fromkeys(range(1, count + 1), each)] if way == SHARED else [{k: each} for k in range(1, count + 1)]
    with contextlib.ExitStack() as stack:
        started = []
        for number, at in enumerate(places, 1):
            folder = cluster.folder / f"{way} {number}"
            folder.mkdir()
            hints = f"*:mpiox_delegates=per_node=1:mpiox_close=never:mpiox_delegate_cache={cache}"
            hints += f":mpiox_delegate_cache_dir={options.cache_dir.format(number)}" if options.cache_dir else ""
            hints += f":{options.hints}" if options.hints else ""
            words = [sys.executable, __file__, "--rank", folder, "--ranks-per-host", str(each), "--pattern",
                     options.pattern, "--pieces", str(options.pieces), "--piece", str(options.piece)]
            words = [*cluster.launcher(len(at) * each, at, first=min(at)), *cluster.program(words)]
            running = stack.enter_context(job(words, cluster.private / f"{way}.{number}.log", {"MPIOX_HINTS": hints}))
            started.append((running, folder, len(at) * each))
        yield started


def await_files(started: list[tuple[Job, Path, int]], name: str) -> None:
    """Wait until each rank has made its file of this name."""
    deadline_s = time.monotonic() + LIMIT_S
    for running, folder, ranks in started:
        while not all((folder / f"{name} {rank}").exists() for rank in range(ranks)):
            if running.status(0) is not None or time.monotonic() > deadline_s:
                sys.exit(running.text())
            time.sleep(POLL_S)


def ran_ns(started: list[tuple[Job, Path, int]]) -> int:
    """Return what all processes of the jobs have run so far."""
    total = 0
    for pid in {pid for running, _, _ in started for pid in marked_processes(running.marker)}:
        for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                total += int(thread.read_text().split()[0])
    return total


def measure(cluster: hosts.Cluster, options: argparse.Namespace, way: str) -> dict[str, dict[str, float]]:
    """Run a way once: what each phase took."""
    found = {}
    mib = options.hosts * options.ranks_per_host * options.pieces * options.piece / 2**20
    with jobs(cluster, options, way) as started:
        for phase in PHASES[way]:
            await_files(started, "ready")
            go, before = cluster.folder / f"go {phase}", ran_ns(started)
            go.touch()
            await_files(started, "done")
            ran = ran_ns(started) - before
            done = [path for _, folder, _ in started for path in folder.glob("done *")]
            parts = [json.loads(path.read_text()) for path in done]
            if any(part["wrong"] for part in parts):
                sys.exit(f"{way}, {phase}: wrong bytes")
            wall_s = max(part["ended"] for part in parts) - min(part["begun"] for part in parts)
            found[phase] = {"mib_per_s": mib / wall_s, "cpu_us_per_mib": ran / 1e3 / mib}
            for path in done:
                path.unlink()
            go.unlink()
        for running, folder, _ in started:
            if running.status(LIMIT_S) != 0:
                sys.exit(running.text())
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
    return found


def main() -> None:
    """Measure and print."""
    options = parse()
    if options.rank is not None:
        play(options)
        return
    reason = hosts.why_not()
    if reason is not None:
        sys.exit(f"no hosts can be brought up here: {reason}")
    rounds = []
    with hosts.cluster(options.hosts, rate=options.rate) as cluster:
        for number in range(options.rounds):
            ways = (OWN, SHARED) if number % 2 == 0 else (SHARED, OWN)
            rounds.append({way: measure(cluster, options, way) for way in ways})
            print(f"round {number + 1}: {json.dumps(rounds[-1])}", file=sys.stderr, flush=True)
    print(f"{options.hosts} hosts, {options.ranks_per_host} ranks a host, {options.pieces} pieces of "
          f"{options.piece >> 10} KiB of each, {options.pattern}; load {os.getloadavg()[0]:.1f}")
    for phase in PHASES[SHARED]:
        base = phase if phase in PHASES[OWN] else "read"
        of = [(each[OWN][base], each[SHARED][phase]) for each in rounds]
        cells = []
        for unit in ("mib_per_s", "cpu_us_per_mib"):
            own, shared = ([pair[k][unit] for pair in of] for k in (0, 1))
            ratios = [b / a if unit == "mib_per_s" else a / b for a, b in zip(own, shared, strict=True)]
            cells.append(f"own {statistics.median(own):,.0f}, shared {statistics.median(shared):,.0f}, ratio "
                         f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        print(f"{phase}: MiB/s: {cells[0]}; CPU us/MiB: {cells[1]}")
    if options.json is not None:
        options.json.write_text(json.dumps(rounds, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
