"""Programs that share a launch (support/cases.py): one that fails or hangs fails alone, and the others run."""

from __future__ import annotations

import pytest

from support.cases import Case, Cases
from support.launch import LaunchError

pytestmark = pytest.mark.mpi

FINE = """
import os, sys
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
MPI.COMM_WORLD.Barrier()
print(rank, open(sys.argv[1] + "/given").read(), os.environ.get("MPIOX_HINTS"), "leaked" in globals())
leaked = True
"""
ONE_RANK_FAILS = """
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 1:
    raise ValueError("rank 1 is wrong")
MPI.COMM_WORLD.Barrier()
"""
HANGS = """
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 1:
    MPI.COMM_WORLD.recv(source=0)
"""


def fine(hints: str) -> Case:
    return Case(text=FINE, ranks=2, environment={"MPIOX_HINTS": hints} if hints else {}, files={"given": "text"})


CASES = {
    "first": fine("a=b"),
    "fails": Case(text=ONE_RANK_FAILS, ranks=2),
    "second": fine(""),
    "ends early": Case(text="raise SystemExit", ranks=2),
    "hangs": Case(text=HANGS, ranks=2, limit_s=3),
    "third": fine("c=d"),
}


def test_each_case_has_its_own_result(cases: Cases) -> None:
    """Arguments, files and environment are the case's own; what fails ends one launch, not what stands behind it."""
    for name, hints in (("first", "a=b"), ("second", None), ("third", "c=d")):
        assert cases.result(name).stdout == tuple(f"{rank} text {hints} False\n" for rank in range(2))
    for name, reason in (("fails", "ValueError: rank 1 is wrong"), ("ends early", "SystemExit"), ("hangs", "Timeout")):
        with pytest.raises(LaunchError, match=reason):
            cases.result(name)
    assert cases.launches == 4
