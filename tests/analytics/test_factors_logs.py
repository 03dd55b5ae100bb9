"""Factors and diagnoses of real logs: from the connector's rows, and from rows made apart from it by PyDarshan."""

from __future__ import annotations

import pathlib
from typing import Any

import pyarrow as pa
import pytest

from mpiio_ext.analytics.diagnosis import diagnose
from mpiio_ext.analytics.factors import extract
from mpiio_ext.analytics.sources.darshan import convert
from support import darshan_rows

LOGS = ("sample-badost", "sample-goodost", "ior_hdf5_example", "shane_macsio", "example.darshan")

#: The connector also has files of the module STDIO alone, and rows that only have a layout.
OTHERS = {"log_id", "files", "files_per_process", "metadata", "straggler"}


def log(name: str) -> pathlib.Path:
    if name.startswith("sample"):
        return darshan_rows.shared_data("tokio", "samples", f"{name}.darshan")
    (path,) = darshan_rows.example("dxt.darshan").parent.glob(f"{name}*")
    return path


def tables(path: pathlib.Path) -> tuple[pa.Table, pa.Table]:
    found = convert([path.name], str(path.parent))
    assert [outcome.status for outcome in found.outcomes] == ["whole"]
    return found.tables["darshan_job"], found.tables["darshan_file"]


@pytest.mark.slow_with("write-sample-badost")
@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("direction", ["read", "write"])
def test_both_ways_give_the_same_factors(name: str, direction: Any) -> None:
    jobs, files = tables(log(name))
    job, rows = darshan_rows.rows(log(name))
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    ours = extract(files, direction=direction, jobs=jobs).to_pylist()
    theirs = extract(table, direction=direction, jobs=pa.Table.from_pylist([job])).to_pylist()
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for key in one.keys() - OTHERS:
            assert one[key] == (pytest.approx(other[key], rel=1e-5) if isinstance(other[key], float) else other[key]), (
                key
            )


@pytest.mark.parametrize("name", LOGS)
def test_diagnosis_of_the_connectors_rows(name: str) -> None:
    found = diagnose(*tables(log(name)))
    expected = {"sample-badost": "slow_ost", "ior_hdf5_example": "contention", "shane_macsio": "read_modify_write"}
    causes = [finding.cause for finding in found.findings if finding.confidence != "low"]
    assert causes[:1] == ([expected[name]] if name in expected else [])
    assert found.critical_files[0][0].startswith("/")
    if name == "sample-badost":
        assert list(found.findings[0].osts) == ["14"]


def test_a_whole_chain_of_queries(tmp_path: pathlib.Path) -> None:
    """Algorithm 1, lines 23 to 25, on the bad and the good sample: only the bad one is below 1 GB/s."""
    pytest.importorskip("ibis")
    from mpiio_ext.analytics.query import Tuples, open_engine

    both = [tables(log(name)) for name in ("sample-badost", "sample-goodost")]
    jobs, files = (pa.concat_tables(parts) for parts in zip(*both, strict=True))
    engine = open_engine("duckdb")
    file_tuples = Tuples(engine, engine.table(files), "darshan_file")
    found = file_tuples.extract_perf_factors("0", "1GB", "write")
    assert isinstance(found, Tuples)
    (row,) = found.rows()
    assert row["job_id"] == both[0][0]["job_id"][0].as_py()
    assert row["slow_ost"] == pytest.approx(49.5, rel=1e-2)  # with the syncs
    assert found.filter("slow_ost > 3").count() == 1
    assert extract(files, "0", "1GB", "write", jobs=jobs)["collective"].to_pylist() == [0]
