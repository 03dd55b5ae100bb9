"""Collective buffers, and what grows with the number of nodes, of which 10,000 are pretended, by programs in C."""

from __future__ import annotations

import pathlib
import sys

import pytest

from support import fuzz
from support.cbuild import CSRC, FLAGS, ROOT, SANITIZE, check, compile_c, sources

pytestmark = pytest.mark.mpi


def program(source: str, *modules: str) -> pathlib.Path:
    """Compile tests/c/SOURCE, which includes the file under test and has its own of what that calls beyond modules."""
    includes = [f"-I{folder}" for folder in sorted(CSRC.glob("*/*")) if folder.is_dir()]
    mpicc = pathlib.Path(sys.prefix) / "bin" / "mpicc"
    folder = ROOT / "tests" / "c"
    command = [str(mpicc), *FLAGS, *SANITIZE, *includes, f"-I{folder}", str(folder / source), *sources(*modules)]
    return compile_c(command, pathlib.Path(source).stem)


def test_placing_domains(family: str) -> None:
    """As every node for every domain would have it; 10,000 nodes and 20,000 domains by four looks a domain."""
    seed = fuzz.seed()
    assert " 0 failures" in check(program("collective/test_owners.c"), seed), seed


def test_who_is_due(family: str) -> None:
    """An aggregator works out once a call when each node sends to it, not once a round."""
    assert " 0 failures" in check(program("transport/test_due.c"))


def test_windows_of_rounds(family: str) -> None:
    """Each window has a round, whichever an aggregator begins with; who has something when is told before it comes."""
    seed = fuzz.seed()
    assert " 0 failures" in check(program("buffers/test_windows.c", "domains", "typemap", "common"), seed), seed


@pytest.mark.parametrize("ranks", ["any", "owner"])
def test_several_windows_are_written_at_a_time(family: str, ranks: str) -> None:
    """A rank that writes does not keep the others from filling and writing other windows."""
    assert " 0 failures" in check(program("buffers/test_slots.c", "common"), ranks)
