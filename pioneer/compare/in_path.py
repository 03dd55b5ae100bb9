"""Whether a path stands for its own trace: which bytes every rank touches by its plan, and by the trace.

Problem.   A path has one representative of each subgroup. What ranks do that differ by no rule, at random offsets for
           one, is not in it; a replay makes it as a rule would have it. This must be known before the replay, for any
           number of ranks.
Algorithm. The plan of each rank, with as many ranks as were traced, has its offsets and views: their extents against
           those of the trace (`touched`). Files have the classes that they have by the trace. Of many ranks some are
           looked at, evenly spaced, so that a million operations are planned at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mpiio_ext.pioneer.compare.touched import Accesses, Touched, accesses_of, owners_of, touched_by_ranks
from mpiio_ext.pioneer.engine.opens import with_opens
from mpiio_ext.pioneer.engine.plan import make_plan
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.path.short import moved_in_extra

#: Operations that are planned at most.
_MOST_PLANNED = 1_000_000


class _AsTheyAre:
    """Files have the places that the program gave them: nothing is done there."""

    def of(self, name: str) -> Path:
        """Return the place of a file."""
        return Path(name)


def _chosen(tables: Mapping[int, pa.Table], operations: int) -> list[int]:
    """Return ranks, evenly spaced, whose plans have so many operations at most."""
    ranks = sorted(tables)
    count = max(2, min(len(ranks), _MOST_PLANNED // max(1, operations)))
    return [ranks[place] for place in np.unique(np.linspace(0, len(ranks) - 1, count).astype(int)).tolist()]


def touched_by_plans(path: WorkloadPath, owners: Mapping[str, str], ranks: list[int]) -> Touched:
    """Return the bytes that ranks touch when as many as were traced carry out a path.

    Parameters
    ----------
    path : what is carried out.
    owners : classes of files by their names.
    ranks : whose bytes are returned.
    """
    whole = with_opens(path)
    extents: dict[tuple[str, int, bool], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    layers, names = whole.words("layer"), whole.words("operation")
    moves, writes = accesses_of(layers.tolist(), names.tolist())
    moved = moved_in_extra(whole.table["extra"])  # as `touched` counts reads that end early
    for rank in ranks:
        plan = make_plan(path, rank, path.info.traced, _AsTheyAre())
        classes = [owners.get(name) for name in plan.paths]
        files = np.array([*classes, None], object)[plan.file]  # -1 is the last one
        views = {row: plan.in_force[number] for row, number in enumerate(plan.through.tolist()) if number >= 0}
        size = np.where(moved[plan.ids] >= 0, moved[plan.ids], plan.size)
        own = Accesses(files, plan.stream, size, moves[plan.ids], writes[plan.ids], views)
        extents |= {(owner, rank, write): found for (owner, write), found in own.extents().items()}
    return Touched(members=tuple(ranks), extents=extents)


def differences_in_path(path: WorkloadPath, tables: Mapping[int, pa.Table]) -> dict[str, float]:
    """Return for each class of files how much ranks touch by their plans otherwise than in the trace (`touched`).

    Parameters
    ----------
    path : of the trace.
    tables : its sanitized operations by rank (`traces.tables_of`).
    """
    ranks = _chosen(tables, path.table.num_rows)
    owners = owners_of(tables)
    original, planned = touched_by_ranks(tables), touched_by_plans(path, owners, ranks)
    return {owner: original.distance(planned, owner) for owner in sorted(original.classes | planned.classes)}
