"""Finding connectors by name, contents and entry points; records and their problems."""

from __future__ import annotations

import gzip
import importlib.metadata
import pathlib
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.sources import Problem, Records, SourceError, content, records, registry
from support import cbuild
from support import source_texts as texts

#: The example of docs/reference/sources.md.
PACKAGE = """
import pyarrow as pa

from mpiio_ext.analytics.sources import Records, SourceError
from mpiio_ext.analytics.tables.schema import Column, Table

NAME = "beegfs"
MEANING = "BeeGFS: free space of targets"
ROLE = "fullness"
PATTERNS = ("beegfs-df*.txt",)
TABLES = (
    Table(
        "targets", "one row a target", (Column("target", "int64", "", "ID"), Column("free", "int64", "B", "free space"))
    ),
)


def recognizes(head):
    return head.text.startswith("TargetID")


def read(path, time_zone):
    rows = [line.split() for line in path.read_text().splitlines()[1:]]
    if not rows:
        raise SourceError(str(path), 1, "no target")
    columns = {"target": [int(row[0]) for row in rows], "free": [int(row[1]) for row in rows]}
    return Records(source=NAME, path=str(path), tables={"targets": pa.table(columns)})
"""


@pytest.fixture
def distribution(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed distribution with a connector, one that cannot be imported, one that lacks parts, one misnamed."""
    (tmp_path / "their_beegfs.py").write_text(PACKAGE)
    info = tmp_path / "their_beegfs-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-beegfs\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[{sources.ENTRY_POINTS}]\nbeegfs = their_beegfs\nbroken = their_missing\nhalf = json\nother = their_beegfs\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._others.cache_clear()
    yield
    registry._others.cache_clear()


@pytest.mark.usefixtures("distribution")
def test_a_connector_of_another_package(tmp_path: pathlib.Path) -> None:
    assert importlib.metadata.entry_points(group="mpiio_ext.analytics.connectors")
    with pytest.warns(RuntimeWarning) as caught:
        found = sources.connectors()
    said = sorted(str(warning.message) for warning in caught)
    wanted = [
        "broken (their_missing) is left out: No module named",
        "half (json) is left out: it has no NAME, MEANING",
        "other (their_beegfs) is left out: it is called 'beegfs'",
    ]
    assert len(said) == 3
    assert all(line.startswith(f"connector {text}") for line, text in zip(said, wanted, strict=True)), said
    assert list(found)[-1] == "beegfs" and list(found)[:-1] == list(sources.BUILT_IN)
    path = tmp_path / "beegfs-df.txt"
    path.write_text("TargetID Free\n1 500\n2 700\n")
    read = sources.read(path)
    assert (read.source, read.tables["targets"]["free"].to_pylist()) == ("beegfs", [500, 700])
    assert Records.from_json(read.to_json()).equals(read)


def test_the_example_of_the_documentation_is_the_one_that_is_tested() -> None:
    assert PACKAGE.strip() in (cbuild.ROOT / "docs" / "reference" / "sources.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("source", texts.TEXTS)
def test_a_file_is_recognised_by_what_it_begins_with(tmp_path: pathlib.Path, source: str) -> None:
    for data in (texts.TEXTS[source], gzip.compress(texts.TEXTS[source])):
        (tmp_path / "no-name").write_bytes(data)
        assert source == sources.recognize(tmp_path / "no-name").NAME


def test_what_no_connector_reads(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        sources.read(path)
    path.write_bytes(b"")
    with pytest.raises(SourceError, match="x: empty"):
        sources.read(path)
    with pytest.raises(SourceError, match="x: empty"):
        sources.read(path, "lfs-df")
    path.write_text("a letter to somebody\n")
    (tmp_path / "table.csv").write_text("rank,bytes\n1,2\n3,4\n")  # numbers in the first column are no times
    with pytest.raises(SourceError, match="no connector knows this"):
        sources.recognize(tmp_path / "table.csv")
    with pytest.raises(SourceError, match="no connector knows this; name one of darshan, lmt"):
        sources.read(path)
    with pytest.raises(SourceError, match="there is no connector of this name; there are darshan"):
        sources.read(path, "nosuch")
    with pytest.raises(SourceError, match=r"no connector knows this"):
        sources.read(tmp_path)
    with pytest.raises(SourceError, match="'Mars/North' is no time zone"):
        path.write_text(texts.USAGE)
        sources.read(path, time_zone="Mars/North")


def test_every_source_refuses_what_it_is_not(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x"
    path.write_text("a letter to somebody\nof two lines\n")
    for source in sources.BUILT_IN:
        with pytest.raises(SourceError, match=str(path)):
            sources.read(path, source)


def test_what_cannot_be_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "x").write_bytes(texts.TEXTS["csv"])
    found = sources.read(tmp_path / "x")
    with pytest.raises(SourceError, match="cannot be written: No such file"):
        found.save(tmp_path / "none" / "y.json")


def test_problems_are_counted_beyond_those_that_are_named(tmp_path: pathlib.Path) -> None:
    good, many = "  0 UP mgc MGC10.1.1.3@o2ib2 3547302e-74a0 5\n", records.MOST_NAMED + 500
    (tmp_path / "x").write_text(good + "nonsense\n" * many)
    found = sources.read(tmp_path / "x", "lctl-dl")
    assert (found.lost, len(found.problems)) == (many, records.MOST_NAMED + 1)
    assert found.problems[-1] == Problem(str(tmp_path / "x"), 0, "500 more problems, not named", 500)
    with pytest.raises(SourceError, match=r"x:2: no device: 'nonsense' \(1,500 lines lost in all\)"):
        found.check()


def test_an_error_can_be_sent_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(SourceError("f", 3, "what")))
    assert (str(error), error.file, error.line, error.what) == ("f:3: what", "f", 3, "what")


def test_records_keep_every_type() -> None:
    table = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            "l": pa.array([2**62, None], pa.int64()),
            "f": pa.array([float("nan"), float("-inf")]),
            "s": pa.array(["\u00e9\n", None]),
            "b": pa.array([True, None]),
            "y": pa.array([b"\x00\xff", None]),
            "li": pa.array([[1, 2], None], pa.list_(pa.int32())),
            "ls": pa.array([["a"], []], pa.list_(pa.string())),
            "none": pa.array([None, 0.1], pa.float64()),
        }
    )
    found = Records(source="x", path="y", tables={"t": table, "empty": table.slice(0, 0)}, header={"a": [1, None]})
    again = Records.from_json(found.to_json())
    assert again.equals(found) and again.header == found.header
    assert again.tables["t"].schema == table.schema and again.tables["empty"].schema == table.schema
    assert not found.equals(Records(source="x", path="y", tables={"t": table.slice(1), "empty": table.slice(0, 0)}))


def test_gzip_of_several_members_with_padding_and_with_something_behind(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "f"
    problems = records.Problems("f")
    first, second = b"a" * 3_000_000, b"b\n"
    data = gzip.compress(first) + gzip.compress(second)
    for behind in (b"", bytes(512), bytes(200_000), b"something"):
        assert problems.all() == ()
        path.write_bytes(data + behind)
        assert content.read_bytes(path, problems) == first + second
    assert str(problems.first) == "f: 9 bytes behind the end of the gzip data; what stands before is read"
