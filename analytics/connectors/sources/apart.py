"""Reading sources in a process of its own, which a damaged file may crash.

Problem. libhdf5 can crash on a damaged file, and takes the process with it. The store converts logs in workers for that
reason; a page or a command that reads one file has none.

Algorithm. ``python -m mpiio_ext.analytics.reader`` reads one source after another, as it is told over a pair of
sockets, and sends back the records, or the error. It is started with the first source, ends with its owner, and is
started again after a file has crashed it.

Guarantees. Whatever the file does to the library that reads it, the caller gets records or a :class:`SourceError`.
Starting the process takes about as long as importing h5py and pyarrow does, once.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import weakref
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from mpiio_ext.analytics.connectors.sources.records import Records, SourceError
from mpiio_ext.analytics.errors import AnalyticsError

__all__ = ["ApartReader", "crashes", "read_apart"]

#: What the process runs.
_READER = "mpiio_ext.analytics.reader"
#: What files of HDF5 begin with.
_HDF5 = b"\x89HDF\r\n\x1a\n"
#: Seconds that the process has for its end after it was told.
_END_S = 5.0


def crashes(path: str | Path) -> bool:
    """Return whether a file is of a kind whose library damaged files may crash: HDF5."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(_HDF5)) == _HDF5
    except OSError:  # whoever reads it says so
        return False


def _cause(status: int) -> str:
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _end(process: subprocess.Popen[bytes], mine: Connection) -> None:
    """End the process: it leaves when its socket is closed."""
    mine.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class ApartReader:
    """Reads sources in a process of its own. It ends with the ``with`` statement, or with this object."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._mine: Connection | None = None
        self._finalizer: Any = None

    def __enter__(self) -> ApartReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process, if there is one."""
        if self._finalizer is not None:
            self._finalizer()
        self._process = self._mine = self._finalizer = None

    def start(self) -> None:
        """Start the process, unless it is there; it imports what it needs while the caller goes on."""
        if self._process is not None:
            return
        mine, theirs = Pipe()
        words = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
        words += ["-m", _READER, str(theirs.fileno())]
        with theirs:
            try:
                self._process = subprocess.Popen(words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
            except OSError as error:
                mine.close()
                raise AnalyticsError(f"no process can be started to read sources in: {error}") from error
        self._mine = mine
        self._finalizer = weakref.finalize(self, _end, self._process, mine)

    def read(
        self,
        path: str | Path,
        source: str | None = None,
        *,
        time_zone: str = "UTC",
        between: tuple[float, float] | None = None,
        timeout_s: float = 600.0,
    ) -> Records:
        """Read a source as :func:`~.registry.read` does.

        Parameters
        ----------
        path, source, time_zone
            As of :func:`~.registry.read`.
        between : (float, float), optional
            The period that is read, of a source of which a part can be; in seconds since 1970 UTC.
        timeout_s : float
            The process is given up after so many seconds.

        Raises
        ------
        SourceError
            Nothing of it can be read, the process died, or did not end.
        AnalyticsError
            A package is missing, or no process can be started.
        """
        if self._process is not None and self._process.poll() is not None:  # somebody has killed it
            self.close()
        self.start()
        assert self._process is not None and self._mine is not None
        process, found = self._process, None
        with contextlib.suppress(OSError, EOFError):  # it has died: see below
            self._mine.send((str(Path(path).absolute()), source, time_zone, between))
            if not self._mine.poll(timeout_s):
                process.kill()
                self.close()
                raise SourceError(str(path), 0, f"its reader has not ended after {timeout_s:g} s: it is damaged")
            found = self._mine.recv()
        if isinstance(found, Exception):
            raise found
        if not isinstance(found, Records):
            self.close()
            raise SourceError(str(path), 0, f"its reader {_cause(process.returncode)}: it is damaged")
        return found


def read_apart(
    path: str | Path, source: str | None = None, *, time_zone: str = "UTC", timeout_s: float = 600.0
) -> Records:
    """Read one source in a process of its own; see :meth:`ApartReader.read`.

    Raises
    ------
    SourceError
        Nothing of it can be read, the process died, or did not end.
    """
    with ApartReader() as reader:
        return reader.read(path, source, time_zone=time_zone, timeout_s=timeout_s)
