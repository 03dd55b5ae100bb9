"""Functions of the C library in a program without staged files: no system call more, and hardly an instruction.

With staged files in the job, a look at another one costs none either.
"""

from __future__ import annotations

import os
import pathlib
import re
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
#: What these do themselves, with the entries of a folder, differs by some instructions from launch to launch.
LISTS, MORE = frozenset({"opendir", "opendir_of_file", "fdopendir", "scandir", "scandirat", "ftw", "nftw", "fts"}), 24


#: A rank with a delegate in it, which writes a byte a second.
STAGED = "*:mpiox_delegates=1:mpiox_delegate_mode=thread:mpiox_delegate_cache=4m:mpiox_close=staged:mpiox_drain_rate=1"


def counts(preload: bool, *arguments: pathlib.Path, hints: str = "") -> tuple[list[str], list[int], dict[int, int]]:
    """Return what is printed, the instructions between marks, and the system calls of all by number."""
    wrapper = str(pathlib.Path(sys.prefix) / "bin" / "mpicc")
    stepped = cbuild.compile_c([wrapper, *cbuild.FLAGS, str(cbuild.ROOT / "tests/programs/stepped.c")], "stepped")
    library = [f"LD_PRELOAD={preload_environment()['LD_PRELOAD']}"] if preload else []
    words = [str(stepped), "env", *library, str(cbuild.mpi_program("posix_costs")), *map(str, arguments)]
    launch = run_bounded(words, env=base_environment() | {"MPIOX_HINTS": hints}, timeout_s=120, check=False)
    if launch.returncode == CANNOT:
        pytest.skip(f"no stepping here: {launch.stderr.strip() or 'ptrace is refused'}")
    assert launch.returncode == 0, launch.describe()
    instructions = [int(found) for found in re.findall(r"^instructions (\d+)$", launch.stderr, re.M)]
    calls = {int(number): int(made) for number, made in re.findall(r"^system_call (\d+) (\d+)$", launch.stderr, re.M)}
    return launch.stdout.split(), instructions, calls


def test_functions_cost_nothing(extension: str) -> None:
    """Each function that waits where there is something to wait for, with the library that has them."""
    names, native, native_calls = counts(False)
    same, ours, calls = counts(True)
    assert names == same and len(names) == len(native) == len(ours) > 40
    more = {name: b - a for name, a, b in zip(names, native, ours, strict=True)}
    print(more)
    assert calls == native_calls
    assert all(cost != 0 and cost <= INSTRUCTIONS + MORE * (name in LISTS) for name, cost in more.items()), more


def test_a_look_at_another_file_costs_nothing(extension: str, tmp_path: pathlib.Path) -> None:
    """While a file of the job is still to be written: the call of stat() that there would be without it."""
    (beside := tmp_path / "beside").touch()
    said, _, native = counts(False, tmp_path / "file", beside)
    assert said == []
    (tmp_path / "file").unlink()
    said, _, calls = counts(True, tmp_path / "file", beside, hints=STAGED)
    assert (said, calls) == (["staged"], native)
