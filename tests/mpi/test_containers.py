"""MPI-IO under the limits of containers, shells and batch systems: correct, or left to the MPI library with a reason.

One program (tests/programs/contained.c) writes and reads small pieces of all ranks in turn, by collectives and on its
own, under one limit at a time. What it leaves is compared with what the MPI library alone leaves without limits. Limits
that stop the MPI library itself are run under it, too: where it succeeds the library has to.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from support import subfiles
from support.cbuild import mpi_program
from support.launch import Launch, base_environment, json_lines, launcher, library_path, run_bounded
from support.marks import slow
from support.processes import shared_memory

pytestmark = pytest.mark.mpi

LIMIT_S = 60.0
GRACE_S = 40.0
#: Ranks of different namespaces cannot use the MPI libraries' own shared memory.
APART = {"OMPI_MCA_btl": "tcp,self", "MPIR_CVAR_CH4_CMA_ENABLE": "0"}
#: How files reach the file system: this library's collectives, or delegates of each kind.
MODES = {
    "collective": "",
    **{mode: f"mpiox_delegates=1:mpiox_delegate_mode={mode}:" for mode in ("thread", "split", "spawn")},
}
TAKEN, FULL, NONE, UNSHARED = "", "shared memory is full", "no shared memory", "cannot share memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit.

    Attributes
    ----------
    words : what the program is told.
    before : words in front of the program on every rank.
    reason : part of the reason for which files stay with the MPI library; "" if they are taken over.
    hints : in force besides.
    environment : of the launch.
    root : it needs namespaces.
    """

    words: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    reason: str = TAKEN
    hints: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    root: bool = False


