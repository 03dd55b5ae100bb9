"""``mpiio-ext pioneer all``: every phase, from a trace to a comparison."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from mpiio_ext.common.commands import Command, output_option, reporting, warn
from mpiio_ext.common.options import Duration, Existing
from mpiio_ext.common.printing import echo, make_console
from mpiio_ext.pioneer.forms import multiply_option


@contextmanager
def _progress() -> Iterator[tuple[Callable[[str, str], None], Callable[[str], None]]]:
    """Yield two functions: one shows the progress of a step, the other prints a line that stays.

    The first is a line that changes on a terminal, else a line for each step's end.
    """
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from mpiio_ext.pioneer.pipeline import STEPS

    console = make_console(stderr=True)
    if not console.is_terminal:
        yield (
            (
                lambda step, text: (
                    echo(f"{1 + STEPS.index(step)}/{len(STEPS)} {step}: {text}", err=True)
                    if (text.startswith("done"))
                    else None
                )
            ),
            lambda line: warn(line),
        )
        return
    columns = (
        SpinnerColumn(finished_text="✔"),
        TextColumn("{task.description:<11}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[doing]}", markup=False),
    )
    with Progress(*columns, console=console) as shown:
        tasks = {step: shown.add_task(step, total=1, start=False, doing="") for step in STEPS}

        def say(step: str, text: str) -> None:
            if not text:
                shown.start_task(tasks[step])
            elif text.startswith("done"):
                shown.update(tasks[step], completed=1)
            else:
                shown.update(tasks[step], doing=text)

        yield say, lambda line: shown.console.print(f"mpiio-ext: {line}", markup=False, highlight=False, soft_wrap=True)


@click.command(cls=Command, name="all", short_help="Every phase, from a trace to a comparison.")
@click.argument("trace", nargs=-1, required=True, type=Existing(path_type=Path))
@output_option(
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for everything; it must be empty or missing.",
)
@click.option(
    "-n",
    "--ranks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes of the replay.  [default: as many as were traced]",
)
@click.option(
    "--mode",
    type=click.Choice(["faithful", "quota", "sampled", "tuned"]),
    default="faithful",
    show_default=True,
    help="Of the synthesis.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the synthesis.")
@multiply_option
@click.option(
    "--time-scale",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Factor of the slack times; if it is not 1, the metrics of time are not judged.",
)
@click.option("--spin", "spin_s", type=Duration(zero=True), metavar="TIME", help="As of `pioneer replay`.")
@click.option(
    "--launcher",
    metavar="WORDS",
    help="Launcher of MPI programs with options; -n N is put behind it.  [default: mpiexec of this environment]",
)
@click.option("--format", "reader", metavar="NAME", help="Format of the trace.  [default: detected]")
@click.option("--only", multiple=True, metavar="GLOB", help="Use only operations on files that match; may be repeated.")
@click.option(
    "--skip", multiple=True, metavar="GLOB", help="Leave out operations on files that match; may be repeated."
)
@click.option("--each-rank", is_flag=True, help="Each rank is a subgroup of the path: its own offsets, its own views.")
@click.option("--replace", is_flag=True, help="Remove the results of an earlier run in DIR first.")
def everything(
    trace: tuple[Path, ...],
    output: Path,
    ranks: int | None,
    mode: str,
    multiply: dict[str, float],
    launcher: str | None,
    replace: bool,
    **settings: Any,
) -> None:
    """Go from a TRACE to a workload that was carried out, traced again and compared with it.

    Leaves in DIR: sanitized.parquet, path.parquet, profile.json, synthetic.parquet, run/ (files, trace, replay.json),
    comparison.html, comparison.json and the figures.

    \b
      mpiio-ext pioneer all trace/ -n 16 -o result
      mpiio-ext pioneer all trace/ -o result --mode sampled --seed 3 --time-scale 0

    Exit status: 0 all limits hold, 1 one is passed, 2 a step has failed. If one path cannot describe the ranks'
    operations (random offsets, for one), a line says so before the replay and the exit status is 1, whatever the number
    of ranks; --each-rank then writes the operations of every rank.
    """  # noqa: D301  (click wants the backspace character itself)
    from mpiio_ext.pioneer.pipeline import Pipeline, not_in_path
    from mpiio_ext.pioneer.synthesis import Scale

    with reporting(ValueError):
        factors = Scale(**multiply) if multiply else None
        if factors is not None and mode != "tuned":
            raise ValueError(f"--multiply changes nothing in mode {mode}; it is for --mode tuned")
        with _progress() as (say, note):
            steps = Pipeline(
                trace=trace,
                folder=output,
                ranks=ranks or 0,
                mode=mode,
                scale=factors,
                launcher=shlex.split(launcher or ""),
                **settings,
                say=say,
                warn=note,
            )
            steps.prepare(replace=replace)
            found = steps.run()
    for metric in found.failed:
        echo(f"{metric.name}: {metric.text}, limit {metric.limit:g}: {metric.meaning}")
    for why in found.not_judged:
        echo(f"not judged: {why}")
    echo(f"{output / 'comparison.html'}: {found.verdict}")
    if why := not_in_path(steps.in_path, found.original.activity.ranks):
        warn(why)
    raise SystemExit(0 if found.passed else 1)
