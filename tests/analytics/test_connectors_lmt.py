"""LMT's records: the same interval in every form gives the same rows; lost samples and resets are NULL."""

from __future__ import annotations

import contextlib
import gzip
import pathlib
import random
import sqlite3
from typing import Any

import numpy as np
import pytest

from mpiio_ext.analytics.sources.lmt import convert
from mpiio_ext.analytics.tables.schema import LMT
from support.traces import shared_data

SAMPLES = [f"snx11025_2018-01-28.{form}" for form in ("sqlite3", "hdf5", "h5lmt")]
ZONE = "America/Los_Angeles"
TABLES = ("OST_INFO", "TIMESTAMP_INFO", "OST_DATA")


def base_of(path: pathlib.Path, samples: dict[str, list[Any]], stamps: list[str]) -> pathlib.Path:
    """Write an LMT database: OST -> (read, written) at every stamp, or None where the sample is lost."""
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE OST_INFO (OST_ID, OSS_ID, OST_NAME, HOSTNAME)")
        base.execute("CREATE TABLE TIMESTAMP_INFO (TS_ID, TIMESTAMP)")
        base.execute("CREATE TABLE OST_DATA (OST_ID, TS_ID, READ_BYTES, WRITE_BYTES, PCT_CPU)")
        base.executemany("INSERT INTO TIMESTAMP_INFO VALUES (?, ?)", list(enumerate(stamps, 50)))
        for number, (name, values) in enumerate(samples.items(), 1):
            base.execute("INSERT INTO OST_INFO VALUES (?, 1, ?, 'h')", (number, name))
            base.executemany(
                "INSERT INTO OST_DATA VALUES (?, ?, ?, ?, 0.5)",
                [(number, 50 + k, *value) for k, value in enumerate(values) if value is not None],
            )
    return path


def dump_of(path: pathlib.Path) -> str:
    """Return a database as mysqldump writes it."""
    out = []
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as base:
        for table in TABLES:
            cursor = base.execute(f"SELECT * FROM {table}")
            out.append(f"CREATE TABLE `{table}` (\n")
            out += [f"  `{column[0]}` int(10) unsigned NOT NULL,\n" for column in cursor.description]
            out.append("  PRIMARY KEY (`x`)\n) ENGINE=MyISAM;\n")
            rows = [
                "("
                + ",".join(
                    "NULL" if value is None else f"'{value}'" if isinstance(value, str) else repr(value)
                    for value in row
                )
                + ")"
                for row in cursor
            ]
            out += [f"INSERT INTO `{table}` VALUES {','.join(rows[k : k + 100])};\n" for k in range(0, len(rows), 100)]
    return "".join(out)


def rows(path: pathlib.Path, zone: str = "UTC") -> tuple[Any, list[dict[str, Any]]]:
    found = convert([path.name], str(path.parent), zone)
    table = found.tables["lmt"].sort_by([("time", "ascending"), ("ost", "ascending")])
    assert table.schema == LMT.schema()
    table.validate(full=True)
    return found.outcomes[0], table.to_pylist()


def test_the_three_forms_agree_and_so_does_a_dump(tmp_path: pathlib.Path) -> None:
    folder = shared_data("tokio/samples")
    dump = tmp_path / "dump.sql.gz"
    dump.write_bytes(gzip.compress(dump_of(folder / SAMPLES[0]).encode()))
    results = [rows(path, ZONE) for path in (*(folder / name for name in SAMPLES), dump)]
    assert [outcome.status for outcome, _ in results] == ["whole"] * 4
    first = results[0][1]
    assert all(found == first for _, found in results)
    assert len(first) == 60 * 24
    assert (first[0]["time"], first[-1]["time"]) == (1517126400.0, 1517126695.0)
    with contextlib.closing(sqlite3.connect(f"{(folder / SAMPLES[0]).as_uri()}?mode=ro&immutable=1", uri=True)) as base:
        moved = base.execute(
            "SELECT SUM(last - first) FROM (SELECT MAX(READ_BYTES) last, MIN(READ_BYTES) first "
            "FROM OST_DATA GROUP BY OST_ID)"
        ).fetchone()[0]
    assert sum(row["bytes_read"] for row in first) == moved


def test_a_compressed_dump_that_is_damaged(tmp_path: pathlib.Path) -> None:
    """At every place of its bytes: what was read until then, or a reason."""
    whole = gzip.compress(dump_of(shared_data("tokio/samples") / SAMPLES[0]).encode())
    for place in range(100, len(whole), len(whole) // 12):
        path = tmp_path / f"{place}.sql.gz"
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF, whole[place + 1] ^ 0x55]) + whole[place + 2 :])
        outcome, _ = rows(path, ZONE)
        assert outcome.status in ("partial", "skipped") and outcome.reason


STAMPS = [f"2018-01-28 00:00:{second:02}" for second in (0, 5, 10, 15, 20, 25)]


