"""Merging sorted files gives what sorting all their rows gives; of facts that several logs tell the best stays."""

from __future__ import annotations

import pathlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.analytics.store import merge
from mpiio_ext.analytics.store.merge import Source, merged
from mpiio_ext.analytics.tables.bitmap import with_words
from mpiio_ext.analytics.tables.parquet import GROUP_BYTES, TableWriter
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, LMT, SLURM, TABLES, ost_words


def write(path: pathlib.Path, table: str, rows: list[dict[str, Any]], group: int = 3) -> Source:
    found = pa.Table.from_pylist(rows, schema=TABLES[table].schema()).sort_by(
        [(key, "ascending") for key in merge.KEYS[table]]
    )
    with TableWriter(path, found.schema, table, group_rows=group) as writer:
        writer.write(found)
    return Source(path)


JOBS = st.lists(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 3)), max_size=12), max_size=6)


@settings(max_examples=60)
@given(JOBS, st.integers(1, 5), st.sets(st.integers(1, 3)))
def test_merged_is_sorted(
    tmp_path_factory: pytest.TempPathFactory, sources: list[list[tuple[int, int]]], batch: int, without: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "_LEAST_ROWS", batch)
        patch.setattr(merge, "_MOST_ROWS", batch)
        files = [
            write(
                folder / f"{k}.parquet",
                "darshan_job",
                [{"job_id": job, "log_id": log, "source_log": log, "exe": str(k)} for job, log in rows],
            )
            for k, rows in enumerate(sources)
        ]
        files = [Source(file.path, frozenset(without)) for file in files]
        out = [
            row for table in merged("darshan_job", files, TABLES["darshan_job"].schema()) for row in table.to_pylist()
        ]
    assert [row["job_id"] for row in out] == sorted(row["job_id"] for row in out)
    expected = sorted((job, log, str(k)) for k, rows in enumerate(sources) for job, log in rows if log not in without)
    assert sorted((row["job_id"], row["log_id"], row["exe"]) for row in out) == expected


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.none() | st.integers(0, 9)), max_size=10),
        max_size=5,
    ),
    st.integers(1, 4),
)
def test_each_step_of_an_ost_stays_once(
    tmp_path_factory: pytest.TempPathFactory, sources: list[list[tuple[int, int, int | None]]], batch: int
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "_LEAST_ROWS", batch)
        patch.setattr(merge, "_MOST_ROWS", batch)
        files = [
            Source(
                write(
                    folder / f"{k}.parquet",
                    "lmt",
                    [
                        {"time": time * 5.0, "ost": ost, "ost_name": f"O{ost}", "file_system": "f", "bytes_read": moved}
                        for time, ost, moved in rows
                    ],
                ).path,
                age=k,
            )
            for k, rows in enumerate(sources)
        ]
        out = [row for table in merged("lmt", files, LMT.schema()) for row in table.to_pylist()]
    expected: dict[tuple[int, int], set[int]] = {}
    for rows in sources:
        for time, ost, moved in rows:
            expected.setdefault((time, ost), set()).update([] if moved is None else [moved])
    assert [(row["time"] / 5, row["ost"]) for row in out] == sorted(expected)
    for row in out:
        known = expected[row["time"] / 5, row["ost"]]
        assert row["bytes_read"] in known if known else row["bytes_read"] is None


def test_a_job_that_two_dumps_tell_stays_once(tmp_path: pathlib.Path) -> None:
    first = [
        {"job_id": 1, "submit_time": 5.0, "start_time": 6.0},
        {"job_id": 2, "submit_time": 5.0},
        {"job_id": 3, "start_time": 9.0, "end_time": 10.0},
        {"job_id": 4, "submit_time": 1.0, "end_time": 2.0},
        {"job_id": 5, "submit_time": 1.0},
        {"job_id": 5, "submit_time": 1.0, "start_time": 2.0, "end_time": 3.0},
        {"job_id": 5, "submit_time": 1.0, "start_time": 4.0},
        {"job_id": 6, "start_time": 1.0, "user": "ann", "account": "m1", "partition": "regular"},
    ]
    second = [
        {"job_id": 1, "submit_time": 5.0, "start_time": 6.0, "end_time": 7.0},
        {"job_id": 2, "submit_time": 5.0, "start_time": 8.0},
        {"job_id": 3, "submit_time": 1.0, "start_time": 9.0, "end_time": 10.0, "user": "ann"},
        {"job_id": 4, "submit_time": 100.0, "end_time": 200.0},
        {"job_id": 5, "submit_time": 1.0, "start_time": 4.0, "end_time": 6.0},
        {"job_id": 5, "submit_time": 7.0, "start_time": 8.0, "end_time": 9.0},
        {"job_id": 6, "start_time": 1.0, "end_time": 2.0},
    ]
    files = [Source(write(tmp_path / f"{k}", "slurm", rows).path, age=k) for k, rows in enumerate((second, first))]
    out = [row for table in merged("slurm", files, SLURM.schema()) for row in table.to_pylist()]
    assert [(row["job_id"], row["submit_time"], row["start_time"], row["end_time"]) for row in out] == [
        (1, 5.0, 6.0, 7.0),
        (2, 5.0, 8.0, None),
        (3, 1.0, 9.0, 10.0),
        (4, 1.0, None, 2.0),
        (4, 100.0, None, 200.0),
        (5, 1.0, 2.0, 3.0),  # runs of a job that was requeued
        (5, 1.0, 4.0, 6.0),
        (5, 7.0, 8.0, 9.0),
        (6, None, 1.0, 2.0),  # times count more than names, however many
    ]


@given(st.lists(st.none() | st.sets(st.integers(0, 300)), max_size=20))
def test_words_are_the_lists(lists: list[set[int] | None]) -> None:
    files = pa.Table.from_pylist(
        [{"job_id": 1, "osts": None if one is None else sorted(one)} for one in lists], schema=DARSHAN_FILE.schema()
    )
    table, beyond = with_words(files, 301)
    assert len(beyond) == 0
    for row, one in zip(table.to_pylist(), lists, strict=True):
        words = [row[name] for name in ost_words(301)]
        if one is None:
            assert words == [None] * 5
        else:
            assert {62 * k + bit for k, word in enumerate(words) for bit in range(62) if word >> bit & 1} == one


def test_files_have_the_conventions(tmp_path: pathlib.Path) -> None:
    rows = [{"job_id": number, "log_id": 1, "exe": "x" * 50, "modules": ["POSIX"]} for number in range(5000)]
    found = pa.Table.from_pylist(rows, schema=TABLES["darshan_job"].schema())
    with TableWriter(tmp_path / "x", found.schema, "darshan_job", group_bytes=found.nbytes // 4) as writer:
        for at in range(0, 5000, 700):
            writer.write(found.slice(at, 700))
    metadata = pq.ParquetFile(tmp_path / "x").metadata
    assert (writer.rows, writer.low, writer.high, metadata.num_rows) == (5000, 0, 4999, 5000)
    assert 3 <= metadata.num_row_groups <= 8
    codecs = {}
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            codecs[chunk.path_in_schema] = chunk.compression
            assert chunk.is_stats_set
    assert codecs["exe"] == codecs["modules.list.element"] == "ZSTD"
    assert codecs["job_id"] == codecs["bytes_read"] == "SNAPPY"
    assert pq.read_table(tmp_path / "x").equals(found)
    assert GROUP_BYTES >= 1 << 20
