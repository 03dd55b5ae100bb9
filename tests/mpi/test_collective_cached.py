"""Collectives through delegates that do not wait for the other ranks (``mpiox_collective=cached``)."""

from __future__ import annotations

import json
import pathlib

import pytest

from support.launch import PROGRAMS, python_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
RANKS = 3
HINTS = "mpiox_delegates=2:mpiox_delegate_page=4k:mpiox_delegate_cache=512k"


@pytest.mark.both_with("1-thread-")
@pytest.mark.parametrize(
    ("per_node", "mode", "more"),
    [
        (0, "thread", ""),
        (1, "thread", ""),
        *slow(
            (0, "spawn", ""),
            (2, "spawn", ""),
            (0, "spawn", ":mpiox_delegate_ack=replica"),
            (1, "spawn", ":mpiox_delegate_bypass=512"),
        ),
    ],
)
def test_no_byte_depends_on_who_is_late(tmp_path: pathlib.Path, per_node: int, mode: str, more: str) -> None:
    """A rank returns before the others come; the later of two collectives wins; sizes and reads wait; errors are told.

    Where ranks need not come together, on one node, the others learn of a wrong argument by the sync, else at once; of
    bytes that the file system refuses all ranks learn by the sync, if not before, and none of them is lost unsaid.
    """
    env = {
        "MPIOX_FAULT": "op=write,path=*.refused,errno=ENOSPC",
        "MPIOX_RANKS_PER_NODE": str(per_node),
        "MPIOX_HINTS": f"*:{HINTS}:mpiox_delegate_mode={mode}{more}",
    }
    program = [PROGRAMS / "collective_cached.py", tmp_path / "file", "one" if per_node == 0 else "several"]
    launch = python_run(program, RANKS, env=env, timeout_s=120)
    seen = json.loads(next(line for line in launch.stdout.splitlines() if line.startswith("SEEN "))[5:])
    assert [rank["without_waiting"] for rank in seen] == ["right"] * RANKS, launch.describe()
    assert [rank["order"] for rank in seen] == [[0, 0]] * RANKS, launch.describe()
    assert [rank["alone_before"] for rank in seen] == [[0, 0]] * RANKS, launch.describe()
    assert [rank["alone_behind"] for rank in seen] == [[True] * 3] * RANKS, launch.describe()
    assert [rank["ways"] for rank in seen] == [{"auto": 1, "two_phase": 0, "cached": 2}] * RANKS, launch.describe()
    assert [rank["refused"] for rank in seen] == [[["MPI_ERR_NO_SPACE"]] * 2] * RANKS, launch.describe()
    for number, rank in enumerate(seen):
        together = ["MPI_ERR_ARG", "fine", "fine", "fine"]
        alone = ["MPI_ERR_ARG" if number == 1 else "fine", "fine", "MPI_ERR_ARG", "fine"]
        assert rank["errors"] == [together, together if per_node else alone], launch.describe()
