"""Shared memory without a name that processes of this user have open, found among the descriptors in ``/proc``.

Guarantees. Only processes of this user are searched, even if the user is root. The functions open no memory; they
return its paths.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

PROC = Path("/proc")


def own_processes(proc: Path = PROC) -> Iterator[Path]:
    """Yield the folders of the processes of this user."""
    user = os.geteuid()
    for entry in proc.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it may have ended meanwhile
                if entry.stat().st_uid == user:
                    yield entry


def held(is_wanted: Callable[[str], bool], proc: Path = PROC) -> dict[tuple[int, int], list[Path]]:
    """Return {(device, inode): descriptors} of the segments that processes of this user have open.

    Parameters
    ----------
    is_wanted : whether what readlink() says of a descriptor is looked for.
    proc : folder of the processes.
    """
    found: dict[tuple[int, int], list[Path]] = {}
    for process in own_processes(proc):
        folder = str(process / "fd")
        try:
            names = os.listdir(folder)  # noqa: PTH208 - thousands in a search
        except OSError:
            continue
        for name in names:
            link = f"{folder}/{name}"
            with contextlib.suppress(OSError):
                if is_wanted(os.readlink(link)):  # noqa: PTH115
                    identity = os.stat(link)  # noqa: PTH116
                    found.setdefault((identity.st_dev, identity.st_ino), []).append(Path(link))
    return found
