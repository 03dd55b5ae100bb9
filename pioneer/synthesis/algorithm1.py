"""Algorithm 1 of the paper: a workload path from the characteristics alone, each drawn from its own distribution.

Problem.   A profile that a person has written, or another tool, has no structure beyond Table III.
Algorithm. For each class and file, and each of its open sessions, these are drawn. D, SEQ and AM; the ID of the open
           from ISG; those of the other operations from IRG; their types from RT1 as AM allows; offsets and sizes from
           OFF, SEQ and SIZE. IDs are wishes at first. Operations of one session at successive IDs stay together. These
           runs are sorted by their wishes. What is outside of sessions (RT2) is spread over the holes between them.
           Then IDs are given in order: nothing collides, and no hole is left.
Guarantee. All draws are stratified (`stratified`). Hard dependencies hold: an open first, a close last, halves of
           split collectives and mappings in pairs, waits behind what they end, and nothing is removed before the last
           close of its file.

Source: He, Du, Narasimhamurthy, "PIONEER", section V-D, Algorithm 1, Figure 4.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import DATA, REMOVING, SECOND_NAMES, Operation, Role
from mpiio_ext.pioneer.path import OWNERS, WorkloadPath
from mpiio_ext.pioneer.path.document import PathInfo
from mpiio_ext.pioneer.profile import ClassProfile, Profile
from mpiio_ext.pioneer.profile.characterize import NO_FILE, SCALE
from mpiio_ext.pioneer.synthesis.draws import BY_NAME, Bag, ClassDraws, Step
from mpiio_ext.pioneer.synthesis.scale import Scale
from mpiio_ext.pioneer.synthesis.stratified import stratified

_OPENS = {
    "posix": ("open", "close"),
    "directory": ("opendir", "closedir"),
    "stdio": ("fopen", "fclose"),
    "mpiio": ("MPI_File_open", "MPI_File_close"),
}
_SEEKS = {"posix": "lseek", "stdio": "fseek", "mpiio": "MPI_File_seek"}
_NAMES = {"root": "root.{}", "shared": "shared.{}", "private": "private.{{rank}}.{}", "child": "child.{}"}
#: Operations that must not happen to a file that is opened again later.
_REMOVING = REMOVING | {"truncate"}
_MAKING = frozenset({"mkdir", "mkdirat", "link", "symlink"})


@dataclass(slots=True)
class _Row:
    """An operation of the path under construction."""

    operation: Operation
    file: str | None
    owner: str
    second: str | None = None
    offset: int = -1
    size: int = -1
    session: int = -1


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


# ---- sessions --------------------------------------------------------------------------------------------------------


class _Session:
    """One open session under construction."""

    def __init__(self, source: ClassDraws, file: str, wish: int, number: int) -> None:
        self._source, self._file, self._wish, self._number = source, file, wish, number
        self.runs = [_Run(wish)]
        self.end = wish
        self._position = 0
        self._sequential = source.sequentiality.number() / SCALE
        mode = str(source.mode.take())
        layer = str(source.layer.take())
        begin, finish = _OPENS[layer]
        self._put([self._row(BY_NAME[begin])])
        self._fill(source.steps[layer][mode], max(0, source.duration.number(2) - 2))
        self._advance()
        self._put([self._row(BY_NAME[finish])])

    def _row(self, operation: Operation) -> _Row:
        return _Row(operation, self._file, self._source.owner, session=self._number)

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

    def _fill(self, steps: Bag, left: int) -> None:
        while left > 0 and steps:
            step = steps.take()
            assert isinstance(step, Step)
            self._advance()
            self._put(self._rows_of(step))
            left -= step.members

    def _rows_of(self, step: Step) -> list[_Row]:
        rows = [self._row(operation) for operation in step.operations]
        main = step.operations[0]
        if main.role in DATA or main.role is Role.BEGIN:
            size, offset = self._access(moves=main.explicit_offset or step.seek)
            rows[0].size = size
            if main.explicit_offset or self._source.offset:
                rows[0].offset = offset
            if step.seek:
                rows.insert(0, self._row(BY_NAME[_SEEKS[main.layer]]))
                rows[0].offset = offset
        elif main.role in (Role.MAP, Role.RESIZE):  # the file as long as it is, or is to be
            length = max(1, self._position, round(self._source.largest * self._source.scale.sizes))
            for row in rows:
                row.size = length
        if step.wait:
            rows.append(_Row(BY_NAME["MPI_Wait"], None, NO_FILE))
        return rows

    def _access(self, *, moves: bool) -> tuple[int, int]:
        """Return size and offset of an access: at the end of the one before, as often as SEQ gives, and else OFF.

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


