"""Interposition: unchanged C, Fortran and Python programs, by LD_PRELOAD, by link order and by import."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from mpiio_ext.common.iocalls import CALLS
from support import cbuild, fortran_calls
from support.launch import PROGRAMS, base_environment, json_lines, launcher, mpi_run, python_run, run_bounded
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.both]


def _compile(wrapper: str, words: list[str], target: pathlib.Path) -> pathlib.Path:
    compiler = pathlib.Path(sys.prefix) / "bin" / wrapper
    done = subprocess.run(
        [str(compiler), *words, "-o", str(target)], capture_output=True, text=True, timeout=120, env=base_environment()
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def programs(family: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """Return the C programs, compiled by the mpicc of this environment."""
    folder = tmp_path_factory.mktemp("programs")
    return {
        name: _compile("mpicc", ["-Wall", "-Wextra", "-Werror", str(PROGRAMS / f"{name}.c")], folder / name)
        for name in ("interleaved",)
    }


def _all_ok(text: str, at_least: int) -> None:
    lines = [line for line in text.splitlines() if line.startswith(("ok ", "FAILED "))]
    assert len(lines) >= at_least, text
    assert not [line for line in lines if line.startswith("FAILED")], text


def _statistics(path: pathlib.Path) -> dict[str, dict[str, object]]:
    rows = json_lines(path)
    return {row["kind"]: row for row in rows}


# ---- C --------------------------------------------------------------------------------------------------------------


def test_c_program_native(programs: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    # not on one rank: there MPICH moves the pointer to the end of the file rather than by what was asked for
    launch = mpi_run([programs["interleaved"], tmp_path / "data"], 3, timeout_s=120)
    _all_ok(launch.stdout, 16)


@pytest.mark.parametrize("ranks", [*slow(1), 3])
def test_c_program_preloaded(
    programs: dict[str, pathlib.Path], extension: str, family: str, tmp_path: pathlib.Path, ranks: int
) -> None:
    env = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    launch = mpi_run([programs["interleaved"], tmp_path / "data"], ranks, preload=True, env=env, timeout_s=120)
    _all_ok(launch.stdout, 16)
    rows = _statistics(tmp_path / "stats")
    large = 1 if family == "mpich" else 0  # the program's extra calls where the MPI has large counts
    # counted by hand in interleaved.c: 2 + 2 + 2 writes, 2 + 1 + 2 + 2 reads; in atomic mode one each; an ordered read
    assert rows["file"]["collective_writes"] == 7 + large
    assert rows["file"]["collective_reads"] == 9 + large
    # read, iread_at, and those in atomic mode, which lock their ranges: on every rank
    assert rows["file"]["independent_reads"] >= 3 * ranks
    assert rows["file"]["nonblocking_calls"] == ranks
    assert rows["file"]["locks"] == 2 * ranks
    assert rows["file"]["native_calls"] == 0
    assert rows["file"]["views_set"] == 3
    assert rows["file"]["ranks"] == rows["run"]["ranks"] == ranks
    assert rows["run"]["bytes_written"] == rows["file"]["bytes_written"] == _bytes_written(ranks, large)


def _bytes_written(ranks: int, large: int) -> int:
    odd = ranks // 2  # "some ranks with nothing": odd ranks write
    return 4 * 1000 * (ranks * (5 + large) + odd)


def test_c_program_linked(extension: str, family: str, tmp_path: pathlib.Path) -> None:
    folder = os.path.dirname(extension)
    words = [
        str(PROGRAMS / "interleaved.c"),
        f"-L{folder}",
        "-Wl,--no-as-needed",
        "-lmpiio_ext",
        f"-Wl,-rpath,{folder}",
    ]
    program = _compile("mpicc", words, tmp_path / "linked")
    env = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    launch = mpi_run([program, tmp_path / "data"], 2, env=env, timeout_s=120)
    _all_ok(launch.stdout, 16)
    assert _statistics(tmp_path / "stats")["file"]["collective_writes"] >= 6


def test_switched_off(programs: dict[str, pathlib.Path], extension: str, tmp_path: pathlib.Path) -> None:
    env = {"MPIOX_HINTS": "mpiox_enable=false:mpiox_stats=true", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    launch = mpi_run([programs["interleaved"], tmp_path / "data"], 2, preload=True, env=env, timeout_s=120)
    _all_ok(launch.stdout, 16)
    row = _statistics(tmp_path / "stats")["file"]
    assert row["collective_writes"] == row["collective_reads"] == 0
    assert row["native_calls"] > 0
    assert row["reason"] == "mpiox_enable=false"


def test_collective_buffering_disabled_goes_straight_to_the_file(
    programs: dict[str, pathlib.Path], extension: str, tmp_path: pathlib.Path
) -> None:
    env = {"MPIOX_HINTS": "romio_cb_write=disable:mpiox_stats=1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    launch = mpi_run([programs["interleaved"], tmp_path / "data"], 2, preload=True, env=env, timeout_s=120)
    _all_ok(launch.stdout, 16)
    row = _statistics(tmp_path / "stats")["file"]
    assert row["native_calls"] == 0
    # the writes, what is read in atomic mode, and reads of one piece a rank
    assert row["direct_calls"] == row["collective_writes"] + 4 >= 7
    assert row["collective_reads"] >= 7


# ---- Fortran --------------------------------------------------------------------------------------------------------


@pytest.mark.slow_with("mpif.h-linked", "mpi-*")
@pytest.mark.parametrize("linked", [False, True], ids=["preloaded", "linked"])
@pytest.mark.parametrize("binding", [1, 2, 3], ids=["mpif.h", "mpi", "mpi_f08"])
def test_fortran_program(extension: str, family: str, tmp_path: pathlib.Path, binding: int, linked: bool) -> None:
    folder = os.path.dirname(extension)
    words = [f"-L{folder}", "-lmpiio_ext", f"-Wl,-rpath,{folder}"] if linked else []
    program = cbuild.fortran_program(binding, *words)
    if not linked:
        _all_ok(mpi_run([program, tmp_path / "native"], 2, timeout_s=120).stdout, 17)
    env = {"EXPECT_MPIIO_EXT": "1", "MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    launch = mpi_run([program, tmp_path / "data"], 3, preload=not linked, env=env, timeout_s=120)
    _all_ok(launch.stdout, 18)
    rows = _statistics(tmp_path / "stats")
    assert rows["file"]["collective_writes"] == 2  # write_at_all, write_all from MPI_BOTTOM
    assert rows["file"]["collective_reads"] == 2 + (binding == 3)
    assert rows["file"]["partition"] == "static_cyclic"
    assert "run" in rows  # MPI_Finalize of this binding came through us


#: Every line of calls that fail: no handle, no byte and no flag of the program is as it was before the call.
FAILED = re.compile(
    r"\w+ (refused|failing) class [1-9]\d*"
    r"|   (null T|flag T|number 1|index 2|indices 2|error -77|status count 0 pairs 0 elements 0|buffer( \d+){16})"
)
#: Two files for one name: with its leading blanks, and without.
TWINS = ("  leading", "  both sides", "       7.chk")


@pytest.mark.parametrize("binding", [1, *slow(2), 3], ids=["mpif.h", "mpi", "mpi_f08"])
def test_fortran_calls(extension: str, family: str, tmp_path: pathlib.Path, binding: int) -> None:
    """Every call with all that a binding converts: results, names and bytes of files are those of the MPI library."""
    source = tmp_path / "fortran_calls.inc"
    source.write_text(fortran_calls.calls(binding), encoding="ascii")
    program = cbuild.fortran_program(binding, f"-I{tmp_path}", "-ffree-line-length-none", "-w", name="fortran_calls")
    fault = "op=read,path=*/failing,errno=EIO;op=close,path=*/failing,errno=ENOSPC"
    env = {"EXPECT_MPIIO_EXT": "1", "MPIOX_FAULT": fault}
    outputs, files = [], []
    for ours in (False, True):
        folder = tmp_path / f"{ours}"
        folder.mkdir()
        for name in ("plain", "trailing", *TWINS, *map(str.lstrip, TWINS)):
            (folder / name).write_text(name, encoding="ascii")
        launch = mpi_run([program], 1, cwd=folder, preload=ours, env=env if ours else {}, timeout_s=30)
        outputs.append(launch.stdout.splitlines())
        files.append({path.name: path.read_bytes() for path in folder.iterdir() if path.name != "failing"})
    native, seen = outputs
    assert len(native) > 1000
    assert "\n".join(seen[: len(native)]) == "\n".join(native)
    assert files[0] == files[1]
    assert len(seen) > len(native) + 50
    if family == "openmpi":  # MPICH's own binding leaves flags and indices of calls that fail
        assert [line for line in seen[len(native) :] if not FAILED.fullmatch(line)] == []


# ---- symbols --------------------------------------------------------------------------------------------------------


def _exports(library: str) -> set[str]:
    done = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, timeout=60, check=True
    )
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}


def _needed(library: str) -> dict[str, str]:
    done = subprocess.run(["ldd", library], capture_output=True, text=True, timeout=60, check=True)
    return dict(re.findall(r"(\S+) => (/\S+)", done.stdout))


def test_every_function_of_the_mpi_library_is_wrapped(extension: str, family: str) -> None:
    mpi = next(path for name, path in _needed(extension).items() if name.startswith("libmpi.so"))
    theirs = {
        name for name in _exports(mpi) if re.fullmatch(r"MPI_File_\w+|MPI_Register_datarep\w*|MPI_Finalize", name)
    }
    assert len(theirs) > 60
    if family == "mpich":
        assert len([name for name in theirs if name.startswith("MPI_File_")]) >= 92
    assert theirs <= _exports(extension)


def test_every_fortran_name_of_open_mpi_is_wrapped(extension: str, family: str) -> None:
    if family != "openmpi":
        pytest.skip("MPICH's Fortran library calls the C functions")
    mpi = next(path for name, path in _needed(extension).items() if name.startswith("libmpi.so"))
    folder = pathlib.Path(mpi).parent
    pattern = re.compile(r"(o?mpi_file_\w+|mpi_finalize(_f|__?)?|ompi_finalize_f|MPI_F(ile|ILE)_\w+)")
    theirs = {name for name in _exports(str(folder / "libmpi_mpifh.so.40")) if pattern.fullmatch(name)}
    assert len(theirs) > 300
    stays = re.compile(r"create_errhandler|_(c2f|f2c)", re.IGNORECASE)  # takes a Fortran callback
    assert {name for name in theirs if not stays.search(name)} <= _exports(extension)
    # what the mpi_f08 module calls, and the two of its own functions that reach the C library by a PMPI name
    f08 = folder / "libmpi_usempif08.so.40"
    done = subprocess.run(["nm", "-D", "--undefined-only", str(f08)], capture_output=True, text=True, timeout=60)
    wanted = {line.split()[-1] for line in done.stdout.splitlines()}
    called = {name for name in wanted if re.fullmatch(r"ompi_file_\w+_f|ompi_finalize_f", name)}
    assert len(called) > 50
    assert {name for name in called if not stays.search(name)} <= _exports(extension)
    table = {call.name.lower() for call in CALLS if call.layer in ("mpi", "mpiio") and "nofortran" not in call.words}
    bypass = {name for name in wanted if name.startswith("pmpi_") and name[1:-1] in table}
    assert "pmpi_test_" in bypass
    assert {f"{name[1:-1]}_f08_" for name in bypass} <= _exports(extension)


# ---- hints in force --------------------------------------------------------------------------------------------------

INFO = """
    import sys
    import mpiio_ext
    import mpiio_ext.hints
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    info = mpiio_ext.hints.Hints(partition="static_cyclic", cb_nodes=2).info()
    info.Set("mpiox_partion", "even")
    info.Set("mpiox_buffers", "many")
    file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR, info)
    used = file.Get_info()
    if comm.rank == 0:
        for key in sorted(used.keys()):
            print(key, used.Get(key), sep="=")
        for item in mpiio_ext.hints.of(file):
            print("source", item.spec.name, item.source, sep="|")
    file.Close()
