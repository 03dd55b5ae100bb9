"""The bytes that the requests of a pattern move: known beforehand, and had without computing while the clock runs.

Problem.    What is written must depend on its place, so that a displaced byte is found; making it costs as much as
            writing it.
Algorithm.  One buffer holds the bench's values (mpiio_ext.bench.execution.values) over a period that is a prime number
            of bytes, and a request more. The data of a request is the part of it that begins at the place modulo the
            period: a slice.
Guarantees. Data that lies at a wrong place is found unless it is off by a multiple of the period, which takes
            so many requests of any size that the period does not divide. Files of other ranks and other runs have other
            bytes. No byte is zero.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.bench.execution.values import POISON, fill_range, salt_of_run
from mpiio_ext.bench.kernels.shapes import Bytes

#: A prime number.
PERIOD_BYTES = 1_048_583
#: Of the file of the next rank; it shares no factor with the period.
_FILE_STEP = 7919


class Content:
    """Bytes of one run.

    Parameters
    ----------
    request_bytes : of one request
    run : number of the run
    """

    def __init__(self, request_bytes: int, run: int) -> None:
        self._request_bytes = request_bytes
        period = np.empty(PERIOD_BYTES, np.uint8)
        fill_range(period, 0)
        period ^= np.uint8(salt_of_run(run))
        self._base: Bytes = np.resize(period, PERIOD_BYTES + request_bytes)
        self._poison = np.uint8(POISON ^ salt_of_run(run))

    def request(self, file: int, offset_bytes: int) -> Bytes:
        """Return the bytes of the request that begins there; not to be written to.

        Parameters
        ----------
        file : number of the file; 0 if all ranks have one
        """
        begin = (offset_bytes + file * _FILE_STEP) % PERIOD_BYTES
        return self._base[begin : begin + self._request_bytes]

    def poison(self, memory: Bytes) -> None:
        """Fill memory with bytes that occur in no request."""
        memory[:] = self._poison
