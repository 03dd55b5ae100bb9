"""Random collective accesses between (pretended) nodes, every byte checked: ``exchange_random.py FOLDER SEED CASES``.

What is drawn: who owns which bytes (nobody: holes), in irregular or regular pieces, views whose lists are too long for
every node to know them, hints that make many small windows or few large ones, files that end before a read does, reads
of the same bytes by many ranks. Each case is written in one or several collectives, compared with the file byte for
byte, and read in another decomposition into memory that must keep what no byte is read into.
"""

from __future__ import annotations

import random
import sys

import mpiio_ext  # isort: split

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
NOBODY = -1


def pieces_of(owned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], owned.astype(np.int8), [0]))))
    return edges[::2], edges[1::2] - edges[::2]


def view_of(owned: np.ndarray, unit: int) -> MPI.Datatype:
    """Return a file type of the units marked."""
    offsets, lengths = pieces_of(owned)
    if len(offsets) == 0:
        return MPI.BYTE.Create_contiguous(0).Commit()
    return MPI.BYTE.Create_hindexed((lengths * unit).tolist(), (offsets * unit).tolist()).Commit()


def owners(draw: random.Random, units: int) -> np.ndarray:
    """Return the owner of every unit of a file."""
    size = WORLD.size
    numbers = np.random.default_rng(draw.getrandbits(32))
    way = draw.choice(["irregular", "cyclic", "turns", "turns", "blocks", "one", "lumps"])
    if way == "irregular":
        found = numbers.integers(NOBODY if draw.random() < 0.5 else 0, size, units)
    elif way == "cyclic":
        found = np.arange(units) // draw.choice([1, 3, 64]) % size
    elif way == "turns":  # large pieces: there are windows that hold data of one rank
        found = np.arange(units) // max(1, units // (size * draw.choice([2, 5, 13]))) % (size + draw.choice([0, 0, 1]))
        found[found == size] = NOBODY
    elif way == "blocks":
        found = np.minimum(np.arange(units) * size // units, size - 1)
    elif way == "one":
        found = np.full(units, draw.randrange(size))
    else:
        found = np.repeat(numbers.integers(NOBODY, size, units), numbers.integers(1, 50, units))[:units]
    if draw.random() < 0.3:
        found[draw.randrange(units) :] = draw.choice([NOBODY, 0])
    return found


def read_sets(draw: random.Random, units: int) -> np.ndarray:
    """Return which units this rank reads; every rank draws the same numbers."""
    way = draw.choice(["all", "same", "others", "halo", "some"])
    numbers = np.random.default_rng(draw.getrandbits(32))
    if way == "all":
        return np.ones(units, bool)
    if way == "same":
        return numbers.random(units) < 0.3
    if way == "others":
        return owners(draw, units) == (WORLD.rank + 1) % WORLD.size
    if way == "halo":
        at = np.arange(units) * WORLD.size // units
        return (at == WORLD.rank) | (np.arange(units) < units // 7)
    return numbers.random((WORLD.size, units))[WORLD.rank] < draw.choice([0.02, 0.5, 0.97])


def hints(draw: random.Random) -> dict[str, str]:
    """Return hints that lead through the exchange."""
    found = {"mpiox_exchange": "two_phase", "cb_buffer_size": str(draw.choice([512, 4096, 65536, 1 << 20]))}
    if draw.random() < 0.5:
        found["cb_nodes"] = str(draw.randint(1, WORLD.size))
    if draw.random() < 0.7:
        found["mpiox_partition"] = draw.choice(["even", "aligned", "static_cyclic", "group_cyclic", "transpose"])
        found["striping_unit"] = str(draw.choice([512, 1000, 4096, 65536]))
        found["striping_factor"] = str(draw.choice([1, 2, 4, 7]))
    if draw.random() < 0.2:
        found["mpiox_io_rank"] = "owner"
    return found


def access(draw: random.Random, count: int, move: object) -> None:
    """Call move(first, last) for this rank's `count` units, in one collective or in several."""
    cuts = draw.choice([1, 1, 3])
    for part in range(cuts):
        move(count * part // cuts, count * (part + 1) // cuts)


def case(path: str, draw: random.Random) -> None:
    """Write, compare, read."""
    unit, units = draw.choice([1, 4, 8, 8, 100]), draw.choice([50, 3000, 40000])
    owner = owners(draw, units)
    content = np.random.default_rng(draw.getrandbits(32)).integers(1, 255, (units, unit), np.uint8)
    info = MPI.Info.Create(hints(draw))
    file = MPI.File.Open(WORLD, path, MPI.MODE_CREATE | MPI.MODE_RDWR, info)
    mine = owner == WORLD.rank
    data = np.ascontiguousarray(content[mine])
    start = draw.choice([0, 8, 12345])
    file.Set_view(start, MPI.BYTE, view_of(mine, unit))
    access(draw, len(data), lambda first, last: file.Write_at_all(first * unit, data[first:last]))
    file.Sync()
    WORLD.Barrier()
    held = np.fromfile(path, np.uint8)[start:]
    expected = np.where((owner == NOBODY)[:, None], 0, content).astype(np.uint8).ravel()
    written = np.flatnonzero(owner != NOBODY)
    end = (written[-1] + 1) * unit if len(written) else 0
    assert len(held) == end, (len(held), end)
    wrong = np.flatnonzero(held != expected[:end])
    assert len(wrong) == 0, f"{len(wrong)} bytes of the file are wrong, the first at {start + wrong[0]}"
    wanted = read_sets(draw, units)
    found = np.full((int(wanted.sum()), unit), 255, np.uint8)
    file.Set_view(start, MPI.BYTE, view_of(wanted, unit))
    access(draw, len(found), lambda first, last: file.Read_at_all(first * unit, found[first:last]))
    expected[end:] = 255
    right = expected.reshape(units, unit)[wanted]
    assert np.array_equal(found, right), f"{np.count_nonzero(found != right)} bytes read are wrong"
    assert mpiio_ext.stats.of(file).native_calls == 0
    file.Close()


def main() -> None:
    """Go through the cases."""
    folder, seed, cases = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for number in range(seed, seed + cases):
        try:
            case(f"{folder}/{number}", random.Random(number))
        except Exception as error:
            error.add_note(f"seed {number}") if hasattr(error, "add_note") else None
            print(f"rank {WORLD.rank}: seed {number}: {error}", file=sys.stderr, flush=True)
            raise
        if WORLD.rank == 0:
            MPI.File.Delete(f"{folder}/{number}")
    if WORLD.rank == 0:
        print("verified", flush=True)


if __name__ == "__main__":
    main()
