"""A name that comes to be an index, or is none any more, between this library's look and the MPI library's open."""

from __future__ import annotations

import pathlib
import sys

import pytest

from support import cbuild, made_subfiles, subfiles
from support.launch import PROGRAMS, mpi_family, mpi_run, preload_environment, python_run

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

DATA = bytes(place % 251 + 1 for place in range(15000))
OTHER = DATA[::-1]
PLAIN = b"plain" * 70
DELEGATES = "*:mpiox_delegates=2:mpiox_delegate_mode=thread"
#: Two ranks open a file, say what they find, and write to it if they may.
OPEN = """
import sys
import numpy as np
from mpi4py import MPI

comm, name, amode = MPI.COMM_WORLD, sys.argv[1], 0
for word in sys.argv[2].split("|"):
    amode |= getattr(MPI, f"MODE_{word}")
try:
    fh = MPI.File.Open(comm, name, amode)
except MPI.Exception as error:
    told = f"refused {error.Get_error_class() == MPI.ERR_NO_SUCH_FILE} {MPI.Get_error_string(error.Get_error_code())}"
else:
    assert fh.Get_amode() == amode
    back = np.zeros(fh.Get_size(), "u1")
    if not amode & MPI.MODE_WRONLY:
        fh.Read_at_all(0, back)
    told = f"found {back.size} {bytes(back).hex()}"
    comm.Barrier()
    if not amode & MPI.MODE_RDONLY:
        fh.Write_at_all(100 * comm.rank, np.full(100, 65 + comm.rank, "u1"))
    fh.Close()
for line in comm.gather(told.replace("\\n", " ")) or ():
    print(line, flush=True)
"""


def put(path: pathlib.Path, what: bytes | None, *, several: bool) -> None:
    """Make a file, stored as one or as several; None: none."""
    if what is not None and several:
        made_subfiles.make(path, {0: what}, len(what), 1000, 4)
    elif what is not None:
        path.write_bytes(what)


def run(folder: pathlib.Path, amode: str, new: str, hints: str = "") -> list[str]:
    """Open FILE, which becomes the file `new` meanwhile; return what both ranks say."""
    source = PROGRAMS / "late_change.c"
    late = cbuild.compile_c([cbuild.compiler(), *cbuild.FLAGS, "-shared", "-fPIC", str(source), "-ldl"], "late.so")
    script = folder / "open.py"
    script.write_text(OPEN, encoding="utf-8")
    environment = {
        "LD_PRELOAD": f"{late}:{preload_environment()['LD_PRELOAD']}",
        "CHANGE_TO": str(folder / "file"),
        "CHANGE_FROM": new and str(folder / new),
        "MPIOX_HINTS": hints,
    }
    launch = mpi_run([sys.executable, script, folder / "file", amode], 2, env=environment)
    assert not new or not (folder / new).exists(), "nothing has changed meanwhile"
    lines = launch.stdout.splitlines()
    assert len(lines) == 2, launch.describe()
    return lines


def written(data: bytes) -> bytes:
    """Return the bytes of a file to which both ranks have written."""
    return b"A" * 100 + b"B" * 100 + data[200:]


@pytest.mark.both_with("*-RDWR|CREATE-*")
@pytest.mark.slow_with("none to index-*-delegates", "*-RDWR-*", "*-WRONLY-*", "plain to index-*-delegates")
@pytest.mark.parametrize("hints", ["", DELEGATES], ids=["plain", "delegates"])
@pytest.mark.parametrize("amode", ["RDONLY", "RDWR", "WRONLY", "RDWR|CREATE"])
@pytest.mark.parametrize(
    ("before", "several", "new"),
    [(None, False, "index"), (PLAIN, False, "index"), (OTHER, True, "plain"), (OTHER, True, "index")],
    ids=["none to index", "plain to index", "index to plain", "index to another"],
)
def test_it_is_opened_as_what_it_is_now(
    tmp_path: pathlib.Path, before: bytes | None, several: bool, new: str, amode: str, hints: str
) -> None:
    if before is None and "CREATE" in amode:
        amode = "WRONLY|CREATE"
    put(tmp_path / "file", before, several=several)
    if new == "plain":
        put(tmp_path / "new", PLAIN, several=False)
    else:  # with an ID of its own
        subfiles.store(tmp_path / "new", DATA, 3, 500)
    lines = run(tmp_path, amode, "new", hints)
    data = PLAIN if new == "plain" else DATA
    shown = bytes(len(data)) if "WRONLY" in amode else data
    assert lines == [f"found {len(data)} {shown.hex()}"] * 2
    assert subfiles.is_index(tmp_path / "file") == (new == "index")
    assert subfiles.read(tmp_path / "file") == (data if amode == "RDONLY" else written(data))


