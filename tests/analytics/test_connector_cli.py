"""``mpiio-ext analyze connector``: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
import pathlib

import jsonschema
import pytest
from click.testing import CliRunner, Result

from mpiio_ext.analytics import sources
from mpiio_ext.cli import main
from support import source_texts as texts


def run(*arguments: str | pathlib.Path) -> Result:
    return CliRunner().invoke(main, ["analyze", "connector", *map(str, arguments)])


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


def test_show(fullness: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = run("show", fullness)
    assert done.exit_code == 0 and done.stderr == "", done.output
    assert f"{fullness}: lfs-df, whole" in done.stdout and "snapshots: 2" in done.stdout
    assert "targets: 6 rows, 2017-03-20 08:23:23 UTC to 2017-03-20 08:38:23 UTC" in done.stdout
    found = json.loads(run("show", fullness, "--json").stdout)
    assert (found["source"], found["status"], found["lost"]) == ("lfs-df", "whole", 0)
    assert found["tables"] == {"targets": 6, "summaries": 2} and found["problems"] == []
    assert found["times"]["targets"] == [1489998203.0, 1489999103.0]
    rows = json.loads(run("show", fullness, "--table", "summaries", "--json").stdout)
    assert [row["total"] for row in rows] == [4000, 2000]
    done = run("show", fullness, "--table", "targets", "--csv", tmp_path / "t.csv", "--parquet", tmp_path / "t.parquet")
    assert done.exit_code == 0
    with (tmp_path / "t.csv").open() as file:
        assert [row["target"] for row in csv.DictReader(file)][2] == "snx1-OST000a"
    assert (tmp_path / "t.parquet").stat().st_size > 0
    assert run("show", fullness, "--table", "x").exit_code == 2
    assert "name one by --table: targets, summaries" in run("show", fullness, "--csv", "-").stderr
    assert "no connector knows this" in run("show", "/dev/null/x").stderr + run("show", tmp_path).stderr


def test_damage_is_told_and_changes_the_exit_status_when_asked(fullness: pathlib.Path) -> None:
    fullness.write_text(texts.LFS_DF.replace("1000         900  53%", "1x00         900  53%") + "nonsense\n" * 20)
    done = run("show", fullness, "--table", "targets")
    assert done.exit_code == 0
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"mpiio-ext: {fullness}:4: neither heading, target nor summary")
    assert len(lines) == 11 and lines[-1] == f"mpiio-ext: {fullness}: 11 more problems (--json has all)"
    assert run("show", fullness, "--strict").exit_code == 1
    assert "lfs-df, partial, 21 lines lost" in run("show", fullness).stdout
    assert len(json.loads(run("show", fullness, "--json").stdout)["problems"]) == 21
    fullness.write_text("nonsense\n")
    done = run("show", fullness, "--connector", "lfs-df")
    assert done.exit_code == 2 and done.stderr.startswith(f"mpiio-ext: {fullness}: no output of lfs df")


def test_convert_and_show_again(fullness: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for output in (tmp_path / "r.json", tmp_path / "r.json.gz"):
        assert run("convert", fullness, output).exit_code == 0
        again = run("show", output, "--table", "targets", "--json")
        assert json.loads(again.stdout) == json.loads(run("show", fullness, "--table", "targets", "--json").stdout)


def test_sites_are_told_from_sources(tmp_path: pathlib.Path) -> None:
    theirs, ours, other = (tmp_path / name for name in ("theirs.json", "ours.json", "other.json"))
    theirs.write_text('{"lmt_timestep": 5, "mount_to_fsname": {"^/scratch1": "scratch1"}, "hdf5_files": "x"}')
    ours.write_text('{"file_systems": {"a": {"mounts": ["/a"]}}}')
    other.write_text('{"a": 1}')
    done = run("site", theirs)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert "a site of pytokio" in line and "--from-pytokio" in line
    assert run("site", "--from-pytokio", theirs).exit_code == run("site", ours).exit_code == 0
    for path in (theirs, ours):
        done = run("show", path)
        assert done.exit_code == 2 and "`mpiio-ext analyze connector site`" in done.stderr
    done = run("show", other)
    assert done.exit_code == 2 and "no connector knows this" in done.stderr


def test_a_time_zone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "u.txt").write_text(texts.USAGE)
    done = run("show", tmp_path / "u.txt", "--time-zone", "America/Los_Angeles")
    assert "2019-01-11 18:00:00 UTC" in done.stdout
    done = run("show", tmp_path / "u.txt", "--time-zone", "Mars/North")
    assert done.exit_code == 2 and "'Mars/North' is no time zone" in done.stderr


def test_a_site_and_its_schema(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "site.json"
    path.write_text('{"file_systems": {"a": {"mounts": ["x"]}}, "clocks": {"c": {"time_zone": "y"}}}')
    done = run("site", path)
    lines = [line.removeprefix("mpiio-ext:") for line in done.stderr.splitlines()]
    assert done.exit_code == 2
    assert [line.split(": ")[1] for line in lines] == ["/file_systems/a/mounts/0", "/clocks/c/time_zone"]
    path.write_text('{"file_systems": {"a": {"mounts": ["/x"]}}, "time_zone": "Europe/Berlin"}')
    done = run("site", path)
    assert done.exit_code == 0
    assert "1 file systems, 0 clocks, 0 patterns of files, times in Europe/Berlin" in done.stdout
    schema = json.loads(run("site", "--schema").stdout)
    jsonschema.validate(json.loads(path.read_text()), schema)
    path.write_text('{"mount_to_fsname": {"^/x": "a"}, "strange": 1}')
    done = run("site", "--from-pytokio", path)
    assert done.exit_code == 0 and "left out, without counterpart: strange" in done.stderr
    assert json.loads(done.stdout)["file_systems"] == {"a": {"kind": "other", "mounts": ["/x"]}}