SMALL_SHM = "hide=/dev/shm:size=65536"
NO_MEMFD = "refuse=memfd_create:38"
#: No ring: refused with ENOSYS (38) or EPERM (1), or too little locked memory for it.
RING = "mpiox_storage=io_uring:romio_ds_read=disable:romio_ds_write=disable:"
#: Each file is stored as several, whose names have a random number.
PARTS = "mpiox_subfiles=2:mpiox_subfile_unit=4096:"
#: Limits that MPI_Init of both libraries bears: delegates, which are started there, are to have them, too.
EARLY = ("refuse=memfd", "refuse=io_uring", "memlock=", "nofile=")
LIMITS = {
    "none": Limit(),
    "own process ids": Limit(before=("unshare", "--pid", "--fork", "--mount-proc"), root=True),
    "process ids without /proc of their own": Limit(before=("unshare", "--pid", "--fork"), root=True),
    "users": Limit(before=("unshare", "--user", "--map-root-user"), root=True),
    "no /proc": Limit(words=("hide=/proc",), root=True),
    "nothing in common": Limit(words=("hide=/proc", SMALL_SHM), reason=UNSHARED, root=True),
    "small /dev/shm": Limit(words=(SMALL_SHM,), root=True),
    "small /dev/shm and no memfd": Limit(
        words=(SMALL_SHM, NO_MEMFD), reason=UNSHARED, root=True, environment=(("TMPDIR", "/dev/shm"),)
    ),
    "no memfd": Limit(words=(NO_MEMFD,)),
    "read-only": Limit(words=("readonly",), root=True),
    "read-only and no memfd": Limit(words=("readonly", NO_MEMFD), reason=NONE, root=True),
    "no io_uring": Limit(words=("refuse=io_uring_setup:38",), hints=RING),
    "io_uring forbidden": Limit(words=("refuse=io_uring_setup:1",), hints=RING),
    "no locked memory": Limit(words=("memlock=0",), hints=RING),
    "no random numbers": Limit(words=("refuse=getrandom:1",), hints=PARTS),
    "no process_vm_readv": Limit(words=("refuse=process_vm_readv:1",)),
    "few descriptors": Limit(words=("nofile=100",)),
    "file size": Limit(words=("fsize=2000000",), reason=FULL),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a launch of the program did: classes of each step by rank, the file, the reason in the statistics."""

    launch: Launch
    steps: tuple[tuple[str, tuple[int, ...]], ...]
    content: bytes
    reasons: tuple[str, ...]

    def is_clean(self) -> bool:
        """Tell whether all went well on all ranks, to the end."""
        fine = all(value == 0 for _, values in self.steps for value in values)
        return self.launch.returncode == 0 and fine and self.steps[-1:] != () and self.steps[-1][0] == "done"

    def check_errors(self) -> None:
        """No step may be wrong without an error; the steps in which all ranks take part fail on all or on none."""
        assert not self.launch.timed_out, self.launch.describe()
        for name, values in self.steps:
            assert -1 not in values, self.launch.describe()
            if name in {"open", "write_at_all", "read_at_all", "close"}:
                assert len({value == 0 for value in values}) == 1, self.launch.describe()


@pytest.fixture()
def folder() -> Iterator[pathlib.Path]:
    """Return a folder that a limit on /dev/shm does not hide."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="mpiox_contained_"))
    path.chmod(0o777)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@functools.cache
def why_no_namespaces(before: tuple[str, ...]) -> str | None:
    """Return why namespaces are not to be had here, None when they are."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "no namespaces: not root, or no unshare"
    words = [*(before or ("unshare", "--mount")), "true"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    return f"no namespaces: {done.stderr.strip()}" if done.returncode != 0 else None


def go(folder: pathlib.Path, ranks: int, limit: Limit, *, hints: str = "", ours: bool = True) -> Outcome:
    """Run the program under a limit."""
    name = "ours" if ours else "native"
    statistics, file = folder / name / "stats.jsonl", folder / name / "file"
    shutil.rmtree(file.parent, ignore_errors=True)
    file.parent.mkdir()
    environment = base_environment() | (APART if limit.root else {}) | dict(limit.environment)
    preload: list[str] = []
    if ours:
        environment |= {"MPIOX_HINTS": f"*:{hints}{limit.hints}mpiox_exchange=two_phase", "MPIOX_STATS": "1"}
        environment |= {"MPIOX_STATS_FILE": str(statistics)}
        preload = ["env", f"LD_PRELOAD={library_path()}"]
    program = [*preload, os.fspath(mpi_program("contained")), str(file), *limit.words]
    command = [str(launcher()), "-n", str(ranks), *limit.before, *program]
    launch = run_bounded(command, env=environment, timeout_s=LIMIT_S, check=False)
    found = re.findall(r"^step (\S+)((?: -?\d+)+)$", launch.stdout, re.MULTILINE)
    lines = json_lines(statistics) if statistics.exists() else []
    return Outcome(
        launch=launch,
        steps=tuple((step, tuple(map(int, values.split()))) for step, values in found),
        content=subfiles.read(file) if file.exists() else b"",
        reasons=tuple(str(line["reason"]) for line in lines if line["kind"] == "file"),
    )


@functools.cache
def reference(ranks: int) -> bytes:
    """Return the file that the MPI library alone leaves, without limits."""
    with tempfile.TemporaryDirectory() as place:
        done = go(pathlib.Path(place), ranks, Limit(), ours=False)
    assert done.is_clean(), done.launch.describe()
    return done.content


def check(folder: pathlib.Path, name: str, mode: str, ranks: int) -> None:
    """Run under a limit: the same bytes as without, taken over or with the reason."""
    limit = LIMITS[name]
    if limit.root and (why := why_no_namespaces(limit.before)) is not None:
        pytest.skip(why)
    before = shared_memory()
    if mode != "collective" and limit.words and all(word.startswith(EARLY) for word in limit.words):
        limit = dataclasses.replace(limit, words=("early", *limit.words))
    done = go(folder, ranks, limit, hints=MODES[mode])
    assert done.is_clean(), done.launch.describe()
    clients = len(done.steps[0][1])
    assert clients == (ranks - 1 if mode == "split" and clients < ranks else ranks)
    assert done.content == reference(clients)
    assert len(done.reasons) == 1, done.launch.describe()
    native = "native:" in done.reasons[0]
    if mode != "collective":  # what delegates were started with may have been shared before the limit
        assert not native or any(reason in done.reasons[0] for reason in (FULL, NONE, UNSHARED)), done.reasons
    elif clients > 1:  # one rank shares memory with nobody
        assert native == bool(limit.reason) and limit.reason in done.reasons[0], done.reasons
    deadline_s = time.monotonic() + GRACE_S
    while shared_memory() - before and time.monotonic() < deadline_s:  # others come and go
        time.sleep(0.05)
    assert not shared_memory() - before


@pytest.mark.parametrize("ranks", [5, *slow(2)])
@pytest.mark.parametrize("name", LIMITS)
def test_collectives_and_independent_access(extension: str, folder: pathlib.Path, name: str, ranks: int) -> None:
    """The file is as the MPI library leaves it without the limit; who carried it out, and why, is as listed."""
    check(folder, name, "collective", ranks)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("name", LIMITS)
def test_other_numbers_of_ranks(extension: str, folder: pathlib.Path, name: str, ranks: int) -> None:
    """The same for other numbers of ranks."""
    check(folder, name, "collective", ranks)


@pytest.mark.slow_except(
    "none-*", "*-spawn", "nothing in common-*", "no random numbers-*", "few descriptors-*", "file size-*"
)
@pytest.mark.parametrize("mode", ["thread", "spawn", *slow("split")])
@pytest.mark.parametrize("name", LIMITS)
def test_delegates(extension: str, folder: pathlib.Path, name: str, mode: str) -> None:
    """With delegates, or without them where they cannot be had: the same bytes."""
    check(folder, name, mode, 3)


@pytest.mark.slow_with("nofile=1", "nofile=2", "nofile=6", "as=3145728", "as=8388608", "as=50331648")
@pytest.mark.parametrize(
    "words",
    [
        *[(f"nofile={count}",) for count in (1, 2, 3, 4, 6)],
        *[(f"as={mebibytes << 20}",) for mebibytes in (3, 8, 12, 48, 128)],
        ("fsize=1048576",),
    ],
    ids=" ".join,
)
def test_an_error_only_where_the_mpi_library_has_one(
    extension: str, folder: pathlib.Path, family: str, words: Sequence[str]
) -> None:
    """Descriptors, memory and file sizes from too little for the MPI library up to enough for everything."""
    limit = Limit(words=tuple(words))
    if family == "mpich" and words[0] in {"as=3145728", "as=8388608", "as=12582912"}:
        pytest.skip("MPICH needs more memory than that to open a file, and hangs or crashes without it")
    native = go(folder, 2, limit, ours=False)
    ours = go(folder, 2, limit)
    ours.check_errors()
    if native.is_clean():
        assert ours.is_clean(), ours.launch.describe()
        assert ours.content == native.content
        assert len(ours.reasons) <= 1  # it may lack the descriptor for the line


@pytest.mark.both
@pytest.mark.parametrize("mode", MODES)
def test_a_file_beyond_the_largest_size(extension: str, folder: pathlib.Path, mode: str) -> None:
    """Writes beyond ulimit -f, the signal ignored: an error, no wrong byte, and no delegate that dies of the signal."""
    cache = "" if mode == "collective" else "mpiox_delegate_cache=262144:mpiox_delegate_page=4096:"
    limit = Limit(words=("early", "fsize=300000", "ignore"), hints=f"{cache}cb_buffer_size=4096:")
    done = go(
        folder, 2 if mode == "collective" else 3, Limit(words=limit.words[1:], hints=limit.hints), hints=MODES[mode]
    )
    done.check_errors()
    assert done.launch.returncode == 0 and done.steps[-1][0] == "done", done.launch.describe()
    assert any(value != 0 for _, values in done.steps for value in values), done.launch.describe()
    assert len(done.content) <= 300000
