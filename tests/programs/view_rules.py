"""Random file types and etypes, some of which MPI forbids, against a list of all their bytes.

    mpirun -n 3 python tests/programs/view_rules.py FILE EXAMPLES

Every rank draws the same types (hypothesis without randomness) and takes its own of them. The oracle knows a type as
the list of its bytes in the order of the data. MPI_File_set_view must fail on all ranks, with ROMIO's error class, when
the type of any rank reaches back, descends or, in a file open for writing, overlaps; the old view then stays. Else
reads return the listed bytes: collective, nonblocking, independent.
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass

import mpiio_ext.stats

# isort: split
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mpi4py import MPI

FILE_BYTES = 1 << 16
DISPLACEMENT = 7


@dataclass(frozen=True)
class Known:
    """A datatype, and what it is: blocks in the order of the data, as (offset, bytes); lower and upper bound."""

    make: tuple[object, ...]
    blocks: tuple[tuple[int, int], ...]
    lb: int
    ub: int

    @property
    def extent(self) -> int:
        return self.ub - self.lb

    @property
    def size(self) -> int:
        return sum(length for _, length in self.blocks)

    @property
    def bytes(self) -> np.ndarray:
        """Return every byte's offset, shape (size,)."""
        return np.concatenate([np.arange(at, at + length) for at, length in self.blocks])

    def datatype(self) -> MPI.Datatype:
        """Return a new datatype, not committed."""
        kind, *rest = self.make
        if kind == "hindexed":
            return MPI.BYTE.Create_hindexed(*rest)
        if kind == "struct":
            children = [known.datatype() for known in rest[2]]
            made = MPI.Datatype.Create_struct(*rest[:2], children)
            for child in children:
                child.Free()
            return made
        child = rest[0].datatype()
        made = getattr(child, f"Create_{kind}")(*rest[1:])
        child.Free()
        return made


def moved(known: Known, at: int) -> list[tuple[int, int]]:
    return [(offset + at, length) for offset, length in known.blocks]


@st.composite
def lists(draw: st.DrawFn) -> Known:
    count = draw(st.integers(1, 5))
    lengths = draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
    places = draw(st.lists(st.integers(-3, 40), min_size=count, max_size=count))
    if draw(st.integers(0, 3)):  # what MPI allows as often as what it forbids
        places = sorted(place + 3 for place in places)
    if draw(st.booleans()):
        places = [sum(lengths[:i]) + place for i, place in enumerate(sorted(abs(place) for place in places))]
    blocks = tuple(zip(places, lengths, strict=True))
    return Known(("hindexed", lengths, places), blocks, min(places), max(at + length for at, length in blocks))


@st.composite
def vectors(draw: st.DrawFn, children: st.SearchStrategy[Known]) -> Known:
    child, count, length = draw(children), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    stride = draw(st.integers(-1 if child.extent > 1 else 0, 3))  # -1 byte is no stride to Open MPI 4.1
    starts = [(i * stride + j) * child.extent for i in range(count) for j in range(length)]
    blocks = tuple(block for start in starts for block in moved(child, start))
    low, high = min(starts) + child.lb, max(starts) + child.ub
    return Known(("vector", child, count, length, stride), blocks, low, high)


@st.composite
def resized(draw: st.DrawFn, children: st.SearchStrategy[Known]) -> Known:
    child = draw(children)
    extent = draw(st.integers(1, 2 * child.extent + 4))
    return Known(("resized", child, 0, extent), child.blocks, 0, extent)


@st.composite
def subarrays(draw: st.DrawFn, children: st.SearchStrategy[Known]) -> Known:
    child = draw(children)
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    parts = [draw(st.integers(1, size)) for size in sizes]
    starts = [draw(st.integers(0, size - part)) for size, part in zip(sizes, parts, strict=True)]
    order = draw(st.sampled_from([MPI.ORDER_C, MPI.ORDER_F]))
    whole = np.arange(math.prod(sizes)).reshape(sizes if order == MPI.ORDER_C else sizes[::-1])
    ranges = [slice(start, start + part) for start, part in zip(starts, parts, strict=True)]
    elements = whole[tuple(ranges if order == MPI.ORDER_C else ranges[::-1])].ravel().tolist()
    blocks = tuple(block for element in elements for block in moved(child, element * child.extent))
    return Known(("subarray", child, sizes, parts, starts, order), blocks, 0, whole.size * child.extent)


