"""A collective round trip that the library must carry out: ``wheel_smoke.py import|preload`` (scripts/test_mpis.py).

With "import" the library is put under the program by the import here, else it must be under it already. Rank 0 prints
"smoke: ok LIBRARY VERSION".
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

if sys.argv[1] == "import":
    import mpiio_ext

# isort: split
import numpy as np
from mpi4py import MPI

# isort: split
import mpiio_ext
import mpiio_ext.stats

COUNT = 64
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
folder = comm.bcast(tempfile.mkdtemp() if rank == 0 else None)
path = str(Path(folder) / "smoke")
view = MPI.INT.Create_vector(COUNT, 1, size).Create_resized(0, COUNT * size * MPI.INT.size).Commit()
file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_view(rank * MPI.INT.size, MPI.INT, view)
written = np.arange(COUNT, dtype="i") * size + rank
read = np.zeros(COUNT, "i")
file.Write_all(written)
file.Seek(0)
file.Read_all(read)
file.Close()
assert (written == read).all(), read
total = mpiio_ext.stats.total()
assert mpiio_ext.interposed()
assert (total.collective_writes, total.collective_reads, total.native_calls) == (1, 1, 0), total
if rank == 0:
    assert (np.fromfile(path, "i") == np.arange(COUNT * size)).all()
    Path(path).unlink()
    Path(folder).rmdir()
    version = MPI.Get_library_version().split("\n")[0].split(",")[0].strip("\0\t ")
    print("smoke: ok", mpiio_ext.get_library(), " ".join(version.split()), flush=True)
