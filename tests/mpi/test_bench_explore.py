"""Exploration as a user runs it: patterns with 0, 1, 2 delegates, from FORGE's files to curves and what reads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mpiio_ext.delegates.arbiter import settings
from mpiio_ext.delegates.arbitration.store import Store
from mpiio_ext.delegates.arbitration.tables import read_forge
from support.launch import base_environment
from support.marks import slow

pytestmark = pytest.mark.mpi

EXPLORE = ["-m", "mpiio_ext.bench", "explore"]


@pytest.fixture
def explore(extension, mpi_python, tmp_path):
    """Explore in a folder of its own; returns the launch and the results, None when there are none."""

    def run(ranks, *arguments, check=True, program=EXPLORE, **more):
        files = tmp_path / "files"
        files.mkdir(exist_ok=True)
        output = tmp_path / "results"
        where = [] if "--path" in arguments else ["--path", files]
        words = [*program, *where, "--output", output, "--no-progress", *arguments]
        launch = mpi_python(words, ranks, timeout_s=120, check=check, cwd=tmp_path, **more)
        path = output / "results.json"
        return launch, json.loads(path.read_text()) if path.exists() else None

    run.output, run.files = tmp_path / "results", tmp_path / "files"
    return run


def mpiio_ext(*words):
    return subprocess.run(
        [sys.executable, "-m", "mpiio_ext", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=base_environment(),
    )


SMALL = ("-H", "mpiox_delegate_page=4k", "-H", "striping_unit=4096", "-H", "mpiox_delegate_cache=2m")


@pytest.mark.parametrize(("mode", "ranks", "launched"), [("thread", 3, 3), *slow(("spawn", 2, 2)), ("split", 2, 4)])
def test_numbers_of_delegates(explore, mode, ranks, launched):
    """Each number is what serves; every byte is compared; files are gone at the end."""
    _, found = explore(
        launched,
        "--io-nodes",
        "0,1,2",
        "--pattern",
        "shared,strided,4KiB,384KiB",
        "--pattern",
        "individual,4KiB,384KiB",
        "--pattern",
        "shared,3000,300KiB,read",
        "-r",
        "2",
        "--delegate-mode",
        mode,
        *SMALL,
    )
    assert found["failure"] is None and len(found["runs"]) == 3 * 3 * 2
    for run in found["runs"]:
        size, total = (4096, 384 << 10) if "4KiB" in run["pattern"] else (3000, 300 << 10)
        requests = total // size // ranks
        assert run["data_bytes"] == run["verified_bytes"] == requests * size * ranks, run
        assert run["stopped_ranks"] == 0 and run["bandwidth_mb_per_s"] > 0
        assert run["serving_delegates"] == run["io_nodes"], run
        assert run["delegated_bytes"] == (run["data_bytes"] if run["io_nodes"] else 0), run
    order = [(run["pattern"], run["repetition"], run["io_nodes"]) for run in found["runs"]]
    first = found["runs"][0]["pattern"]
    assert [row for row in order if row[0] == first] == [
        (first, 1, 0),
        (first, 1, 1),
        (first, 1, 2),
        (first, 2, 1),
        (first, 2, 2),
        (first, 2, 0),
    ]
    assert [row[1] for row in order] == [1] * 9 + [2] * 9  # repetitions go round over all of it
    assert not list(explore.files.iterdir())


def test_from_forge_to_the_arbiter(explore, tmp_path):
    """FORGE's JSON -> measurements -> curves -> simulation and live arbiter: the whole way."""
    forge = tmp_path / "forge.json"
    pattern = {
        "forwarders": "2",
        "handlers": "4",
        "dispatchers": "2",
        "path": str(tmp_path / "x"),
        "validation": "1",
        "number_of_files": "shared",
        "spatiality": "contiguous",
        "total_size": "262144",
        "request_size": "8192",
    }
    forge.write_text(json.dumps([pattern, {**pattern, "forwarders": "0"}]))
    store = tmp_path / "curves.json"
    launch, found = explore(
        2, "--pattern", forge, "-r", "2", "--store", store, "--program", "flow", "--delegate-mode", "thread"
    )
    assert {run["io_nodes"] for run in found["runs"]} == {0, 2} and len(found["runs"]) == 8  # writes and reads
    assert found["configuration"]["hints"] == {"mpiox_delegate_threads": "2"}
    assert "handlers" in launch.stdout
    curves = read_forge([explore.output / "curves.csv"])
    assert all(curve.counts == (0, 2) and curve.points[2].repetitions == 2 for curve in curves.values())
    simulated = mpiio_ext(
        "delegates",
        "arbitrate",
        "simulate",
        "--forge",
        explore.output / "curves.csv",
        "--sets",
        20,
        "--apps",
        2,
        "--io-nodes",
        "0..4",
        "--json",
    )
    assert simulated.returncode == 0, simulated.stderr
    assert sum(json.loads(simulated.stdout)["best_option_counts_of_maxima"].values()) == 2
    assert "flow" in Store(store).names() and Store(store).versions("flow") == [1]
    (tmp_path / "arbiter").mkdir()
    taken = mpiio_ext(
        "delegates", "arbiter", "--dir", tmp_path / "arbiter", "--io-nodes", 2, "--curves", store, "--set"
    )
    assert taken.returncode == 0, taken.stderr
    assert set(settings.read(tmp_path / "arbiter").curves["flow"]) == {2}


