"""``mpiio-ext tune``: find hints that make a program faster, and prove it before keeping them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiio_ext._load import get_library
from mpiio_ext.cli.run import _settings, plan_launch, select_library
from mpiio_ext.cli.synthetic import CALLS_TIME, END_MARK, file_of_kernel, replay_command
from mpiio_ext.cli.words import complete_command, complete_hint
from mpiio_ext.common.options import Duration
from mpiio_ext.errors import MpiioExtError
from mpiio_ext.launchers import Launch, plan

if TYPE_CHECKING:
    from mpiio_ext.tune.hintsfile import OwnHints
    from mpiio_ext.tune.objective import Metric
    from mpiio_ext.tune.program import Present
    from mpiio_ext.tune.report import Subject
    from mpiio_ext.tune.setting import Setting
    from mpiio_ext.tune.space import Options, Space, Usage
    from mpiio_ext.tune.trial import Outcome
    from mpiio_ext.tune.tuner import Plan, Record, Result

__all__ = ["tune"]

_INTERRUPTED = 130


@dataclass(slots=True, kw_only=True)
class _Job:
    """What the phases share: filled when the baseline has run.

    `choose` says that the first run chooses the metric, `why_metric` why it has chosen this one. `about` are lines for
    the head of the hints file. `usage` are the kinds of access, where they are known without the baseline's statistics.
    `served` says that the command carries out a path, which its ranks can do again and again.
    """

    command: tuple[str, ...]
    glob: str
    options: Options
    metric: Metric
    choose: bool = False
    why_metric: str = ""
    own: OwnHints | None = None
    present: Present | None = None
    about: tuple[str, ...] = ()
    usage: Usage | None = None
    served: bool = False

    def launch(self, variables: Mapping[str, str], without: tuple[str, ...]) -> Launch:
        """Work out what to execute, as `mpiio-ext run` does."""
        import mpiio_ext
        from mpiio_ext._load import family

        environment = {name: value for name, value in os.environ.items() if name not in without}
        library = str(mpiio_ext.get_library())
        return plan(self.command, library=library, settings=variables, family=family(), environment=environment)

    def hints_text(self, setting: Setting) -> str:
        """Return the hints file of a run."""
        from mpiio_ext.tune.hintsfile import text_of

        assert self.own is not None
        return text_of(self.own, self.glob, setting)

    def judge(self, outcome: Outcome) -> Metric:
        """Choose the metric by the baseline."""
        from mpiio_ext.tune.objective import choose

        self.metric, self.why_metric = choose(outcome)
        self.options = dataclasses.replace(self.options, native=self.metric.times_native)
        return self.metric

    def space(self, outcome: Outcome) -> Space:
        """Learn from the baseline what there is to search."""
        from mpiio_ext.tune import program
        from mpiio_ext.tune.hintsfile import own_hints
        from mpiio_ext.tune.space import build

        uses = program.matching(outcome, self.glob)
        self.present = program.present_hints(uses)
        self.own = own_hints(sorted({use.path for use in outcome.files}), os.environ)
        return build(
            self.usage or program.usage_of(uses),
            self.options,
            defaults=program.registry_defaults(),
            in_force=self.present.values,
            user=frozenset(self.present.sources),
            removable=program.removable_hints(self.present, self.glob),
        )


def _metric(kind: str, pattern: str | None, lower: bool) -> Metric:
    from mpiio_ext.tune.objective import Elapsed, InOutput, InsideAccess

    if pattern is None:
        if lower:
            raise click.UsageError("--lower-is-better needs --metric-regex")
        return InsideAccess() if kind == "io" else Elapsed()
    try:
        return InOutput(re.compile(pattern, re.MULTILINE), lower)
    except re.error as error:
        text = f"{pattern!r} is not a regular expression: {error}"
        raise click.BadParameter(text, param_hint="--metric-regex") from error


def _of_path(launcher: tuple[str, ...], kernel: str, scratch: str | None) -> tuple[str, ...]:
    """Return the command that carries out the workload path of --kernel."""
    file = file_of_kernel(kernel)
    folder = Path(scratch or ".") / f"{file.stem}.replay"  # its own: a replay takes no folder with files of others
    return replay_command(launcher, file, folder.absolute())


def _ranks_in(command: tuple[str, ...]) -> int:
    """Return the number of ranks that a launcher's options ask for; 4 where none is found."""
    for index, word in enumerate(command):
        match = re.fullmatch(r"(?:-n|-np|-c|--n|--np|--ntasks)(?:=(\d+))?", word)
        text = (match[1] or "".join(command[index + 1 : index + 2])) if match else ""
        if text.isdigit() and int(text) > 0:
            return int(text)
    return 4


