"""The process that reads sources for :class:`mpiio_ext.analytics.sources.apart.ApartReader`.

It receives path, source, time zone and period of one source after another over a socket, sends back records or an
error, and ends when the socket is closed. Run as ``python -m mpiio_ext.analytics.reader DESCRIPTOR``.
"""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.errors import AnalyticsError


def main(descriptor: int) -> None:
    """Answer requests to read, until no more come."""
    with Connection(descriptor) as parent:
        while True:
            try:
                request = parent.recv()
            except (EOFError, OSError):
                return
            try:
                path, source, time_zone, between = request
                parent.send(sources.read(path, source, time_zone=time_zone, between=between))
            except (AnalyticsError, OSError) as error:
                parent.send(error)


if __name__ == "__main__":
    main(int(sys.argv[1]))
