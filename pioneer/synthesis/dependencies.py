"""Hard dependencies: rules that every workload path obeys, made of a trace or synthesized.

Rules.     He, Du, Narasimhamurthy, "PIONEER", section IV-B and Figures 1a and 1b: operations of column 2 are made
           between the open and the close of their file. Nothing is unmapped that was not mapped. The end of a split
           collective follows its beginning, and no other one is begun on the handle in between. A wait follows the
           nonblocking operation that it ends: that of its request where the path has requests. Besides: global sequence
           IDs are unique and ascend; a session reads or writes only what its open allows; what has the number of a
           session is made while its handle, or a duplicate, is open. A file is opened on a communicator by ranks that
           are in it, and what is collective on that file is made by all groups that have opened it: the others would
           wait for ever.
Algorithm. One pass, for each group by itself, since a rank makes the operations of its group alone. Most operations of
           a path are as one before on the same handle, with nothing opened or closed in between: found column by
           column, they are left out, and looked at only in groups in which something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import allowed, parsed
from mpiio_ext.pioneer.operations import DATA, Operation, Role, operation_of
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.path.communicators import NUMBER
from mpiio_ext.pioneer.path.document import PathInfo

_NOT_OPEN = "the file is not open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A hard dependency that is violated.

    Attributes
    ----------
    id : global sequence ID of the operation.
    group : in which it does not hold.
    why : what is wrong.
    not_open : it is that the file is not open in the group, through any handle.
    """

    id: int
    group: int
    why: str
    not_open: bool = False


@dataclass(slots=True, eq=False)
class _Handle:
    """An open handle of a file.

    Attributes
    ----------
    number : of its session, None if it has none.
    closed : it is closed, and what is mapped of it lasts longer.
    together : groups, as bits, that have opened it on a communicator of a part of the ranks; 0: on another one.
    """

    number: int | None = None
    duplicates: int = 0
    reads: bool = True
    writes: bool = True
    mapped: int = 0
    closed: bool = False
    begun: str | None = None
    together: int = 0


@dataclass(slots=True)
class _State:
    """The open objects of one group."""

    handles: dict[tuple[str, str], list[_Handle]] = field(default_factory=dict)
    requests: dict[tuple[str | None, int], None] = field(default_factory=dict)
    nameless: int = 0

    def of(self, operation: Operation, file: str) -> list[_Handle]:
        return self.handles.setdefault((operation.layer, file), [])

    def holding(self, operation: Operation, file: str, number: int | None) -> list[_Handle]:
        """Return the handles of the operation's layer; of another one where the session is there: C++'s streams."""
        own = self.of(operation, file)
        if number is None or any(item.number == number for item in own):
            return own
        several = [found for (_, name), found in self.handles.items() if name == file]
        return next((found for found in several if any(item.number == number for item in found)), own)

    def start(self, file: str | None, extra: str | None) -> None:
        """Note a nonblocking operation; one that was complete at once is not waited for."""
        found = parsed(extra)
        if found.get("complete"):
            return
        if isinstance(found.get("request"), int):
            self.requests[file, found["request"]] = None
        else:
            self.nameless += 1

    def wait(self, operation: Operation, file: str | None, extra: str | None) -> str | None:
        """Return the mistake in a wait: for a request, for any one, or for all."""
        number = parsed(extra).get("request")
        if isinstance(number, int):
            known = next((key for key in self.requests if key[1] == number and (file in (None, key[0]))), None)
            if known is None:
                return f"no operation with request {number} waits to be completed"
            del self.requests[known]
        elif not self.requests and not self.nameless:
            return "nothing waits to be completed"
        elif operation.name in ("MPI_Waitall", "MPI_Testall"):
            self.requests.clear()
            self.nameless = 0
        elif self.nameless:
            self.nameless -= 1
        else:
            del self.requests[next(iter(self.requests))]
        return None


def _split(handle: _Handle, operation: Operation) -> str | None:
    if operation.role is Role.BEGIN:
        if handle.begun is not None:
            return f"{handle.begun} has been begun and not ended"
        handle.begun = operation.name.removesuffix("_begin")
    elif operation.role is Role.END:
        if handle.begun != operation.name.removesuffix("_end"):
            return "it was not begun"
        handle.begun = None
    return None


def _mapping(handle: _Handle, operation: Operation) -> str | None:
    if operation.role is Role.UNMAP:
        if handle.mapped == 0:
            return "nothing is mapped"
        handle.mapped -= 1
    if operation.name == "msync" and handle.mapped == 0:
        return "nothing is mapped"
    handle.mapped += operation.role is Role.MAP
    return None