def _dry_run(job: _Job) -> None:
    """Print the space and the first settings as they would be for a program of collective and independent accesses."""
    from mpiio_ext.hints import in_force
    from mpiio_ext.tune import program, report
    from mpiio_ext.tune.space import Usage, build

    ranks = _ranks_in(job.command)
    found = in_force("")
    present = program.Present(
        values={item.spec.name: item.value for item in found},
        sources={item.spec.name: item.source for item in found if item.source != "default"},
    )
    space = build(
        Usage(ranks=ranks),
        job.options,
        defaults=program.registry_defaults(),
        in_force=present.values,
        user=frozenset(present.sources),
        removable=program.removable_hints(present, job.glob),
    )
    click.echo(f"space for {ranks} ranks (kinds of access are learnt from the first run):")
    click.echo(f"  ways: {' '.join(space.ways)}")
    if job.choose:
        click.echo("  (native is left out if the first run shows that runs are better judged by --metric io)")
    rows = [(item.hint, item.values, sorted(item.ways)) for item in space.parameters]
    click.echo("\n".join(report.space_lines(rows)))
    click.echo("first settings, after the program as it is:")
    for point in space.starting_points():
        click.echo(report.trial_line(point, space.setting_of(point)))


@contextlib.contextmanager
def _progress(budget_s: float, job: _Job) -> Iterator[Callable[[Record], None]]:
    """Show a bar on a terminal; be quiet elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    best: dict[str, float] = {}
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("as it is", total=budget_s)

        def notify(record: Record) -> None:
            if record.cost is not None:
                best["cost"] = min(best.get("cost", record.cost), record.cost)
            seen = f", best {job.metric.shown(best['cost'])}" if best else ""
            text = f"{record.phase}, run {record.number}{seen}"
            progress.update(task, description=text, completed=progress.tasks[0].elapsed)

        yield notify


def _interrupt(number: int, frame: object) -> None:  # noqa: ARG001  (a signal handler's arguments)
    raise KeyboardInterrupt


def _check_library() -> None:
    """Refuse to start when the library that every rank is to load is not there."""
    import mpiio_ext
    from mpiio_ext.tune.errors import TuneError

    library = mpiio_ext.get_library()
    if not library.exists():
        raise TuneError(f"the library {library} is missing: build and install mpiio_ext again (`make build`)")


def _tune(job: _Job, asked: Plan, log: Path, before: str | None) -> Result:
    """Run all phases, with SIGTERM taken for Ctrl-C."""
    from mpiio_ext.tune.served import ServedRunner
    from mpiio_ext.tune.trial import ProcessRunner
    from mpiio_ext.tune.tuner import Tuner

    folder = log.absolute()  # ranks may have another working folder
    judge = job.judge if job.choose else None
    alone = ProcessRunner(launch=job.launch, hints_text=job.hints_text, log=folder, before=before)
    served = ServedRunner(alone, END_MARK) if job.served and not _asks_for_delegates() else None
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with _progress(asked.budget_s, job) as notify:
            tuner = Tuner(runner=served or alone, metric=job.metric, plan=asked, space_of=job.space, judge=judge,
                          notify=notify, start_s=served.start_s if served else lambda _: 0.0)  # fmt: skip
            return tuner.run()
    finally:
        if served is not None:
            served.close()
        signal.signal(signal.SIGTERM, previous)


def _asks_for_delegates() -> bool:
    """Whether the user's own hints may start delegates, which a job has from its start on."""
    file = os.environ.get("MPIOX_HINTS_FILE")
    text = os.environ.get("MPIOX_HINTS", "")
    with contextlib.suppress(OSError):  # said where it is read
        text += Path(file).read_text(encoding="utf-8", errors="replace") if file else ""
    return "mpiox_delegates" in text


