"""Checks before a path is carried out: the owner of the folder, the bytes to write, and the room for them.

Problem.   A replay writes what a program wrote, into a folder that the user names. It must not write over
           files that no replay has made, nor fill a file system: some MPI libraries end the program, or wait for ever,
           where a nonblocking write finds the disk full.
Algorithm. A folder that holds something is taken only if an earlier replay has left its mark in it, or the caller says
           that its files may be lost. A file needs at most the bytes that all ranks write to it, and at most as many as
           lie before the last one that they write; files that are there have their room already.
Guarantee. All ranks decide alike, before anything but the mark is written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.pioneer.engine.coverage import OPERATIONS
from mpiio_ext.pioneer.engine.places import PlaceError
from mpiio_ext.pioneer.engine.plan import Plan, writing_numbers

if TYPE_CHECKING:
    from mpi4py import MPI

#: File in a folder that a replay has created, or was allowed to use.
MARK = ".mpiio_ext_replay"
#: Exit status of a replay in which calls have failed that had not failed in the trace; it went on to the path's end.
CALLS_FAILED = 3
_BLOCK = 512  # of st_blocks


def claim(folder: Path, *, existing: bool = False) -> None:
    """Make a folder, or take one that is there, and leave the mark in it. Local; one rank does it.

    Parameters
    ----------
    folder : files of the path will be below it.
    existing : it may hold files that no replay has made; they may be written over.

    Raises
    ------
    PlaceError
        The folder is the root of the file system, or contains files that no replay has made.
    OSError
        The folder cannot be created.
    """
    place = folder.resolve()
    if place == place.parent:
        raise PlaceError(f"{place}: files would have the names that the program gave them: name another folder")
    if place.exists() and not existing and not (place / MARK).exists() and any(place.iterdir()):
        raise PlaceError(
            f"{place} has files that no replay has made: name another folder, or give --existing if they may be "
            f"overwritten"
        )
    place.mkdir(parents=True, exist_ok=True)
    (place / MARK).touch()


def input_bytes(needed: dict[str, int]) -> int:
    """Return by how many bytes files must be made longer so that they have the given lengths."""
    return sum(
        max(0, length - (Path(name).stat().st_size if Path(name).exists() else 0)) for name, length in needed.items()
    )


def _written(plan: Plan) -> dict[str, tuple[int, int]]:
    """Return of each file that a rank writes the bytes, and where the last one is; -1: that is not known."""
    numbers = [
        *writing_numbers(),
        *(
            number
            for name in ("posix_fallocate", "MPI_File_preallocate")
            if (number := OPERATIONS.get(name)) is not None
        ),
    ]
    rows = np.flatnonzero(np.isin(plan.operation, numbers) & (plan.file >= 0))
    found: dict[str, tuple[int, int]] = {}
    for file in np.unique(plan.file[rows]).tolist():
        mine = rows[plan.file[rows] == file]
        end = -1 if (plan.end[mine] < 0).any() else int(plan.end[mine].max())
        found[plan.paths[file]] = int(plan.size[mine].sum()), end
    return found


def room_needed(plan: Plan, needed: dict[str, int], comm: MPI.Intracomm, most_bytes: int) -> int:
    """Return how many bytes of room the plans of all ranks need at most, on rank 0; elsewhere 0. Collective, blocking.

    Parameters
    ----------
    plan : of this rank.
    needed : lengths of the files that this rank reads.
    most_bytes : that a rank may write.
    """
    gathered = comm.gather((_written(plan), needed))
    total, lengths = dict[str, tuple[int, int]](), dict[str, int]()
    for written, reads in gathered or ():
        for name, (amount, end) in written.items():
            before, last = total.get(name, (0, 0))
            total[name] = before + amount, -1 if end < 0 or last < 0 else max(last, end)
        for name, length in reads.items():
            lengths[name] = max(length, lengths.get(name, 0))
    writes = sum(_lacking(name, amount if end < 0 else min(amount, end)) for name, (amount, end) in total.items())
    return min(writes, most_bytes * comm.size) + sum(_lacking(name, length) for name, length in lengths.items())


def _lacking(name: str, length: int) -> int:
    """Return how many bytes a file of a length needs besides the room that it has."""
    try:
        return max(0, length - Path(name).stat().st_blocks * _BLOCK)
    except OSError:
        return length


def free_bytes(folder: Path) -> int:
    """Return how many bytes the file system of a folder has room for, for this user."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
