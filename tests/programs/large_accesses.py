"""Accesses beyond 2^31: ``large_accesses.py FILE RESULT-FOLDER CASE``; what each rank saw goes into a JSON file."""

from __future__ import annotations

import json
import pathlib
import sys

import mpiio_ext.stats

import numpy as np  # isort: skip
from mpi4py import MPI

GIB = 1 << 30
COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.rank, COMM.size


def pattern(rank: int, length: int, salt: int = 0) -> np.ndarray:
    """Return bytes that depend on rank and place."""
    return ((np.arange(length, dtype=np.int64) * 31 + rank * 7 + salt) % 251).astype("u1")


def open_file(path: str, **hints: object) -> MPI.File:
    """Open with two aggregators and the exchange in use."""
    info = MPI.Info.Create()
    for name, value in ({"mpiox_exchange": "two_phase", "cb_nodes": 2} | hints).items():
        info.Set(name, str(value))
    return MPI.File.Open(COMM, path, MPI.MODE_RDWR | MPI.MODE_CREATE, info)


def round_trip(fh: MPI.File, at: int, length: int) -> bool:
    """Write and read back through the present view."""
    data = pattern(RANK, length)
    status = MPI.Status()
    fh.Write_at_all(at, data, status)
    written = status.Get_count(MPI.BYTE)
    fh.Sync()
    COMM.Barrier()
    back = np.zeros_like(data)
    fh.Read_at_all(at, back, status)
    return bool(written == length and status.Get_count(MPI.BYTE) == length and np.array_equal(back, data))


def offsets(path: str) -> dict[str, object]:
    """Explicit offsets at 5 GiB without a view; individual pointers there too."""
    fh = open_file(path)
    length = 100_000
    result: dict[str, object] = {"equal": round_trip(fh, 5 * GIB + RANK * length, length)}
    fh.Seek(6 * GIB + RANK * 1000)
    fh.Write_all(pattern(RANK, 1000))
    result["position"] = fh.Get_position() == 6 * GIB + RANK * 1000 + 1000
    result["size"] = fh.Get_size() == 6 * GIB + SIZE * 1000
    result["taken"] = mpiio_ext.stats.of(fh).collective_writes == 2
    fh.Close()
    COMM.Barrier()
    with open(path, "rb") as file:  # another way to the bytes than MPI
        file.seek(5 * GIB + RANK * length)
        result["bytes"] = file.read(length) == pattern(RANK, length).tobytes()
        file.seek(6 * GIB + RANK * 1000)
        result["more bytes"] = file.read(1000) == pattern(RANK, 1000).tobytes()
    return result


def vector(path: str, buffer_bytes: int = 1 << 20) -> dict[str, object]:
    """A view of few pieces that are GiB apart (extent of the vector > 2^31), shifted by 4 GiB."""
    pieces, block, stride = 5, 4096, GIB - 12_345
    fh = open_file(path, cb_buffer_size=buffer_bytes)
    piece = MPI.BYTE.Create_hvector(pieces, block, stride).Commit()
    start = 4 * GIB + RANK * block
    fh.Set_view(start, MPI.BYTE, piece)
    result: dict[str, object] = {"equal": round_trip(fh, 0, pieces * block)}
    result["taken"] = mpiio_ext.stats.of(fh).collective_writes == 1
    fh.Close()
    COMM.Barrier()
    data = pattern(RANK, pieces * block)
    with open(path, "rb") as file:
        good = True
        for i in range(pieces):
            file.seek(start + i * stride)
            good = good and file.read(block) == data[i * block : (i + 1) * block].tobytes()
    result["bytes"] = good
    result["sparse"] = pathlib.Path(path).stat().st_blocks * 512 < 64 << 20
    return result


def vector_small_buffers(path: str) -> dict[str, object]:
    """The same with 16 times as many windows."""
    return vector(path, 1 << 16)


