"""Carrying a path out again and again, on orders: for a tuner, whose runs need not start their ranks each time.

Rank 0 reads an order from standard input, a line of JSON: ``{"set": {NAME: VALUE}, "unset": [NAME]}``. All ranks set
these variables of the environment, and give all other variables their values from the start; the library under them
reads its hints when a file is opened. The ranks carry the path out; rank 0 prints the result, and `END_MARK` with the
exit status that ``pioneer replay`` would have had. When all are ready, before the first order, it prints the mark once.
The end of the input ends them. Ranks that wait for rank 0 sleep.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mpiio_ext.tune.replayed import END_MARK

if TYPE_CHECKING:
    from mpi4py import MPI

_SLEEP_S = 0.001


def _lines(comm: MPI.Intracomm) -> Iterator[str]:
    """Yield the orders that rank 0 reads, on all ranks; collective."""
    while True:
        line = sys.stdin.readline() if comm.rank == 0 else ""
        request = comm.Ibarrier()  # of ranks that share cores with others none may spin
        while not request.Test():
            time.sleep(_SLEEP_S)
        line = comm.bcast(line)
        if not line:
            return
        yield line


def _settle(first: dict[str, str], order: dict[str, Any]) -> None:
    """Give the environment of the start the variables of an order."""
    wanted = {name: value for name, value in first.items() if name not in order["unset"]} | order["set"]
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def obey(comm: MPI.Intracomm, run: Callable[[], int]) -> None:
    """Do all orders; collective, blocking until the input ends.

    Parameters
    ----------
    run : carries the path out on all ranks; the exit status on rank 0.
    """
    first = dict(os.environ)
    _say_end(comm, 0)
    for line in _lines(comm):
        _settle(first, json.loads(line))
        comm.Barrier()
        status = run()
        _say_end(comm, status)


def _say_end(comm: MPI.Intracomm, status: int) -> None:
    comm.Barrier()
    if comm.rank == 0:
        print(f"{END_MARK}{status}", flush=True)
