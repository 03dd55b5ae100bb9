"""Random runs through delegates, one after the other: ``python tests/random_delegates.py --runs 500 --kills 500``.

Each run has random hints, ranks and accesses, which follow from its seed; a limit of time; and every byte compared. A
kill is a run in which delegates, or those who look after them, get SIGKILL on the way. ``--load`` keeps the cores busy
meanwhile. What fails is printed with the command that makes it again. See docs/project/testing.md.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

from support.launch import MEMORY, mpi_family
from support.random_delegates import drawn, play

#: Endless, but for the end of this process.
BUSY = "import os\np = os.getppid()\nwhile os.getppid() == p:\n sum(range(100000))"


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=0, help="how many without a death")
    parser.add_argument("--kills", type=int, default=0, help="how many with one")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first run and of the first kill")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which a run hangs")
    parser.add_argument("--load", type=int, default=0, help="processes that do nothing but compute")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--folder", help="where the files are (default: a temporary folder in memory)")
    parser.add_argument("--show", action="store_true", help="print the drawn runs, run nothing")
    return parser.parse_args()


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Keep cores busy."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def seeds(options: argparse.Namespace) -> Iterator[tuple[bool, int]]:
    """Return kills and runs in turns, so that a campaign that is cut short has both."""
    for i in range(max(options.runs, options.kills)):
        if i < options.runs:
            yield False, options.seed + i
        if i < options.kills:
            yield True, options.seed + i


def campaign(options: argparse.Namespace, parent: pathlib.Path) -> int:
    """Run all; the number of failures."""
    counts: collections.Counter[str] = collections.Counter()
    end_s = time.monotonic() + options.seconds
    for kill, seed in seeds(options):
        if time.monotonic() > end_s:
            break
        run, kind = drawn(seed, kill=kill), "kill" if kill else "run"
        if options.show:
            print(kind, run)
            continue
        with tempfile.TemporaryDirectory(dir=parent, prefix=f"{kind}{seed}_") as folder:
            outcome = play(run, pathlib.Path(folder), options.limit)
        counts[kind] += 1
        counts["killed"] += bool(outcome.killed)
        counts["failures"] += bool(outcome.problem)
        if outcome.problem:
            again = f"--{kind}s 1 --seed {seed}"
            print(f"FAILED {kind} {seed}: {outcome.problem}\n{run}\n{outcome.text[-4000:]}\nagain: {again}", flush=True)
        if (counts["run"] + counts["kill"]) % 50 == 0:
            print(dict(counts), flush=True)
    print(
        f"{counts['run']} runs, {counts['kill']} kills ({counts['killed']} met a process), "
        f"{counts['failures']} failures"
    )
    return counts["failures"]


def main() -> int:
    """Command line."""
    options = arguments()
    if mpi_family() is None:
        print("this environment has no working MPI", file=sys.stderr)
        return 2
    parent = options.folder or MEMORY
    with tempfile.TemporaryDirectory(prefix="mpiox_random_", dir=parent) as folder, load(options.load):
        return int(campaign(options, pathlib.Path(folder)) > 0)


if __name__ == "__main__":
    sys.exit(main())
