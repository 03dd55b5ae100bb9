"""``mpiio-ext pioneer all`` without MPI: what it refuses, what a step that fails leaves, what it says."""

from __future__ import annotations

import os
import pathlib
import stat
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.pipeline import STEPS, Pipeline, StepError, default_launcher
from mpiio_ext.pioneer.profile.document import load
from mpiio_ext.pioneer.synthesis import Scale
from mpiio_ext.pioneer.traces import is_table
from support.pioneer_traces import saved_table

Fake = Callable[[str], pathlib.Path]


@pytest.fixture()
def launcher(tmp_path: pathlib.Path) -> Fake:
    """Return what writes a program that stands in for mpiexec."""

    def write(text: str) -> pathlib.Path:
        path = tmp_path / "mpiexec.fake"
        path.write_text(f"#!{sys.executable}\n{text}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


def pipeline(tmp_path: pathlib.Path, program: pathlib.Path, **values: Any) -> Pipeline:
    found = Pipeline(trace=[saved_table(tmp_path)], folder=tmp_path / "out", launcher=[str(program)], **values)
    found.prepare()
    return found


def names(folder: pathlib.Path) -> set[str]:
    return {item.name for item in folder.iterdir()}


def test_a_replay_that_fails_is_named_and_leaves_nothing_that_looks_whole(
    tmp_path: pathlib.Path, launcher: Fake
) -> None:
    """The results of the steps before it are there and whole."""
    said: list[tuple[str, str]] = []
    steps = pipeline(
        tmp_path,
        launcher("import sys; print('no node is free'); sys.exit(7)"),
        say=lambda step, text: said.append((step, text)),
    )
    with pytest.raises(StepError, match=r"(?s)step 5 of 6, replay: .*status 7.*no node is free"):
        steps.run()
    out = tmp_path / "out"
    assert names(out) == {"sanitized.parquet", "path.parquet", "profile.json", "synthetic.parquet", "run.failed"}
    assert is_table(out / "sanitized.parquet")
    assert load(out / "profile.json").operations == WorkloadPath.load(out / "path.parquet").table.num_rows == 44
    assert WorkloadPath.load(out / "synthetic.parquet").table.num_rows == 44
    assert names(out / "run.failed") >= {"replay.log"} and "replay.json" not in names(out / "run.failed")
    assert [step for step, text in said if text.startswith("done")] == list(STEPS[:4])
    assert steps.ranks == 3


def test_a_launcher_that_does_nothing_is_no_replay(tmp_path: pathlib.Path, launcher: Fake) -> None:
    with pytest.raises(
        StepError, match=r"(?s)replay: .*prints no counts of its calls, or has left \d traces of 3 ranks"
    ):
        pipeline(tmp_path, launcher("pass")).run()


def test_a_replay_that_hangs_is_ended_with_all_that_it_has_started(
    tmp_path: pathlib.Path, launcher: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpiio_ext.pioneer.pipeline._PATIENCE", 0)
    monkeypatch.setattr("mpiio_ext.pioneer.pipeline._PATIENCE_S", 10.0)
    program = launcher(
        "import subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(tmp_path / 'child')!r}).write_text(str(child.pid))\n"
        "time.sleep(600)"
    )
    begun = time.monotonic()
    with pytest.raises(StepError, match=r"(?s)replay: .*was ended after 10 s"):
        pipeline(tmp_path, program).run()
    assert time.monotonic() - begun < 120
    child = int((tmp_path / "child").read_text(encoding="utf-8"))
    for _ in range(100):
        state = pathlib.Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        pytest.fail("the launcher's child is alive")


def test_a_trace_that_cannot_be_read_is_named(tmp_path: pathlib.Path) -> None:
    table = saved_table(tmp_path)
    table.write_bytes(table.read_bytes()[:-20])
    result = CliRunner().invoke(main, ["pioneer", "all", str(table), "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "step 1 of 6, sanitize: " in result.stderr and "table.parquet" in result.stderr
    assert names(tmp_path / "out") == set()


def test_results_of_two_runs_are_never_mixed(tmp_path: pathlib.Path, launcher: Fake) -> None:
    """What is in the folder is refused; with --replace the results of an earlier run go, and nothing else."""
    out = tmp_path / "out"
    (out / "run").mkdir(parents=True)
    for name in ("comparison.html", "mine.txt", "run/file"):
        (out / name).write_text("old", encoding="utf-8")
    program = launcher("raise SystemExit(4)")
    words = ["pioneer", "all", str(saved_table(tmp_path)), "-o", str(out), "--launcher", str(program)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2 and "--replace" in result.stderr
    assert (out / "comparison.html").read_text(encoding="utf-8") == "old"
    result = CliRunner().invoke(main, [*words, "--replace", "-n", "2"])
    assert result.exit_code == 2 and "ended with status 4" in result.stderr and "-n 2" in result.stderr
    assert names(out) == {
        "sanitized.parquet",
        "path.parquet",
        "profile.json",
        "synthetic.parquet",
        "run.failed",
        "mine.txt",
    }


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--multiply", "files=2"], "it is for --mode tuned"),
        (["--multiply", "file=2"], "'file=2' is not files=X"),
        (["--mode", "tuned", "--multiply", "files=-1"], "scale of files"),
        (["--launcher", "/no/mpiexec"], "/no/mpiexec"),
    ],
)
def test_options_that_make_no_sense(tmp_path: pathlib.Path, more: list[str], said: str) -> None:
    words = ["pioneer", "all", str(saved_table(tmp_path)), "-o", str(tmp_path / "out"), *more]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("mode", "scale", "operations", "size"),
    [
        ("faithful", None, 44, 1000),
        ("quota", None, 44, 1000),
        ("sampled", None, 44, 1000),
        ("tuned", Scale(sizes=2), 44, 2000),
        ("tuned", Scale(files=3), 132, 1000),
    ],
)
def test_the_synthetic_path_is_of_the_mode(
    tmp_path: pathlib.Path, launcher: Fake, mode: str, scale: Scale | None, operations: int, size: int
) -> None:
    with pytest.raises(StepError, match="replay"):
        pipeline(tmp_path, launcher("raise SystemExit(1)"), mode=mode, seed=5, scale=scale).run()
    table = WorkloadPath.load(tmp_path / "out" / "synthetic.parquet").table
    assert table.num_rows == operations
    assert pc.max(table["size_0"]).as_py() == size


def strace_of(folder: pathlib.Path, *lines: str) -> pathlib.Path:
    """Return a trace of strace, whose calls are 100 us apart."""
    path = folder / "app.strace"
    path.write_text(
        "".join(f"1 1700000000.{100 * number:06} {line} <0.000010>\n" for number, line in enumerate(lines)),
        encoding="utf-8",
    )
    return path


def test_a_file_that_no_replay_can_make_is_named_with_the_option_that_leaves_it_out(
    tmp_path: pathlib.Path, launcher: Fake
) -> None:
    trace = strace_of(
        tmp_path,
        'openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT, 0666) = 3</d/a>',
        'stat("../a b", {...}) = 0',
        'stat("../c", {...}) = 0',
        "close(3</d/a>) = 0",
    )
    command = ["pioneer", "all", str(trace), "-o", str(tmp_path / "out"), "--launcher", str(launcher("exit(9)"))]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert "step 2 of 6, path: '../a b', '../c' would lie outside" in result.output
    assert "--skip '../a b' --skip ../c" in result.output
    result = CliRunner().invoke(main, [*command, "--replace", "--skip", "../a b", "--skip", "../c"])
    assert "step 5 of 6, replay" in result.output  # the launcher that fails


def test_there_is_a_launcher_or_a_message(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StepError, match="--launcher"):
        default_launcher()
    (tmp_path / "mpirun").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "mpirun").chmod(0o755)
    assert default_launcher() == [str(tmp_path / "mpirun")]
