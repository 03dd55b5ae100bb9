"""Files that are closed before they are written (mpiox_close=staged)."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from support.launch import PROGRAMS, python_run
from support.tiers import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
RANKS, BLOCK, BLOCKS = 3, 8192, 24


def content(seed: int) -> bytes:
    """As content() of the program."""
    places = np.arange(BLOCK * BLOCKS * RANKS)
    return ((places * 7 + places // BLOCK + seed) % 251 + 1).astype(np.uint8).tobytes()


@pytest.mark.parametrize(("mode", "per_node"), [("spawn", 0), ("thread", 1), *slow(("spawn", 2), ("thread", 0))])
def test_what_is_closed_is_there(tmp_path: pathlib.Path, mode: str, per_node: int) -> None:
    """Inside the job from the close on, whatever is done with it; for others when the job has ended, and as a whole."""
    launch = python_run([PROGRAMS / "delegates_staged.py", tmp_path, mode], RANKS,
                        env={"MPIOX_RANKS_PER_NODE": str(per_node)}, timeout_s=120, preload=True)
    line = next(line for line in launch.stdout.splitlines() if line.startswith("SEEN "))
    assert json.loads(line[5:]) == [], launch.describe()
    assert "mpiio_ext:" not in launch.stderr, launch.describe()
    expected = {"again": content(2)[: len(content(2)) // 2], "alone": content(4)[:BLOCK] + content(3)[BLOCK:],
                "native": content(5), "old": content(6), "gone": content(8), "there": content(10), "sync": content(13),
                "last": content(14)}
    assert {path.name for path in tmp_path.iterdir()} == set(expected)
    for name, data in expected.items():
        assert (tmp_path / name).read_bytes() == data, name
