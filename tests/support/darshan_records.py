"""Darshan's runtime, where it is, and the records of a log as PyDarshan reads them."""

from __future__ import annotations

import os
import pathlib
from typing import TypeAlias

import pytest

from support import cbuild
from support.launch import mpi_family

#: Module, name of the file, rank.
Key: TypeAlias = tuple[str, str, int]
Row: TypeAlias = dict[str, float]

MODULES = ("POSIX", "MPI-IO", "STDIO")


def read_records(path: pathlib.Path, *, streams: bool = False) -> dict[Key, Row]:
    """Return the records of the modules with counters; `streams`: those of <STDIN> and its kin, too."""
    from darshan.backend import cffi_backend

    found: dict[Key, Row] = {}
    for module in MODULES:
        log = cffi_backend.log_open(str(path))  # each from its beginning
        names = cffi_backend.log_get_name_records(log)
        columns = [*cffi_backend.counter_names(module), *cffi_backend.fcounter_names(module)]
        while module in cffi_backend.log_get_modules(log) and (
            record := cffi_backend.log_get_record(log, module, dtype="numpy")
        ):
            name = names[record["id"]]
            values = [*record["counters"].tolist(), *record["fcounters"].tolist()]
            if streams or not name.startswith("<STD"):
                found[module, name, int(record["rank"])] = dict(zip(columns, values, strict=True))
        cffi_backend.log_close(log)
    return found


def darshan_runtime() -> str:
    """Return Darshan's runtime library, which is for Open MPI, or skip the test."""
    path = os.environ.get("MPIOX_TEST_DARSHAN") or cbuild.ROOT.parent / "shared/tools/darshan/libdarshan.so"
    if not pathlib.Path(path).exists():
        pytest.skip("no ../shared/tools/darshan/libdarshan.so (MPIOX_TEST_DARSHAN names another one)")
    if mpi_family() != "openmpi":
        pytest.skip("Darshan's runtime is there for Open MPI only")
    return str(path)
