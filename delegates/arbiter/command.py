"""``mpiio-ext delegates arbiter``: the command line of the arbiter."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.common.commands import LazyGroup, reporting, warn
from mpiio_ext.common.options import Duration, Existing
from mpiio_ext.common.printing import echo
from mpiio_ext.delegates.arbitration.policytype import PolicyType
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from mpiio_ext.delegates.arbiter.settings import Settings
    from mpiio_ext.delegates.arbitration.curves import Point


_WATCH = "mpiio_ext.delegates.arbiter.slurm.command", "watch", "Send the arbiter what squeue or sacct list."


@click.group(cls=LazyGroup, subcommands={"slurm-watch": _WATCH}, invoke_without_command=True)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder that all jobs see; they find the arbiter by the hint mpiox_arbiter=FOLDER.",
)
@click.option("--io-nodes", type=int, help="I/O nodes in the pool. Without it: as in the folder's settings.json.")
@click.option("--policy", "policy_name", type=PolicyType(), default=None, help="How I/O nodes are given [mckp].")
@click.option(
    "--curves",
    type=Existing(path_type=Path, dir_okay=False),
    help='JSON: {"program": {"number of I/O nodes": MB/s, ...}, ...}, or a store of `arbitrate curves`.',
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="PROGRAM=NUMBER",
    help="mckp: weight of a MB/s of this program [1]. May be given several times.",
)
@click.option("--compute-nodes", type=int, help="static: of the machine [those of the jobs].")
@click.option("--most", type=int, help="I/O nodes that one job gets at most [as many as there are].")
@click.option(
    "--divisible/--no-divisible",
    default=None,
    help="Only numbers that divide a job's compute nodes [no: its delegates share pages, not nodes].",
)
@click.option(
    "--user-share",
    type=float,
    help="Part of the I/O nodes, 0 to 1, that the jobs of one user have at most "
    "while jobs of others request them [the same for all users].",
)
@click.option("--jobs-per-user", type=int, help="Jobs of one user that count [256].")
@click.option(
    "--shared-node/--no-shared-node",
    default=None,
    help="mckp: I/O node 0 is shared by the jobs that get none of their own [no].",
)
@click.option("--confidence", type=float, help="mckp: of the bandwidths, from their repetitions; 0.5 to below 1.")
@click.option("--floor", type=float, help="mckp: share of its best bandwidth that each job gets at least [0].")
@click.option(
    "--migration-cost", type=Duration(zero=True), help="mckp: time without I/O of a job that gets another number [0]."
)
@click.option("--horizon", type=Duration(), help="mckp: time until the next decision, as a rule [10m].")
@click.option("--hysteresis", type=float, help="mckp: total gain below which the grants of running jobs stay [0].")
@click.option("--lease", type=Duration(), help="Time without a sign of life after which a job counts as dead [10s].")
@click.option(
    "--reserve",
    type=Duration(zero=True),
    help="Time for which a job that the scheduler has started counts before its first file [0].",
)
@click.option(
    "--set",
    "only_set",
    is_flag=True,
    help="Change the settings of the running arbiter, or of the next one if none runs, and end.",
)
@click.option(
    "--status", is_flag=True, help="Print as JSON whether an arbiter serves, its settings, map and jobs, and exit."
)
@click.option(
    "--interval", type=Duration(least=0.001), default="50ms", show_default=True, help="Time between two checks."
)
@click.pass_context
def arbiter(
    ctx: click.Context,
    /,
    folder: Path | None,
    curves: Path | None,
    weights: tuple[str, ...],
    only_set: bool,
    status: bool,
    interval: float,
    **given: Any,
) -> None:
    """Give the jobs of a machine I/O nodes, and assign them anew when jobs start and end.

    It runs until you interrupt it. Jobs then continue with the I/O nodes that they have, and follow the arbiter again
    once it is back.
    """
    if ctx.invoked_subcommand is not None:
        return
    if folder is None:
        raise click.UsageError("Missing option '--dir'.")
    from mpiio_ext.delegates.arbiter import settings
    from mpiio_ext.delegates.arbiter.service import Arbiter, is_served

    if status:
        _print_status(folder)
        return
    with reporting(OSError):
        if only_set and not folder.is_dir():
            raise ArgumentError(
                f"{folder}: no such folder, so that no arbiter serves it: start one there, without "
                f"--set (mpiio-ext delegates arbiter --dir {folder} --io-nodes N)"
            )
        first = _settings(folder, given, curves, weights)
        if only_set:
            settings.write(folder, first)
            if is_served(folder) is False:
                warn(f"{folder}: no arbiter serves this folder now; the next one uses these settings")
            return
        stop = stopping()
        with Arbiter(folder, first, lambda line: echo(line)) as service:
            repeat(service.step, stop, interval)  # on a full or unreachable file system jobs keep their I/O nodes


def stopping() -> threading.Event:
    """Return what SIGINT and SIGTERM set from now on."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def repeat(step: Callable[[], object], stop: threading.Event, interval_s: float, *others: type[Exception]) -> None:
    """Make a step in each interval; one that fails, with OSError or one of `others`, is reported once and repeated."""
    last = ""
    caught: tuple[type[Exception], ...] = (OSError, *others)
    while not stop.is_set():
        try:
            step()
            last = ""
        except caught as error:
            if str(error) != last:
                warn(f"{error}; trying again")
            last = str(error)
        stop.wait(interval_s)


