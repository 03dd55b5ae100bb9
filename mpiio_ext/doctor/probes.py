"""Questions that are answered in a child process, because they may hang, crash, or be ended by MPI.

Run as a script: ``probes.py DESCRIPTOR ALARM_S QUESTION [WORD]...``. The script writes each fact to the descriptor as
soon as it knows it, one JSON object a line, so that the facts count even if the process crashes later. After ALARM_S
seconds an alarm ends the process, in case its parent does not.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

_VERSION_BYTES = 8192


class Probe:
    """The answers. Every public method but `report` is a question.

    Parameters
    ----------
    descriptor : where answers are written to.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def report(self, **values: Any) -> None:
        """Write down what is known."""
        os.write(self._descriptor, json.dumps(values).encode() + b"\n")

    def library_version(self, path: str) -> None:
        """Report the version of an MPI library, also before MPI_Init."""
        library = ctypes.CDLL(path, mode=os.RTLD_GLOBAL | os.RTLD_NOW)
        text, length = ctypes.create_string_buffer(_VERSION_BYTES), ctypes.c_int(0)
        library.MPI_Get_library_version(text, ctypes.byref(length))
        self.report(version=text.value.decode(errors="replace").strip())
        if hasattr(library, "MPIX_Query_cuda_support"):  # of Open MPI and MPICH, before MPI_Init, too
            self.report(cuda=bool(library.MPIX_Query_cuda_support()))

    def extension(self) -> None:
        """Load the library and report its version and family."""
        import mpiio_ext

        self.report(package=mpiio_ext.__version__)
        from mpiio_ext._binding import ffi, lib

        version, family = (ffi.string(text).decode() for text in (lib.mpiio_ext_version(), lib.mpiio_ext_mpi_family()))
        self.report(version=version, family=family)

    def layout(self, path: str) -> None:
        """Report file system and free space of a path, or of the next existing folder above it."""
        from mpiio_ext.doctor.storage import folder_of, nearest, refusal
        from mpiio_ext.errors import FileSystemError
        from mpiio_ext.layout import inspect

        wanted = Path(path)
        place, folder = nearest(wanted), folder_of(wanted)
        self.report(place=str(place), there=place == wanted.absolute(), folder=str(folder))
        rights = os.R_OK | (os.X_OK if place.is_dir() else 0)
        if not os.access(place, rights):  # the file system would still return its name, but no program gets further
            self.report(errno=errno.EACCES, reason=os.strerror(errno.EACCES))
            return
        try:
            self.report(layout=inspect(str(place)).as_dict())
        except FileSystemError as error:
            self.report(errno=error.errno, reason=error.strerror)
            return
        room = os.statvfs(folder)
        self.report(free_bytes=room.f_bavail * room.f_frsize)
        self.report(refused=refusal(folder))

    def hints(self) -> None:
        """Report what is wrong with the hints in files and variables."""
        from mpiio_ext.hints import problems

        self.report(problems=list(problems()))

    def software(self) -> None:
        """Report the versions of packages, whether HDF5 and netCDF are parallel, and which MPI libraries they load."""
        import importlib.metadata

        for name in ("mpiio_ext", "mpi4py", "numpy", "h5py", "netCDF4"):
            try:
                self.report(**{name: importlib.metadata.version(name)})
            except importlib.metadata.PackageNotFoundError:
                self.report(**{name: None})
        self._mpi_packages()
        from mpiio_ext.doctor.linker import loaded_mpi

        self.report(mpi_libraries=loaded_mpi())

    def _mpi_packages(self) -> None:
        import mpiio_ext  # noqa: F401  (as a program would import it: first)
        import mpi4py  # isort: skip

        mpi4py.rc.initialize = mpi4py.rc.finalize = False
        try:
            import h5py

            self.report(h5py_parallel=bool(h5py.get_config().mpi), hdf5=h5py.version.hdf5_version)
        except Exception as error:
            self.report(h5py_error=f"{type(error).__name__}: {error}")
        try:
            import netCDF4

            self.report(netcdf_parallel=bool(netCDF4.__has_parallel4_support__), netcdf=netCDF4.__netcdf4libversion__)
        except Exception as error:
            self.report(netcdf_error=f"{type(error).__name__}: {error}")

    def job(self, path: str, write: str, spawn: str) -> None:
        """Be a rank of the job, and report what a rank observes; see `mpiio_ext.doctor.rank`."""
        from mpiio_ext.doctor import rank

        rank.take_part(self.report, path, write == "1", spawn == "1")


def _main() -> None:
    sys.path.pop(0)  # this folder, whose modules have common names
    descriptor, alarm_s, question, *words = sys.argv[1:]
    signal.alarm(int(alarm_s))
    getattr(Probe(int(descriptor)), question)(*words)


if __name__ == "__main__":
    _main()
