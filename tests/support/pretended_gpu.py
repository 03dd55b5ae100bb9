"""A pretended GPU for tests (tests/programs/pretended_gpu.c): arrays are put into its memory and got back."""

from __future__ import annotations

import ctypes
import enum
import functools
import os
import pathlib
from typing import Any

import numpy as np
import numpy.typing as npt

#: Names the driver's library to the processes that a test launches.
VARIABLE = "PRETENDED_GPU"
_SOURCE = pathlib.Path(__file__).resolve().parents[1] / "programs" / "pretended_gpu.c"
Bytes = npt.NDArray[np.uint8]


class Kind(enum.Enum):
    """How memory is allocated: by which function of the driver, and whether that has a third argument."""

    DEVICE = ("cuMemAlloc_v2", False)
    POOL = ("cuMemAllocAsync", True)
    MANAGED = ("cuMemAllocManaged", True)
    PINNED = ("cuMemAllocHost_v2", False)


class Count(enum.IntEnum):
    """What the driver counts; bytes but for the copies."""

    REGISTERED, MOST_REGISTERED, COPIES, COPIED, MOST_UNDER_WAY = range(5)


class Driver(enum.Enum):
    """Whose driver is pretended: its library, whose name begins as the real one's, and an option of the compiler."""

    CUDA = ("libcuda.so.1", "-UPRETENDED_HIP")
    HIP = ("libamdhip64.so.6", "-DPRETENDED_HIP")
    LEVEL_ZERO = ("libze_loader.so.1", "-UPRETENDED_HIP")  #: none of its functions are used


@functools.cache
def library(driver: Driver = Driver.CUDA) -> str:
    """Return the driver's library, compiled."""
    from support import cbuild  # it imports pytest and hypothesis: 0.13 s of each rank that only uses the driver

    command = [cbuild.compiler(), "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-g1", "-shared", "-fPIC"]
    name, option = driver.value
    return str(cbuild.compile_c([*command, option, str(_SOURCE), "-pthread"], name))


class Gpu:
    """The driver, loaded into this process."""

    def __init__(self, path: str = "") -> None:
        self.driver: Any = ctypes.CDLL(path or os.environ[VARIABLE])
        self.driver.pretended_gpu_count.restype = ctypes.c_int64

    def count(self, what: Count) -> int:
        """Return one of the counts."""
        return int(self.driver.pretended_gpu_count(int(what)))

    def allocate(self, nbytes: int, kind: Kind = Kind.DEVICE) -> int:
        """Return the address of so much memory."""
        address, (name, more) = ctypes.c_size_t(), kind.value
        last = [None] if more else []
        _check(getattr(self.driver, name)(ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1)), *last))
        return address.value

    def free(self, address: int) -> None:
        """Free memory, by its address."""
        _check(self.driver.cuMemFree_v2(ctypes.c_size_t(address)))

    def put(self, address: int, data: Bytes) -> None:
        """Copy bytes to memory of the GPU."""
        if data.nbytes:
            pointer = data.ctypes.data_as(ctypes.c_void_p)
            _check(self.driver.cuMemcpyHtoD_v2(ctypes.c_ulonglong(address), pointer, ctypes.c_size_t(data.nbytes)))

    def get(self, address: int, nbytes: int) -> Bytes:
        """Return bytes of the GPU's memory."""
        data = np.empty(nbytes, np.uint8)
        if nbytes:
            pointer = data.ctypes.data_as(ctypes.c_void_p)
            _check(self.driver.cuMemcpyDtoH_v2(pointer, ctypes.c_ulonglong(address), ctypes.c_size_t(nbytes)))
        return data

    def place(self, data: Bytes, kind: Kind = Kind.DEVICE) -> int:
        """Return the address of new memory that has these bytes."""
        address = self.allocate(data.nbytes, kind)
        self.put(address, data)
        return address


def _check(result: int) -> None:
    if result:
        raise RuntimeError(f"the pretended driver returned {result}")
