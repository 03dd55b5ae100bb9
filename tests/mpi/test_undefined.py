"""Calls of the MPI library by this one that fail as if a process had died, where other ranks would wait for ever.

The job ends, and a line says why. What ends otherwise: tests/differential/cases/lost.case.
"""

from __future__ import annotations

import functools
import pathlib
import re
import shutil

import pytest

from differential import arms, text
from differential.arms import Setting
from differential.state import Case
from differential.variants import losing

pytestmark = [pytest.mark.mpi, pytest.mark.both]

OPENED = "ranks 4 mpiox_exchange=two_phase cb_buffer_size=4k cb_nodes=2 mpiox_ranks_per_node=2 |"
#: Calls of a file's life, each behind what it needs; what is wrong in them is written behind them.
LIFE = {
    "open": "ranks 4 mpiox_enable=false | open 1 mpiox_ranks_per_node=2",
    "view": f"{OPENED} view @rank*16 BYTE vector 600 16 64 BYTE",
    "write at_all": f"{OPENED} view @rank*16 BYTE vector 600 16 64 BYTE | write at_all 9600 @0",
    "read at_all": f"{OPENED} view @rank*16 BYTE vector 600 16 64 BYTE | read at_all 9600 @0",
    "write ordered": f"{OPENED} write ordered 16",
    "sync": f"{OPENED} sync",
    "atomicity": f"{OPENED} atomicity on",
    "close": f"{OPENED} close 0",
}
#: What cannot fail so that a call returns: the function, which call of it, and the reason that a rank prints.
ENDS_THE_JOB = [
    ("write at_all", "Imrecv 0", "receiving a message from another node"),
    ("write at_all", "Improbe 0", "probing for a message from another node"),
    ("write at_all", "Irecv 0", "agreeing on the access region"),
    ("write at_all", "Isend 0", "agreeing on the access region"),
    ("write at_all", "Irecv 1", "exchanging views"),
    ("read at_all", "Irecv 0", "agreeing on the access region"),
    ("read at_all", "Imrecv 0", "receiving a message from another node"),
    ("read at_all", "Improbe 0", "probing for a message from another node"),
    ("write ordered", "Irecv 0", "agreeing on the access region"),
    ("write ordered", "Isend 0", "agreeing on the access region"),
    ("write ordered", "Irecv 1", "exchanging views"),
]
SUPPRESSIONS = pathlib.Path("/usr/share/openmpi/openmpi-valgrind.supp")


@functools.cache
def cases() -> list[Case]:
    """Return the cases that do not end the job."""
    return [entry.case for entry in text.read_file(text.FOLDER / "lost.case")]


def problems(chosen: list[Case], *tool: str | pathlib.Path) -> list[str]:
    """Run cases in one launch, of which only the last may end it; return the problems of all."""
    known = arms.ready([case | {"id": number} for number, case in enumerate(chosen)], Setting(arms=()))
    setting = Setting(arms=("ours",), env=losing(), tool=tuple(map(str, tool)), limit_s=600.0 if tool else 60.0)
    return [problem for line in arms.launch(known, 4, setting) for problem in line["problems"]]


@pytest.mark.slow_except("write at_all-Imrecv 0-*")
@pytest.mark.parametrize(("call", "lost", "reason"), ENDS_THE_JOB)
def test_it_ends_the_job(extension: str, tmp_path: pathlib.Path, call: str, lost: str, reason: str) -> None:
    """Launchers may lose what a rank prints last: it goes to a file."""
    errors = tmp_path / "errors"
    (problem,) = problems([text.read(f"{LIFE[call]} lost {lost}").case], "sh", "-c", 'exec "$@" 2>>"$0"', errors)
    assert problem.startswith("crash"), problem
    assert reason in errors.read_text("utf-8"), problem
    assert not re.search(r"egmentation|signal 11|SIGSEGV", problem + errors.read_text("utf-8")), problem


@pytest.mark.slow
def test_no_call_is_forgotten(extension: str) -> None:
    """Cases and the list above have each function that a call of a file's life calls."""
    lost = {(call, function.split()[0]) for call, function, _ in ENDS_THE_JOB} | {
        (f"{op['op']} {op.get('how', '')}".strip(), op["lost"][0])
        for case in cases()
        for op in case["ops"]
        if "lost" in op
    }
    for call, case in LIFE.items():
        (problem, *_) = problems([text.read(f"{case} lost Bcast 1000").case])
        called = re.findall(r"(\w+)=\d", problem.partition("the library makes")[2])
        assert called and {(call, name) for name in called} <= lost, problem


@pytest.mark.slow
def test_under_valgrind(extension: str, family: str, tmp_path: pathlib.Path) -> None:
    """No decision depends on what a failed call has left."""
    if family != "openmpi" or not SUPPRESSIONS.exists() or shutil.which("valgrind") is None:
        pytest.skip("needs valgrind and Open MPI's list of suppressions")
    words = ("valgrind", "-q", "--fair-sched=yes", f"--suppressions={SUPPRESSIONS}", f"--log-file={tmp_path}/log.%p")
    found = problems(cases(), *words)
    log = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in tmp_path.glob("log.*"))
    blocks = (
        re.sub(r"^.*: MPI_Init(_thread)? \(.*\n", "", block, flags=re.M)
        for block in re.split(r"^==\d+== \n", log, flags=re.M)
    )
    kept = (block for block in blocks if "Syscall param prctl" not in block)  # of five arguments the library gives two
    found += [block for block in kept if "mpiox_" in block or "libmpiio_ext" in block]
    assert not found, "\n".join(found)[:8000]
