"""What ``import mpiio_ext`` adds to the start of a program: ``python benchmarks/import_time.py``.

Usage: ``python benchmarks/import_time.py [--python build/test_mpis/mpich-5/bin/python] [--runs 20] [--json i.json]``

Problem. Every rank of a job imports; a tenth of a second is paid as often as there are programs.

Algorithm. Processes of one rank, each form in turn and the order reversed from round to round, timed from the start of
the process to its end, which includes MPI_Init and MPI_Finalize:

empty      the interpreter alone
mpi4py     ``from mpi4py import MPI``
extension  ``import mpiio_ext`` before it

One round before, of which nothing is kept, brings the files into memory. Printed are medians and quartiles of
wall-clock and processor time, and of what "extension" takes more than "mpi4py" in the same round, with the load of the
machine: where that is above the number of cores, wall-clock times tell how busy the machine is. Exit status 1 when the
median of what is added is more than ``--limit`` seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FORMS = {"empty": "pass", "mpi4py": "from mpi4py import MPI", "extension": "import mpiio_ext; from mpi4py import MPI"}
#: Seconds that `import mpiio_ext` may add.
LIMIT_S = 0.2
_TIMEOUT_S = 120


def clean_environment() -> dict[str, str]:
    """Return this environment without what puts the library under every program, and without hints."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MPIOX_", "LD_PRELOAD"))}


def time_of(python: str, form: str, folder: str) -> tuple[float, float]:
    """Run one process in an empty folder; returns its wall-clock and its processor time in seconds."""
    before_s, started_s = processor_s(), time.perf_counter()
    subprocess.run(
        [python, "-c", FORMS[form]], cwd=folder, env=clean_environment(), check=True, timeout=_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - started_s, processor_s() - before_s


def processor_s() -> float:
    """Return the processor time of all processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(python: str, runs: int) -> dict[str, list[tuple[float, float]]]:
    """Time all forms `runs` times, taking turns; returns {form: (wall-clock, processor) seconds of each round}."""
    found: dict[str, list[tuple[float, float]]] = {form: [] for form in FORMS}
    with tempfile.TemporaryDirectory() as folder:
        for index in range(-1, runs):
            for form in FORMS if index % 2 else reversed(FORMS):
                took = time_of(python, form, folder)
                if index >= 0:
                    found[form].append(took)
    return found


def line(name: str, times: list[tuple[float, float]]) -> str:
    """Return a row of the table: median (quartiles) in milliseconds."""
    cells = []
    for kind in zip(*times, strict=True):
        first, median, third = (1000 * value for value in statistics.quantiles(kind, n=4, method="inclusive"))
        cells.append(f"{median:7.1f} ({first:6.1f} ..{third:7.1f})")
    return f"{name:10s} {'   '.join(cells)}"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="of the environment (default: this one)")
    parser.add_argument("--runs", type=int, default=20, help="rounds")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help=f"seconds that it may add (default {LIMIT_S})")
    parser.add_argument("--json", help="write all times to this file")
    options = parser.parse_args()
    if options.runs < 2:
        parser.error("--runs: two or more")
    python = str(Path(options.python).absolute())  # a link into an environment stays one
    before = os.getloadavg()[0]
    found = measure(python, options.runs)
    after = os.getloadavg()[0]
    pairs = zip(found["extension"], found["mpi4py"], strict=True)
    more = [(with_s - without_s, busy_s - idle_s) for (with_s, busy_s), (without_s, idle_s) in pairs]
    print(f"{python}: {options.runs} rounds, load {before:.1f} before, {after:.1f} after, {os.cpu_count()} cores")
    print(f"{'ms':10s} wall clock: median (quartiles)  processor: median (quartiles)")
    for form, times in [*found.items(), ("added", more)]:
        print(line(form, times))
    if options.json:
        Path(options.json).write_text(json.dumps(found | {"load": [before, after]}), encoding="utf-8")
    added_s = statistics.median(wall_s for wall_s, _ in more)
    print(f"import mpiio_ext adds {1000 * added_s:.0f} ms; allowed are {1000 * options.limit:.0f} ms")
    return int(added_s > options.limit)


if __name__ == "__main__":
    raise SystemExit(main())
