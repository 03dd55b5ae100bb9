"""MPI-IO through mpi4py, as the original codes use it.

A slab that is one run of the file is moved at an explicit offset under the default view. Every other slab has a file
view of subarrays (MPI_Type_create_subarray; MPI_Type_create_struct joins several). If memory has guard cells, the slab
has a type of the same kind there. If the first dimension of an array counts time steps, the view is that of one step,
and the offset is the number of the step. To set a view is a collective call. So all ranks of a shared file set one if
one rank needs one, and all set a new one if one rank needs a new one. The ranks agree on this before the clock starts;
the time of setting the view counts as part of the access. Independent accesses that all ranks make alike have views in
the same way.

A pattern brings its own datatypes. They are built before the clock starts and freed when the file is closed. A pattern
has one view; to set it is a phase of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mpiio_ext.bench import extension
from mpiio_ext.bench.interfaces.base import Interface, OpenFile, RawReader, Reader, Request, Where
from mpiio_ext.bench.kernels.layout import FileLayout, Slab, Variable
from mpiio_ext.bench.kernels.program import Box, Open, box_part
from mpiio_ext.bench.kernels.shapes import Contiguous, free
from mpiio_ext.bench.kernels.views import Plan

if TYPE_CHECKING:
    from mpi4py import MPI


def info_of(hints: dict[str, str]) -> MPI.Info:
    """Return an MPI_Info with the hints; the caller frees it."""
    from mpi4py import MPI

    info = MPI.Info.Create()
    for name, value in hints.items():
        info.Set(name, value)
    return info


def _element(variable: Variable) -> MPI.Datatype:
    from mpi4py import MPI

    kinds = {
        "u1": MPI.UNSIGNED_CHAR,
        "i2": MPI.SHORT,
        "u2": MPI.UNSIGNED_SHORT,
        "i4": MPI.INT,
        "i8": MPI.LONG_LONG,
        "f4": MPI.FLOAT,
        "f8": MPI.DOUBLE,
    }
    return kinds[np.dtype(variable.dtype).str[1:]]


def _parts_type(
    element: MPI.Datatype, parts: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]]
) -> MPI.Datatype:
    """Return a committed type of the subarrays (sizes, subsizes, starts, displacement in bytes)."""
    from mpi4py import MPI

    types = [element.Create_subarray(sizes, subsizes, starts) for sizes, subsizes, starts, _ in parts]
    if len(types) == 1:
        return types[0].Commit()
    joined = MPI.Datatype.Create_struct([1] * len(types), [at for *_, at in parts], types)
    for part in types:
        part.Free()
    return joined.Commit()


def memory_type(variable: Variable, boxes: tuple[Box, ...], slabs: tuple[Slab, ...]) -> MPI.Datatype:
    """Return a committed datatype of the slabs inside their arrays with guard cells; the caller frees it."""
    parts, begin = [], 0
    for box, (_, count) in zip(boxes, slabs, strict=True):
        sizes, starts, subsizes = box_part(box, count)
        parts.append((sizes, subsizes, starts, begin))
        begin += math.prod(sizes) * variable.item_bytes
    return _parts_type(_element(variable), parts)


class _Through:
    """How an access goes through a view.

    Attributes
    ----------
    pieces : it needs a view: more than one piece, or a step of an array of steps
    offset_bytes : of the first piece in the array
    key : (array, shape, slabs) of the view, without the steps; None = the default view
    step : which step
    set_view : the view is to be set before the access
    """

    __slots__ = ("key", "offset_bytes", "pieces", "set_view", "step")

    def __init__(self, request: Request) -> None:
        variable = request.variable
        offsets, lengths = request.access.pieces(variable)
        self.pieces = lengths.size > 1 or variable.steps
        self.offset_bytes = int(offsets[0]) if offsets.size else 0
        self.key: Any = None
        self.step, self.set_view = 0, False

    def use_view(self, request: Request, wanted: bool) -> None:
        """Choose the view."""
        shape, slabs = request.variable.shape, request.access.slabs
        if not wanted:
            return
        if request.variable.steps and slabs:
            self.step = slabs[0][0][0]
            shape, slabs = shape[1:], tuple((start[1:], count[1:]) for start, count in slabs)
        self.key = (request.variable.name, shape, slabs)


def _name_of(request: Request) -> str:
    """Return the name of the function of mpi4py that carries out an access."""
    access = request.access
    name = f"{'i' if access.nonblocking else ''}{'write' if access.write else 'read'}_at"
    return (name + "_all" if access.collective else name).capitalize()


def _is_together(request: Request) -> bool:
    """Return whether every rank that shares the file makes this access, so that its view can be set collectively."""
    return request.shared and (request.access.collective or request.access.alike)


def _any_rank(comm: MPI.Intracomm, mine: list[bool]) -> list[bool]:
    """Return for each place whether any rank has True there; collective, lists of one length."""
    from mpi4py import MPI

    flags = np.array(mine, np.uint8)
    comm.Allreduce(MPI.IN_PLACE, flags, op=MPI.MAX)
    return [bool(flag) for flag in flags]


class MpiIoFile(OpenFile):
    """An MPI file; its datatypes last until it is closed."""

    def __init__(self, where: Where) -> None:
        super().__init__(where)
        self._file: Any = None
        self._info = info_of(where.hints)
        self._types: dict[Hashable, MPI.Datatype] = {}
        self._pending: list[Any] = []
        self._view: tuple[int, MPI.Datatype, MPI.Datatype] | None = None
        self._calls: list[tuple[int, list[Any]]] = []

    def build(self, requests: Sequence[Request]) -> None:
        """Build the datatypes of a pattern, and the arguments of its calls."""
        for request in requests:
            plan, call = request.access.view, request.access.call
            if plan is None or call is None or request.access.nonblocking:
                raise ValueError(f"array {request.variable.name}: a phase in parts has blocking accesses with a view")
            etype = self._own_view(plan)
            memory = request.memory[:]  # the bytes of a call are together, made here in one go
            if isinstance(call.memory, Contiguous):
                message = [memory, call.memory.count, etype]
            else:
                message = [memory, 1, self._kept(id(call.memory), call.memory.datatype)]
            self._calls.append((call.offset_elements, message))

    def _own_view(self, plan: Plan) -> MPI.Datatype:
        """Return the elementary type of a pattern's view, which is the same for all its accesses."""
        if self._view is None:
            etype = self._kept("element", plan.element.datatype)
            self._view = plan.displacement_bytes, etype, self._kept("file", plan.file.datatype)
        return self._view[1]

    def open(self) -> None:
        """Open with the hints."""
        from mpi4py import MPI

        mode = {
            "create": MPI.MODE_RDWR | MPI.MODE_CREATE,
            "write": MPI.MODE_WRONLY | MPI.MODE_CREATE,
            "read": MPI.MODE_RDONLY,
            "update": MPI.MODE_RDWR,
        }[self.where.mode]
        self._file = MPI.File.Open(self.where.comm, str(self.where.path), mode, self._info)

    def define(self) -> None:
        """Nothing: the places are known."""

    def select(self, requests: Sequence[Request]) -> None:
        """Set a pattern's view."""
        del requests
        if self._view is not None:
            displacement_bytes, etype, filetype = self._view
            self._file.Set_view(displacement_bytes, etype, filetype, "native")

    def _kept(self, key: Hashable, make: Callable[[], MPI.Datatype]) -> MPI.Datatype:
        if key not in self._types:
            self._types[key] = make()
        return self._types[key]

    def _place(self, request: Request) -> int:
        """Set the view that an access needs and return its offset there, in elements of the view."""
        from mpi4py import MPI

        access, variable = request.access, request.variable
        plan: _Through = request.arranged
        if plan.key is None:
            if plan.set_view:
                self._file.Set_view(0, MPI.BYTE, MPI.BYTE, "native")
            return variable.offset_bytes + plan.offset_bytes
        if plan.set_view:
            _, shape, slabs = plan.key
            element = _element(variable)
            filetype = self._kept(plan.key, lambda: self._file_type(element, shape, slabs))
            self._file.Set_view(variable.offset_bytes, element, filetype, "native")
        return int(plan.step) * access.elements

    @staticmethod
    def _file_type(element: MPI.Datatype, shape: tuple[int, ...], slabs: tuple[Slab, ...]) -> MPI.Datatype:
        if not slabs:
            return element.Create_contiguous(1).Commit()
        return _parts_type(element, [(shape, count, start, 0) for start, count in slabs])

    def _message(self, request: Request) -> list[Any]:
        access, variable = request.access, request.variable
        element = _element(variable)
        if access.boxes is None:
            return [request.memory, access.elements, element]
        key = (access.boxes, tuple(count for _, count in access.slabs), variable.dtype)
        kind = self._kept(key, lambda: memory_type(variable, access.boxes or (), access.slabs))
        return [request.memory, 1, kind]

    def access(self, request: Request) -> None:
        """Carry out the access by the function that its step names; nothing to move is nothing to do, alone."""
        result = getattr(self._file, _name_of(request))(self._place(request), self._message(request))
        if request.access.nonblocking:
            self._pending.append(result)

    def access_all(self, requests: Sequence[Request]) -> None:
        """Make the calls of a pattern, and nothing else, because a pattern may have many short calls."""
        first: Exception | None = None
        call = getattr(self._file, _name_of(requests[0]))
        for offset, message in self._calls:
            try:
                call(offset, message)
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    def wait(self, *, collective: bool) -> None:
        """Wait for every request."""
        from mpi4py import MPI

        del collective
        MPI.Request.Waitall(self._pending)
        self._pending = []

    def statistics(self) -> dict[str, Any] | None:
        """Return the counters of this file."""
        return extension.file_statistics(self._file)

    def sync(self) -> None:
        """MPI_File_sync."""
        self._file.Sync()

    def close(self) -> None:
        """Close the file and free types and hints."""
        from mpi4py import MPI

        try:
            if self._file is not None and self._file != MPI.FILE_NULL:
                self._file.Close()
        finally:
            self._file = None
            for datatype in self._types.values():
                free(datatype)
            self._types, self._view, self._calls = {}, None, []
            if self._info:
                self._info.Free()


