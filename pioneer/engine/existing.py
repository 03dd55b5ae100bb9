"""Files that existed before the program: they are made before a replay, even if no byte of them is read.

Problem.   A program opens a restart file to update it, appends to a log of the day before, renames or removes what
           another has left. Without these files their opens fail in the replay, and all that needs them is left out.
Algorithm. One pass over the path. A file whose first use has succeeded, and is no open that makes files, was there:
           an open without creation, a rename, an unlink, a truncate, a link. If the trace does not show how an open was
           made nothing is known. Its size is what the trace shows before the first write to it: where the first write
           behind its end began, where a seek from its end led to, what its length was said to be. A file whose open
           would make it, and does not truncate it, existed before if such a size is larger than 0.
Guarantee. Files that the path makes itself, or renames to such a name, are not among them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import creates, parsed
from mpiio_ext.pioneer.operations import NEEDING, SECOND_NAMES, WHENCE, Operation, Role
from mpiio_ext.pioneer.path import Template, WorkloadPath
from mpiio_ext.pioneer.profile.sessions import Sessions

#: Operations that create the name, but not as a file.
_MAKING = frozenset({"mkdir", "mkdirat", "opendir", "symlink"})
#: Opens of objects that are no files to create, or are open already.
_OTHER_OPENS = frozenset({"opendir", "fdopen", "tmpfile"})
_LENGTHS = frozenset({"fstat", "MPI_File_get_size"})
_MPI_APPEND = 128  # MPI_MODE_APPEND of MPICH and Open MPI
_WRITING = (Role.WRITE, Role.BEGIN, Role.RESIZE)


def _flags_of(operation: Operation, extra: dict[str, object]) -> object:
    """Return the flags, or the mode, of an open; None: the trace does not have them."""
    return (
        extra.get("amode")
        if operation.layer == "mpiio"
        else extra.get("mode", extra.get("flags"))
        if (operation.layer == "stdio")
        else extra.get("flags")
    )


def _truncates(operation: Operation, flags: object) -> bool:
    if operation.name == "creat":
        return True
    if operation.layer == "mpiio":
        return False
    return bool(flags & os.O_TRUNC) if isinstance(flags, int) else "O_TRUNC" in str(flags) or str(flags)[:1] == "w"


def _appends(operation: Operation, flags: object) -> bool:
    if isinstance(flags, int):
        return bool(flags & (_MPI_APPEND if operation.layer == "mpiio" else os.O_APPEND))
    return "APPEND" in str(flags) or (operation.layer == "stdio" and str(flags)[:1] == "a")


@dataclass(slots=True)
class _State:
    """The known facts of files so far, by their templates.

    Attributes
    ----------
    used : they have been used: whether they were there shows in the first use.
    sizes : of those that were there, bytes.
    open_ended : made by an open that truncates nothing: whether they were there before shows in their size.
    written : their length says nothing any more of what it was.
    """

    used: set[str] = field(default_factory=set)
    sizes: dict[str, int] = field(default_factory=dict)
    open_ended: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)

    def first(self, file: str, kind: Operation, extra: dict[str, Any], text: str | None) -> None:
        """Note the first use of a file that shows whether it was there."""
        flags = _flags_of(kind, extra)
        opens = kind.role is Role.OPEN and kind.name not in _OTHER_OPENS
        if not opens and kind.name not in NEEDING and kind.name not in _MAKING:
            return
        self.used.add(file)
        if kind.name in NEEDING or (opens and flags is not None and not creates(kind, text)):
            self.sizes[file] = 0
        elif opens and flags is not None and not _truncates(kind, flags):
            self.open_ended.add(file)

    def is_as_before(self, file: str) -> bool:
        """Return whether the length of a file shows its length before the program."""
        return file not in self.written and (file in self.sizes or file in self.open_ended)

    def learn(self, file: str, size: int) -> None:
        """Note that a file was so long."""
        if size > self.sizes.get(file, 0):
            self.sizes[file] = size


def _offsets(path: WorkloadPath) -> list[int]:
    columns = [path.table[f"offset_{group}"] for group in range(path.group_count)]
    found: NDArray[np.int64] = np.asarray(pc.fill_null(pc.coalesce(*columns), -1).to_numpy(), np.int64)
    return [int(value) for value in found.tolist()]


def _size_before(kind: Operation, extra: dict[str, Any], offset: int, *, appends: bool) -> int:
    """Return the length of its file that an operation shows, 0 if it shows none."""
    if kind.name in _LENGTHS and isinstance(extra.get("value"), int):
        return int(extra["value"])
    from_end = kind.role is Role.SEEK and WHENCE.get(str(extra.get("whence", 0))) == 2
    return max(0, offset) if from_end or (kind.role is Role.WRITE and appends) else 0


def existing_files(path: WorkloadPath, kinds: Sequence[Operation], sessions: Sessions) -> dict[str, int]:
    """Return the files of a path that existed before it, by their names in the path, and their least lengths.

    Parameters
    ----------
    path : what is carried out.
    kinds : what its operations are.
    sessions : its open sessions.
    """
    files, offsets = path.words("file").tolist(), _offsets(path)
    texts = path.table["extra"].cast(pa.string()).to_pylist()
    keys = {name: template.own.text if (template := Template(name)).refers else name for name in {*files} - {None}}
    state, appending = _State(), set[int]()
    for row, (name, text, kind) in enumerate(zip(files, texts, kinds, strict=True)):
        if name is None or '"errno":' in (text or ""):  # a call that has failed
            continue
        file, session = keys[name], int(sessions.of[row])
        extra = parsed(text)
        if file not in state.used:
            state.first(file, kind, extra, text)
        if kind.role is Role.OPEN and _appends(kind, _flags_of(kind, extra)):
            appending.add(session)
        if state.is_as_before(file):
            state.learn(file, _size_before(kind, extra, offsets[row], appends=session in appending))
        if kind.role in _WRITING or (kind.role is Role.OPEN and _truncates(kind, _flags_of(kind, extra))):
            state.written.add(file)
        if kind.name in SECOND_NAMES and isinstance(extra.get("file2"), str):
            state.used.add(extra["file2"])
            state.written.add(extra["file2"])
    return state.sizes
