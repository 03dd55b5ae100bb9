"""Darshan's counters as facilities share them: of the records of a log the rows are those of the log itself."""

from __future__ import annotations

import math
import pathlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.miner import IOMiner
from mpiio_ext.analytics.sources import Records, SourceError
from mpiio_ext.analytics.sources.counters import WANTED
from support import source_texts as texts
from support.traces import shared_data


def read(folder: pathlib.Path, text: str | bytes) -> Records:
    path = folder / "input"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return sources.read(path)


def files(records: Records) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in records.tables["darshan_file"].to_pylist()
    ]


# ---- records ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_records_are_joined_to_files_and_a_job(tmp_path: pathlib.Path, form: str) -> None:
    records = read(tmp_path, texts.COUNTERS if form == "csv" else texts.parquet(texts.COUNTERS))
    single, shared = files(records)
    assert (single["file_id"], single["ranks"], single["opens"], single["reads"]) == (-1, 2, 3, 6)
    assert (single["bytes_read"], single["bytes_written"], single["root_bytes_written"]) == (1010, 7, 7)
    assert single["write_start"] == 1638885281.25, "the first time of any rank; 0 is never"
    assert "ranks" not in shared, "all ranks opened it, and the table does not say how many there are"
    assert (shared["slowest_rank_time"], shared["mpiio_bytes_written"]) == (2.5, 600)
    assert not {"write_start", "root_bytes_written", "consec_reads", "processes"} & shared.keys()
    (job,) = records.tables["darshan_job"].to_pylist()
    assert (job["job_id"], job["bytes_written"], job["files"], job["files_read"], job["run_time"]) == (
        3819766,
        607,
        2,
        1,
        322.0,
    )
    assert (job["modules"], job["uses_mpiio"], job["uses_stdio"]) == (["POSIX", "MPI-IO"], True, False)
    assert job["processes"] is None and job["uid"] is None


def test_sums_of_logs_are_jobs_without_files(tmp_path: pathlib.Path) -> None:
    records = read(tmp_path, texts.COUNTERS_TOTAL)
    first, second = records.tables["darshan_job"].to_pylist()
    assert (first["bytes_read"], first["opens"], first["processes"], first["run_time"], first["app"]) == (
        1024,
        15,
        6,
        323.0,
        "b4717",
    )
    assert (first["read_start"], second["read_start"]) == (1638885282.006361, None)
    assert (second["modules"], second["bytes_written"]) == (["STDIO"], None)
    assert first["files"] is None and not files(records)
    assert first["log_id"] != second["log_id"]


def _records_of(log: pathlib.Path) -> pa.Table:
    """Return the records of a log as a table of counters, with NULL where a module has none of a file."""
    darshan = pytest.importorskip("darshan", reason="needs the package darshan")
    report = darshan.DarshanReport(str(log), read_all=True)
    job = report.metadata["job"]
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    for module in ("POSIX", "STDIO", "MPI-IO"):
        for record in report.records.get(module, []):
            row = rows.setdefault((record["id"], record["rank"]), {})
            for part, dtype in (("counters", int), ("fcounters", float)):
                pairs = zip(report.counters[module][part], record[part], strict=True)
                row |= {name: dtype(value) for name, value in pairs if name in WANTED}
    common = {
        "jobid": job["jobid"],
        "start_time": job["start_time_sec"],
        "end_time": job["end_time_sec"],
        "nprocs": job["nprocs"],
        "uid": "masked",
    }
    names = dict.fromkeys(name for row in rows.values() for name in row)
    out = [
        {"recordid": key[0], "rank": key[1], **common, **{name: row.get(name) for name in names}}
        for key, row in rows.items()
    ]
    columns = {name: [row[name] for row in out] for name in out[0]}
    return pa.table(
        {name: pa.array(values, pa.uint64() if name == "recordid" else None) for name, values in columns.items()}
    )


