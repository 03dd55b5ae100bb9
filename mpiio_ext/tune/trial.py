"""One run of the program under one setting.

The program is started as `mpiio-ext run` starts it. While the program runs, the log folder has files of its output,
hints and statistics. Afterwards these files become one; the file of statistics stays only on request. The program runs
in a session of its own, and each of its processes on this machine carries a marker in its environment. If a run exceeds
its limit, the module signals the launcher, which then ends the ranks on all nodes. After a grace period the remaining
processes are killed, even if a launcher has put ranks into groups of their own: `mpiio_ext.common.children`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mpiio_ext.common.children import run
from mpiio_ext.launchers import Launch
from mpiio_ext.tune.errors import TuneError
from mpiio_ext.tune.setting import BASELINE, Setting

_TAIL_BYTES = 20_000
#: Words of a line that explains why a program failed.
_FAILURES = (
    "error",
    "no space",
    "cannot",
    "could not",
    "not find",
    "no such",
    "failed",
    "exited on signal",
    "attempt to",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUse:
    """The statistics of one opening of a file, summed over its ranks.

    Attributes
    ----------
    path : its name as the program opened it.
    ranks : ranks that opened it.
    bytes_moved : data bytes written and read by accesses that the library carried out.
    written : whether any of them wrote.
    collective_calls, independent_calls, direct_calls, native_calls : accesses, as in `mpiio_ext.stats.FileStats`.
    delegated_calls : collective ones that went through delegates, where each rank's part counts as independent, too.
    collective_s, independent_s : seconds inside them, summed over ranks.
    flush_barrier_s : seconds until what was written through delegates was in the file, summed over ranks.
    hints : (name, value, source) of the hints that were set.
    delegation : which delegates it had, why it had none, or that they would pay (`mpiox_stats_paying.h`).
    """

    path: str
    ranks: int
    bytes_moved: int
    written: bool
    collective_calls: int
    independent_calls: int
    direct_calls: int
    native_calls: int
    collective_s: float
    independent_s: float
    delegated_calls: int = 0
    flush_barrier_s: float = 0.0
    hints: tuple[tuple[str, str, str], ...] = ()
    delegation: str = ""

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> FileUse:
        """Return the use that one JSON line of statistics describes."""
        delegated_calls = line.get("delegated_calls", 0)
        both = line["direct_calls"] + delegated_calls > 0  # those are counted as accesses of one rank alone, too
        alone = 0 if both else line["independent_bytes_written"] + line["independent_bytes_read"]
        return cls(
            path=line["path"],
            ranks=max(1, line["ranks"]),
            bytes_moved=line["bytes_written"] + line["bytes_read"] + alone,
            written=line["bytes_written"] + line["independent_bytes_written"] > 0,
            collective_calls=line["collective_writes"] + line["collective_reads"],
            independent_calls=line["independent_writes"] + line["independent_reads"],
            direct_calls=line["direct_calls"],
            native_calls=line["native_calls"],
            collective_s=line["total_s"],
            independent_s=line["independent_s"],
            delegated_calls=delegated_calls,
            flush_barrier_s=line.get("flush_barrier_s", 0.0),
            delegation=line.get("delegation", ""),
            hints=tuple((name, hint["value"], hint["source"]) for name, hint in line.get("hints", {}).items()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one run.

    Attributes
    ----------
    status : "ok", "failed" (the program ended with a status) or "stopped" (it exceeded its limit).
    reason : why it is not "ok", one line; "" otherwise.
    exit_status : of the command as a shell has it, 128 + signal for a signal.
    elapsed_s : wall-clock seconds of the command.
    files : the files that the program opened through MPI-IO and closed.
    ranks : ranks of the run's MPI_COMM_WORLD; 0 when there are no statistics.
    output : file that begins with the program's standard output, None when there is none.
    output_bytes : length of the standard output; None: the whole file.
    """

    status: str
    reason: str = ""
    exit_status: int = 0
    elapsed_s: float
    files: tuple[FileUse, ...] = ()
    ranks: int = 0
    output: Path | None = None
    output_bytes: int | None = None

    def stdout(self) -> str:
        """Return the program's standard output."""
        if self.output is None:
            return ""
        return self.output.read_bytes()[: self.output_bytes].decode("utf-8", "replace")


class Runner(Protocol):
    """Something that runs a setting."""

    def start_s(self, setting: Setting) -> float:
        """Return the seconds that the next run of a setting takes before the runner times it."""

    def __call__(self, setting: Setting, number: int, limit_s: float, *, keep: bool = False) -> Outcome:
        """Run once and stop after `limit_s` seconds; `number` counts all runs; `keep` keeps the statistics."""


def status_text(status: int) -> str:
    """Return an exit status for people; launchers pass on 128 + signal of a killed rank."""
    if 128 < status < 128 + signal.NSIG:
        with contextlib.suppress(ValueError):
            return f"exit status {status}: a process was ended by {signal.Signals(status - 128).name}"
    return f"exit status {status}"


