"""``mpiio-ext arbitrate``: policies applied, simulated and shown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.cli.one_line import OneLineErrors

if TYPE_CHECKING:
    from mpiio_ext.delegates.arbitration.curves import Curve
    from mpiio_ext.delegates.arbitration.pattern import Pattern

    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # not generic before click 8.2

__all__ = ["arbitrate"]

_PATH = click.Path(path_type=Path)
#: Sizes of a pool that a range without a step may have; longer ranges go by `_STEP`.
_EVERY_UP_TO = 32
_STEP = 8


class _Paths(_ParamType):
    """Paths separated by commas."""

    name = "FILE[,FILE...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a tuple of paths."""
        if isinstance(value, tuple):
            return value
        paths = tuple(Path(each) for each in str(value).split(",") if each)
        if not paths:
            self.fail("no file is named", param, ctx)
        return paths


class _Pools(_ParamType):
    """Sizes of the pool: "12", "0,8,16", "0..128", "0..128:16"."""

    name = "N|A..B[:STEP]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a tuple of numbers."""
        if isinstance(value, tuple):
            return value
        found: list[int] = []
        for part in str(value).split(","):
            match = re.fullmatch(r"(\d{1,6})(?:\.\.(\d{1,6})(?::(\d{1,6}))?)?", part.strip())
            if match is None:
                self.fail(f"{part!r} is neither a number nor a range as 0..128 or 0..128:16", param, ctx)
            low = int(match[1])
            high = int(match[2]) if match[2] is not None else low
            step = int(match[3]) if match[3] is not None else 1 if high - low < _EVERY_UP_TO else _STEP
            if high < low or step < 1:
                self.fail(f"{part!r} is empty", param, ctx)
            found += range(low, high + 1, step)
        return tuple(found)


def _finish(output: Path | None, as_json: bool, document: Mapping[str, Any], lines: Sequence[str], title: str,
            figures: Sequence[tuple[str, str, str]]) -> None:
    """Print the result, and write what -o asks for: results.json, figures as SVG, index.html."""
    from mpiio_ext.delegates.arbitration.page import page
    from mpiio_ext.report.output import write_whole

    if output is not None:
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.ClickException(f"{output}: cannot be made: {error.strerror}") from error
        write_whole(output / "results.json", json.dumps(document, indent=1) + "\n")
        for name, _, figure in figures:
            write_whole(output / f"{name}.svg", figure)
        shown = [(caption, figure) for _, caption, figure in figures]
        write_whole(output / "index.html", page(title, lines, shown))
        click.echo(f"{output / 'index.html'}: {len(figures)} figures; results.json beside it", err=as_json)
    if as_json:
        click.echo(json.dumps(document, indent=1))
    else:
        for line in lines:
            click.echo(line)


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
def arbitrate() -> None:
    """Decide how many I/O nodes each job gets, and simulate such decisions (docs/arbitration.md)."""


_curves = click.option("--curves", "curves", type=_Paths(), required=True,
                       help="Measured patterns in FORGE's format, files separated by commas.")
_output = click.option("-o", "--output", type=_PATH, metavar="DIR", help="Write results.json, figures and index.html.")
_json = click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")


@arbitrate.command()
@_curves
@click.option("--sets", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True)
@click.option("--apps", type=click.IntRange(1, 4096), default=16, show_default=True, help="Patterns in a set.")
@click.option("--io-nodes", "pools", type=_Pools(), default="0..128", show_default=True, help="Sizes of the pool.")
@click.option("--compute-nodes", type=click.IntRange(1), help="Of the system, for STATIC.  [default: APPS x largest]")
@click.option("--statistic", type=click.Choice(["mean", "max"]), default="mean", show_default=True,
              help="What repetitions count as.")
