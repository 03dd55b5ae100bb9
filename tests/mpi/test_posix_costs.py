"""Functions of the C library in a program without delegates: no system call more, and hardly an instruction."""

from __future__ import annotations

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from support import cbuild
from support.launch import base_environment, preload_environment, run_bounded

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="stepped.c reads registers of x86-64"),
]
CANNOT = 77
#: Most instructions of one call; most take 17 to 34, those with a mode 45, freopen, with a call of fopen before it, 48.
INSTRUCTIONS = 56


def counts(preload: bool) -> tuple[list[str], list[int], dict[int, int]]:
    """Return the functions, the instructions of one call of each, and the system calls of all by number."""
    wrapper = str(pathlib.Path(sys.prefix) / "bin" / "mpicc")
    stepped = cbuild.compile_c([wrapper, *cbuild.FLAGS, str(cbuild.ROOT / "tests/programs/stepped.c")], "stepped")
    library = [f"LD_PRELOAD={preload_environment()['LD_PRELOAD']}"] if preload else []
    words = [str(stepped), "env", *library, str(cbuild.mpi_program("posix_costs"))]
    launch = run_bounded(words, env=base_environment(), timeout_s=120, check=False)
    if launch.returncode == CANNOT:
        pytest.skip(f"no stepping here: {launch.stderr.strip() or 'ptrace is refused'}")
    assert launch.returncode == 0, launch.describe()
    instructions = [int(found) for found in re.findall(r"^instructions (\d+)$", launch.stderr, re.M)]
    calls = {int(number): int(made) for number, made in re.findall(r"^system_call (\d+) (\d+)$", launch.stderr, re.M)}
    return launch.stdout.split(), instructions, calls


def test_functions_cost_nothing(extension: str) -> None:
    """Each function that waits where there is something to wait for."""
    names, native, native_calls = counts(False)
    same, ours, calls = counts(True)
    assert names == same and len(names) == len(native) == len(ours) > 40
    more = {name: b - a for name, a, b in zip(names, native, ours, strict=True)}
    print(more)
    assert calls == native_calls
    assert all(cost != 0 and cost <= INSTRUCTIONS for cost in more.values()), more


def exported(library: str) -> dict[str, int]:
    """Return the functions that a library exports, and how many versions of each."""
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return dict(collections.Counter(line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()))


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm")
def test_no_call_of_the_library_depends_on_a_version(extension: str) -> None:
    """Its calls of what it has itself may reach the oldest version of the C library: it makes none that differ."""
    c_library = next(
        words[-1]
        for line in pathlib.Path("/proc/self/maps").read_text("utf-8").splitlines()
        if (words := line.split()) and "/libc.so" in words[-1]
    )
    several = {name for name, count in exported(c_library).items() if count > 1}
    known = {"glob", "glob64", "realpath"}  # the oldest realpath() takes no NULL
    assert several & set(exported(preload_environment()["LD_PRELOAD"])) <= known
    for path in cbuild.CSRC.rglob("*.[ch]"):
        assert not re.search(r"\brealpath\(.*, NULL\)|\bglob(64)?\([^)]", path.read_text("utf-8")), path
