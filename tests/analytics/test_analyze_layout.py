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


def test_interference_names_who_met_most_of_others(folder: pathlib.Path) -> None:
    with_lmt(folder)
    found = json.loads(ask(folder, "interference", "--json", "--top", "3").stdout)
    # Each OST moved 600 B; the files wrote 100, 200, 300 and 400 B.
    assert [(row["job_id"], row["file"], row["ost"]) for row in found["rows"]] == [
        (job, f"/scratch/secret{job}", job % 2) for job in range(3)
    ]
    assert [(row["own"], row["traffic"], row["others"]) for row in found["rows"]] == [
        (100 * k, 600, 600 - 100 * k) for k in (1, 2, 3)
    ]
    assert found["rows"][0]["share"] == pytest.approx(1 / 6) and found["rows"][0]["coverage"] == 1
    assert found["units"]["own"] == "B" and found["parameters"]["file_system"] == "scratch"
    assert "Of 4 pairs of file and OST" in found["caption"] and "50 % less than half" in found["caption"]
    some = json.loads(ask(folder, "interference", "--job-ids", "2:", "--json").stdout)
    assert [row["job_id"] for row in some["rows"]] == [2, 3]
    read = ask(folder, "interference", "--direction", "read").stdout
    assert "No file on OSTs was in use" in read
    hidden = ask(folder, "interference", "--json", "--anonymous").stdout
    assert "secret" not in hidden and "job_id" not in hidden and json.loads(hidden)["rows"][0]["own"] == 100
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
