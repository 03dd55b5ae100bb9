"""Operations that a replay would leave out of a path as it stands: for people who write paths by hand.

Problem.   A path keeps operations that it does not know, since traces have such, and a replay leaves them out. In a
           path that was written by hand they are typing errors, and a data operation without a size moves nothing.
Content.   `unmade` gives a line for each kind of thing that is not made, or would be refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from mpiio_ext.common.near import near_names
from mpiio_ext.pioneer.access import parsed
from mpiio_ext.pioneer.engine.coverage import LEFT_OUT, engine_number
from mpiio_ext.pioneer.engine.places import leave_out, without_place
from mpiio_ext.pioneer.operations import CATALOG, DATA, SECOND_NAMES, Role, operation_of
from mpiio_ext.pioneer.path import Template, WorkloadPath

_MOST = 10  # names in all


def _unknown(path: WorkloadPath) -> Iterator[str]:
    """Yield a line for each operation that the engine does not make, by its own table, with the most similar one.

    The replay reports those with a reason of their own (`LEFT_OUT`).
    """
    pairs = zip(path.words("layer").tolist(), path.words("operation").tolist(), strict=True)
    for (layer, name), count in sorted(Counter(pairs).items()):
        if engine_number(layer, name) is not None or name in LEFT_OUT:
            continue
        if (layer, name) in CATALOG:
            yield f"{count:,} {name} ({layer}): the engine does not know it: a replay leaves it out"
            continue
        layers = sorted(other for other, known in CATALOG if known == name)
        near = near_names(name, [known for other, known in CATALOG if other == layer])
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
        yield (
            f"{int(lacking.sum()):,} data operations have no size and move nothing: {', '.join(names[:_MOST])}; "
            f"the first one is operation {ids[np.flatnonzero(lacking)[0]]}"
        )


def _without_names(path: WorkloadPath) -> Iterator[str]:
    """Yield a line where operations lack the name, or the second name, of a file: a replay leaves them out."""
    files, extras, ids = path.words("file"), path.words("extra"), path.table["id"].to_numpy()
    nameless, alone = list[int](), list[int]()
    for at, (layer, name) in enumerate(zip(path.words("layer"), path.words("operation"), strict=True)):
        kind = operation_of(layer, name)
        if name in LEFT_OUT or (layer, name) not in CATALOG:
            continue
        if files[at] is None and (kind.in_session or kind.role is Role.META):
            nameless.append(at)
        elif name in SECOND_NAMES and not isinstance(parsed(extras[at]).get("file2"), str):
            alone.append(at)
    for rows, what in ((nameless, "name no file"), (alone, 'have no second name ("file2" in extra)')):
        if rows:
            names = ", ".join(sorted({path.words("operation")[at] for at in rows})[:_MOST])
            yield (
                f"{len(rows):,} operations {what}: {names}; the first one is operation {ids[rows[0]]}: a replay "
                "leaves them out"
            )


def _is_refused(file: str) -> bool:
    """Return whether a file of a path has no place; a name that is no template is refused for that (`refused`)."""
    try:
        return bool(without_place([Template(file).name(0)]))
    except ValueError:
        return False


def refused_files(path: WorkloadPath) -> list[str]:
    """Return the files of a path, by their names in it, that have no place below the folder of a replay."""
    texts = pc.unique(path.table["extra"].cast("string")).to_pylist()
    seconds = [parsed(text).get("file2") for text in texts if text and '"file2"' in text]
    files = {file for file in (*path.words("file").tolist(), *seconds) if isinstance(file, str)}
    return sorted(filter(_is_refused, files))


def _places(path: WorkloadPath) -> Iterator[str]:
    """Yield a line for each file that a replay refuses."""
    for name in refused_files(path):
        yield (
            f"a replay refuses the path: {name!r} has no place below its folder; a path is made without it by "
            f"{leave_out([name])}"
        )


def unmade(path: WorkloadPath) -> list[str]:
    """Return the operations that a replay would leave out or refuse, a line each; empty: there are none."""
    return [*_unknown(path), *_without_size(path), *_without_names(path), *_places(path)]