def _sessions(source: ClassDraws, numbers: Iterator[int]) -> Iterator[tuple[str, list[_Run], int]]:
    """Yield each file with all runs of its sessions, and the wish of its last operation."""
    for number, opens in enumerate(source.opens):
        file = _NAMES[source.owner].format(number)
        runs: list[_Run] = []
        end = 0
        for turn in range(opens):
            wish = source.first.number(0) if turn == 0 else end + max(1, source.session_gap.number(1))
            session = _Session(source, file, wish, next(numbers))
            runs += session.runs
            end = session.end
        yield file, runs, end


# ---- operations outside of sessions ----------------------------------------------------------------------------------


def _outside(
    found: ClassProfile, owner: str, ends: Mapping[str, int], factor: float, random: np.random.Generator
) -> Iterator[tuple[int | None, _Row]]:
    """Yield operations of RT2, with a wish where they have one: behind the last close of a file that is removed.

    Of a class without files each has a file of its own, which was there before, or is looked for.
    """
    files = list(ends)
    removed = itertools.cycle(files)
    numbers = itertools.count()
    for name, count in found.outside.items():
        operation = BY_NAME.get(name) or Operation(name=name, layer="posix", role=Role.META)
        if operation.role is Role.WAIT:
            continue  # a wait belongs to the call that it ends
        for _ in range(max(1, round(count * factor))):
            if owner == NO_FILE:
                yield None, _Row(operation, None, NO_FILE)
                continue
            number = next(numbers)
            second = f"{_NAMES[owner].format('made')}.{number}" if name in SECOND_NAMES else None
            if name in _MAKING and second is None:
                yield None, _Row(operation, f"{_NAMES[owner].format('made')}.{number}", owner)
            elif not files:
                yield None, _Row(operation, f"{_NAMES[owner].format('other')}.{number}", owner, second)
            elif name in _REMOVING:
                file = next(removed)
                yield ends[file] + 1, _Row(operation, file, owner, second)
            else:
                yield None, _Row(operation, files[int(random.integers(len(files)))], owner, second)


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


def _rank_step(profile: Profile, rows: Sequence[_Row], factor: float) -> int:
    """Return how far the accesses of a rank to a shared file are from those of the rank before, bytes.

    `factor` is that of the sizes.

    If the profile has no such distance, each rank begins behind the last byte of the one before, so that no rank writes
    another's bytes.
    """
    shared = profile.classes.get("shared")
    if shared is None or shared.rank_step is not None:
        return 0 if shared is None or shared.rank_step is None else round(shared.rank_step * factor)
    return max((row.offset + max(0, row.size) for row in rows if row.owner == "shared" and row.offset >= 0), default=0)


def _path_of(rows: Sequence[_Row], slack: NDArray[np.int64], ranks: int, step: int) -> WorkloadPath:
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
        "session": _known([row.session for row in rows]),
        "layer": pa.array([row.operation.layer for row in rows], pa.string()),
        "extra": pa.array([json.dumps({"file2": row.second}) if row.second else None for row in rows], pa.string()),
    }
    shared = np.array([row.owner == "shared" and row.operation.role in DATA for row in rows], bool)
    offsets, sizes = _known([row.offset for row in rows]), _known([row.size for row in rows])
    for group in range(groups):
        absent = bits >> group & 1 == 0
        for name, column in (("offset", offsets), ("size", sizes), ("slack", pa.array(slack))):
            values = np.asarray(column.fill_null(-1))
            if name == "offset" and group > 0:
                values = np.where(shared & (values >= 0), np.maximum(0, values + step), values)
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
    numbers = itertools.count()
    for owner in (*OWNERS, NO_FILE):
        found = profile.classes.get(owner)
        if found is None:
            continue
        ends: dict[str, int] = {}
        if owner != NO_FILE:
            for file, several, end in _sessions(ClassDraws(owner, found, random, scale), numbers):
                runs += several
                ends[file] = end
        for wish, row in _outside(found, owner, ends, scale.files * scale.opens, random):
            if wish is None:
                loose.append(row)
            else:
                runs.append(_Run(wish, [row]))
    rows = [row for run in _spread(runs, loose, random) for row in run.rows]
    return _path_of(rows, _slack(rows, profile, scale, random), profile.ranks, _rank_step(profile, rows, scale.sizes))
