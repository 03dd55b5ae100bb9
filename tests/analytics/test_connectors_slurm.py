"""Slurm's accounting in all its forms, real and damaged."""

from __future__ import annotations

import datetime
import gzip
import json
import pathlib
import random
import sqlite3
import zoneinfo
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.jobs.joins import joined
from mpiio_ext.analytics.jobs.summarize import summarize
from mpiio_ext.analytics.miner import IOMiner
from mpiio_ext.analytics.report.job import facts, job_tables
from mpiio_ext.analytics.sources.base import Outcome
from mpiio_ext.analytics.sources.slurm import convert
from mpiio_ext.analytics.tables.requeued import run_at
from mpiio_ext.analytics.tables.schema import SLURM
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.others import job_of, jobs_in
from mpiio_ext.analytics.tools.system import System
from mpiio_ext.common.slurm import expand_nodes
from support.expected import Expected, in_words
from support.job_logs import RECORDS, log_at
from support.traces import shared_data

TEXT = """JobIDRaw|JobName|User|Account|Partition|QOS|State|ExitCode|Submit|Start|End|Elapsed|NNodes|AllocCPUS|NTasks|\
NodeList
100|flash|ann|m1|regular|normal|COMPLETED|0:0|2018-01-28T00:00:00|2018-01-28T01:00:00|2018-01-28T02:00:30|01:00:30|\
4|128||nid0[0001-0003,5]
100.batch|batch||m1||||0:0|2018-01-28T01:00:00|2018-01-28T01:00:00|2018-01-28T02:00:30|01:00:30|1|32|1|nid00001
100.0|flash||m1||||0:0|2018-01-28T01:00:00|2018-01-28T01:00:10|2018-01-28T02:00:00|00:59:50|4|128|128|nid0[0001-0003,5]
101|x|bob|m2|debug|low|CANCELLED by 55|0:15|2018-01-28T00:00:00|Unknown|Unknown|00:00:00|1|0||None assigned
102|y|bob|m2|debug|low|RUNNING|0:0|2018-01-28T00:00:00|2018-01-28T03:00:00|Unknown|1-02:03:04|2K|64|16|a1,b[08-10]
102.0|y||m2||||0:0|||||||8|
103_[5-9]|array|bob|m2|debug|low|PENDING|0:0|2018-01-28T00:00:00|Unknown|Unknown|00:00:00|1|0||None assigned
"""


def one(folder: pathlib.Path, text: str | bytes, zone: str = "UTC") -> tuple[Outcome, dict[int, Any]]:
    name = "log"
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = convert([name], str(folder), zone)
    table = found.tables["slurm"]
    assert table.schema == SLURM.schema()
    table.validate(full=True)
    rows = {row["job_id"]: row for row in table.to_pylist()}
    assert len(rows) == table.num_rows
    return found.outcomes[0], rows


