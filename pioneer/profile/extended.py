"""Extended operations: soft dependencies as names of their own.

Problem.   A read may follow a seek or not, an MPI_File_iread may be followed by a wait or not. When operations are
           drawn one by one such pairs would be torn.
Algorithm. An operation that uses the file pointer gets a digit: 1 after a seek in the same session, else 0. A
           nonblocking one gets a second digit: 1 if a wait ends it, else 0. Seeks that were counted so are no
           operations of their own any more (He, Du, Narasimhamurthy, "PIONEER", section IV-B: read0, read1,
           MPI_File_iread11). A wait for one request ends the oldest that has none yet; a wait for all ends all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import DATA, Operation, Role
from mpiio_ext.pioneer.profile.sessions import Sessions

_ALL = ("MPI_Waitall", "MPI_Testall")


def _is_counted(operation: Operation) -> bool:
    return operation.role in DATA and not operation.explicit_offset


def _waited(operations: Sequence[Operation]) -> NDArray[np.bool_]:
    """Return for each operation whether a wait ends it."""
    found = np.zeros(len(operations), bool)
    pending: deque[int] = deque()
    for row, operation in enumerate(operations):
        if operation.nonblocking:
            pending.append(row)
        elif operation.role is Role.WAIT:
            for _ in range(len(pending) if operation.name in _ALL else min(1, len(pending))):
                found[pending.popleft()] = True
    return found


def extended_names(operations: Sequence[Operation], sessions: Sessions) -> list[str | None]:
    """Return the extended name of every operation; None: a seek that another one's name contains.

    Parameters
    ----------
    operations : of each row of the path.
    sessions : of the path.
    """
    waited = _waited(operations)
    names: list[str | None] = [operation.name for operation in operations]
    for session in sessions.sessions:
        before: int | None = None
        for row in session.members:
            operation = operations[row]
            if operation.nonblocking or _is_counted(operation):
                digits = ""
                if _is_counted(operation):
                    follows = before is not None and operations[before].role is Role.SEEK
                    digits += "1" if follows else "0"
                    if follows and before is not None:
                        names[before] = None
                if operation.nonblocking:
                    digits += "1" if waited[row] else "0"
                names[row] = operation.name + digits
            before = row
    return names


def parse_extended(layer_names: Mapping[str, Operation], name: str) -> tuple[Operation | None, bool, bool]:
    """Return the meaning of an extended name: the operation, whether a seek precedes it, whether a wait ends it.

    Parameters
    ----------
    layer_names : operations by their plain names.
    name : extended name; None is returned for the operation where no plain name fits.
    """
    if name in layer_names and not (layer_names[name].nonblocking or _is_counted(layer_names[name])):
        return layer_names[name], False, False
    for digits in (2, 1):
        operation, flags = layer_names.get(name[:-digits]), name[-digits:]
        if operation is None or not set(flags) <= {"0", "1"}:
            continue
        counted = _is_counted(operation)
        if digits == counted + operation.nonblocking:
            return operation, counted and flags[0] == "1", operation.nonblocking and flags[-1] == "1"
    return layer_names.get(name), False, False
