"""What a replay would not make of a path as it stands: for people who write paths by hand.

Problem.   A path keeps operations that it does not know, since traces have such, and a replay leaves them out. In a
           path that was written by hand they are typing errors, and a data operation without a size moves nothing.
Content.   `unmade` gives a line for each kind of thing that is not made, or would be refused.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from mpiio_ext.pioneer.engine.coverage import LEFT_OUT
from mpiio_ext.pioneer.engine.places import PlaceError, Places
from mpiio_ext.pioneer.operations import CATALOG, DATA, operation_of
from mpiio_ext.pioneer.path import Template, WorkloadPath

__all__ = ["unmade"]

_NOWHERE = Path("/replay")
_MOST = 10  # names in all


def _unknown(path: WorkloadPath) -> Iterator[str]:
    """Yield a line for each operation that is in no catalogue; with the one that it looks like."""
    pairs = zip(path.words("layer").tolist(), path.words("operation").tolist(), strict=True)
    for (layer, name), count in sorted(Counter(pairs).items()):
        if (layer, name) in CATALOG or name in LEFT_OUT:
            continue
        layers = sorted(other for other, known in CATALOG if known == name)
        near = difflib.get_close_matches(name, [known for other, known in CATALOG if other == layer], n=1,
                                         cutoff=0.75)  # fmt: skip
        hint = f"; it is of the layer {layers[0]}" if layers else f"; {near[0]} is known" if near else ""
        yield f"{count:,} {name} ({layer}) is no operation that is known{hint}: a replay leaves it out"


def _without_size(path: WorkloadPath) -> Iterator[str]:
    """Yield a line where data operations have no size in a group that makes them."""
    kinds = [operation_of(*pair) for pair in zip(path.words("layer"), path.words("operation"), strict=True)]
    moves = np.array([kind.role in DATA for kind in kinds], bool)
    groups, lacking = path.table["groups"].to_numpy(), np.zeros(len(kinds), bool)
    for group in range(path.group_count):
        absent = pc.is_null(path.table[f"size_{group}"]).to_numpy()
        lacking |= moves & absent & (groups >> group & 1 == 1)
    if lacking.any():
        names = sorted({kinds[row].name for row in np.flatnonzero(lacking)})
        ids = path.table["id"].to_numpy()
        yield (f"{int(lacking.sum()):,} data operations have no size and move nothing: {', '.join(names[:_MOST])}; "
               f"the first one is operation {ids[np.flatnonzero(lacking)[0]]}")  # fmt: skip


def _places(path: WorkloadPath) -> Iterator[str]:
    """Yield a line for each file that a replay refuses."""
    places = Places(_NOWHERE)
    for name in sorted({file for file in path.words("file").tolist() if file is not None}):
        try:
            places.of(Template(name).name(0))
        except PlaceError as error:
            yield f"a replay refuses the path: {error}"


def unmade(path: WorkloadPath) -> list[str]:
    """Return what a replay would leave out or refuse, a line each; empty: nothing of these kinds."""
    return [*_unknown(path), *_without_size(path), *_places(path)]
