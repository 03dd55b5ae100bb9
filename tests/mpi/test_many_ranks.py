"""Only agreements of few nodes send more messages where there are more ranks; every byte is checked.

The C program tests/programs/many_ranks.c on pretended nodes of one rank each, where all that crosses is counted
(inject.c). docs/explanation/performance.md has what 1,024 ranks took.
"""

from __future__ import annotations

import json
import pathlib

import pytest

from support.cbuild import mpi_program
from support.launch import mpi_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.both]

#: Bytes of a piece, and pieces of a rank: 16 KiB in turn.
PIECE, PIECES = 64, 256
#: A domain has so many bytes for each node (mpiox_choose.c): so many of them are accessed by every rank.
DOMAINS = PIECE * PIECES // 4096
#: Up to so many nodes agree by a message from each to each, more by one operation of the MPI library.
FEW_NODES = 16
#: Of each step: agreements; broadcasts with one; messages that a rank sends or receives for a domain elsewhere. A
#: read is requested and answered.
STEPS = {
    "open": (2, 1, 0),
    "write": (5, 0, 2),
    "read": (2, 0, 4),
    "close": (1, 0, 0),
    "open again": (1, 1, 0),
    "write again": (4, 0, 2),
    "read again": (2, 0, 4),
    "close again": (1, 0, 0),
}
#: Blocking collectives at most, with those of the MPI library's own open.
BLOCKING = {"open": 29, "write": 2, "read": 0, "close": 0}
#: Bytes that a node brings to each other one at most: what it accesses, and 512 bytes of views.
GATHERED = 700


@pytest.mark.parametrize("ranks", [8, 20, *slow(64)])
def test_messages(extension: str, tmp_path: pathlib.Path, ranks: int) -> None:
    """As many messages of each rank, whatever the ranks; an agreement is an operation where nodes are not few."""
    library = f"{mpi_program('inject', '-shared', '-fPIC')}:{extension}"
    environment = {"LD_PRELOAD": library, "MPIOX_RANKS_PER_NODE": "1"}
    words = [mpi_program("many_ranks"), tmp_path / "file", str(PIECE), str(PIECES)]
    done = mpi_run(words, ranks, env=environment, timeout_s=60)
    steps = {row["step"]: row for row in map(json.loads, done.stdout.splitlines())}
    elsewhere = (ranks - 1) / ranks
    for name, (agreements, broadcasts, messages) in STEPS.items():
        few = ranks <= FEW_NODES
        agreed = agreements * 2 * (ranks - 1) if few else agreements + broadcasts
        step = steps[name]
        assert step["begun"][1] == pytest.approx(agreed + messages * DOMAINS * elsewhere, abs=0.06), (name, step)
        assert step["gathered"][0] <= GATHERED * ranks, (name, step)
        assert few or step["sent"][1] <= 1.02 * PIECE * PIECES * elsewhere, (name, step)
        assert step["blocking"][0] <= BLOCKING[name.split()[0]], (name, step)
