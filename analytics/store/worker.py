"""The process that converts logs: reads tasks from its standard input, writes results to its standard output.

Whatever a library prints goes to the standard error stream, so that it cannot get between the results.
"""

from __future__ import annotations

import importlib
import os
import pickle
import struct
from typing import IO, Any

_LENGTH = struct.Struct("<Q")


def _read(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    return stream.read(length)


def _run(task: bytes) -> tuple[str, Any]:
    try:
        function, arguments = pickle.loads(task)
    except Exception as error:
        return "missing", f"a process that converts logs cannot find its connector: {error}"
    try:
        return "done", function(*arguments)
    except ImportError as error:
        return "missing", str(error)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def main() -> None:
    """Carry out tasks until the input ends."""
    with os.fdopen(os.dup(0), "rb") as tasks, os.fdopen(os.dup(1), "wb") as results:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        importlib.import_module("mpiio_ext.analytics.store.convert")  # here, so that no task's time has it
        while (task := _read(tasks)) is not None:
            data = pickle.dumps(_run(task))
            results.write(_LENGTH.pack(len(data)) + data)
            results.flush()
