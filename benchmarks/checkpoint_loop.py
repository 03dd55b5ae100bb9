"""Compute, checkpoint, compute: how long the program waits, natively, with a thread of its own, and with staged closes.

Usage: ``python benchmarks/checkpoint_loop.py [--path /dev/shm] [--ranks 2] [--seconds 2] [--megabytes 128]``

Every rank computes, all write a checkpoint to a new file, and so on. Launches itself on the MPI of the Python that runs
this; ways take turns within each round, the order rotated:

compute     no checkpoint at all: what the rest is held against
native      the MPI library alone
double      the same, by hand: a rank copies its part, and a thread with a communicator of its own writes the copy
burst       PnetCDF's burst buffer in a folder beside the slowed storage (``--through pnetcdf``, where the library was
            built with it; ``MPIIO_EXT_PNETCDF`` names one that was)
staged      ``mpiox_close=staged`` with ``--delegates`` delegates, whose caches have room for 1.5 checkpoints

What is written: ``segments``, eight arrays by a collective call each; ``blocks``, 32 KiB each by independent calls,
dealt to the ranks in turn for each of 24 unknowns, as FLASH-IO does; ``hdf5``, eight datasets by h5py, collectively;
``pnetcdf``, eight variables, collectively. ``flashio``, ``s3dio`` (PnetCDF) and ``vpicio`` (HDF5, one file that stays
open) are the C programs of ``tests/programs/codes``, which sleep between checkpoints and verify what they read; what
they compute natively is the computing alone, and no thread writes a copy.

A rank computes until it has had so much processor time (``--compute cpu``), or sleeps as one whose accelerator computes
(``sleep``). Waiting is the time inside open, writes and close, the longest of the ranks, and behind the last checkpoint
a rank computes once more. The loop ends when the last rank has computed; the job, when mpirun returns and everything is
in the files, which are then compared byte by byte. Memory is the largest resident size of a delegate, and its cap.

``--latency-us`` and ``--mbps`` slow the requests to the files, for all ways alike (``slow_storage.c``): the rate is
that of all processes together.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support import codes
from support.cbuild import slow_storage

if TYPE_CHECKING:
    from mpi4py import MPI

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

WAYS = ("compute", "native", "double", "staged")
BURST = "nc_burst_buf=enable;nc_burst_buf_dirname="
ARRAYS, BLOCK, UNKNOWNS = 8, 32 << 10, 24
PROGRAMS = ("flashio", "s3dio", "vpicio")
LOOP = re.compile(r"^\w+ loop ([0-9.]+) s, waits ([0-9.]+) s$", re.MULTILINE)


def content(number: int, rank: int, size: int) -> Bytes:
    """Return what a rank has for a checkpoint."""
    return np.resize(np.random.default_rng([number, rank]).integers(0, 256, 1 << 20, np.uint8), size)


def segments(comm: MPI.Intracomm, path: str, data: Bytes) -> None:
    """Write eight arrays, of each the rank's part by a collective call."""
    from mpi4py import MPI

    part = data.size // ARRAYS
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for array in range(ARRAYS):
        file.Write_at_all((array * comm.size + comm.rank) * part, data[array * part :][:part])
    file.Close()


def blocks(comm: MPI.Intracomm, path: str, data: Bytes) -> None:
    """Write the rank's blocks of each unknown independently, every one by a call."""
    from mpi4py import MPI

    count = data.size // (BLOCK * UNKNOWNS)
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for number in range(count * UNKNOWNS):
        unknown, block = divmod(number, count)
        place = (unknown * count + block) * comm.size + comm.rank
        file.Write_at(place * BLOCK, data[number * BLOCK :][:BLOCK])
    file.Close()


def hdf5(comm: MPI.Intracomm, path: str, data: Bytes) -> None:
    """Write eight datasets, of each the rank's part, collectively."""
    import h5py

    part = data.size // ARRAYS
    with h5py.File(path, "w", driver="mpio", comm=comm) as file:
        for array in range(ARRAYS):
            made = file.create_dataset(f"array{array}", (comm.size * part,), np.uint8)
            with made.collective:
                made[comm.rank * part : (comm.rank + 1) * part] = data[array * part :][:part]


