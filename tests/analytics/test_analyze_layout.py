"""``mpiio-ext analyze place`` and ``interference``, on a small store of made-up logs and steps of LMT."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from mpiio_ext.analytics.setup import load_setup
from mpiio_ext.analytics.store.catalog import Catalog
from mpiio_ext.analytics.store.fill import fill
from mpiio_ext.cli import main
from support import fake_logs
from support.analytics_query import Store
from support.expected import Expected
from support.parts import require

require("ibis", "duckdb")

JOBS = 12
START = 1_500_000_000.0


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder with a set-up and a store of twelve jobs of two files each."""
    for job in range(JOBS):
        fake_logs.write(tmp_path / "logs", f"{job:03}", f"job {job} 2 {job % 4}")
    document = {"store": "store", "inputs": {"darshan": [{"path": "logs", "date": "any"}]}, "workers": 0}
    (tmp_path / "setup.json").write_text(json.dumps(document))
    fill(load_setup(tmp_path / "setup.json"), connectors={"darshan": fake_logs.convert})
    return tmp_path


def run(folder: pathlib.Path, arguments: Sequence[str]) -> Result:
    return CliRunner().invoke(main, ["analyze", *arguments, "--setup", str(folder / "setup.json")])


def ask(folder: pathlib.Path, *arguments: str) -> Result:
    done = run(folder, arguments)
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done


def placed(folder: pathlib.Path) -> list[str]:
    return [f"--target={folder / name}" for name in ("one", "two")]


def test_place_and_show_what_lies_where(folder: pathlib.Path) -> None:
    assert "not placed" in ask(folder, "place", "--show").stdout
    shown = ask(folder, "place", *placed(folder), "--subtables", "4").stdout
    assert "2 storage targets, 4 subtables" in shown and "Tables on storage targets" in shown
    found = json.loads(ask(folder, "place", "--show", "--json").stdout)
    assert [(row["target"], row["subtables"], row["files"]) for row in found["rows"]] == [(0, 2, 4), (1, 2, 4)]
    assert found["units"] == {"bytes": "B"} and found["unit"] == "B"
    assert sum(row["rows"] for row in found["rows"]) == 3 * JOBS
    commit = Catalog(folder / "store").manifest.commit
    ask(folder, "place", *placed(folder), "--subtables", "4")
    assert Catalog(folder / "store").manifest.commit == commit, "nothing was left to do"
    ask(folder, "place", *placed(folder), "--subtables", "4", "--anew")
    assert Catalog(folder / "store").manifest.commit == commit + 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["place"], "name them by --target DIR"),
        (["place", "--target", "/tmp/a", "--target", "/tmp/a"], "named twice"),
        (["place", "--target", "/tmp/a", "--target", "/tmp/b", "--subtables", "3"], "cannot share them evenly"),
        (["place", "--target", "/tmp/a", "--ost", "1", "--ost", "2"], "2 OSTs for 1 targets"),
        (["interference"], "the store has no LMT"),
    ],
)
def test_an_error_is_one_line_and_status_2(folder: pathlib.Path, arguments: list[str], words: str) -> None:
    done = run(folder, arguments)
    assert done.exit_code == 2 and words in done.stderr and not done.stdout
    assert done.stderr.startswith("mpiio-ext: ") and done.stderr.count("\n") == 1
    assert not Catalog(folder / "store").manifest.placement


@pytest.mark.parametrize("jobs", ["a:b", "5:4", "1:2:3", "x"])
def test_a_range_that_is_none_is_refused(folder: pathlib.Path, jobs: str) -> None:
    done = run(folder, ["interference", "--job-ids", jobs])
    assert done.exit_code == 2 and "--job-ids" in done.stderr


def with_lmt(folder: pathlib.Path, systems: Sequence[str] = ("scratch",)) -> pathlib.Path:
    """Put rows of files in use and of LMT into a store that the command line reads."""
    from mpiio_ext.analytics.store.manifest import FileEntry, Manifest, write_manifest

    store = folder / "store"
    (folder / "tables").mkdir()
    rows = Store(folder / "tables")
    rows.add(
        "darshan_file",
        [
            {
                "job_id": job,
                "log_id": job,
                "file_id": job,
                "file": f"/scratch/secret{job}",
                "mount": "/scratch",
                "osts": [job % 2],
                "ost_word_0": 1 << job % 2,
                "bytes_written": 100 * (job + 1),
                "write_start": START,
                "write_end": START + 10,
            }
            for job in range(4)
        ],
        osts=10,
    )
    rows.add(
        "lmt",
        [
            {"time": START + 5 * step, "ost": ost, "file_system": name, "bytes_written": 300.0}
            for name in systems
            for step in range(2)
            for ost in range(2)
        ],
    )
    files = []
    for table, low, high in (("darshan_file", 0, 3), ("lmt", int(START), int(START) + 5)):
        (path,) = rows.files(table)
        count = pq.read_metadata(path).num_rows
        files.append(
            FileEntry(
                table=table, path=path, rows=count, bytes=pathlib.Path(path).stat().st_size, low=low, high=high, osts=10
            )
        )
    write_manifest(store, Manifest(commit=9, files=tuple(files), osts=10))
    return folder


def test_interference_names_who_met_most_of_others(folder: pathlib.Path, expected: Expected) -> None:
    with_lmt(folder)
    # Each OST moved 600 B; the files wrote 100, 200, 300 and 400 B.
    found = {
        "the first three": ["--json", "--top", "3"],
        "some jobs": ["--job-ids", "2:", "--json"],
        "without names": ["--json", "--anonymous"],
    }
    expected({name: json.loads(ask(folder, "interference", *words).stdout) for name, words in found.items()})
    assert "No file on OSTs was in use" in ask(folder, "interference", "--direction", "read").stdout
    svg = folder / "out.svg"
    ask(folder, "interference", "--figure", str(svg))
    assert "own share" in svg.read_text()


def test_interference_of_several_file_systems_needs_a_name(folder: pathlib.Path) -> None:
    with_lmt(folder, ("scratch", "it's"))
    done = run(folder, ["interference"])
    assert done.exit_code == 2 and "name one of it's, scratch" in done.stderr
    found = json.loads(ask(folder, "interference", "--file-system", "it's", "--json").stdout)
    assert len(found["rows"]) == 4
    done = run(folder, ["interference", "--file-system", "home"])
    assert done.exit_code == 2 and "no file system 'home'" in done.stderr
    document = json.loads((folder / "setup.json").read_text())
    document["site"] = {"lmt_mounts": {"scratch": "/scratch", "it's": "/home"}}
    (folder / "setup.json").write_text(json.dumps(document))
    assert len(json.loads(ask(folder, "interference", "--file-system", "scratch", "--json").stdout)["rows"]) == 4
    assert json.loads(ask(folder, "interference", "--file-system", "it's", "--json").stdout)["rows"] == []