def test_a_stonewall(explore):
    """Ranks stop on their own, what was made counts and is compared; reads find what a whole write has left."""
    _, found = explore(
        2,
        "--io-nodes",
        "0,2",
        "--pattern",
        "shared,contiguous,512,1GiB,0.3s",
        "--pattern",
        "shared,strided,512,4MiB,0.001s,read",
        "-r",
        "1",
        "--delegate-mode",
        "thread",
    )
    for run in found["runs"]:
        reads = run["pattern"].endswith("read")
        assert run["stopped_ranks"] == 2, run
        assert 0 < run["data_bytes"] < (4 << 20 if reads else 1 << 30)
        assert run["verified_bytes"] == run["data_bytes"] == 512 * run["requests"], run
    assert not list(explore.files.iterdir())


@pytest.mark.slow
def test_large_requests_go_past_the_delegates(explore):
    launch, found = explore(2, "--io-nodes", "1", "--pattern", "1MiB,4MiB", "-r", "1", "--delegate-mode", "thread")
    assert found["runs"][0]["bypass_bytes"] > 0 and "went past the delegates" in launch.stdout
    _, found = explore(
        2,
        "--io-nodes",
        "1",
        "--pattern",
        "1MiB,4MiB",
        "-r",
        "1",
        "--delegate-mode",
        "thread",
        "-H",
        "mpiox_delegate_bypass=0",
    )
    assert found["runs"][0]["delegated_bytes"] == found["runs"][0]["data_bytes"]


LOOK = """
import fcntl
import os
import pathlib
from mpiio_ext.bench.explore import measure
from mpiio_ext.bench.__main__ import main

close = measure._Rank.close

def look(self):
    if self.comm.rank == 0:
        direct = 0
        for entry in pathlib.Path("/proc/self/fdinfo").iterdir():
            try:
                flags = int(entry.read_text().split("flags:")[1].split()[0], 8)
                direct += os.readlink(f"/proc/self/fd/{entry.name}") == str(self.place.path) and flags & os.O_DIRECT > 0
            except OSError:
                continue
        with open("direct.txt", "a") as file:
            print(self.place.io_nodes, direct, file=file)
    close(self)

measure._Rank.close = look
main()
"""


