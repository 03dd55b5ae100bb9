"""Files made with the striping of the hints, where a preloaded library plays Lustre, CephFS and BeeGFS."""

from __future__ import annotations

import json
import pathlib

import pytest

from support import cbuild, launch

pytestmark = pytest.mark.mpi

KINDS = ("lustre", "ceph", "beegfs")
PROGRAM = """
import json, os, sys
import mpiio_ext
from mpi4py import MPI
path, hints, mode = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
world, info = MPI.COMM_WORLD, MPI.Info.Create()
for name, value in hints.items():
    info.Set(name, value)
amode = MPI.MODE_CREATE | MPI.MODE_RDWR | (MPI.MODE_EXCL if mode == "excl" else 0)
fh = MPI.File.Open(world, path, amode, info)
used = fh.Get_info()
assert fh.Get_amode() == amode, (fh.Get_amode(), amode)
fh.Write_at_all(world.rank * 4, b"abc%d" % world.rank)
told = {name: used.Get(name) for name in ("striping_unit", "striping_factor", "start_iodevice")}
fh.Close()
if mode == "excl":
    try:
        MPI.File.Open(world, path, amode, info)
        raise SystemExit("MPI_MODE_EXCL found no file")
    except MPI.Exception as error:
        assert error.Get_error_class() in (MPI.ERR_FILE_EXISTS, MPI.ERR_IO, MPI.ERR_OTHER), error
if world.rank == 0:
    with open(path, "rb") as file:
        assert file.read() == b"".join(b"abc%d" % rank for rank in range(world.size))
    from mpiio_ext.layout import inspect
    found = inspect(path)
    print("RESULT", json.dumps({"told": told, "found": found.as_dict()}))
"""


def made(
    folder: pathlib.Path, kind: str, hints: dict[str, str], mode: str = "", name: str = "file", **environment: str
) -> dict[str, object]:
    """Open a file with hints on two ranks; return what MPI_File_get_info and the file system say of it."""
    fake = cbuild.mpi_library("fake_file_system")
    env = {"LD_PRELOAD": str(fake), "FAKE_FS": kind, "FAKE_FS_ROOT": str(folder)} | environment
    program = folder.parent / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    run = launch.python_run([str(program), str(folder / name), json.dumps(hints), mode], 2, env=env, timeout_s=120)
    line = next(line for line in run.stdout.splitlines() if line.startswith("RESULT "))
    result = json.loads(line.removeprefix("RESULT "))
    facts = {key: (item["value"], item["source"]) for key, item in result["found"]["facts"].items()}
    return {"told": result["told"], "facts": facts, "components": result["found"]["components"]}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder that can keep attributes."""
    import os

    found = tmp_path / "fake"
    found.mkdir()
    try:
        os.setxattr(found, "user.fake_probe", b"1")
    except OSError as error:
        pytest.skip(f"no user attributes here: {error}")
    return found


@pytest.mark.parametrize("mode", ["", "excl"])
def test_lustre(folder: pathlib.Path, mode: str) -> None:
    """The file has the wished stripes, and MPI says so; MPI_MODE_EXCL means what it means."""
    hints = {"striping_unit": "2097152", "striping_factor": "3", "start_iodevice": "2"}
    result = made(folder, "lustre", hints, mode)
    facts = result["facts"]
    assert isinstance(facts, dict)
    assert facts["file_system"] == ("lustre", "statfs f_type")
    assert facts["stripe_size"] == (2097152, "xattr lustre.lov")
    assert facts["stripe_count"] == (3, "xattr lustre.lov")
    assert facts["lock_protocol"][0] == "server"
    assert result["components"][0]["targets"] == ["2", "3", "0"]  # type: ignore[index]
    assert result["told"] == {"striping_unit": "2097152", "striping_factor": "3", "start_iodevice": "2"}


def test_what_the_file_got_counts(folder: pathlib.Path) -> None:
    """100 servers are asked for, four are there."""
    result = made(folder, "lustre", {"striping_factor": "100"})
    assert result["facts"]["stripe_count"] == (4, "xattr lustre.lov")  # type: ignore[index]
    assert result["told"]["striping_factor"] == "4"  # type: ignore[index]


@pytest.mark.both
def test_all_servers(folder: pathlib.Path) -> None:
    """-1 is Lustre's word for all its targets; where there is no such word, the folder's number stays."""
    result = made(folder, "lustre", {"striping_factor": "-1", "striping_unit": "2097152"}, FAKE_FS_SERVERS="7")
    assert result["facts"]["stripe_count"] == (7, "xattr lustre.lov")  # type: ignore[index]
    assert result["facts"]["stripe_size"] == (2097152, "xattr lustre.lov")  # type: ignore[index]
    assert result["told"]["striping_factor"] == "7"  # type: ignore[index]
    for kind in ("ceph", "beegfs"):
        result = made(folder, kind, {"striping_factor": "-1", "striping_unit": "2097152"}, name=kind)
        assert result["facts"]["stripe_size"][0] == 2097152  # type: ignore[index]
        assert result["facts"]["stripe_count"][0] == 1  # type: ignore[index]


def test_existing_files_keep_theirs(folder: pathlib.Path) -> None:
    (folder / "file").write_bytes(b"abc0abc1")
    result = made(folder, "lustre", {"striping_unit": "2097152", "striping_factor": "3"})
    assert result["facts"]["stripe_count"] == (1, "xattr lustre.lov")  # type: ignore[index]


def test_without_hints_nothing_is_asked(folder: pathlib.Path) -> None:
    import os

    made(folder, "lustre", {})
    assert "user.fake_layout" not in os.listxattr(folder / "file")


REFUSED = """
import os, sys
import mpiio_ext
from mpi4py import MPI
info = MPI.Info.Create()
info.Set("striping_factor", "3")
for amode in (MPI.MODE_CREATE | MPI.MODE_RDONLY, MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_WRONLY):
    try:
        MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], amode, info).Close()
    except MPI.Exception:
        print("refused", os.path.exists(sys.argv[1]))
