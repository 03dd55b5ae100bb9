"""``mpiio-ext delegates arbitrate``: policies applied, simulated and shown."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.common.commands import Decorated, Group, json_option, output_option, warn
from mpiio_ext.common.options import Counts, Duration, ParamType
from mpiio_ext.common.printing import echo
from mpiio_ext.delegates.arbitration.policytype import PolicyType
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from mpiio_ext.common.plots import Chart
    from mpiio_ext.delegates.arbitration.curves import Curve
    from mpiio_ext.delegates.arbitration.jobs import Job
    from mpiio_ext.delegates.arbitration.store import Store

_PATH = click.Path(path_type=Path)
#: Curves in a figure.
_MOST_DRAWN = 27


class _Paths(ParamType):
    """Paths separated by commas."""

    name = "FILE[,FILE...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Path, ...]:
        """Return a tuple of paths."""
        paths = tuple(Path(each) for each in str(value).split(",") if each)
        if not paths:
            self.fail("no file is named", param, ctx)
        return paths


def _paths_option(*names: str, **named: Any) -> Callable[[Decorated], Decorated]:
    """Return an option of several files; its value is a tuple of all files, or None."""
    return click.option(
        *names,
        type=_Paths(),
        multiple=True,
        callback=lambda _context, _option, given: tuple(itertools.chain.from_iterable(given)) or None,
        **named,
    )


class _SystemNodes(ParamType):
    """Compute nodes of the system: a number, or "set"."""

    name = "N|set"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return a number or "set"."""
        return "set" if value == "set" else int(click.IntRange(1).convert(value, param, ctx))


def _finish(
    output: Path | None,
    as_json: bool,
    document: Mapping[str, Any],
    lines: Sequence[str],
    title: str = "",
    lead: str = "",
    figures: Sequence[tuple[str, str, Chart]] = (),
) -> None:
    """Print the result, and write the output of -o: results.json, figures as SVG, index.html."""
    from mpiio_ext.common import page, plots
    from mpiio_ext.common.files import write_whole

    if output is not None:
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentError(f"{output}: cannot be made: {error.strerror}") from error
        write_whole(output / "results.json", json.dumps(document, indent=1) + "\n")
        for name, _, chart in figures:
            plots.save(chart, output / f"{name}.svg")
        shown = [page.drawn(chart, caption=caption) for _, caption, chart in figures]
        section = page.Section(anchor="results", title="Results", sentences=lines, figures=shown)
        write_whole(output / "index.html", page.document(title, [section], lead=[lead]))
        number = "1 figure" if len(figures) == 1 else f"{len(figures)} figures"
        echo(f"{output / 'index.html'}: {number}; results.json beside it", err=as_json)
    if as_json:
        echo(json.dumps(document, indent=1))
    else:
        for line in lines:
            echo(line)


@click.group(cls=Group)
def arbitrate() -> None:
    """Decide how many I/O nodes each job gets, and simulate such decisions (`mpiio-ext help howto/arbitrate`)."""


_curves = _paths_option(
    "--forge", "curves", required=True, help="Measured patterns in FORGE's format; may be repeated."
)
_output = output_option(type=_PATH, metavar="DIR", help="Write results.json, figures and index.html.")
_json = json_option("Print the results as JSON.")


