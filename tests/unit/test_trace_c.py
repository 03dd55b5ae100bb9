"""The tracer's descriptors, in C, under sanitizers: threads on the same ones at once."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from support import cbuild

FOLDER = cbuild.folder("trace")
FILES = [f"mpiox_trace_{name}.c" for name in ("descriptors", "lock", "streams", "system")]


@pytest.mark.parametrize("build", [cbuild.program, cbuild.threads_program], ids=["checked", "raced"])
def test_threads_on_the_same_descriptors(build: Callable[..., pathlib.Path]) -> None:
    more = (f"-I{FOLDER}", *(str(FOLDER / name) for name in FILES))
    cbuild.passes(build("trace/test_descriptors.c", more=more))
