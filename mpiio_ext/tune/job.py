"""A program to tune: the shared state of the phases, and the results of all of them.

`Job` has the options, and what the first run shows. `tune` runs all phases (`mpiio_ext.tune.tuner`), and treats SIGTERM
like Ctrl-C. `finish` prints the result and writes the files. If one file fails, `finish` still writes the others,
because the runs were expensive.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext._load import family, get_library
from mpiio_ext.common.commands import sigterm_as_interrupt
from mpiio_ext.common.printing import echo
from mpiio_ext.common.progress import progress
from mpiio_ext.errors import MpiioExtError
from mpiio_ext.launchers import Launch, let_rank_0_speak, plan
from mpiio_ext.tune.replayed import END_MARK

if TYPE_CHECKING:
    from mpiio_ext.tune.hintsfile import OwnHints
    from mpiio_ext.tune.objective import Metric
    from mpiio_ext.tune.outcome import Plan, Record, Result
    from mpiio_ext.tune.program import Present
    from mpiio_ext.tune.report import Subject
    from mpiio_ext.tune.setting import Setting
    from mpiio_ext.tune.space import Options, Space, Usage
    from mpiio_ext.tune.trial import Outcome


@dataclass(slots=True, kw_only=True)
class Job:
    """The shared state of the phases: filled after the baseline has run.

    `choose` says that the first run chooses the metric, `why_metric` why it has chosen this one. `about` are lines for
    the head of the hints file. `usage` are the kinds of access, where they are known without the baseline's statistics.
    `served` means that the command carries out a path, which its ranks can repeat.
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
        """Determine the command to execute, as `mpiio-ext run` does."""
        environment = {name: value for name, value in os.environ.items() if name not in without}
        library = str(get_library())
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
        """Learn the search space from the baseline."""
        from mpiio_ext.tune import program
        from mpiio_ext.tune.hintsfile import own_hints

        uses = program.matching(outcome, self.glob)
        self.present = program.present_hints(uses)
        self.own = own_hints(sorted({use.path for use in outcome.files}), os.environ)
        return self.space_for(self.usage or program.usage_of(uses), self.present)

    def space_for(self, usage: Usage, present: Present) -> Space:
        """Return the search space for a program of such accesses, under such hints."""
        from mpiio_ext.tune import program
        from mpiio_ext.tune.space import build

        removable = program.removable_hints(present, self.glob)
        return build(
            usage,
            self.options,
            defaults=program.registry_defaults(),
            in_force=present.values,
            user=frozenset(present.sources),
            removable=removable,
        )


def metric_of(kind: str, pattern: str | None, lower: bool) -> Metric:
    """Return the metric that judges runs.

    Parameters
    ----------
    kind : "io" or another one of --metric.
    pattern : of --metric-regex.
    lower : whether less of it is better.

    Raises
    ------
    click.UsageError
        The arguments contradict each other, or `pattern` is no regular expression.
    """
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


def ranks_in(command: tuple[str, ...]) -> int:
    """Return the number of ranks in a launcher's options; 4 if the options have none."""
    for index, word in enumerate(command):
        match = re.fullmatch(r"(?:-n|-np|-c|--n|--np|--ntasks)(?:=(\d+))?", word)
        text = (match[1] or "".join(command[index + 1 : index + 2])) if match else ""
        if text.isdigit() and int(text) > 0:
            return int(text)
    return 4


def check_library() -> None:
    """Refuse to start as ranks of a launcher, or when the library that every rank is to load is not there."""
    from mpiio_ext.doctor.mpi import job_of
    from mpiio_ext.tune.errors import TuneError

    if job_of(os.environ).size > 1:
        if not let_rank_0_speak(os.environ):
            raise SystemExit(2)
        raise click.UsageError("this command starts the launcher itself: write it behind, as in -- mpirun -n 4 ./app")
    library = get_library()
    if not library.exists():
        raise TuneError(f"the library {library} is missing: build and install mpiio_ext again (`make build`)")


