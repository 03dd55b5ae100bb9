"""The joint structure of a workload: the input of Algorithm 1, with dependent values drawn together.

Problem.   Drawn independently, the characteristics of Table III give the right frequencies in the wrong places: no two
           programs open ten files in turn for the same reason. Where one characteristic decides another, they must be
           drawn as one.
Content.   kinds       an operation with its layer, its groups and its arguments
           shapes      the kinds of a unit in order, and the distances of its bursts: D, IRG, RT1, AM of a session
           accesses    offsets and sizes of a unit, for each shape: OFF, SIZE, SEQ
           archetypes  files that are used alike: OS; files that renames and links join are used as one; their tracks,
                       the shapes of their units in order: OT; the distances of successive units: ISG
           times       slack and execution times of an operation by its kind, the archetype and shape it belongs to, and
                       those of the operation before it: ST
Guarantee. Drawn as often as they were counted, all characteristics are what they were.

Source: He, Du, Narasimhamurthy, "PIONEER", sections V-C and V-D, Table III, Algorithm 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import parsed
from mpiio_ext.pioneer.operations import SECOND_NAMES
from mpiio_ext.pioneer.path.document import PathInfo
from mpiio_ext.pioneer.path.workload_path import PER_GROUP, WorkloadPath
from mpiio_ext.pioneer.synthesis.units import Unit, find_units

#: In place of an offset, a size or a time that is not known.
UNKNOWN = -1
#: Slices of the samples of one context, and samples of each at least.
_MOST_SLICES, _IN_SLICE = 16, 16


class Kind(NamedTuple):
    """An operation without its drawn values.

    Attributes
    ----------
    operation, layer, groups, extra : as in the path.
    named : it names a file.
    """

    operation: str
    layer: str
    groups: int
    extra: str | None
    named: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """Units that are alike but for offsets, sizes and times.

    Attributes
    ----------
    session : it is an open session.
    kinds : index of the kind of each operation.
    places : global sequence ID of each operation, from that of the first: 0, 1, 2, 5, ...
    first, last : indices of the first and last operation of the session.
    accesses : each int64 of shape (2 * groups, operations): offsets of all groups, then sizes; `UNKNOWN` where null.
    counts : how many units have each of the accesses.
    """

    session: bool
    kinds: NDArray[np.int64]
    places: NDArray[np.int64]
    first: int
    last: int
    accesses: Sequence[NDArray[np.int64]]
    counts: NDArray[np.int64]

    @property
    def bursts(self) -> NDArray[np.int64]:
        """Index of the first operation of each burst."""
        return np.flatnonzero(np.diff(self.places, prepend=-2) != 1)


class Step(NamedTuple):
    """A unit in the track of a file.

    Attributes
    ----------
    shape : number of its shape.
    overlaps : it begins before the unit before has ended; its distance counts from that one's beginning.
    member : which of the files that are linked it is on; 0: the first one.
    """

    shape: int
    overlaps: bool = False
    member: int = 0


#: Two successive steps of a track.
Pair = tuple[Step, Step]
#: Class and names of files that are linked with others.
Linked = tuple[str, tuple[str | None, ...]]


@dataclass(frozen=True, slots=True)
class Archetype:
    """Files that are used alike.

    Attributes
    ----------
    owner : class of the files.
    names : templates; (None,) of operations that name no file.
    track : units of each file, in the order in which they begin.
    first : how often the first unit's session begins at each global sequence ID.
    gaps : by two successive steps, how often each distance of the second's session: from the last operation of the
        first's session to its first one, or from first to first where they overlap.
    linked : owner and names of further files that are renamed to these, or the other way: as many names of each as
        `names`. Their units are in the same track, so that nothing is opened before it is renamed to.
    """

    owner: str
    names: tuple[str | None, ...]
    track: tuple[Step, ...]
    first: Counter[int]
    gaps: Mapping[Pair, Counter[int]]
    linked: tuple[Linked, ...] = ()

    @property
    def files(self) -> int:
        """Number of files of different names in it."""
        return 1 + len(self.linked)


@dataclass(frozen=True, slots=True)
class Times:
    """Slack and execution times of operations by their kind and the kind before.

    Attributes
    ----------
    samples : by (role, kind, role before, kind before), in the order of the path: int64 of shape (2 * groups,
        samples), ns; slack times of all groups, then execution times; `UNKNOWN` where null. A role is an archetype and
        a shape, as `role_of` numbers them; -1 before the first operation.
    """

    samples: Mapping[tuple[int, int, int, int], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Model:
    """The structure of a workload path.

    Attributes
    ----------
    kinds, shapes, archetypes, times : see the file's head.
    info : of the path.
    operations : of the path.
    """

    kinds: tuple[Kind, ...]
    shapes: tuple[Shape, ...]
    archetypes: tuple[Archetype, ...]
    times: Times
    info: PathInfo
    operations: int

    @property
    def groups(self) -> int:
        """Groups of the path, the root's included."""
        return len(self.info.representatives)


