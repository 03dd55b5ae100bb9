"""Filling in a synthetic path: names, kinds, offsets, sizes and times of the operations in their places.

Problem.   What is drawn for each operation by itself must have the frequencies it was counted with, in small paths too.
Algorithm. Draws are stratified. Offsets and sizes are drawn for a unit as a whole, times for an operation by what is
           before it.

Source: He, Du, Narasimhamurthy, "PIONEER", section V-D.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import parsed
from mpiio_ext.pioneer.operations import SECOND_NAMES, operation_of
from mpiio_ext.pioneer.path.document import PathInfo
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from mpiio_ext.pioneer.profile.characterize import NO_FILE
from mpiio_ext.pioneer.synthesis.allocate import Placed, Work
from mpiio_ext.pioneer.synthesis.model import UNKNOWN, Model, Times, contexts, role_of, time_slices
from mpiio_ext.pioneer.synthesis.stratified import stratified


@dataclass(frozen=True, slots=True)
class File:
    """A file of a synthetic path.

    Attributes
    ----------
    name : template; None: no file.
    owner : class.
    copy : number that its name ends with, where it is one more than in what the path is made of; else 0.
    """

    name: str | None
    owner: str
    copy: int = 0


# ---- units -----------------------------------------------------------------------------------------------------------


def _units_of(works: Sequence[Work]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the shape of each unit of all works, and the index of each work's first unit."""
    counts = np.array([len(work.archetype.track) for work in works], np.int64)
    shapes = np.array([step.shape for work in works for step in work.archetype.track], np.int64)
    return shapes, np.cumsum(counts) - counts