def _tell(result: Result, subject: Subject, output: Path) -> None:
    """Print the result."""
    from mpiio_ext.tune import report

    click.echo("\n".join(report.lines(result, subject)))
    if result.verdict != "wins":
        kept = " (the one that is there is left as it was)" if output.exists() else ""
        click.echo(f"no hints file is written{kept}")


def _write_hints(result: Result, job: _Job, subject: Subject, output: Path) -> None:
    """Write the hints file of a setting that wins, and say how to use it."""
    from mpiio_ext.tune import hintsfile, report

    assert job.own is not None and result.candidate is not None
    reasons = report.reasons(subject, result.candidate)
    head = [*report.header(result, subject), *job.about]
    text = hintsfile.text_of(job.own, job.glob, result.candidate, head, reasons)
    hintsfile.write(output, text)
    click.echo(f"written: {output}; use it with: mpiio-ext run --hints-file {output} -- ...")
    if os.environ.get("MPIOX_HINTS") and not job.about:  # of the user: mpiio-ext advise sets them itself
        click.echo("  it includes the hints of MPIOX_HINTS and -H, which are stronger than a file: leave them away")


def _finish(result: Result, job: _Job, budget_s: float, output: Path, json_file: Path | None) -> list[str]:
    """Print the result, then write the JSON, then the hints file; return a line for each of them that failed.

    None of them keeps the others from being tried: the runs have cost what is hard to get again.
    """
    from mpiio_ext.tune import hintsfile, report

    subject = report.Subject(command=job.command, metric=job.metric, glob=job.glob, present=job.present,
                             budget_s=budget_s, why_metric=job.why_metric)  # fmt: skip
    won = result.verdict == "wins"

    def write_json(path: Path) -> None:
        found = report.as_json(result, subject, str(output) if won else None)
        hintsfile.write(path, json.dumps(found, indent=1) + "\n")

    steps: list[Callable[[], None]] = [lambda: _tell(result, subject, output)]
    if json_file is not None:
        steps.append(lambda: write_json(json_file))
    if won:
        steps.append(lambda: _write_hints(result, job, subject, output))
    failures = []
    for step in steps:
        try:
            step()
        except MpiioExtError as error:
            failures.append(str(error))
        except OSError as error:
            failures.append(f"cannot print the result: {error.strerror or error}")
    return failures


@click.command(context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]})
@click.option("--budget", type=Duration(), default="5m", show_default=True, help="Time for all: 90s, 5m, 1h30m.")
@click.option("--trials", type=click.IntRange(min=1), help="Search at most so many settings.")
@click.option("--metric", "kind", type=click.Choice(["auto", "elapsed", "io"]), default="auto", show_default=True,
              help="elapsed: the whole command; io: inside data access, by the statistics; auto: io where that is a "
                   "small part of the whole and can be told.")  # fmt: skip
@click.option("--metric-regex", "pattern", metavar="REGEX", help="Read a bandwidth from the output; higher is better.")
@click.option("--lower-is-better", is_flag=True, help="The number of --metric-regex is a time.")
@click.option("--files", "glob", default="*", show_default=True, metavar="GLOB", help="Search hints for these files.")
@click.option("-o", "--output", default="tuned.hints", show_default=True, metavar="FILE", help="Hints file to write.")
@click.option("-H", "--hint", multiple=True, metavar="[GLOB:]NAME=VALUE", shell_complete=complete_hint,
              help="A hint to begin with, and to beat.")  # fmt: skip
