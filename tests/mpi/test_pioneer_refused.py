"""Phase E: whatever `pioneer check` accepts is carried out to its end; a wrong plan is refused, not followed."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from support import fuzz
from support.cbuild import CSRC, SANITIZE
from support.launch import PROGRAMS, mpi_family, python_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "howto" / "synthesize.md"


@pytest.mark.parametrize("ranks", [1, *slow(3, 2, 4)])
def test_random_paths_are_refused_or_carried_out(tmp_path: pathlib.Path, ranks: int) -> None:
    """Nothing crashes, hangs, or is lost without being counted."""
    words = [PROGRAMS / "pioneer_fuzz.py", tmp_path, str(1000 * ranks), str(fuzz.examples(60))]
    launch = python_run(words, ranks, timeout_s=240)
    found = re.search(r"FUZZ (\d+) refused, (\d+) carried out", launch.stdout)
    assert found, launch.describe()
    assert int(found[1]) > 5 and int(found[2]) > 5, launch.describe()


@pytest.mark.slow
def test_random_paths_under_the_address_sanitizer(tmp_path: pathlib.Path) -> None:
    """The engine, built for itself with it."""
    compiler = shutil.which(f"mpicc.{mpi_family()}") or os.path.join(sys.prefix, "bin", "mpicc")
    sources = sorted(str(item) for item in (CSRC / "tools" / "engine").glob("*.c"))
    command = [
        compiler,
        *SANITIZE,
        "-std=c11",
        "-D_GNU_SOURCE",
        "-g",
        "-O1",
        "-fPIC",
        "-shared",
        f"-I{CSRC / 'tools' / 'engine'}",
        *sources,
        "-o",
        str(tmp_path / "libmpiio_ext_engine.so"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except FileNotFoundError:
        pytest.skip(f"there is no {compiler}")
    assert done.returncode == 0, done.stderr
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, timeout=60)
    words = [PROGRAMS / "pioneer_fuzz.py", tmp_path, "50000", str(fuzz.examples(60)), tmp_path / "libmpiio_ext.so"]
    environment = {"LD_PRELOAD": runtime.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}
    launch = python_run(words, 2, timeout_s=300, env=environment)
    assert "FUZZ" in launch.stdout and "AddressSanitizer" not in launch.stderr, launch.describe()


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_number_out_of_range_is_refused_with_its_row(tmp_path: pathlib.Path, ranks: int) -> None:
    """On all ranks, by the engine itself; only the rank that has the plan can name the row."""
    launch = python_run([PROGRAMS / "pioneer_wrong_plan.py", tmp_path], ranks, timeout_s=120)
    said = json.loads(next(line for line in launch.stdout.splitlines() if line.startswith("SAID "))[5:])
    rows = {
        "file": 1,
        "second": 2,
        "slot": 0,
        "operation": 1,
        "size": 1,
        "request": 1,
        "other": 1,
        "no file": 1,
        "no second": 2,
        "no slot": 0,
    }
    for what, told in said.items():
        assert told[-1].startswith(f"row {rows[what]} of the plan, operation {rows[what]} of the path: "), (what, told)
        assert told[:-1] == ["the plan of another rank is wrong"] * (ranks - 1), (what, told)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ranks", [1, 4, *slow(2)])
def test_the_example_by_hand_is_carried_out(tmp_path: pathlib.Path, ranks: int) -> None:
    """As the page has it: the root removes a lock, which was there, and nobody else does."""
    (example,) = re.findall(r"```json\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "hand.json").write_text(example.replace("1048576", "4096"), encoding="utf-8")
    made = CliRunner().invoke(
        main, ["pioneer", "synthesize", str(tmp_path / "hand.json"), "-o", str(tmp_path / "hand.parquet")]
    )
    assert made.exit_code == 0, made.output
    words = ["-m", "mpiio_ext", "pioneer", "replay", tmp_path / "hand.parquet", tmp_path / "out", "--time-scale", "0"]
    launch = python_run(words, ranks, timeout_s=120)
    assert f"{ranks} ranks made {1 + 141 * ranks} calls" in launch.stdout, launch.describe()
    assert "0 calls failed, 0 were left out" in launch.stdout, launch.describe()
    assert "in vain" not in launch.stdout, launch.describe()
    names = {"shared.0", *(f"private.{rank}.{file}" for rank in range(ranks) for file in (0, 1))}
    assert {item.name for item in (tmp_path / "out").iterdir()} - {".mpiio_ext_replay"} == names
