"""All phases of PIONEER, one after the other, in one folder.

Problem.   From a trace to a workload that was carried out and compared with it are six steps with a file each. A person
           wants one command, to see what it is at, and to find out which step went wrong.
Steps.     sanitize   sanitized.parquet: the trace's rows with files, offsets, masks
           path       path.parquet: the generic workload path; operations of ranks that it does not contain are reported
           profile    profile.json: its characteristics, with fits and shapes
           synthesize synthetic.parquet: the synthetic path
           replay     run/: files/, what the ranks wrote; trace/, what the tracer saw of it; replay.log, replay.json
           compare    comparison.html, comparison.json and the figures: the trace against run/trace. Operations that
                      the engine does not make (`engine.coverage.LEFT_OUT`) are not compared; the page counts them. The
                      metrics are against what so many ranks can do of the path (`engine.expected`).
Guarantee. A file gets its name when it is complete. A folder that has something in it is refused, unless it may be
           replaced: then the results of an earlier run, and only these, are removed before the first step, so that
           results of two runs are never mixed. A replay that fails leaves run.failed/ and no run/; what the launcher
           has started is ended with it.
"""

from __future__ import annotations

import glob
import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mpiio_ext.common.children import run
from mpiio_ext.common.files import write_whole
from mpiio_ext.common.units import digits_text
from mpiio_ext.errors import MpiioExtError
from mpiio_ext.pioneer.compare.comparison import Comparison, compare_workloads
from mpiio_ext.pioneer.compare.in_path import differences_in_path
from mpiio_ext.pioneer.compare.metrics import LIMITS, is_within, shown
from mpiio_ext.pioneer.compare.page import save_all
from mpiio_ext.pioneer.compare.replayed import against_replay
from mpiio_ext.pioneer.compare.workload import load_workload
from mpiio_ext.pioneer.engine.coverage import LEFT_OUT
from mpiio_ext.pioneer.engine.places import leave_out
from mpiio_ext.pioneer.engine.room import CALLS_FAILED
from mpiio_ext.pioneer.engine.unmade import refused_files
from mpiio_ext.pioneer.path import MOST_GROUPS, WorkloadPath
from mpiio_ext.pioneer.profile import Profile, characterize
from mpiio_ext.pioneer.profile.document import save as save_profile
from mpiio_ext.pioneer.synthesis import synthesize, with_shapes
from mpiio_ext.pioneer.traces import (
    communicators_missing,
    not_represented,
    path_of,
    read_sanitized,
    require_match,
    sanitize_to,
    selected,
    tables_of,
)

if TYPE_CHECKING:
    from mpiio_ext.pioneer.synthesis import Scale

STEPS = ("sanitize", "path", "profile", "synthesize", "replay", "compare")

#: Of replay.json.
VERSION = 1

#: Everything that the steps leave in the folder.
_RESULTS = (
    "sanitized.parquet",
    "path.parquet",
    "profile.json",
    "synthetic.parquet",
    "run",
    "run.failed",
    "comparison.html",
    "comparison.json",
    "throughput.svg",
    "data-ratio.svg",
    "data-operations.svg",
    "arrival-rate.svg",
)
_OUTCOME = re.compile(
    r"(?P<ranks>\d+) ranks made (?P<calls>[\d,]+) calls in (?P<seconds>[\d.]+) s, wrote (?P<bytes_written>[\d,]+) "
    r"and read (?P<bytes_read>[\d,]+) bytes; (?P<failed>[\d,]+) calls failed, (?P<left_out>[\d,]+) were left out"
)
_TAIL = 1500
#: Limits of a replay: this multiple of its planned time, and this much longer.
_PATIENCE, _PATIENCE_S = 10, 600


class StepError(MpiioExtError, RuntimeError):
    """A step has failed; the message names it, and the reason."""


