"""What every connector returns: tables, and one outcome a log.

A connector is a function ``convert(logs, root) -> Converted``. It is given a chunk of logs, so that a loop in C or a
vectorised conversion pays. It never raises for a bad log: the log is ``skipped`` with a reason, or ``partial`` with
what could be read and the reason for the rest. It is called in worker processes, has no state, and prints nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

__all__ = ["Connector", "Converted", "Outcome"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one log.

    Attributes
    ----------
    log : str
        Path of the log, relative to its input folder.
    status : {"whole", "partial", "skipped"}
    reason : str
        Why it is partial or skipped, for people; empty when whole.
    log_id : int
        The ID of its rows (``source_log`` where that is not NULL, else ``log_id``); 0 where it has none.
    rows : mapping of str to int
        Rows that it gave, by table.
    """

    log: str
    status: Literal["whole", "partial", "skipped"]
    reason: str = ""
    log_id: int = 0
    rows: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Converted:
    """Tables by name (:mod:`mpiio_ext.analytics.tables.schema`; ``darshan_file`` without OST words), and outcomes."""

    tables: Mapping[str, Any]
    outcomes: Sequence[Outcome]


class Connector(Protocol):
    """Convert logs of one kind: Darshan, Slurm, LMT, results of the bench."""

    def __call__(self, logs: Sequence[str], root: str) -> Converted:
        """Convert `logs` (paths relative to the folder `root`) to Arrow tables of the unified schema."""
        ...
