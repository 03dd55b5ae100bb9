"""Programs in C that each test one module, under sanitizers: their checks are theirs, all of them must hold."""

from __future__ import annotations

import os

import pytest

from support import cbuild
from support.marks import slow

#: Drawn cases that are compared with figures: the seed is part of them.
SEED = os.environ.get("MPIOX_TEST_SEED", "20081115")


@pytest.mark.parametrize(
    ("source", "modules", "arguments"),
    [
        ("lock_model/test_lock_model.c", ("lock_model", "domains"), (SEED,)),
        *slow(("auto_select/test_auto.c", ("auto_select", "domains"), (SEED,))),  # facts up to the limits
        ("domains/test_plan.c", ("domains",), (SEED,)),
        ("common/test_worker.c", ("common",), ()),
        ("common/test_count.c", ("common",), ()),
        ("stats/test_line.c", ("stats", "common"), ()),
        ("stats/test_paying.c", ("stats", "common"), ()),
        # A wait ends when nobody comes; signs of life, other threads' limits and time spent stopped do not count.
        ("common/test_wait.c", ("common",), ()),
        # No line harms the program: no reader, no room, no descriptor; a program's signals and handlers are its own.
        ("common/test_print.c", ("common",), ()),
        # A process that is dead, that its parent has not waited for, or whose number is another one's by now.
        ("common/test_peer.c", ("common",), ()),
        # Between the last look at a word and the sleep, with many threads and many orders of what they do.
        *slow(("common/test_wake.c", (), ())),
    ],
)
def test_module_under_sanitizers(source: str, modules: tuple[str, ...], arguments: tuple[str, ...]) -> None:
    cbuild.passes(cbuild.program(source, *modules), *arguments)


def test_no_wake_up_is_lost_under_the_thread_sanitizer() -> None:
    cbuild.passes(cbuild.threads_program("common/test_wake.c"))