@arbitrate.command()
@_curves
@click.option("--sets", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True)
@click.option("--apps", type=click.IntRange(1, 4096), default=16, show_default=True, help="Patterns in a set.")
@click.option(
    "--io-nodes",
    "pools",
    type=Counts(),
    default="0..128",
    show_default=True,
    help="Sizes of the pool; a range of more than 32 has steps of 8, or of its own, as 0..128:1.",
)
@click.option(
    "--compute-nodes",
    type=_SystemNodes(),
    help="Of the system, for STATIC; set: those of each set.  [default: APPS x largest]",
)
@click.option("--seed", type=int, default=0, show_default=True)
@_output
@_json
def simulate(
    curves: tuple[Path, ...],
    sets: int,
    apps: int,
    pools: tuple[int, ...],
    compute_nodes: Any,
    seed: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Draw sets of patterns, apply every policy with every size of the pool (Figures 2 and 3)."""
    from mpiio_ext.delegates.arbitration import draw
    from mpiio_ext.delegates.arbitration.sets import catalogue
    from mpiio_ext.delegates.arbitration.simulation import simulate as run
    from mpiio_ext.delegates.arbitration.tables import read_forge

    data = catalogue(read_forge(curves))
    found = run(data, pools=pools, sets=sets, apps=apps, seed=seed, compute_nodes=compute_nodes)
    figures = [
        ("figure2", f"Median aggregate bandwidth of {sets:,} sets of {apps} patterns.", draw.draw_medians(found)),
        ("figure3", "Aggregate bandwidth of MCKP over STATIC: smallest, median and largest.", draw.draw_gain(found)),
    ]
    lead = f"{draw.gain_words(found)}: {sets:,} sets of {apps} patterns, {len(found.pools)} sizes of the pool."
    _finish(output, as_json, found.document(), found.lines(), "Arbitration: simulated sets of jobs", lead, figures)


@arbitrate.command()
@_curves
@click.option(
    "--policy",
    "policies",
    type=PolicyType(),
    multiple=True,
    default=("one", "static", "size", "mckp"),
    show_default=True,
)
@click.option("--io-nodes", type=click.IntRange(1, 65536), default=12, show_default=True)
@click.option("--compute-nodes", type=click.IntRange(1), default=96, show_default=True)
@_output
@_json
def queue(
    curves: tuple[Path, ...],
    policies: tuple[str, ...],
    io_nodes: int,
    compute_nodes: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Run the queue of Section 5.3 under policies; the applications' curves are estimated from measured patterns."""
    from mpiio_ext.delegates.arbitration import draw
    from mpiio_ext.delegates.arbitration.applications import paper_queue
    from mpiio_ext.delegates.arbitration.jobs import Machine
    from mpiio_ext.delegates.arbitration.queue import queue_document, queue_lines, run_queue
    from mpiio_ext.delegates.arbitration.rules import policy
    from mpiio_ext.delegates.arbitration.tables import read_forge

    items = paper_queue(read_forge(curves))
    machine = Machine(io_nodes=io_nodes, compute_nodes=compute_nodes, direct=False, most=8)
    results = [run_queue(items, machine, policy(name)) for name in dict.fromkeys(policies)]
    caption = "Bandwidth of the running jobs over time, and mean bandwidth of each job."
    found, lead = queue_document(results), f"{draw.queue_words(results)}."
    figures = [("queue", caption, draw.draw_queue(results))]
    _finish(output, as_json, found, queue_lines(results), "Arbitration: a queue of jobs", lead, figures)


@arbitrate.command()
@click.option("--jobs", "table", type=_PATH, metavar="FILE", help="Table of jobs, as of `solve`.")
@click.option("--store", type=_PATH, metavar="FILE", help="Curves of the jobs without bandwidth, as of `solve`.")
@_paths_option("--forge", help="FORGE's tables, for estimates of the six applications of Section 5.2.")
@click.option(
    "--policy",
    "policies",
    type=PolicyType(),
    multiple=True,
    default=("zero", "one", "static", "size", "mckp", "oracle"),
    show_default=True,
)
@click.option("--io-nodes", "pools", type=Counts(), default="4,8,12,24,36", show_default=True)
@click.option("--compute-nodes", type=click.IntRange(1), help="Of the system, for STATIC.  [default: of the jobs]")
@_output
@_json
def compare(
    table: Path | None,
    store: Path | None,
    forge: tuple[Path, ...] | None,
    policies: tuple[str, ...],
    pools: tuple[int, ...],
    compute_nodes: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Give pools of several sizes to the same jobs, by several policies (Figures 6 to 8)."""
    from mpiio_ext.delegates.arbitration import draw
    from mpiio_ext.delegates.arbitration.applications import paper_jobs
    from mpiio_ext.delegates.arbitration.comparison import compare as run
    from mpiio_ext.delegates.arbitration.jobs import Machine
    from mpiio_ext.delegates.arbitration.rules import policy
    from mpiio_ext.delegates.arbitration.tables import read_forge, read_jobs

    if (table is None) == (forge is None):
        raise click.UsageError("name the jobs by --jobs, or measured patterns by --forge")
    jobs = paper_jobs(read_forge(forge)) if forge is not None else read_jobs(table or Path(), store)
    names = dict.fromkeys(policies)
    found = run(jobs, Machine(io_nodes=0, compute_nodes=compute_nodes), pools, {name: policy(name) for name in names})
    figures = [("figure6", "Aggregate bandwidth of the jobs by policy and size of the pool.", draw.draw_sums(found))]
    if "mckp" in names:
        figures += [("figure7", "Bandwidth of each job under MCKP over its best alone.", draw.draw_shares(found))]
    if {"mckp", "static"} <= names.keys():
        caption = "Bandwidth of each job under MCKP less that under STATIC."
        figures += [("figure8", caption, draw.draw_differences(found))]
    lead = f"{draw.comparison_words(found)}."
    _finish(output, as_json, found.document(), found.lines(), "Arbitration: policies compared", lead, figures)


#: Settings of MCKP on the command line of `solve`: attribute -> value without the option.
_OF_MCKP = {
    "floor": 0.0,
    "confidence": None,
    "shared_node": False,
    "migration_cost_s": 0.0,
    "horizon_s": 600.0,
    "hysteresis": 0.0,
}


@arbitrate.command()
@click.option(
    "--jobs",
    "table",
    type=_PATH,
    required=True,
    metavar="FILE",
    help="Table: job, compute_nodes, processes, io_nodes, bandwidth (MB/s); or program, weight, current.",
)
@click.option(
    "--store",
    type=_PATH,
    metavar="FILE",
    help="Curves of the jobs without bandwidth, by program, or else by job. Table: io_nodes may be missing.",
)
@click.option("--io-nodes", type=click.IntRange(0, 2**24), required=True)
@click.option("--compute-nodes", type=click.IntRange(1), help="Of the system, for STATIC.  [default: of the jobs]")
@click.option("--policy", "name", type=PolicyType(), default="mckp", show_default=True)
@click.option("--most", type=click.IntRange(1), help="I/O nodes that one job gets at most.")
@click.option("--counts", type=Counts(), help="Numbers that may be given; between measured ones by interpolation.")
@click.option(
    "--divisible/--no-divisible",
    default=True,
    show_default=True,
    help="Only numbers that divide a job's compute nodes: in the paper each of them has one I/O node.",
)
@click.option("--direct/--no-direct", default=True, show_default=True, help="Jobs may do without I/O nodes.")
@click.option("--weight", "weights", multiple=True, metavar="JOB=NUMBER", help="MCKP: weight of a MB/s of this job.")
@click.option("--floor", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="MCKP: fairness floor.")
@click.option("--confidence", type=float, help="MCKP: lower bounds of this confidence instead of means.")
@click.option(
    "--migration-cost",
    "migration_cost_s",
    type=Duration(zero=True),
    default="0s",
    show_default=True,
    help="MCKP: time without I/O of a job that gets another number than its `current`.",
)
@click.option(
    "--horizon",
    "horizon_s",
    type=Duration(),
    default="10m",
    show_default=True,
    help="MCKP: time until the next decision, as a rule.",
)
@click.option(
    "--hysteresis",
    type=float,
    default=0.0,
    show_default=True,
    help="MCKP: total gain below which jobs stay at their `current`.",
)
@click.option("--shared-node", is_flag=True, help="MCKP: one I/O node is shared by those that get none.")
@_json
def solve(
    table: Path,
    store: Path | None,
    io_nodes: int,
    compute_nodes: int | None,
    name: str,
    most: int | None,
    counts: tuple[int, ...] | None,
    divisible: bool,
    direct: bool,
    weights: tuple[str, ...],
    as_json: bool,
    **of_mckp: Any,
) -> None:
    """Give the I/O nodes of a pool to jobs."""
    from mpiio_ext.delegates.arbitration.jobs import Machine
    from mpiio_ext.delegates.arbitration.rules import policy, settings_of
    from mpiio_ext.delegates.arbitration.tables import read_jobs

    settings = {key: value for key, value in of_mckp.items() if key in settings_of(name)}
    if not settings and (of_mckp != _OF_MCKP or weights):
        raise click.UsageError(
            "--weight, --floor, --confidence, --migration-cost, --horizon, --hysteresis and "
            "--shared-node are settings of the policy mckp"
        )
    machine = Machine(
        io_nodes=io_nodes, compute_nodes=compute_nodes, direct=direct, most=most, divisible=divisible, counts=counts
    )
    found = policy(name, **settings).allocate(_weighted(read_jobs(table, store), weights), machine)
    _finish(None, as_json, found.document(), found.lines())


def _weighted(jobs: Sequence[Job], weights: Sequence[str]) -> list[Job]:
    """Return the jobs with the weights of the command line."""
    from dataclasses import replace

    given_weights: dict[str, float] = {}
    for text in weights:
        job, _, number = text.rpartition("=")
        if job not in {each.name for each in jobs}:
            raise click.UsageError(f"--weight {text}: JOB=NUMBER is expected, of a job in the table")
        try:
            given_weights[job] = float(number)
        except ValueError as error:
            raise click.UsageError(f"--weight {text}: {number!r} is no number") from error
    return [replace(each, weight=given_weights.get(each.name, each.weight)) for each in jobs]


@arbitrate.command()
@_paths_option("--forge", help="FORGE's tables: a curve of each pattern.")
@_paths_option("--bench", help="results.json or results.parquet of the bench.")
@_paths_option("--darshan-log", help="Darshan logs: a curve of each program, estimated from --base.")
@click.option(
    "--setup",
    type=_PATH,
    metavar="FILE",
    help="Set-up of `mpiio-ext analyze`: its store's logs and statistics, likewise.",
)
@_paths_option("--base", help="Measured patterns in FORGE's format, for --darshan-log and --setup.")
@click.option("--as", "program", metavar="PROGRAM", help="Name of the one curve: that of the program, for the arbiter.")
@click.option(
    "--store",
    type=_PATH,
    metavar="FILE",
    help="Store the curves there, each as a new version. Without measurements: show the stored ones.",
)
@click.option("--versions", is_flag=True, help="With --store: show all versions.")
@click.option("--undo", metavar="NAME", help="With --store: the version before the current one is in force again.")
@click.option("--match", default="", metavar="TEXT", help="Only curves whose name contains this.")
@_output
@_json
def curves(
    store: Path | None,
    versions: bool,
    undo: str | None,
    match: str,
    program: str | None,
    output: Path | None,
    as_json: bool,
    **sources: Any,
) -> None:
    """Make curves from measurements or logs, show and store them."""
    from mpiio_ext.delegates.arbitration import draw, gather
    from mpiio_ext.delegates.arbitration.store import Store, plain

    given = [
        f"--{name.replace('_', '-')}"
        for name in ("forge", "bench", "darshan_log", "setup")
        if sources[name] is not None
    ]
    if (versions or undo is not None) and (store is None or given):
        raise click.UsageError("--versions and --undo are for --store FILE, without measurements")
    if len(given) > 1 or (not given and store is None):
        raise click.UsageError("name measurements by one of --forge, --bench, --darshan-log and --setup, or a --store")
    kept = None if store is None else Store(store)
    if kept is not None and undo is not None:
        echo(f"{undo}: version {kept.undo(undo)} is in force again", err=as_json)
    found, notes = _found(given, kept, sources)
    found = gather.named(found, match, program)
    if kept is not None and given:
        kept.save(found)
    lines = [gather.line(name, curve) for name, curve in found.items()]
    document: dict[str, Any] = {
        "what": "arbitration curves",
        "units": {"bandwidth": "MB/s (10^6 bytes)"},
        "curves": {name: plain(curve) for name, curve in found.items()},
        "left_out": notes,
    }
    if kept is not None and versions:
        lines = gather.history_lines(kept, list(found))
        document["versions"] = gather.history_document(kept, list(found))
    first = f", the first {_MOST_DRAWN} of {len(found)} curves (--match chooses)" if len(found) > _MOST_DRAWN else ""
    drawn = draw.draw_curves(dict(list(found.items())[:_MOST_DRAWN]))
    figures = [("curves", f"Bandwidth by I/O nodes{first}.", drawn)]
    for note in notes:
        warn(note)
    kinds = list(dict.fromkeys(curve.source for curve in found.values()))
    listed = ", ".join([*kinds[:3], *(["…"] if kinds[3:] else [])]) or "none"
    lead = f"{len(found):,} curve{'' if len(found) == 1 else 's'} of bandwidth by I/O nodes: {listed}."
    _finish(output, as_json, document, lines, "Arbitration: curves", lead, figures)


def _found(given: Sequence[str], kept: Store | None, sources: Mapping[str, Any]) -> tuple[dict[str, Curve], list[str]]:
    """Return the curves that the command line selects, and notes about others."""
    from mpiio_ext.delegates.arbitration import CurveError, gather

    if not given and kept is not None:
        found = {name: kept.load(name) for name in kept.names()}
        if not found:
            raise click.UsageError(f"{kept.path}: no curve is stored there")
        return found, []
    if given[0] in ("--forge", "--bench"):
        return gather.measured(sources["forge"], sources["bench"]), []
    if sources["base"] is None:
        raise click.UsageError(f"{given[0]} needs measured patterns to estimate from: --base FILE,...")
    from mpiio_ext.analytics import learnt

    patterns, notes = (
        learnt.patterns_of_store(sources["setup"])
        if sources["setup"] is not None
        else learnt.patterns_of_logs(sources["darshan_log"])
    )
    if not patterns:
        raise CurveError("no log has bytes that a program read or wrote" + "".join(f"; {note}" for note in notes))
    return gather.learnt(patterns, sources["base"]), notes
