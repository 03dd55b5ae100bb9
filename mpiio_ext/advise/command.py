"""``mpiio-ext advise``: hints for a program from one run of it.

Problem.   Tuning runs the program again and again; a program that computes for hours cannot be.
Algorithm. One run is traced. Its workload path, with what each rank has done, is carried out by as many ranks in a
           folder beside the program's files, and `mpiio-ext tune` finds hints for that, against the MPI library alone.
           With ``--check`` the program itself then runs under the MPI library alone and under the hints, in pairs.
Promise. The program should save the time that the path's calls save with the hints. Its whole time with them is
           promised from that; what it had is measured in the check.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext._load import family, get_library, get_tracer
from mpiio_ext.advise.checkpoints import checkpoints_of
from mpiio_ext.advise.workload import can_be_shortened, seconds_of, shortened, start_seconds, usage_of
from mpiio_ext.cli.run import plan_launch, select_library, settings_of
from mpiio_ext.common.commands import (
    FAILED,
    INTERRUPTED,
    Command,
    json_option,
    json_result,
    output_option,
    reporting,
    warn,
)
from mpiio_ext.common.options import Duration, Existing
from mpiio_ext.common.printing import echo
from mpiio_ext.common.units import digits_text
from mpiio_ext.launchers import Launch, launcher_family
from mpiio_ext.tune.budget import LEAST_CONFIDENCE, Costs, Refusal, Runs, choose_runs, least_seconds
from mpiio_ext.tune.errors import TooShort, TuneError
from mpiio_ext.tune.evidence import least_pairs
from mpiio_ext.tune.job import Job, check_library, finish, metric_of, ranks_in, tune
from mpiio_ext.tune.replayed import CALLS_TIME, replay_command

if TYPE_CHECKING:
    from mpiio_ext.pioneer.path import WorkloadPath
    from mpiio_ext.tune.evidence import Evidence
    from mpiio_ext.tune.objective import Metric
    from mpiio_ext.tune.outcome import Result
    from mpiio_ext.tune.setting import Setting
    from mpiio_ext.tune.trial import Outcome

_NATIVE = "mpiox_enable=false"
#: A run of the check is stopped after this multiple of the traced one's time, but not before this many seconds.
_STOP_FACTOR, _LEAST_LIMIT_S = 10.0, 30.0
#: Least time of the calls of a run for which advice is useful.
_SHORTEST_RUN_S = 0.1
#: Of a path; shorter ones are not shortened again.
_LEAST_ROWS = 4
_CONFIDENCE = 0.95


def split_command(command: Sequence[str], family: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the launcher with its options, and the program with its arguments. Without a launcher the former is empty.

    The program is the first word behind the launcher that can be executed.

    Raises
    ------
    click.UsageError
        No word behind the launcher is a program, or the command starts several programs.
    """
    if launcher_family(command[0], family) is None:
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

_NO_MPI_IO = "the program moves no data through MPI-IO: there are no hints to find"


def _path_of(folder: Path) -> WorkloadPath:
    """Return the path of a trace: of every rank if there are not too many, else of representatives."""
    from mpiio_ext.pioneer.cli_loss import say_loss
    from mpiio_ext.pioneer.engine import without_names
    from mpiio_ext.pioneer.path import MOST_GROUPS
    from mpiio_ext.pioneer.traces import path_of, read_sanitized, tables_of

    info, rows = read_sanitized([folder])
    tables = tables_of(rows)
    say_loss(info)
    if not tables:
        saw = any(folder.iterdir())  # the tracer, that the program began: a file for each process
        raise TuneError(_NO_MPI_IO if saw else "the tracer saw no program: is it a dynamically linked one?")
    each_rank = len(tables) <= MOST_GROUPS
    if not each_rank:
        echo(f"{len(tables)} ranks: a path distinguishes {MOST_GROUPS}: one rank stands for those like it")
    return without_names(path_of(tables, info, each_rank=each_rank))


def _main_file(path: WorkloadPath) -> str:
    """Return the file that MPI-IO moves most bytes of."""
    from mpiio_ext.pioneer.path import Template

    moved: dict[str, int] = {}
    for row in path.table.select(["file", "layer", *(f"size_{g}" for g in range(path.group_count))]).to_pylist():
        if row["layer"] == "mpiio" and row["file"] is not None:
            size = sum(row[f"size_{group}"] or 0 for group in range(path.group_count))
            moved[row["file"]] = moved.get(row["file"], 0) + size
    if not moved or max(moved.values()) == 0:
        raise TuneError(_NO_MPI_IO)
    return Template(max(moved, key=lambda name: moved[name])).name(0)


