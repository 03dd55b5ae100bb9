"""Cobalt's jobs: ALCF's published tables, accounting records and qstat, beside the jobs of Slurm."""

from __future__ import annotations

import pathlib

import pytest

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.miner import IOMiner
from mpiio_ext.analytics.sources import SourceError
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.others import job_of, jobs_in
from support import source_texts as texts
from support.expected import Expected
from support.job_logs import RECORDS, log_at
from support.monitoring import read, said, told

CHICAGO = "America/Chicago"


def test_published_tables(tmp_path: pathlib.Path, expected: Expected) -> None:
    """PBS names jobs otherwise, and has no ID of Cobalt."""
    polaris = texts.COBALT.replace(",1204001,", ",,").replace("1204001.mira", "77.polaris-pbs-01")
    for text in (texts.COBALT, polaris):
        expected(told(read(tmp_path, text, zone=CHICAGO)))


def test_accounting_records_of_a_job_are_put_together(tmp_path: pathlib.Path, expected: Expected) -> None:
    """Records of tasks and reservations are no jobs, and no damage."""
    expected(told(read(tmp_path, texts.COBALT_RECORDS, zone=CHICAGO)))


@pytest.mark.parametrize("text", ["COBALT_QSTAT", "COBALT_LONG"])
def test_qstat(tmp_path: pathlib.Path, text: str, expected: Expected) -> None:
    expected(told(read(tmp_path, getattr(texts, text))))


@pytest.mark.parametrize(("text", "local"), [("COBALT", True), ("COBALT_RECORDS", False), ("COBALT_QSTAT", True)])
def test_which_times_are_local(tmp_path: pathlib.Path, text: str, local: bool) -> None:
    path = tmp_path / "input"
    path.write_text(getattr(texts, text))
    assert sources.local_times(path) is local
    assert sources.recognize(path).NAME == "cobalt"


@pytest.mark.parametrize(
    ("text", "old", "new", "problem"),
    [
        ("COBALT", ",4096.0,4096.0,", ",40x6.0,4096.0,", "input:2: '40x6.0' is no number"),
        ("COBALT", ",4096.0,4096.0,", ",4096.5,4096.0,", "input:2: '4096.5' is no count"),
        ("COBALT", "2017-06-01 10:30:00.5", "2017-06-31 10:30:00", "input:2: '2017-06-31 10:30:00' is no time"),
        ("COBALT", ",script,3\n", "\n", "input:2: 19 values, and the first line names 21"),
        (
            "COBALT",
            "1204001.mira,1204001",
            "mira,0",
            "input:2: neither COBALT_JOBID, JobID nor JOB_NAME is the ID of a job",
        ),
        ("COBALT", "3-4,10", "4-3,10", "input:3: '4-3' is no range of nodes"),
        (
            "COBALT_RECORDS",
            "22:58:40;S;",
            "22:58:4;S;",
            "input:2: no accounting record: '11/07/2014 22:58:4;S;359758;account=P1 ctime=1415414459.0 ex'",
        ),
        ("COBALT_RECORDS", "end=1415422930.0", "end=14154x2930.0", "input:4: '14154x2930.0' is no time"),
        (
            "COBALT_QSTAT",
            "359799  bernd  06:00:00",
            "359799  bernd-106:00:00",
            "input:4: the columns are not those of the heading: "
            "'359799  bernd-106:00:00  00:01:00    N/A       512    queued'",
        ),
        (
            "COBALT_LONG",
            "    Nodes            : 4096",
            "    Nodes              4096",
            "input:4: no value of a job: 'Nodes              4096'",
        ),
    ],
)
def test_jobs_that_are_damaged(tmp_path: pathlib.Path, text: str, old: str, new: str, problem: str) -> None:
    whole = getattr(texts, text)
    assert old in whole
    records = read(tmp_path, whole.replace(old, new, 1))
    assert said(records) == [problem]


def test_what_is_none_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(SourceError, match="no jobs of Cobalt: neither a line that names COBALT_JOBID"):
        read(tmp_path, texts.SACCT, source="cobalt")
    with pytest.raises(SourceError, match="no job: there is only a heading"):
        read(tmp_path, texts.COBALT.partition("\n")[0] + "\n")


def test_what_ran_beside_a_job_is_asked_of_cobalt_as_of_slurm(tmp_path: pathlib.Path) -> None:
    records = read(tmp_path, texts.COBALT)
    found, notes = jobs_in([records], Period(1496313900.0, 1496314000.0))
    assert found is not None and not notes
    assert (found.jobs.num_rows, found.nodes) == (2, 4099)
    assert found.node_hours == pytest.approx(4099 * 100 / 3600)
    job = job_of([records], 205001)
    assert job is not None and job["cores"] == 192


def test_a_store_joins_darshan_logs_to_jobs_of_cobalt(tmp_path: pathlib.Path) -> None:
    (tmp_path / "darshan").mkdir()
    log_at(tmp_path / "darshan" / "a.darshan", RECORDS, "/gpfs", start=1496313100, end=1496316000, job_id=1204001)
    (tmp_path / "cobalt").mkdir()
    (tmp_path / "cobalt" / "ANL-ALCF-DJC-MIRA_20170101_20171231.csv").write_text(texts.COBALT)
    (tmp_path / "cobalt" / "noise.csv").write_text("a,b\n1,2\n")
    setup = {
        "store": str(tmp_path / "store"),
        "workers": 0,
        "inputs": {"darshan": [str(tmp_path / "darshan")], "cobalt": [str(tmp_path / "cobalt")]},
    }
    with IOMiner(setup) as miner:
        miner.init_stores(quiet=True)
        rows = miner.load("darshan_job").join(miner.load("slurm"), "job_id").project("job_id", "node_count").rows()
        assert [dict(row) for row in rows] == [{"job_id": 1204001, "node_count": 4096}]
