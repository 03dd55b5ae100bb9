"""The diagnosis of fresh logs: small programs with a known problem, run under Darshan's runtime."""

from __future__ import annotations

import json
import pathlib

import pytest
from click.testing import CliRunner

from corpora import diagnosis_corpus
from corpora.diagnosis_truth import judged
from mpiio_ext.cli import main
from support.darshan_records import darshan_runtime
from support.marks import slow

pytestmark = pytest.mark.mpi


@pytest.fixture
def darshan() -> str:
    """Return Darshan's runtime library, which is for Open MPI."""
    return darshan_runtime()


@pytest.mark.parametrize(
    ("kind", "variant"),
    [
        ("few_aggregators", "dxt"),
        ("small_posix", "plain"),
        *slow(("shared_opens", "bare"), ("metadata_storm", "plain")),
        ("read_modify_write", "plain"),
        ("large_independent", "slow"),
        ("little_io", "plain"),
        ("atomic_writes", "slow-dxt"),  # storage that sleeps: in memory the machine's turns are as long as the waits
        ("ranks_in_turn", "dxt"),
        *slow(("root_metadata", "plain")),
        ("stdio_bytes", "plain"),
        ("metadata_storm:0.75+one_writer:0.25", "plain"),
    ],
)
def test_the_first_sentence_is_right(kind: str, variant: str, darshan: str, tmp_path: pathlib.Path) -> None:
    """And nothing else is said with high confidence."""
    row = judged(diagnosis_corpus.run(kind, 3, variant, darshan, tmp_path), tmp_path)
    assert row["right"] and not row["wrong"], row["sentences"]
    assert row["sentences"][0].startswith("No cause") == (not row["first"])
    assert list(row["seconds"]) == [part.split(":")[0] for part in kind.split("+")]


def test_steps_of_one_job(darshan: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three programs in turn, whose logs have one ID of a job: each is told right, and the times are one."""
    monkeypatch.setenv("DARSHAN_JOBID", "STEPS_OF_JOB")  # the variable with the ID
    monkeypatch.setenv("STEPS_OF_JOB", "4711")
    kinds = ["little_io", "one_writer", "metadata_storm"]
    logs = [str(tmp_path / str(diagnosis_corpus.run(kind, 3, "dxt", darshan, tmp_path)["log"])) for kind in kinds]
    done = CliRunner().invoke(main, ["analyze", "logs", "--json", *reversed(logs)])
    (found,) = json.loads(done.stdout)
    assert found["job_id"] == 4711 and [step["log"] for step in found["steps"]] == [
        pathlib.Path(log).name for log in logs
    ]
    first = [step["diagnosis"][0]["findings"][:1] for step in found["steps"]]
    assert [each[0]["cause"] if each else "" for each in first] == ["", "root_writes", "metadata"]
    times = [step["run_time"] for step in found["steps"]]
    assert max(times) < found["run_time"] <= sum(times) + 0.01
    parts = [step["io_time"] for step in found["steps"]]
    assert max(parts) < found["io_time"] <= sum(parts) + 0.01
    assert "of the job's time in I/O" in found["conclusion"]
