"""What makes two runs of the tests alike: one seed, and more starts of a launch that the launcher has lost."""

from __future__ import annotations

import pathlib
import warnings

import pytest

from support import fuzz, launch

#: Stands for mpiexec: counts its calls in the file COUNT and fails the first times with a message.
LAUNCHER = """#!/bin/sh
echo >>{count}
[ $(wc -l <{count}) -gt {failures} ] && exit 0
echo "{message}" >&2
exit 1
"""


@pytest.mark.parametrize(
    ("message", "failures", "calls", "succeeds"),
    [
        ("ORTE has lost communication with a remote daemon.", 1, 2, True),
        ("ORTE has lost communication with a remote daemon.", 3, 4, True),
        ("ORTE has lost communication with a remote daemon.", 4, 4, False),
        ("mpiio_ext: rank 1: an error", 1, 1, False),
    ],
)
def test_a_lost_launch_is_started_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, message: str, failures: int, calls: int, succeeds: bool
) -> None:
    script, count = tmp_path / "mpiexec", tmp_path / "count"
    script.write_text(LAUNCHER.format(count=count, message=message, failures=failures))
    script.chmod(0o755)
    monkeypatch.setattr(launch, "launcher", lambda: str(script))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        done = launch.mpi_run(["program"], 1, check=False)
    assert (done.returncode == 0) is succeeds
    assert len(count.read_text().splitlines()) == calls
    assert [each.category for each in told] == [launch.LostLaunch] * (calls - 1)


LOST_WORDS = "[host:1] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file util/show_help.c at line 501"


@pytest.mark.parametrize("asked", [True, False])
def test_last_words_are_not_lost(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    """What ranks print goes past the launcher. Where the launcher itself loses a message, it is started again."""
    script, count = tmp_path / "mpiexec", tmp_path / "count"
    script.write_text(f'#!/bin/sh\necho >>{count}\necho "{LOST_WORDS}" >&2\nshift 2\n"$@" 2>/dev/null\nexit 1\n')
    script.chmod(0o755)
    monkeypatch.setattr(launch, "launcher", lambda: str(script))
    program = ["sh", "-c", "echo last >&2"]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        done = launch.mpi_run(program, 1, check=False, last_words=tmp_path / "errors" if asked else None)
    assert done.stderr == LOST_WORDS + "\n" + ("last\n" if asked else "")
    assert len(count.read_text().splitlines()) == 1 + len(told) == (20 if asked else 1)


def test_only_all_examples_draw_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {})
    fuzz.start(all_examples=False)
    assert fuzz.seed() == "1" and fuzz.data(9) == fuzz.data(9)
    drawn = set()
    for _ in range(3):
        monkeypatch.setattr("os.environ", {})
        fuzz.start(all_examples=True)
        drawn.add(fuzz.seed())
    assert len(drawn) > 1


def test_a_failing_test_prints_its_seed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "test_bad.py").write_text("def test_bad():\n    assert False\n")
    code = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = ["-q", "-p", "no:cacheprovider", "-p", "conftest", tmp_path / "test_bad.py"]
    done = launch.python_alone(code, *words, PYTHONPATH=str(launch.ROOT / "tests"), MPIOX_TEST_SEED="4711")
    failure = done.stdout.partition("short test summary")[0]
    assert done.returncode == 1 and "MPIOX_TEST_SEED=4711" in failure, done.stdout
