"""``mpiio-ext pioneer compare``: two workloads side by side, in numbers and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiio_ext.common.commands import Command, json_option, output_option, reporting
from mpiio_ext.common.options import Existing
from mpiio_ext.common.printing import echo
from mpiio_ext.common.units import amount_text, digits_text

if TYPE_CHECKING:
    from mpiio_ext.pioneer.compare.comparison import Comparison

_PATH = click.Path(path_type=Path)


def say_comparison(comparison: Comparison) -> None:
    """Print the metrics, one a line."""
    width = max(len(metric.name) for metric in comparison.metrics)
    for metric in comparison.metrics:
        word = ("passed" if metric.passed else "FAILED") if metric.judged else "not judged"
        echo(f"{metric.name:<{width}}  {metric.text:>8}  limit {metric.limit:<6g} {word}")
    for why in comparison.not_judged:
        echo(f"not judged: {why}")
    echo(comparison.verdict)


def _save(comparison: Comparison, folder: Path | None, html: Path | None) -> list[Path]:
    from mpiio_ext.pioneer.compare.page import save_all, save_html

    saved = [] if folder is None else save_all(comparison, folder)
    if html is not None:
        save_html(comparison, html)
        saved.append(html)
    return saved


@click.command(cls=Command, short_help="How close two traces or paths are.")
@click.argument("original", type=Existing(path_type=Path))
@click.argument("synthetic", type=Existing(path_type=Path))
@output_option(type=_PATH, metavar="DIR", help="Folder for comparison.html, comparison.json and the figures as SVG.")
@click.option("--html", type=_PATH, metavar="FILE", help="The page alone.")
@json_option("Print the JSON document, and no table.")
@click.option(
    "--below", metavar="FOLDER", help="Use only those operations of SYNTHETIC, a trace, whose files are below FOLDER."
)
@click.option(
    "--replayed",
    is_flag=True,
    help="SYNTHETIC is the trace of a replay of ORIGINAL: operations that the engine leaves out, or that so many "
    "ranks cannot do, are not compared.",
)
@click.option(
    "--time-scale",
    type=click.FloatRange(min=0),
    default=1.0,
    metavar="X",
    help="Pace at which SYNTHETIC was carried out; if it is not 1, the metrics of time are not judged.",
)
def compare(
    original: Path,
    synthetic: Path,
    output: Path | None,
    html: Path | None,
    as_json: bool,
    below: str | None,
    replayed: bool,
    time_scale: float,
) -> None:
    """Show how close the workload SYNTHETIC comes to ORIGINAL.

    Each is a workload path, a sanitized table, or a trace in any format (a file, or the folder of a run).

    \b
      mpiio-ext pioneer compare trace/ retraced/ --below DIR --replayed -o comparison
      mpiio-ext pioneer compare run.parquet synthetic.parquet --json | jq .failed

    Exit status: 0 all limits hold, 1 one is passed, 2 something cannot be read or written.
    """  # noqa: D301  (click wants the backspace character itself)
    import json

    from mpiio_ext.pioneer.compare.comparison import compare_workloads, to_json
    from mpiio_ext.pioneer.compare.replayed import against_replay
    from mpiio_ext.pioneer.compare.workload import load_workload
    from mpiio_ext.pioneer.engine.coverage import LEFT_OUT

    note = "" if time_scale == 1 else f"slack times were multiplied by {digits_text(time_scale, 6)}"
    with reporting(OSError, ValueError):
        prefix = None if below is None else f"{Path(below).absolute()}/"
        first = load_workload(original, without=LEFT_OUT if replayed else ())
        second = load_workload(synthetic, below=prefix)
        if replayed:
            first, second = against_replay(first, second)
        found = compare_workloads(first, second, note=note)
        saved = _save(found, output, html)
    if as_json:
        echo(json.dumps(to_json(found), allow_nan=False))
    else:
        say_comparison(found)
    for path in saved:
        echo(f"{path}: {amount_text(path.stat().st_size)}", err=True)
    raise SystemExit(0 if found.passed else 1)