def _trace(command: tuple[str, ...], log: Path, limit_s: float, before: str | None) -> _Traced:
    """Run the program once under the tracer."""
    from mpiio_ext.tune.errors import ProgramError
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
    """Make a folder beside the program's files, or in the given folder; remove it at the end."""
    parent = Path(wanted) if wanted is not None else Path(main).parent
    try:
        folder = Path(tempfile.mkdtemp(prefix="mpiio-ext-advise-", dir=parent))
    except OSError as error:
        raise TuneError(
            f"cannot make a folder in {parent} ({error.strerror}): name one on the same file system with --scratch"
        ) from error
    try:
        yield folder.resolve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- promised and had ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """The promised and the measured gain of the program.

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
    job: Job, runner: Any, setting: Setting, *, pairs: int, limit_s: float, seed: int
) -> tuple[list[float], list[float]]:
    """Run the program under the MPI library alone and under the setting, in pairs of random order."""
    from mpiio_ext.tune.setting import BASELINE

    chance, costs = random.Random(seed), {BASELINE: list[float](), setting: list[float]()}
    for number in range(pairs):
        for place, one in enumerate(chance.sample([BASELINE, setting], 2)):
            outcome: Outcome = runner(one, 1 + 2 * number + place, limit_s)
            if outcome.status != "ok":
                raise TuneError(
                    f"--check: the program fails {'with the hints' if one == setting else 'as it is'}: {outcome.reason}"
                )
            costs[one].append(job.metric.cost(outcome))
    return costs[BASELINE], costs[setting]


def _checked(job: Job, result: Result, traced: _Traced, asked: _Asked) -> _Check:
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
    return (
        f"promised: the calls of the path take {digits_text(found.cost, 4)} s in place of "
        f"{digits_text(found.baseline_cost, 4)} s, "
        f"{digits_text(found.gain)} times as fast"
    )


def _had(check: _Check, metric: Metric) -> list[str]:
    found = check.evidence
    before, after = metric.shown(found.baseline_cost), metric.shown(found.cost)
    promised = "" if check.promised_s is None else f", {digits_text(check.promised_s, 4)} s in place of {before}"
    return [
        f"promised for the program: {digits_text(check.promised)} times as fast{promised}",
        f"measured for the program: {digits_text(found.gain)} times as fast ({found.confidence:.0%} confidence: "
        f"{digits_text(found.low)} to {digits_text(found.high)}; {found.pairs} pairs of runs in random order; "
        f"{after} in place of {before})",
    ]


def _add(path: Path, lines: Sequence[str]) -> None:
    """Put comment lines at the head of a hints file."""
    from mpiio_ext.tune import hintsfile

    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    hintsfile.write(path, "".join(f"# {line}\n" for line in lines) + text)


def _json_of(check: _Check | None, traced: _Traced, command: Sequence[str]) -> dict[str, Any]:
    return {
        "command": list(command),
        "traced_s": traced.elapsed_s,
        "operations": traced.path.table.num_rows,
        "main_file": traced.main,
        "promised_gain": None if check is None else check.promised,
        "check": None if check is None else dataclasses.asdict(check.evidence),
        "proposed": list(found.hints) if (found := checkpoints_of(traced.path)) is not None else [],
    }


# ---- the command -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The values of the options."""

    command: tuple[str, ...]
    launcher: tuple[str, ...]
    budget_s: float
    trace_limit_s: float
    trials: int | None
    time_scale: float
    output: Path
    scratch: str | None
    before: str | None
    log: Path
    put: Callable[[str], None] | None
    check: int | None
    metric: Metric
    confidence: float
    may_fall: bool
    seed: int


def _before(asked: _Asked) -> float:
    """Print the work that the budget must cover, before anything runs; return the seconds of a start of the ranks.

    Raises
    ------
    TuneError
        The budget is too short for a decision, however short the program is.
    """
    ranks = ranks_in(asked.launcher) if asked.launcher else 1
    start_s = start_seconds(ranks)
    costs = Costs(start_s=start_s, run_s=_SHORTEST_RUN_S, io_s=_SHORTEST_RUN_S)
    found = choose_runs(asked.budget_s, costs, asked.confidence, may_fall=asked.may_fall)
    least = least_pairs(LEAST_CONFIDENCE if asked.may_fall else asked.confidence)
    runs = least_seconds(1.0, LEAST_CONFIDENCE if asked.may_fall else asked.confidence)
    if isinstance(found, Refusal):
        raise TuneError(
            f"the budget of {asked.budget_s:g} s is too short, whatever the program does: use --budget "
            f"{math.ceil(1.5 * found.needed_s)}s at least. Starting {ranks} ranks takes about {start_s:.1f} s here, "
            f"and a decision {runs:.0f} times the time of the program's calls ({least} pairs of runs)"
        )
    most_s = (asked.budget_s - start_s) / runs
    echo(
        f"budget: {asked.budget_s:g} s, of which a start of {ranks} ranks takes about {start_s:.1f} s; for a "
        f"decision the calls of the program, or of a part of it, may take {digits_text(most_s, 2)} s"
    )
    return start_s


