"""Files that are written behind their close, and programs that look for them past MPI: POSIX calls, C and Python."""

from __future__ import annotations

import hashlib
import os
import pathlib
import platform
import subprocess
import tarfile
import textwrap

import pytest

from support import cbuild
from support.cbuild import mpi_program
from support.launch import PROGRAMS, mpi_run, preload_environment, python_alone, python_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
RANKS = 3


def hints(close: str = "staged", **more: str | int) -> dict[str, str]:
    """Return the environment of a program whose files take seconds to be written, if nobody waits for them."""
    words = {
        "mpiox_delegates": 2,
        "mpiox_delegate_cache": "4m",
        "mpiox_delegate_page": "16k",
        "striping_unit": "16k",
        "mpiox_drain_rate": "4k",
        "mpiox_close": close,
        **more,
    }
    return {"MPIOX_HINTS": "*:" + ":".join(f"{name}={value}" for name, value in words.items())}


def linked(extension: str, name: str) -> pathlib.Path:
    """Return a program that is linked to both libraries."""
    folder = os.path.dirname(extension)
    libraries = ("-Wl,--no-as-needed", "-lmpiio_ext_posix", "-lmpiio_ext")
    return mpi_program(name, f"-L{folder}", *libraries, f"-Wl,-rpath,{folder}")


def contents(folder: pathlib.Path) -> dict[str, object]:
    """Return what a folder holds, by name: size and digest of a file, or where a link leads to."""

    def file(path: pathlib.Path) -> tuple[int, str]:
        return len(data := path.read_bytes()), hashlib.sha256(data).hexdigest()

    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else file(path)
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def differences(left: dict[str, dict[str, object]]) -> dict[str, list[object]]:
    """Return what differs between the folders of a run without the hint and of one with it: by name, of both."""
    names = {name for held in left.values() for name in held}
    found = {name: [held.get(name) for held in left.values()] for name in sorted(names)}
    return {name: held for name, held in found.items() if held[0] != held[1]}


FORTIFIED = ("-D_FILE_OFFSET_BITS=64", "-D_FORTIFY_SOURCE=2", "-O2")
NAMED = {
    "plain": ("preloaded", (), {}, 0),
    "fortified, nodes": ("preloaded", FORTIFIED, {}, 1),
    "thread": ("linked", (), {"mpiox_delegate_mode": "thread"}, 0),
    "linked": ("linked", (), {}, 2),
}


@pytest.mark.both_with("linked")
@pytest.mark.slow_with("plain", "thread")
@pytest.mark.parametrize(("way", "flags", "more", "per_node"), NAMED.values(), ids=NAMED)
def test_functions_find_what_is_closed(
    tmp_path: pathlib.Path, extension: str, way: str, flags: tuple[str, ...], more: dict[str, str], per_node: int
) -> None:
    """Each of them, by any rank, on each name of the file, does what it does with a file that is written."""
    program = linked(extension, "posix_names") if way == "linked" else mpi_program("posix_names", *flags)
    said, left = {}, {}
    for close in ("written", "staged"):
        (folder := tmp_path / close).mkdir()
        launch = mpi_run(
            [program, folder],
            RANKS,
            env={**hints(close, **more), "MPIOX_RANKS_PER_NODE": str(per_node)},
            preload=way == "preloaded",
            timeout_s=120,
        )
        lines = sorted(launch.stdout.splitlines())  # launchers mix those of several ranks
        said[close] = [line for line in lines if not line.startswith("staged ")]
        _, staged, _, total = next(line for line in lines if line.startswith("staged ")).split()
        assert int(staged) == (int(total) if close == "staged" else 0), launch.describe()
        assert "mpiio_ext:" not in launch.stderr, launch.describe()
        left[close] = contents(folder)
    assert said["staged"] == said["written"]
    assert differences(left) == {}, launch.describe()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="other processors have other versions")
