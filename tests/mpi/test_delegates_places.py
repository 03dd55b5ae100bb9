"""POSIX calls on staged files from handlers, children and threads, before MPI and after it: none hangs or crashes."""

from __future__ import annotations

import pathlib

import pytest

from support.cbuild import mpi_program
from support.launch import mpi_run

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
RANKS, BLOCK = 3, 20000
HINTS = "*:mpiox_delegates=2:mpiox_delegate_cache=4m:mpiox_delegate_page=16k:striping_unit=16k:mpiox_close=staged"


@pytest.mark.both_with("threads-*", "ends-*")
@pytest.mark.slow_with("handler-one node", "children-nodes", "threads-one node", "ends-nodes")
@pytest.mark.parametrize("per_node", [0, 1], ids=["one node", "nodes"])
@pytest.mark.parametrize("place", ["handler", "children", "threads", "ends"])
def test_places(tmp_path: pathlib.Path, place: str, per_node: int) -> None:
    """Each file is whole in the end, by its name."""
    # Slow to write, unless somebody waits for it; after MPI_Finalize nothing is slow.
    env = {
        "MPIOX_HINTS": f"{HINTS}:mpiox_drain_rate=8k",
        "MPIOX_RANKS_PER_NODE": str(per_node),
        "MPIOX_FAULT": "op=write,path=*.staging,delay_ms=100",
    }
    launch = mpi_run(
        [mpi_program("posix_places", "-pthread"), tmp_path, place], RANKS, env=env, preload=True, timeout_s=10
    )
    lines = sorted(line.split() for line in launch.stdout.splitlines())
    assert [(word, int(rank)) for word, rank, _ in lines] == [("ok", rank) for rank in range(RANKS)], launch.describe()
    for path in tmp_path.iterdir():
        assert path.read_bytes() == b"".join(bytes([1 + rank]) * BLOCK for rank in range(RANKS)), path
    assert "has died" not in launch.stderr, launch.describe()