def _work(asked: _Asked, path: WorkloadPath, costs: Costs, budget_s: float) -> tuple[WorkloadPath, Runs]:
    """Return as much of a path as fits the budget, and print what was left out."""
    found = choose_runs(budget_s, costs, asked.confidence, may_fall=asked.may_fall, may_shorten=can_be_shortened(path))
    if isinstance(found, Refusal):
        needed = math.ceil(asked.budget_s + 1.2 * (found.needed_s - budget_s))
        raise TuneError(
            f"the budget of {asked.budget_s:g} s is too short: the calls take about {costs.io_s:.1f} s, "
            f"with pauses {costs.run_s:.1f} s: use --budget {needed}s at least"
        )
    left_away = [] if found.pauses else ["the pauses between the calls"]
    left_away += [] if found.share == 1 else [f"all but the first {found.share:.1%} of the data accesses"]
    echo(
        f"it is enough for {found.candidates} settings, and for {found.pairs} pairs of runs for a decision at "
        f"{found.confidence:.3g} confidence" + "".join(f"; without {one}" for one in left_away)
    )
    return (path if found.share == 1 else shortened(path, found.share)), found


def _tuned(asked: _Asked, traced: _Traced, start_s: float, folder: Path) -> tuple[Job, Result]:
    """Tune as much of the path as fits the budget; if a run takes longer than planned, tune less."""
    from mpiio_ext.tune.objective import InOutput
    from mpiio_ext.tune.outcome import Plan
    from mpiio_ext.tune.space import Options

    run_s, io_s = seconds_of(traced.path)
    costs = Costs(start_s=start_s, run_s=asked.time_scale * (run_s - io_s) + io_s, io_s=io_s)
    file, path, left_s, share = asked.log / "path.parquet", traced.path, asked.budget_s, 1.0
    while True:
        path, runs = _work(asked, path, costs, left_s)
        share *= runs.share
        path.save(file)
        words = replay_command(asked.launcher, file, folder, time_scale=asked.time_scale if runs.pauses else 0.0)
        part = "" if share == 1 else f" (the first {share:.1%} of its accesses)"
        pauses = "" if runs.pauses else " without its pauses"
        about = (
            "",
            f"Found by mpiio-ext advise on the workload path of one run{part}{pauses}, carried out by as many",
            f"ranks, against the MPI library alone. The program: {' '.join(asked.command)}",
        )
        job = Job(
            command=words,
            glob="*",
            options=Options(),
            about=about,
            usage=usage_of(path),
            served=True,
            metric=InOutput(re.compile(CALLS_TIME), lower_is_better=True),
        )
        plan = Plan(
            budget_s=left_s,
            trials=asked.trials,
            confidence=runs.confidence,
            may_fall=asked.may_fall,
            seed=asked.seed,
            subject="the replay of the program's path",
        )
        try:
            return job, tune(job, plan, asked.log, None)
        except TooShort as error:
            left_s = error.left_s
            if left_s <= 0 or not can_be_shortened(path) or path.table.num_rows < _LEAST_ROWS:
                needed = math.ceil(asked.budget_s + error.more_s)
                why = f"a run still takes {error.run_s:.1f} s" if error.left_s > 0 else "it ended before the first run"
                raise TuneError(
                    f"the budget of {asked.budget_s:g} s is too short: {why}: use --budget {needed}s at "
                    "least, better twice that"
                ) from error
            echo(f"a run takes {digits_text(error.run_s, 2)} s, longer than in the trace")
            costs = Costs(start_s=start_s, run_s=error.run_s, io_s=min(error.run_s, costs.io_s))


def _advise(asked: _Asked) -> list[str]:
    """Carry out all phases; return a line for each result that could not be written to its place."""
    start_s = _before(asked)
    traced = _trace(asked.command, asked.log, asked.trace_limit_s, asked.before)
    echo(
        f"traced: {traced.elapsed_s:.2f} s, {traced.path.info.ranks} ranks, "
        f"{traced.path.table.num_rows:,} operations; most data in {traced.main}"
    )
    if (checkpoints := checkpoints_of(traced.path)) is not None:
        echo(f"it computes between {checkpoints}")
    with _scratch(asked.scratch, traced.main) as folder:
        job, result = _tuned(asked, traced, start_s, folder)
    found: dict[str, Any] = {}
    failures = finish(result, job, asked.budget_s, asked.output, found.update)
    try:
        if result.interrupted:
            raise SystemExit(INTERRUPTED)
        found["advise"] = _json_of(_judged(asked, job, result, traced, failures), traced, asked.command)
    finally:
        if asked.put is not None:
            asked.put(json.dumps(found, indent=1))
    return failures


