"""Field and particle output of an implicit particle-in-cell simulation, written with parallel h5py.

The pattern of iPic3D: per cycle a group with the electric and magnetic field on the nodes of a grid that is cut into
3-D blocks, charge densities of two species in a chunked dataset, and particles of two species as one-dimensional
datasets to which the ranks contribute different numbers. Everything is transferred collectively, closed, and read
back, each rank reading what its neighbour wrote.

Usage: ``ipic3d.py FILE N CYCLES``: N^3 nodes.
"""

from __future__ import annotations

import sys

import h5py
import numpy as np
from mpi4py import MPI
from watch import Watch

FIELDS = ("Bx", "By", "Bz", "Ex", "Ey", "Ez")
PARTICLES = ("x", "y", "z", "u", "v", "w", "q")
SPECIES = 2

comm = MPI.COMM_WORLD


def block(rank: int, n: int) -> tuple[slice, ...]:
    """Return the nodes of a rank in a 3-D decomposition."""
    grid = MPI.Compute_dims(comm.size, 3)
    place = np.unravel_index(rank, grid)
    return tuple(slice(n * int(at) // parts, n * (int(at) + 1) // parts) for at, parts in zip(place, grid, strict=True))


def particles(rank: int, n: int) -> tuple[slice, int]:
    """Return the particles of a rank and the number of all; no two neighbours have the same number."""
    counts = [n * n * n // comm.size * (4 + r % 3) // 4 for r in range(comm.size)]
    return slice(sum(counts[:rank]), sum(counts[: rank + 1])), sum(counts)


def field(name: str, cycle: int, part: tuple[slice, ...], n: int) -> np.ndarray:
    """Return the values of a field on a block of nodes, which tell name, cycle and node."""
    z, y, x = np.ogrid[part]
    return ((z * n + y) * n + x + 0.125 * FIELDS.index(name) + 1e9 * cycle).astype("f8")


def density(species: int, cycle: int, part: tuple[slice, ...], n: int) -> np.ndarray:
    """Return the charge density of a species on a block."""
    z, y, x = np.ogrid[part]
    return (((z * n + y) * n + x) % 65_521 + 70_000 * species + 200_000 * cycle).astype("f4")


def coordinate(name: str, species: int, cycle: int, part: slice) -> np.ndarray:
    """Return one property of a range of particles."""
    number = np.arange(part.start, part.stop, dtype="f8")
    return number + 0.125 * PARTICLES.index(name) + 1e8 * species + 1e9 * cycle


def output(rank: int, cycle: int, n: int) -> list[tuple[str, tuple[slice | int, ...], np.ndarray]]:
    """Return what a rank has to write in a cycle: datasets, selections and values."""
    nodes = block(rank, n)
    mine, _ = particles(rank, n)
    parts: list[tuple[str, tuple[slice | int, ...], np.ndarray]] = []
    for name in FIELDS:
        parts.append((f"fields/{name}", nodes, field(name, cycle, nodes, n)))
    for species in range(SPECIES):
        parts.append(("moments/rho", (species, *nodes), density(species, cycle, nodes, n)))
        for name in PARTICLES:
            parts.append((f"particles/species_{species}/{name}", (mine,), coordinate(name, species, cycle, mine)))
    return parts


def create(group: h5py.Group, n: int) -> None:
    """Make the datasets of a cycle."""
    _, total = particles(0, n)
    chunk = max(1, n // 2)
    for name in FIELDS:
        group.create_dataset(f"fields/{name}", (n, n, n), "f8")
    group.create_dataset("moments/rho", (SPECIES, n, n, n), "f4", chunks=(1, chunk, chunk, chunk))
    for species in range(SPECIES):
        for name in PARTICLES:
            group.create_dataset(f"particles/species_{species}/{name}", (total,), "f8")


def write(path: str, n: int, cycles: int) -> Watch:
    """Write all cycles, collectively."""
    watch = Watch("ipic3d")
    with watch:
        file = h5py.File(path, "w", driver="mpio", comm=comm)
    for cycle in range(cycles):
        parts = output(comm.rank, cycle, n)
        with watch:
            group = file.create_group(f"cycle_{cycle}")
            create(group, n)
            for name, selection, values in parts:
                dataset = group[name]
                with dataset.collective:
                    dataset[selection] = values
    with watch:
        file.close()
    return watch


def read(path: str, n: int, cycles: int) -> tuple[Watch, int]:
    """Read what the neighbour wrote; return the number of wrong values, too."""
    watch, wrong = Watch("ipic3d"), 0
    with watch:
        file = h5py.File(path, "r", driver="mpio", comm=comm)
    for cycle in range(cycles):
        expected = output((comm.rank + 1) % comm.size, cycle, n)
        found = [(name, selection, np.full_like(values, -1)) for name, selection, values in expected]
        with watch:
            for name, selection, values in found:
                dataset = file[f"cycle_{cycle}/{name}"]
                with dataset.collective:
                    dataset.read_direct(values, selection)  # indexing takes a short cut that reads independently
        wrong += sum(np.count_nonzero(a[2] != b[2]) for a, b in zip(found, expected, strict=True))
    with watch:
        file.close()
    return watch, wrong


def main() -> None:
    """Write, read, verify."""
    path, n, cycles = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    _, total = particles(0, n)
    size_bytes = cycles * ((8 * len(FIELDS) + 4 * SPECIES) * n**3 + SPECIES * len(PARTICLES) * 8 * total)
    write(path, n, cycles).say("write", size_bytes)
    watch, wrong = read(path, n, cycles)
    watch.say("read", size_bytes)
    if wrong:
        print(f"ipic3d: rank {comm.rank}: {wrong} wrong values", file=sys.stderr)
    if comm.allreduce(wrong):
        raise SystemExit(1)
    if comm.rank == 0:
        print("ipic3d verified")


if __name__ == "__main__":
    main()