def default_launcher() -> list[str]:
    """Return the launcher of MPI programs of this Python's environment, else the first one on PATH.

    Raises
    ------
    StepError
        Neither ``mpiexec`` nor ``mpirun`` was found.
    """
    for name in ("mpiexec", "mpirun"):
        beside = Path(sys.prefix) / "bin" / name
        if beside.exists():
            return [str(beside)]
    found = shutil.which("mpiexec") or shutil.which("mpirun")
    if found is None:
        raise StepError("there is neither mpiexec nor mpirun: name the launcher of MPI programs by --launcher")
    return [found]


def _synthesized(path: WorkloadPath, profile: Profile, mode: str, seed: int, scale: Scale | None) -> WorkloadPath:
    """Return the synthetic path: drawn from the profile in mode "tuned", whose scale is for profiles, else of the path.

    The path has every time, the profile 256 of each kind: what the path can give is better.
    """
    return synthesize(profile if mode == "tuned" else path, mode=mode, seed=seed, scale=scale)


# ---- launches --------------------------------------------------------------------------------------------------------


def _launch(command: Sequence[str], log: Path, limit_s: float) -> None:
    """Run a command with its output in a file.

    Raises
    ------
    StepError
        The command cannot be started, fails, or takes too long; the message has the end of its output.
    """
    with log.open("wb") as output:
        ended = run(command, limit_s=limit_s, job=True, output=output, errors="output")
    if ended.error:
        raise StepError(f"{command[0]} {ended.trouble}")
    if ended.stopped or ended.status not in (0, CALLS_FAILED):
        tail = log.read_text(encoding="utf-8", errors="replace")[-_TAIL:].strip()
        how = f"was ended after {limit_s:,.0f} s" if ended.stopped else f"ended with status {ended.status}"
        raise StepError(f"{' '.join(command)}\n{how}; the end of its output:\n{tail}")


def _nothing(step: str, text: str) -> None:
    del step, text


def _nobody(text: str) -> None:
    del text


def not_in_path(differences: Mapping[str, float], ranks: int) -> str:
    """Return the advice if ranks do what their path cannot describe, one line; empty if they do not.

    Parameters
    ----------
    differences : of each class of files, as of `compare.in_path.differences_in_path`.
    ranks : that were traced.
    """
    limit = LIMITS["in_path"]
    beyond = {owner: value for owner, value in differences.items() if not is_within(value, limit)}
    if not beyond:
        return ""
    values = ", ".join(f"{owner} files {shown(value, limit, 2)}" for owner, value in sorted(beyond.items()))
    what = (
        "repeat it with --each-rank"
        if ranks <= MOST_GROUPS
        else (f"trace at most {MOST_GROUPS} ranks and use --each-rank")
    )
    return (
        "no rule gives the places that ranks of this program access, so one path does not describe all ranks "
        f"({values} of the bytes differ, limit {limit:g}): {what}, which writes the operations of every rank"
    )