def pnetcdf(comm: MPI.Intracomm, path: str, data: Bytes) -> None:
    """Write eight variables, of each the rank's part, collectively."""
    from mpiio_ext.bench import pnetcdf as library

    part = data.size // ARRAYS
    with library.File.create(path, comm) as file:
        length = file.def_dim("x", comm.size * part)
        variables = [file.def_var(f"array{array}", np.uint8, [length]) for array in range(ARRAYS)]
        file.enddef()
        for array, variable in enumerate(variables):
            file.put_vara_all(variable, [comm.rank * part], [part], data[array * part :][:part])


WRITERS = {"segments": segments, "blocks": blocks, "hdf5": hdf5, "pnetcdf": pnetcdf}


def ways(options: argparse.Namespace) -> tuple[str, ...]:
    """Return those that can be had."""
    if options.through in PROGRAMS:
        return ("native", "staged")
    if options.through != "pnetcdf":
        return WAYS
    from mpiio_ext.bench import pnetcdf as library

    if BURST.split("=")[0].encode() in library.library_path().read_bytes():
        return (*WAYS, "burst")
    print(f"{library.library_path()} has no burst buffer", file=sys.stderr)
    return WAYS


def found(through: str, path: Path, ranks: int, size: int) -> list[Bytes]:
    """Return what a file holds, by rank."""
    if through == "hdf5":
        import h5py

        with h5py.File(path) as file:
            arrays = np.stack([file[f"array{array}"][...].reshape(ranks, -1) for array in range(ARRAYS)])
    else:
        whole = np.fromfile(path, np.uint8)[-ranks * size :]  # behind a header
        if through in ("segments", "pnetcdf"):
            arrays = whole.reshape(ARRAYS, ranks, -1)
        else:
            arrays = whole.reshape(UNKNOWNS * (size // (BLOCK * UNKNOWNS)), ranks, BLOCK)
    return [arrays[:, rank].ravel() for rank in range(ranks)]


def program(options: argparse.Namespace, folder: Path) -> list[str]:
    """Return the command of an unchanged code whose checkpoints, or steps, are of about so many bytes."""
    size = options.megabytes << 20
    arguments = {
        "flashio": (16, max(1, size // (options.ranks * UNKNOWNS * BLOCK)), options.times),  # blocks of 16^3 doubles
        "s3dio": (round((size / 128) ** (1 / 3)), options.times),  # 16 doubles a point
        "vpicio": (size // (options.ranks * 32), options.times),  # 8 properties of 4 bytes
    }[options.through]
    return [*codes.CODES[options.through].program(), str(folder / "checkpoint"), *map(str, arguments)]


def result(options: argparse.Namespace, way: str, done: subprocess.CompletedProcess[str]) -> dict[str, float] | None:
    """Return what a run says of itself, or nothing where it failed."""
    if done.returncode != 0:
        return None
    if options.through in PROGRAMS:
        said = LOOP.search(done.stdout)
        if said is None or f"{options.through} verified" not in done.stdout:
            return None
        loop, wait = map(float, said.groups())
        return {"loop": loop, "wait": wait} | ({"alone": loop - wait} if way == "native" else {})
    row = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    return json.loads(row[7:]) if row is not None else None


class Thread:
    """Double buffering as a program does it by hand: the copy is written while the rank goes on."""

    def __init__(self, comm: MPI.Intracomm, through: str) -> None:
        self._comm, self._write = comm.Dup(), WRITERS[through]
        self._copy: Bytes | None = None
        self._thread: threading.Thread | None = None

    def __call__(self, comm: MPI.Intracomm, path: str, data: Bytes) -> None:
        """Wait for the checkpoint before, copy, and begin."""
        del comm
        self.wait()
        if self._copy is None:
            self._copy = np.empty_like(data)
        self._copy[:] = data
        self._thread = threading.Thread(target=self._write, args=(self._comm, path, self._copy))
        self._thread.start()

    def wait(self) -> None:
        """Wait for the last one."""
        if self._thread is not None:
            self._thread.join()


def compute(seconds: float, how: str) -> None:
    """Use so much processor time, or none."""
    if how == "sleep":
        time.sleep(seconds)
        return
    until, matrix = time.thread_time() + seconds, np.full((64, 64), 1e-3)
    while time.thread_time() < until:
        matrix = matrix @ matrix + 1e-3


def work(path: str, way: str, options: argparse.Namespace) -> None:
    """Run as a rank."""
    if options.through == "pnetcdf":
        import mpiio_ext  # before MPI  # noqa: F401
    from mpi4py import MPI

    comm, waited = MPI.COMM_WORLD, []
    size = (options.megabytes << 20) // comm.size
    size -= size % (BLOCK * UNKNOWNS * ARRAYS)
    data = [content(number, comm.rank, size) for number in range(options.times)]
    write = Thread(comm, options.through) if way == "double" else WRITERS[options.through]
    comm.Barrier()
    begun = MPI.Wtime()
    for number in range(options.times):
        compute(options.seconds, options.compute)
        before = MPI.Wtime()
        if way != "compute":
            write(comm, f"{path}/checkpoint{number}", data[number])
        waited.append(MPI.Wtime() - before)
    compute(options.seconds, options.compute)
    last = MPI.Wtime()
    if isinstance(write, Thread):
        write.wait()
    waited.append(MPI.Wtime() - last)
    comm.Barrier()
    loop, each = MPI.Wtime() - begun, np.max(comm.allgather(waited), axis=0)
    if comm.rank == 0:
        print("RESULT " + json.dumps({"loop": loop, "wait": each.sum(), "each": list(each), "size": size}), flush=True)


class Looking(threading.Thread):
    """The largest resident memory of each delegate that runs below a folder."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most: dict[int, int] = {}
        self.caps: dict[int, int] = {}
        self._ended = threading.Event()

    def run(self) -> None:
        """Look ten times a second."""
        from mpiio_ext import delegates

        while not self._ended.wait(0.1):
            for item in delegates.status():
                try:
                    lines = Path(f"/proc/{item.pid}/status").read_text().splitlines()
                except OSError:
                    continue
                peak = next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)
                self.most[item.pid] = max(peak, self.most.get(item.pid, 0))
                self.caps[item.pid] = item.cap_bytes

    def end(self) -> None:
        """Stop looking."""
        self._ended.set()
        self.join()


def compare(options: argparse.Namespace, folder: Path, size: int) -> None:
    """Every checkpoint is there by its name, as it was written."""
    for number in range(options.times):
        for rank, part in enumerate(found(options.through, folder / f"checkpoint{number}", options.ranks, size)):
            if not np.array_equal(part, content(number, rank, size)):
                sys.exit(f"checkpoint {number}: the part of rank {rank} is wrong")


def launch(options: argparse.Namespace, way: str, slow: Path) -> dict[str, float]:
    """Run one way once."""
    tools = Path(sys.executable).parent
    mpirun = shutil.which("mpirun", path=f"{tools}:{os.environ['PATH']}")
    with tempfile.TemporaryDirectory(dir=options.path, prefix="mpiio_ext_checkpoints_") as outer:
        (folder := Path(outer, "slow")).mkdir()
        line, beside = Path(folder, "line"), Path(outer, "burst")
        line.write_bytes(bytes(8))
        environment = os.environ | {
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPENBLAS_NUM_THREADS": "1",
            "LD_PRELOAD": str(slow), "SLOW_STORAGE_PATH": str(folder), "SLOW_STORAGE_LINE": str(line),
            "SLOW_STORAGE_US": str(options.latency_us), "SLOW_STORAGE_MBPS": str(options.mbps),
            "CODES_COMPUTE_S": str(options.seconds),
        }
        if way != "staged":  # the binding of PnetCDF has this library loaded
            environment["MPIOX_HINTS"] = "*:mpiox_enable=false"
        if way == "burst":
            beside.mkdir()
            environment["PNETCDF_HINTS"] = f"{BURST}{options.cache_dir or beside}"
        cache = (options.megabytes << 20) * 3 // 2 // options.delegates
        hints = [f"mpiox_delegates={options.delegates}", f"mpiox_delegate_cache={cache}", "mpiox_close=staged",
                 *options.hints]  # fmt: skip
        if options.cache_dir:
            hints.append(f"mpiox_delegate_cache_dir={options.cache_dir}")
        run = [str(tools / "mpiio-ext"), "run", *(word for hint in hints for word in ("-H", hint)), "--"]
        words = [sys.executable, __file__, "--work", str(folder), way, *sys.argv[1:]]
        if options.through in PROGRAMS:
            words = program(options, folder)
        command = [str(mpirun), "-n", str(options.ranks), *(run if way == "staged" else []), *words]
        looking = Looking()
        looking.start()
        begun = time.monotonic()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
        job = time.monotonic() - begun
        looking.end()
        measured = result(options, way, done)
        if measured is None:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
        if done.stderr:
            print(done.stderr, file=sys.stderr)
        if way != "compute" and options.through not in PROGRAMS:
            compare(options, folder, int(measured["size"]))
        return {**measured, "job": job, "memory": max(looking.most.values(), default=0),
                "cap": max(looking.caps.values(), default=0)}  # fmt: skip


def measure(options: argparse.Namespace, slow: Path) -> dict[str, list[dict[str, float]]]:
    """All ways in turns."""
    all_ways = ways(options)
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in all_ways}
    for number in range(options.rounds):
        turn = number % len(all_ways)
        for way in all_ways[turn:] + all_ways[:turn]:
            runs[way].append(launch(options, way, slow))
            print(f"{way} {runs[way][-1]}" if options.verbose else ".", end="\n" if options.verbose else "",
                  file=sys.stderr, flush=True)  # fmt: skip
    print(file=sys.stderr)
    return runs


def spread(values: list[float], form: str) -> str:
    """Return the median and the range."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def show(options: argparse.Namespace, runs: dict[str, list[dict[str, float]]]) -> None:
    """Print a table in Markdown."""
    how = "sleep" if options.through in PROGRAMS else options.compute
    print(f"{options.through}: {options.times} times {options.seconds:g} s ({how}) and "
          f"{options.megabytes} MiB, {options.ranks} ranks, load {os.getloadavg()[0]:.1f}\n")  # fmt: skip
    print("| way | waits s | of native's | loop, of the computing alone | job s | memory of a delegate, of its cache |")
    print("|---|---|---|---|---|---|")
    alones = [row["loop"] for row in runs["compute"]] if "compute" in runs else [row["alone"] for row in runs["native"]]
    for way, rows in runs.items():
        shares = [mine["wait"] / native["wait"] for native, mine in zip(runs["native"], rows, strict=True)]
        loops = [mine["loop"] / alone for alone, mine in zip(alones, rows, strict=True)]
        memory = max(row["memory"] for row in rows) >> 20 if way == "staged" else 0
        text = f"{memory} MiB, {rows[0]['cap'] >> 20} MiB" if memory else "–"
        print(f"| {way} | {spread([row['wait'] for row in rows], '.3f')} | {spread(shares, '.1%')} | "
              f"{spread(loops, '.3f')} | {statistics.median(row['job'] for row in rows):.1f} | {text} |")  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--work", nargs=2, metavar=("FOLDER", "WAY"), help=argparse.SUPPRESS)
    parser.add_argument("--path", default="/dev/shm", help="folder for the files, on storage that is slowed")
    parser.add_argument("--cache-dir", help="mpiox_delegate_cache_dir; without it caches are in memory")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--delegates", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2, help="to compute before each checkpoint")
    parser.add_argument("--compute", choices=("cpu", "sleep"), default="cpu")
    parser.add_argument("--megabytes", type=int, default=128, help="MiB of a checkpoint")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--through", choices=(*WRITERS, *PROGRAMS), default="segments")
    parser.add_argument("--hints", action="append", default=[], metavar="HINT=VALUE", help="further ones, for staged")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency-us", type=int, default=2000, help="of each request")
    parser.add_argument("--mbps", type=int, default=200, help="MB/s at which bytes arrive; 0: at once")
    parser.add_argument("--verbose", action="store_true", help="each run as it ends")
    options = parser.parse_args()
    if options.work:
        work(*options.work, options)
        return
    show(options, measure(options, Path(slow_storage())))


if __name__ == "__main__":
    main()
