"""What a next step of a run's page gains, by counts and bounds that are known."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import mpiio_ext
from mpiio_ext.analytics.run import gains, opening
from support import cbuild, darshan_rows

SAMPLES = sorted((cbuild.ROOT / "tests" / "samples" / "diagnosis").glob("*.darshan"))


def test_a_gain_by_counts() -> None:
    """100,000 accesses of 512 B would become 49 of 1 MiB; a bound is the finding's own time, not its files'."""
    row: dict[str, Any] = {"file": "/d/a", "written_bytes": 512 * 100_000, "writes": 100_000, "time_s": 12.0}
    spent = opening.Spent(io_s=16.0, run_s=20.0, files=[row], waiting_s=4.0)
    small: dict[str, Any] = {
        "cause": "small_requests",
        "time": {"value": 10.0},
        "files": ["/d/a", "and 3 more"],
        "evidence": [],
    }
    step = gains.gain("Use collective calls (…).", small, "write", spent, 4)
    assert step == (
        "49 % to 50 % of the run, if 100,000 requests of 512 B become 49, and the file system moves 1 MiB in 1 to 10 ms"
    )
    assert gains.gain("Other.", small, "write", spent, 4) == "at most 50 % of the run (10 s, the time of this finding)"
    row["written_bytes"] = 1 << 40  # large ones
    assert gains.gain("Use collective calls (…).", small, "write", spent, 4).startswith("at most 50 %")
    assert gains.bound(small | {"cause": "syncs"}, spent) == "at most 50 % of the run (10 s, the time of these syncs)"


def test_a_bound_beyond_the_time_of_its_finding_says_whose_it_is() -> None:
    """Never more than the time in I/O, but where ranks wait outside of it."""
    spent = opening.Spent(io_s=16.0, run_s=20.0, waiting_s=4.0)
    late: dict[str, Any] = {"cause": "late_rank", "time": {"value": 2.0}, "files": [], "evidence": []}
    assert gains.bound(late, spent) == "at most 20 % of the run (4 s, the time of the rank that waits most)"
    late["time"] = {"value": 5.0}
    assert gains.bound(late, spent) == "at most 25 % of the run (5 s, the time in which ranks wait for the late rank)"
    inside = [{"meaning": gains.IN_MPIIO, "value": 18.0}]
    small = late | {"cause": "small_requests", "evidence": inside}
    bound = "at most 80 % of the run (16 s, the time in the MPI-IO calls that make these requests)"
    assert gains.bound(small, spent) == bound
    assert gains.longest(small, spent)[0] == 16.0
    turns = late | {"cause": "turns", "time": {"value": 19.0}}
    assert gains.bound(turns, spent) == "at most 95 % of the run (19 s, the time in which ranks wait for their turn)"


def _within(log: pathlib.Path) -> int:
    """Compare the gains of a log's findings with what these explain of the run; return how many there are."""
    found = 0
    for one in mpiio_ext.run_report(log).document["findings"]:
        told = [float(share) for text in one["evidence"] for share in re.findall(r"([\d.e-]+) % of the run time", text)]
        for advice in one["advice"]:
            gain = re.search(r"Gain: at most ([\d.e-]+) % of the run \((.*?)\)", advice)
            if gain is not None and told:
                found += 1
                other = "the MPI-IO calls that make these requests" in gain[2]
                assert float(gain[1]) <= max(told) or other, (log.name, one["title"], advice, told)
                assert not other or any(text.startswith(gains.IN_MPIIO) for text in one["evidence"])
    return found


def test_no_gain_is_more_than_its_finding_explains() -> None:
    assert sum(map(_within, SAMPLES)) >= 30


def test_another_writer_gains_no_more_than_its_writes_take() -> None:
    """Rank 0 writes the file in 3 % of the run; then all ranks read it, in 70 %."""
    log = darshan_rows.shared_data("known_truth", "random_reads-4-dxt.darshan")
    assert _within(log) >= 1
    (one,) = (
        each for each in mpiio_ext.run_report(log).document["findings"] if each["title"].startswith("Rank 0 writes")
    )
    assert one["advice"][0].endswith("Gain: at most 3 % of the run (69.7 ms, the time of this finding).")
