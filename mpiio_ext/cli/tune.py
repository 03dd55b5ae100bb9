"""``mpiio-ext tune``: find hints that make a program faster, prove the gain, and write them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from mpiio_ext._load import get_library
from mpiio_ext.cli.run import plan_launch, select_library, settings_of
from mpiio_ext.cli.words import hint_options, program_argument
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
from mpiio_ext.common.options import Duration
from mpiio_ext.common.printing import echo
from mpiio_ext.tune.job import Job, check_library, finish, metric_of, ranks_in
from mpiio_ext.tune.job import tune as tune_job


def _dry_run(job: Job, as_json: bool) -> None:
    """Print the space and the first settings as they would be for a program of collective and independent accesses."""
    from mpiio_ext.hints import in_force
    from mpiio_ext.tune import program, report
    from mpiio_ext.tune.space import Usage

    ranks = ranks_in(job.command)
    found = in_force("")
    present = program.Present(
        values={item.spec.name: item.value for item in found},
        sources={item.spec.name: item.source for item in found if item.source != "default"},
    )
    space = job.space_for(Usage(ranks=ranks), present)
    rows = [(item.hint, item.values, sorted(item.ways)) for item in space.parameters]
    points = [(point, space.setting_of(point)) for point in space.starting_points()]
    if as_json:
        hints = [{"hint": hint, "values": list(values), "ways": ways} for hint, values, ways in rows]
        first = [{"point": point, "hints": setting.as_dict()} for point, setting in points]
        space_found = {"ranks": ranks, "ways": list(space.ways), "hints": hints}
        echo(json.dumps({"command": list(job.command), "space": space_found, "first": first}, indent=1))
        return
    echo(f"space for {ranks} ranks (kinds of access are learnt from the first run):")
    echo(f"  ways: {' '.join(space.ways)}")
    if job.choose:
        echo("  (native is left out if the first run shows that runs are better judged by --metric io)")
    echo("\n".join(report.space_lines(rows)))
    echo("first settings, after the program as it is:")
    for point, setting in points:
        echo(report.trial_line(point, setting))


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@click.option("--budget", type=Duration(), default="5m", show_default=True, help="Time for all: 90s, 5m, 1h30m.")
@click.option("--trials", type=click.IntRange(min=1), help="Search at most so many settings.")
@click.option(
    "--metric",
    "kind",
    type=click.Choice(["auto", "elapsed", "io"]),
    default="auto",
    show_default=True,
    help="elapsed: the whole command; io: inside data access, by the statistics; auto: io if it is known, and a small "
    "part of the whole.",
)
@click.option("--metric-regex", "pattern", metavar="REGEX", help="Read a bandwidth from the output; higher is better.")
@click.option("--lower-is-better", is_flag=True, help="The number of --metric-regex is a time.")
@click.option("--files", "glob", default="*", show_default=True, metavar="GLOB", help="Search hints for these files.")
@output_option(default="tuned.hints", show_default=True, metavar="FILE", help="Hints file to write.")
@hint_options("A hint to begin with, and to beat.", "Hints to begin with, and to beat.")
@click.option("--striping", is_flag=True, help="Also try striping_unit and striping_factor.")
@click.option("--allow-direct", is_flag=True, help="Also try direct I/O (direct_read, direct_write).")
@click.option("--before", metavar="CMD", help="Shell command before each run: delete files, drop caches.")
@click.option("--log", metavar="FOLDER", help="Output of every run, and the page tuning.html.  [default: FILE.log]")
@json_option("Print every run, or with --dry-run the space, as JSON; all else goes to standard error.")
@click.option("--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--dry-run", is_flag=True, help="Print the space and the first settings, run nothing.")
@program_argument
def tune(
    budget: float,
    trials: int | None,
    kind: str,
    pattern: str | None,
    lower_is_better: bool,
    glob: str,
    output: str,
    hint: tuple[str, ...],
    hints_file: str | None,
    striping: bool,
    allow_direct: bool,
    before: str | None,
    log: str | None,
    as_json: bool,
    confidence: float,
    seed: int,
    dry_run: bool,
    command: tuple[str, ...],
) -> None:
    """Run PROGRAM many times, find hints under which it is faster, and write them to a hints file.

    \b
      mpiio-ext tune --budget 5m -- mpirun -n 4 ./app
      mpiio-ext tune --hints-file mine.hints --metric-regex '([0-9.]+) MB/s' -- mpirun -n 4 ./app

    A setting is written only if it beats the unchanged program in pairs of runs made for that purpose. PROGRAM has to
    do the same work in every run.
    """  # noqa: D301  (click wants the backspace character itself)
    metric = metric_of(kind, pattern, lower_is_better)
    with reporting():
        from mpiio_ext.tune import hintsfile
        from mpiio_ext.tune.errors import TooShort, need
        from mpiio_ext.tune.outcome import Plan
        from mpiio_ext.tune.space import Options
        from mpiio_ext.tune.targets import check_targets

        hintsfile.check_glob(glob)
        os.environ.update(settings_of(hint, hints_file))
        options = Options(native=metric.times_native, striping=striping, direct_io=allow_direct)
        chosen = kind == "auto" and pattern is None
        job = Job(command=command, glob=glob, options=options, metric=metric, choose=chosen)
        select_library(command)
        plan_launch(command, str(get_library()), {})  # refuses the launcher of another MPI library
        check_library()
        if dry_run:
            _dry_run(job, as_json)
            return
        need("optuna")
        need("scipy.stats")
        asked = Plan(budget_s=budget, trials=trials, confidence=confidence, seed=seed)
        hints_path, log_path = Path(output), Path(log or f"{output}.log")
        check_targets(hints_path, log_path)
        with json_result(as_json) as put:
            try:
                result = tune_job(job, asked, log_path, before)
            except TooShort as short:  # as on a machine that became busy: the runs that there were count
                if short.result is None:
                    raise
                result = short.result
            printed = (lambda found: put(json.dumps(found, indent=1))) if as_json else None
            failures = finish(result, job, budget, hints_path, printed, log_path / "tuning.html")
    for failure in failures:
        warn(failure)
    if result.broken_status or result.interrupted or failures:
        raise SystemExit(result.broken_status or (INTERRUPTED if result.interrupted else FAILED))
