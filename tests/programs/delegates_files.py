"""What delegates do with a file: ``delegates_files.py CASE FILE``. Rank 0 prints what was seen as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import resource
import signal
import sys
from typing import Any

import mpiio_ext.delegates
import mpiio_ext.stats  # before mpi4py.MPI

# isort: split
import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
PAGE, RECORD = 4096, 64
CLASSES = {MPI.ERR_NO_SPACE: "MPI_ERR_NO_SPACE", MPI.ERR_IO: "MPI_ERR_IO"}
MODE = MPI.MODE_CREATE | MPI.MODE_RDWR


def record(at: int) -> np.ndarray:
    """Return the bytes of a record."""
    return ((np.arange(at, at + RECORD) * 7 + (at >> 12)) % 251 + 1).astype(np.uint8)


def balance(path: str) -> Any:
    """All accesses meet the pages of one delegate; after a sync its ranges are shared with the others."""
    file = MPI.File.Open(COMM, path, MODE)
    pages = list(range(0, 256, 2))  # of two delegates the first has the even ones
    for _ in range(2):
        for page in pages:
            for i in range(COMM.rank, PAGE // RECORD, COMM.size):
                file.Write_at(page * PAGE + i * RECORD, record(page * PAGE + i * RECORD))
        file.Sync()
        COMM.Barrier()
    wrong = 0
    for page in pages[COMM.rank :: COMM.size]:
        for i in range(PAGE // RECORD):
            data = np.empty(RECORD, np.uint8)
            file.Read_at(page * PAGE + i * RECORD, data)
            wrong += int((data != record(page * PAGE + i * RECORD)).sum())
    moved = mpiio_ext.stats.of(file).moved_ranges
    written = [item.counters["bytes_written"] for item in mpiio_ext.delegates.own()]
    file.Close()
    stored = np.fromfile(path, np.uint8)
    for page in pages:
        expected = np.concatenate([record(page * PAGE + i * RECORD) for i in range(PAGE // RECORD)])
        wrong += int((stored[page * PAGE : (page + 1) * PAGE] != expected).sum())
    return {"wrong": wrong, "moved": moved, "written": written, "holes": int(stored[PAGE : 2 * PAGE].any())}


def behind(path: str) -> Any:
    """Writes that wait to be sent to another node when their pages change hands, by a sync of another opening."""
    file = MPI.File.Open(COMM, path, MODE)
    later = MPI.File.Open(COMM, path, MPI.MODE_WRONLY)
    pages = list(range(0, 256, 2))
    for page in pages:
        for i in range(COMM.rank, PAGE // RECORD, COMM.size):
            file.Write_at(page * PAGE + i * RECORD, np.full(RECORD, 255, np.uint8))
    file.Sync()  # nothing has moved yet: the loads are known now
    COMM.Barrier()
    for page in pages:
        for i in range(COMM.rank, PAGE // RECORD, COMM.size):
            file.Write_at(page * PAGE + i * RECORD, np.full(RECORD, 255, np.uint8))
            if i < COMM.size:
                later.Write_at((page + 256) * PAGE + i * RECORD, record((page + 256) * PAGE + i * RECORD))
    file.Sync()
    later.Write_at(1024 * PAGE + COMM.rank * RECORD, record(1024 * PAGE + COMM.rank * RECORD))
    moved = mpiio_ext.stats.of(file).moved_ranges
    later.Close()
    file.Close()
    stored = np.fromfile(path, np.uint8)
    places = [(page + 256) * PAGE + i * RECORD for page in pages for i in range(COMM.size)]
    places += [1024 * PAGE + rank * RECORD for rank in range(COMM.size)]
    return {"wrong": sum(int((stored[at : at + RECORD] != record(at)).sum()) for at in places), "moved": moved}


def owners(path: str) -> Any:
    """Which delegates own pages of the file."""
    file = MPI.File.Open(COMM, path, MODE)
    file.Write_at(COMM.rank * RECORD, record(COMM.rank * RECORD))
    COMM.Barrier()
    found = [item.delegate for item in mpiio_ext.delegates.own() if path in {open_.path for open_ in item.files}]
    COMM.Barrier()
    file.Close()
    return found


def attempt(call: Any, *arguments: Any) -> str:
    """Make a call; its error, or "fine"."""
    try:
        call(*arguments)
    except MPI.Exception as error:
        return str(error)
    return "fine"


def kind(call: Any, *arguments: Any) -> str:
    """Make a call; the class of its error, or "fine"."""
    try:
        call(*arguments)
    except MPI.Exception as error:
        return CLASSES.get(error.Get_error_class(), "another class")
    return "fine"


def refused(path: str) -> Any:
    """The file system refuses all bytes: which call says so first, and what reads find before a sync."""
    file = MPI.File.Open(COMM, path, MODE)
    places = [i * RECORD for i in range(COMM.rank, 512 * PAGE // RECORD, COMM.size)]
    told, count = "fine", 0
    while told == "fine" and count < len(places):
        told = attempt(file.Write_at, places[count], record(places[count]))
        count += 1
    COMM.Barrier()
    read: list[str] = []
    for at in places[:count]:
        data = np.zeros(RECORD, np.uint8)
        said = attempt(file.Read_at, at, data)
        read.append(said if said != "fine" else "right" if np.array_equal(data, record(at)) else "wrong")
    COMM.Barrier()
    sync = attempt(file.Sync)
    after = attempt(file.Read_at, 0, np.zeros(RECORD, np.uint8))
    attempt(file.Close)
    return {"write": told, "writes": count, "read": sorted(set(read)), "sync": sync, "after": after}


def limited(path: str) -> Any:
    """Rank 1 limits the size of its files, which its delegates do not; then it raises the limit again."""
    before, base = resource.getrlimit(resource.RLIMIT_FSIZE), 1 << 26  # shared memory fits
    if COMM.rank == 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (base + 8 * PAGE + 100, before[1]))
    file = MPI.File.Open(COMM, path, MODE)
    data = np.full(4 * PAGE, 1 + COMM.rank, np.uint8)
    said = [attempt(file.Write_at, base + 6 * PAGE, data) if COMM.rank == 1 else "fine", attempt(file.Sync)]
    size = file.Get_size()
    COMM.Barrier()
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    said += [attempt(file.Write_at, base + (6 + 4 * COMM.rank) * PAGE, data), attempt(file.Close)]
    return {"said": said, "size": size - base, "stored": os.path.getsize(path) - base}


def scattered(path: str) -> Any:
    """Twelve pages that do not touch each other are refused, at several delegates."""
    file = MPI.File.Open(COMM, path, MODE)
    for page in range(0, 24, 2):
        if page // 2 % COMM.size == COMM.rank:
            file.Write_at(page * PAGE, record(page * PAGE))
    try:
        file.Sync()
        text = "fine"
    except MPI.Exception as error:
        text = str(error)
    ranges = mpiio_ext.stats.of(file).deferred_errors
    file.Close()
    return {"text": text, "ranges": ranges}


def closing(path: str) -> Any:
    """The delegates cannot close the file: some file systems say there what they could not keep."""
    file = MPI.File.Open(COMM, path, MODE)
    file.Write_at(COMM.rank * RECORD, record(COMM.rank * RECORD))
    file.Sync()
    try:
        file.Close()
    except MPI.Exception as error:
        return str(error)
    return "fine"


def disk(path: str) -> Any:
    """Caches that are files: which folders they are in, by what this process has mapped."""
    file = MPI.File.Open(COMM, path, MODE)
    places = range(COMM.rank * RECORD, 256 * PAGE, COMM.size * RECORD)
    for at in places:
        file.Write_at(at, record(at))
    maps = pathlib.Path("/proc/self/maps").read_text("utf-8").splitlines()
    found = [line.split()[5].rpartition("/")[0] for line in maps if "/mpiox." in line]
    got = np.empty(RECORD, np.uint8)
    wrong = 0
    for at in places:
        file.Read_at(at, got)
        wrong += int((got != record(at)).sum())
    info = file.Get_info()
    file.Close()
    stored = np.fromfile(path, np.uint8).reshape(-1, RECORD)
    wrong += sum(int((stored[at // RECORD] != record(at)).sum()) for at in places)
    return {"folders": sorted(set(found)), "wrong": wrong, "said": info.Get("mpiox_delegate_cache_dir")}


def torn(path: str) -> Any:
    """Caches in files that somebody cuts while the file is open: what closing says."""
    file = MPI.File.Open(COMM, path, MODE)
    for at in range(COMM.rank * RECORD, 64 * PAGE, COMM.size * RECORD):
        file.Write_at(at, record(at))
    COMM.Barrier()
    if COMM.rank == 0:
        for cache in pathlib.Path(sys.argv[3]).iterdir():
            os.truncate(cache, int(cache.stat().st_size * float(sys.argv[4])) // PAGE * PAGE)
    COMM.Barrier()
    for at in range((64 * PAGE + COMM.rank * RECORD), 80 * PAGE, COMM.size * RECORD):
        file.Write_at(at, record(at))
    return attempt(file.Close)


def fill(path: str) -> None:
    """Leave no room on the disk of a file."""
    if COMM.rank == 0:
        with pathlib.Path(path).with_name("filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(bytes(PAGE)):
                pass
    COMM.Barrier()


def lost_before(path: str) -> Any:
    """The cache of the first delegate is lost, which a sync says; then the disk is full for the other one's bytes."""
    file = MPI.File.Open(COMM, path, MODE)
    for at in range(COMM.rank * RECORD, 16 * PAGE, COMM.size * RECORD):
        file.Write_at(at, record(at))
    COMM.Barrier()
    if COMM.rank == 0:
        os.truncate(next(pathlib.Path(sys.argv[3]).iterdir()), 0)
    COMM.Barrier()
    for at in range(16 * PAGE + COMM.rank * RECORD, 32 * PAGE, COMM.size * RECORD):
        file.Write_at(at, record(at))
    first = attempt(file.Sync) if len(sys.argv) == 4 else "both at once"
    fill(path)
    for page in range(33 + 2 * COMM.rank, 48, 2 * COMM.size):  # of the second delegate
        attempt(file.Write_at, page * PAGE, record(page * PAGE))
    second = attempt(file.Sync)
    return {"first": first, "second": second, "close": attempt(file.Close)}


