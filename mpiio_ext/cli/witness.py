"""A run whose statistics do not arrive: one line reports it, and names ``mpiio-ext doctor``.

Problem. A static program, a program of another MPI or a program without MPI never loads the library, and the library
then prints nothing. A program with a serial HDF5 loads the library, but gives it nothing to print. `run` has become the
program and is gone.

Algorithm. One process of the job, which is rank 0's or the one that starts the launcher, forks a witness: a process in
a session of its own, whose parent is no process of the job. The witness has two of Linux's abstract sockets. The
library gets their name in MPIOX_STATS_WITNESS, and sends a byte to them at MPI_Init and at the first opening of a file.
The witness waits for the end of the process that has forked it (the program takes over the ID of that process), and
then checks whether the bytes have arrived.

Guarantees. The program has the process ID, the parent, the signals and the exit status that it would have without.
Nothing is written to a file system. The line is true: bytes arrive from the processes of this node alone. So the line
reports that a job has other nodes, and the witness prints nothing if the launcher may start all ranks elsewhere. Where
Linux is too old (pidfd_open) there is no witness. Nothing of this is done, or imported, in a run without statistics.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import secrets
import select
import shlex
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import NoReturn

from mpiio_ext._load import family
from mpiio_ext.common.descriptors import let_go
from mpiio_ext.common.printing import echo
from mpiio_ext.launchers import is_rank, job_name, launched_rank, launcher_family

VARIABLE = "MPIOX_STATS_WITNESS"
#: Number of all ranks, and of those of this node.
_SIZES = (("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"), ("PMI_SIZE", "MPI_LOCALNRANKS"))
_NODES = ("SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES")
#: What makes launchers start ranks on other nodes, in their options or around them.
_HOSTS = frozenset(
    {
        "-H",
        "-host",
        "--host",
        "-hosts",
        "--hosts",
        "-hostfile",
        "--hostfile",
        "-machinefile",
        "--machinefile",
        "-f",
        "--prefix",
        "--app",
        "--configfile",
    }
)
_ALLOCATIONS = (
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "PE_HOSTFILE",
    "HYDRA_HOST_FILE",
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
)
_WORDS = 100


def _place(command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Return the processes that the witness covers, as words of the line; None if they are too few for a report."""
    if not is_rank(environment):
        kind = launcher_family(command[0], family())
        named = not _HOSTS.isdisjoint(word.partition("=")[0] for word in command)
        elsewhere = kind == "slurm" or named or any(name in environment for name in _ALLOCATIONS)
        return None if kind is not None and elsewhere else ""
    sizes = [(environment.get(whole), environment.get(here)) for whole, here in _SIZES if whole in environment]
    if any(whole == here for whole, here in sizes) or next(filter(None, map(environment.get, _NODES)), "") == "1":
        return ""
    return f" on {os.uname().nodename}"


def _name(environment: Mapping[str, str]) -> str:
    """Return the name of the witness for all ranks of this node: by the job, or by the process that started them."""
    if not is_rank(environment):
        return f"mpiio_ext.{secrets.token_hex(8)}"
    job = f"{os.getuid()} {job_name(environment) or os.getppid()}"
    return f"mpiio_ext.{hashlib.sha256(job.encode()).hexdigest()[:16]}"


def watch(command: Sequence[str], settings: Mapping[str, str]) -> dict[str, str]:
    """Fork a witness, unless there is one; return the variable by which the library finds the witness."""
    environment = {**os.environ, **settings}
    if VARIABLE in environment or not hasattr(os, "pidfd_open"):
        return {}
    place = _place(command, environment)
    if place is None:
        return {}
    name = _name(environment)
    if launched_rank(environment) == 0:
        try:
            signs = {what: _socket(f"{name}.{what}") for what in ("init", "file")}
            program = os.pidfd_open(os.getpid())
        except OSError:
            return {}
        _leave(signs, program, place, command)
    return {VARIABLE: name}


def _socket(name: str) -> socket.socket:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    found.bind(f"\0{name}")
    found.setblocking(False)
    return found


def _leave(signs: Mapping[str, socket.socket], program: int, place: str, command: Sequence[str]) -> None:
    """Fork the witness twice, so that the program has no child that it does not know of."""
    theirs, ours = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        os.setsid()
        if os.fork() == 0:
            _watch(signs, program, theirs, place, command)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(theirs)
    atexit.register(os.write, ours, b"no")  # the program was not started; neither exec nor _exit come by here
    os.close(program)
    for one in signs.values():
        one.close()


def _watch(
    signs: Mapping[str, socket.socket], program: int, started: int, place: str, command: Sequence[str]
) -> NoReturn:
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)
        let_go({2, program, started, *(one.fileno() for one in signs.values())})
        os.chdir("/")
        select.select([program], [], [])
        if not os.read(started, 1) and not _has(signs["file"]):
            echo(_line(init=_has(signs["init"]), place=place, command=command), err=True)
    finally:
        os._exit(0)


def _has(sign: socket.socket) -> bool:
    try:
        sign.recv(1)
    except OSError:
        return False
    return True


def _line(*, init: bool, place: str, command: Sequence[str]) -> str:
    words = shlex.join(command)
    program = words if len(words) <= _WORDS and words.isprintable() else shlex.join(command[:1])
    if init:
        reason = (
            "no MPI_File_open reached the library: serial HDF5 or netCDF, PnetCDF with a driver of its own, or "
            "plain reads and writes?"
        )
    else:
        reason = "no MPI call reached the library: a static program, another MPI library, or no MPI at all?"
    return f"mpiio-ext: no statistics{place}: {reason} mpiio-ext doctor -- {program} finds the reason"