def test_lost_samples_and_resets_are_null(tmp_path: pathlib.Path) -> None:
    path = base_of(
        tmp_path / "x.sqlite",
        {
            "fs1-OST000a": [(10, 100), (15, 100), None, (30, 130), (35, 131), (36, 140)],
            "fs1-OST000b": [(10, 100), (15, 105), (3, 106), (5, 107), (5, None), (9, 120)],
        },
        STAMPS,
    )
    outcome, found = rows(path)
    a, b = ([(row["bytes_read"], row["bytes_written"]) for row in found if row["ost"] == ost] for ost in (10, 11))
    assert a == [(5, 0), (None, None), (None, None), (5, 1), (1, 9)]
    assert b == [(5, 5), (None, 1), (2, 1), (0, None), (4, None)]
    assert (outcome.status, found[0]["file_system"], found[0]["ost_name"]) == ("partial", "fs1", "fs1-OST000a")
    assert outcome.reason.startswith("5 steps")


def test_samples_belong_to_the_nearest_step(tmp_path: pathlib.Path) -> None:
    stamps = ["2018-01-28 00:00:01", "2018-01-28 00:00:04", "2018-01-28 00:00:06", "2018-01-28 00:00:11"]
    path = base_of(tmp_path / "x.sqlite", {"f-OST0000": [(0, 0), (4, 0), (6, 0), (11, 0)]}, stamps)
    assert [(row["time"] % 3600, row["bytes_read"]) for row in rows(path)[1]] == [(0.0, 6.0), (5.0, 5.0)]


def test_clocks_that_go_back_in_autumn(tmp_path: pathlib.Path) -> None:
    stamps = ["2018-11-04 01:59:50", "2018-11-04 01:59:55", "2018-11-04 01:00:00", "2018-11-04 01:00:05"]
    path = base_of(tmp_path / "x.sqlite", {"f-OST0000": [(0, 0), (1, 0), (3, 0), (6, 0)]}, stamps)
    outcome, found = rows(path, ZONE)
    assert [row["bytes_read"] for row in found] == [1, 2, 3]
    assert (outcome.status, found[1]["time"] - found[0]["time"]) == ("whole", 5.0)


def test_a_dump_that_is_cut_off_gives_what_it_has(tmp_path: pathlib.Path) -> None:
    text = dump_of(base_of(tmp_path / "x.sqlite", {"f-OST0000": [(k, k) for k in range(6)]}, STAMPS))
    path = tmp_path / "cut.sql"
    path.write_text(text[: text.rindex("(1,54")])
    outcome, found = rows(path)
    assert (outcome.status, [row["bytes_read"] for row in found]) == ("partial", [1, 1, 1])
    assert "cut off" in outcome.reason


