"""Codes of errors under an MPI library that does not tell the texts of added codes, as MPICH 4.0; in C, with a fake."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable

import pytest

from support import cbuild
from support.launch import Launch

pytestmark = [pytest.mark.mpi, pytest.mark.both]


def test_text_that_the_library_forgets(mpi: Callable[..., Launch]) -> None:
    """The class is right in any case; the text is ours, or the general one of the class."""
    wrapper = str(pathlib.Path(sys.prefix) / "bin" / "mpicc")
    folders = [f"-I{path}" for path in sorted(cbuild.CSRC.glob("*/*")) if path.is_dir()]
    entry = cbuild.CSRC / "entry" / "mpi"
    sources = [
        cbuild.ROOT / "tests" / "c" / "mpi" / "error_codes.c",
        entry / "mpiox_mpi_error.c",
        entry / "mpiox_mpi_path.c",
        cbuild.CSRC / "core" / "common" / "mpiox_error.c",
    ]
    command = [wrapper, *cbuild.FLAGS, *folders, f"-I{cbuild.ROOT / 'tests' / 'c'}", *map(str, sources), "-lpthread"]
    launch = mpi([str(cbuild.compile_c(command, "mpi_error_codes"))], 1, timeout_s=60)
    assert "72 checks, 0 failures" in launch.stdout, launch.describe()
