"""Files that are stored as several, deleted by MPI_File_delete or past MPI: no byte goes that still has a name."""

from __future__ import annotations

import pathlib
import textwrap

import pytest

from support import subfiles
from support.launch import python_run

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

HINTS = "*:mpiox_subfiles=3:mpiox_subfile_unit=1k"
CONTENT = bytes([7]) * 20000
PROGRAM = """
    import os
    import pathlib
    import shutil
    import sys
    import numpy as np
    from mpi4py import MPI

    comm, folder = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])

    def open_file(name, mode):
        return MPI.File.Open(MPI.COMM_SELF, str(folder / name), mode)

    def make(name):
        (folder / name).parent.mkdir(exist_ok=True)
        file = open_file(name, MPI.MODE_CREATE | MPI.MODE_WRONLY)
        file.Write_at_all(0, np.full(20000, 7, np.uint8))
        file.Close()
        return folder / name

    def delete(name):
        MPI.File.Delete(str(folder / name))

    if comm.rank == comm.size - 1:
        {work}
    comm.Barrier()
"""


def run(folder: pathlib.Path, work: str, ranks: int = 2, hints: str = HINTS) -> None:
    """Have the last rank do something that says nothing."""
    program = textwrap.dedent(PROGRAM).replace("{work}", textwrap.indent(work, 4 * " ").strip())
    launch = python_run(["-c", program, folder], ranks, env={"MPIOX_HINTS": hints}, preload=True, timeout_s=120)
    assert launch.stderr == ""


NAMES = {
    "a symbolic link": ("os.symlink('b', folder / 'a'); make('b')", "b"),
    "a hard link": ("os.link(make('a'), folder / 'b')", "b"),
    "a file that has a copy": ("shutil.copy(make('a'), folder / 'b')", "b"),
    "a copy": ("shutil.copy(make('b'), folder / 'a')", "b"),
    "a file that was renamed": ("make('a').rename(folder / 'c'); make('b'); (folder / 'c').rename(folder / 'a')", "b"),
}


@pytest.mark.slow_with(
    "a symbolic link-staged",
    "a hard link-written",
    "a file that has a copy-written",
    "a copy-written",
    "a file that was*-staged",
)
@pytest.mark.parametrize("more", ["", ":mpiox_delegates=2:mpiox_close=staged"], ids=["written", "staged"])
@pytest.mark.parametrize(("work", "name"), NAMES.values(), ids=NAMES)
def test_what_still_has_a_name_stays(tmp_path: pathlib.Path, work: str, name: str, more: str) -> None:
    run(tmp_path, f"{work}\ndelete('a')\nassert not os.path.lexists(folder / 'a')", hints=HINTS + more)
    assert subfiles.read(tmp_path / name) == CONTENT
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {name}


@pytest.mark.parametrize("mode", ["RDONLY", "RDWR"])
def test_a_file_that_is_open_is_refused(tmp_path: pathlib.Path, mode: str) -> None:
    """As the MPI standard allows: its subfiles would be missed later. Closed, it goes."""
    run(
        tmp_path,
        f"""
make('a')
file = open_file('a', MPI.MODE_{mode})
try:
    delete('a')
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_FILE_IN_USE and "that a program has open" in str(error), error
else:
    raise AssertionError("deleted")
back = np.zeros(20000, np.uint8)
file.Read_at(0, back)
assert (back == 7).all()
file.Close()
delete('a')
""",
    )
    assert list(tmp_path.iterdir()) == []


#: What becomes of a file that goes when it is closed, and what has its name then.
ON_CLOSE = {
    "in the folder that the program has left": (
        "(folder / 'sub').mkdir(); (folder / 'sub/data').write_bytes(b'other'); os.chdir('sub')",
        {"sub/data"},
    ),
    "gone by then": ("os.unlink('data')", set()),
    "renamed": ("os.rename('data', 'b')", {"b"}),
    "replaced": ("pathlib.Path('b').write_bytes(b'other'); os.rename('b', 'data')", {"data"}),
    "replaced by another one": ("make('b').rename('data')", {"data"}),
}


@pytest.mark.both
@pytest.mark.parametrize(("work", "names"), ON_CLOSE.values(), ids=ON_CLOSE)
def test_what_goes_on_close_is_the_file(tmp_path: pathlib.Path, work: str, names: set[str]) -> None:
    """Whatever folder the program is in by then, and nothing that has come to have its name."""
    run(
        tmp_path,
        f"""
os.chdir(folder)
file = MPI.File.Open(MPI.COMM_SELF, "data", MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
file.Write_at_all(0, np.full(20000, 7, np.uint8))
{work}
file.Close()
""",
        ranks=1,
    )
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {name for name in left if ".subfiles" not in name} == names


PAST = {
    "unlinked": "make('a').unlink()",
    "replaced": "(folder / 'plain').write_bytes(b'plain'); (folder / 'plain').rename(make('a'))",
    "archived by copy and unlink": "(folder / 'old').mkdir(); shutil.copy2(make('a'), folder / 'old'); "
    "(folder / 'a').unlink()",
    "replaced by one of another folder": "make('a'); make('new/a').rename(folder / 'a')",
}


@pytest.mark.slow_with("replaced")
@pytest.mark.parametrize("work", PAST.values(), ids=PAST)
def test_subfiles_stay_when_the_index_goes_past_mpi(tmp_path: pathlib.Path, work: str) -> None:
    """Nobody can tell an archive from a rotation."""
    run(tmp_path, work)
    left = {path for path in (tmp_path / "a.subfiles").iterdir() if path.read_bytes()[:9] == CONTENT[:9]}
    assert len(left) == 3
