"""The micro-benchmark of ``compare --interface hdf5``: one dataset of doubles in an HDF5 file, by h5py.

An MPI program, started by its path: it does not import this package, whose library the launch preloads or not. It takes
the options of ``csrc/tools/bandwidth`` that make sense for HDF5 and prints the same lines. Pattern ``contiguous``: the
ranks have rows of a 2-D array. Pattern ``blocks3d``: blocks of a 3-D array. A time is from the first rank's begin to
the last rank's end; the growth of memory is that of a rank's peak. With ``--raw`` every rank writes and reads as many
bytes at one place of a plain file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI

_COMM = MPI.COMM_WORLD
_Region = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def region_of(pattern: str, file_bytes: int, rank: int, ranks: int) -> _Region:
    """Return the shape of the dataset, and the start and the shape of a rank's part of it."""
    dims = (ranks, 1) if pattern == "contiguous" else MPI.Compute_dims(ranks, 3)
    edge = round((file_bytes / 8) ** (1 / len(dims)))
    each = [max(1, edge // parts) for parts in dims]
    place = np.unravel_index(rank, dims)
    start = tuple(int(index) * length for index, length in zip(place, each, strict=True))
    return tuple(parts * length for parts, length in zip(dims, each, strict=True)), start, tuple(each)


def seconds(action: Callable[[], object]) -> float:
    """Carry out an action of all ranks; the hosts of this machine have one clock."""
    _COMM.Barrier()
    begun = time.clock_gettime(time.CLOCK_MONOTONIC)
    action()
    ended = time.clock_gettime(time.CLOCK_MONOTONIC)
    return float(_COMM.allreduce(ended, MPI.MAX) - _COMM.allreduce(begun, MPI.MIN))


class Dataset:
    """One rank's part of the dataset, in a file that is open on all ranks."""

    def __init__(self, words: argparse.Namespace, region: _Region, mode: str) -> None:
        self._hints = MPI.Info.Create()
        for hint in words.hint:
            self._hints.Set(*hint.split("=", 1))
        self._file = h5py.File(words.file, mode, driver="mpio", comm=_COMM, info=self._hints)
        shape, start, count = region
        self._data = self._file.create_dataset("data", shape, "f8") if mode == "w" else self._file["data"]
        self._memory, self._place = h5py.h5s.create_simple(count), self._data.id.get_space()
        self._place.select_hyperslab(start, count)
        self._transfer = h5py.h5p.create(h5py.h5p.DATASET_XFER)
        if words.access == "collective":
            self._transfer.set_dxpl_mpio(h5py.h5fd.MPIO_COLLECTIVE)

    def write(self, values: np.ndarray) -> None:
        """Write this rank's part. Collective if the access is."""
        self._data.id.write(self._memory, self._place, values, dxpl=self._transfer)

    def read(self, values: np.ndarray) -> None:
        """Read this rank's part. Collective if the access is."""
        self._data.id.read(self._memory, self._place, values, dxpl=self._transfer)

    def close(self) -> None:
        """Close the file. Collective."""
        self._file.close()
        self._hints.Free()


class Raw:
    """One rank's part of a plain file."""

    def __init__(self, words: argparse.Namespace, region: _Region, mode: str) -> None:
        self._offset = _COMM.rank * 8 * int(np.prod(region[2]))
        self._file = os.open(words.file, os.O_RDONLY if mode == "r" else os.O_RDWR | os.O_CREAT, 0o600)

    def write(self, values: np.ndarray) -> None:
        """Write this rank's part."""
        if os.pwrite(self._file, values.data, self._offset) != values.nbytes:
            raise OSError(f"short write of {values.nbytes} bytes at {self._offset}")

    def read(self, values: np.ndarray) -> None:
        """Read this rank's part."""
        if os.preadv(self._file, [values.data], self._offset) != values.nbytes:
            raise OSError(f"short read of {values.nbytes} bytes at {self._offset}")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def timed(words: argparse.Namespace, region: _Region, mode: str, values: np.ndarray) -> tuple[float, float, float]:
    """Open the file, read it ("r") or write it, and close it; return the time of each."""
    opened: list[Dataset | Raw] = []
    open_s = seconds(lambda: opened.append((Raw if words.raw else Dataset)(words, region, mode)))
    file = opened[0]
    access_s = seconds(lambda: file.read(values) if mode == "r" else file.write(values))
    return open_s, access_s, seconds(file.close)


def memory_bytes(name: str) -> int:
    """Return this process's memory, "VmRSS", or its peak, "VmHWM"."""
    found = re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found[1]) if found else 0


def repetition(words: argparse.Namespace, region: _Region, arrays: list[np.ndarray]) -> dict[str, float]:
    """Write a new file, write it again, read it; return the times, growth of memory, and number of wrong bytes."""
    first, again, back = arrays
    back[...] = 0
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
    before = memory_bytes("VmRSS")
    line = {"open_close_s": 0.0}
    for name, mode, values in (("write", "w", first), ("rewrite", "r+", again), ("read", "r", back)):
        open_s, line[f"{name}_s"], line[f"{name}_close_s"] = timed(words, region, mode, values)
        line["open_close_s"] += (open_s + line[f"{name}_close_s"]) / (1 if mode == "r" else 2)
    line["memory_growth_bytes"] = _COMM.allreduce(memory_bytes("VmHWM") - before, MPI.MAX)
    wrong = int(np.count_nonzero(back.view(np.uint8) != again.view(np.uint8)))
    _COMM.Barrier()
    if _COMM.rank == 0:
        Path(words.file).unlink()
    return line | {"wrong_bytes": _COMM.allreduce(wrong)}


def parse(arguments: Iterable[str] | None = None) -> argparse.Namespace:
    """Return the options; those that only other patterns or programs need are accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pattern", choices=("contiguous", "blocks3d"), required=True)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--file", required=True)
    parser.add_argument("--access", choices=("collective", "independent"), default="collective")
    parser.add_argument("--hint", action="append", default=[])
    parser.add_argument("--raw", action="store_true")
    return parser.parse_known_args(arguments)[0]


def main() -> None:
    """Measure, and print a line for each repetition on rank 0."""
    words = parse()
    region = region_of(words.pattern, words.bytes, _COMM.rank, _COMM.size)
    data_bytes = 8 * int(np.prod(region[0]))
    arrays = [np.random.default_rng(seed + _COMM.rank).random(region[2]) for seed in (1000, 2000, 3000)]
    for number in range(words.repeats):
        line = {"repetition": number, "bytes": data_bytes, **repetition(words, region, arrays)}
        if _COMM.rank == 0:
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
