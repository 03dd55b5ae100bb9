"""Reading a source in a process of its own, which a damaged file may crash.

Problem. libhdf5 can crash on a damaged file, and takes the process with it. The store converts logs in workers for that
reason; a page or a command that reads one file has none.

Algorithm. ``python -m`` of this module reads the source and writes the records, or the error, to standard output.

Guarantees. Whatever the file does to the library that reads it, the caller gets records or a :class:`SourceError`.
Starting the process takes about as long as importing h5py and pyarrow does.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from pathlib import Path

from mpiio_ext.analytics.connectors.sources.records import Records, SourceError
from mpiio_ext.analytics.connectors.sources.registry import read

__all__ = ["read_apart"]


def _cause(status: int) -> str:
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def read_apart(
    path: str | Path, source: str | None = None, *, time_zone: str = "UTC", timeout_s: float = 600.0
) -> Records:
    """Read a source as :func:`~.registry.read` does, in a process of its own.

    Parameters
    ----------
    path, source, time_zone
        As of :func:`~.registry.read`.
    timeout_s : float
        The process is given up after so many seconds.

    Raises
    ------
    SourceError
        Nothing of it can be read, the process died, or did not end.
    """
    words = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
    words += ["-m", __name__, str(Path(path).absolute()), source or "", time_zone]
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise SourceError(str(path), 0, f"its reader has not ended after {timeout_s:g} s: it is damaged") from error
    try:
        found = pickle.loads(done.stdout)  # from our own process
    except Exception as error:  # it died before all was written
        raise SourceError(str(path), 0, f"its reader {_cause(done.returncode)}: it is damaged") from error
    if isinstance(found, SourceError):
        raise found
    if not isinstance(found, Records):
        raise SourceError(str(path), 0, "its reader gave no records")
    return found


def _main(path: str, source: str, time_zone: str) -> None:
    found: Records | SourceError
    try:
        found = read(path, source or None, time_zone=time_zone)
    except SourceError as error:
        found = error
    sys.stdout.buffer.write(pickle.dumps(found))


if __name__ == "__main__":
    _main(*sys.argv[1:4])