def test_glob_of_an_old_program(tmp_path: pathlib.Path) -> None:
    """It has no function for gl_lstat, which only the newest glob() calls."""
    (tmp_path / "file").touch()
    source = str(PROGRAMS / "old_glob.c")
    program = cbuild.compile_c([cbuild.compiler(), *cbuild.FLAGS, "-D_GNU_SOURCE", source], "old_glob")
    done = subprocess.run(
        [program, tmp_path / "file"], env=preload_environment(), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "0 1 1\n", done


@pytest.mark.parametrize("preload", [True, *slow(False)], ids=["preloaded", "linked"])
def test_checkpoints_are_rotated(tmp_path: pathlib.Path, extension: str, preload: bool) -> None:
    """chk.new, chk.0, chk.1, chk.2: a loop of rename() and unlink() leaves what it leaves without the hint."""
    program = mpi_program("posix_rotation") if preload else linked(extension, "posix_rotation")
    left = {}
    for close in ("written", "staged"):
        (folder := tmp_path / close).mkdir()
        launch = mpi_run([program, folder, "6"], RANKS, env=hints(close), preload=preload, timeout_s=120)
        assert launch.stderr == "", launch.describe()
        left[close] = contents(folder)
    assert differences(left) == {}, launch.describe()
    assert set(left["staged"]) == {"chk.0", "chk.1", "chk.2"}


PYTHON = """
    import os
    import pathlib
    import sys
    import numpy as np
    from mpi4py import MPI

    comm, folder = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
    seen = []

    def make(name):
        file = MPI.File.Open(comm, str(folder / name), MPI.MODE_CREATE | MPI.MODE_WRONLY)
        file.Write_at_all(comm.rank * 20000, np.full(20000, comm.rank + 1, np.uint8))
        file.Close()
        comm.Barrier()
        return folder / name

    for name, act in (
        ("exists", lambda path: os.path.exists(path)),
        ("size", lambda path: os.path.getsize(path)),
        ("rename", lambda path: os.rename(path, folder / "renamed")),
        ("replace", lambda path: os.replace(path, folder / "renamed")),
        ("unlink", lambda path: os.unlink(path)),
        ("read", lambda path: sum(path.read_bytes())),
        ("append", lambda path: path.open("ab").write(b"more")),
        ("link", lambda path: os.link(path, folder / "linked")),
        ("stat in folder", lambda path: os.stat(path.name, dir_fd=os.open(folder, os.O_RDONLY)).st_size),
        ("scandir", lambda path: None),
    ):
        path = make(name)
        if comm.rank == 1:
            seen.append([name, act(path)])
        comm.Barrier()
    if comm.rank == 1:
        print(seen)
"""


@pytest.mark.both
def test_python_finds_what_is_closed(tmp_path: pathlib.Path) -> None:
    """The functions of os, and files of Python, of a program under the library."""
    said, left = {}, {}
    for close in ("written", "staged"):
        (folder := tmp_path / close).mkdir()
        launch = python_run(["-c", textwrap.dedent(PYTHON), folder], 2, env=hints(close), preload=True, timeout_s=120)
        said[close], left[close] = launch.stdout, contents(folder)
        assert "mpiio_ext:" not in launch.stderr, launch.describe()
    assert said["staged"] == said["written"] != ""
    assert differences(left) == {}, launch.describe()


COMMANDS = """
    import os
    import pathlib
    import shutil
    import subprocess
    import sys
    import time

    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    os.chdir(sys.argv[1])
    commands = {
        "cp": "cp -r cp cp.out",
        "file": "cp file/data file.out",
        "tar": "tar cf tar.out tar",
        "ls": "ls -aR ls > ls.out",
        "find": "find find -type f -size +39k > find.out",
        "rsync": "rsync -a rsync rsync.out",
        "mv": "mv mv mv.out",
        "rm": "rm -r rm",
    }
    calls = {
        "copytree": lambda: shutil.copytree("copytree", "copytree.out"),
        "rmtree": lambda: shutil.rmtree("rmtree"),
        "walk": lambda: pathlib.Path("walk.out").write_text(str(sorted(os.walk("walk")))),
        "fwalk": lambda: pathlib.Path("fwalk.out").write_text(str(sorted(found[:3] for found in os.fwalk("fwalk")))),
    }
    commands = {name: line for name, line in commands.items() if shutil.which(line.split()[0])}
    names = [*commands, *calls, "fork"]
    for name in names:
        if comm.rank == 0:
            os.makedirs(f"{name}/sub")
        comm.Barrier()
        for path in (f"{name}/data", f"{name}/sub/more"):
            file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)
            file.Write_at_all(comm.rank * 20000, np.full(20000, comm.rank + 1, np.uint8))
            file.Close()
    comm.Barrier()
    if comm.rank == 1:  # a rank without any of the files in its own hands
        environ = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        seen = subprocess.run("ls -a */.*.staging */*/.*.staging | wc -l", shell=True, env=environ, stdout=-1)
        print("staged", int(seen.stdout), "of", 2 * len(names))
        running = {name: subprocess.Popen(line, shell=True) for name, line in commands.items() if name != "mv"}
        if (child := os.fork()) == 0:
            pathlib.Path("fork.out").write_text(str(sorted(os.walk("fork"))))
            os._exit(0)
        until = time.monotonic() + 2  # a command that does not wait ends before it finds all there
        while time.monotonic() < until and not all(one.poll() is not None for one in running.values()):
            time.sleep(0.01)
        for name, call in calls.items():
            call()
        for name in [*running, "fork"]:  # a rank that lists a folder has its files written
            for _ in os.walk(name):
                pass
        if "mv" in commands:
            running["mv"] = subprocess.Popen(commands["mv"], shell=True)
        print("fork", os.waitpid(child, 0)[1], *(f"{name} {one.wait()}" for name, one in running.items()))
    comm.Barrier()
"""


def test_programs_that_a_rank_starts_find_what_is_closed(tmp_path: pathlib.Path) -> None:
    """They, and the rank itself, list, copy, move and remove folders of files that are still to be written."""
    said, left = {}, {}
    for close in ("written", "staged"):
        (folder := tmp_path / close).mkdir()
        launch = python_run(
            ["-c", textwrap.dedent(COMMANDS), folder],
            2,
            env=hints(close, mpiox_drain_rate=1),
            preload=True,
            timeout_s=120,
        )
        staged, said[close] = launch.stdout.splitlines()
        _, seen, _, total = staged.split()
        assert int(seen) == (int(total) if close == "staged" else 0), launch.describe()
        assert "mpiio_ext:" not in launch.stderr, launch.describe()
        with tarfile.open(folder / "tar.out") as archive:
            archive.extractall(folder / "tar.files", filter="data")
        (folder / "tar.out").unlink()
        left[close] = contents(folder)
    assert said["staged"] == said["written"]
    assert set(said["staged"].split()[1::2]) == {"0"}, said
    assert differences(left) == {}, launch.describe()


WRITE = """
    from mpi4py import MPI

    info = MPI.Info.Create()
    for name, value in ([] if len(sys.argv) < 3 else [word.split("=") for word in sys.argv[2].split(":")]):
        info.Set(name, value)
    for name in ("one", "two"):
        for comm in (MPI.COMM_WORLD, MPI.COMM_SELF):
            path = f"{sys.argv[1]}/{name}{MPI.COMM_WORLD.rank if comm is MPI.COMM_SELF else ''}"
            MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY, info).Close()
"""


@pytest.mark.both
@pytest.mark.parametrize("way", ["hints", "info", "import"])
def test_a_line_says_where_nobody_waits(tmp_path: pathlib.Path, way: str) -> None:
    """Once, of the first file: the library is not in front of the C library, or the hint comes by MPI_Info alone."""
    code = f"import sys\n{'import mpiio_ext' if way == 'import' else ''}\n{textwrap.dedent(WRITE)}"
    env = {} if way == "info" else hints()
    words = [hints()["MPIOX_HINTS"].removeprefix("*:")] if way == "info" else []
    launch = python_run(["-c", code, tmp_path, *words], 2, env=env, preload=way != "import", timeout_s=120)
    said = [line for line in launch.stderr.splitlines() if line.startswith("mpiio_ext: ")]
    begin = f"mpiio_ext: {tmp_path}/one: open(), stat(), rename() and other calls past MPI do not wait"
    assert [line.startswith(begin) for line in said] == [True] * (way != "hints"), launch.describe()


SERIAL = {
    "h5py": """
        import h5py
        def make(path):
            with h5py.File(path, "w", driver="mpio", comm=comm) as file:
                file.create_dataset("v", (2 * N,), "f8")[mine] = np.arange(2 * N)[mine]
        def use(path):
            with h5py.File(path, "a") as file:
                file["more"] = file["v"][...] * 2
            with h5py.File(path, "r") as file:
                return float(file["more"][...].sum())
    """,
    "netCDF4": """
        import netCDF4
        how = {"format": "NETCDF3_64BIT_DATA", "parallel": True, "comm": comm, "info": MPI.Info()}
        def make(path):
            with netCDF4.Dataset(path, "w", **how) as file:
                file.createDimension("x", 2 * N)
                file.createVariable("v", "f8", ("x",))[mine] = np.arange(2 * N)[mine]
        def use(path):
            with netCDF4.Dataset(path, "a") as file:
                file.createVariable("more", "f8", ("x",))[:] = file["v"][...] * 2
            with netCDF4.Dataset(path, "r") as file:
                return float(file["more"][...].sum())
    """,
    "netCDF4 again": """
        import netCDF4
        how = {"format": "NETCDF3_64BIT_DATA", "parallel": True, "comm": comm, "info": MPI.Info()}
        def make(path):
            with netCDF4.Dataset(path, "w", **how) as file:
                file.createDimension("x", 2 * N)
                file.createVariable("v", "f8", ("x",))[mine] = np.arange(2 * N)[mine]
            with netCDF4.Dataset(path, "a", **how) as file:
                file.createVariable("more", "f8", ("x",))[mine] = 2.0 * np.arange(2 * N)[mine]
        def use(path):
            with netCDF4.Dataset(path, "r") as file:
                return float(file["more"][...].sum())
    """,
}
FRAME = """
import sys
import numpy as np
from mpi4py import MPI
comm, N = MPI.COMM_WORLD, 5000
mine = slice(comm.rank * N, (comm.rank + 1) * N)
{}
make(sys.argv[1])
comm.Barrier()
if comm.rank == 0:
    print(use(sys.argv[1]))
"""
PROBES = {
    "h5py": "import h5py; assert h5py.get_config().mpi",
    "netCDF4": "import netCDF4 as n; assert n.__has_parallel4_support__ and n.__has_pnetcdf_support__",
}


@pytest.mark.both_with("h5py")
@pytest.mark.slow_with("netCDF4 again")
@pytest.mark.parametrize("name", SERIAL)
def test_serial_libraries_find_what_is_closed(tmp_path: pathlib.Path, name: str) -> None:
    """A file of parallel HDF5 or PnetCDF is changed by one rank at once, as post-processing does."""
    if python_alone(PROBES[name.split()[0]]).returncode:
        pytest.skip(f"no parallel {name} here")
    code = FRAME.format(textwrap.dedent(SERIAL[name]))
    for close in ("written", "staged"):
        launch = python_run(["-c", code, tmp_path / close], 2, env=hints(close), preload=True, timeout_s=120)
        assert launch.stdout.split() == [str(2.0 * sum(range(10000)))], launch.describe()
    assert (tmp_path / "staged").read_bytes() == (tmp_path / "written").read_bytes() or name == "h5py"