"""


def test_hints_in_force(extension: str, script, tmp_path: pathlib.Path) -> None:
    site, mine = tmp_path / "site.conf", tmp_path / "hints"
    site.write_text("cb_nodes = 7\nstriping_factor = 5\n", encoding="utf-8")
    mine.write_text("[*.dat]\nmpiox_partition = even\n[*.h5]\nmpiox_partition = transpose\n", encoding="utf-8")
    env = {
        "MPIOX_SITE_FILE": str(site),
        "MPIOX_HINTS_FILE": str(mine),
        "MPIOX_HINTS": "*.dat:cb_buffer_size=2M,*.h5:cb_buffer_size=3M",
    }
    launch = python_run([script(INFO), tmp_path / "a.dat"], 2, env=env, timeout_s=60)
    lines = launch.stdout.splitlines()
    assert {"mpiox_partition=even", "cb_nodes=2", "striping_factor=5", "cb_buffer_size=2097152"} <= set(lines)
    assert "source|mpiox_partition|MPIOX_HINTS_FILE" in lines
    assert "source|cb_nodes|MPI_Info" in lines
    assert "source|striping_factor|site file" in lines
    assert "source|cb_buffer_size|MPIOX_HINTS" in lines
    assert launch.stderr.count("mpiox_partion does not exist; did you mean mpiox_partition?") == 1
    assert launch.stderr.count('mpiox_buffers has the bad value "many"; allowed: 2 .. 64') == 1


# ---- Python ---------------------------------------------------------------------------------------------------------

IMPORTED = """
    import sys
    import mpiio_ext
    import mpiio_ext.stats
    from mpi4py import MPI
    import numpy as np
    comm = MPI.COMM_WORLD
    assert mpiio_ext.interposed()
    file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
    data = np.full(1000, comm.rank, dtype="i4")
    file.Write_at_all(comm.rank * data.nbytes, data)
    back = np.empty(1000 * comm.size, dtype="i4")
    status = MPI.Status()
    file.Read_at_all(0, back, status)
    assert status.Get_count(MPI.INT) == back.size
    assert (back == np.repeat(np.arange(comm.size), 1000)).all()
    stats = mpiio_ext.stats.of(file)
    assert stats.collective_writes == stats.collective_reads == 1, stats
    assert stats.bytes_written == data.nbytes and stats.bytes_read == back.nbytes, stats
    assert stats.path == sys.argv[1]
    file.Read_at(0, back)  # direct collectives count as independent accesses of each rank, too
    assert mpiio_ext.stats.of(file).independent_bytes_read == stats.independent_bytes_read + back.nbytes
    file.Close()
    total = mpiio_ext.stats.total()
    assert total.bytes_written == data.nbytes and total.native_calls == 0, total
    assert total.independent_reads == stats.independent_reads + 1, total
    assert total.calls["MPI_File_open"] == 1 and total.calls["MPI_File_write_at_all"] == 1, total.calls
    try:
        mpiio_ext.stats.of(file)
    except ValueError:
        print(f"ok{comm.rank}\\n", end="")
