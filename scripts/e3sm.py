"""Measure E3SM-IO over PnetCDF: native MPI-IO and PnetCDF's own GIO, each with defaults and tuned, and this library.

    python scripts/e3sm.py --program E3SM-IO/src/e3sm_io --maps E3SM-IO/datasets --pnetcdf PREFIX/lib
    python scripts/e3sm.py ... --ranks 8 --rounds 3 --cases g,i --ways "GIO tuned,mpiio_ext" --hint mpiox_stats=full

You build PnetCDF with GIO and E3SM-IO, under Open MPI; ``--maps`` is the folder of ``map_f_case_16p.nc`` and its
siblings. Run it with the Python of ``build/openmpi/venv``. In each round every way writes every case once, in an order
that rotates, so that a slow minute hits all of them. A row of the table is one history file: the median of MiB/s in the
rounds, the least and the greatest, and, for each other way, the median of the quotients of the same round. Files are
compared byte for byte with those of the first way of the same round that is not this library: a number is that of bytes
that differ. With native MPI-IO and GIO, bytes in holes of the I case are whatever a buffer contained, so ``holes``
counts those where this library wrote 0. The status is 1 if another byte differs.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

LIMIT_S = 600
CASES = {"f": ("F h0", "F h1"), "g": ("G",), "i": ("I h0", "I h1")}
OURS = "mpiio_ext"
#: The hints of PnetCDF of each way; R is the number of ranks.
WAYS = {
    "native": "nc_driver=mpiio",
    "native tuned": "nc_driver=mpiio;cb_nodes=R;cb_config_list=*:*",
    "GIO": "nc_driver=gio",
    "GIO tuned": "nc_driver=gio;cb_nodes=4",
    OURS: "nc_driver=mpiio",
}
MEASURES = {"flush": "write-only", "file": "open-to-close"}


def write(options: argparse.Namespace, case: str, way: str, folder: Path) -> list[float]:
    """Write the history files of a case into a new folder; return MiB/s of each."""
    folder.mkdir()
    passed = {
        "LD_LIBRARY_PATH": f"{options.pnetcdf.absolute()}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        "PNETCDF_HINTS": WAYS[way].replace("=R", f"={options.ranks}"),
    }
    if way == OURS:
        passed |= {"LD_PRELOAD": str(options.library), "MPIOX_HINTS": ";".join(f"*:{hint}" for hint in options.hint)}
    exports = [word for name, value in passed.items() for word in ("-x", f"{name}={value}")]
    launch = ["mpirun.openmpi", "-n", str(options.ranks), *exports]
    program = [str(options.program), "-k", "-a", "pnetcdf", "-x", "canonical", "-o", str(folder / "out.nc")]
    allowed = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    done = subprocess.run(
        [*launch, *program, str(options.maps / f"map_{case}_case_16p.nc")],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, **allowed, "OMPI_MCA_rmaps_base_oversubscribe": "1"},
    )
    found = re.findall(rf"MiB/sec \({MEASURES[options.measure]}\) *= *([0-9.]+)", done.stdout)
    if done.returncode != 0 or len(found) != len(CASES[case]):
        raise SystemExit(f"{way}, case {case}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    if options.hint and way == OURS:
        print(done.stderr, file=sys.stderr)
    return [float(text) for text in found]


def differences(first: Path, other: Path) -> tuple[int, int]:
    """Return how many bytes of two folders' files differ, and how many of these are 0 in the other folder's."""
    wrong = zeros = 0
    for path in sorted(first.iterdir()):
        ours = other / path.name
        if not ours.exists() or ours.stat().st_size != path.stat().st_size:
            return path.stat().st_size, 0
        one, two = np.fromfile(path, np.uint8), np.fromfile(ours, np.uint8)
        differs = one != two
        wrong += int(differs.sum())
        zeros += int((two[differs] == 0).sum())
    return wrong, zeros


def measure(options: argparse.Namespace, scratch: Path) -> tuple[dict[tuple[str, str], list[float]], bool]:
    """Run all rounds; return MiB/s by history file and way, and whether no file of this library is wrong."""
    speeds: dict[tuple[str, str], list[float]] = {}
    fine = True
    for number in range(options.rounds):
        for case in options.cases:
            turn = number % len(options.ways)
            folders = {way: scratch / f"{number}-{case}-{way.replace(' ', '-')}" for way in options.ways}
            for way in options.ways[turn:] + options.ways[:turn]:
                for title, speed in zip(CASES[case], write(options, case, way, folders[way]), strict=True):
                    speeds.setdefault((title, way), []).append(speed)
                    print(f"round {number + 1}, {title}, {way}: {speed:.0f} MiB/s", file=sys.stderr)
            others = [way for way in options.ways if way != OURS]
            first = others[0] if others else OURS
            for way in (way for way in options.ways if way != first):
                wrong, zeros = differences(folders[first], folders[way])
                if wrong:
                    print(f"round {number}, case {case}, {way}: {wrong} bytes are not those of {first}, {zeros} are 0")
                fine &= way != OURS or wrong == zeros == 0 or (case == "i" and wrong == zeros)
            for folder in folders.values():
                for path in folder.iterdir():
                    path.unlink()
                folder.rmdir()
    return speeds, fine


def quotient(ours: list[float], other: list[float]) -> str:
    """Return the median of the rounds' quotients, and their range."""
    each = [a / b for a, b in zip(ours, other, strict=True)]
    return f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"


def main() -> int:
    """Read the command line, run all rounds, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True, help="e3sm_io")
    parser.add_argument("--maps", type=Path, required=True, help="the folder of the decomposition maps")
    parser.add_argument("--pnetcdf", type=Path, required=True, help="the folder of libpnetcdf.so")
    parser.add_argument(
        "--library", type=Path, default=Path("build/openmpi/cmake/lib/libmpiio_ext.so"), help="%(default)s"
    )
    parser.add_argument("--ranks", type=int, default=4, help="%(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="%(default)s")
    parser.add_argument("--cases", default=",".join(CASES), help="some of %(default)s")
    parser.add_argument("--ways", default=",".join(WAYS), help="some of %(default)s")
    parser.add_argument("--measure", choices=MEASURES, default="flush", help="MiB/s of what (%(default)s)")
    parser.add_argument("--hint", action="append", default=[], help="a hint of this library; prints its output")
    parser.add_argument("--folder", default="/dev/shm", help="where the files are written (%(default)s)")
    options = parser.parse_args()
    options.cases, options.ways = options.cases.split(","), options.ways.split(",")
    if unknown := [word for word in [*options.cases, *options.ways] if word not in {*CASES, *WAYS}]:
        parser.error(f"unknown: {', '.join(unknown)}")
    options.library = options.library.absolute()
    if not options.library.exists():
        parser.error(f"no {options.library}: `make build` makes it, --library names another one")
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        speeds, fine = measure(options, Path(scratch))
    others = [way for way in options.ways if way != OURS] if OURS in options.ways else []
    head = ["file", *(f"{way}, MiB/s" for way in options.ways), *(f"{OURS} ÷ {way}" for way in others)]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for title in (title for case in options.cases for title in CASES[case]):
        each = [speeds[title, way] for way in options.ways]
        cells = [f"{statistics.median(found):.0f} ({min(found):.0f} to {max(found):.0f})" for found in each]
        cells += [quotient(speeds[title, OURS], speeds[title, way]) for way in others]
        print(f"| {title} | {' | '.join(cells)} |")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