#: Options whose settings have other names.
_NAMES = {
    "policy_name": "policy",
    "lease": "lease_s",
    "reserve": "reserve_s",
    "migration_cost": "migration_cost_s",
    "horizon": "horizon_s",
}


def _settings(folder: Path, given: Mapping[str, Any], curves: Path | None, weights: Sequence[str]) -> Settings:
    """Return the folder's settings, with those of the command line in their place."""
    from mpiio_ext.delegates.arbiter import settings

    known = json.loads(settings.read(folder).encode()) if (folder / "settings.json").exists() else {}
    known |= {_NAMES.get(name, name): value for name, value in given.items() if value is not None}
    if weights:
        known["weights"] = {**known.get("weights", {}), **dict(map(_weight, weights))}
    if curves is not None:
        known["curves"] = _curves(curves)
    if "io_nodes" not in known:
        raise ArgumentError(f"{folder} has no settings.json yet: give --io-nodes")
    return settings.decode(json.dumps(known))


def _weight(text: str) -> tuple[str, float]:
    program, equals, number = text.rpartition("=")
    if not equals or not program:
        raise ArgumentError(f"--weight {text}: PROGRAM=NUMBER is expected")
    try:
        return program, float(number)
    except ValueError:
        raise ArgumentError(f"--weight {text}: {number!r} is no number") from None


def _curves(path: Path) -> object:
    """Return the curves in a file, as the settings have them: program -> number of I/O nodes -> MB/s."""
    from mpiio_ext.common import documents
    from mpiio_ext.delegates.arbitration.store import Store

    document = documents.read_json(path)
    if not isinstance(document, dict) or "format" not in document:
        return document
    stored = {name: Store(path).load(name) for name in Store(path).names()}
    return {
        name: {str(count): _value(point) for count, point in curve.points.items() if count > 0}
        for name, curve in stored.items()
        if curve.counts[-1] > 0
    }


def _value(point: Point) -> object:
    if point.deviation is None:
        return point.mean
    return {"mean": point.mean, "deviation": point.deviation, "repetitions": point.repetitions}


def _print_status(folder: Path) -> None:
    import dataclasses

    from mpiio_ext.delegates.arbiter import announcements, mapfile, settings
    from mpiio_ext.delegates.arbiter.expired import Expired
    from mpiio_ext.delegates.arbiter.service import is_served

    if not (folder / "settings.json").exists():
        raise ArgumentError(f"{folder}: no arbiter has ever served this folder: start one with --io-nodes")
    with reporting(OSError):
        content = mapfile.read(folder)
        jobs, _ = announcements.read_all(folder, Expired(folder).times)
        document = {
            "serving": is_served(folder),
            "settings": json.loads(settings.read(folder).encode()),
            "map": {"generation": content.generation, "jobs": {name: list(n) for name, n in content.jobs.items()}},
            "jobs": [dataclasses.asdict(job) for job in jobs],
        }
    echo(json.dumps(document, indent=2))
