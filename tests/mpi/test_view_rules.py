"""Views that MPI forbids: what the error says."""

from __future__ import annotations

import pytest

from support.cases import Case, Cases
from support.marks import slow

pytestmark = pytest.mark.mpi

TEXTS = """
import sys

import mpiio_ext
from mpi4py import MPI

comm = MPI.COMM_WORLD
over = MPI.BYTE.Create_hindexed([4, 4], [0, 2]).Commit()
file = MPI.File.Open(comm, sys.argv[1] + "/data", MPI.MODE_CREATE | MPI.MODE_RDWR)
for disp, etype, filetype, text in (
    (-1, MPI.BYTE, MPI.BYTE, "negative displacement of a view"),
    (MPI.DISPLACEMENT_CURRENT, MPI.BYTE, MPI.BYTE, "MPI_DISPLACEMENT_CURRENT without MPI_MODE_SEQUENTIAL"),
    (0, MPI.BYTE, over, "an etype or file type that overlaps, of a file open for writing"),
):
    try:
        file.Set_view(disp, etype, filetype)
    except MPI.Exception as problem:
        found = problem.Get_error_string()
        assert f": MPI_File_set_view: {text} (" in found, found
    else:
        raise AssertionError(text)
file.Close()
over.Free()
"""
CASES = {f"texts {ranks}": Case(text=TEXTS, ranks=ranks) for ranks in (1, 3)}


@pytest.mark.both
@pytest.mark.parametrize("ranks", (*slow(1), 3))
def test_texts(cases: Cases, ranks: int) -> None:
    """What is told of a refused view: the MPI call, and all of what is wrong."""
    cases.result(f"texts {ranks}")