def test_hdf5_marks_of_lost_values(tmp_path: pathlib.Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        file["datatargets/timestamps"] = np.array([1000, 1005, 1010])
        for name, values in (("readrates", [[1.0], [-0.0], [np.nan]]), ("writebytes", [[0.0], [3.0], [4.0]])):
            data = file.create_dataset(f"datatargets/{name}", data=np.array(values))
            data.attrs["columns"] = np.array([b"f-OST0001"])
    outcome, found = rows(path)
    assert [(row["bytes_read"], row["bytes_written"]) for row in found] == [(5, 0), (None, 3), (None, 4)]
    assert outcome.status == "partial"
    with h5py.File(path, "a") as file:
        file["datatargets/timestamps"][:] = [1000, 1010, 1020]
    outcome = rows(path)[0]
    assert outcome.status == "skipped"
    assert "10 s behind time stamp 1 of 3" in outcome.reason


def matrices(path: pathlib.Path, steps: int = 40) -> tuple[Any, Any]:
    """Write TOKIO's form in chunks of 10 steps and 2 OSTs, and return what was read and written."""
    h5py = pytest.importorskip("h5py")
    source = np.random.default_rng(4)
    made = [source.integers(1, 10**12, (steps, 4)).astype(float) for _ in range(2)]
    with h5py.File(path, "w") as file:
        file["datatargets/timestamps"] = 1000 + 5 * np.arange(steps)
        for name, values in zip(("readbytes", "writebytes"), made, strict=True):
            data = file.create_dataset(f"datatargets/{name}", data=values, chunks=(10, 2), compression="gzip")
            data.attrs["columns"] = np.array([b"f-OST%04x" % ost for ost in range(4)])
    return made[0], made[1]


def as_matrix(found: list[dict[str, Any]], name: str) -> Any:
    return np.array([np.nan if row[name] is None else row[name] for row in found]).reshape(-1, 4)


def test_a_chunk_that_cannot_be_inflated_costs_its_values_alone(tmp_path: pathlib.Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.hdf5"
    read, written = matrices(path)
    with h5py.File(path) as file:
        chunk = file["datatargets/readbytes"].id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    path.write_bytes(data)
    outcome, found = rows(path)
    assert outcome.status == "partial"
    assert "1 of 8 chunks of readbytes" in outcome.reason
    at = chunk.chunk_offset
    read[at[0] : at[0] + 10, at[1] : at[1] + 2] = np.nan
    np.testing.assert_array_equal(as_matrix(found, "bytes_read"), read)
    np.testing.assert_array_equal(as_matrix(found, "bytes_written"), written)


def test_a_chunk_off_the_grid_or_missing_is_null_and_not_zero(tmp_path: pathlib.Path) -> None:
    """HDF5 reads zeros where the index of chunks leads nowhere."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.hdf5"
    _, written = matrices(path)
    data = bytearray(path.read_bytes())
    tree = data.index(b"TREE\x01", data.index(b"TREE\x01") + 1)  # index of the second matrix
    key = tree + 24 + 8  # behind the node's head, and size and filter mask of its first chunk
    assert int.from_bytes(data[key : key + 8], "little") == 0
    data[key + 8 + 2] = 0x4A  # the chunk's place among the columns
    path.write_bytes(data)
    with h5py.File(path) as file:
        assert not file["datatargets/writebytes"][:10, :2].any(), "HDF5 tells zeros"
    outcome, found = rows(path)
    assert (outcome.status, outcome.rows) == ("partial", {"lmt": 160})
    assert "of 8 chunks of writebytes are missing or damaged" in outcome.reason
    now = as_matrix(found, "bytes_written")
    assert np.isnan(now[:10, :2]).all()
    known = ~np.isnan(now)
    assert known.sum() >= 40
    np.testing.assert_array_equal(now[known], written[known])
    assert not np.isnan(as_matrix(found, "bytes_read")).any()


def test_a_damaged_time_stamp_costs_its_step_alone(tmp_path: pathlib.Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.hdf5"
    read, _ = matrices(path)
    with h5py.File(path, "a") as file:
        file["datatargets/timestamps"][7] += 1 << 40
    outcome, found = rows(path)
    assert outcome.status == "partial"
    assert "number 8" in outcome.reason
    assert [row["time"] for row in found[::4]] == [1000.0 + 5 * k for k in range(40)]
    read[7] = np.nan
    np.testing.assert_array_equal(as_matrix(found, "bytes_read"), read)


def test_a_column_without_an_osts_name_is_left_out(tmp_path: pathlib.Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.hdf5"
    matrices(path)
    with h5py.File(path, "a") as file:
        for name in ("readbytes", "writebytes"):
            file[f"datatargets/{name}"].attrs["columns"] = np.array([b"f-OST0000", b"f-OST0001", b"f-OSTzzzz", b""])
    outcome, found = rows(path)
    assert (outcome.status, {row["ost"] for row in found}) == ("partial", {0, 1})
    assert "f-OSTzzzz" in outcome.reason


@pytest.mark.parametrize("form", ["hdf5", "h5lmt"])
def test_damaged_hdf5_never_raises_nor_tells_zeros(tmp_path: pathlib.Path, form: str) -> None:
    """What is told is what the whole file tells, unless a byte of the values themselves was changed."""
    h5py = pytest.importorskip("h5py")
    whole = (shared_data("tokio/samples") / f"snx11025_2018-01-28.{form}").read_bytes()
    source, path = random.Random(5), tmp_path / "bad.hdf5"
    seen = set()
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(source.randrange(1, 30)):
            data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        path.write_bytes(data)
        outcome, found = rows(path)
        seen.add(outcome.status)
        assert outcome.rows.get("lmt", 0) == len(found)
        assert outcome.status == "whole" or outcome.reason
        for name in ("bytes_read", "bytes_written"):
            known = [row[name] for row in found if row[name] is not None]
            assert outcome.status == "partial" or not known or any(known), h5py.version.hdf5_version
    assert "skipped" in seen or "partial" in seen


def test_other_files_are_skipped(tmp_path: pathlib.Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    (tmp_path / "empty.sql").write_text("")
    (tmp_path / "text.sql").write_text("INSERT INTO `OTHER` VALUES (1);\n")
    (tmp_path / "cut.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(50))
    (tmp_path / "cut.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(50))
    base_of(tmp_path / "name.sqlite", {"disk1": [(1, 1), (2, 2)]}, STAMPS[:2])
    base_of(tmp_path / "one.sqlite", {"f-OST0000": [(1, 1)]}, STAMPS[:1])
    for path in sorted(tmp_path.iterdir()):
        outcome, found = rows(path)
        assert (outcome.status, found) == ("skipped", []), path.name
        assert outcome.reason
    assert convert(["none"], str(tmp_path)).outcomes[0].status == "skipped"


def test_damaged_dumps_never_raise(tmp_path: pathlib.Path) -> None:
    text = dump_of(base_of(tmp_path / "x.sqlite", {"f-OST0000": [(k, k) for k in range(6)]}, STAMPS)).encode()
    source, path = random.Random(11), tmp_path / "bad.sql"
    for _ in range(200):
        data = bytearray(text)
        for _ in range(source.randrange(1, 10)):
            at = source.randrange(len(data))
            noise = bytes(source.choice(b"()',;`0-x\\N\n") for _ in range(source.randrange(3)))
            data[at : at + source.randrange(3)] = noise
        path.write_bytes(data)
        outcome, found = rows(path)
        assert outcome.rows.get("lmt", 0) == len(found)
        assert outcome.status == "whole" or outcome.reason
