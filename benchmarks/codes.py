"""Existing codes with and without the library.

Usage: ``python benchmarks/codes.py [--path /dev/shm] [--ranks 4] [--repetitions 5] [CODE...]``

Runs the small applications of ``tests/programs/codes`` (C with HDF5, C with PnetCDF, C and Fortran with MPI-IO, Python
with h5py and with netCDF4; ``flashio`` alone writes independently) at some tens of MB, unchanged, once with the MPI
library alone and once with the extension's defaults, or ``--hints``, under them. The two take turns, and the order
changes with each repetition. Every program verifies what it reads. Prints the medians of the bandwidths that the
programs themselves print (10^6 bytes, open to close) and the median of the ratios, each formed within a repetition,
with the smallest and the largest. Delegates: ``--hints '*:mpiox_delegates=2' flashio``.

Run it with the Python of the environment whose MPI is meant, ``build/openmpi/venv/bin/python`` for instance.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support import codes  # noqa: E402
from support.launch import mpi_family, mpi_run  # noqa: E402

LINE = re.compile(r"^\w+ (write|read) ([0-9.]+) MB/s, ([0-9.]+) MB$", re.MULTILINE)
TIMEOUT_S = 120.0
Rates = dict[str, float]


def measure(name: str, parent: str, ranks: int, extension: bool, hints: str) -> tuple[Rates, float]:
    """Run a code once in a folder of its own; return MB/s by operation, and MB."""
    with tempfile.TemporaryDirectory(prefix=f"mpiox_{name}_", dir=parent) as folder:
        words = codes.command(name, pathlib.Path(folder), "large")
        env = {"MPIOX_HINTS": hints} if extension and hints else {}
        launch = mpi_run(words, ranks, env=env, preload=extension, timeout_s=TIMEOUT_S)
    if f"{name} verified" not in launch.stdout:
        raise RuntimeError(launch.describe())
    found = LINE.findall(launch.stdout)
    return {operation: float(rate) for operation, rate, _ in found}, float(found[0][2])


def row(name: str, arguments: argparse.Namespace) -> str:
    """Measure one code and return its line of the table."""
    rates: dict[bool, list[Rates]] = {False: [], True: []}
    size_mb = 0.0
    for repetition in range(arguments.repetitions):
        for extension in (False, True) if repetition % 2 == 0 else (True, False):
            found, size_mb = measure(name, arguments.path, arguments.ranks, extension, arguments.hints)
            rates[extension].append(found)
    cells = [f"{codes.CODES[name].title:26s} {size_mb:6.0f}"]
    for operation in ("write", "read"):
        alone, ours = ([found[operation] for found in rates[extension]] for extension in (False, True))
        ratios = [b / a for a, b in zip(alone, ours, strict=True)]
        cells.append(
            f"{statistics.median(alone):8.0f} {statistics.median(ours):8.0f} {statistics.median(ratios):6.2f}"
            f" ({min(ratios):.2f}–{max(ratios):.2f})"
        )
    return "  ".join(cells)


def main() -> None:
    """Print the table, a line as soon as it is measured."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", default="/dev/shm", help="folder on the file system to measure (default: /dev/shm)")
    parser.add_argument("--ranks", type=int, default=4, help="a square, or BT-IO refuses (default: 4)")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--hints", default="", help="MPIOX_HINTS of the extension's runs (default: none)")
    parser.add_argument("code", nargs="*", help=f"of: {', '.join(codes.CODES)} (default: all that can)")
    arguments = parser.parse_args()
    wanted = arguments.code or [name for name in codes.CODES if name != "ncmpigen"]
    if unknown := set(wanted) - (set(codes.CODES) - {"ncmpigen"}):
        parser.error(f"no such code that prints its bandwidth: {', '.join(sorted(unknown))}")
    print(f"{mpi_family()}, {arguments.ranks} ranks, {arguments.path}, {arguments.repetitions} repetitions; MB/s")
    print(f"{'':26s} {'':6s}  {'write':34s}  read")
    columns = f"{'native':>8s} {'ours':>8s} {'ratio':>6s} {'(range)':12s}"
    print(f"{'code':26s} {'MB':>6s}  {columns}  {columns}")
    for name in wanted:
        try:
            print(row(name, arguments), flush=True)
        except codes.CodeAbsentError as error:
            print(f"{codes.CODES[name].title:26s} not run: {error}", flush=True)


if __name__ == "__main__":
    main()
