"""Rank 0's listener for the delegates that it spawns, in C: what becomes of it when it cannot be opened."""

from __future__ import annotations

import pathlib
import sys

import pytest

from support import cbuild

pytestmark = [pytest.mark.mpi, pytest.mark.both]


def test_a_call_that_fails_closes_no_foreign_descriptor() -> None:
    wrapper = str(pathlib.Path(sys.prefix) / "bin" / "mpicc")
    folders = [
        f"-I{path}"
        for path in (*sorted(cbuild.CSRC.glob("*/*")), *cbuild.CSRC.glob("*/third_party/*"))
        if path.is_dir()
    ]
    iod = cbuild.CSRC / "iod"
    sources = [
        str(cbuild.ROOT / "tests/c/service/failed_call.c"),
        str(iod / "service/mpiox_service_call.c"),
        str(iod / "process/mpiox_process_socket.c"),
        *cbuild.sources("common", "rendezvous"),
    ]
    command = [wrapper, *cbuild.FLAGS, *folders, f"-I{cbuild.ROOT / 'tests' / 'c'}", *sources, "-lpthread"]
    out = cbuild.check(cbuild.compile_c(command, "service_failed_call"), timeout=60)
    assert "10 checks, 0 failures" in out
