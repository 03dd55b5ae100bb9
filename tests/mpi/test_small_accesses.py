"""What a small access costs, and opening a file: system calls and instructions, which are the same in every run.

One rank alone: what a rank does while it waits for others is not the same in every run.
"""

from __future__ import annotations

import os
import pathlib
import re
import statistics
import sys

import pytest

from support import cbuild
from support.launch import base_environment, library_path, run_bounded

pytestmark = pytest.mark.mpi

CALLS, BYTES = 12, 64
#: Most instructions of one call, all that the MPI library does for it included, reading the clock left out.
INSTRUCTIONS = {
    "write_at": 1350,
    "read_at": 1370,
    "write": 1550,
    "read": 1570,
    "write_at_all": 4000,
    "read_at_all": 4000,
    "write_all": 4000,
    "read_all": 4000,
}
#: Most that opening and closing a file takes beyond what the MPI library does.
OPENING_CALLS, OPENING_INSTRUCTIONS = 35, 130_000
#: Numbers of x86-64.
READ, WRITE, CLOCK = 17, 18, 228
#: Of raise(3), which marks where a call begins and where it ends: getpid, gettid, tgkill.
MARK = (39, 186, 234)
CANNOT = 77


def counts(
    tmp_path: pathlib.Path, call: str, times: int = CALLS, *, native: bool = False
) -> tuple[int, dict[int, int]]:
    """Return the instructions of one call, the median, and the system calls of all of them by number."""
    wrapper = str(pathlib.Path(sys.prefix) / "bin" / "mpicc")
    program = cbuild.mpi_program("small_accesses")
    stepped = cbuild.compile_c([wrapper, *cbuild.FLAGS, str(cbuild.ROOT / "tests/programs/stepped.c")], "stepped")
    library = [] if native else [f"LD_PRELOAD={library_path()}"]
    words = [str(stepped), "env", *library, str(program), str(tmp_path / "file"), call, str(times), str(BYTES)]
    launch = run_bounded(
        words, env=base_environment() | {"SMALL_ACCESSES_MARK": "1"}, timeout_s=120, cwd=tmp_path, check=False
    )
    if launch.returncode == CANNOT:
        pytest.skip(f"no stepping here: {launch.stderr.strip() or 'ptrace is refused'}")
    assert launch.returncode == 0, launch.describe()
    instructions = [int(found) for found in re.findall(r"^instructions (\d+)$", launch.stderr, re.M)]
    assert len(instructions) == times and re.search(rf"^{call} {times} ", launch.stdout, re.M), launch.describe()
    calls = {int(number): int(made) for number, made in re.findall(r"^system_call (\d+) (\d+)$", launch.stderr, re.M)}
    for number in MARK:
        calls[number] -= times
    return int(statistics.median(instructions)), {number: made for number, made in calls.items() if made != 0}


@pytest.mark.both_with("write_at", "read_at_all")
@pytest.mark.slow_with("read", "write_all", "read_all")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="stepped.c reads registers of x86-64")
@pytest.mark.parametrize("call", INSTRUCTIONS)
def test_small_access(extension: str, tmp_path: pathlib.Path, call: str) -> None:
    """One system call each, which moves the bytes; and hardly more instructions than there were."""
    instructions, calls = counts(tmp_path, call)
    calls.pop(CLOCK, None)  # where the kernel does not offer its clock to programs
    assert calls == {READ if "read" in call else WRITE: CALLS}
    print(f"{call}: {instructions} instructions")
    assert instructions <= INSTRUCTIONS[call]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="stepped.c reads registers of x86-64")
def test_opening_and_closing(extension: str, tmp_path: pathlib.Path) -> None:
    """Rank 0 reads the sources of hints once, and looks for descriptors with a few calls, while the others wait."""
    times = 2
    native = counts(tmp_path, "open_close", times, native=True)
    ours = counts(tmp_path, "open_close", times)
    more = {number: made - native[1].get(number, 0) for number, made in ours[1].items()}
    more.pop(CLOCK, None)
    print(f"{native[0]} + {ours[0] - native[0]} instructions; system calls: {more}")
    assert sum(more.values()) <= OPENING_CALLS * times
    assert ours[0] - native[0] <= OPENING_INSTRUCTIONS
