"""A scratch file that fills the caches: what does not fit is refused, and everything can be read, holes too.

``delegates_scratch_full.py FILE PAGE`` prints what rank 0 has found wrong, as JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from mpi4py import MPI

COMM, PAGE = MPI.COMM_WORLD, int(sys.argv[2])
PAGES = 64
file = MPI.File.Open(COMM, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_size(PAGES * PAGE)
wrong: list[str] = []
written: list[int] = []


def content(page: int) -> np.ndarray:
    """Return what a page holds."""
    return np.full(PAGE, page + 1, np.uint8)


def read(pages: range, at_once: int, when: str) -> None:
    """Compare pages, so many in one access."""
    for first in pages[::at_once]:
        found = np.full(at_once * PAGE, 255, np.uint8)
        try:
            file.Read_at(first * PAGE, found)
        except MPI.Exception as error:
            wrong.append(f"rank {COMM.rank}, {when}, page {first}: {error}")
            continue
        for page in range(first, first + at_once):
            part = found[(page - first) * PAGE :][:PAGE]
            if not (part == (content(page) if page in written else 0)).all():
                wrong.append(f"rank {COMM.rank}, {when}: content of page {page}")


def share() -> None:
    """Tell all ranks which pages are there."""
    everybody = [page for pages in COMM.allgather(written) for page in pages]
    written[:] = sorted(set(everybody))
    file.Sync()
    COMM.Barrier()
    file.Sync()


read(range(PAGES), 1, "empty")
COMM.Barrier()
refused = 0
for page in range(COMM.rank, PAGES, 2 * COMM.size):  # between them are holes
    try:
        file.Write_at(page * PAGE, content(page))
        written.append(page)
    except MPI.Exception as error:
        refused += 1
        if error.Get_error_class() != MPI.ERR_NO_SPACE or "mpiox_delegate_cache has no room" not in str(error):
            wrong.append(f"rank {COMM.rank}: write of page {page}: {error}")
share()
for at_once in (1, 4, PAGES):
    read(range(PAGES), at_once, f"full, {at_once} at once")
file.Close()
file = MPI.File.Open(COMM, sys.argv[1], MPI.MODE_RDWR)
read(range(PAGES), 1, "opened again")
file.Close()
texts = [text for each in COMM.gather(wrong) or [] for text in each]
all_refused = COMM.reduce(refused)
if COMM.rank == 0:
    print("SEEN", json.dumps([texts, all_refused, len(written)]))
