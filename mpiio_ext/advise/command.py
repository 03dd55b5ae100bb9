"""``mpiio-ext advise``: hints for a program from one run of it.

Problem.   Tuning runs the program again and again; a program that computes for hours cannot be.
Algorithm. One run is traced. Its workload path, with what each rank has done, is carried out by as many ranks in a
           folder beside the program's files, and `mpiio-ext tune` finds hints for that, against the MPI library alone.
           With ``--check`` the program itself then runs under the MPI library alone and under the hints, in pairs.
Promise.   What the path's calls take less with the hints, the program should take less. Its whole time with them is
           promised from that; what it had is measured in the check.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext._load import family, get_library, get_tracer
from mpiio_ext.cli.run import _settings, plan_launch, select_library
from mpiio_ext.cli.synthetic import CALLS_TIME, replay_command
from mpiio_ext.cli.tune import _check_library, _Duration, _finish, _Job, _metric, _tune
from mpiio_ext.errors import MpiioExtError
from mpiio_ext.launchers import Launch, starter_family

if TYPE_CHECKING:
    from mpiio_ext.pioneer.path import WorkloadPath
    from mpiio_ext.tune.evidence import Evidence
    from mpiio_ext.tune.objective import Metric
    from mpiio_ext.tune.setting import Setting
    from mpiio_ext.tune.trial import Outcome
    from mpiio_ext.tune.tuner import Result

__all__ = ["advise", "split_command"]

_NATIVE = "mpiox_enable=false"
_INTERRUPTED = 130
#: A run of the check is stopped after so many times the traced one's time, but not before so many seconds.
_STOP_FACTOR, _LEAST_LIMIT_S = 10.0, 30.0


def split_command(command: Sequence[str], family: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the starter with its options, and the program with its arguments. Without a starter the former is empty.

    The program is the first word behind the starter that can be executed.

    Raises
    ------
    click.UsageError
        There is no such word, or there are several programs.
    """
    if starter_family(command[0], family) is None:
        return (), tuple(command)
    if ":" in command:
        raise click.UsageError("several programs, with ':' between them, cannot be carried out as one")
    for place, word in enumerate(command[1:], 1):
        if not word.startswith("-") and not word.isdigit() and shutil.which(word) is not None:
            return tuple(command[:place]), tuple(command[place:])
    raise click.UsageError(f"no word behind {command[0]} can be executed: where does the program begin?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traced:
    """The run that was traced.

    Attributes
    ----------
    elapsed_s : of the command.
    path : what its ranks have done.
    main : the file that most bytes have gone to or come from.
    """

    elapsed_s: float
    path: WorkloadPath
    main: str


# ---- the trace -------------------------------------------------------------------------------------------------------


def _path_of(folder: Path) -> WorkloadPath:
    """Return the path of a trace, with what each rank has done where there are not too many."""
    from mpiio_ext.pioneer.cli import say_loss
    from mpiio_ext.pioneer.engine import without_names
    from mpiio_ext.pioneer.path import MOST_GROUPS
    from mpiio_ext.pioneer.traces import path_of, read_sanitized, tables_of
    from mpiio_ext.tune.errors import TuneError

    info, rows = read_sanitized([folder])
    tables = tables_of(rows)
    say_loss(info)
    if not tables:
        raise TuneError("the tracer saw no I/O of the program: is it a dynamically linked program?")
    each_rank = len(tables) <= MOST_GROUPS
    if not each_rank:
        click.echo(f"{len(tables)} ranks: a path tells {MOST_GROUPS} apart: one rank stands for those like it")
    return without_names(path_of(tables, info, each_rank=each_rank))


def _main_file(path: WorkloadPath) -> str:
    """Return the file that MPI-IO moves most bytes of."""
    from mpiio_ext.pioneer.path import Template
    from mpiio_ext.tune.errors import TuneError

    moved: dict[str, int] = {}
    for row in path.table.select(["file", "layer", *(f"size_{g}" for g in range(path.group_count))]).to_pylist():
        if row["layer"] == "mpiio" and row["file"] is not None:
            size = sum(row[f"size_{group}"] or 0 for group in range(path.group_count))
            moved[row["file"]] = moved.get(row["file"], 0) + size
    if not moved or max(moved.values()) == 0:
        raise TuneError("the program moves no data through MPI-IO: there are no hints to find")
    return Template(max(moved, key=lambda name: moved[name])).name(0)


def _trace(command: tuple[str, ...], log: Path, limit_s: float, before: str | None) -> _Traced:
    """Run the program once under the tracer."""
    from mpiio_ext.tune.errors import ProgramError, TuneError
    from mpiio_ext.tune.setting import BASELINE
    from mpiio_ext.tune.trial import ProcessRunner

    folder = log / "trace"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def launch(variables: Mapping[str, str], without: tuple[str, ...]) -> Launch:
        del variables, without
        return plan_launch(command, str(get_tracer()), {"MPIOX_TRACE_DIR": str(folder)})

    outcome = ProcessRunner(launch=launch, hints_text=lambda _: "", log=log, before=before)(BASELINE, 0, limit_s)
    if outcome.status == "stopped":
        raise TuneError(f"the traced run did not end within {limit_s:g} s: use a larger --trace-limit")
    if outcome.status != "ok":
        raise ProgramError(f"the program fails as it is, under the tracer: {outcome.reason}", outcome.exit_status)
    path = _path_of(folder)
    return _Traced(elapsed_s=outcome.elapsed_s, path=path, main=_main_file(path))


@contextmanager
def _scratch(wanted: str | None, main: str) -> Iterator[Path]:
    """Make a folder beside the program's files, or in the one that is wanted; take it away in the end."""
    from mpiio_ext.tune.errors import TuneError

    parent = Path(wanted) if wanted is not None else Path(main).parent
    try:
        folder = Path(tempfile.mkdtemp(prefix="mpiio-ext-advise-", dir=parent))
    except OSError as error:
        raise TuneError(f"cannot make a folder in {parent} ({error.strerror}): name one on the same file system with "
                        "--scratch") from error  # fmt: skip
    try:
        yield folder.resolve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- promised and had ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """What the program had.

    Attributes
    ----------
    evidence : of pairs of its runs.
    promised_s : its seconds with the hints, by what its path's calls take less; None where another number was judged.
    promised : how many times as fast that is.
    """

    evidence: Evidence
    promised_s: float | None
    promised: float


def _runs(
    job: _Job, runner: Any, setting: Setting, *, pairs: int, limit_s: float, seed: int
) -> tuple[list[float], list[float]]:
    """Run the program under the MPI library alone and under the setting, in pairs of random order."""
    from mpiio_ext.tune.errors import TuneError
    from mpiio_ext.tune.setting import BASELINE

    chance, costs = random.Random(seed), {BASELINE: list[float](), setting: list[float]()}
    for number in range(pairs):
        for place, one in enumerate(chance.sample([BASELINE, setting], 2)):
            outcome: Outcome = runner(one, 1 + 2 * number + place, limit_s)
            if outcome.status != "ok":
                raise TuneError(f"--check: the program fails {'with the hints' if one == setting else 'as it is'}: "
                                f"{outcome.reason}")  # fmt: skip
            costs[one].append(job.metric.cost(outcome))
    return costs[BASELINE], costs[setting]


def _checked(job: _Job, result: Result, traced: _Traced, asked: _Asked) -> _Check:
    """Run the program itself; `job` is about it."""
    from mpiio_ext.tune.evidence import evidence
    from mpiio_ext.tune.objective import Elapsed
    from mpiio_ext.tune.trial import ProcessRunner

    assert result.evidence is not None and result.candidate is not None and asked.check is not None
    folder = asked.log / "check"
    folder.mkdir(exist_ok=True)
    runner = ProcessRunner(launch=job.launch, hints_text=job.hints_text, log=folder, before=asked.before)
    limit_s = max(_STOP_FACTOR * traced.elapsed_s, _LEAST_LIMIT_S)
    before, after = _runs(job, runner, result.candidate, pairs=asked.check, limit_s=limit_s, seed=asked.seed)
    found = evidence(before, after, asked.confidence)
    if not isinstance(job.metric, Elapsed):
        return _Check(evidence=found, promised_s=None, promised=result.evidence.gain)
    saved_s = result.evidence.baseline_cost * (1 - 1 / result.evidence.gain)
    promised_s = max(found.baseline_cost - saved_s, 1e-9)
    return _Check(evidence=found, promised_s=promised_s, promised=found.baseline_cost / promised_s)


def _promise(result: Result) -> str:
    found = result.evidence
    assert found is not None
    return (f"promised: the calls of the path take {found.cost:.4g} s in place of {found.baseline_cost:.4g} s, "
            f"{found.gain:.3g} times as fast")  # fmt: skip


def _had(check: _Check, metric: Metric) -> list[str]:
    found = check.evidence
    before, after = metric.shown(found.baseline_cost), metric.shown(found.cost)
    promised = "" if check.promised_s is None else f", {check.promised_s:.4g} s in place of {before}"
    return [
        f"promised for the program: {check.promised:.3g} times as fast{promised}",
        f"had by the program: {found.gain:.3g} times as fast ({found.confidence:.0%} confidence: {found.low:.3g} to "
        f"{found.high:.3g}; {found.pairs} pairs of runs in random order; {after} in place of {before})",
    ]


def _add(path: Path, lines: Sequence[str]) -> None:
    """Put comment lines at the head of a hints file."""
    from mpiio_ext.tune import hintsfile

    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    hintsfile.write(path, "".join(f"# {line}\n" for line in lines) + text)


def _add_json(path: Path, check: _Check | None, traced: _Traced, command: Sequence[str]) -> None:
    from mpiio_ext.tune import hintsfile

    found = json.loads(path.read_text(encoding="utf-8"))
    found["advise"] = {
        "command": list(command), "traced_s": traced.elapsed_s, "operations": traced.path.table.num_rows,
        "main_file": traced.main, "promised_gain": None if check is None else check.promised,
        "check": None if check is None else dataclasses.asdict(check.evidence),
    }  # fmt: skip
    hintsfile.write(path, json.dumps(found, indent=1) + "\n")


# ---- the command -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the options say."""

    command: tuple[str, ...]
    starter: tuple[str, ...]
    budget_s: float
    trace_limit_s: float
    trials: int | None
    time_scale: float
    output: Path
    scratch: str | None
    before: str | None
    log: Path
    json_file: Path | None
    check: int | None
    metric: Metric
    confidence: float
    seed: int


def _advise(asked: _Asked) -> list[str]:
    """Do all phases; return a line for each result that could not be put where it belongs."""
    from mpiio_ext.tune.objective import InOutput
    from mpiio_ext.tune.space import Options
    from mpiio_ext.tune.tuner import Plan

    traced = _trace(asked.command, asked.log, asked.trace_limit_s, asked.before)
    file = asked.log / "path.parquet"
    traced.path.save(file)
    click.echo(f"traced: {traced.elapsed_s:.2f} s, {traced.path.info.ranks} ranks, "
               f"{traced.path.table.num_rows:,} operations; most data in {traced.main}")  # fmt: skip
    with _scratch(asked.scratch, traced.main) as folder:
        words = replay_command(asked.starter, file, folder, time_scale=asked.time_scale)
        calls = InOutput(re.compile(CALLS_TIME), lower_is_better=True)
        about = ("", "Found by mpiio-ext advise on the workload path of one run, carried out by as many ranks, against",
                 f"the MPI library alone. The program: {' '.join(asked.command)}")  # fmt: skip
        job = _Job(command=words, glob="*", options=Options(), metric=calls, about=about)
        tuned = Plan(budget_s=asked.budget_s, trials=asked.trials, confidence=asked.confidence, seed=asked.seed,
                     subject="the replay of the program's path")  # fmt: skip
        result = _tune(job, tuned, asked.log, None)
    failures = _finish(result, job, asked.budget_s, asked.output, asked.json_file)
    if result.interrupted:
        raise SystemExit(_INTERRUPTED)
    check: _Check | None = None
    if result.verdict == "wins":
        lines = [_promise(result)]
        if asked.check is not None:
            real = dataclasses.replace(job, command=asked.command, metric=asked.metric)
            check = _checked(real, result, traced, asked)
            lines += _had(check, asked.metric)
        click.echo("\n".join(lines))
        if not failures:
            _add(asked.output, lines)
    if asked.json_file is not None and not failures:
        _add_json(asked.json_file, check, traced, asked.command)
    return failures


def _pairs(check: bool, pairs: int | None, confidence: float) -> int | None:
    """Return the number of pairs of the check; None: without one."""
    from mpiio_ext.tune.evidence import least_pairs

    if not check:
        if pairs is not None:
            raise click.UsageError("--pairs needs --check")
        return None
    least = least_pairs(confidence)
    if pairs is not None and pairs < least:
        text = f"{pairs} pairs prove nothing at this confidence; at least {least} do"
        raise click.BadParameter(text, param_hint="--pairs")
    return pairs or least


def _prepare(output: str, log: str | None, json_file: str | None) -> tuple[Path, Path, Path | None]:
    """Return where results go, after a check of everything that would fail after the first run."""
    from mpiio_ext.tune.errors import need
    from mpiio_ext.tune.targets import check_targets

    _check_library()
    need("optuna")
    need("scipy.stats")
    need("pyarrow")
    places = Path(output), Path(log or f"{output}.log").absolute(), None if json_file is None else Path(json_file)
    check_targets(places[0], places[2], places[1], None)
    return places


@click.command(context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]})
@click.option("--budget", type=_Duration(), default="5m", show_default=True, help="Time for tuning: 90s, 5m, 1h30m.")
@click.option("--trace-limit", type=_Duration(), default="1h", show_default=True, help="Most time of the traced run.")
@click.option("--trials", type=click.IntRange(min=1), help="Search at most so many settings.")
@click.option("--time-scale", type=click.FloatRange(min=0), default=1.0, show_default=True, metavar="X",
              help="What the program computes between its calls, times X; 0: its I/O alone, which takes less time.")
