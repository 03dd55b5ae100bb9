"""Calls of a replay for its own purposes, hidden from the tracer of ``mpiio-ext trace``.

Preparing the files, reading the path and loading Python modules are no I/O of the program that is carried out. If the
tracer is in the process, it is notified for the calling thread; otherwise nothing happens.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager


def _hold(more: int) -> None:
    try:
        function = ctypes.CDLL(None).mpiox_trace_hold
    except AttributeError:
        return
    function.argtypes, function.restype = (ctypes.c_int,), None
    function(more)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Do the body without a record; may be nested."""
    _hold(1)
    try:
        yield
    finally:
        _hold(-1)


@contextmanager
def recorded() -> Iterator[None]:
    """Do the body with records again, inside of one `unrecorded`."""
    _hold(-1)
    try:
        yield
    finally:
        _hold(1)
