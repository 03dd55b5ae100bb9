"""The characteristics of one class of files, ready to be drawn: the input of Algorithm 1 from a profile.

Content.   `Bag` gives the values of one distribution, stratified, as many at a time as are expected to be needed.
           `Step` is an entry of RT1 with what hangs on it: the seek before it and the wait behind it, the second half
           of a split collective, the munmap of an mmap. `ClassDraws` has a bag for each characteristic, and the steps
           that each access mode allows.

Source: He, Du, Narasimhamurthy, "PIONEER", section IV-B (dependencies) and Table III.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mpiio_ext.pioneer.operations import CATALOG, DATA, LISTING, Operation, Role
from mpiio_ext.pioneer.profile import ClassProfile, Distribution
from mpiio_ext.pioneer.profile.extended import parse_extended
from mpiio_ext.pioneer.synthesis.scale import Scale
from mpiio_ext.pioneer.synthesis.stratified import stratified

BY_NAME = {operation.name: operation for operation in CATALOG.values()}


@dataclass(frozen=True, slots=True)
class Step:
    """An entry of RT1: an operation with its dependent operations.

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


def _steps_of(inside: Mapping[str, int]) -> Iterator[tuple[Step, int]]:
    """Yield the steps of RT1 and their frequencies; operations that cannot stand alone are part of another step."""
    for name, count in inside.items():
        operation, seek, wait = parse_extended(BY_NAME, name)
        if operation is None:
            operation = Operation(name=name, layer="posix", role=Role.CONTROL)
        if operation.role in (Role.END, Role.UNMAP):
            continue
        if operation.role is Role.BEGIN:
            yield Step((operation, BY_NAME[name.removesuffix("_begin") + "_end"]), False, False), count
        elif operation.role is Role.MAP:
            yield Step((operation, BY_NAME["munmap"]), False, False), count
        else:
            yield Step((operation,), seek, wait), count


class Bag:
    """Values of one distribution: stratified draws, as many at a time as are expected to be needed."""

    def __init__(self, values: Sequence[object], counts: Iterable[int], random: np.random.Generator, need: int) -> None:
        self._values, self._counts = values, np.array(list(counts), np.int64)
        self._random, self._need = random, max(1, need)
        self._drawn: Iterator[int] = iter(())

    @classmethod
    def of(cls, found: Distribution, random: np.random.Generator, need: int) -> Bag:
        """Return a bag of the values of a distribution, of which about `need` will be taken."""
        return cls(found.values.tolist(), found.counts.tolist(), random, need)

    def __bool__(self) -> bool:
        return bool(self._counts.size)

    def take(self) -> object:
        """Return one value."""
        at = next(self._drawn, None)
        if at is None:
            self._drawn = iter(stratified(self._counts, self._need, self._random).tolist())
            at = next(self._drawn)
        return self._values[at]

    def number(self, otherwise: int = 0) -> int:
        """Return an integer; `otherwise` if there is nothing to draw from."""
        return int(self.take()) if self else otherwise  # type: ignore[call-overload]


def _writes(operation: Operation) -> bool | None:
    """Return whether an operation needs a file that is open for writing; None: for reading or writing."""
    return True if operation.role is Role.RESIZE else operation.writes


def _session_count(found: ClassProfile) -> int:
    return int((found.opened.values * found.opened.counts).sum())


class ClassDraws:
    """The characteristics of one class, ready for draws."""

    def __init__(self, owner: str, found: ClassProfile, random: np.random.Generator, scale: Scale) -> None:
        self.owner, self.random, self.scale = owner, random, scale
        self.files = max(1, round(found.files * scale.files)) if found.files else 0
        opened = Bag.of(found.opened, random, self.files)
        self.opens = [max(1, round(opened.number(1) * scale.opens)) for _ in range(self.files)]
        sessions = sum(self.opens)
        steps = list(_steps_of(found.inside))
        operations = max(sessions, round(sum(found.inside.values()) * sessions / max(1, _session_count(found))))
        self.duration = Bag.of(found.duration, random, sessions)
        modes = found.access_mode or {"none": 1}
        self.mode = Bag(list(modes), modes.values(), random, sessions)
        self.sequentiality = Bag.of(found.sequentiality, random, sessions)
        self.first = Bag.of(found.first, random, self.files)
        self.session_gap = Bag.of(found.session_gap, random, max(1, sessions - self.files))
        self.request_gap = Bag.of(found.request_gap, random, operations + sessions)
        data = sum(count for step, count in steps if step.operations[0].role in DATA)
        need = max(1, round(data * sessions / max(1, _session_count(found))))
        self.offset, self.size = Bag.of(found.offset, random, need), Bag.of(found.size, random, need)
        self.largest = int(found.file_size.values[-1]) if found.file_size.values.size else 0
        layers = self._by_layer(steps) or {"posix": []}
        self.layer = Bag(
            list(layers), [max(1, sum(count for _, count in several)) for several in layers.values()], random, sessions
        )
        share = sessions / max(1, _session_count(found))
        self.steps = {layer: self._by_mode(several, share) for layer, several in layers.items()}

    @staticmethod
    def _by_layer(steps: Sequence[tuple[Step, int]]) -> dict[str, list[tuple[Step, int]]]:
        found: dict[str, list[tuple[Step, int]]] = {}
        for step, count in steps:
            operation = step.operations[0]
            layer = "directory" if operation.name in LISTING else operation.layer
            found.setdefault(layer, []).append((step, count))
        return found

    def _by_mode(self, steps: Sequence[tuple[Step, int]], share: float) -> dict[str, Bag]:
        """Return the steps that each access mode allows (RT1 with AM), `share` times as many as were counted."""
        allowed = {"read": (None, False), "write": (None, True), "read_write": (None, False, True), "none": (None,)}
        found = {}
        for mode, kinds in allowed.items():
            some = [item for item in steps if _writes(item[0].operations[0]) in kinds]
            need = round(sum(count for _, count in some) * share)
            found[mode] = Bag([step for step, _ in some], [count for _, count in some], self.random, need)
        return found
