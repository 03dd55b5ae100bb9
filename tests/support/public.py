"""Programs after reports that people have made in public of MPI-IO: which report, on how many ranks, with what.

The sources lie in ``tests/programs/public``; each verifies what it has written, and prints "verified".
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from support.codes import compiled, hdf5_flags
from support.launch import ROOT

SOURCES = ROOT / "tests" / "programs" / "public"
FILE = "{file}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report.

    Attributes
    ----------
    threads : where it was made, "OWNER/REPOSITORY#NUMBER".
    seen : what its author saw, for a table.
    program : name of a source.
    ranks : processes.
    arguments : of the program; ``{file}`` stands for the file that it writes.
    memory_gib : of data that it writes.
    dear : takes long, for the slow tier.
    """

    threads: tuple[str, ...]
    seen: str
    program: str
    ranks: int
    arguments: tuple[str, ...] = (FILE,)
    memory_gib: float = 0.1
    dear: bool = False


def _large(bytes_more: int, gib: int, *threads: str, seen: str) -> Report:
    return Report(
        threads=threads,
        seen=seen,
        program="large_request",
        ranks=2,
        memory_gib=gib,
        dear=True,
        arguments=(FILE, str(gib * 1024), str(bytes_more)),
    )


def _limits(groups: str, *limits: int, gib: float = 0.1, dear: bool = True) -> Report:
    """Return a report on every call around limits; `groups`: see the program. In totals each call is made once."""
    return Report(
        threads=("open-mpi/ompi#14379", "pmodels/mpich#2886", "diatomic/diy#75"),
        program="around_limits",
        ranks=2,
        memory_gib=gib,
        dear=dear,
        arguments=(groups, FILE, ",".join(map(str, limits)), str(len(limits))),
        seen="offsets, lengths and counts beyond an int are narrowed in one of many calls",
    )


#: 2^31 and 2^32, each with the numbers before and after it.
_LIMITS = [(1 << bits) + more for bits in (31, 32) for more in (-1, 0, 1)]


REPORTS = {
    "pieces-of-2-gib": Report(
        threads=("open-mpi/ompi#14379", "paboyle/Grid#381"),
        program="byte_offset",
        ranks=2,
        seen="offsets in a view with pieces of 2 GiB are computed from memory that is not the view's",
    ),
    "one-call-just-below-2-gib": _large(
        -4096, 2, "pmodels/mpich#1742", seen="the last 4 KiB before 2 GiB are wrong, with MPI_SUCCESS"
    ),
    "one-call-of-2-gib": _large(
        4096,
        2,
        "pmodels/mpich#2886",
        "pmodels/mpich#2887",
        "pmodels/mpich#2888",
        "open-mpi/ompi#2399",
        seen="assertions and short writes in calls of more than 2 GiB",
    ),
    "one-call-of-4-gib": _large(
        8, 4, "pmodels/mpich#2012", "diatomic/diy#75", seen="2 GiB are written where 4 GiB are asked for"
    ),
    "calls-around-2-limits": _limits("far,sizes", 1 << 31, (1 << 32) + 1, dear=False),
    "calls-around-6-limits": _limits("far,sizes", *_LIMITS),
    "totals-around-6-limits": _limits("totals,preallocate", *_LIMITS, gib=5),
    "hdf5-cartesian": Report(
        threads=("open-mpi/ompi#12718",),
        program="slabs_hdf5",
        ranks=3,
        arguments=("cartesian", FILE, "50", "30"),
        seen="now and then a dataset written over a Cartesian communicator is wrong",
    ),
    "hdf5-uneven": Report(
        threads=("HDFGroup/hdf5#1227", "AMReX-Codes/amrex#2491"),
        program="slabs_hdf5",
        ranks=31,
        arguments=("uneven", FILE, "2000", "2"),
        seen="31 ranks with slabs of different sizes wait for ever",
    ),
    "hdf5-blocks": Report(
        threads=("pmodels/mpich#6984",),
        program="slabs_hdf5",
        ranks=4,
        dear=True,
        arguments=("cartesian", FILE, "2048", "4"),
        seen="2 and 16 ranks of h5bench's exerciser: most of the time of collective writes is in exchanging",
    ),
    "hdf5-rows": Report(
        threads=("HDFGroup/hdf5#5796",),
        program="slabs_hdf5",
        ranks=4,
        arguments=("rows", FILE, "3556", "10"),
        seen="30 files a minute on one node, 2 or 3 on several",
    ),
}


@functools.cache
def program(name: str) -> tuple[str, ...]:
    """Compile a source; return the words that start it.

    Raises
    ------
    CodeAbsentError
        There is no parallel HDF5 for this MPI library.
    """
    flags = hdf5_flags() if name.endswith("_hdf5") else []
    return compiled("mpicc", SOURCES / f"{name}.c", "-std=c11", *flags)


def command(report: Report, file: str) -> list[str]:
    """Return the command line of a report's program, without launcher."""
    return [*program(report.program), *(word.replace(FILE, file) for word in report.arguments)]
