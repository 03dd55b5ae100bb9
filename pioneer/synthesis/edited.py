"""A profile whose numbers were edited, and the shapes that it was counted with.

Problem.   Who doubles the slack times of a profile means the slack times. Drawn independently, all else would change
           with them: which sizes which calls have, who renames what. Its shapes still hold.
Algorithm. The shapes have a digest of each characteristic of each class (`document.digests_of`), which show what was
edited. Where that is ST, SIZE or OFF the path is made of the shapes. Then the values of the class, in the
           order of their sizes, are replaced by those of the edited distribution in the order of theirs: the largest
           remains the largest. Equal values are put in a random order first. OS and OT of a class multiply its files,
           and the sessions of each.
Limits.    The values are those of the lowest group that makes an operation; other groups with another value get what
           stands at its quantile. SIZE without OFF moves no offset. Any other characteristic that was edited says that
           the structure is another one (`from_profile`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import DATA
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile import Distribution, Profile
from mpiio_ext.pioneer.profile.characterize import NO_FILE
from mpiio_ext.pioneer.profile.sessions import OUTSIDE, find_sessions, flags_of
from mpiio_ext.pioneer.synthesis.document import digests_of
from mpiio_ext.pioneer.synthesis.stratified import stratified

#: Characteristics that may be edited without another structure: ST, SIZE, OFF, OS, OT.
FOLLOWED = frozenset({"slack", "size", "offset", "files", "opened"})
_VALUES = ("size", "offset", "slack")

#: Factors of the files of a class, and of the sessions of each.
ClassScale = tuple[float, float]


def edited(profile: Profile) -> set[tuple[str, str]] | None:
    """Return the edited characteristics, by class and name; None: the profile has no shapes, or they lack digests."""
    known = profile.shapes.get("characteristics") if isinstance(profile.shapes, Mapping) else None
    own = digests_of(profile)
    if not isinstance(known, Mapping) or set(known) != set(own):
        return None
    if not all(isinstance(known[owner], Mapping) for owner in own):
        return None
    return {
        (owner, name)
        for owner, digests in own.items()
        for name, digest in digests.items()
        if known[owner].get(name) != digest
    }


def keeps_shapes(profile: Profile) -> bool:
    """Return whether the edits leave the structure of the shapes as it is."""
    found = edited(profile)
    return found is not None and all(name in FOLLOWED for _, name in found)


def class_scales(before: Profile, profile: Profile, names: set[tuple[str, str]]) -> dict[str, ClassScale]:
    """Return the factors of the files of classes, and of their sessions.

    Parameters
    ----------
    before : characteristics of the shapes.
    profile : as it was edited.
    names : what was edited.
    """

    def mean(found: Distribution) -> float:
        return float(found.multiset().mean()) if found.total else 1.0

    scales = {}
    for owner in {owner for owner, name in names if name in ("files", "opened")}:
        old, new = before.classes[owner], profile.classes[owner]
        scales[owner] = (
            new.files / max(1, old.files) if (owner, "files") in names else 1.0,
            mean(new.opened) / mean(old.opened) if (owner, "opened") in names else 1.0,
        )
    return scales


# ---- values ----------------------------------------------------------------------------------------------------------


def _lowest(path: WorkloadPath, name: str) -> NDArray[np.int64]:
    """Return the values of the lowest group of each operation, -1 without one."""
    found = pc.fill_null(pc.coalesce(*(path.table[f"{name}_{group}"] for group in range(path.group_count))), -1)
    return np.asarray(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found)


def _replaced(old: NDArray[np.int64], wanted: Distribution, random: np.random.Generator) -> NDArray[np.int64]:
    """Return values of another distribution in the order of the old ones."""
    order = np.lexsort((random.random(old.size), old))
    found = np.empty_like(old)
    found[order] = np.sort(wanted.values[stratified(wanted.counts, old.size, random)])
    return found


def _at_quantiles(values: NDArray[np.int64], old: NDArray[np.int64], new: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the value in `new` at the quantile of each value in `old`; values beyond the ends stay as far away."""
    old, new = np.sort(old), np.sort(new)
    middle = (np.searchsorted(old, values, "left") + np.searchsorted(old, values, "right")) // 2
    at = np.clip(middle, 0, old.size - 1)
    beyond = np.where(values > old[-1], values - old[-1], np.where(values < old[0], values - old[0], 0))
    found: NDArray[np.int64] = np.maximum(0, new[at] + beyond)
    return found


def _of_class(
    path: WorkloadPath, name: str, rows: NDArray[np.int64], wanted: Distribution, random: np.random.Generator
) -> WorkloadPath:
    """Return a path in which some operations have values of another distribution."""
    lowest = _lowest(path, name)
    rows = rows[lowest[rows] >= 0]
    if not rows.size or not wanted.values.size:
        return path
    old = lowest[rows]
    new, table = _replaced(old, wanted, random), path.table
    for group in range(path.group_count):
        column = f"{name}_{group}"
        own = pc.fill_null(table[column], -1).to_numpy().copy()
        mine = own[rows]
        there = np.where(mine == old, new, _at_quantiles(mine, old, new))
        own[rows] = np.where(mine < 0, mine, there)
        place = table.schema.get_field_index(column)
        table = table.set_column(place, table.schema.field(place), pa.array(own, mask=own < 0))
    return WorkloadPath(table, path.info)


def with_values(
    path: WorkloadPath, profile: Profile, names: set[tuple[str, str]], random: np.random.Generator
) -> WorkloadPath:
    """Return a path with the slack times, sizes and offsets that were edited.

    Parameters
    ----------
    path : made of the shapes.
    profile : as it was edited.
    names : what was edited.
    random : for values that are equal.
    """
    changed = sorted((owner, name) for owner, name in names if name in _VALUES)
    if not changed:
        return path
    owners = path.words("owner")
    owners[pc.is_null(path.table["owner"]).to_numpy()] = NO_FILE
    data = flags_of(path, *DATA) & (find_sessions(path).of != OUTSIDE)
    for owner, name in changed:
        mine = (owners == owner) & (data if name in ("size", "offset") else True)
        wanted: Distribution = getattr(profile.classes[owner], name)
        path = _of_class(path, name, np.flatnonzero(mine), wanted, random)
    return path
