"""An ordinary mpi4py program: run it by ``python -m mpiio_ext.delegates --split N``.

usage: delegates_split.py FILE
"""

import json
import os
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
for i in range(200):
    file.Write_at((i * comm.size + comm.rank) * 8, b"%08d" % (i * comm.size + comm.rank))
file.Close()
started_as = comm.gather(int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]))
if comm.rank == 0:
    import mpiio_ext.delegates

    group = mpiio_ext.delegates.current()
    with open(sys.argv[1], "rb") as plain:
        right = plain.read() == b"".join(b"%08d" % i for i in range(200 * comm.size))
    seen = {
        "ranks": started_as,
        "right": right,
        "mode": group and group.mode,
        "serving": [each.serving for each in group.delegates] if group else [],
        "ids": [each.pid for each in group.delegates] if group else [],
        "arguments": sys.argv[2:],
    }
    print(json.dumps(seen), flush=True)
