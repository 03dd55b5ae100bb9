"""Sizes and offsets that a tracer could not record: a comparison leaves them out.

Problem.   ltrace prints how many elements of a derived type a call moves, and not how many bytes. The path has no size
           then, the engine makes the call without data, for the other ranks wait for it, and the trace of the replay
           says 0 bytes: a size that the program never had.
Algorithm. Of each operation of which the path lacks a size anywhere, sizes of 0 are left out on both sides: in what is
           expected, and in what was traced again.
           DFTracer records no offset of an access at the file pointer, and a replay's trace has all offsets. Of a
           class of files where one side has the offsets of another share of the accesses than the other, no metric
           of offsets is judged.
Guarantee. Sizes that are known are compared, those of the same operation included, unless they are 0.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.engine.coverage import STAND_INS
from mpiio_ext.pioneer.engine.opens import AT_OFFSETS
from mpiio_ext.pioneer.operations import DATA, Role
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile.sessions import flags_of


def _lacking(path: WorkloadPath) -> NDArray[np.bool_]:
    """Return which accesses have no size in a group that makes them."""
    moves, groups = flags_of(path, *DATA, Role.BEGIN), path.table["groups"].to_numpy()
    found = np.zeros(moves.size, np.bool_)
    for group in range(path.group_count):
        nothing = path.table[f"size_{group}"].is_null().to_numpy()
        found |= moves & (groups >> group & 1 == 1) & nothing
    return found


def offsets_known(path: WorkloadPath) -> dict[str, float]:
    """Return of each class of files the share of the accesses whose offset is known, in all groups."""
    moves, groups, owners = flags_of(path, *DATA), path.table["groups"].to_numpy(), path.words("owner")
    known, every = Counter[str](), Counter[str]()
    for group in range(path.group_count):
        rows = moves & (groups >> group & 1 == 1)
        recorded = rows & path.table[f"offset_{group}"].is_valid().to_numpy()
        every.update(owners[rows].tolist())
        known.update(owners[recorded].tolist())
    return {owner: known[owner] / count for owner, count in every.items() if owner is not None}


def files_of_unknown_size(path: WorkloadPath) -> set[str]:
    """Return the files that are written by accesses of unknown size."""
    rows = _lacking(path) & flags_of(path, Role.WRITE, Role.BEGIN)
    return {file for file in path.words("file")[rows].tolist() if file is not None}


def unknown_sizes(path: WorkloadPath) -> Counter[str]:
    """Return the number of accesses of unknown size, by operation."""
    return Counter(path.words("operation")[_lacking(path)].tolist())


def without_unknown_sizes(path: WorkloadPath, of: WorkloadPath) -> WorkloadPath:
    """Return a path without the sizes of 0 that an engine made of unknown sizes.

    Parameters
    ----------
    path : the path without these sizes.
    of : the path of the original's trace.
    """
    names = set(unknown_sizes(of))
    names |= {other[name] for other in (STAND_INS, AT_OFFSETS) for name in names if name in other}
    if not names:
        return path
    table = path.table
    rows = pc.is_in(table["operation"].cast(pa.string()), pa.array(sorted(names), pa.string()))
    for group in range(path.group_count):
        place = table.schema.get_field_index(f"size_{group}")
        zero = pc.and_(rows, pc.fill_null(pc.equal(table[f"size_{group}"], 0), False))
        kept = pc.if_else(zero, pa.scalar(None, pa.int64()), table[f"size_{group}"])
        table = table.set_column(place, table.schema.field(place), kept)
    return WorkloadPath(table, path.info)
