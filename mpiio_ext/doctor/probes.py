"""Questions that are answered in a child process, because they may hang, crash, or be ended by MPI.

Run as a script: ``probes.py DESCRIPTOR ALARM_S QUESTION [WORD]...``. What is learnt is written to the descriptor, one
JSON object a line, at once: all that was learnt before an end counts. An alarm ends the process when nobody else does.
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

_SYS_IO_URING_SETUP = 425  # the same on all processors that have been added since
_IO_URING_PARAMS_BYTES = 120
_VERSION_BYTES = 8192


def _errno_of(result: int) -> int:
    return ctypes.get_errno() if result < 0 else 0


class Probe:
    """The answers. Every public method but `tell` is a question.

    Parameters
    ----------
    descriptor : where answers are written to.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def tell(self, **values: Any) -> None:
        """Write down what is known."""
        os.write(self._descriptor, json.dumps(values).encode() + b"\n")

    def library_version(self, path: str) -> None:
        """Tell the version of an MPI library. It may be asked for before MPI_Init."""
        library = ctypes.CDLL(path, mode=os.RTLD_GLOBAL | os.RTLD_NOW)
        text, length = ctypes.create_string_buffer(_VERSION_BYTES), ctypes.c_int(0)
        library.MPI_Get_library_version(text, ctypes.byref(length))
        self.tell(version=text.value.decode(errors="replace").strip())

    def extension(self) -> None:
        """Load the library and tell what it says about itself."""
        import mpiio_ext

        self.tell(package=mpiio_ext.__version__, path=str(mpiio_ext.get_library()))
        from mpiio_ext._binding import ffi, lib

        self.tell(
            version=ffi.string(lib.mpiio_ext_version()).decode(), family=ffi.string(lib.mpiio_ext_mpi_family()).decode()
        )
        try:
            ctypes.CDLL("liburing.so.2")
            self.tell(liburing=True)
        except OSError:
            self.tell(liburing=False)

    def layout(self, path: str, ranks: str, nodes: str) -> None:
        """Tell what the file system says of a path, or of the next folder above that is there, and what follows."""
        from mpiio_ext.doctor.storage import decide, folder_of, nearest
        from mpiio_ext.errors import FileSystemError
        from mpiio_ext.layout import inspect

        wanted = Path(path)
        place = nearest(wanted)
        self.tell(place=str(place), there=place == wanted.absolute(), folder=str(folder_of(wanted)))
        rights = os.R_OK | (os.X_OK if place.is_dir() else 0)
        if not os.access(place, rights):  # the file system would still tell its name, but no program gets further
            self.tell(errno=errno.EACCES, reason=os.strerror(errno.EACCES))
            return
        try:
            found = inspect(str(place))
            self.tell(layout=found.as_dict())
            self.tell(auto=decide(found, int(ranks), int(nodes)))
        except FileSystemError as error:
            self.tell(errno=error.errno, reason=error.strerror)

    def folder(self, path: str) -> None:
        """Tell how much room a folder's file system has, and whether a file can be made in it."""
        import tempfile

        room = os.statvfs(path)
        self.tell(free_bytes=room.f_bavail * room.f_frsize, total_bytes=room.f_blocks * room.f_frsize)
        try:
            with tempfile.TemporaryFile(dir=path) as file:
                file.write(b"x")
                file.flush()
            self.tell(writable="")
        except OSError as error:
            self.tell(writable=error.strerror)

    def hints(self) -> None:
        """Tell what is wrong with the hints in files and variables."""
        from mpiio_ext.hints import problems

        self.tell(problems=list(problems()))

    def software(self) -> None:
        """Tell the versions of packages, whether HDF5 and netCDF are parallel, and which MPI libraries they load."""
        import importlib.metadata

        for name in ("mpiio_ext", "mpi4py", "numpy", "h5py", "netCDF4"):
            try:
                self.tell(**{name: importlib.metadata.version(name)})
            except importlib.metadata.PackageNotFoundError:
                self.tell(**{name: None})
        self._mpi_packages()
        loaded = {
            line.split()[-1]
            for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
            if "/libmpi" in line and "/libmpiio_ext" not in line
        }
        self.tell(mpi_libraries=sorted(path for path in loaded if _is_mpi(path)))

    def _mpi_packages(self) -> None:
        import mpiio_ext  # noqa: F401  (as a program would import it: first)
        import mpi4py  # isort: skip

        mpi4py.rc.initialize = mpi4py.rc.finalize = False
        try:
            import h5py

            self.tell(h5py_parallel=bool(h5py.get_config().mpi), hdf5=h5py.version.hdf5_version)
        except Exception as error:
            self.tell(h5py_error=f"{type(error).__name__}: {error}")
        try:
            import netCDF4

            self.tell(netcdf_parallel=bool(netCDF4.__has_parallel4_support__), netcdf=netCDF4.__netcdf4libversion__)
        except Exception as error:
            self.tell(netcdf_error=f"{type(error).__name__}: {error}")

    def io_uring(self) -> None:
        """Tell the error number by which the kernel refuses an io_uring, 0 for none."""
        process = ctypes.CDLL(None, use_errno=True)
        parameters = ctypes.create_string_buffer(_IO_URING_PARAMS_BYTES)
        self.tell(errno=_errno_of(process.syscall(ctypes.c_long(_SYS_IO_URING_SETUP), 1, parameters)))

    def vm_readv(self) -> None:
        """Tell the error number by which a process may not read a sibling's memory, 0 for none."""
        from mpiio_ext.doctor.reach import read_errno

        word = ctypes.create_string_buffer(b"shared memory")
        self._beside(lambda sibling: {"errno": read_errno(sibling, ctypes.addressof(word), word.raw)})

    def sharing(self) -> None:
        """Tell why a process cannot map memory that a sibling has made, "" where it can."""
        try:
            number = os.memfd_create("mpiox", os.MFD_CLOEXEC)
        except OSError as error:
            self.tell(memfd=f"memfd_create: {error.strerror}")
            return
        os.write(number, b"shared memory")

        def look(sibling: int) -> dict[str, Any]:
            os.close(number)
            try:
                other = os.open(f"/proc/{sibling}/fd/{number}", os.O_RDWR)
                return {"memfd": "" if os.pread(other, 64, 0) == b"shared memory" else "another file is found"}
            except OSError as error:
                return {"memfd": f"/proc/PID/fd: {error.strerror}"}

        self._beside(look)

    def _beside(self, act: Any) -> None:
        """Let one child wait, and let another act on it."""
        sibling = os.fork()
        if sibling == 0:
            signal.pause()
            os._exit(0)
        actor = os.fork()
        if actor == 0:
            self.tell(**act(sibling))
            os._exit(0)
        os.waitpid(actor, 0)
        os.kill(sibling, signal.SIGKILL)
        os.waitpid(sibling, 0)

    def job(self, path: str, write: str, spawn: str) -> None:
        """Be a rank of the job, and tell what is seen from there; see `mpiio_ext.doctor.rank`."""
        from mpiio_ext.doctor import rank

        rank.take_part(self.tell, path, write == "1", spawn == "1")


def _is_mpi(path: str) -> bool:
    name = Path(path).name
    return name.startswith(("libmpi.so", "libmpich.so", "libmpi_abi.so"))


def _main() -> None:
    sys.path.pop(0)  # this folder, whose modules have common names
    descriptor, alarm_s, question, *words = sys.argv[1:]
    signal.alarm(int(alarm_s))
    getattr(Probe(int(descriptor)), question)(*words)


if __name__ == "__main__":
    _main()
