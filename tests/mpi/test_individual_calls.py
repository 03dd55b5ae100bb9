"""Collective calls in which no rank waits for another: what they move, their errors, and where ranks meet again."""

from __future__ import annotations

import pytest

from support import fuzz
from support.cases import Case, Cases

pytestmark = [pytest.mark.mpi, pytest.mark.both]

# A rank's blocks of 16 B lie in turn with those of the others: an access inside of a block is one piece. What each rank
# accesses in a call is drawn for all ranks alike; `mood` decides for how long calls are of one kind.
RANDOM = """
import sys, time
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, BLOCK, STREAM = MPI.COMM_WORLD, 16, 4096
seed, calls = int(sys.argv[2]), 60
alone = 0
for number in range(6):
    rng, own = np.random.default_rng([seed, number]), np.random.default_rng([seed, number, comm.rank])
    path = f"{sys.argv[1]}/file{number}"
    fh = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    kind = MPI.BYTE.Create_contiguous(BLOCK).Create_resized(0, BLOCK * comm.size).Commit()
    fh.Set_view(comm.rank * BLOCK, MPI.BYTE, kind)
    mine, mood, base, write = np.zeros(STREAM, np.uint8), "one", 0, True
    for call in range(calls):
        if rng.random() < 0.12:
            mood = str(rng.choice(["one", "one", "one", "many", "mixture", "some", "any"]))
            base, write = int(rng.integers(0, 150)), bool(rng.random() < 0.6)
        base += 1
        lengths = {
            "one": np.full(comm.size, BLOCK),
            "any": rng.integers(1, BLOCK + 1, comm.size),
            "many": rng.integers(BLOCK + 1, 400, comm.size),
            "mixture": np.where(rng.random(comm.size) < 0.5, rng.integers(1, BLOCK), rng.integers(20, 400, comm.size)),
            "some": np.where(rng.random(comm.size) < 0.5, 0, rng.integers(1, BLOCK + 1, comm.size)),
        }[mood]
        length, odd = int(lengths[comm.rank]), rng.random()
        at = base * BLOCK
        if mood == "any":
            at = int(own.integers(0, STREAM // BLOCK - 30)) * BLOCK + int(own.integers(0, BLOCK - length + 1))
        if own.random() < 0.05:
            time.sleep(0.002)
        if odd < 0.04:
            fh.Set_view(comm.rank * BLOCK, MPI.BYTE, kind)
        elif odd < 0.06:
            fh.Set_atomicity(True)
        elif odd < 0.08:
            fh.Set_atomicity(False)
        elif odd < 0.1:
            fh.Sync()
        if write:
            data = own.integers(1, 256, length, dtype=np.uint8)
            fh.Write_at_all(at, data)
            mine[at : at + length] = data
        else:
            back = np.zeros(length, np.uint8)
            status = MPI.Status()
            fh.Read_at_all(at, back, status)
            known = status.Get_count(MPI.BYTE)  # the file may end before
            assert np.array_equal(back[:known], mine[at : at + known]) and not mine[at + known : at + length].any()
    alone += mpiio_ext.stats.of(fh).individual_calls
    fh.Close()
    every = comm.gather(mine)
    if comm.rank == 0:
        wanted = np.stack([one.reshape(-1, BLOCK) for one in every], axis=1).ravel()
        found = np.fromfile(path, np.uint8)
        assert np.array_equal(found, wanted[: len(found)]) and not wanted[len(found) :].any()
assert comm.allreduce(alone, MPI.MAX) > 0
print("verified")
"""

# Rank 1 may not write beyond 4 KiB, where its eighth call ends: it fails, and is no call of the others.
ERRORS = """
import resource, signal, sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, wanted, BYTES = MPI.COMM_WORLD, sys.argv[2], 180  # the eighth piece of rank 1 ends at byte 4140
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
fh = MPI.File.Open(comm, sys.argv[1] + "/file", MPI.MODE_CREATE | MPI.MODE_RDWR)
data, codes = np.full(BYTES, comm.rank + 1, np.uint8), []
if comm.rank == 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
for call in range(8):
    try:
        fh.Write_at_all(BYTES * (comm.size * call + comm.rank), data)
        codes.append(0)
    except MPI.Exception as error:
        codes.append(error.Get_error_class())
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
found = [bool(code) for code in codes]
mine = [call == 7 and (comm.rank == 1 or wanted == "every rank") for call in range(8)]
assert found == mine, (comm.rank, codes)
individual = mpiio_ext.stats.of(fh).individual_calls
assert (individual > 0) == (wanted == "own"), individual
fh.Close()
if comm.rank == 0:
    content = np.fromfile(sys.argv[1] + "/file", np.uint8)[: BYTES * comm.size * 7].reshape(-1, BYTES)
    assert (content == (np.arange(len(content)) % comm.size + 1)[:, None]).all()
    print("verified")
"""

