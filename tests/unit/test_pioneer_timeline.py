"""Time lines of tables with what real traces seldom have: calls that overlap, times that are equal, odd names."""

from __future__ import annotations

import json
import pathlib
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from mpiio_ext.errors import FileSystemError
from mpiio_ext.pioneer import timeline
from mpiio_ext.pioneer.cli import pioneer
from mpiio_ext.pioneer.table import SCHEMA, TraceInfo, with_info
from support import timelines

BEGIN = 1_795_599_523_297_430_832


def row(operation: str, start: int, duration: int | None, **values: Any) -> dict[str, Any]:
    layer = "mpiio" if operation.startswith("MPI_File") else "posix"
    found = dict.fromkeys(SCHEMA.names) | {"operation": operation, "timestamp": BEGIN + start, "duration": duration}
    return found | {"layer": layer, "rank": 0, "thread": 0, "depth": 0, "line": 0} | values


def line_of(folder: pathlib.Path, rows: list[dict[str, Any]]) -> tuple[timelines.Timeline, timeline.Written]:
    table = pa.Table.from_pylist(rows, with_info(SCHEMA, TraceInfo(format="made", ranks=2)))
    pq.write_table(table, folder / "trace.parquet")
    written = timeline.write_timeline([folder / "trace.parquet"], folder / "line.json")
    return timelines.read(folder / "line.json"), written


def test_calls_that_overlap_get_tracks_of_their_own(tmp_path: pathlib.Path) -> None:
    """A viewer would drop them otherwise: `timelines.read` refuses such a track."""
    rng = random.Random(7)
    rows = []
    for number in range(2000):
        start = rng.randrange(20_000)
        values = {
            "rank": rng.randrange(2),
            "thread": rng.randrange(2),
            "size": rng.choice([None, 0, 9]),
            "file": rng.choice([None, "/a", "/b/a"]),
        }
        rows.append(
            row(rng.choice(["MPI_File_write", "pwrite", "close"]), start, rng.randrange(300), **values)
            | {"line": number}
        )
    rows.sort(key=lambda one: one["timestamp"])
    found, written = line_of(tmp_path, rows)
    timelines.check(found, rows)
    assert (written.events, written.ranks, written.files) == (2000, 2, 2)
    assert any(name.endswith(", at the same time (2)") for name in found.tracks.values())


def test_times_are_exact_after_weeks(tmp_path: pathlib.Path) -> None:
    """Viewers multiply microseconds by 1000, and cut off."""
    weeks = 4 * 7 * 86400 * 10**9
    rows = [row("pwrite", 0, 1)] + [row("pwrite", weeks + 1000 * k + k, k) for k in range(1000)]
    found, _ = line_of(tmp_path, rows)
    timelines.check(found, rows)


def test_equal_times_nest_in_the_order_of_the_rows(tmp_path: pathlib.Path) -> None:
    rows = [row("MPI_File_read", 5, 5), row("pread", 5, 5, size=1, file="/a", depth=1), row("pread", 10, 0, file="/a")]
    found, _ = line_of(tmp_path, rows)
    inner, outer = found.of_group("rank ")[1], found.of_group("rank ")[0]
    assert (outer["name"], inner["around"]) == ("MPI_File_read", [outer])
    assert [(begin["name"], end["name"]) for begin, end in found.arrows()] == [("MPI_File_read", "pread")]
    assert len(found.of_group("file ")) == 2


def test_calls_without_an_end(tmp_path: pathlib.Path) -> None:
    """One that was under way has none; where a format knows no durations, calls are moments."""
    rows = [
        row("MPI_File_write", 1, None, extra='{"unfinished":1}'),
        row("pwrite", 2, 3, size=1, file='/"\u2028\\'),
        row("close", 9, None),
    ]
    found, _ = line_of(tmp_path, rows)
    assert [(one["name"], one["start"], one["end"]) for one in found.of_group("rank ")] == [
        ("MPI_File_write", 1 - 1, timelines.ENDLESS),
        ("pwrite", 1, 4),
        ("close", 8, 8),
    ]
    assert found.of_group("file ")[0]["args"]["file"] == '/"\u2028\\'


def test_only_files_with_data_have_tracks(tmp_path: pathlib.Path) -> None:
    """Those that the MPI library keeps for itself have none."""
    rows = [
        row("stat", 1, 1, file="/looked/at"),
        row("ftruncate", 3, 1, size=7, file="/cut"),
        row("open", 5, 1, file="/data"),
        row("fwrite", 7, 1, layer="stdio", size=7, file="/data"),
        row("write", 9, 1, size=8, file="/tmp/ompi.host.0/pid.7/1/data_cid-0-7.sm"),
    ]
    found, _ = line_of(tmp_path, rows)
    assert {name for name in found.groups.values() if name.startswith("file")} == {"file data (/data)"}
    assert [event["name"] for event in found.of_group("file ")] == ["open", "fwrite"]


def test_an_empty_trace_is_a_time_line(tmp_path: pathlib.Path) -> None:
    found, written = line_of(tmp_path, [])
    assert (found.slices, written.events) == ([], 0)


def test_how_far_it_is(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiio_ext.pioneer.cli_timeline._EVERY_S", 1e-9)
    rows = [row("pwrite", 2 * k, 1) for k in range(70_000)]
    line_of(tmp_path, rows)
    words = ["timeline", str(tmp_path / "trace.parquet"), "-o", str(tmp_path / "again.json")]
    result = CliRunner().invoke(pioneer, words)
    assert result.exit_code == 0, result.output
    assert "pioneer timeline: call 65,536 of 70,000, about " in result.stderr
    assert result.stdout.startswith(f"wrote {tmp_path / 'again.json'}: 70,000 calls of 1 rank, requests to 0 files; ")


def test_what_cannot_be_written_or_read(tmp_path: pathlib.Path) -> None:
    line_of(tmp_path, [row("pwrite", 1, 1)])
    with pytest.raises(FileSystemError, match="cannot be written"):
        timeline.write_timeline([tmp_path / "trace.parquet"], tmp_path / "missing" / "line.json")
    (tmp_path / "text").write_text("no trace\n", encoding="utf-8")
    refused = CliRunner().invoke(pioneer, ["timeline", str(tmp_path / "text"), "-o", str(tmp_path / "x.json")])
    assert refused.exit_code == 2 and refused.stderr.startswith("mpiio-ext: ") and not (tmp_path / "x.json").exists()
    inside = CliRunner().invoke(pioneer, ["timeline", str(tmp_path / "text"), "-o", str(tmp_path / "no" / "x.json")])
    assert inside.exit_code == 2 and "there is no folder" in inside.stderr


def test_the_file_is_json_line_by_line(tmp_path: pathlib.Path) -> None:
    """An event a line, so that line tools do."""
    line_of(tmp_path, [row("pwrite", 1, 1, extra='{"flags":2}')])
    _head, *lines, last = (tmp_path / "line.json").read_text(encoding="utf-8").replace("]}", "\n]}").splitlines()
    assert last == "]}"
    assert json.loads(lines[-1])["args"] == {"details": {"flags": 2}}
