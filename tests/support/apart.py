"""A /dev/shm of its own for a worker of pytest-xdist, so that several make launches at once.

Tests look at what a launch has left in shared memory; the launches of other workers must not be seen there. Starting
and ending MPI programs is mostly waiting, for which one launch at a time leaves cores idle.
"""

from __future__ import annotations

import ctypes

#: unshare(2), mount(2).
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000


def own_shared_memory() -> bool:
    """Give this thread, and all that it starts, an empty /dev/shm; False where that is not permitted."""
    libc = ctypes.CDLL(None)
    return (
        libc.unshare(CLONE_NEWNS) == 0
        and libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0
        and libc.mount(b"none", b"/dev/shm", b"tmpfs", 0, b"mode=1777") == 0
    )