@click.option("-o", "--output", default="advised.hints", show_default=True, metavar="FILE", help="Hints file to write.")
@click.option("--scratch", metavar="FOLDER", help="Where the path is carried out.  [default: beside the main file]")
@click.option("--check", is_flag=True, help="Then run the program natively and with the hints: what gain had it?")
@click.option("--pairs", type=click.IntRange(min=1), metavar="N", help="Of the check.  [default: as few as prove it]")
@click.option("--metric-regex", "pattern", metavar="REGEX", help="Check by a bandwidth in the program's output.")
@click.option("--lower-is-better", is_flag=True, help="The number of --metric-regex is a time.")
@click.option("--before", metavar="CMD", help="Shell command before each run of the program: delete its files.")
@click.option("--log", metavar="FOLDER", help="Trace, path and output of every run.  [default: FILE.log]")
@click.option("--json", "json_file", metavar="FILE", help="Write every run as JSON.")
@click.option("--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGS]...")
def advise(
    budget: float, trace_limit: float, trials: int | None, time_scale: float, output: str, scratch: str | None,
    check: bool, pairs: int | None, pattern: str | None, lower_is_better: bool, before: str | None, log: str | None,
    json_file: str | None, confidence: float, seed: int, command: tuple[str, ...],
) -> None:  # fmt: skip
    """Run PROGRAM once, find hints for what it has done, and write them to a hints file.

    \b
      mpiio-ext advise -- mpirun -n 4 ./app
      mpiio-ext advise --check --budget 2m -o app.hints -- mpirun -n 4 ./app

    The run is traced; its I/O is then carried out by itself, in a folder beside the program's files, under many
    settings. The hints are written when they beat the MPI library alone. With --check PROGRAM runs again, natively and
    with the hints, which shows the gain that it has beside the one that was promised.
    """  # noqa: D301  (click wants the backspace character itself)
    metric = _metric("elapsed", pattern, lower_is_better)
    try:
        select_library(command)
        starter, _ = split_command(command, family())
        plan_launch(command, str(get_library()), {})  # refuses the starter of another MPI library
        os.environ.update(_settings((_NATIVE,), None, None))
        hints, folder, json_path = _prepare(output, log, json_file)
        failures = _advise(_Asked(
            command=command, starter=starter, budget_s=budget, trace_limit_s=trace_limit, trials=trials,
            time_scale=time_scale, output=hints, scratch=scratch, before=before, log=folder, json_file=json_path,
            check=_pairs(check, pairs, confidence), metric=metric, confidence=confidence, seed=seed,
        ))  # fmt: skip
    except KeyboardInterrupt as error:
        raise SystemExit(_INTERRUPTED) from error
    except (MpiioExtError, ValueError, OSError) as error:
        click.echo(f"mpiio-ext advise: {error}", err=True)
        raise SystemExit(getattr(error, "exit_status", 1)) from error
    for failure in failures:
        click.echo(f"mpiio-ext advise: {failure}", err=True)
    if failures:
        raise SystemExit(1)