def _accesses_of(shapes: NDArray[np.int64], model: Model, random: np.random.Generator) -> NDArray[np.int64]:
    """Return for each unit which of the accesses of its shape it has."""
    chosen = np.zeros(shapes.size, np.int64)
    order = np.argsort(shapes, kind="stable")
    for units in np.split(order, np.flatnonzero(np.diff(shapes[order])) + 1) if order.size else []:
        chosen[units] = stratified(model.shapes[shapes[units[0]]].counts, units.size, random)
    return chosen


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return start, start + 1, ... of each range, joined."""
    total = int(lengths.sum())
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(total)


def _beginnings(lengths: Sequence[int]) -> NDArray[np.int64]:
    found = np.zeros(len(lengths), np.int64)
    np.cumsum(lengths[:-1], out=found[1:])
    return found


class _Source:
    """Kinds and accesses of all shapes, joined, so that bursts are ranges of these arrays."""

    def __init__(self, model: Model) -> None:
        shapes = model.shapes
        self.kinds = np.concatenate([shape.kinds for shape in shapes])
        self.kinds_at = _beginnings([shape.kinds.size for shape in shapes])
        self.accesses = np.concatenate([access for shape in shapes for access in shape.accesses], axis=1)
        self.accesses_at = _beginnings([shape.kinds.size for shape in shapes for _ in shape.accesses])
        self.first_access = _beginnings([len(shape.accesses) for shape in shapes])
        bursts = [shape.bursts for shape in shapes]
        self.bursts_at = _beginnings([len(item) for item in bursts])
        self.bursts = np.concatenate(bursts)
        self.lengths = np.concatenate(
            [np.diff(np.append(item, shape.kinds.size)) for item, shape in zip(bursts, shapes, strict=True)]
        )


# ---- times -----------------------------------------------------------------------------------------------------------


_Samples = dict[tuple[int, int], NDArray[np.int64]]


def _grouped(times: Times) -> dict[tuple[int, int], _Samples]:
    """Return the samples of each (role, kind), by the role and the kind before."""
    found: dict[tuple[int, int], _Samples] = defaultdict(dict)
    for (role, kind, role_before, kind_before), samples in times.samples.items():
        found[role, kind][role_before, kind_before] = samples
    return found


def _mixed(samples: NDArray[np.int64], random: np.random.Generator, *, joint: bool) -> NDArray[np.int64]:
    """Return samples in random order, in slices; not joint: each row in an order of its own."""
    parts = [samples[:, part] for part in time_slices(samples.shape[1])]
    if joint:
        return np.concatenate([part[:, random.permutation(part.shape[1])] for part in parts], axis=1)
    return np.concatenate([random.permuted(part, axis=1) for part in parts], axis=1)


def _drawn(samples: NDArray[np.int64], count: int, random: np.random.Generator, *, joint: bool) -> NDArray[np.int64]:
    """Return `count` columns of samples, stratified."""
    ones = np.ones(samples.shape[1], np.int64)
    if joint:
        return samples[:, stratified(ones, count, random)]
    return np.stack([row[stratified(ones, count, random)] for row in np.sort(samples, axis=1)])


def _all_once(
    found: NDArray[np.int64],
    rows: Sequence[tuple[tuple[int, int], NDArray[np.int64]]],
    samples: _Samples,
    random: np.random.Generator,
    *,
    joint: bool,
) -> None:
    """Give each sample to one operation: where it was counted, as far as there is such a place, else to any other."""
    left, empty = [], []
    for before, where in rows:
        own = _mixed(samples[before], random, joint=joint) if before in samples else None
        count = 0 if own is None else min(where.size, own.shape[1])
        chosen = random.permutation(where) if count < where.size else where
        if own is not None:
            found[:, chosen[:count]] = own[:, :count]
            left.append(own[:, count:])
        empty.append(chosen[count:])
    known = {before for before, _ in rows}
    left += [item for before, item in samples.items() if before not in known]
    rest = np.concatenate(empty)
    if rest.size:
        found[:, rest] = _mixed(np.concatenate(left, axis=1), random, joint=joint)


def _times(
    roles: NDArray[np.int64], kinds: NDArray[np.int64], model: Model, random: np.random.Generator, *, joint: bool
) -> NDArray[np.int64]:
    """Return slack and execution times of operations, int64 of shape (2 * groups, operations).

    Where there are as many operations of a role and a kind as there were, every sample is used once.
    """
    found = np.full((2 * model.groups, kinds.size), UNKNOWN, np.int64)
    samples = _grouped(model.times)
    wanted: dict[tuple[int, int], list[tuple[tuple[int, int], NDArray[np.int64]]]] = defaultdict(list)
    for (role, kind, role_before, kind_before), rows in contexts(roles, kinds):
        wanted[role, kind].append(((role_before, kind_before), rows))
    for key, several in wanted.items():
        known = samples.get(key)
        if known is None:
            continue
        if sum(item.shape[1] for item in known.values()) == sum(rows.size for _, rows in several):
            _all_once(found, several, known, random, joint=joint)
            continue
        pooled = np.concatenate(list(known.values()), axis=1)
        for before, rows in several:
            found[:, rows] = _drawn(known.get(before, pooled), rows.size, random, joint=joint)
    return found


# ---- the table -------------------------------------------------------------------------------------------------------


def _words(values: Sequence[str | None], at: NDArray[np.int64]) -> pa.Array:
    """Return text by index, as a dictionary; an index of -1 is null."""
    column = pa.array(values, pa.string()).dictionary_encode()
    indices = pa.array(at, pa.int32(), mask=at < 0)
    if column.null_count or len(column.dictionary) != len(values):
        return column.cast(pa.string()).take(indices).dictionary_encode()
    return pa.DictionaryArray.from_arrays(indices, column.dictionary)


def _extras(model: Model, kinds: NDArray[np.int64], files: Sequence[File], file: NDArray[np.int64]) -> pa.Array:
    """Return the arguments of operations; those with a second name get that of its copy."""
    texts, at = [kind.extra for kind in model.kinds], kinds.copy()
    copies = np.array([item.copy for item in files], np.int64)[file]
    for number, kind in enumerate(model.kinds):
        second = parsed(kind.extra).get("file2") if kind.operation in SECOND_NAMES else None
        if not isinstance(second, str):
            continue
        own = kinds == number
        for copy in np.unique(copies[own & (copies > 0)]).tolist():
            at[own & (copies == copy)] = len(texts)
            texts.append(json.dumps(parsed(kind.extra) | {"file2": f"{second}.{copy}"}, separators=(",", ":")))
    return _words(texts, at).cast(pa.string())


def _table(
    model: Model,
    kinds: NDArray[np.int64],
    files: Sequence[File],
    file: NDArray[np.int64],
    unit: NDArray[np.int64],
    access: NDArray[np.int64],
    times: NDArray[np.int64],
) -> pa.Table:
    named = np.array([kind.named for kind in model.kinds], bool)[kinds]
    inside = [kind.named and operation_of(kind.layer, kind.operation).in_session for kind in model.kinds]
    extras = _extras(model, kinds, files, file)
    file = np.where(named, file, -1)
    owners = [None if item.owner == NO_FILE else item.owner for item in files]
    columns: dict[str, pa.Array] = {
        "id": pa.array(np.arange(kinds.size, dtype=np.int64)),
        "operation": _words([kind.operation for kind in model.kinds], kinds),
        "file": _words([item.name for item in files], file),
        "owner": _words(owners, file),
        "groups": pa.array(np.array([kind.groups for kind in model.kinds], np.int64)[kinds]),
        "session": pa.array(unit, mask=~np.array(inside, bool)[kinds]),
        "layer": _words([kind.layer for kind in model.kinds], kinds),
        "extra": extras,
    }
    groups = model.groups
    for group in range(groups):
        for number, (name, numbers) in enumerate(
            (("offset", access), ("size", access), ("slack", times), ("duration", times))
        ):
            row = numbers[(number % 2) * groups + group]
            columns[f"{name}_{group}"] = pa.array(row, mask=row == UNKNOWN)
    schema = WorkloadPath.schema(groups)
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)


def fill(
    model: Model,
    files: Sequence[File],
    works: Sequence[Work],
    placed: Placed,
    random: np.random.Generator,
    *,
    joint: bool,
    info: PathInfo,
) -> WorkloadPath:
    """Return the path of bursts that have their places.

    Parameters
    ----------
    model : what is drawn from.
    files : of each of the works in turn, its file and those that are linked with it.
    works, placed : what was placed, and where.
    random : for the draws.
    joint : slack and execution times of all groups are drawn as one, else each by itself.
    info : of the new path.
    """
    if not placed.work.size:
        return WorkloadPath(WorkloadPath.schema(model.groups).empty_table(), info)
    source = _Source(model)
    shapes, units_at = _units_of(works)
    accesses = _accesses_of(shapes, model, random)
    unit = units_at[placed.work] + placed.unit
    shape = shapes[unit]
    burst = source.bursts_at[shape] + placed.burst
    lengths, inside = source.lengths[burst], source.bursts[burst]
    kinds = source.kinds[_ranges(source.kinds_at[shape] + inside, lengths)]
    from_access = source.accesses_at[source.first_access[shape] + accesses[unit]]
    access = source.accesses[:, _ranges(from_access + inside, lengths)]
    members = np.array([step.member for work in works for step in work.archetype.track], np.int64)
    first_file = _beginnings([work.archetype.files for work in works])
    file = np.repeat(first_file[placed.work] + members[unit], lengths)
    archetypes = np.array([work.number for work in works], np.int64)
    roles = np.repeat(role_of(archetypes[placed.work], shape), lengths)
    times = _times(roles, kinds, model, random, joint=joint)
    return WorkloadPath(_table(model, kinds, files, file, np.repeat(unit, lengths), access, times), info)