def tune(job: Job, asked: Plan, log: Path, before: str | None) -> Result:
    """Run all phases, with SIGTERM taken for Ctrl-C, and show a bar on a terminal.

    Parameters
    ----------
    job : the program.
    asked : what the phases may cost.
    log : folder of the output of all runs.
    before : shell command before each run; None: nothing.

    Raises
    ------
    TuneError
        Tuning cannot go on.
    """
    from mpiio_ext.tune.served import ServedRunner
    from mpiio_ext.tune.trial import ProcessRunner
    from mpiio_ext.tune.tuner import Tuner

    folder = log.absolute()  # ranks may have another working folder
    judge = job.judge if job.choose else None
    alone = ProcessRunner(launch=job.launch, hints_text=job.hints_text, log=folder, before=before)
    served = ServedRunner(alone, END_MARK) if job.served and not _asks_for_delegates() else None
    begin_s, best = time.monotonic(), float("inf")
    try:
        with sigterm_as_interrupt(), progress(float(asked.budget_s), name="mpiio-ext tune") as advance:

            def notify(record: Record) -> None:
                nonlocal best
                best = best if record.cost is None else min(best, record.cost)
                seen = f", best {job.metric.shown(best)}" if best < float("inf") else ""
                advance(f"{record.phase}, run {record.number}{seen}", to=time.monotonic() - begin_s)

            tuner = Tuner(
                runner=served or alone, metric=job.metric, plan=asked, space_of=job.space, judge=judge, notify=notify
            )
            return tuner.run()
    finally:
        if served is not None:
            served.close()


def _asks_for_delegates() -> bool:
    """Whether the user's own hints may start delegates, which a job has from its start on."""
    file = os.environ.get("MPIOX_HINTS_FILE")
    text = os.environ.get("MPIOX_HINTS", "")
    with contextlib.suppress(OSError):  # reported where it is read
        text += Path(file).read_text(encoding="utf-8", errors="replace") if file else ""
    return "mpiox_delegates" in text


def _tell(result: Result, subject: Subject, output: Path) -> None:
    """Print the result."""
    from mpiio_ext.tune import report

    echo("\n".join(report.lines(result, subject)))
    if result.verdict != "wins":
        kept = " (the one that is there is left as it was)" if output.exists() else ""
        echo(f"no hints file is written{kept}")


def _write_hints(result: Result, job: Job, subject: Subject, output: Path) -> None:
    """Write the hints file of a setting that wins, and print how to use it."""
    from mpiio_ext.tune import hintsfile, report

    assert job.own is not None and result.candidate is not None
    reasons = report.reasons(subject, result.candidate)
    head = [*report.header(result, subject), *job.about]
    text = hintsfile.text_of(job.own, job.glob, result.candidate, head, reasons)
    hintsfile.write(output, text)
    echo(f"written: {output}; use it with: mpiio-ext run --hints-file {output} -- ...")
    if os.environ.get("MPIOX_HINTS") and not job.about:  # of the user: mpiio-ext advise sets them itself
        echo("  it includes the hints of MPIOX_HINTS and -H, which are stronger than a file: remove them")


def _write_page(result: Result, subject: Subject, file: Path) -> None:
    """Write the page about every run, and print its place."""
    from mpiio_ext.common.files import write_whole
    from mpiio_ext.tune.page import tuning_page

    write_whole(file, tuning_page(result, subject))
    echo(f"page: {file}")


def finish(
    result: Result,
    job: Job,
    budget_s: float,
    output: Path,
    put: Callable[[dict[str, Any]], None] | None,
    page: Path | None = None,
) -> list[str]:
    """Print the result, put its JSON, write the hints file and the page; return a line for each that failed."""
    from mpiio_ext.tune import report

    subject = report.Subject(
        command=job.command,
        metric=job.metric,
        glob=job.glob,
        present=job.present,
        budget_s=budget_s,
        why_metric=job.why_metric,
    )
    won = result.verdict == "wins"

    steps: list[Callable[[], None]] = [lambda: _tell(result, subject, output)]
    if put is not None:
        steps.append(lambda: put(report.as_json(result, subject, str(output) if won else None)))
    if won:
        steps.append(lambda: _write_hints(result, job, subject, output))
    if page is not None and page.parent.is_dir():
        steps.append(lambda: _write_page(result, subject, page))
    failures = []
    for step in steps:
        try:
            step()
        except MpiioExtError as error:
            failures.append(str(error))
        except OSError as error:
            failures.append(f"cannot print the result: {error.strerror or error}")
    return failures
