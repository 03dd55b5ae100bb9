"""Whether a process reads another one's memory (CMA, process_vm_readv), as MPI libraries send large messages by it.

Process ids count in the reader's namespace: of ranks that have process ids of their own (``unshare --pid``, a container
for each rank) the number of one is nobody for the other, or somebody else. So what was read is compared with what the
other one has written there, and only two ranks tell what holds between ranks.
"""

from __future__ import annotations

import ctypes
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpi4py import MPI

#: In place of an error number: the call succeeds, but reads the memory of another process than was meant.
SOMEBODY_ELSE = -1
_WORD_BYTES = 32


class _Words(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def read_errno(pid: int, address: int, expected: bytes) -> int:
    """Return the error number by which this process may not read another's memory; 0: it has read what was expected.

    Parameters
    ----------
    pid : of the other process, as it says itself.
    address : there.
    expected : the bytes that are there.
    """
    process = ctypes.CDLL(None, use_errno=True)
    mine = ctypes.create_string_buffer(len(expected))
    local = _Words(ctypes.addressof(mine), len(expected))
    remote = _Words(address, len(expected))
    if process.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) < 0:
        return ctypes.get_errno()
    return 0 if mine.raw == expected else SOMEBODY_ELSE


def _namespace() -> str:
    """Return the namespace of this process' id, "" where it is not told."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def between_ranks(world: MPI.Intracomm) -> list[dict[str, Any]]:
    """Return for each rank whether it reads the memory of the next rank of its host. Collective, blocking.

    Returns
    -------
    On every rank of each: ``host``, ``namespace``, ``of`` (the other rank; None: it is alone on its host), ``errno``.
    """
    expected = os.urandom(_WORD_BYTES)
    word = ctypes.create_string_buffer(expected, _WORD_BYTES)
    told = world.allgather((socket.gethostname(), os.getpid(), ctypes.addressof(word), expected))
    host = socket.gethostname()
    beside = [rank for rank, one in enumerate(told) if one[0] == host]
    other = beside[(beside.index(world.rank) + 1) % len(beside)]
    found: dict[str, Any] = {"host": host, "namespace": _namespace(), "of": None, "errno": None}
    if other != world.rank:
        found |= {"of": other, "errno": read_errno(*told[other][1:])}
    return list(world.allgather(found))  # behind it nobody reads `word` any more