@click.option("--hints-file", metavar="FILE", help="Hints to begin with, and to beat.")
@click.option("--striping", is_flag=True, help="Also try striping_unit and striping_factor.")
@click.option("--allow-direct", is_flag=True, help="Also try direct I/O (direct_read, direct_write).")
@click.option("--before", metavar="CMD", help="Shell command before each run: delete files, drop caches.")
@click.option("--kernel", metavar="pioneer:FILE", help="Tune for this workload path: PROGRAM is the launcher alone, "
              "and the path is carried out by its ranks.")  # fmt: skip
@click.option("--scratch", metavar="FOLDER", help="Where the folder FILE.replay is made for that.  [default: here]")
@click.option("--log", metavar="FOLDER", help="Output of every run.  [default: FILE.log]")
@click.option("--json", "json_file", metavar="FILE", help="Write every run as JSON.")
@click.option("--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--dry-run", is_flag=True, help="Print the space and the first settings, run nothing.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGS]...",
                shell_complete=complete_command)  # fmt: skip
def tune(
    budget: float, trials: int | None, kind: str, pattern: str | None, lower_is_better: bool, glob: str, output: str,
    hint: tuple[str, ...], hints_file: str | None, striping: bool, allow_direct: bool, before: str | None,
    kernel: str | None, scratch: str | None, log: str | None, json_file: str | None, confidence: float, seed: int,
    dry_run: bool, command: tuple[str, ...],
) -> None:  # fmt: skip
    """Run PROGRAM many times, find hints under which it is faster, and write them to a hints file.

    \b
      mpiio-ext tune --budget 5m -- mpirun -n 4 ./app
      mpiio-ext tune --hints-file mine.hints --metric-regex '([0-9.]+) MB/s' -- mpirun -n 4 ./app
      mpiio-ext tune --kernel pioneer:run.parquet --scratch /scratch/me -- mpirun -n 4

    A setting is kept only if it wins against the program as it is in pairs of runs made for that purpose; otherwise
    nothing is written. PROGRAM has to do the same work in every run.
    """  # noqa: D301  (click wants the backspace character itself)
    if kernel is not None:
        command = _of_path(command, kernel, scratch)
        if kind == "auto" and pattern is None:
            pattern, lower_is_better = CALLS_TIME, True
    metric = _metric(kind, pattern, lower_is_better)
    try:
        from mpiio_ext.tune import hintsfile
        from mpiio_ext.tune.errors import need
        from mpiio_ext.tune.space import Options
        from mpiio_ext.tune.targets import check_targets
        from mpiio_ext.tune.tuner import Plan

        hintsfile.check_glob(glob)
        os.environ.update(_settings(hint, hints_file, None))
        options = Options(native=metric.times_native, striping=striping, direct_io=allow_direct)
        chosen = kind == "auto" and pattern is None
        by_calls = kernel is not None and pattern == CALLS_TIME  # a start is no part of it
        job = _Job(command=command, glob=glob, options=options, metric=metric, choose=chosen, served=by_calls)
        select_library(command)
        plan_launch(command, str(get_library()), {})  # refuses the launcher of another MPI library
        _check_library()
        if dry_run:
            _dry_run(job)
            return
        need("optuna")
        need("scipy.stats")
        asked = Plan(budget_s=budget, trials=trials, confidence=confidence, seed=seed)
        hints_path, json_path = Path(output), None if json_file is None else Path(json_file)
        log_path, own = Path(log or f"{output}.log"), os.environ.get("MPIOX_HINTS_FILE")
        check_targets(hints_path, json_path, log_path, Path(own) if own else None)
        result = _tune(job, asked, log_path, before)
        failures = _finish(result, job, budget, hints_path, json_path)
    except MpiioExtError as error:
        click.echo(f"mpiio-ext tune: {error}", err=True)
        raise SystemExit(getattr(error, "exit_status", 1)) from error
    for failure in failures:
        click.echo(f"mpiio-ext tune: {failure}", err=True)
    if result.broken_status or result.interrupted or failures:
        raise SystemExit(result.broken_status or (_INTERRUPTED if result.interrupted else 1))