def _judged(asked: _Asked, job: Job, result: Result, traced: _Traced, failures: Sequence[str]) -> _Check | None:
    """Print the gain of the program, and measure it if requested; None: not measured."""
    check: _Check | None = None
    if result.verdict == "wins":
        lines = [_promise(result)]
        if asked.check is not None:
            real = dataclasses.replace(job, command=asked.command, metric=asked.metric)
            check = _checked(real, result, traced, asked)
            lines += _had(check, asked.metric)
        echo("\n".join(lines))
        if not failures:
            _add(asked.output, lines)
    return check


def _pairs(check: bool, pairs: int | None, confidence: float) -> int | None:
    """Return the number of pairs of the check; None if there is no check."""
    if not check:
        if pairs is not None:
            raise click.UsageError("--pairs needs --check")
        return None
    least = least_pairs(confidence)
    if pairs is not None and pairs < least:
        text = f"{pairs} pairs prove nothing at this confidence; at least {least} do"
        raise click.BadParameter(text, param_hint="--pairs")
    return pairs or least


def _prepare(output: str, log: str | None) -> tuple[Path, Path]:
    """Return the places of the results, after a check of every condition that would fail only after the first run."""
    from mpiio_ext.tune.errors import need
    from mpiio_ext.tune.targets import check_targets

    check_library()
    need("optuna")
    need("scipy.stats")
    need("pyarrow")
    places = Path(output), Path(log or f"{output}.log").absolute()
    check_targets(*places)
    return places


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@click.option(
    "--budget", "budget_s", type=Duration(), default="5m", show_default=True, help="Time for tuning: 90s, 5m, 1h30m."
)
@click.option(
    "--trace-limit",
    "trace_limit_s",
    type=Duration(),
    default="1h",
    show_default=True,
    help="Most time of the traced run.",
)
@click.option("--trials", type=click.IntRange(min=1), help="Search at most so many settings.")
@click.option(
    "--time-scale",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Scale of the program's pauses between its calls; 0: its I/O alone, which takes less time.",
)
@output_option(default="advised.hints", show_default=True, metavar="FILE", help="Hints file to write.")
@click.option(
    "--scratch",
    metavar="FOLDER",
    type=Existing(file_okay=False, writable=True),
    help="Folder in which the path is carried out.  [default: beside the main file]",
)
@click.option("--check", is_flag=True, help="Then run the program natively and with the hints, and measure the gain.")
@click.option(
    "--pairs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Pairs of runs of the check.  [default: as few as prove it]",
)
@click.option("--metric-regex", "pattern", metavar="REGEX", help="Check by a bandwidth in the program's output.")
@click.option("--lower-is-better", is_flag=True, help="The number of --metric-regex is a time.")
@click.option("--before", metavar="CMD", help="Shell command before each run of the program: delete its files.")
@click.option("--log", metavar="FOLDER", help="Trace, path and output of every run.  [default: FILE.log]")
@json_option("Print every run as JSON; all else goes to standard error.")
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.9999),
    help="Confidence of the decision.  [default: 0.95; less, but not below 0.75, if the budget allows no more]",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGS]...")
def advise(
    output: str,
    check: bool,
    pairs: int | None,
    pattern: str | None,
    lower_is_better: bool,
    log: str | None,
    as_json: bool,
    confidence: float | None,
    command: tuple[str, ...],
    **asked: Any,
) -> None:
    """Run PROGRAM once, find hints for its I/O, and write them to a hints file.

    \b
      mpiio-ext advise -- mpirun -n 4 ./app
      mpiio-ext advise --check --budget 2m -o app.hints -- mpirun -n 4 ./app

    The run is traced; its I/O is then replayed without the program, in a folder beside the program's files, under many
    settings. The hints are written when they beat the MPI library alone. With --check PROGRAM runs again, natively and
    with the hints, and the command prints the measured gain beside the promised one.
    """  # noqa: D301  (click wants the backspace character itself)
    metric = metric_of("elapsed", pattern, lower_is_better)
    with reporting(ValueError, OSError, status=FAILED):
        select_library(command)
        launcher, _ = split_command(command, family())
        plan_launch(command, str(get_library()), {})  # refuses the launcher of another MPI library
        os.environ.update(settings_of((_NATIVE,), None))
        hints, folder = _prepare(output, log)
        with json_result(as_json) as put:
            failures = _advise(
                _Asked(
                    command=command,
                    launcher=launcher,
                    output=hints,
                    log=folder,
                    put=put if as_json else None,
                    check=_pairs(check, pairs, confidence or _CONFIDENCE),
                    metric=metric,
                    confidence=confidence or _CONFIDENCE,
                    may_fall=confidence is None,
                    **asked,
                )
            )
    for failure in failures:
        warn(failure)
    if failures:
        raise SystemExit(1)
