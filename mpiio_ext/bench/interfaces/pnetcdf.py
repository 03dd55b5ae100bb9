"""PnetCDF: CDF-5 files, blocking calls and the nonblocking ones that wait_all or wait combine into one.

A file whose accesses are all independent is in PnetCDF's independent data mode from its definition to its close.

Memory with guard cells is handed over as an MPI datatype (PnetCDF's flexible interface). A nonblocking access is
`iput_vara`, or `iput_varn` where it has several slabs; another access has one slab. The classic formats are big-endian;
a finished file is read at the offsets that its header names.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mpiio_ext.bench.interfaces.base import Interface, OpenFile, RawReader, Reader, Request, Where, tool_difference
from mpiio_ext.bench.interfaces.memory import pack, unpack
from mpiio_ext.bench.kernels.layout import FileLayout
from mpiio_ext.bench.kernels.program import Open, box_part

if TYPE_CHECKING:
    from mpi4py import MPI


def netcdf_name(name: str) -> str:
    """Return an array's name as the netCDF formats allow it."""
    return name.replace("/", ".").replace("#", "_")


class PnetcdfFile(OpenFile):
    """A file of PnetCDF."""

    def __init__(self, where: Where) -> None:
        super().__init__(where)
        self._file: Any = None
        self._variables: dict[str, Any] = {}
        self._unpack: list[tuple[Request, Any]] = []

    def open(self) -> None:
        """Create or open the file."""
        from mpiio_ext.bench import pnetcdf

        where = self.where
        if where.new:
            self._file = pnetcdf.File.create(where.path, where.comm, info=where.hints)
        else:
            self._file = pnetcdf.File.open(where.path, where.comm, info=where.hints, writable=where.mode == "update")

    def define(self) -> None:
        """Define dimensions and variables, or find them."""
        self._find_or_make()
        if self.where.independent:
            self._file.begin_indep_data()

    def _find_or_make(self) -> None:
        layout = self.where.layout
        if not self.where.new:
            self._variables = {v.name: self._file.variable(netcdf_name(v.name)) for v in layout.variables}
            return
        dimensions: dict[tuple[int, int], int] = {}
        for variable in layout.variables:
            ids, seen = [], dict[int, int]()
            for length in variable.shape:
                seen[length] = seen.get(length, 0) + 1
                key = (length, seen[length])
                if key not in dimensions:
                    dimensions[key] = self._file.def_dim(f"d{length}_{seen[length]}", length)
                ids.append(dimensions[key])
            name = netcdf_name(variable.name)
            self._variables[variable.name] = self._file.def_var(name, np.dtype(variable.dtype), ids)
        self._file.enddef()

    def access(self, request: Request) -> None:
        """Post or carry out the access."""
        access, variable = request.access, self._variables[request.variable.name]
        if not (access.collective or access.nonblocking or self.where.independent):
            raise ValueError(f"array {request.variable.name}: PnetCDF kernels access collectively or nonblocking")
        starts, counts = request.arranged
        data = request.memory.view(request.variable.dtype)
        if len(starts) > 1:
            self._post_list(request, variable, data)
            return
        box = None if access.boxes is None else box_part(access.boxes[0], access.slabs[0][1])
        file = self._file
        if access.nonblocking:
            call = file.iput_vara if access.write else file.iget_vara
        elif access.collective:
            call = file.put_vara_all if access.write else file.get_vara_all
        else:
            call = file.put_vara if access.write else file.get_vara
        call(variable, starts[0], counts[0], data, box)

    def _post_list(self, request: Request, variable: Any, data: Any) -> None:
        """Post an access to several slabs; data in boxes are packed."""
        access = request.access
        if not access.nonblocking:
            raise ValueError(f"array {request.variable.name}: PnetCDF kernels access several slabs nonblocking")
        if access.boxes is not None:
            data = pack(request).copy().view(request.variable.dtype)
            if not access.write:
                self._unpack.append((request, data))
        (self._file.iput_varn if access.write else self._file.iget_varn)(variable, *request.arranged, data)

    def _finish(self) -> None:
        for request, data in self._unpack:
            unpack(request, data.view(np.uint8))
        self._unpack = []

    def wait(self, *, collective: bool) -> None:
        """Carry out everything posted."""
        if collective:
            self._file.wait_all()
        else:
            self._file.wait()
        self._finish()

    def sync(self) -> None:
        """ncmpi_sync, which is each rank's own in independent data mode."""
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        try:
            if self._file is not None:
                self._file.close()
        finally:
            self._file = None


def classic_reader(path: Path, layout: FileLayout) -> Reader:
    """Return a reader of a CDF file at the offsets that PnetCDF reads from its header; local."""
    from mpi4py import MPI

    from mpiio_ext.bench import pnetcdf

    with pnetcdf.File.open(path, MPI.COMM_SELF, info={"mpiox_enable": "false"}) as file:
        offsets = {v.name: file.inq_varoffset(file.variable(netcdf_name(v.name))) for v in layout.variables}
    return RawReader(path, offsets, big_endian=True)


class Pnetcdf(Interface):
    """PnetCDF."""

    name: ClassVar[str] = "pnetcdf"
    title: ClassVar[str] = "PnetCDF"
    suffix: ClassVar[str] = ".nc"
    file: ClassVar[type[OpenFile]] = PnetcdfFile

    def absent_reason(self) -> str | None:
        """Name the missing library."""
        from mpiio_ext.bench import pnetcdf

        return pnetcdf.absent_reason()

    def versions(self) -> dict[str, str]:
        """Return PnetCDF's version."""
        from mpiio_ext.bench import pnetcdf

        return {"pnetcdf": pnetcdf.version()}

    def arrange(self, comm: MPI.Intracomm, items: Sequence[Open | Request]) -> None:
        """Make the lists of subarrays, of which a flush may have a million, before the clock starts."""
        del comm
        made: dict[int, Any] = {}
        for item in items:
            if isinstance(item, Request):
                slabs, dimensions = item.access.slabs, len(item.variable.shape)
                if id(slabs) not in made or not slabs:
                    nothing = [((0,) * dimensions, (0,) * dimensions)]
                    made[id(slabs)] = tuple(np.array(part, np.int64) for part in zip(*(slabs or nothing), strict=True))
                item.arranged = made[id(slabs)]

    def reader(self, path: Path, layout: FileLayout) -> Reader:  # noqa: D102
        return classic_reader(path, layout)

    def compare_contents(self, ours: Path, theirs: Path) -> tuple[str, str | None]:
        """Compare by cdfdiff: where arrays begin depends on hints.

        PnetCDF places them at multiples of the striping unit that the MPI library reports. Without cdfdiff the files
        are not compared; their arrays are verified anyway.
        """
        if shutil.which("cdfdiff") is None:
            return "", None
        return "cdfdiff", tool_difference(["cdfdiff", "-q", ours, theirs])
