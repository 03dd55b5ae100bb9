"""Views whose descriptions are gigabytes in sum, between (pretended) nodes: accessed as any other, never an error."""

from __future__ import annotations

import pathlib
import re

import pytest

from support.cbuild import mpi_program
from support.launch import json_lines, mpi_run

pytestmark = [pytest.mark.mpi, pytest.mark.both]

RANKS = 4
#: Members of each rank's file type. The long ones are more than 2 GiB in sum: once the end of every collective.
SHORT, LONG = 100_000, 6_500_000
#: KiB: what the long ones take (12.5 GiB, most of it while types are decoded), and something for others.
NEEDED = 16 << 20
ACCESSED = 30_000


def available_kib() -> int:
    """Return the memory that this machine has left."""
    found = re.search(r"^MemAvailable: +(\d+) kB", pathlib.Path("/proc/meminfo").read_text(encoding="ascii"), re.M)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("members", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
def test_long_views(extension: str, family: str, tmp_path: pathlib.Path, members: int) -> None:
    """Every byte of what is accessed; the collectives take no memory for the other ranks' views."""
    if members == LONG and family == "openmpi":
        pytest.skip("Open MPI flattens the types: twice the memory")
    if members == LONG and available_kib() < NEEDED:
        pytest.skip("takes 16 GiB of memory")
    environment = {"MPIOX_HINTS": "*:mpiox_exchange=two_phase", "MPIOX_RANKS_PER_NODE": "1"}
    environment |= {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    program = [mpi_program("long_views"), tmp_path / "file", str(members), str(ACCESSED)]
    launch = mpi_run(program, RANKS, preload=True, env=environment, timeout_s=120)
    grown = re.search(r"^verified private_kib=(\d+)$", launch.stdout, re.M)
    assert grown, launch.describe()
    print(f"{members} members: {grown[0]} after {launch.elapsed_s:.1f} s")
    assert int(grown[1]) <= 12 * 1024  # two collectives with buffers of 1 MiB; 34 MiB with all views of the short ones
    rows = json_lines(tmp_path / "stats")
    files = [row for row in rows if row["kind"] == "file"]
    assert [row["native_calls"] for row in files] == [0]
    assert files[0]["messages"] > 0  # they went through the exchange
