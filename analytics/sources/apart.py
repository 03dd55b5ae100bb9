"""Reading sources in a process of its own, which a damaged file may crash.

Problem. libhdf5 can crash on a damaged file, and takes the process with it. The store converts logs in workers for that
reason; a page or a command that reads one file has none.

Algorithm. ``python -m mpiio_ext.analytics.reader`` reads one source after another, by orders over a pair of sockets,
and sends back the records, or the error. It is started with the first source, ends with its owner, and is started again
after a file has crashed it.

Guarantees. Whatever the file does to the library that reads it, the caller gets records or a :class:`SourceError`.
Starting the process takes about as long as importing h5py and pyarrow does, once.
"""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

from mpiio_ext.analytics import readerprocess
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.sources.records import Records, SourceError


def _cause(status: int) -> str:
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


class ApartReader:
    """Reads sources in a process of its own. It ends with the ``with`` statement, or with this object.

    Parameters
    ----------
    started : readerprocess.Started, optional
        A process that is there already; default: one is started with the first source.
    """

    def __init__(self, started: readerprocess.Started | None = None) -> None:
        self._started = started

    def __enter__(self) -> ApartReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, if there is one."""
        if self._started is not None:
            self._started.end()
        self._started = None

    def _running(self) -> readerprocess.Started:
        """Return the process; start a new one if there is none, or it was killed."""
        if self._started is not None and self._started.process.poll() is not None:
            self.close()
        if self._started is None:
            try:
                self._started = readerprocess.start()
            except OSError as error:
                raise AnalyticsError(f"no process can be started to read sources in: {error}") from error
        return self._started

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
            No part of the file can be read, or the process died or did not end in time.
        AnalyticsError
            A package is missing, or the process cannot be started.
        """
        started, found = self._running(), None
        with contextlib.suppress(OSError, EOFError):  # it has died: see below
            started.socket.send((str(Path(path).absolute()), source, time_zone, between))
            if not started.socket.poll(timeout_s):
                started.process.kill()
                self.close()
                raise SourceError(str(path), 0, f"its reader has not ended after {timeout_s:g} s: it is damaged")
            found = started.socket.recv()
        if isinstance(found, Exception):
            raise found
        if not isinstance(found, Records):
            self.close()
            raise SourceError(str(path), 0, f"its reader {_cause(started.process.returncode)}: it is damaged")
        return found


def read_apart(
    path: str | Path, source: str | None = None, *, time_zone: str = "UTC", timeout_s: float = 600.0
) -> Records:
    """Read one source in a process of its own; see :meth:`ApartReader.read`.

    Raises
    ------
    SourceError
        No part of the file can be read, or the process died or did not end in time.
    """
    with ApartReader() as reader:
        return reader.read(path, source, time_zone=time_zone, timeout_s=timeout_s)
