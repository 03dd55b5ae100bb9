"""Request scheduling in delegates: several ranks write and read back, byte for byte, under each scheduler."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from support.launch import PROGRAMS, python_run
from support.marks import slow
from support.scheduling import policies

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
SMALL = "mpiox_delegates=2:mpiox_delegate_page=4k:mpiox_delegate_cache=600k:striping_factor=3:striping_unit=8k"


def run(path: pathlib.Path, hints: str, ranks: int = 4) -> dict[str, Any]:
    """Return what was seen; no byte may be wrong."""
    launch = python_run(
        [PROGRAMS / "delegates_scheduled.py", path], ranks, env={"MPIOX_HINTS": f"*:{SMALL}:{hints}"}, timeout_s=120
    )
    seen: dict[str, Any] = json.loads(next(line for line in launch.stdout.splitlines() if line.startswith("SEEN "))[5:])
    assert seen["wrong"] == 0, launch.describe()
    assert seen["counted"]["flushes"] > 0
    return seen


@pytest.mark.slow_with("sjf", "to_agg", "aioli", "hbrr")
@pytest.mark.parametrize("scheduler", tuple(policies()))
def test_every_byte_under_each_scheduler(tmp_path: pathlib.Path, scheduler: str) -> None:
    seen = run(
        tmp_path / "file",
        f"mpiox_delegate_scheduler={scheduler}:mpiox_delegate_mode=thread:"
        "mpiox_delegate_quantum=16k:mpiox_delegate_time_slice=500:"
        "mpiox_delegate_patience=200",
    )
    assert seen["hints"] == {"scheduler": scheduler, "quantum": "16384", "time_slice": "500", "patience": "200"}
    assert seen["counted"]["queued_most"] > 0
    assert seen["counted"]["bytes_written"] == 4 * 2 * 3 * 300 * 700


@pytest.mark.both
def test_without_a_scheduler_nothing_is_counted(tmp_path: pathlib.Path) -> None:
    seen = run(tmp_path / "file", "mpiox_delegate_mode=thread")
    assert seen["hints"]["scheduler"] == "elevator"
    assert [seen["counted"][name] for name in ("queued_most", "merged", "reordered")] == [0, 0, 0]


@pytest.mark.parametrize(
    "hints",
    [
        *slow("mpiox_delegate_mode=spawn:mpiox_delegate_threads=2", "mpiox_delegate_mode=spawn:mpiox_ranks_per_node=2"),
        "mpiox_delegate_mode=thread:mpiox_delegate_ack=replica",
    ],
)
def test_in_processes_between_nodes_and_with_replicas(tmp_path: pathlib.Path, hints: str) -> None:
    seen = run(tmp_path / "file", f"mpiox_delegate_scheduler=wfq:{hints}")
    assert seen["counted"]["queued_most"] > 0