class MpiIo(Interface):
    """MPI-IO."""

    name: ClassVar[str] = "mpiio"
    title: ClassVar[str] = "MPI-IO"
    suffix: ClassVar[str] = ".dat"
    file: ClassVar[type[OpenFile]] = MpiIoFile

    def arrange(self, comm: MPI.Intracomm, items: Sequence[Open | Request]) -> None:
        """Give every access its view, alike on all ranks that share the file."""
        requests = [item for item in items if isinstance(item, Request)]
        together = [request for request in requests if _is_together(request)]
        for request in requests:
            request.arranged = _Through(request)
        for request, needed in zip(together, _any_rank(comm, [r.arranged.pieces for r in together]), strict=True):
            request.arranged.use_view(request, needed)
        in_force: dict[int, Any] = {}
        for item in items:
            if isinstance(item, Open):
                in_force[item.file] = None
                continue
            plan, number = item.arranged, item.access.file
            if not _is_together(item):
                plan.use_view(item, plan.pieces)
                if item.shared and (plan.key is not None or in_force[number] is not None):
                    raise ValueError(f"array {item.variable.name}: an independent access of a shared file has no view")
            plan.set_view = plan.key != in_force[number]
            in_force[number] = plan.key
        for request, change in zip(together, _any_rank(comm, [r.arranged.set_view for r in together]), strict=True):
            request.arranged.set_view = change

    def reader(self, path: Path, layout: FileLayout) -> Reader:  # noqa: D102
        return RawReader(path, {v.name: v.offset_bytes for v in layout.variables}, layout=layout)
