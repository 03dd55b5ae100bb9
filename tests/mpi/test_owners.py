"""Which aggregator has which file domain (csrc/collective/mpiox_owners.c), by a C program without a launch."""

from __future__ import annotations

import pathlib
import random
import sys

import pytest

from support.cbuild import CSRC, FLAGS, ROOT, SANITIZE, check, compile_c

pytestmark = pytest.mark.mpi


def test_placing_domains(family: str) -> None:
    """As every node for every domain would have it; 10,000 nodes and 20,000 domains by four looks a domain."""
    includes = [f"-I{folder}" for folder in sorted(CSRC.iterdir()) if folder.is_dir()]
    source = ROOT / "tests" / "c" / "collective" / "test_owners.c"
    mpicc = pathlib.Path(sys.prefix) / "bin" / "mpicc"
    command = [str(mpicc), *FLAGS, *SANITIZE, *includes, f"-I{ROOT / 'tests' / 'c'}", str(source)]
    seed = random.randrange(2**31)
    assert " 0 failures" in check(compile_c(command, "test_owners"), str(seed)), seed