def _last_words(path: Path) -> str:
    """Return the clearest line near the end of the output of a failed program, at most 200 characters."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip(" \t-=*+|")]
    lines = [line for line in lines if not line.startswith("with errorcode ")] or lines  # Open MPI, of any abort
    explaining = [line for line in lines if any(word in line.lower() for word in _FAILURES)]
    return (explaining[0] if explaining else lines[-1] if lines else "")[:200]


def _statistics(path: Path) -> tuple[tuple[FileUse, ...], int]:
    """Return files and ranks of the world from a file of statistics; lines cut short by a failure do not count."""
    uses, ranks = [], 0
    if path.exists():
        for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
                if line["kind"] == "file":
                    uses.append(FileUse.of(line))
                elif line["kind"] == "run":
                    ranks = max(ranks, line["ranks"])
            except (ValueError, KeyError, TypeError):
                continue
    return tuple(uses), max([ranks, *(use.ranks for use in uses)])


def fold(stem: Path) -> int:
    """Join output, errors and hints of a run in a file; return the bytes of the standard output, which comes first."""
    log = stem.with_suffix(".log")
    stem.with_suffix(".out").replace(log)
    length = log.stat().st_size
    with log.open("ab") as target:
        for suffix, title in ((".err", "standard error"), (".hints", "hints"), (".before", "the command before")):
            part = stem.with_suffix(suffix)
            text = part.read_bytes() if part.exists() else b""
            if text:
                target.write(f"\n---- {title}\n".encode() + text)
            part.unlink(missing_ok=True)
    return length


def outcome_of(returned: int, elapsed_s: float, stem: Path, limit_s: float | None) -> Outcome:
    """Return the outcome of a run, from its exit status and its files; `limit_s` is None if it was not stopped."""
    uses, ranks = _statistics(stem.with_suffix(".stats"))
    exit_status = returned if returned >= 0 else 128 - returned
    status, reason = "ok", ""
    if limit_s is not None:
        status, reason = "stopped", f"stopped after {limit_s:.1f} s; files it was writing may be incomplete"
    elif exit_status != 0:
        words = _last_words(stem.with_suffix(".err")) or _last_words(stem.with_suffix(".out"))
        status, reason = "failed", status_text(exit_status) + (f": {words}" if words else "")
    return Outcome(status=status, reason=reason, exit_status=exit_status, elapsed_s=elapsed_s, files=uses, ranks=ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRunner:
    """Runs the user's command.

    Attributes
    ----------
    launch : works out what to execute from variables to set, and names of variables to take away.
    hints_text : text of the hints file of a setting other than the baseline.
    log : folder for the output of all runs.
    before : shell command before each run, outside the measured time; None: nothing.
    """

    launch: Callable[[Mapping[str, str], tuple[str, ...]], Launch]
    hints_text: Callable[[Setting], str]
    log: Path
    before: str | None = None

    def start_s(self, _: Setting) -> float:
        """Return 0: the runner times a run from its start on."""
        return 0.0

    def __call__(self, setting: Setting, number: int, limit_s: float, *, keep: bool = False) -> Outcome:
        """Run once; `keep`: the file of statistics stays.

        Raises
        ------
        TuneError
            The log folder cannot be written, or the command before the run fails.
        """
        stem = self.log / f"{number:04d}"
        try:
            variables, without = self.settle(setting, stem)
            outcome = self._run(self.launch(variables, without), stem, limit_s)
            if not keep:
                stem.with_suffix(".stats").unlink(missing_ok=True)
            return dataclasses.replace(outcome, output=stem.with_suffix(".log"), output_bytes=fold(stem))
        except OSError as error:
            raise TuneError(f"cannot write to the log folder {self.log}: {error.strerror or error}") from error

    def settle(self, setting: Setting, stem: Path) -> tuple[dict[str, str], tuple[str, ...]]:
        """Prepare a run: write its hints, remove old statistics, run the shell command.

        Returns
        -------
        Variables to set, and names of variables to take away.

        Raises
        ------
        OSError
            The log folder cannot be written.
        TuneError
            The command before the run fails.
        """
        statistics = stem.with_suffix(".stats")
        variables = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(statistics)}
        without: tuple[str, ...] = ()
        if setting != BASELINE:
            hints = stem.with_suffix(".hints")
            hints.write_text(self.hints_text(setting), encoding="utf-8", errors="surrogateescape")
            variables["MPIOX_HINTS_FILE"] = str(hints)
            without = ("MPIOX_HINTS",)  # its hints are in the file, where those of the setting can replace them
        statistics.unlink(missing_ok=True)
        self._prepare(stem)
        return variables, without

    def _prepare(self, stem: Path) -> None:
        if self.before is None:
            return
        with stem.with_suffix(".before").open("wb") as output:
            done = subprocess.run(
                self.before, shell=True, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
            )
        if done.returncode != 0:
            raise TuneError(
                f"--before: {self.before!r} ended with exit status {done.returncode}, "
                f"its output is {stem.with_suffix('.before')}"
            )

    def _run(self, launch: Launch, stem: Path, limit_s: float) -> Outcome:
        with stem.with_suffix(".out").open("wb") as out, stem.with_suffix(".err").open("wb") as err:
            ended = run(
                launch.arguments, limit_s=limit_s, environment=launch.environment, job=True, output=out, errors=err
            )
        if ended.status is None:
            status = 127 if ended.error == errno.ENOENT else 126
            reason = f"cannot execute {launch.arguments[0]}: {os.strerror(ended.error)}"
            return Outcome(status="failed", reason=reason, exit_status=status, elapsed_s=0.0)
        return outcome_of(ended.status, ended.elapsed_s, stem, limit_s if ended.stopped else None)
