"""Launches of the micro-benchmark under a peer, bounded in time."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from mpiio_ext.bench.compare.peers import PROGRAM, Installation, Peer
from mpiio_ext.bench.environment import here
from mpiio_ext.bench.errors import EXIT_RUN, EXIT_USAGE, EXIT_VERIFY, BenchError
from mpiio_ext.bench.place import make_folder
from mpiio_ext.common.children import run
from mpiio_ext.common.commands import reporting
from mpiio_ext.common.printing import make_console

#: How the micro-benchmark accesses the file: the values of its --access.
ACCESSES = ("collective", "independent", "nonblocking", "nonblocking_collective", "split")
_GRACE_S = 15  # after its time is up and the launcher has not ended it, a rank ends itself


class WrongDataError(BenchError, ValueError):
    """A peer wrote or read wrong bytes."""

    exit_status = EXIT_VERIFY


class ArgumentError(BenchError, ValueError):
    """Arguments that do not go together."""

    exit_status = EXIT_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The work of one launch of the micro-benchmark.

    Attributes
    ----------
    title : for people
    pattern : the micro-benchmark's options that state the pattern
    ranks : processes
    file_bytes : size of the file
    file : where it lies; the launch leaves none behind
    repeats : repetitions inside the launch
    access : one of ACCESSES
    calls : "whole", a rank's data in one call, or "small", a call for every piece
    sync : a write ends with MPI_File_sync
    rewrite : the file is written a second time, once its blocks exist
    limit_s : seconds that the launch may take
    """

    title: str
    pattern: tuple[str, ...]
    ranks: int
    file_bytes: int
    file: Path
    repeats: int = 1
    access: str = "collective"
    calls: str = "whole"
    sync: bool = False
    rewrite: bool = False
    limit_s: float = 20.0

    def arguments(self) -> list[str]:
        """Return the micro-benchmark's arguments."""
        words = [
            *self.pattern,
            "--bytes",
            str(self.file_bytes),
            "--repeats",
            str(self.repeats),
            "--file",
            str(self.file),
            "--access",
            self.access,
            "--calls",
            self.calls,
            "--time-limit",
            str(int(self.limit_s) + _GRACE_S),
        ]
        words += ["--sync"] if self.sync else []
        words += ["--rewrite"] if self.rewrite else []
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a launch.

    Attributes
    ----------
    records : one dictionary per repetition, as the micro-benchmark printed it
    reason : why there are no records, "" when there are some
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""


def parse_output(output: str) -> list[dict[str, Any]]:
    """Return the records that the micro-benchmark printed."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def run_benchmark(
    peer: Peer, case: Case, command: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Outcome:
    """Run the micro-benchmark once under a peer.

    Parameters
    ----------
    command, environment : of the launch; by default the peer's on this machine

    Raises
    ------
    WrongDataError
        when this library wrote or read wrong bytes; of another peer that is a reason like others
    """
    try:
        ended = run(
            command or peer.command(case.ranks, case.arguments()),
            limit_s=case.limit_s,
            job=True,
            environment=environment or peer.variables(),
        )
    finally:
        case.file.unlink(missing_ok=True)
    if ended.stopped:
        return Outcome(reason=f"not done in {case.limit_s:g} s")
    records = parse_output(ended.output)
    if ended.trouble or not records:
        lines = ended.errors.splitlines()
        words = [line for line in lines if PROGRAM in line or re.match(r"[\w.]+Error: ", line)] or lines[-1:]
        reason = f"failed ({ended.trouble if ended.error else ended.status}): {' '.join(words[:1])[:200]}"
        return Outcome(reason=reason)
    wrong = sum(record["wrong_bytes"] for record in records)
    if wrong and peer.ours:
        raise WrongDataError(f"{peer.title}, {case.title}: {wrong} wrong bytes")
    return Outcome(reason=f"{wrong} wrong bytes") if wrong else Outcome(records=records)


def on_nodes(peers: Sequence[Peer], ranks: int, nodes: int) -> list[Peer]:
    """Return the peers.

    The peers with this library pretend that `ranks` lie on `nodes` nodes; 0 means the real ones.
    """
    if nodes == 0:
        return list(peers)
    if nodes > ranks or ranks % nodes:
        raise ArgumentError(f"--nodes: {ranks} ranks cannot be dealt evenly to {nodes} nodes")
    pretended = {"MPIOX_RANKS_PER_NODE": str(ranks // nodes)}
    return [
        dataclasses.replace(peer, environment=peer.environment | pretended) if peer.ours else peer for peer in peers
    ]


# ---- the rest --------------------------------------------------------------------------------------------------------


def describe_environment(installations: Sequence[Installation], folder: Path, **configuration: Any) -> dict[str, Any]:
    """Return machine, software and settings of the measurement, JSON-compatible, with `configuration` unchanged."""
    return {
        **here(folder),
        "host": platform.node(),
        "cpus": len(os.sched_getaffinity(0)),
        "mpi": {installation.family: installation.version for installation in installations},
        **configuration,
    }


def console_of_results() -> Console:
    """Return the console for tables: as wide as the terminal, or wide enough for all columns in a file."""
    return make_console(width=None if sys.stdout.isatty() else 220)


@contextlib.contextmanager
def scratch_file(path: Path, name: str) -> Iterator[Path]:
    """Yield a file name in a new folder under `path`, removed at the end; errors end the process with one line.

    Parameters
    ----------
    path : folder on the file system to measure
    name : the command's, for messages
    """
    with reporting(OSError, status=EXIT_RUN), contextlib.ExitStack() as stack:
        folder = make_folder(path, name, 0)
        stack.callback(folder.rmdir)
        file = folder / "data.dat"
        stack.callback(file.unlink, missing_ok=True)
        yield file