"""


def test_mpi4py_after_import(extension: str, script, tmp_path: pathlib.Path) -> None:
    launch = python_run([script(IMPORTED), tmp_path / "data"], 3, timeout_s=60)
    assert sorted(launch.stdout.split()) == ["ok0", "ok1", "ok2"]


def test_threads(extension: str, script, tmp_path: pathlib.Path) -> None:
    """Threads that open, write and close files of their own at once (MPI_THREAD_MULTIPLE)."""
    program = script("""
        import sys, threading
        import mpiio_ext
        from mpi4py import MPI
        import numpy as np
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            print("no threads")
            raise SystemExit
        errors = []
        def work(number, comm):
            try:
                for turn in range(10):
                    name = f"{sys.argv[1]}.{number}.{MPI.COMM_WORLD.rank}"
                    file = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_RDWR)
                    data = np.full(500, number * 100 + turn, dtype="i4")
                    file.Write_at_all(0, data)
                    back = np.empty_like(data)
                    file.Read_at_all(0, back)
                    assert (back == data).all()
                    file.Close()
            except Exception as error:
                errors.append(error)
        comms = [MPI.COMM_SELF.Dup() for _ in range(4)]
        threads = [threading.Thread(target=work, args=item) for item in enumerate(comms)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not errors, errors
        print("ok")
    """)
    launch = python_run([program, tmp_path / "data"], 2, timeout_s=120)
    assert set(launch.stdout.split()) in ({"ok"}, {"no", "threads"})


# ---- mpiio-ext run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outside", [True, False], ids=["run_mpiexec", "mpiexec_run"])
def test_run_command(programs: dict[str, pathlib.Path], extension: str, tmp_path: pathlib.Path, outside: bool) -> None:
    run = [
        sys.executable,
        "-m",
        "mpiio_ext",
        "run",
        "-H",
        "*.dat:mpiox_partition=transpose",
        f"--stats={tmp_path / 'stats'}",
    ]
    launch = [str(launcher()), "-n", "2"]
    program = [str(programs["interleaved"]), str(tmp_path / "x.dat")]
    command = [*run, "--", *launch, *program] if outside else [*launch, *run, "--", *program]
    launch = run_bounded(command, env=base_environment(), timeout_s=120)
    _all_ok(launch.stdout, 16)
    assert _statistics(tmp_path / "stats")["file"]["partition"] == "transpose"


def test_run_command_with_two_programs(
    programs: dict[str, pathlib.Path], extension: str, tmp_path: pathlib.Path
) -> None:
    """`mpiexec -n 1 a : -n 1 b`: the variables reach both, or the first collective would hang."""
    program = [str(programs["interleaved"]), str(tmp_path / "x.dat")]
    command = [sys.executable, "-m", "mpiio_ext", "run", f"--stats={tmp_path / 'stats'}", "--", str(launcher())]
    command += ["-n", "1", *program, ":", "-n", "1", *program]
    launch = run_bounded(command, env=base_environment(), timeout_s=120)
    _all_ok(launch.stdout, 16)
    assert _statistics(tmp_path / "stats")["file"]["ranks"] == 2


def test_launcher_is_not_preloaded(extension: str, tmp_path: pathlib.Path) -> None:
    """The ranks have the library mapped, their parent process does not."""
    program = tmp_path / "maps.sh"
    program.write_text(
        "#!/bin/sh\ngrep -c libmpiio_ext /proc/self/maps\ngrep -c libmpiio_ext /proc/$PPID/maps\n", encoding="utf-8"
    )
    program.chmod(0o755)
    command = [sys.executable, "-m", "mpiio_ext", "run", "--", str(launcher()), "-n", "1", str(program)]
    launch = run_bounded(command, env=base_environment(), timeout_s=60, check=False)
    mapped, parent = launch.stdout.split()
    assert int(mapped) > 0
    assert int(parent) == 0


@pytest.mark.parametrize("outside", [False, True])
def test_run_address_sanitizer(extension: str, family: str, tmp_path: pathlib.Path, outside: bool) -> None:
    """Its run-time library, which refuses to be behind another one, is put in front by itself."""
    app = _compile("mpicc", ["-fsanitize=address", str(PROGRAMS / "writes.c")], tmp_path / "app")
    runs = [sys.executable, "-m", "mpiio_ext", "run", "-H", "cb_nodes=1", "--"]
    mpiexec = [str(launcher()), "-n", "2"]
    env = base_environment() | {"ASAN_OPTIONS": "detect_leaks=0", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    words = [*runs, *mpiexec] if outside else [*mpiexec, *runs]
    run_bounded([*words, str(app), str(tmp_path / "data")], env=env, timeout_s=60)
    assert _statistics(tmp_path / "stats")["run"]["ranks"] == 2


LEFT_OPEN = """
    import sys
    import numpy as np
    import mpiio_ext
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    info = MPI.Info.Create({"cb_nodes": "2"})
    file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE, info)
    filetype = MPI.BYTE.Create_vector(1000, 1, comm.size).Create_resized(0, 1000 * comm.size).Commit()
    file.Set_view(comm.rank, MPI.BYTE, filetype)
    file.Write_all(np.full(1000, comm.rank + 1, "u1"))
    assert file.Get_info().Get("cb_nodes") != "0"
    file.Close()
    assert open(sys.argv[1], "rb").read() == bytes(range(1, comm.size + 1)) * 1000
"""


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_zero_leaves_the_choice_open(
    extension: str, script: Callable[[str], pathlib.Path], tmp_path: pathlib.Path, enabled: str
) -> None:
    """`cb_nodes=0` takes the program's number away; it never reaches an MPI library that would divide by it."""
    env = {"MPIOX_HINTS": f"*:cb_nodes=0:mpiox_enable={enabled}"}
    mpi_run([sys.executable, script(LEFT_OPEN), tmp_path / "data"], 2, env=env, timeout_s=60)


assert shutil.which("nm"), "binutils are needed to check the exported symbols"
