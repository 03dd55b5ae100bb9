"""Files of subfiles whose index a program takes away past MPI: by unlink() or remove(), or by rename() over it."""

from __future__ import annotations

import pathlib
import re
import shutil
import sys
import textwrap

import pytest

from support import subfiles
from support.cbuild import mpi_program
from support.launch import mpi_run, python_run
from support.made_subfiles import command

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

HINTS = "*:mpiox_subfiles=3:mpiox_subfile_unit=1k"
STAGED = ":mpiox_delegates=2:mpiox_close=staged"


def files(folder: pathlib.Path) -> dict[str, bytes]:
    """Return the logical files of a folder."""
    return {path.name: subfiles.read(path) for path in folder.iterdir() if path.is_file()}


def parts(folder: pathlib.Path) -> set[pathlib.Path]:
    """Return all that is in folders of subfiles."""
    return {path for path in folder.rglob("*.subfiles/*") if path.is_file()}


@pytest.mark.parametrize("more", ["", STAGED], ids=["written", "staged"])
def test_checkpoints_are_rotated(tmp_path: pathlib.Path, more: str) -> None:
    """The last three are there, and nothing of the others."""
    left, plain, hinted = {}, "*:mpiox_close=written", HINTS + more
    for hints in (plain, hinted):
        folder = tmp_path / hints[2:].partition("=")[0]
        folder.mkdir()
        launch = mpi_run([mpi_program("posix_rotation"), folder, "6"], 3, env={"MPIOX_HINTS": hints}, preload=True,
                         timeout_s=120)  # fmt: skip
        assert launch.stderr == "", launch.describe()
        left[hints] = files(folder)
    assert left[hinted] == left[plain] and set(left[hinted]) == {"chk.0", "chk.1", "chk.2"}
    named = {part for name in left[hinted] for part in subfiles.read_index(folder / name).subfiles}
    assert parts(folder) == named and len(named) == 9
    assert command("check", folder).exit_code == 0


PROGRAM = """
    import ctypes
    import os
    import pathlib
    import shutil
    import sys
    import numpy as np
    from mpi4py import MPI

    comm, folder = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2")

    def open_new(name, mode=MPI.MODE_CREATE | MPI.MODE_WRONLY):
        return MPI.File.Open(MPI.COMM_SELF, str(folder / name), mode)

    def make(name):
        (folder / name).parent.mkdir(exist_ok=True)
        file = open_new(name)
        file.Write_at_all(0, np.full(20000, 7, np.uint8))
        file.Close()
        return folder / name

    def kept(name, keep):
        path = make(name)
        keep(path)
        path.unlink()

    if comm.rank == 0:
        make("first")
    comm.Barrier()
    if comm.rank == comm.size - 1:
        {work}
    comm.Barrier()
"""


def run(folder: pathlib.Path, work: str, ranks: int = 2) -> str:
    """Have the last rank do something; return what is said on standard error."""
    program = textwrap.dedent(PROGRAM).replace("{work}", textwrap.indent(work, 4 * " ").strip())
    return python_run(["-c", program, folder], ranks, env={"MPIOX_HINTS": HINTS}, preload=True, timeout_s=120).stderr


GONE = {
    "unlink": "make('a').unlink()",
    "unlinkat": "os.unlink(make('a').name, dir_fd=os.open(folder, os.O_RDONLY))",
    "remove": "ctypes.CDLL(None).remove(os.fsencode(make('a')))",
    "of another rank": "(folder / 'first').unlink(); make('first')",
    "rename": "(folder / 'plain').write_bytes(b'plain'); (folder / 'plain').rename(make('a')); (folder / 'a').unlink()",
    "an index over another": "make('b').rename(make('a')); (folder / 'a').unlink()",
    "renamed before": "make('a').rename(folder / 'b'); (folder / 'b').unlink()",
    "renamed with its folder": "make('a').rename(folder / 'b'); (folder / 'a.subfiles').rename(folder / 'b.subfiles'); "
                               "(folder / 'b').unlink()",
    "a tree": "make('t/a'), make('t/b'); shutil.rmtree(folder / 't')",
    "names that were listed": "make('a'); names = sorted(folder.glob('a*')); "
                              "[shutil.rmtree(one) if one.is_dir() else one.unlink() for one in names]",
    "folder too": "make('a').unlink(); (folder / 'a.subfiles').rmdir()",
}  # fmt: skip


