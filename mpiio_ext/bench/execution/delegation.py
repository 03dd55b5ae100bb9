"""Starting the job's delegates, outside any measured time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mpiio_ext.bench.execution.agreement import agree
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from mpi4py import MPI


def start_delegates(comm: MPI.Intracomm, hints: Mapping[str, str], folder: Path) -> str:
    """Start the delegates; return a description, "none: REASON" if there are none, "" if none are wanted; collective.

    The delegates start when all ranks open a file with their hints together, which not every pattern or kernel does.

    Raises
    ------
    BenchError
        The file that is opened for it cannot be; on all ranks.
    """
    from mpi4py import MPI

    from mpiio_ext import stats

    text, error = "", None
    path = folder / "delegates"
    info = MPI.Info.Create()
    for name, value in hints.items():
        info.Set(name, value)
    try:
        file = MPI.File.Open(comm, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR, info)
        text = stats.of(file).delegation
        file.Close()
        if comm.rank == 0:
            path.unlink()
    except (MPI.Exception, OSError, ArgumentError) as caught:
        error = caught
    info.Free()
    agree(comm, error, "starting delegates")
    return text
