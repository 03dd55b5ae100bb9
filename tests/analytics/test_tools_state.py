"""How full, what had failed over, who else ran, where: the last sample before a moment, with its age."""

from __future__ import annotations

import math
import random

import pytest

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.tools.health import failovers, fullness
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.others import job_of, jobs_in, placement
from support.monitoring import records, slurm_table, table
from support.traces import shared_data


def full_table(samples: dict[float | None, dict[str, tuple[int, int]]], file_system: str = "f"):
    rows = [(time, name, *sizes) for time, targets in samples.items() for name, sizes in targets.items()]
    return table(
        {
            "time": [row[0] for row in rows],
            "file_system": [file_system] * len(rows),
            "target": [f"{file_system}-{row[1]}" for row in rows],
            "kind": [row[1][:3] for row in rows],
            "index": [int(row[1][3:], 16) for row in rows],
            "quantity": ["1K-blocks"] * len(rows),
            "used": [row[2] for row in rows],
            "total": [row[3] for row in rows],
        }
    )


SAMPLES = {
    1000.0: {"OST0000": (10, 100), "OST000a": (30, 100), "MDT0000": (99, 100)},
    1900.0: {"OST0000": (20, 100), "OST000a": (60, 300)},
}


def test_the_last_sample_before_a_moment_and_its_age() -> None:
    source = records("lfs-df", targets=full_table(SAMPLES))
    found, notes = fullness([source], 1900.0, {"f"})
    assert found is not None
    assert (found.time, found.lead_s, found.next_time, notes) == (1000.0, 900.0, 1900.0, [])
    assert (found.mean_kib, found.percent, found.least.name, found.most.index) == (20.0, 20.0, "f-OST0000", 10)
    later, _ = fullness([source], 1900.5, {"f"})
    assert later is not None
    assert (later.time, later.lead_s, later.next_time, later.percent) == (1900.0, 0.5, None, 20.0)


def test_no_sample_before_is_no_answer_and_neither_is_an_old_one() -> None:
    source = records("lfs-df", "osts.txt", targets=full_table(SAMPLES))
    for when, words in ((1000.0, "is of 1970-01-01 00:16:40Z, 0 s later"), (90_000.0, "88,100 s before")):
        found, notes = fullness([source], when, {"f"})
        assert found is None
        assert words in notes[0]
    assert fullness([source], 90_000.0, {"f"}, most_age_s=100_000.0)[0] is not None
    assert fullness([source], 1500.0, {"other"}) == (None, ["no source of how full targets are"])
    untimed = records("lfs-df", targets=full_table({None: SAMPLES[1000.0]}))
    assert "without a time" in fullness([untimed], 1500.0, {"f"})[1][0]


def test_the_youngest_of_several_sources_counts() -> None:
    old = records("lfs-df", targets=full_table(SAMPLES))
    lmt = table(
        {
            "time": [1895, 1895],
            "target": ["f-OST0000", "g-OST0000"],
            "kind": ["ost", "ost"],
            "used_kib": [5, 6],
            "total_kib": [10, 10],
        }
    )
    found, _ = fullness([old, records("lmt", fullness=lmt)], 1898.0, {"f"})
    assert found is not None
    assert (found.source, found.lead_s, [target.index for target in found.targets]) == ("lmt", 3.0, [0])


def devices(servers: dict[str, list[int]], time: float = 1000.0):
    rows = [(server, ost) for server, osts in servers.items() for ost in osts]
    return table(
        {
            "time": [time] * (len(rows) + 1),
            "file_system": ["f"] * (len(rows) + 1),
            "type": ["osc"] * len(rows) + ["mdc"],
            "kind": ["OST"] * len(rows) + ["MDT"],
            "target": [f"f-OST{ost:04x}" for _, ost in rows] + ["f-MDT0000"],
            "nid": [f"{server}@o2ib" for server, _ in rows] + ["10.0.0.9@o2ib"],
        }
    )


def test_servers_that_took_over_targets() -> None:
    usual = records("lctl-dl", devices=devices({"a": [0, 1], "b": [2, 3], "c": [4, 5]}))
    found, _ = failovers([usual], 1500.0, {"f"})
    assert found is not None
    assert (found.overloaded, found.osts_per_oss, found.factor, found.usual) == ({}, 0.0, 1.0, 2)
    failed = records("lctl-dl", devices=devices({"a": [0, 1], "b": [2, 3], "c": [4, 5, 6, 7], "d": [8, 9]}))
    found, _ = failovers([failed], 1500.0, {"f"})
    assert found is not None
    assert (list(found.overloaded), found.overloaded_osts, found.factor, found.lead_s) == (["c"], 4, 2.0, 500.0)


def test_the_samples_of_lustre_health() -> None:
    folder = shared_data("tokio/samples")
    full = sources.read(folder / "sample_ost-fullness.txt.gz")
    found, notes = fullness([full], 1489998204.0, {"snx11025"})
    assert (found is not None, notes) == (True, [])
    assert found is not None
    assert found.lead_s == 1.0
    by_hand = [
        row
        for row in full.tables["targets"].to_pylist()
        if row["time"] == 1489998203 and row["file_system"] == "snx11025" and row["kind"] == "OST"
    ]
    assert len(found.targets) == len(by_hand) > 0
    assert found.most.used_kib == max(row["used"] for row in by_hand)
    assert found.percent == pytest.approx(
        100 * sum(row["used"] for row in by_hand) / sum(row["total"] for row in by_hand)
    )
    maps = sources.read(folder / "sample_ost-map.txt.gz")
    state, _ = failovers([maps], 1489998204.0, {"snx11035"})
    assert state is not None
    assert (state.lead_s, state.usual, state.osts) == (1.0, 1, 24)