def told(outcome: Outcome, rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return what was read as an expected text: a line for each job."""
    return {"outcome": f"{outcome.status} {outcome.reason}".rstrip(), "jobs": [in_words(row) for row in rows]}


def test_text(tmp_path: pathlib.Path, expected: Expected) -> None:
    """A step may have fewer tasks than its job."""
    outcome, rows = one(tmp_path, TEXT)
    expected(told(outcome, rows.values()))


REQUEUED = """JobIDRaw|State|Submit|Start|End|NNodes|NTasks|NodeList
5001|REQUEUED|2026-03-01T08:00:00|2026-03-01T08:01:00|2026-03-01T09:01:00|2||n[01-02]
5001.batch|CANCELLED|2026-03-01T08:01:00|2026-03-01T08:01:00|2026-03-01T09:01:00|1|3|n01
5001|NODE_FAIL|2026-03-01T09:01:01|2026-03-01T09:10:00|2026-03-01T10:25:00|2||n[03-04]
5001|COMPLETED|2026-03-01T10:25:01|2026-03-01T10:30:00|2026-03-01T12:30:00|3||n[05-07]
5001.0|COMPLETED|||2026-03-01T12:00:00|3|7|n[05-07]
5001.batch|COMPLETED|2026-03-01T09:10:01|2026-03-01T09:10:01|2026-03-01T10:25:00|1|5|n03
5001|PENDING|2026-03-01T12:30:01|Unknown|Unknown|1||None assigned
broken line
"""


def test_each_run_of_a_job_that_was_requeued_is_a_row(tmp_path: pathlib.Path, expected: Expected) -> None:
    """As of ``sacct -D``, and as of JSON, where all of them may have one time of submission."""
    (tmp_path / "log").write_text(REQUEUED)
    found = convert(["log"], str(tmp_path))
    expected(told(found.outcomes[0], found.tables["slurm"].to_pylist()))
    times = [(1000, 4600), (10000, 17200), (10000, 17200), (None, None)]
    jobs = [{"job_id": 77, "time": {"submission": 900, "start": start, "end": end}} for start, end in times]
    (tmp_path / "log").write_text(json.dumps({"jobs": [*jobs, "no job"]}))
    found = convert(["log"], str(tmp_path))
    expected(told(found.outcomes[0], found.tables["slurm"].to_pylist()))


def test_of_runs_that_overlap_a_log_is_of_the_last_one() -> None:
    runs = [{"start_time": start, "end_time": None} for start in (0.0, 100.0, 200.0)]  # of lost ends
    assert run_at(runs, 150.0) is runs[1] and run_at(runs, 50.0) is runs[0]


def test_a_log_is_of_the_run_of_its_time(tmp_path: pathlib.Path) -> None:
    """The clocks of the first log and of the scheduler are apart: it begins between two runs, near the first."""
    (tmp_path / "jobs.sacct").write_text(REQUEUED)
    midnight = int(datetime.datetime(2026, 3, 1, tzinfo=datetime.timezone.utc).timestamp())
    starts = [midnight + 9 * 3600 + 90, midnight + 10 * 3600, midnight + 12 * 3600]
    logs = [
        log_at(tmp_path / f"{number}.darshan", RECORDS, start=start, end=start + 9, job_id=5001)
        for number, start in enumerate(starts)
    ]
    records = sources.read(tmp_path / "jobs.sacct", "slurm")
    scheduled = [job_of([records], 5001, start) for start in starts]
    assert [job and job["state"] for job in scheduled] == ["REQUEUED", "NODE_FAIL", "COMPLETED"]
    assert (job_of([records], 5001) or {})["state"] == "COMPLETED" and job_of([records], 5002) is None
    beside, _ = jobs_in([records], Period(midnight, midnight + 86400))
    assert beside is not None and beside.jobs.num_rows == 3
    inputs = {"darshan": [str(tmp_path)], "slurm": [str(tmp_path / "jobs.sacct")]}
    with IOMiner({"store": str(tmp_path / "store"), "workers": 0, "inputs": inputs}) as miner:
        miner.init_stores(quiet=True)
        rows = joined(summarize(logs, System(None, [])), miner, "slurm").rows()
        assert [(row["_log"], row["nodes"]) for row in rows] == [
            (log.name, job and job["nodes"]) for log, job in zip(logs, scheduled, strict=True)
        ]
        every = miner.load("darshan_job").join(miner.load("slurm"), "job_id")
        within = every.filter("start_time_slurm <= start_time and start_time <= end_time_slurm")
        assert [len(each.rows()) for each in (every, within)] == [12, 2]
        found = dict(facts(job_tables(miner, 5001)))
        assert (found["nodes"], found["run"]) == ("2", "number 1 of 4: the job was requeued")


@given(st.permutations(range(16)), st.booleans(), st.booleans())
def test_columns_come_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], trailing: bool, packed: bool
) -> None:
    folder = tmp_path_factory.mktemp("slurm")
    lines = [line.split("|") for line in TEXT.splitlines()]
    text = "".join("|".join(line[k] for k in order) + ("|" if trailing else "") + "\n" for line in lines)
    assert one(folder, gzip.compress(text.encode()) if packed else text)[1] == one(folder, TEXT)[1]


@pytest.mark.parametrize(("said", "count"), [("1K", 1024), ("1.50K", 1536), ("4608", 4608), ("2M", 2 * 1024**2)])
def test_counts_are_in_powers_of_1024(tmp_path: pathlib.Path, said: str, count: int) -> None:
    """As Slurm's convert_num_unit divides them."""
    assert one(tmp_path, f"JobIDRaw|AllocNodes|AllocCPUS\n7|{said}|{said}\n")[1][7]["node_count"] == count


def test_a_compressed_text_that_is_cut_keeps_its_lines(tmp_path: pathlib.Path) -> None:
    """As a plain text does; the line at the cut is lost."""
    source = random.Random(3)
    text = "JobIDRaw|JobName\n" + "".join(f"{job}|{source.getrandbits(256):x}\n" for job in range(1000))
    data = gzip.compress(text.encode())
    whole = one(tmp_path, data)[1]
    outcome, rows = one(tmp_path, data[: len(data) // 2])
    assert outcome.status == "partial"
    assert "cannot be unpacked" in outcome.reason
    assert 400 < len(rows) < 600
    assert all(whole[job] == row for job, row in rows.items())
    outcome, rows = one(tmp_path, data[:15])
    assert (outcome.status, rows) == ("skipped", {})


@pytest.mark.parametrize("text", ["[1,2", '{"jobs": [', "[1, 2]"])
def test_broken_json_is_called_so(tmp_path: pathlib.Path, text: str) -> None:
    outcome = one(tmp_path, text)[0]
    assert outcome.status == "skipped"
    assert "JSON" in outcome.reason
    assert "columns" not in outcome.reason


def test_times_are_in_the_zone_of_the_site(tmp_path: pathlib.Path) -> None:
    rows = one(tmp_path, TEXT, "America/Los_Angeles")[1]
    assert rows[100]["submit_time"] == 1517097600.0 + 8 * 3600


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("104|a|b", "3 columns, not 16"),
        (TEXT.splitlines()[1].replace("100|", "x100|"), "'x100' is no job ID"),
        (TEXT.splitlines()[1].replace("0001-0003", "3-1"), "'3-1' is no range of nodes"),
        (TEXT.splitlines()[1].replace("T00:00:00", "T99:00"), "is no time"),
        (TEXT.splitlines()[1].replace("|4|128", "|four|128"), "'four' is no number"),
    ],
)
def test_a_bad_line_is_left_out_and_named(tmp_path: pathlib.Path, line: str, reason: str) -> None:
    outcome, rows = one(tmp_path, TEXT + line.replace("100|", "104|", 1) + "\n")
    assert (outcome.status, set(rows)) == ("partial", {100, 101, 102})
    assert "line 9" in outcome.reason
    assert reason.replace("x100", "x104") in outcome.reason


def test_tasks_of_arrays_need_their_own_id(tmp_path: pathlib.Path) -> None:
    outcome, rows = one(tmp_path, "JobID|State\n7_1|COMPLETED\n7_2|FAILED\n8|COMPLETED\n")
    assert (outcome.status, set(rows)) == ("partial", {8})
    assert "JobIDRaw" in outcome.reason


def test_json(tmp_path: pathlib.Path, expected: Expected) -> None:
    job = {
        "job_id": 100,
        "name": "flash",
        "user": "ann",
        "account": "m1",
        "partition": "regular",
        "qos": "normal",
        "state": {"current": ["COMPLETED"]},
        "exit_code": {"return_code": {"set": True, "infinite": False, "number": 3}},
        "time": {"submission": 1517097600, "start": 1517101200, "end": 1517104830, "elapsed": 3630},
        "allocation_nodes": 4,
        "nodes": "nid0[0001-0003,5]",
        "tres": {"allocated": [{"type": "cpu", "count": 128}, {"type": "node", "count": 4}]},
        "steps": [{"tasks": {"count": 1}}, {"tasks": {"count": 128}}],
    }
    running = {"job_id": 101, "state": "RUNNING", "time": {"start": {"set": True, "number": 5}, "end": 0, "elapsed": 9}}
    outcome, rows = one(tmp_path, json.dumps({"jobs": [job, running, 5]}))
    assert rows[100] == one(tmp_path, TEXT)[1][100] | {"exit_code": 3}
    expected(told(outcome, rows.values()))


SAMPLES = pathlib.Path(__file__).parents[1] / "samples" / "slurm"


@pytest.mark.parametrize("name", ["squeue.json", "sacct.json"])
def test_json_of_a_real_slurm(name: str, expected: Expected) -> None:
    """Slurm 22.05.8: users and times, which squeue expects if they are not yet; parts of one job are one row."""
    found = convert([name], str(SAMPLES))
    expected(told(found.outcomes[0], found.tables["slurm"].to_pylist()))


def test_text_of_a_real_slurm(expected: Expected) -> None:
    read = sources.read(SAMPLES / "sacct.txt", "slurm")
    assert not read.problems and read.tables["lines"].column("JobName").to_pylist()[0] == "a|b c"
    expected([in_words(row) for row in read.tables["slurm"].to_pylist()])


def test_real_samples() -> None:
    folder = shared_data("tokio/samples")
    found = convert(["sample.slurm", "sample_nersc_jobsdb.sqlite3"], str(folder), "America/Los_Angeles")
    assert [outcome.status for outcome in found.outcomes] == ["whole", "whole"]
    rows = found.tables["slurm"].to_pylist()
    sample = next(row for row in rows if row["job_id"] == 4478544)
    own = json.loads((folder / "sample.slurm").read_text())["4478544"]
    zone = zoneinfo.ZoneInfo("America/Los_Angeles")
    span = [datetime.datetime.fromisoformat(own[name]).replace(tzinfo=zone).timestamp() for name in ("start", "end")]
    assert (sample["start_time"], sample["end_time"], sample["run_time"]) == (*span, span[1] - span[0])
    assert (sample["node_count"], len(sample["nodes"])) == (128, 128)
    with sqlite3.connect(f"{(folder / 'sample_nersc_jobsdb.sqlite3').as_uri()}?mode=ro&immutable=1", uri=True) as base:
        found_there = base.execute("SELECT stepid, start, completion, numnodes FROM summary").fetchall()
    theirs = {int(step.split(".")[0]): (float(start), float(end), nodes) for step, start, end, nodes in found_there}
    ours = {row["job_id"]: (row["start_time"], row["end_time"], row["node_count"]) for row in rows[1:]}
    assert ours == theirs


def test_other_files_are_skipped(tmp_path: pathlib.Path) -> None:
    for content in (
        b"",
        b"  \n",
        b"{",
        b"[]",
        b"\x00\x01\x02",
        b"SQLite format 3\x00garbage",
        b"\x1f\x8bnot gzip",
        b"{" * 100_000,
    ):
        outcome, rows = one(tmp_path, content)
        assert (outcome.status, rows) == ("skipped", {}), content[:20]
        assert outcome.reason
    assert convert(["none"], str(tmp_path)).outcomes[0].status == "skipped"


def test_damaged_text_never_raises(tmp_path: pathlib.Path) -> None:
    source = random.Random(7)
    for _ in range(300):
        data = bytearray(TEXT.encode())
        for _ in range(source.randrange(1, 12)):
            at = source.randrange(len(data))
            data[at : at + source.randrange(3)] = bytes(source.randrange(256) for _ in range(source.randrange(3)))
        outcome, rows = one(tmp_path, bytes(data[: source.randrange(len(data))] if source.random() < 0.3 else data))
        assert outcome.rows.get("slurm", 0) == len(rows)
        assert outcome.status == "whole" or outcome.reason


@given(st.lists(st.from_regex(r"[a-z]{1,4}[0-9]{1,3}", fullmatch=True), min_size=1, max_size=20, unique=True))
def test_plain_lists_of_nodes_are_themselves(names: list[str]) -> None:
    assert expand_nodes(",".join(names)) == names


def test_lists_of_nodes() -> None:
    assert expand_nodes("r[1-2]n[01-02],login") == ["r1n01", "r1n02", "r2n01", "r2n02", "login"]
    assert expand_nodes("n[098-101]") == ["n098", "n099", "n100", "n101"]
    for bad in ("n[1-2", "n1]", "n[[1]]", "n[a-b]", "n[5-1]", "n[1-99999999]"):
        with pytest.raises(ValueError, match="nodes"):
            expand_nodes(bad)