@st.composite
def darrays(draw: st.DrawFn, children: st.SearchStrategy[Known]) -> Known:
    child, size, ranks, piece = draw(children), *(draw(st.integers(1, most)) for most in (6, 3, 3))
    kind = draw(st.sampled_from([MPI.DISTRIBUTE_BLOCK, MPI.DISTRIBUTE_CYCLIC]))
    if kind == MPI.DISTRIBUTE_BLOCK:
        piece = -(-size // ranks)
    rank = draw(st.integers(0, min(ranks, -(-size // piece)) - 1))  # one that has something
    elements = [element for element in range(size) if element // piece % ranks == rank]
    blocks = tuple(block for element in elements for block in moved(child, element * child.extent))
    make = ("darray", child, ranks, rank, [size], [kind], [piece], [ranks])
    return Known(make, blocks, 0, size * child.extent)


@st.composite
def structs(draw: st.DrawFn, children: st.SearchStrategy[Known]) -> Known:
    members = draw(st.lists(children, min_size=1, max_size=3))
    counts = [draw(st.integers(1, 2)) for _ in members]
    places, end = [], 0
    for member, count in zip(members, counts, strict=True):
        places.append(end - member.lb + draw(st.integers(-2, 4) if draw(st.integers(0, 7)) == 0 else st.integers(0, 4)))
        end = places[-1] + (count - 1) * member.extent + max(member.ub, max(at + n for at, n in member.blocks))
    every = [
        (member, place + index * member.extent)
        for member, count, place in zip(members, counts, places, strict=True)
        for index in range(count)
    ]
    blocks = tuple(block for member, at in every for block in moved(member, at))
    low, high = min(at + member.lb for member, at in every), max(at + member.ub for member, at in every)
    struct = Known(("struct", counts, places, members), blocks, low, high)
    # By the standard the bounds of a resized member are the struct's; MPICH takes those of all. Hence its own.
    return Known(("resized", struct, low, high - low), blocks, low, high)


KINDS = (vectors, resized, subarrays, darrays, structs)
TYPES = st.recursive(lists(), lambda children: st.one_of(*(kind(children) for kind in KINDS)), max_leaves=4)


def merged(known: Known) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    for at, length in known.blocks:
        if pieces and sum(pieces[-1]) == at:
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + length)
        else:
            pieces.append((at, length))
    return pieces


def descends(pieces: list[tuple[int, int]] | tuple[tuple[int, int], ...]) -> bool:
    return any(after[0] < before[0] for before, after in itertools.pairwise(pieces))


def verdict(known: Known, *, writable: bool) -> bool | None:
    """Return whether MPI allows the type; None where that depends on which neighbours count as one piece."""
    places = known.bytes
    if places.min() < 0 or descends(merged(known)):
        return False
    if writable:
        return len(np.unique(places)) == len(places)
    return None if descends(known.blocks) else True


def all_verdicts(types: list[Known], *, writable: bool) -> bool | None:
    found = [verdict(known, writable=writable) for known in types]
    return False if False in found else None if None in found else True


class Check:
    """One file, its bytes, and the views that are tried on it."""

    def __init__(self, comm: MPI.Comm, path: str) -> None:
        self.comm, self.path = comm, path
        self.bytes = np.random.default_rng(1).integers(0, 256, FILE_BYTES, "u1")
        self.tried = {True: 0, False: 0}
        file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)
        if comm.rank == 0:
            file.Write_at(0, self.bytes)
        file.Close()

    def reads(self, file: MPI.File, known: Known, tiles: int, *, unit: int) -> None:
        """Read `tiles` tiles in every way; unit: bytes of the etype."""
        places = np.concatenate([DISPLACEMENT + known.bytes + tile * known.extent for tile in range(tiles)])
        places = places[: np.searchsorted(np.maximum.accumulate(places), FILE_BYTES)]
        expected, room = self.bytes[places], np.zeros(tiles * known.size, "u1")
        status = MPI.Status()
        file.Read_at_all(0, room, status)
        assert status.Get_count(MPI.BYTE) == len(expected), (status.Get_count(MPI.BYTE), len(expected), known)
        assert (room[: len(expected)] == expected).all(), (known, room, expected)
        for atomic in (False, True):
            file.Set_atomicity(atomic)
            room[:] = 0
            file.Iread_at_all(0, room).Wait()
            assert (room[: len(expected)] == expected).all(), (atomic, known)
        start = known.size if unit > 1 or self.comm.rank % 2 else max(0, known.size - 1)
        part = np.zeros(max(0, len(expected) - start) // unit * unit, "u1")
        file.Read_at(start // unit, part)
        assert (part == expected[start : start + len(part)]).all(), known
        if start < len(places):
            assert file.Get_byte_offset(start // unit) == places[start], known

    def view(self, types: list[Known], *, writable: bool, own_etype: bool) -> None:
        mine = types[self.comm.rank % len(types)]
        used = [types[rank % len(types)] for rank in range(self.comm.size)]
        mode = MPI.MODE_RDWR if writable else MPI.MODE_RDONLY
        file = MPI.File.Open(self.comm, self.path, mode)
        before = MPI.BYTE.Create_vector(3, 2, 5).Commit()
        file.Set_view(1, MPI.BYTE, before)
        filetype = mine.datatype().Commit()
        error = 0
        try:
            file.Set_view(DISPLACEMENT, filetype if own_etype else MPI.BYTE, filetype)
        except MPI.Exception as problem:
            error = problem.Get_error_class()
        allowed = all_verdicts(used, writable=writable)
        errors = self.comm.allgather(error)
        assert len(set(errors)) == 1, errors
        assert error in (0, MPI.ERR_IO), error
        assert allowed is None or allowed == (error == 0), (allowed, error, used, writable)
        self.tried[error == 0] += 1
        if error == 0:
            self.reads(file, mine, 3, unit=mine.size if own_etype else 1)
            assert mpiio_ext.stats.of(file).native_calls == 0
        else:
            room = np.zeros(6, "u1")
            file.Read_at_all(0, room)
            assert (room == self.bytes[[1, 2, 6, 7, 11, 12]]).all()
        filetype.Free()
        before.Free()
        file.Close()


def main(path: str, examples: int) -> None:
    check = Check(MPI.COMM_WORLD, path)
    quiet = settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @quiet
    @given(st.lists(TYPES, min_size=1, max_size=2), st.booleans(), st.booleans())
    def every_view(types: list[Known], writable: bool, own_etype: bool) -> None:
        check.view(types, writable=writable, own_etype=own_etype)

    every_view()
    assert min(check.tried.values()) >= examples // 10, check.tried  # neither verdict is rare


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
