"""The properties of a traced program that tuning needs: its time, its kinds of access, a part of its operations."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.common.children import run

if TYPE_CHECKING:
    from mpiio_ext.pioneer.path import WorkloadPath
    from mpiio_ext.tune.space import Usage

#: What a replay loads before its first call, but for MPI itself.
_LOADED = "import mpi4py, mpiio_ext.pioneer.engine, mpiio_ext.pioneer.path"
#: MPI_Init and the plan take about this part of the modules' time again.
_WITH_MPI = 1.5
_MOST_START_S = 600.0


def start_seconds(ranks: int) -> float:
    """Return about how long it takes until so many ranks are ready, measured by one process without MPI."""
    elapsed_s = run([sys.executable, "-c", _LOADED], limit_s=_MOST_START_S).elapsed_s
    return _WITH_MPI * elapsed_s * max(1.0, ranks / len(os.sched_getaffinity(0)))


def seconds_of(path: WorkloadPath) -> tuple[float, float]:
    """Return the seconds from the first call to the last, and those inside calls, of the rank that takes longest."""
    whole, inside = [0.0], [0.0]
    for group in range(path.group_count):
        columns = (path.table[f"{name}_{group}"].to_numpy().astype(float) for name in ("duration", "slack"))
        inside_s, pauses_s = (float(np.nansum(column)) / 1e9 for column in columns)
        whole.append(inside_s + pauses_s)
        inside.append(inside_s)
    return max(whole), max(inside)


def usage_of(path: WorkloadPath) -> Usage:
    """Return the kinds of access that a path has."""
    from mpiio_ext.pioneer.operations import DATA, operation_of
    from mpiio_ext.tune.space import Usage

    names = set(zip(path.table["layer"].to_pylist(), path.table["operation"].to_pylist(), strict=True))
    data = [kind for kind in (operation_of(*name) for name in names if name[0] == "mpiio") if kind.writes is not None]
    own = [kind for kind in data if not kind.collective and kind.role in DATA]
    return Usage(
        ranks=path.info.ranks,
        collective=any(kind.collective for kind in data),
        independent=bool(own),
        written=any(kind.writes for kind in data),
    )


def can_be_shortened(path: WorkloadPath) -> bool:
    """Whether each data access of a path is complete by itself, so that no other call ends it."""
    from mpiio_ext.pioneer.operations import Role, operation_of

    names = set(zip(path.table["layer"].to_pylist(), path.table["operation"].to_pylist(), strict=True))
    kinds = [operation_of(*name) for name in names]
    return not any(kind.nonblocking or kind.role in (Role.BEGIN, Role.END) for kind in kinds)


def shortened(path: WorkloadPath, share: float) -> WorkloadPath:
    """Return a path with the first part of the data accesses of each open session, the same ones on all ranks.

    Parameters
    ----------
    share : of them, in (0, 1]; at least one stays.
    """
    import pyarrow as pa

    from mpiio_ext.pioneer.operations import DATA, operation_of
    from mpiio_ext.pioneer.path import WorkloadPath

    pairs = zip(path.table["layer"].to_pylist(), path.table["operation"].to_pylist(), strict=True)
    moves = [operation_of(*pair).role in DATA for pair in pairs]
    places = list(zip(path.table["file"].to_pylist(), path.table["session"].to_pylist(), strict=True))
    total, seen, keep = dict[object, int](), dict[object, int](), list[bool]()
    for place, is_data in zip(places, moves, strict=True):
        total[place] = total.get(place, 0) + is_data
    for place, is_data in zip(places, moves, strict=True):
        keep.append(not is_data or seen.get(place, 0) < max(1, int(share * total[place])))
        seen[place] = seen.get(place, 0) + is_data
    return WorkloadPath(path.table.filter(pa.array(keep, pa.bool_())), path.info)