def _data(handle: _Handle, operation: Operation) -> str | None:
    if operation.role in DATA or operation.role is Role.BEGIN:
        if operation.writes and not handle.writes:
            return "the file is open for reading only"
        if operation.writes is False and not handle.reads:
            return "the file is open for writing only"
    if operation.role is Role.RESIZE and not handle.writes:
        return "the file is open for reading only"
    return None


def _close(handles: list[_Handle], handle: _Handle) -> None:
    if handle.duplicates > 0:
        handle.duplicates -= 1
    else:
        handle.closed = True
    _forget(handles, handle)


def _forget(handles: list[_Handle], handle: _Handle) -> None:
    """Drop a closed handle when it has no mappings any more."""
    if handle.closed and handle.mapped == 0:
        handles.remove(handle)


def _on_communicator(info: PathInfo, extra: str | None, group: int) -> tuple[bool, str | None]:
    """Return whether an open is made on a communicator of a part of the ranks, and the mistake in that."""
    number = parsed(extra).get(NUMBER) if extra is not None and NUMBER in extra else None
    if number is None:
        return False, None
    if not isinstance(number, int) or not 0 <= number < len(info.communicators):
        return False, f"the path has no communicator {number}"
    rank = info.representatives[group]
    if info.communicators[number].number(rank, info.traced) is None:
        return True, f"rank {rank} is not in communicator {number}"
    return True, None


def _collective(handle: _Handle, operation: Operation, groups: int) -> str | None:
    missing = handle.together & ~groups
    if not operation.collective or not missing:
        return None
    absent = [group for group in range(missing.bit_length()) if missing >> group & 1]
    return f"it is collective, and group {absent[0]} does not make it, which has opened the file with the others"


@dataclass(frozen=True, slots=True)
class _Row:
    """An operation: its file, its arguments, the number of its session, and the groups that make it, as bits."""

    file: str | None
    extra: str | None
    number: int | None
    groups: int


def _take(state: _State, operation: Operation, row: _Row, info: PathInfo, group: int) -> str | None:
    """Return the mistake in an operation of a group, None if there is none."""
    file, extra, number = row.file, row.extra, row.number
    if operation.role is Role.WAIT:
        return state.wait(operation, file, extra)
    if operation.nonblocking:
        state.start(file, extra)
    if file is None or not operation.in_session:
        return None
    handles = state.holding(operation, file, number)
    if operation.role is Role.OPEN:
        reads, writes = allowed(operation, extra)
        of_part, problem = _on_communicator(info, extra, group)
        state.of(operation, file).append(
            _Handle(number=number, reads=reads, writes=writes, together=row.groups if of_part else 0)
        )
        return problem
    mapped = operation.role is Role.UNMAP or operation.name == "msync"
    handle = next(
        (item for item in reversed(handles) if number in (None, item.number) and (not item.closed or mapped)), None
    )
    if handle is None:
        return _NOT_OPEN if all(item.closed for item in handles) else f"the file is not open in session {number}"
    problem = (
        _split(handle, operation)
        or _mapping(handle, operation)
        or _data(handle, operation)
        or _collective(handle, operation, row.groups)
    )
    if problem is not None and parsed(extra).get("errno") is not None:
        problem = None  # it failed in the trace as well
    if operation.role is Role.CLOSE:
        _close(handles, handle)
    elif operation.role is Role.UNMAP:
        _forget(handles, handle)
    elif operation.role is Role.DUPLICATE and number is not None:
        handle.duplicates += 1
    return problem


def _order(ids: Sequence[int]) -> list[Violation]:
    apart = np.diff(np.asarray(ids, np.int64))
    return [
        Violation(id=int(ids[row + 1]), group=0, why="its global sequence ID is not greater than the one before")
        for row in np.flatnonzero(apart <= 0)
    ]


# ---- rows without a check --------------------------------------------------------------------------------------------

