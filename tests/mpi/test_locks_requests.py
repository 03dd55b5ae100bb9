"""The lock model's file-system requests are those that collective writes make: number, sizes and rounds.

The model (mpiio_ext.partitioning.locks) makes its requests from the plan alone. Here the library writes a region whole,
on this machine's file system that is said to lock like Lustre, and its statistics count.
"""

from __future__ import annotations

import json

import pytest

from mpiio_ext.partitioning import Geometry
from mpiio_ext.partitioning.locks import lustre, simulate
from support import launch
from support.partition_methods import METHODS

pytestmark = pytest.mark.mpi

KIB, MIB = 2**10, 2**20
STRIPE, WINDOW, RANKS = 64 * KIB, MIB, 4
#: First byte, bytes of the region, servers, aggregators.
REGIONS = ((0, 32 * MIB, 3, 2), (0, 8 * MIB, 4, 4), (5000, 8 * MIB - 12, 3, 2))

PROGRAM = """
import json, sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, path = MPI.COMM_WORLD, sys.argv[1]
methods, regions, stripe, window = json.loads(sys.argv[2])
for number, (start, size, servers, aggregators) in enumerate(regions):
    for method in methods:
        for stripes in ("enable", "disable"):
            info = MPI.Info.Create()
            for name, value in {
                "mpiox_partition": method, "mpiox_exchange": "two_phase", "mpiox_stripe_size_io": stripes,
                "striping_unit": str(stripe), "striping_factor": str(servers), "cb_nodes": str(aggregators),
                "cb_buffer_size": str(window), "mpiox_stats": "enable", "cb_write": "enable",
            }.items():
                info.Set(name, value)
            fh = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR, info)
            piece = size // (8 * comm.size)
            tile = MPI.BYTE.Create_contiguous(piece).Create_resized(0, piece * comm.size).Commit()
            fh.Set_view(start + comm.rank * piece, MPI.BYTE, tile)
            fh.Write_all(np.full(8 * piece, comm.rank + 1, np.uint8))
            stats = mpiio_ext.stats.of(fh)
            sizes = comm.allreduce(np.array(stats.request_size_log2, dtype=np.int64))
            told = {
                "requests": comm.allreduce(stats.write_requests), "reads": comm.allreduce(stats.read_requests),
                "bytes": comm.allreduce(stats.write_request_bytes), "rounds": stats.rounds,
                "method": stats.partition, "sizes": sizes.tolist(),
            }
            fh.Close()
            tile.Free()
            if comm.rank == 0:
                print("RESULT", json.dumps([[number, method, stripes == "enable"], told]), flush=True)
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str, bool], dict[str, object]]:
    """Write every region by every method, with requests of a stripe and of a window; return what was counted."""
    folder = tmp_path_factory.mktemp("requests")
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    wishes = json.dumps([METHODS, REGIONS, STRIPE, WINDOW])
    run = launch.python_run(
        [str(program), str(folder / "file"), wishes], RANKS, env={"MPIOX_LOCKS": "server"}, timeout_s=240
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    return {tuple(key): told for key, told in (json.loads(line.removeprefix("RESULT ")) for line in lines)}


@pytest.mark.parametrize("stripe_size_io", [True, False], ids=["stripes", "windows"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("region", range(len(REGIONS)))
def test_requests(
    counted: dict[tuple[int, str, bool], dict[str, object]], region: int, method: str, stripe_size_io: bool
) -> None:
    start, size, servers, aggregators = REGIONS[region]
    geometry = Geometry(
        start_bytes=start,
        end_bytes=start + size // (8 * RANKS) * (8 * RANKS),
        stripe_size_bytes=STRIPE,
        servers=servers,
        aggregators=aggregators,
    )
    model = simulate(geometry, method, file_system=lustre(), window_bytes=WINDOW, stripe_size_io=stripe_size_io)
    told = counted[region, method, stripe_size_io]
    assert (told["method"], told["reads"]) == (method, 0)
    assert told["bytes"] == geometry.end_bytes - geometry.start_bytes
    assert told["requests"] == int(model.request_sizes.sum())
    assert told["rounds"] == model.rounds
    length = max(len(model.request_sizes), len(told["sizes"]))  # type: ignore[arg-type]
    counts = [*model.request_sizes.tolist(), *[0] * (length - len(model.request_sizes))]
    assert [*told["sizes"], *[0] * (length - len(told["sizes"]))] == counts  # type: ignore[misc,arg-type]


@pytest.mark.both
def test_requests_by_hand(counted: dict[tuple[int, str, bool], dict[str, object]]) -> None:
    """32 MiB: a window of 1 MiB is one request of a contiguous domain; transpose has a stripe at a time."""
    assert counted[0, "aligned", False]["requests"] == 32
    assert counted[0, "transpose", False]["requests"] == 32 * MIB // STRIPE
    assert {counted[0, method, True]["requests"] for method in METHODS} == {32 * MIB // STRIPE}