def restored(path: str) -> Any:
    """A delegate is killed while the disk is full for what it had, and for the copies of that."""
    file = MPI.File.Open(COMM, path, MODE)
    file.Write_at(COMM.rank * RECORD, record(COMM.rank * RECORD))
    file.Sync()
    fill(path)
    pages = range(2 + 2 * COMM.rank, 32, 2 * COMM.size)  # of the first delegate
    written = {attempt(file.Write_at, page * PAGE, record(page * PAGE)) for page in pages}
    COMM.Barrier()
    for delegate in mpiio_ext.delegates.own():
        if COMM.rank == 0 and delegate.delegate == 0:
            os.kill(delegate.pid, signal.SIGKILL)
    COMM.Barrier()
    return {"written": sorted(written), "sync": kind(file.Sync), "again": kind(file.Sync), "close": kind(file.Close)}


def settings(path: str) -> Any:
    """The second file asks for other delegates than the first one has had started."""
    file = MPI.File.Open(COMM, path, MODE)
    other = {"mpiox_delegate_cache": "1m", "mpiox_delegate_page": "4096", "mpiox_delegates": "1"}
    second = MPI.File.Open(COMM, path + ".2", MODE, MPI.Info.Create(other))
    found = [mpiio_ext.stats.of(item).delegation for item in (file, second)]
    info = second.Get_info()
    values = {name: info.Get(name) for name in (*other, "mpiox_delegate_mode", "mpiox_delegate_ack")}
    second.Close()
    file.Close()
    return {"delegation": found, "info": values}


def main() -> None:
    """Run one case."""
    cases = (balance, behind, owners, refused, limited, scattered, closing, disk, torn, lost_before, restored, settings)
    case = {case.__name__: case for case in cases}[sys.argv[1]]
    seen = COMM.gather(case(str(pathlib.Path(sys.argv[2]).resolve())))
    if COMM.rank == 0:
        print("SEEN " + json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