# ---- jobs and nodes --------------------------------------------------------------------------------------------------


def test_jobs_that_overlap_a_period() -> None:
    rows = [
        {"job_id": 1, "start_time": 0.0, "end_time": 100.0, "node_count": 1},  # ended before
        {"job_id": 2, "start_time": 0.0, "end_time": 101.0, "node_count": 10},
        {"job_id": 3, "start_time": 150.0, "end_time": None, "node_count": 100},  # runs still
        {"job_id": 4, "start_time": 200.0, "end_time": 300.0, "node_count": 1000},  # begins behind
        {"job_id": 5, "start_time": 90.0, "end_time": 400.0, "node_count": None},
    ]
    found, notes = jobs_in([records("slurm", slurm=slurm_table(rows))], Period(100.0, 200.0))
    assert (found is not None, notes) == (True, [])
    assert found is not None
    assert sorted(found.jobs["job_id"].to_pylist()) == [2, 3, 5]
    assert (found.nodes, found.unknown) == (110, 1)
    assert found.node_hours == pytest.approx((10 * 1 + 100 * 50) / 3600)
    assert sorted(found.without(2)["job_id"].to_pylist()) == [3, 5]


def test_jobs_against_a_loop() -> None:
    rng = random.Random(5)
    for _ in range(20):
        rows = [
            {
                "job_id": k,
                "start_time": float(start := rng.randrange(1000)),
                "end_time": float(start + rng.randrange(300)),
                "node_count": rng.randrange(1, 50),
            }
            for k in range(40)
        ]
        low = rng.randrange(900)
        high = low + rng.randrange(1, 200)
        mine = [row for row in rows if row["start_time"] < high and row["end_time"] > low]
        found, _ = jobs_in([records("slurm", slurm=slurm_table(rows))], Period(float(low), float(high)))
        assert found is not None
        assert found.jobs.num_rows == len(mine)
        hours = sum(
            row["node_count"] * (min(row["end_time"], high) - max(row["start_time"], low)) / 3600 for row in mine
        )
        assert (found.node_hours or 0.0) == pytest.approx(hours)


def test_a_dump_of_another_day_says_nothing_about_a_period() -> None:
    rows = [{"job_id": k, "start_time": 0.0, "end_time": 50.0, "node_count": 1} for k in range(3)]
    found, notes = jobs_in([records("slurm", "day1", slurm=slurm_table(rows))], Period(1e6, 1e6 + 5))
    assert found is None
    assert "day1: jobs from 1970-01-01 00:00:00Z to 1970-01-01 00:00:50Z only" in notes[0]


@pytest.mark.parametrize(
    ("spans", "missing"),
    [
        ([(0, 400)], 0.0),
        ([(0, 195)], 0.0),
        ([(0, 150)], 0.5),
        ([(120, 180)], 0.4),
        ([(0, 120), (180, 400)], 0.6),
        ([(0, 150), (140, 400)], 0.0),
        ([(0, 120), (900, 950)], 0.8),
    ],
)
def test_a_period_that_the_lists_of_jobs_cover_in_part(spans: list[tuple[float, float]], missing: float) -> None:
    lists = [
        records(
            "slurm",
            slurm=slurm_table(
                [
                    {"job_id": 10 * k + n, "start_time": float(low), "end_time": float(high), "node_count": 1}
                    for n in range(2)
                ]
            ),
        )
        for k, (low, high) in enumerate(spans)
    ]
    found, notes = jobs_in(lists, Period(100.0, 200.0))
    assert found is not None and found.missing == pytest.approx(missing)
    assert [f"do not cover {missing:.1%} of the period: from 1970-01-01 00:0" in note for note in notes] == [True] * (
        missing > 0
    )


def test_a_job_of_two_dumps_is_put_together() -> None:
    one = records("slurm", slurm=slurm_table([{"job_id": 7, "start_time": 1.0, "nodes": ["nid00001"]}]))
    two = records("jobsdb", slurm=slurm_table([{"job_id": 7, "start_time": 1.0, "end_time": 2.0, "node_count": 1}]))
    job = job_of([one, two], 7)
    assert job is not None
    assert (job["nodes"], job["end_time"], job["node_count"]) == (["nid00001"], 2.0, 1)
    assert job_of([one, two], 8) is None


def test_the_radius_of_a_job() -> None:
    corners = [(0, 0, 0), (2, 0, 0), (0, 2, 0), (2, 2, 0)]
    columns = {
        "node": [f"nid{k:05d}" for k in range(4)],
        **{f"{axis}_coord": [corner[k] for corner in corners] for k, axis in enumerate("xyz")},
    }
    network = records("xtdb2proc", processors=table(columns))
    found, notes = placement([network], ["nid00000", "nid00003", "nid00001", "nid99999"])
    assert found is not None
    centre = (4 / 3, 2 / 3, 0)
    distances = [math.dist(corners[k], centre) for k in (0, 3, 1)]
    assert (found.least, found.mean, found.greatest) == pytest.approx(
        (min(distances), sum(distances) / 3, max(distances))
    )
    assert (found.nodes, notes) == (3, ["made: does not know 1 of 4 nodes, such as nid99999"])
    assert placement([network], None)[1] == ["no source names the nodes of the job"]
    assert placement([], ["nid00000"])[1] == ["no map of the network"]