def subarray(path: str) -> dict[str, object]:
    """A corner of a 3 x 40,000 x 40,000 array of doubles (38 GiB)."""
    fh = open_file(path)
    kind = MPI.DOUBLE.Create_subarray([3, 40_000, 40_000], [1, 2, 500], [2, 39_990 + 2 * RANK, 39_500]).Commit()
    fh.Set_view(0, MPI.DOUBLE, kind)
    data = np.arange(1000.0) + RANK * 10_000
    fh.Write_at_all(0, data)
    back = np.zeros_like(data)
    fh.Read_at_all(0, back)
    result: dict[str, object] = {"equal": bool(np.array_equal(data, back))}
    result["taken"] = mpiio_ext.stats.of(fh).collective_writes == 1
    fh.Close()
    COMM.Barrier()
    with open(path, "rb") as file:
        file.seek(8 * ((2 * 40_000 + 39_990 + 2 * RANK + 1) * 40_000 + 39_500))
        result["bytes"] = file.read(4000) == data[500:].tobytes()
    return result


def memory(path: str) -> dict[str, object]:
    """A memory type whose extent is beyond 2^31: two blocks 3 GiB apart in a mapping that is mostly untouched."""
    import mmap

    area = mmap.mmap(-1, 3 * GIB + 8192, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
    block = 4096
    whole = np.frombuffer(area, np.uint8)
    data = pattern(RANK, 2 * block)
    whole[:block], whole[3 * GIB : 3 * GIB + block] = data[:block], data[block:]
    kind = MPI.BYTE.Create_hindexed([block, block], [0, 3 * GIB]).Commit()
    fh = open_file(path)
    fh.Write_at_all(RANK * 2 * block, [area, 1, kind])
    whole[:block] = 0
    whole[3 * GIB : 3 * GIB + block] = 0
    fh.Read_at_all(RANK * 2 * block, [area, 1, kind])
    same = np.array_equal(whole[:block], data[:block]) and np.array_equal(
        whole[3 * GIB : 3 * GIB + block], data[block:]
    )
    result: dict[str, object] = {"equal": bool(same), "taken": mpiio_ext.stats.of(fh).collective_writes == 1}
    fh.Close()
    COMM.Barrier()
    with open(path, "rb") as file:
        file.seek(RANK * 2 * block)
        result["bytes"] = file.read(2 * block) == data.tobytes()
    return result


def volume(path: str) -> dict[str, object]:
    """One call that really moves more than 2^31 bytes on a rank: 65,537 pieces of 32 KiB, ranks in turns."""
    count, block = 65_537, 32_768
    fh = open_file(path, cb_buffer_size=1 << 20)
    fh.Set_view(
        RANK * block, MPI.BYTE, MPI.BYTE.Create_vector(1, block, block).Create_resized(0, SIZE * block).Commit()
    )
    data = np.empty((count, block), np.uint8)
    data[:] = (np.arange(block, dtype=np.int64) % 251).astype("u1")
    data[:, 0] = np.arange(count) % 256
    data[:, 1] = RANK
    kind = MPI.BYTE.Create_contiguous(block).Commit()
    status = MPI.Status()
    fh.Write_at_all(0, [data, count, kind], status)
    result: dict[str, object] = {
        "written": status.Get_count(kind) == count,
        "size": fh.Get_size() == SIZE * count * block,
    }
    result["taken"] = mpiio_ext.stats.of(fh).collective_writes == 1
    copy = data[::4096].copy()
    data[:] = 0
    fh.Read_at_all(0, [data, count, kind], status)
    result["read"] = status.Get_count(kind) == count
    result["equal"] = bool(np.array_equal(data[::4096], copy) and np.array_equal(data[:, 0], np.arange(count) % 256))
    fh.Close()
    return result


def counts(path: str) -> dict[str, object]:
    """A count beyond 2^31 in one call of the large-count interface: most of it is an empty type's worth of nothing."""
    fh = open_file(path)
    empty = MPI.BYTE.Create_contiguous(0).Commit()
    fh.Write_at_all(0, [np.zeros(1, "u1"), 3 * GIB, empty])
    result: dict[str, object] = {"size": fh.Get_size() == 0, "equal": round_trip(fh, RANK * 10, 10)}
    fh.Close()
    return result


CASES = {case.__name__: case for case in (offsets, vector, vector_small_buffers, subarray, memory, volume, counts)}


def main() -> None:
    """Run the case, write down what this rank saw, and remove the file."""
    try:
        found = CASES[sys.argv[3]](sys.argv[1])
    except BaseException:
        pathlib.Path(sys.argv[1]).unlink(missing_ok=True)
        raise
    COMM.Barrier()
    pathlib.Path(sys.argv[1]).unlink(missing_ok=True)
    pathlib.Path(sys.argv[2], f"{RANK}.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