@pytest.mark.parametrize(
    "name",
    [
        "known_truth/metadata_storm-4.darshan",
        "known_truth/read_modify_write-4.darshan",
        "known_truth/small_independent-4.darshan",
        "tokio/samples/sample-goodost.darshan",
    ],
)
def test_the_rows_of_a_log_and_of_its_records_are_the_same(tmp_path: pathlib.Path, name: str) -> None:
    log = shared_data(name)
    pq.write_table(_records_of(log), tmp_path / "x.parquet")
    theirs, ours = sources.read(log).tables, sources.read(tmp_path / "x.parquet").tables
    begin = theirs["darshan_job"]["start_time"][0].as_py()
    wanted = {row["file_id"]: row for row in theirs["darshan_file"].to_pylist()}
    compared = 0
    for row in ours["darshan_file"].to_pylist():
        other = wanted[row["file_id"]]
        for column, value in row.items():
            if value is None or column in ("log_id", "source_log", "file", "mount", "fs_type"):
                continue
            expected = other[column]
            if column.endswith(("_start", "_end")):  # the table has the start in whole seconds
                assert value - int(begin) == pytest.approx(expected - begin, abs=1e-6)
            else:
                same = math.isclose(value, expected, rel_tol=1e-12) if isinstance(value, float) else value == expected
                assert same, (column, value, expected)
            compared += 1
        lost = [column for column, value in other.items() if value is not None and row[column] is None]
        assert set(lost) <= set("file mount fs_type osts components stripe_size stripe_count stripe_offset".split())
    assert compared > 20
    job, other = ours["darshan_job"].to_pylist()[0], theirs["darshan_job"].to_pylist()[0]
    for column in ("bytes_read", "bytes_written", "reads", "writes", "opens", "files_written", "processes"):
        assert job[column] == other[column]


# ---- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (",1,2,10,7,", ",1,2,1o,7,", "input:2: POSIX_BYTES_READ: '1o' is no number"),
        ("18446744073709551615,1", "18446744073709551616,1", "input:3: recordid: '18446744073709551616' is no ID"),
        (",6,600,\n", ",6,600\n", "input:4: 17 values, and the first line names 18"),
    ],
)
def test_lines_that_are_damaged(tmp_path: pathlib.Path, old: str, new: str, problem: str) -> None:
    assert old in texts.COUNTERS
    records = read(tmp_path, texts.COUNTERS.replace(old, new, 1))
    assert [str(one).replace(records.path, "input") for one in records.problems] == [problem]


def test_tables_that_are_none_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(SourceError, match="start_time has an invalid value"):
        read(tmp_path, texts.COUNTERS.replace("3819766,1638885281", "3819766,-5"))
    whole = texts.parquet(texts.COUNTERS)
    (tmp_path / "input").write_bytes(whole[: len(whole) // 2])
    assert sources.recognize(tmp_path / "input").NAME == "counters"  # so that what is wrong with it is told
    with pytest.raises(SourceError, match="input: cannot be read"):
        sources.read(tmp_path / "input", "counters")
    pq.write_table(
        pa.table({"recordid": [1], "rank": ["x"], "jobid": [1], "start_time": [1], "end_time": [2]}), tmp_path / "input"
    )
    with pytest.raises(SourceError, match="column rank is of string, and no numbers"):
        sources.read(tmp_path / "input")


def test_a_store_is_filled_with_shared_counters(tmp_path: pathlib.Path) -> None:
    (tmp_path / "summit").mkdir()
    (tmp_path / "summit" / "3819766-0.parquet").write_bytes(texts.parquet(texts.COUNTERS))
    (tmp_path / "summit" / "App11.csv").write_text(texts.COUNTERS_TOTAL)
    setup = {"store": str(tmp_path / "store"), "workers": 0, "inputs": {"counters": [str(tmp_path / "summit")]}}
    with IOMiner(setup) as miner:
        miner.init_stores(quiet=True)
        found = miner.load("darshan_job").project("job_id", "bytes_read").rows()
        rows = sorted((row["job_id"], row["bytes_read"]) for row in map(dict, found))
        assert rows == [(2158071, 0), (3819766, 1010), (3819766, 1024)]
        assert len(list(miner.load("darshan_file").rows())) == 2
