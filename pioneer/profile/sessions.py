"""The framework of file open sessions: which operations of a path belong to which opening of which file.

Problem.   The order of a workload path mixes operations on many files. What happens to a file between an open and a
           close is one unit of behaviour (He, Du, Narasimhamurthy, "PIONEER", section IV-C, Figure 2).
Algorithm. One pass. An open begins a session of its file and layer; later operations of column 2 on that file belong to
           the session that was begun last and is not ended; a close ends it. Where a trace has no opens (Darshan DXT),
           or a descriptor was inherited, the first operation on the file begins a session that has no open, and its
           last one ends it.
Guarantee. Every operation of column 2 that names a file belongs to exactly one session. All others belong to none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import Operation, Role, operation_of
from mpiio_ext.pioneer.path import WorkloadPath

__all__ = ["OUTSIDE", "Session", "Sessions", "find_sessions", "operations_of"]

#: In place of the number of a session.
OUTSIDE = -1


@dataclass(slots=True)
class Session:
    """One open session.

    Attributes
    ----------
    file, layer : what was opened, and how.
    owner : class of the file.
    members : global sequence IDs of its operations, in order; the open is the first and the close the last where there
        are any.
    has_open, has_close : whether there are.
    """

    file: str
    layer: str
    owner: str
    members: list[int]
    has_open: bool
    has_close: bool = False

    @property
    def first(self) -> int:
        """ID of its first operation."""
        return self.members[0]

    @property
    def last(self) -> int:
        """ID of its last operation."""
        return self.members[-1]


@dataclass(frozen=True, slots=True)
class Sessions:
    """All sessions of a path.

    Attributes
    ----------
    sessions : in the order of their first operations.
    of : for each operation the number of its session, or OUTSIDE.
    """

    sessions: tuple[Session, ...]
    of: NDArray[np.int64]


def _words(path: WorkloadPath, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """Return a column as numbers, -1 for null, and what they mean."""
    column = path.table[name].unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # without rows
        column = column.chunk(0) if column.num_chunks else pa.array([], pa.string()).dictionary_encode()
    numbers = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64), column.dictionary.to_pylist()


def operations_of(path: WorkloadPath) -> list[Operation]:
    """Return what each operation of a path is."""
    numbers, names = _words(path, "operation")
    layers, layer_names = _words(path, "layer")
    pairs, inverse = np.unique(layers * (len(names) + 1) + numbers, return_inverse=True)
    kinds = [operation_of(layer_names[pair // (len(names) + 1)], names[pair % (len(names) + 1)]) for pair in pairs]
    return [kinds[number] for number in inverse.reshape(-1).tolist()]


class _Framework:
    """The sessions that are open while the path is gone along."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self._open: dict[tuple[str, str], list[int]] = {}

    def _begin(self, file: str, layer: str, owner: str, *, has_open: bool) -> int:
        self.sessions.append(Session(file, layer, owner, [], has_open))
        number = len(self.sessions) - 1
        self._open.setdefault((layer, file), []).append(number)
        return number

    def take(self, number: int, operation: Operation, file: str, owner: str) -> int:
        """Return the session of an operation of column 2."""
        layer = operation.layer
        if operation.role is Role.OPEN:
            found = self._begin(file, layer, owner, has_open=True)
        else:
            under_way = self._open.get((layer, file))
            found = under_way[-1] if under_way else self._begin(file, layer, owner, has_open=False)
        self.sessions[found].members.append(number)
        if operation.role is Role.CLOSE:
            self.sessions[found].has_close = True
            self._open[layer, file].remove(found)
        return found


def find_sessions(path: WorkloadPath) -> Sessions:
    """Return the open sessions of a workload path."""
    numbers, names = _words(path, "operation")
    layers, layer_names = _words(path, "layer")
    files, file_names = _words(path, "file")
    owners, owner_names = _words(path, "owner")
    kinds: dict[tuple[int, int], Operation] = {}
    framework = _Framework()
    of = np.full(numbers.size, OUTSIDE, np.int64)
    for row, (name, layer, file, owner) in enumerate(zip(numbers, layers, files, owners, strict=True)):
        kind = kinds.get((layer, name))
        if kind is None:
            kind = kinds.setdefault((layer, name), operation_of(layer_names[layer], names[name]))
        if file >= 0 and kind.in_session:
            of[row] = framework.take(row, kind, file_names[file], owner_names[owner] if owner >= 0 else "shared")
    return Sessions(tuple(framework.sessions), of)