@pytest.mark.slow
def test_direct_is_direct_in_delegates_too(explore, tmp_path):
    """All numbers past the page cache, or the comparison says nothing: descriptors of a rank and of its delegate."""
    probe = tmp_path / "probe"
    probe.touch()
    try:
        os.close(os.open(probe, os.O_RDWR | os.O_DIRECT))
    except OSError:
        pytest.skip(f"no direct I/O on the file system of {tmp_path}")
    script = tmp_path / "look.py"
    script.write_text(LOOK)
    words = ("--io-nodes", "0,1,2", "-r", "1", "--delegate-mode", "thread", *SMALL)
    patterns = ("--pattern", "shared,strided,5000,400KiB,direct", "--pattern", "4KiB,64KiB,read,direct")
    _, found = explore(2, *patterns, *words, program=[script, "explore"])
    counted = [tuple(map(int, line.split())) for line in (tmp_path / "direct.txt").read_text().splitlines()]
    assert sorted(counted[-6:]) == [(0, 1), (0, 1), (1, 2), (1, 2), (2, 2), (2, 2)], counted
    for run in found["runs"]:
        assert run["pattern"].endswith("-direct") and run["data_bytes"] == run["verified_bytes"] > 0
    (tmp_path / "direct.txt").unlink()
    explore(2, "--pattern", "4KiB,64KiB", *words, program=[script, "explore"])
    assert {line.split()[1] for line in (tmp_path / "direct.txt").read_text().splitlines()} == {"0"}
    curves = read_forge([explore.output / "curves.csv"])
    assert not any(pattern.direct for pattern in curves)


def test_no_delegates_at_all(explore):
    _, found = explore(1, "--io-nodes", "0", "--pattern", "individual,1000,10000", "-r", "1", "--sync")
    assert found["runs"][0]["data_bytes"] == 10_000 and found["configuration"]["delegates"] == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--io-nodes", "1", "--pattern", "1MiB,1MiB"], ["raise the total"]),
        *slow(
            (["--io-nodes", "0", "--pattern", "4k", "--path", "nowhere"], ["nowhere: no such folder"]),
            (["--pattern", "4k"], ["--io-nodes is missing"]),
            (["--io-nodes", "0", "--pattern", "4k,0.5q"], ["'0.5q'"]),
        ),
        (["--io-nodes", "2", "--pattern", "4k", "--delegate-mode", "split"], ["leave none"]),
    ],
)
def test_wrong_arguments(explore, arguments, words):
    launch, found = explore(2, *arguments, check=False)
    assert launch.returncode != 0 and found is None
    lines = [line for line in (launch.stdout + launch.stderr).splitlines() if "mpiio-ext: " in line]
    assert len(lines) == 1 and all(word in lines[0] for word in words), launch.describe()
    assert "Traceback" not in launch.stderr
    assert not list(explore.files.iterdir())


@pytest.mark.slow
def test_stronger_hints_are_found_out(explore):
    """MPIOX_HINTS takes the delegates away: what would be measured is not what was asked for."""
    launch, found = explore(
        2,
        "--io-nodes",
        "0,1",
        "--pattern",
        "4k,64k",
        "--delegate-mode",
        "thread",
        check=False,
        env={"MPIOX_HINTS": "*write:mpiox_delegates=0"},
    )
    assert launch.returncode != 0 and "MPIOX_HINTS" in launch.stderr, launch.describe()
    assert found["failure"] and len(found["runs"]) == 1  # the one without delegates was right


WRONG = """
import sys
import mpiio_ext
from mpiio_ext.bench.explore import measure
from mpiio_ext.bench.__main__ import main

close = measure._Rank.close

def spoil(self):
    close(self)
    if self.comm.rank == 0 and self.place.io_nodes and self.spec.operation == "write":
        with self.place.path.open("r+b") as file:
            file.seek(5000)
            byte = file.read(1)
            file.seek(5000)
            file.write(bytes([byte[0] ^ 4]))

measure._Rank.close = spoil
main()
"""


def test_wrong_data_is_named(explore, tmp_path):
    script = tmp_path / "wrong.py"
    script.write_text(WRONG)
    launch, found = explore(
        2,
        "--io-nodes",
        "0,1",
        "--pattern",
        "4k,64k",
        "-r",
        "1",
        "--delegate-mode",
        "thread",
        check=False,
        program=[script, "explore"],
    )
    assert launch.returncode != 0 and "byte 5000: expected" in launch.stderr, launch.describe()
    assert "byte 5000" in found["failure"] and list(explore.files.glob("*/*write"))  # it stays for those who look