# ---- the steps -------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Pipeline:
    """The steps from a trace to a comparison.

    Attributes
    ----------
    trace : files or folders of one run, or a sanitized table.
    folder : where everything is left.
    ranks : processes of the replay; 0: as many as were traced.
    mode, seed, scale : of the synthesis.
    time_scale : slack times are multiplied by it.
    spin_s : end of each slack time that is spun for; None: measured.
    launcher : words before ``-n``; empty: see `default_launcher`.
    reader : format of the trace; None: it is found out.
    only, skip : patterns of names of files, as of `traces.selected`.
    each_rank : each rank that was traced is a subgroup of the path.
    say : called with the name of a step and what it is at.
    warn : called with what people have to know, a line each.
    in_path : by class of files how much the path differs from its own trace, once it is made.
    """

    trace: Sequence[Path]
    folder: Path
    ranks: int = 0
    mode: str = "faithful"
    seed: int = 0
    scale: Scale | None = None
    time_scale: float = 1.0
    spin_s: float | None = None
    launcher: Sequence[str] = ()
    reader: str | None = None
    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    each_rank: bool = False
    say: Callable[[str, str], None] = _nothing
    warn: Callable[[str], None] = _nobody
    in_path: Mapping[str, float] = field(default_factory=dict)

    def _at(self, name: str) -> Path:
        return self.folder.absolute() / name

    def prepare(self, *, replace: bool = False) -> None:
        """Make the folder.

        Parameters
        ----------
        replace : the results of an earlier run may be removed.

        Raises
        ------
        StepError
            The folder is not empty, or cannot be created.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if replace:
                for name in _RESULTS:
                    place = self._at(name)
                    shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink(missing_ok=True)
            elif any(self.folder.iterdir()):
                raise StepError(
                    f"{self.folder} has something in it: name another folder, or let --replace remove the "
                    "results of an earlier run"
                )
        except OSError as error:
            raise StepError(f"{self.folder} cannot be made or emptied: {error}") from error

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        """Put the name of a step before its errors."""
        self.say(name, "")
        begun = time.monotonic()
        try:
            yield
        except (OSError, ValueError, MpiioExtError, pa.ArrowException, MemoryError) as error:
            raise StepError(f"step {1 + STEPS.index(name)} of {len(STEPS)}, {name}: {error}") from error
        self.say(name, f"done in {time.monotonic() - begun:.1f} s")

    def run(self) -> Comparison:
        """Carry out all steps; return the result of the last one.

        Raises
        ------
        StepError
            A step has failed. The results of those before it are there.
        """
        with self._step("sanitize"):
            self._sanitize()
        with self._step("path"):
            path = self._path()
        with self._step("profile"):
            counted = characterize(path, fits=True)
            profile = with_shapes(counted, path)
            save_profile(profile, self._at("profile.json"))
        with self._step("synthesize"):
            synthetic = _synthesized(path, profile, self.mode, self.seed, self.scale)
            synthetic.save(self._at("synthetic.parquet"))
            self.say("synthesize", f"{synthetic.table.num_rows:,} operations, mode {self.mode}")
        with self._step("replay"):
            self._replay(synthetic)
        with self._step("compare"):
            return self._compare()

    def _sanitize(self) -> None:
        info = sanitize_to(
            self._at("sanitized.parquet"),
            self.trace,
            self.reader,
            only=self.only,
            say=self.warn,
            progress=lambda rows: self.say("sanitize", f"{rows:,} rows"),
        )
        for line in (
            info.left_out,
            *(
                problem.why
                for source in info.sources
                for problem in source.loss.problems[:1]
                if not source.loss.skipped
            ),
        ):
            if line:
                self.warn(line)
        if info.skipped:
            first = next(
                (
                    f"; see {source.path}, line {problem.line}: {problem.why}"
                    for source in info.sources
                    for problem in source.loss.problems
                    if source.loss.skipped
                ),
                "",
            )
            self.warn(f"{info.skipped:,} lines of the trace were not understood{first}")

    def _path(self) -> WorkloadPath:
        info, rows = read_sanitized([self._at("sanitized.parquet")])
        every = tables_of(rows)
        tables = {rank: selected(table, self.only, self.skip) for rank, table in every.items()}
        require_match(every, tables)
        tables = {rank: table for rank, table in tables.items() if table.num_rows}
        found = path_of(tables, info, each_rank=self.each_rank)
        if refused := refused_files(found):
            raise ValueError(
                f"{', '.join(map(repr, refused))} would lie outside of the folder of a replay: repeat it "
                f"with {leave_out(refused)}, which leaves out what is done to them"
            )
        found.save(self._at("path.parquet"))
        self.ranks = self.ranks or max(1, sum(len(group) for group in found.info.members))
        self.say("path", f"{found.table.num_rows:,} operations, {found.group_count} groups")
        for line in (
            communicators_missing(tables, info, each_rank=self.each_rank),
            self._compared_with_itself(found, tables),
            *not_represented(tables, found),
        ):
            if line:
                self.warn(line)
        return found

    def _compared_with_itself(self, path: WorkloadPath, tables: Mapping[int, pa.Table]) -> str:
        """Return a note on a path that does not stand for its trace; empty: it does."""
        if self.each_rank:
            return ""
        self.in_path = differences_in_path(path, tables)
        return not_in_path(self.in_path, len(tables))

    def _command(self) -> list[str]:
        module = [sys.executable, "-m", "mpiio_ext"]
        replay = [
            *module,
            "pioneer",
            "replay",
            str(self._at("synthetic.parquet")),
            str(self._at("run/files")),
            "--time-scale",
            repr(self.time_scale),
            *([] if self.spin_s is None else ["--spin", repr(self.spin_s)]),
        ]
        launcher = [*(self.launcher or default_launcher()), "-n", str(self.ranks)]
        # The path has the reads of folders, and the tracer records the path's calls alone.
        files = f"{glob.escape(str(self._at('run/files').resolve()))}/*"  # wherever these may lie
        return [
            *module,
            "trace",
            "--folders",
            "--only",
            files,
            "-o",
            str(self._at("run/trace")),
            "--",
            *launcher,
            *replay,
        ]

    def _replay(self, synthetic: WorkloadPath) -> None:
        from mpiio_ext.pioneer.compare.activity import activity_of_path

        planned_s = activity_of_path(synthetic).makespan / 1e9 * self.time_scale
        command = self._command()
        run = self._at("run")
        self.say("replay", f"{self.ranks} ranks, {planned_s:,.1f} s as planned")
        run.mkdir()
        try:
            begun = time.monotonic()
            _launch(command, run / "replay.log", _PATIENCE * planned_s + _PATIENCE_S)
            report = self._report(command, time.monotonic() - begun)
        except BaseException:  # also when somebody interrupts it
            shutil.rmtree(self._at("run.failed"), ignore_errors=True)
            run.rename(self._at("run.failed"))
            raise
        write_whole(run / "replay.json", json.dumps(report, indent=1) + "\n")

    def _report(self, command: Sequence[str], wall_s: float) -> dict[str, Any]:
        """Return the contents of replay.json: times in s, sizes in bytes."""
        text = self._at("run/replay.log").read_text(encoding="utf-8", errors="replace")
        found = _OUTCOME.search(text)
        traces = list(self._at("run/trace").glob("*.mpioxtrace"))
        if found is None or len(traces) < self.ranks:
            raise StepError(
                f"{' '.join(command)}\nprints no counts of its calls, or has left {len(traces)} traces of "
                f"{self.ranks} ranks; its output:\n{text[-_TAIL:].strip()}"
            )
        numbers = {
            name: float(value) if "." in value else int(value.replace(",", ""))
            for name, value in found.groupdict().items()
        }
        left_out, failed = (
            [line.strip() for line in text.splitlines() if line.strip().startswith(word)]
            for word in ("left out:", "failed:")
        )
        for line in failed:
            self.warn(f"replay: {line}")
        return {
            "pioneer_replay": VERSION,
            "command": list(command),
            "mode": self.mode,
            "seed": self.seed,
            "time_scale": self.time_scale,
            "wall_s": round(wall_s, 3),
            **numbers,
            "reasons": left_out,
            "failures": failed,
        }

    def _compare(self) -> Comparison:
        note = "" if self.time_scale == 1 else f"slack times were multiplied by {digits_text(self.time_scale, 6)}"
        files = f"{self._at('run/files').resolve()}/"
        original = load_workload(
            self._at("sanitized.parquet"), only=self.only, skip=self.skip, without=LEFT_OUT, each_rank=self.each_rank
        )
        same = self.each_rank and self.ranks == original.activity.ranks
        again = load_workload(self._at("run/trace"), below=files, each_rank=same)
        original, again = against_replay(original, again, self.ranks)
        found = compare_workloads(original, again, note=note, in_path=self.in_path)
        save_all(found, self._at("."))
        return found