@pytest.mark.parametrize("work", GONE.values(), ids=GONE)
def test_nothing_is_left(tmp_path: pathlib.Path, work: str) -> None:
    """Of the file, and of its folder; what else is there is whole."""
    assert run(tmp_path, work) == ""
    assert files(tmp_path) == {"first": bytes([7]) * 20000}
    assert {path.name for path in tmp_path.iterdir()} == {"first", "first.subfiles"}
    assert parts(tmp_path) == set(subfiles.read_index(tmp_path / "first").subfiles)


KEPT = {
    "copied": ("kept('a', lambda path: shutil.copy(path, folder / 'b'))", "b", "but not a copy of it"),
    "linked": ("kept('a', lambda path: os.link(path, folder / 'b'))", "b", ""),
    "replaced by its copy": ("shutil.copy(make('b'), folder / 'c'); (folder / 'c').rename(folder / 'b')", "b",
                             "but not a copy of it"),
    "exchanged": ("make('a'), make('t/b'); assert call(-100, os.fsencode(folder / 'a'), -100, "
                  "os.fsencode(folder / 't/b'), 2) == 0; assert call(-100, os.fsencode(folder / 'a'), -100, "
                  "os.fsencode(folder / 't/b'), 2) == 0; (folder / 'a').rename(folder / 'b')", "b", ""),
    "not unlinked": ("make('b'); assert ctypes.CDLL(None).unlink(os.fsencode(str(folder / 'b') + '/')) == -1", "b", ""),
    "a link": ("(folder / 'l').symlink_to(make('b')); (folder / 'l').unlink()", "b", ""),
}  # fmt: skip


@pytest.mark.parametrize(("work", "name", "words"), KEPT.values(), ids=KEPT)
def test_what_still_has_a_name_stays(tmp_path: pathlib.Path, work: str, name: str, words: str) -> None:
    said = run(tmp_path, work)
    assert words in said if words else said == ""
    assert subfiles.read(tmp_path / name) == bytes([7]) * 20000


@pytest.mark.parametrize("mode", ["RDONLY", "RDWR"])
def test_what_is_open_stays(tmp_path: pathlib.Path, mode: str) -> None:
    """The name goes, as the program has said; whoever has the file open still has all of it."""
    work = (f"make('a'); file = open_new('a', MPI.MODE_{mode}); (folder / 'a').unlink()\n"
            "back = np.zeros(20000, np.uint8)\nfile.Read_at(0, back)\nassert (back == 7).all()\n"
            f"try:\n    file.Close()\nexcept MPI.Exception:\n    assert '{mode}' == 'RDWR'")  # fmt: skip
    said = run(tmp_path, work, 1)
    assert "/a: it was removed while a program had it open: its subfiles stay in " in said
    assert "`mpiio-ext subfiles rm --orphans` lists such ones" in said
    assert len(list((tmp_path / "a.subfiles").iterdir())) == 3 and not (tmp_path / "a").exists()


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_program_without_subfiles_pays_nothing(tmp_path: pathlib.Path) -> None:
    """Each name that it takes away is in one system call, as it is natively."""
    work = "[(folder / f'plain{i}').touch() for i in range(9)]; [(folder / f'plain{i}').unlink() for i in range(9)]"
    program = textwrap.dedent(PROGRAM).replace("{work}", work)
    log = tmp_path / "log"
    for hints, calls in (("*:mpiox_stats=off", 0), (HINTS, 1)):
        words = ["strace", "-f", "-o", log, "-e", "trace=%file", sys.executable, "-c", program, tmp_path]
        mpi_run(words, 1, env={"MPIOX_HINTS": hints}, preload=True, timeout_s=120)
        lines = [line for line in log.read_text().splitlines() if re.search(r"/plain\d", line)]
        assert len([line for line in lines if "unlink" in line]) == 9
        assert len([line for line in lines if "stat" in line]) == 9 * calls, lines
