"""``mpiio-ext analyze connector``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import pathlib

import jsonschema
import pytest
from click.testing import CliRunner, Result

from mpiio_ext.analytics import sources
from mpiio_ext.cli import main
from support import source_texts as texts
from support.expected import Expected


def run(*arguments: str | pathlib.Path) -> Result:
    return CliRunner().invoke(main, ["analyze", "connector", *map(str, arguments)])


def told(*arguments: str | pathlib.Path) -> str:
    """Return what a command prints, and its status."""
    done = run(*arguments)
    return f"{done.output}status {done.exit_code}"


@pytest.fixture
def fullness(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "osts.txt"
    path.write_text(texts.LFS_DF)
    return path


def test_the_list_and_the_columns() -> None:
    done = run("list", "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [row["source"] for row in rows] == list(sources.BUILT_IN) and all(row["built_in"] for row in rows)
    assert {row["role"] for row in rows} == {
        "traffic",
        "fullness",
        "failover",
        "jobs",
        "topology",
        "series",
        "programs",
    }
    for source in sources.BUILT_IN:
        done = run("columns", source, "--json")
        found = {row["table"] for row in json.loads(done.stdout)}
        assert found == {table.name for table in sources.connector_of(source).TABLES}
    assert "s since 1970 UTC" in run("columns", "lfs-df").stdout
    assert run("columns", "nosuch").exit_code == 2


SHOWN: list[tuple[str, ...]] = [
    (),
    ("--json",),
    ("--table", "summaries", "--json"),
    ("--table", "targets", "--csv", "-"),
    ("--table", "x"),
    ("--csv", "-"),
]


def test_show(fullness: pathlib.Path, tmp_path: pathlib.Path, expected: Expected) -> None:
    expected({" ".join(("show", *words)): told("show", fullness, *words) for words in SHOWN})
    targets = ("show", fullness, "--table", "targets")
    assert run(*targets, "--csv", tmp_path / "t.csv", "--parquet", tmp_path / "t.parquet").exit_code == 0
    assert (tmp_path / "t.csv").read_bytes() == run(*targets, "--csv", "-").stdout_bytes
    assert (tmp_path / "t.parquet").stat().st_size > 0
    assert "no connector knows this" in run("show", "/dev/null/x").stderr + run("show", tmp_path).stderr


def test_damage_is_told_and_changes_the_exit_status_when_asked(fullness: pathlib.Path, expected: Expected) -> None:
    fullness.write_text(texts.LFS_DF.replace("1000         900  53%", "1x00         900  53%") + "nonsense\n" * 20)
    found = {" ".join(words): told("show", fullness, *words) for words in (("--strict",), ("--table", "summaries"))}
    assert len(json.loads(run("show", fullness, "--json").stdout)["problems"]) == 21
    fullness.write_text("nonsense\n")
    expected({**found, "no output": told("show", fullness, "--connector", "lfs-df")})


def test_convert_and_show_again(fullness: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for output in (tmp_path / "r.json", tmp_path / "r.json.gz"):
        assert run("convert", fullness, output).exit_code == 0
        again = run("show", output, "--table", "targets", "--json")
        assert json.loads(again.stdout) == json.loads(run("show", fullness, "--table", "targets", "--json").stdout)


def test_sites_are_told_from_sources(tmp_path: pathlib.Path, expected: Expected) -> None:
    theirs, ours, other = (tmp_path / name for name in ("theirs.json", "ours.json", "other.json"))
    theirs.write_text('{"lmt_timestep": 5, "mount_to_fsname": {"^/scratch1": "scratch1"}, "hdf5_files": "x"}')
    ours.write_text('{"file_systems": {"a": {"mounts": ["/a"]}}}')
    other.write_text('{"a": 1}')
    asked = (("site", theirs), ("site", "--from-pytokio", theirs), ("site", ours))
    expected([told(*words) for words in (*asked, *(("show", path) for path in (theirs, ours, other)))])


def test_a_time_zone(tmp_path: pathlib.Path, expected: Expected) -> None:
    (tmp_path / "u.txt").write_text(texts.USAGE)
    zones = ("America/Los_Angeles", "Mars/North")
    expected({zone: told("show", tmp_path / "u.txt", "--time-zone", zone) for zone in zones})


def test_a_site_and_its_schema(tmp_path: pathlib.Path, expected: Expected) -> None:
    wrong, right, theirs = (tmp_path / name for name in ("wrong.json", "right.json", "theirs.json"))
    wrong.write_text('{"file_systems": {"a": {"mounts": ["x"]}}, "clocks": {"c": {"time_zone": "y"}}}')
    right.write_text('{"file_systems": {"a": {"mounts": ["/x"]}}, "time_zone": "Europe/Berlin"}')
    theirs.write_text('{"mount_to_fsname": {"^/x": "a"}, "strange": 1}')
    expected([told("site", wrong), told("site", right), told("site", "--from-pytokio", theirs)])
    jsonschema.validate(json.loads(right.read_text()), json.loads(run("site", "--schema").stdout))
