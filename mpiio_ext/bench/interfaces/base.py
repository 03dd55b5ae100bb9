"""What an interface to the file is: a session of four timed phases.

open → prepare (file view, or dataset and selections) → transfer (the collective calls) → close. The runner calls each
phase on every rank, times it and agrees on its errors; a session therefore just raises. Phases are collective.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.pattern import Bytes
from mpiio_ext.bench.workloads.base import Plan, Workload

__all__ = ["Interface", "Session", "Target"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Target:
    """What a session works on.

    Attributes
    ----------
    comm : mpi4py communicator of the ranks that take part
    path : the file
    hints : name -> value
    workload : the geometry
    rank : whose part of the workload it is; another rank's than the caller's when reads are shifted
    plan : accesses of that rank, made by `Interface.plan`
    buffer : ndarray of uint8, shape (plan.buffer_bytes,)
    writing : write a new file, or read an existing one
    """

    comm: Any
    path: str
    hints: dict[str, str]
    workload: Workload
    rank: int
    plan: Plan
    buffer: Bytes
    writing: bool


class Session(ABC):
    """One open file, written or read once."""

    def __init__(self, target: Target) -> None:
        self.target = target

    @abstractmethod
    def open(self) -> None:
        """Open the file."""

    @abstractmethod
    def prepare(self) -> None:
        """Set the file view, or create or find the dataset."""

    @abstractmethod
    def transfer(self) -> None:
        """Carry out the collective calls of the plan. A failing call must not keep the rank from the later ones."""

    @abstractmethod
    def close(self) -> None:
        """Close the file; harmless when `open` failed."""

    @property
    def data_start_bytes(self) -> int:
        """Where the workload's byte 0 lies in the file; valid after `prepare`, before `close`."""
        return 0

    @abstractmethod
    def statistics(self) -> dict[str, Any] | None:
        """Return what the extension counted on this rank in this session so far, by name; None without extension."""


class Interface(ABC):
    """A way to the file."""

    name: ClassVar[str]
    title: ClassVar[str]
    #: The file holds nothing but the workload's bytes, so that its size and its gaps are verified too.
    raw: ClassVar[bool]
    session: ClassVar[type[Session]]

    @abstractmethod
    def absent_reason(self) -> str | None:
        """Return in one line why the interface cannot be used here, or None when it can."""

    def supports(self, workload: Workload) -> bool:
        """Return whether the workload has a form for this interface."""
        return not (workload.array_shape is None and not self.raw)

    def plan(self, workload: Workload, rank: int, *, writing: bool) -> Plan:
        """Return the accesses of `rank` in the form that sessions of this interface take."""
        return workload.write_plan(rank) if writing else workload.read_plan(rank)

    def versions(self) -> dict[str, str]:
        """Return versions of the libraries involved, for the environment record."""
        return {}