#: Operations that open, close or map a file, or begin a call on it: they change the rules for the file.
_CHANGING = frozenset({Role.OPEN, Role.CLOSE, Role.BEGIN, Role.END, Role.MAP, Role.UNMAP, Role.DUPLICATE})


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a number for each text of a column, 0 for null."""
    found = column.combine_chunks()
    found = found.chunk(0) if isinstance(found, pa.ChunkedArray) and found.num_chunks else found
    indices = found.indices if pa.types.is_dictionary(found.type) else found.dictionary_encode().indices
    return np.asarray(pc.add(pc.fill_null(indices.cast(pa.int64()), -1), 1))


def _combined(columns: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return one number for the values of several columns, which are 0 or more."""
    found = np.zeros(columns[0].size, np.int64)
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if int(found.max(initial=0)) >= (1 << 62) // width:
            found = np.unique(found, return_inverse=True)[1].reshape(-1)
        found = found * width + column
    return found


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The operations of a path.

    Attributes
    ----------
    different : those that there are.
    of : which of them each row is.
    """

    different: Sequence[Operation]
    of: NDArray[np.int64]

    @classmethod
    def in_path(cls, path: WorkloadPath) -> _Kinds:
        pairs = _combined([_codes(path.table["layer"]), _codes(path.table["operation"])])
        _, firsts, of = np.unique(pairs, return_index=True, return_inverse=True)
        layers, names = (path.words(name)[firsts] for name in ("layer", "operation"))
        return cls([operation_of(*pair) for pair in zip(layers, names, strict=True)], of.reshape(-1))

    def rows_that(self, are: Callable[[Operation], bool]) -> NDArray[np.bool_]:
        """Return the rows whose operations are so."""
        return np.array([are(item) for item in self.different], bool)[self.of]


def _repeated(path: WorkloadPath, kinds: _Kinds) -> NDArray[np.bool_]:
    """Return the rows that have the same verdict as a row before.

    That is an operation of the same kind through the same handle by the same groups, if nothing has changed on its file
    in between; or an operation that needs no file.
    """
    table, files, numbers = path.table, _codes(path.table["file"]), np.arange(path.table.num_rows)
    changing = kinds.rows_that(lambda item: item.role in _CHANGING)
    requests = kinds.rows_that(lambda item: item.role is Role.WAIT or item.nonblocking)
    failed = pc.fill_null(pc.match_substring(table["extra"].cast(pa.string()), '"errno"'), False).to_numpy()
    order = np.argsort(files, kind="stable")
    place = np.empty_like(numbers)
    place[order] = numbers
    last_change = np.maximum.accumulate(np.where(changing[order], numbers, -1))[place]
    sessions = pc.add(pc.fill_null(table["session"], -1), 1).to_numpy()
    groups = np.unique(table["groups"].to_numpy(), return_inverse=True)[1].reshape(-1)
    code = _combined([kinds.of, files, sessions, groups, failed.astype(np.int64)])
    alike = np.argsort(code, kind="stable")
    same = np.zeros(numbers.size, bool)
    before, after = alike[:-1], alike[1:]
    same[after] = (code[before] == code[after]) & (last_change[after] < place[before])
    of_no_file = (files == 0) | kinds.rows_that(lambda item: not item.in_session)
    found: NDArray[np.bool_] = ~changing & ~requests & ((same & ~failed) | of_no_file)
    return found


def find_violations(path: WorkloadPath, *, most: int = 100) -> list[Violation]:
    """Return the operations of a path that violate hard dependencies, the first `most` of each kind of check.

    A path that was made of a trace may have some: descriptors that were inherited, formats without opens.
    """
    found = _order(path.table["id"].to_numpy())[:most]
    if path.table.num_rows == 0:
        return found
    kinds = _Kinds.in_path(path)
    repeated, groups = _repeated(path, kinds), path.table["groups"].to_numpy()
    for group in range(path.group_count):
        mine = groups >> group & 1 == 1
        some = _of_group(path, kinds, group, np.flatnonzero(mine & ~repeated), most)
        # Rows that were left out have the verdict of those that were checked: only a wrong one has further mistakes.
        found += _of_group(path, kinds, group, np.flatnonzero(mine), most) if some else some
    return found


def _of_group(path: WorkloadPath, kinds: _Kinds, group: int, rows: NDArray[np.int64], most: int) -> list[Violation]:
    """Return the mistakes in some rows of a group. The other rows must change no state."""
    table, chosen = path.table, pa.array(rows)
    files, extras = (path.words(name)[rows].tolist() for name in ("file", "extra"))
    sessions, ids, groups = (table[name].take(chosen).to_pylist() for name in ("session", "id", "groups"))
    state, found = _State(), list[Violation]()
    for at, kind in enumerate(kinds.of[rows].tolist()):
        operation = kinds.different[kind]
        problem = _take(state, operation, _Row(files[at], extras[at], sessions[at], groups[at]), path.info, group)
        if problem is not None:
            found.append(
                Violation(id=ids[at], group=group, why=f"{operation.name}: {problem}", not_open=problem == _NOT_OPEN)
            )
            if len(found) == most:
                break
    return found
