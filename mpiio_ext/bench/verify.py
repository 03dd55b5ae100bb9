"""Is every byte what the formula says? With plain reads and NumPy, without MPI-IO, HDF5 or the extension.

A file is cut into chunks that are dealt to the ranks; each rank compares its chunks with the pattern, and bytes that
nobody writes with zero. The file of a raw interface must also end exactly after the last written byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpiio_ext.bench.pattern import Bytes, fill_range
from mpiio_ext.bench.workloads.base import Plan, Workload

__all__ = ["FileFaults", "Mismatch", "check_buffer", "check_file"]

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first wrong byte that a rank found.

    Attributes
    ----------
    offset_bytes : in the file, from its very beginning
    expected, found : what should be there and what is, as text
    """

    offset_bytes: int
    expected: str
    found: str

    def __str__(self) -> str:
        return f"at byte {self.offset_bytes}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFaults:
    """The first wrong byte among those that ranks write, and the first that is not zero among the others."""

    data: Mismatch | None = None
    gap: Mismatch | None = None


def _chunk_faults(content: Bytes, workload: Workload, begin: int, end: int, start_bytes: int, salt: int) -> FileFaults:
    """Compare `content`, the bytes of the workload's range [begin, end), shorter when the file ends before."""
    origin = start_bytes + begin
    expected = np.empty(end - begin, np.uint8)
    fill_range(expected, begin)
    expected ^= np.uint8(salt)
    data, gap = None, None
    mask = workload.mask(begin, end)
    if mask is not None:
        expected[~mask] = 0
    differs = content != expected[: content.size]
    if differs.any():
        in_data = np.flatnonzero(differs if mask is None else differs & mask[: content.size])
        in_gap = np.flatnonzero(differs & ~mask[: content.size]) if mask is not None else in_data[:0]
        if in_data.size:
            i = int(in_data[0])
            data = Mismatch(offset_bytes=origin + i, expected=f"0x{expected[i]:02x}", found=f"0x{content[i]:02x}")
        if in_gap.size:
            i = int(in_gap[0])
            wanted = "0x00 (no rank writes this byte)"
            gap = Mismatch(offset_bytes=origin + i, expected=wanted, found=f"0x{content[i]:02x}")
    missing = np.flatnonzero(expected[content.size :])
    if missing.size and data is None:
        i = content.size + int(missing[0])
        data = Mismatch(offset_bytes=origin + i, expected=f"0x{expected[i]:02x}", found="end of file")
    return FileFaults(data=data, gap=gap)


def check_file(
    path: Path, workload: Workload, *, salt: int, start_bytes: int, raw: bool, rank: int, ranks: int
) -> FileFaults:
    """Compare this rank's chunks of the file with the formula and return the first wrong bytes.

    Parameters
    ----------
    path : Path
    workload : Workload
    salt : int
        Of the run that wrote the file.
    start_bytes : int
        Where the workload's byte 0 lies in the file.
    raw : bool
        The file holds the workload's bytes and nothing else, so that its size is checked too.
    rank, ranks : int
        Chunks rank, rank + ranks, … are this caller's.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    extent = workload.extent_bytes
    data, gap = None, None
    with path.open("rb") as file:
        for begin in range(rank * _CHUNK_BYTES, extent, ranks * _CHUNK_BYTES):
            end = min(begin + _CHUNK_BYTES, extent)
            file.seek(start_bytes + begin)
            content = np.frombuffer(file.read(end - begin), np.uint8)
            faults = _chunk_faults(content, workload, begin, end, start_bytes, salt)
            data, gap = data or faults.data, gap or faults.gap
            if data is not None:
                break
    size = path.stat().st_size
    if raw and data is None and size != workload.written_end_bytes:
        data = Mismatch(
            offset_bytes=min(size, workload.written_end_bytes),
            expected=f"a file of {workload.written_end_bytes} bytes",
            found=f"a file of {size} bytes",
        )
    return FileFaults(data=data, gap=gap)


def check_buffer(buffer: Bytes, image: Bytes, plan: Plan, *, salt: int, start_bytes: int) -> Mismatch | None:
    """Compare a buffer after a read with the plan's image, memory between the data included; first wrong byte."""
    for begin in range(0, buffer.size, _CHUNK_BYTES):
        part = buffer[begin : begin + _CHUNK_BYTES]
        expected = image[begin : begin + _CHUNK_BYTES] ^ np.uint8(salt)
        wrong = np.flatnonzero(part != expected)
        if wrong.size == 0:
            continue
        i = int(wrong[0])
        offset = plan.locate(begin + i)
        if offset is None:
            return Mismatch(
                offset_bytes=0,
                expected=f"memory byte {begin + i}, which is no part of the read, to stay 0x{expected[i]:02x}",
                found=f"0x{part[i]:02x}",
            )
        return Mismatch(
            offset_bytes=start_bytes + offset, expected=f"0x{expected[i]:02x}", found=f"0x{part[i]:02x} in memory"
        )
    return None
