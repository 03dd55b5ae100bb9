"""Run kernels by hand: FOLDER WHAT SCALE METHODS KERNEL[:INTERFACE]…, under mpirun; prints a line per row on rank 0.

WHAT: "right", or what goes wrong on one rank: "written" (a byte), "read" (a byte), "foreign" (a byte behind the end),
"raises" (an access), "differs" (the second method's file has another byte in a gap).
"""

from __future__ import annotations

import os
import pathlib
import sys

import mpiio_ext  # noqa: F401  (before MPI: the extension is active)

# isort: split
from mpi4py import MPI

from mpiio_ext.bench import interfaces, kernels
from mpiio_ext.bench.errors import BenchError
from mpiio_ext.bench.execution.case import Case
from mpiio_ext.bench.execution.runner import Runner
from mpiio_ext.bench.interfaces.mpiio import MpiIo, MpiIoFile
from mpiio_ext.bench.methods import parse_method
from mpiio_ext.common.results import measure, with_ratios

comm = MPI.COMM_WORLD
folder, what, scale = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
closed = 0


class Faulty(MpiIoFile):
    """MPI-IO with one fault on the last rank."""

    def access(self, request):
        mine = comm.rank == comm.size - 1 and request.memory.size > 3
        if mine and what == "written" and request.access.write:
            request.memory[3] ^= 1
        super().access(request)
        if mine and what == "read" and not request.access.write:
            request.memory[3] ^= 1
        if mine and what == "raises":  # behind the call, in which the other ranks are too
            raise OSError("made to fail")

    def close(self):
        global closed
        super().close()
        closed += 1
        if comm.rank == 0 and (what == "foreign" or (what == "differs" and closed == 2)):
            with self.where.path.open("r+b") as file:
                file.seek(0, 2)
                file.write(b"x")


class FaultyMpiIo(MpiIo):
    """The interface with the fault; nothing but the comparison can see what "differs" does."""

    file = Faulty

    def reader(self, path, layout):
        reader = super().reader(path, layout)
        if what == "differs":
            reader.foreign = lambda: None
        return reader


def cases():
    for word in sys.argv[5:]:
        name, _, interface = word.partition(":")
        kernel = kernels.create(name, comm.size, preset="quick", scale=scale)
        for each in [interface] if interface else kernel.interfaces:
            way = FaultyMpiIo() if what != "right" and each == "mpiio" else interfaces.REGISTRY[each]
            if way.absent_reason() is None:
                yield Case(program=kernel, interface=way)


runner = Runner(comm=comm, folder=folder, methods=[parse_method(s) for s in sys.argv[4].split(",")])
try:
    for case in cases():
        for repetition in range(2):
            runner.repetition(case, repetition)
except BenchError as error:
    os.write(1, f"rank {comm.rank}: {type(error).__name__}: {error}\n".encode())  # a line as a whole
    comm.Barrier()
    sys.exit(0)
if comm.rank == 0:
    for row in measure(with_ratios(runner.rows)):
        key = row.key
        print(
            "row",
            row.last.workload,
            key.interface,
            key.strategy,
            key.phase,
            key.operation,
            row.last.data_bytes,
            row.compared or "-",
            row.taken_over,
            row.independents,
            flush=True,
        )