# A bad offset of one rank: it meets, and finds that the others have gone.
BAD_OFFSET = """
import sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
fh = MPI.File.Open(comm, sys.argv[1] + "/file", MPI.MODE_CREATE | MPI.MODE_RDWR)
codes = []
for call in range(20):
    try:
        fh.Write_at_all(-1 if (call, comm.rank) == (9, 1) else 4 * (comm.size * call + comm.rank), np.ones(1, np.int32))
        codes.append(0)
    except MPI.Exception as error:
        codes.append(error.Get_error_class())
assert [call for call, code in enumerate(codes) if code] in ([[9]] if comm.rank == 1 else [[], [9]]), codes
fh.Close()
print("verified")
"""

# After a mixture the ranks of the file always meet; a change of the stride, of the kind or of the view is a meeting.
MIXTURE = """
import sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, place = MPI.COMM_WORLD, [0]
fh = MPI.File.Open(comm, sys.argv[1] + "/file", MPI.MODE_CREATE | MPI.MODE_RDWR)
kind = MPI.BYTE.Create_contiguous(8).Create_resized(0, 8 * comm.size).Commit()

def individual(calls, length=8, step=8, access=fh.Write_at_all):
    before = mpiio_ext.stats.of(fh).individual_calls
    for call in range(calls):
        place[0] += step
        access(place[0], np.full(length, 7, np.uint8))
    return mpiio_ext.stats.of(fh).individual_calls - before

fh.Set_view(8 * comm.rank, MPI.BYTE, kind)
assert individual(5) == 0 and individual(6) == 6
assert individual(1, step=80) == 0  # another stride: all meet
assert individual(4) == 0 and individual(3) == 3
assert individual(5, access=fh.Read_at_all) == 0 and individual(2, access=fh.Read_at_all) == 2
fh.Set_view(8 * comm.rank, MPI.BYTE, kind)
assert individual(5) == 0 and individual(6) == 6
comm.Barrier()
individual(1, length=80 if comm.rank == 0 else 8)  # the others have gone, or have not
comm.Barrier()
individual(1, length=80)  # every rank asks: they meet
fh.Set_view(8 * comm.rank, MPI.BYTE, kind)
assert (individual(30) > 0) == (comm.size == 1)
fh.Close()
print("verified")
"""

# What programs do without the sync, barrier, sync that MPI demands: fill values and data of other ranks in turn, and
# reads of what another rank has just written. Ranks come at other times.
ORDER = """
import sys, time
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, n, steps = MPI.COMM_WORLD, int(sys.argv[2]), int(sys.argv[3])
fh = MPI.File.Open(comm, sys.argv[1] + "/file", MPI.MODE_CREATE | MPI.MODE_RDWR)
rng = np.random.default_rng(comm.rank)
for step in range(steps):
    base, next_one = step * n * comm.size, (comm.rank + 1) % comm.size
    if rng.random() < 0.1:
        time.sleep(0.001 * rng.random())
    fh.Write_at_all(base + n * next_one, np.full(n, 255, np.uint8))  # fill values
    fh.Write_at_all(base + n * comm.rank, np.full(n, step % 200 + 1, np.uint8))
    if step % 3 == 0:
        fh.Sync()
    back = np.zeros(n, np.uint8)
    fh.Read_at_all(base + n * next_one, back)
    assert (back == step % 200 + 1).all(), (step, comm.rank, back)
assert mpiio_ext.stats.of(fh).direct_calls == 3 * steps
fh.Close()
print("verified")
"""


def _cases() -> dict[str, Case]:
    found = {}
    for ranks in (1, 2, 3, 5):
        for number in range(fuzz.examples(3)):
            arguments = ("{folder}", str(int(fuzz.seed()) + 100 * ranks + number))
            found[f"random {ranks} {number}"] = Case(text=RANDOM, ranks=ranks, arguments=arguments)
    synchronous = {"MPIOX_HINTS": "*:mpiox_synchronous=true"}
    found["own error"] = Case(text=ERRORS, ranks=3, arguments=("{folder}", "own"))
    found["error of every rank"] = Case(
        text=ERRORS, ranks=3, arguments=("{folder}", "every rank"), environment=synchronous
    )
    found["bad offset"] = Case(text=BAD_OFFSET, ranks=3)
    found |= {f"mixture {ranks}": Case(text=MIXTURE, ranks=ranks) for ranks in (1, 3)}
    found |= {f"order {ranks}": Case(text=ORDER, ranks=ranks, arguments=("{folder}", "64", "300")) for ranks in (2, 4)}
    # Ranks leave a call while rank 1 still accesses its piece.
    slow = {"MPIOX_FAULT": "op=write,rank=1,delay_ms=30,path=*/file;op=read,rank=1,delay_ms=30,path=*/file"}
    for per_node in (1, 2):
        environment = slow | {"MPIOX_RANKS_PER_NODE": str(per_node)}
        found[f"order of slow ranks, {per_node} a node"] = Case(
            text=ORDER, ranks=4, arguments=("{folder}", "65536", "10"), environment=environment
        )
    return found


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    return Cases(_cases(), tmp_path_factory.mktemp("cases"))


@pytest.mark.parametrize("name", _cases())
def test_individual_calls(name: str, cases: Cases) -> None:
    assert "verified" in "".join(cases.result(name).stdout)