"""


def test_wrong_modes_make_nothing(folder: pathlib.Path) -> None:
    program = folder.parent / "refused.py"
    program.write_text(REFUSED, encoding="utf-8")
    fake = cbuild.mpi_library("fake_file_system")
    env = {"LD_PRELOAD": str(fake), "FAKE_FS": "lustre", "FAKE_FS_ROOT": str(folder)}
    run = launch.python_run([str(program), str(folder / "file")], 1, env=env, timeout_s=120)
    assert "True" not in run.stdout
    assert "refused False" in run.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_refused(folder: pathlib.Path, kind: str) -> None:
    """The file is there all the same, with the file system's own striping."""
    result = made(folder, kind, {"striping_unit": "2097152", "striping_factor": "3"}, "excl", FAKE_FS_REFUSE="1")
    assert result["facts"]["stripe_count"][0] == 1  # type: ignore[index]


def test_ceph(folder: pathlib.Path) -> None:
    """Object sizes stay multiples of the stripe unit."""
    facts = made(folder, "ceph", {"striping_unit": "3145728", "striping_factor": "3"})["facts"]
    assert isinstance(facts, dict)
    assert facts["stripe_size"] == (3145728, "xattr ceph.file.layout")
    assert facts["stripe_count"] == (3, "xattr ceph.file.layout")
    assert facts["object_size"] == (6291456, "xattr ceph.file.layout")


def test_beegfs(folder: pathlib.Path) -> None:
    """Chunks are powers of two."""
    result = made(folder, "beegfs", {"striping_unit": "3145728", "striping_factor": "2"})
    facts = result["facts"]
    assert isinstance(facts, dict)
    assert facts["stripe_size"] == (4194304, "ioctl BEEGFS_IOC_GET_STRIPEINFO")
    assert facts["servers"] == (2, "ioctl BEEGFS_IOC_GET_STRIPETARGET")
    assert result["components"][0]["targets"] == ["101@storage01", "102@storage01"]  # type: ignore[index]
    assert result["told"]["striping_unit"] == "4194304"  # type: ignore[index]
