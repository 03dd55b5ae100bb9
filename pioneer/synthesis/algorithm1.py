"""Algorithm 1 of the paper: a workload path from the characteristics alone, each drawn from its own distribution.

Problem.   A profile that a person has written, or another tool, has no structure beyond Table III.
Algorithm. For each class and file, and each of its open sessions: D, SEQ and AM; the ID of the open from ISG; those of
           the other operations from IRG; their types from RT1 as AM allows; offsets and sizes from OFF, SEQ and SIZE.
           IDs are wishes at first. Operations of one session at successive IDs stay together; these runs are sorted by
           their wishes, what is outside of sessions (RT2) is spread over the holes between them, and then IDs are
           given in order: nothing collides, and no hole is left.
Guarantee. All draws are stratified (`fill.stratified`). Hard dependencies hold: an open first, a close last, halves of
           split collectives and mappings in pairs, waits behind what they end, and nothing is removed before the last
           close of its file.

Source: He, Du, Narasimhamurthy, "PIONEER", section V-D, Algorithm 1, Figure 4.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import CATALOG, DATA, Operation, Role
from mpiio_ext.pioneer.path import OWNERS, WorkloadPath
from mpiio_ext.pioneer.path.workload_path import PathInfo
from mpiio_ext.pioneer.profile import ClassProfile, Distribution, Profile
from mpiio_ext.pioneer.profile.characterize import NO_FILE, SCALE
from mpiio_ext.pioneer.profile.extended import parse_extended
from mpiio_ext.pioneer.synthesis.scale import Scale
from mpiio_ext.pioneer.synthesis.stratified import stratified

__all__ = ["from_profile"]

_BY_NAME = {operation.name: operation for operation in CATALOG.values()}
_OPENS = {"posix": ("open", "close"), "directory": ("opendir", "closedir"),
          "stdio": ("fopen", "fclose"), "mpiio": ("MPI_File_open", "MPI_File_close")}
_SEEKS = {"posix": "lseek", "stdio": "fseek", "mpiio": "MPI_File_seek"}
_NAMES = {"root": "root.{}", "shared": "shared.{}", "private": "private.{{rank}}.{}", "child": "child.{}"}
_OF_DIRECTORIES = frozenset({"readdir", "getdents"})
#: What must not happen to a file that is to be opened again.
_REMOVING = frozenset({"unlink", "unlinkat", "remove", "rename", "renameat", "rmdir", "truncate", "MPI_File_delete"})
_MAKING = frozenset({"mkdir", "mkdirat", "link", "symlink"})


@dataclass(slots=True)
class _Row:
    """An operation of the path under construction."""

    operation: Operation
    file: str | None
    owner: str
    offset: int = -1
    size: int = -1


@dataclass(slots=True)
class _Run:
    """Operations that stand together.

    Attributes
    ----------
    wish : ID that the first one would have.
    rows : the operations.
    """

    wish: int
    rows: list[_Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Step:
    """An entry of RT1: an operation with what hangs on it.

    Attributes
    ----------
    operations : the operation; with the second half of a split collective, or the munmap of an mmap.
    seek, wait : it has a seek before it, a wait behind it.
    """

    operations: tuple[Operation, ...]
    seek: bool
    wait: bool

    @property
    def members(self) -> int:
        """Operations of the session that it is."""
        return len(self.operations) + self.seek


def _steps_of(inside: Mapping[str, int]) -> Iterator[tuple[_Step, int]]:
    """Yield the steps of RT1 and their frequencies; what cannot stand by itself is part of another one."""
    for name, count in inside.items():
        operation, seek, wait = parse_extended(_BY_NAME, name)
        if operation is None:
            operation = Operation(name=name, layer="posix", role=Role.CONTROL)
        if operation.role in (Role.END, Role.UNMAP):
            continue
        if operation.role is Role.BEGIN:
            yield _Step((operation, _BY_NAME[name.removesuffix("_begin") + "_end"]), False, False), count
        elif operation.role is Role.MAP:
            yield _Step((operation, _BY_NAME["munmap"]), False, False), count
        else:
            yield _Step((operation,), seek, wait), count


# ---- draws -----------------------------------------------------------------------------------------------------------


class _Bag:
    """Values of one distribution: stratified draws, as many at a time as are expected to be needed."""

    def __init__(self, values: Sequence[object], counts: Iterable[int], random: np.random.Generator, need: int) -> None:
        self._values, self._counts = values, np.array(list(counts), np.int64)
        self._random, self._need = random, max(1, need)
        self._drawn: Iterator[int] = iter(())

    @classmethod
    def of(cls, found: Distribution, random: np.random.Generator, need: int) -> _Bag:
        return cls(found.values.tolist(), found.counts.tolist(), random, need)

    def __bool__(self) -> bool:
        return bool(self._counts.size)

    def take(self) -> object:
        at = next(self._drawn, None)
        if at is None:
            self._drawn = iter(stratified(self._counts, self._need, self._random).tolist())
            at = next(self._drawn)
        return self._values[at]

    def number(self, otherwise: int = 0) -> int:
        """Return a whole number; `otherwise` where there is nothing to draw from."""
        return int(self.take()) if self else otherwise  # type: ignore[call-overload]


def _session_count(found: ClassProfile) -> int:
    return int((found.opened.values * found.opened.counts).sum())


class _Class:
    """The characteristics of one class, ready for draws."""

    def __init__(self, owner: str, found: ClassProfile, random: np.random.Generator, scale: Scale) -> None:
        self.owner, self.random, self.scale = owner, random, scale
        self.files = max(1, round(found.files * scale.files)) if found.files else 0
        opened = _Bag.of(found.opened, random, self.files)
        self.opens = [max(1, round(opened.number(1) * scale.opens)) for _ in range(self.files)]
        sessions = sum(self.opens)
        steps = list(_steps_of(found.inside))
        operations = max(sessions, round(sum(found.inside.values()) * sessions / max(1, _session_count(found))))
        self.duration = _Bag.of(found.duration, random, sessions)
        modes = found.access_mode or {"none": 1}
        self.mode = _Bag(list(modes), modes.values(), random, sessions)
        self.sequentiality = _Bag.of(found.sequentiality, random, sessions)
        self.first = _Bag.of(found.first, random, self.files)
        self.session_gap = _Bag.of(found.session_gap, random, max(1, sessions - self.files))
        self.request_gap = _Bag.of(found.request_gap, random, operations + sessions)
        data = sum(count for step, count in steps if step.operations[0].role in DATA)
        need = max(1, round(data * sessions / max(1, _session_count(found))))
        self.offset, self.size = _Bag.of(found.offset, random, need), _Bag.of(found.size, random, need)
        self.largest = int(found.file_size.values[-1]) if found.file_size.values.size else 0
        layers = self._by_layer(steps) or {"posix": []}
        self.layer = _Bag(list(layers), [max(1, sum(count for _, count in several)) for several in layers.values()],
                          random, sessions)  # fmt: skip
        share = sessions / max(1, _session_count(found))
        self.steps = {layer: self._by_mode(several, share) for layer, several in layers.items()}

    @staticmethod
    def _by_layer(steps: Sequence[tuple[_Step, int]]) -> dict[str, list[tuple[_Step, int]]]:
        found: dict[str, list[tuple[_Step, int]]] = {}
        for step, count in steps:
            operation = step.operations[0]
            layer = "directory" if operation.name in _OF_DIRECTORIES else operation.layer
            found.setdefault(layer, []).append((step, count))
        return found

    def _by_mode(self, steps: Sequence[tuple[_Step, int]], share: float) -> dict[str, _Bag]:
        """Return the steps that each access mode allows (RT1 with AM), `share` times as many as were counted."""
        allowed = {"read": (None, False), "write": (None, True), "read_write": (None, False, True), "none": (None,)}
        found = {}
        for mode, kinds in allowed.items():
            some = [item for item in steps if item[0].operations[0].writes in kinds]
            need = round(sum(count for _, count in some) * share)
            found[mode] = _Bag([step for step, _ in some], [count for _, count in some], self.random, need)
        return found


# ---- sessions --------------------------------------------------------------------------------------------------------


class _Session:
    """One open session under construction."""

    def __init__(self, source: _Class, file: str, wish: int) -> None:
        self._source, self._file, self._wish = source, file, wish
        self.runs = [_Run(wish)]
        self.end = wish
        self._position = 0
        self._sequential = source.sequentiality.number() / SCALE
        mode = str(source.mode.take())
        layer = str(source.layer.take())
        begin, finish = _OPENS[layer]
        self._put([self._row(_BY_NAME[begin])])
        self._fill(source.steps[layer][mode], max(0, source.duration.number(2) - 2))
        self._advance()
        self._put([self._row(_BY_NAME[finish])])

    def _row(self, operation: Operation) -> _Row:
        return _Row(operation, self._file, self._source.owner)

    def _put(self, rows: Sequence[_Row]) -> None:
        self.runs[-1].rows += rows
        self.end = self._wish
        self._wish += len(rows) - 1

    def _advance(self) -> None:
        """Go on by IRG: to the next ID, or further, which begins another run."""
        gap = max(1, self._source.request_gap.number(1))
        self._wish += gap
        if gap > 1:
            self.runs.append(_Run(self._wish))

    def _fill(self, steps: _Bag, left: int) -> None:
        while left > 0 and steps:
            step = steps.take()
            assert isinstance(step, _Step)
            self._advance()
            self._put(self._rows_of(step))
            left -= step.members

    def _rows_of(self, step: _Step) -> list[_Row]:
        rows = [self._row(operation) for operation in step.operations]
        main = step.operations[0]
        if main.role in DATA or main.role is Role.BEGIN:
            size, offset = self._access(moves=main.explicit_offset or step.seek)
            rows[0].size = size
            if main.explicit_offset or self._source.offset:
                rows[0].offset = offset
            if step.seek:
                rows.insert(0, self._row(_BY_NAME[_SEEKS[main.layer]]))
                rows[0].offset = offset
        if step.wait:
            rows.append(_Row(_BY_NAME["MPI_Wait"], None, NO_FILE))
        return rows

    def _access(self, *, moves: bool) -> tuple[int, int]:
        """Return size and offset of an access: where the one before has ended, as often as SEQ says, and else OFF.

        One that does not name its offset, and has no seek before it, is always where the one before has ended.
        """
        source = self._source
        size = round(source.size.number(0) * source.scale.sizes)
        if moves and source.random.random() >= self._sequential:
            if source.offset:
                self._position = round(source.offset.number() * source.scale.sizes)
            elif source.largest > size:
                self._position = int(source.random.integers(0, source.largest - size + 1))
        offset = self._position
        self._position = offset + size
        return size, offset


def _sessions(source: _Class) -> Iterator[tuple[str, list[_Run], int]]:
    """Yield each file with all runs of its sessions, and the wish of its last operation."""
    for number, opens in enumerate(source.opens):
        file = _NAMES[source.owner].format(number)
        runs: list[_Run] = []
        end = 0
        for turn in range(opens):
            wish = source.first.number(0) if turn == 0 else end + max(1, source.session_gap.number(1))
            session = _Session(source, file, wish)
            runs += session.runs
            end = session.end
        yield file, runs, end


# ---- what is outside of sessions -------------------------------------------------------------------------------------


def _outside(found: ClassProfile, owner: str, ends: Mapping[str, int], factor: float,
             random: np.random.Generator) -> Iterator[tuple[int | None, _Row]]:  # fmt: skip
    """Yield operations of RT2, with a wish where they have one: behind the last close of a file that is removed."""
    files = list(ends)
    removed = itertools.cycle(files)
    numbers = itertools.count()
    for name, count in found.outside.items():
        operation = _BY_NAME.get(name) or Operation(name=name, layer="posix", role=Role.META)
        if operation.role is Role.WAIT:
            continue  # a wait belongs to what it ends
        for _ in range(max(1, round(count * factor))):
            if owner == NO_FILE or not files:
                yield None, _Row(operation, None, NO_FILE)
            elif name in _REMOVING:
                file = next(removed)
                yield ends[file] + 1, _Row(operation, file, owner)
            elif name in _MAKING:
                yield None, _Row(operation, f"{_NAMES[owner].format('made')}.{next(numbers)}", owner)
            else:
                yield None, _Row(operation, files[int(random.integers(len(files)))], owner)


def _spread(runs: list[_Run], loose: Sequence[_Row], random: np.random.Generator) -> list[_Run]:
    """Return all runs in order, with the loose operations in the holes between them (Figure 4)."""
    runs.sort(key=lambda run: run.wish)
    holes, end = [], 0
    for run in runs:
        holes.append(max(0, run.wish - end))
        end = max(end, run.wish) + len(run.rows)
    sizes = np.array([*holes, 0], np.int64)
    if not sizes.any():
        sizes += 1
    chosen = np.bincount(stratified(sizes, len(loose), random), minlength=sizes.size) if loose else sizes * 0
    order = iter([loose[at] for at in random.permutation(len(loose))])
    found = []
    for at, count in enumerate(chosen.tolist()):
        found.append(_Run(0, list(itertools.islice(order, count))))
        found += runs[at : at + 1]
    return found


# ---- the path --------------------------------------------------------------------------------------------------------


def _slack(rows: Sequence[_Row], profile: Profile, scale: Scale, random: np.random.Generator) -> NDArray[np.int64]:
    """Return the slack time of each operation in ns, drawn for each class."""
    owners = np.array([row.owner for row in rows], object)
    found = np.zeros(len(rows), np.int64)
    for owner, item in profile.classes.items():
        mine = np.flatnonzero(owners == owner)
        if mine.size and item.slack.counts.size:
            drawn = item.slack.values[stratified(item.slack.counts, mine.size, random)]
            found[mine] = np.rint(drawn * scale.slack).astype(np.int64)
    return found


def _known(values: Sequence[int]) -> pa.Array:
    numbers = np.array(values, np.int64)
    return pa.array(numbers, mask=numbers < 0)


def _path_of(rows: Sequence[_Row], slack: NDArray[np.int64], ranks: int) -> WorkloadPath:
    groups = 1 if ranks == 1 else 2
    members = ((0,), tuple(range(1, max(2, ranks))))[:groups]
    everybody = (1 << groups) - 1
    masks = {"root": 1, "child": everybody & ~1 or 1}
    bits = np.array([masks.get(row.owner, everybody) for row in rows], np.int64)
    columns: dict[str, pa.Array] = {
        "id": pa.array(np.arange(len(rows), dtype=np.int64)),
        "operation": pa.array([row.operation.name for row in rows], pa.string()),
        "file": pa.array([row.file for row in rows], pa.string()),
        "owner": pa.array([None if row.owner == NO_FILE else row.owner for row in rows], pa.string()),
        "groups": pa.array(bits),
        "layer": pa.array([row.operation.layer for row in rows], pa.string()),
        "extra": pa.nulls(len(rows), pa.string()),
    }
    offsets, sizes = _known([row.offset for row in rows]), _known([row.size for row in rows])
    for group in range(groups):
        absent = bits >> group & 1 == 0
        for name, column in (("offset", offsets), ("size", sizes), ("slack", pa.array(slack))):
            values = np.asarray(column.fill_null(-1))
            columns[f"{name}_{group}"] = pa.array(values, mask=absent | (values < 0))
        columns[f"duration_{group}"] = pa.nulls(len(rows), pa.int64())
    schema = WorkloadPath.schema(groups)
    info = PathInfo(representatives=(0, 1)[:groups], members=members, ranks=ranks)
    return WorkloadPath(pa.table({name: columns[name] for name in schema.names}).cast(schema), info)


def from_profile(profile: Profile, *, seed: int, scale: Scale | None = None) -> WorkloadPath:
    """Return a path with the characteristics of a profile.

    Parameters
    ----------
    profile : what is drawn from; its ``shapes`` are not looked at.
    seed : the same gives the same path.
    scale : what is multiplied.
    """
    scale = scale or Scale()
    random = np.random.default_rng(seed)
    runs: list[_Run] = []
    loose: list[_Row] = []
    for owner in (*OWNERS, NO_FILE):
        found = profile.classes.get(owner)
        if found is None:
            continue
        ends: dict[str, int] = {}
        if owner != NO_FILE:
            for file, several, end in _sessions(_Class(owner, found, random, scale)):
                runs += several
                ends[file] = end
        for wish, row in _outside(found, owner, ends, scale.files * scale.opens, random):
            if wish is None:
                loose.append(row)
            else:
                runs.append(_Run(wish, [row]))
    rows = [row for run in _spread(runs, loose, random) for row in run.rows]
    return _path_of(rows, _slack(rows, profile, scale, random), profile.ranks)
