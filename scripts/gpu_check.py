"""Measure MPI-IO of buffers in the memory of a GPU: host memory, device memory, and the author's own copy, in turn.

    mpirun -n 4 build/openmpi/venv/bin/python scripts/gpu_check.py [--megabytes 64] [--rounds 5] [--folder /dev/shm]

Each rank writes and reads back so many MiB by collectives, contiguously, and in blocks of 4 KiB and 64 B that are dealt
to the ranks in turn; every byte is compared. "own way" is what a program does whose MPI-IO takes no device memory: copy
everything to pageable host memory, and let the MPI library write it. Rank 0 prints medians in MB/s of all ranks, and
the medians of the ratios within a round; the last line is JSON.

It needs a CUDA driver, libcuda.so.1; PRETENDED_GPU names another library of that kind, as the tests do.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import sys
from collections.abc import Callable

import mpiio_ext  # before mpi4py.MPI

# isort: split
import numpy as np
import numpy.typing as npt
from mpi4py import MPI

comm = MPI.COMM_WORLD
Bytes = npt.NDArray[np.uint8]
PATTERNS = {"contiguous": 0, "4 KiB in turn": 4096, "64 B in turn": 64}
MEMORY = ("host", "device", "own way")


class Driver:
    """The few functions of the driver that a program of this kind needs."""

    def __init__(self) -> None:
        pretended = os.environ.get("PRETENDED_GPU")
        self.library = ctypes.CDLL(pretended or "libcuda.so.1")
        if pretended:
            return
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function, whose result must be 0."""
        if result := getattr(self.library, name)(*arguments):
            sys.exit(f"{name} returned {result}")

    def allocate(self, nbytes: int) -> int:
        """Return the address of new device memory."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        return int(address.value)

    def put(self, address: int, data: Bytes) -> None:
        """Copy to the device."""
        self.call(
            "cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes)
        )

    def get(self, address: int, data: Bytes) -> None:
        """Copy from the device."""
        self.call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(data.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(data.nbytes)
        )


class Run:
    """Buffers of one rank, and one write and read of each kind of memory."""

    def __init__(self, driver: Driver, nbytes: int, path: str) -> None:
        self.driver, self.nbytes, self.path = driver, nbytes, path
        self.data = np.random.default_rng(comm.rank).integers(0, 256, nbytes, dtype=np.uint8)
        self.host, self.device = np.empty_like(self.data), driver.allocate(nbytes)

    def timed(self, memory: str, block: int) -> tuple[float, float]:
        """Return the seconds of a write and of a read; ends the job where a byte is wrong."""
        info = MPI.Info.Create()
        if memory == "own way":
            info.Set("mpiox_enable", "false")
        file = MPI.File.Open(comm, self.path, MPI.MODE_CREATE | MPI.MODE_RDWR, info)
        file.Set_size(0)
        kind = MPI.BYTE
        if block:
            kind = MPI.BYTE.Create_vector(self.nbytes // block, block, block * comm.size)
            kind = kind.Create_resized(0, self.nbytes * comm.size).Commit()
        file.Set_view(comm.rank * (block or self.nbytes), MPI.BYTE, kind)
        at = self.device if memory == "device" else self.host.ctypes.data
        buffer = [MPI.buffer.fromaddress(at, self.nbytes), self.nbytes, MPI.BYTE]
        self.driver.put(self.device, self.data)
        self.host[:] = self.data if memory == "host" else 0
        written = self.step(lambda: self.write(file, memory, buffer))
        self.driver.put(self.device, np.zeros_like(self.data))
        self.host[:] = 0
        read = self.step(lambda: self.read(file, memory, buffer))
        if memory != "host":
            self.driver.get(self.device, self.host)
        if not (self.host == self.data).all():
            print(f"rank {comm.rank}: wrong bytes, {memory}, block {block}", file=sys.stderr, flush=True)
            comm.Abort(1)
        file.Close()
        return written, read

    def write(self, file: MPI.File, memory: str, buffer: list[object]) -> None:
        """Write once."""
        if memory == "own way":
            self.driver.get(self.device, self.host)
        file.Write_at_all(0, buffer)

    def read(self, file: MPI.File, memory: str, buffer: list[object]) -> None:
        """Read once."""
        file.Read_at_all(0, buffer)
        if memory == "own way":
            self.driver.put(self.device, self.host)

    @staticmethod
    def step(call: Callable[[], None]) -> float:
        """Return how long a call takes, of the slowest rank."""
        comm.Barrier()
        begun = MPI.Wtime()
        call()
        return comm.allreduce(MPI.Wtime() - begun, MPI.MAX)


def main() -> None:
    """Run all, print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    options = parser.parse_args()
    nbytes = options.megabytes << 20
    path = options.folder / "mpiio_ext-gpu_check"
    run = Run(Driver(), nbytes, str(path))
    table: dict[str, dict[str, list[tuple[float, float]]]] = {name: {each: [] for each in MEMORY} for name in PATTERNS}
    for number in range(options.rounds + 1):
        for name, block in PATTERNS.items():
            for memory in MEMORY:
                seconds = run.timed(memory, block)
                if number:  # the first round pins buffers
                    table[name][memory].append(seconds)
    comm.Barrier()
    if comm.rank == 0:
        path.unlink()
        report(table, nbytes * comm.size / 1e6)


def report(table: dict[str, dict[str, list[tuple[float, float]]]], megabytes: float) -> None:
    """Print medians and ratios."""
    figures = {}
    for name, rows in table.items():
        for memory, times in rows.items():
            rates = [megabytes / statistics.median(each[way] for each in times) for way in (0, 1)]
            ratios = [
                statistics.median(base[way] / own[way] for base, own in zip(rows[other], times, strict=True))
                for other in ("host", "own way")
                for way in (0, 1)
            ]
            figures[f"{name}, {memory}"] = [round(value, 3) for value in (*rates, *ratios)]
            text = " ".join(f"{value:8.2f}" for value in ratios)
            print(f"{name:14} {memory:8} written/read {rates[0]:9.0f} {rates[1]:9.0f} MB/s; ÷ host, ÷ own way {text}")
    print(json.dumps(figures))


if __name__ == "__main__":
    assert mpiio_ext.interposed()
    main()
