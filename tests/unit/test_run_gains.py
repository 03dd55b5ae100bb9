"""What a next step of a run's page gains, by counts and bounds that are known."""

from __future__ import annotations

from typing import Any

from mpiio_ext.analytics.run import gains, opening


def test_a_gain_by_counts() -> None:
    """100,000 accesses of 512 B would become 49 of 1 MiB; a bound is the time of the files, of waits that of a rank."""
    row: dict[str, Any] = {"file": "/d/a", "written_bytes": 512 * 100_000, "writes": 100_000, "time_s": 12.0}
    spent = opening.Spent(io_s=16.0, run_s=20.0, files=[row], waiting_s=4.0)
    small: dict[str, Any] = {"cause": "small_requests", "time": {"value": 10.0}, "files": ["/d/a"]}
    step = gains.gain("Use collective calls (…).", small, "write", spent, 4)
    assert step == (
        "59 % to 60 % of the run, if all can be collected and the file system moves 1 MiB in 10 to 1 ms:"
        " 100,000 requests of 512 B would become 49"
    )
    assert gains.gain("Other.", small, "write", spent, 4) == "at most 60 % of the run, the time in these calls"
    row["written_bytes"] = 1 << 40  # large ones
    assert gains.gain("Use collective calls (…).", small, "write", spent, 4).startswith("at most 60 %")
    assert gains.bound_s(small | {"files": ["/d/a", "and 3 more"]}, spent) == 16.0
    assert gains.bound_s(small | {"cause": "syncs"}, spent) == 10.0
    late = small | {"cause": "late_rank", "time": {"value": 2.0}}
    assert gains.bound(late, spent) == "at most 20 % of the run, the time in which ranks wait for it"