@click.option("--seed", type=int, default=0, show_default=True)
@_output
@_json
def simulate(curves: tuple[Path, ...], sets: int, apps: int, pools: tuple[int, ...], compute_nodes: int | None,
             statistic: str, seed: int, output: Path | None, as_json: bool) -> None:
    """Draw sets of patterns, apply every policy with every size of the pool (Figures 2 and 3)."""
    from mpiio_ext.delegates.arbitration import draw, result
    from mpiio_ext.delegates.arbitration.simulate import best_option_counts, catalogue
    from mpiio_ext.delegates.arbitration.simulate import simulate as run
    from mpiio_ext.delegates.arbitration.tables import read_forge

    measured = read_forge(curves)
    data = catalogue(measured, statistic="max" if statistic == "max" else "mean")
    found = run(data, pools=pools, sets=sets, apps=apps, seed=seed, compute_nodes=compute_nodes, statistic=statistic)
    document = result.simulation_document(found, best_option_counts(catalogue(measured, statistic="max")))
    figures = [] if output is None else [
        ("figure2", f"Median aggregate bandwidth of {sets:,} sets of {apps} patterns.", draw.draw_medians(found)),
        ("figure3", "Aggregate bandwidth of MCKP over STATIC: smallest, median and largest.", draw.draw_gain(found)),
    ]
    _finish(output, as_json, document, result.simulation_lines(document), "Arbitration: simulated sets of jobs",
    figures)


@arbitrate.command()
@_curves
@click.option("--policy", "policies", multiple=True, default=("one", "static", "size", "mckp"), show_default=True)
@click.option("--io-nodes", type=click.IntRange(1, 65536), default=12, show_default=True)
@click.option("--compute-nodes", type=click.IntRange(1), default=96, show_default=True)
@click.option("--direct/--no-direct", default=False, show_default=True, help="Jobs may do without I/O nodes.")
@click.option("--migration-s", type=click.FloatRange(0), default=0.0, show_default=True,
              help="Time without I/O of a job that gets another number of I/O nodes.")
@_output
@_json
def queue(curves: tuple[Path, ...], policies: tuple[str, ...], io_nodes: int, compute_nodes: int, direct: bool,
          migration_s: float, output: Path | None, as_json: bool) -> None:
    """Run the queue of Section 5.3 under policies; the applications' curves are estimated from measured patterns."""
    from mpiio_ext.delegates.arbitration import draw, result
    from mpiio_ext.delegates.arbitration.applications import paper_queue
    from mpiio_ext.delegates.arbitration.jobs import Machine
    from mpiio_ext.delegates.arbitration.queue import run_queue
    from mpiio_ext.delegates.arbitration.registry import policy
    from mpiio_ext.delegates.arbitration.tables import read_forge

    items = paper_queue(read_forge(curves))
    machine = Machine(io_nodes=io_nodes, compute_nodes=compute_nodes, direct=direct, most=8)
    results = [run_queue(items, machine, policy(name), migration_s=migration_s) for name in dict.fromkeys(policies)]
    base = next((each for each in results if each.policy == "STATIC"), None)
    lines = [f"{each.policy}: {each.bandwidth / 1000:.2f} GB/s, {each.makespan_s:.0f} s, "
             f"{sum(job.changes for job in each.jobs)} changes of I/O nodes"
             + (f", {each.bandwidth / base.bandwidth:.2f}× STATIC" if base not in (None, each) and base else "")
             for each in results]
    figures = [] if output is None else [
        ("queue", "Bandwidth of the running jobs over time.", draw.draw_queue(results))]
    _finish(output, as_json, result.queue_document(results), lines, "Arbitration: a queue of jobs", figures)


@arbitrate.command()
@click.option("--jobs", "table", type=_PATH, required=True, metavar="FILE",
              help="Table: job, compute_nodes, processes, io_nodes, bandwidth (MB/s).")