def test_an_index_that_is_removed_meanwhile(tmp_path: pathlib.Path) -> None:
    subfiles.store(tmp_path / "file", DATA, 4, 1000)
    assert all(line.startswith("refused True") for line in run(tmp_path, "RDWR", ""))
    subfiles.store(tmp_path / "file", DATA, 4, 1000)
    assert run(tmp_path, "RDWR|CREATE", "") == ["found 0 "] * 2
    assert (tmp_path / "file").read_bytes() == written(b"")


@pytest.mark.both
def test_an_index_that_the_mpi_library_would_have(tmp_path: pathlib.Path) -> None:
    """With mpiox_enable=false it is refused whenever it is met, and stays as it was."""
    subfiles.store(tmp_path / "new", DATA, 4, 1000)
    for line in run(tmp_path, "RDWR", "new", "*:mpiox_enable=false"):
        assert "stored as subfiles, and mpiox_enable is false" in line and "mpiio-ext subfiles merge" in line
    assert subfiles.read(tmp_path / "file") == DATA


#: Rank 0 makes files one after the other, by the steps of many programs; the others look for them all the time.
LOOP = """
import os, sys, time
import numpy as np
from mpi4py import MPI

world, how, files = MPI.COMM_WORLD, sys.argv[1], 60
part = world.Split(int(world.rank > 0))
info = MPI.Info.Create()
info.Set("mpiox_subfiles", "2")

def produce(until):
    made = 0
    while made < files and time.time() < until:
        name = "ck.tmp" if how == "renamed" else "ck"
        fh = MPI.File.Open(part, name, MPI.MODE_CREATE | MPI.MODE_WRONLY, info)
        fh.Write_at(0, np.full(65536, 7, "u1"))
        fh.Close()
        if how == "renamed":
            os.rename("ck.tmp", "ck")
        made += 1
        while os.path.exists("ck") and time.time() < until:
            time.sleep(0.002)
    open("end", "w").close()
    sys.stdout.write(f"made {made}\\n")

def consume():
    mode = MPI.MODE_RDWR if how == "renamed" else MPI.MODE_RDONLY
    right = wrong = 0
    while not part.bcast(os.path.exists("end") and not os.path.exists("ck")):
        try:
            fh = MPI.File.Open(part, "ck", mode)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_NO_SUCH_FILE, str(error)
            continue
        data = np.zeros(65536, "u1")
        fh.Read_at_all(0, data)
        size = fh.Get_size()
        fh.Close()
        text = open("ck", "rb").read()
        index = text.startswith(b"mpiio_ext subfiles")
        whole = how != "renamed" or (size == 65536 and (data == 7).all())
        good = index and whole and data[0] in (0, 7)
        right, wrong = right + good, wrong + (not good)
        part.Barrier()
        if part.rank == 0 and b"\\nstate whole\\n" in text:
            os.unlink("ck")
        part.Barrier()
    sys.stdout.write(f"right {right} wrong {wrong}\\n")  # at once: launchers mix what comes in pieces

if world.rank == 0:
    produce(time.time() + 30)
else:
    consume()
"""


@pytest.mark.parametrize("how", ["renamed", "made"])
def test_a_consumer_beside_a_producer(tmp_path: pathlib.Path, how: str) -> None:
    """It never gets an index for data, and no writer changes one."""
    script = tmp_path / "loop.py"
    script.write_text(LOOP, encoding="utf-8")
    ranks = 3 if mpi_family() == "openmpi" else 2  # ROMIO's ranks each meet the name, or not
    launch = python_run([script, how], ranks, env=preload_environment(), cwd=tmp_path, timeout_s=60)
    words = [line.split() for line in launch.stdout.splitlines() if line.startswith("right")]
    assert len(words) == ranks - 1 and all(line[3] == "0" and int(line[1]) > 0 for line in words), launch.describe()