# ---- columns ---------------------------------------------------------------------------------------------------------


def _codes(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str | None]]:
    """Return a column as numbers, and the value of each number."""
    column = column.combine_chunks()
    plain = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(plain.type) and plain.null_count == 0:
        return plain.indices.to_numpy().astype(np.int64), plain.dictionary.to_pylist()
    encoded = plain.cast(pa.string()).dictionary_encode("encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _joined(columns: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return one number for the values of several columns, from 0, and the first row that has each number."""
    found = np.zeros(columns[0].size, np.int64)
    firsts = np.zeros(1, np.int64)
    for column in columns:
        values, codes = np.unique(column, return_inverse=True)
        _, firsts, found = np.unique(found * values.size + codes, return_index=True, return_inverse=True)
    return found.astype(np.int64), firsts


def _kinds_of(path: WorkloadPath) -> tuple[NDArray[np.int64], tuple[Kind, ...]]:
    """Return the number of the kind of each row, and the kinds."""
    if path.table.num_rows == 0:
        return np.zeros(0, np.int64), ()
    operation, operations = _codes(path.table["operation"])
    layer, layers = _codes(path.table["layer"])
    extra, extras = _codes(path.table["extra"])
    groups = path.table["groups"].to_numpy()
    named = pc.is_valid(path.table["file"]).to_numpy()
    inverse, firsts = _joined([operation, layer, groups, extra, named.astype(np.int64)])
    kinds = tuple(
        Kind(
            str(operations[operation[row]]),
            str(layers[layer[row]]),
            int(groups[row]),
            extras[extra[row]],
            bool(named[row]),
        )
        for row in firsts
    )
    return inverse, kinds


def _numbers(path: WorkloadPath, names: Sequence[str]) -> NDArray[np.int64]:
    """Return columns of all groups as rows of one array, `UNKNOWN` for null."""
    columns = [
        pc.fill_null(path.table[f"{name}_{group}"], UNKNOWN).to_numpy()
        for name in names
        for group in range(path.group_count)
    ]
    return np.stack(columns).astype(np.int64)


def time_slices(count: int) -> list[slice]:
    """Return in which slices of so many samples times are mixed: a slow phase of the program stays in its place."""
    ends = np.linspace(0, count, 1 + min(_MOST_SLICES, max(1, count // _IN_SLICE))).astype(int).tolist()
    return [slice(*pair) for pair in pairwise(ends)]


def role_of(archetype: int | NDArray[np.int64], shape: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for an archetype and a shape."""
    return np.asarray(archetype, np.int64) << 32 | np.asarray(shape, np.int64)


def contexts(
    roles: NDArray[np.int64], kinds: NDArray[np.int64]
) -> list[tuple[tuple[int, int, int, int], NDArray[np.int64]]]:
    """Return the operations by their own role and kind, and those of the operation before, in order.

    Returns
    -------
    For each (role, kind, role before, kind before) that there is, the indices of its operations, ascending.
    """
    if not kinds.size:
        return []
    number, firsts = _joined([roles, kinds])
    keys = number * (firsts.size + 1) + np.concatenate([[0], number[:-1] + 1])
    order = np.argsort(keys, kind="stable")
    known = [(-1, -1), *zip(roles[firsts].tolist(), kinds[firsts].tolist(), strict=True)]
    return [
        ((*known[number[rows[0]] + 1], *known[number[rows[0] - 1] + 1 if rows[0] else 0]), rows)
        for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    ]


def _times_of(path: WorkloadPath, kinds: NDArray[np.int64], roles: NDArray[np.int64]) -> Times:
    numbers = _numbers(path, PER_GROUP[:1:-1])
    return Times({key: numbers[:, rows] for key, rows in contexts(roles, kinds)})


# ---- shapes ----------------------------------------------------------------------------------------------------------


class _Shapes:
    """Shapes under construction."""

    def __init__(self, kinds: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        self._kinds, self._numbers = kinds, numbers
        self._known: dict[tuple[object, ...], int] = {}
        self._accesses: list[dict[bytes, list[int]]] = []
        self._units: list[Unit] = []

    def of(self, unit: Unit) -> int:
        """Return the number of the shape of a unit; count its access."""
        places = unit.rows - unit.rows[0]
        kinds = self._kinds[unit.rows]
        key = (unit.session, unit.first, unit.last, unit.owner, kinds.tobytes(), places.tobytes())
        number = self._known.setdefault(key, len(self._known))
        if number == len(self._units):
            self._units.append(unit)
            self._accesses.append({})
        content = np.ascontiguousarray(self._numbers[:, unit.rows]).tobytes()
        counted = self._accesses[number].setdefault(content, [0])
        counted[0] += 1
        return number

    def all(self) -> tuple[Shape, ...]:
        """Return the shapes in the order of their numbers."""
        found = []
        for unit, accesses in zip(self._units, self._accesses, strict=True):
            arrays = [np.frombuffer(content, np.int64).reshape(self._numbers.shape[0], -1) for content in accesses]
            counts = np.array([counted[0] for counted in accesses.values()], np.int64)
            found.append(
                Shape(
                    unit.session,
                    self._kinds[unit.rows],
                    unit.rows - unit.rows[0],
                    unit.first,
                    unit.last,
                    arrays,
                    counts,
                )
            )
        return tuple(found)


# ---- archetypes ------------------------------------------------------------------------------------------------------


#: A file: its name, and its class.
_File = tuple[str | None, str]


def _families(path: WorkloadPath) -> dict[str, str]:
    """Return one name for the files that renames and links join; other files are left out."""
    if path.table.num_rows == 0:
        return {}
    texts, files, found = path.words("extra"), path.words("file"), dict[str, str]()

    def first_of(name: str) -> str:
        while (above := found.setdefault(name, name)) != name:
            name = above
        return name

    numbers, words = _codes(path.table["operation"])
    naming = np.isin(numbers, [number for number, word in enumerate(words) if word in SECOND_NAMES])
    for row in np.flatnonzero(naming).tolist():
        second = parsed(texts[row]).get("file2")
        if files[row] is not None and isinstance(second, str):
            found[first_of(second)] = first_of(files[row])
    return {name: first_of(name) for name in found}


def _track_of(units: Sequence[Unit], shapes: _Shapes, members: Sequence[_File]) -> tuple[Step, ...]:
    """Return the track of the units of one file, or of several that are linked."""
    numbers = [shapes.of(unit) for unit in units]
    overlaps = [False, *(after.rows[0] < before.rows[-1] for before, after in pairwise(units))]
    return tuple(
        Step(number, bool(over), members.index((unit.file, unit.owner)))
        for number, over, unit in zip(numbers, overlaps, units, strict=True)
    )


@dataclass(slots=True)
class _Counted:
    """An archetype under construction."""

    number: int
    names: list[tuple[str | None, ...]] = field(default_factory=list)
    first: Counter[int] = field(default_factory=Counter)
    gaps: dict[Pair, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, units: Sequence[Unit], track: Sequence[Step], members: Sequence[_File]) -> None:
        """Count the distances of the units of one file, or of several that are linked."""
        self.names.append(tuple(name for name, _ in members))
        self.first[units[0].begin] += 1
        for (before, after), pair in zip(pairwise(units), pairwise(track), strict=True):
            self.gaps[pair][after.begin - (before.begin if pair[1].overlaps else before.end)] += 1


def _archetypes_of(
    units: Sequence[Unit], shapes: _Shapes, roles: NDArray[np.int64], families: Mapping[str, str]
) -> tuple[Archetype, ...]:
    """Return the archetypes; note the role of each operation."""
    by_file: dict[tuple[str | None, str], list[Unit]] = defaultdict(list)
    for unit in units:
        family = families.get(unit.file or "")
        by_file[(unit.file, unit.owner) if family is None else (family, "")].append(unit)
    found: dict[tuple[tuple[str, ...], tuple[Step, ...]], _Counted] = {}
    for several in by_file.values():
        members = list(dict.fromkeys((unit.file, unit.owner) for unit in several))
        track = _track_of(several, shapes, members)
        counted = found.setdefault((tuple(owner for _, owner in members), track), _Counted(len(found)))
        counted.add(several, track, members)
        for unit, step in zip(several, track, strict=True):
            roles[unit.rows] = role_of(counted.number, step.shape)
    archetypes = []
    for (owners, track), item in found.items():
        first, *others = zip(owners, zip(*item.names, strict=True), strict=True)
        archetypes.append(Archetype(*first, track, item.first, dict(item.gaps), tuple(others)))
    return tuple(archetypes)


def model_of(path: WorkloadPath) -> Model:
    """Return the structure of a workload path."""
    kinds, known = _kinds_of(path)
    shapes = _Shapes(kinds, _numbers(path, PER_GROUP[:2]))
    roles = np.zeros(kinds.size, np.int64)
    archetypes = _archetypes_of(find_units(path), shapes, roles, _families(path))
    times = _times_of(path, kinds, roles)
    return Model(known, shapes.all(), archetypes, times, path.info, path.table.num_rows)