@click.option("--io-nodes", type=click.IntRange(0, 2**24), required=True)
@click.option("--compute-nodes", type=click.IntRange(1), help="Of the system, for STATIC.  [default: of the jobs]")
@click.option("--policy", "name", default="mckp", show_default=True)
@click.option("--floor", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="MCKP: fairness floor.")
@click.option("--confidence", type=float, help="MCKP: lower bounds of this confidence instead of means.")
@click.option("--shared-node", is_flag=True, help="MCKP: one I/O node is shared by those that get none.")
@click.option("--direct/--no-direct", default=True, show_default=True, help="Jobs may do without I/O nodes.")
@_json
def solve(table: Path, io_nodes: int, compute_nodes: int | None, name: str, floor: float, confidence: float | None,
          shared_node: bool, direct: bool, as_json: bool) -> None:
    """Give the I/O nodes of a pool to jobs."""
    from mpiio_ext.delegates.arbitration import result
    from mpiio_ext.delegates.arbitration.jobs import Machine
    from mpiio_ext.delegates.arbitration.mckp import Mckp
    from mpiio_ext.delegates.arbitration.policies import Policy
    from mpiio_ext.delegates.arbitration.registry import policy
    from mpiio_ext.delegates.arbitration.tables import read_jobs

    chosen: Policy = policy(name)
    if isinstance(chosen, Mckp):
        chosen = Mckp(floor=floor, confidence=confidence, shared_node=shared_node)
    elif floor or confidence is not None or shared_node:
        raise click.UsageError("--floor, --confidence and --shared-node are settings of the policy mckp")
    machine = Machine(io_nodes=io_nodes, compute_nodes=compute_nodes, direct=direct)
    found = chosen.allocate(read_jobs(table), machine)
    lines = [f"{job}: {'shared' if grant.shared else grant.io_nodes}"
             + (", bandwidth not known" if grant.bandwidth is None else f", {grant.bandwidth:.1f} MB/s")
             for job, grant in found.grants.items()]
    lines.append(f"{found.policy}: {found.io_nodes} of {found.pool} I/O nodes, {found.bandwidth:.1f} MB/s"
                 + ("" if found.is_within_pool else "; more than there are: jobs share I/O nodes"))
    _finish(None, as_json, result.allocation_document(found), [*lines, *found.notes], "", [])


def _named(measured: Mapping[Pattern, Curve]) -> dict[str, Curve]:
    return {pattern.name: curve for pattern, curve in measured.items()}


@arbitrate.command()
@click.option("--forge", type=_Paths(), help="FORGE's tables.")
@click.option("--bench", type=_Paths(), help="results.json or results.parquet of the bench.")
@click.option("--store", type=_PATH, metavar="FILE", help="Keep the curves there, each as a new version.")
@click.option("--match", default="", metavar="TEXT", help="Only curves whose name contains this.")
@_output
@_json
def curves(forge: tuple[Path, ...] | None, bench: tuple[Path, ...] | None, store: Path | None, match: str,
           output: Path | None, as_json: bool) -> None:
    """Make curves of measurements, show and keep them."""
    from mpiio_ext.delegates.arbitration import draw
    from mpiio_ext.delegates.arbitration.store import Store, plain
    from mpiio_ext.delegates.arbitration.tables import read_bench, read_forge

    if (forge is None) == (bench is None):
        raise click.UsageError("name measurements by --forge or by --bench")
    found = _named(read_forge(forge)) if forge is not None else read_bench(bench or ())
    found = {name: curve for name, curve in found.items() if match in name}
    if not found:
        raise click.UsageError(f"no curve has {match!r} in its name")
    if store is not None:
        Store(store).save(found)
    lines = [f"{name}: " + ", ".join(f"{count}: {p.mean:.1f} ± {p.deviation:.1f}" if p.deviation is not None
                                     else f"{count}: {p.mean:.1f}" for count, p in curve.points.items()) + " MB/s"
             for name, curve in found.items()]
    document = {"what": "arbitration curves", "units": {"bandwidth": "MB/s (10^6 bytes)"},
                "curves": {name: plain(curve) for name, curve in found.items()}}
    figures = [] if output is None else [
        ("curves", "Bandwidth by I/O nodes.", draw.draw_curves(dict(list(found.items())[:9])))]
    _finish(output, as_json, document, lines, "Arbitration: curves", figures)
