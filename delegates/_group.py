"""The delegates of the running program's own job, and ranks that become delegates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiio_ext._binding import ffi, lib
from mpiio_ext.errors import ArgumentError, MpiioExtError

if TYPE_CHECKING:
    from mpi4py import MPI

_E_ARG, _E_UNSUPPORTED = -2, -5


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegate:
    """One delegate, as this process sees it.

    Attributes
    ----------
    index : 0 .. number of delegates - 1.
    node : its node, as the nodes of MPI_COMM_WORLD's ranks are counted; -1: none of them.
    host, pid : its process; in thread mode a rank of the program.
    local : whether this process shares its memory.
    serving : whether it served when this was asked. The pages of one that has died have been written by then.
    """

    index: int
    node: int
    host: str
    pid: int
    local: bool
    serving: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The delegates of this job.

    Attributes
    ----------
    id : name of the service in ``mpiio-ext delegates status`` (key ``group``).
    mode : "spawn", "split", "process" or "thread".
    reason : why it was started so.
    delegates : in the order of their indices.
    """

    id: str
    mode: str
    reason: str
    delegates: tuple[Delegate, ...]


def _text(pointer: object) -> str:
    return ffi.string(pointer).decode(errors="replace") if pointer != ffi.NULL else ""


def _delegate(index: int) -> Delegate:
    return Delegate(
        index=index,
        node=lib.mpiio_ext_group_node(index),
        host=_text(lib.mpiio_ext_group_host(index)),
        pid=lib.mpiio_ext_group_pid(index),
        local=bool(lib.mpiio_ext_group_is_local(index)),
        serving=bool(lib.mpiio_ext_group_is_serving(index)),
    )


def current() -> Group | None:
    """Return the delegates of this job, None if there are none (now, or yet).

    They start in MPI_Init if the environment requests them (``MPIOX_HINTS=mpiox_delegates=2``), otherwise when all
    ranks open a file with the hint. Local.
    """
    count = lib.mpiio_ext_group_count()
    if count == 0:
        return None
    return Group(
        id=_text(lib.mpiio_ext_group_id()),
        mode=_text(lib.mpiio_ext_group_mode()),
        reason=_text(lib.mpiio_ext_group_reason()),
        delegates=tuple(_delegate(index) for index in range(count)),
    )


def split(comm: MPI.Intracomm, delegates: int) -> MPI.Intracomm | None:
    """Turn ranks of a communicator into delegates (mode ``split``).

    Collective. On the ranks that become delegates it serves until the others have begun MPI_Finalize, and returns None:
    such a rank should then end. On the others it returns at once.

    Parameters
    ----------
    comm : MPI.COMM_WORLD as a rule.
    delegates : how many ranks serve; the same on all ranks, less than there are.

    Returns
    -------
    The communicator that the program uses in place of `comm`. It has all ranks if delegates could not be started; then
    a line on standard error gives the reason.

    Raises
    ------
    ArgumentError
        No rank would be left, or the job has delegates already.
    MpiioExtError
        Not possible here: before MPI is initialised, in a spawned process, or MPI failed.
    """
    from mpi4py import MPI

    mine = MPI.Intracomm()
    code = lib.mpiio_ext_group_split(
        ffi.cast("const void *", MPI._addressof(comm)), delegates, ffi.cast("void *", MPI._addressof(mine))
    )
    if code == _E_ARG:
        raise ArgumentError(
            f"{delegates} of {comm.Get_size()} ranks cannot become delegates: a rank must be left, "
            "and a job has delegates once"
        )
    if code == _E_UNSUPPORTED:
        raise MpiioExtError("ranks become delegates only in a program that has called MPI_Init and was not spawned")
    if code != 0:
        raise MpiioExtError("MPI failed while ranks became delegates")
    return mine if mine != MPI.COMM_NULL else None
