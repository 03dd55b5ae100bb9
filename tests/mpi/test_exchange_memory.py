"""Memory of the ranks while nodes exchange data: bounded by the hints, whatever is accessed and however many take part.

The C program tests/programs/exchange_memory.c, preloaded, on pretended nodes, checks every byte and says by how much
the memory of its ranks has grown. What it says is printed (``pytest -s``, or with a failure). The sizes are such that
an exchange whose memory grows with nodes times window, with the data, or with all ranks' views is far beyond the
limits; what the one that this replaced took stands beside each test.
"""

from __future__ import annotations

import pathlib
from dataclasses import dataclass

import pytest

from support.cbuild import mpi_program
from support.launch import json_lines, mpi_run

pytestmark = pytest.mark.mpi

MIB = 1 << 20
#: Private memory of a rank, in collective buffers: what it receives (1.5), answers under way (2.5).
PRIVATE = 4
#: Shared memory of a node for each of its aggregators: two buffers and their maps, two halves of the pool (1.5 each).
SHARED = 7
#: What a rank takes beside them, whatever the hints are; so much of it may be shared.
BESIDE = 4 * MIB
#: Every message goes through sockets, which take what is sent however slow the other side is.
SOCKETS = {"OMPI_MCA_btl": "self,tcp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One launch.

    Attributes
    ----------
    ranks, per_node : ranks, and those of a pretended node.
    how, bytes : words of the program.
    window : bytes of a collective buffer.
    aggregators : of all nodes, one for each node that has any.
    delay_ms : of every request to write.
    own : bytes beside the collective buffers that a rank may need: its own view.
    environment : variables of the launch.
    """

    ranks: int
    per_node: int
    how: str
    bytes: int
    window: int
    aggregators: int
    delay_ms: int = 0
    own: int = 0
    environment: dict[str, str] | None = None


def grown(run: Run, tmp_path: pathlib.Path) -> dict[str, int]:
    """Launch it; return the numbers that it printed, in KiB."""
    hints = f"*:mpiox_exchange=two_phase:cb_buffer_size={run.window}:cb_nodes={run.aggregators}"
    environment = {"MPIOX_HINTS": hints, "MPIOX_RANKS_PER_NODE": str(run.per_node), **(run.environment or {})}
    environment |= {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    if run.delay_ms:
        environment["MPIOX_FAULT"] = f"op=write,delay_ms={run.delay_ms}"
    words = [str(mpi_program("exchange_memory")), str(tmp_path / "file"), str(run.per_node), run.how, str(run.bytes)]
    launch = mpi_run(words, run.ranks, preload=True, env=environment, timeout_s=120)
    lines = [line for line in launch.stdout.splitlines() if line.startswith("private_kib=")]
    assert len(lines) == 1, launch.describe()
    print(f"{run.ranks} ranks, {run.per_node} a node, {run.how}: {lines[0]} after {launch.elapsed_s:.1f} s")
    rows = json_lines(tmp_path / "stats")
    files = [row for row in rows if row["kind"] == "file"]
    assert [row["native_calls"] for row in files] == [0]
    assert files[0]["messages"] > 0  # it is the exchange that was measured
    return {name: int(number) for name, number in (word.split("=") for word in lines[0].split())}


def bounded(run: Run, tmp_path: pathlib.Path) -> None:
    """Launch it and compare what it says with the limits."""
    found = grown(run, tmp_path)
    assert found["private_kib"] * 1024 <= PRIVATE * run.window + BESIDE + run.own
    assert found["shared_kib"] * 1024 <= SHARED * run.window + BESIDE


#: Leaders that packed a window for every rank of the other nodes took 29, 61 and 24 MiB.
SAME = [pytest.param(8, 1, marks=pytest.mark.slow), (16, 1), (8, 2)]


@pytest.mark.parametrize(("ranks", "per_node"), SAME)
def test_a_region_that_all_read(extension: str, tmp_path: pathlib.Path, ranks: int, per_node: int) -> None:
    """A mesh of 64 MiB that every rank reads: no rank's memory grows with the number of those that read it."""
    window, nodes = 4 * MIB, ranks // per_node
    bounded(Run(ranks=ranks, per_node=per_node, how="same", bytes=64 * MIB, window=window, aggregators=nodes), tmp_path)


#: Bytes of a window. An eighth is one message; where it exceeds the eager limit of sockets (64 KiB) the MPI library has
#: always held the senders back.
WINDOWS = [pytest.param(64 * 1024, marks=pytest.mark.slow), 256 * 1024, pytest.param(1 * MIB, marks=pytest.mark.slow)]


@pytest.mark.parametrize("window", WINDOWS)
def test_slow_storage(extension: str, tmp_path: pathlib.Path, window: int) -> None:
    """One aggregator of eight nodes, whose storage takes milliseconds a window: the nodes wait, its memory stays.

    Without back-pressure the aggregator held all that storage had not taken yet: 68 and 49 of 48 MiB with windows of
    64 and 256 KiB (Open MPI, over TCP; MPICH alone holds its senders back on one machine).
    """
    run = Run(
        ranks=8,
        per_node=1,
        how="woven",
        bytes=48 * MIB,
        window=window,
        aggregators=1,
        delay_ms=max(1, 20 * window // MIB),
        environment=SOCKETS,
    )
    bounded(run, tmp_path)


def test_views_that_are_long_lists(extension: str, tmp_path: pathlib.Path) -> None:
    """Lists of a million pieces a rank cross as pieces of the round; no rank holds another's list.

    Every view is a list of 8 MiB. Nodes that told each other all of them took 213 MiB.
    """
    pieces = 1 << 20
    run = Run(
        ranks=4,
        per_node=1,
        how="lists",
        bytes=4 * pieces * 8,
        window=1 * MIB,
        aggregators=4,
        own=2 * pieces * 8,  # its own, decoded, and while it is
    )
    bounded(run, tmp_path)


def test_direct_access_takes_no_buffers(tmp_path: pathlib.Path) -> None:
    """Collectives without an exchange leave the shared buffers untouched, however much of them their bytes would fill.

    The first one made all of them huge pages: 8 MiB here.
    """
    words = [str(mpi_program("exchange_memory")), str(tmp_path / "file"), "2", "woven", str(16 * MIB)]
    environment = {"MPIOX_HINTS": f"*:mpiox_exchange=direct:cb_buffer_size={4 * MIB}"}
    launch = mpi_run(words, 2, preload=True, env=environment)
    found = dict(word.split("=") for word in launch.stdout.split())
    assert int(found["shared_kib"]) * 1024 <= MIB, launch.describe()
