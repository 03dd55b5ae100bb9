"""``mpiio-ext top``: the running jobs of this user on this node."""

from __future__ import annotations

import json
import sys
import time

import click

from mpiio_ext.common.commands import Command, json_option
from mpiio_ext.common.options import Duration
from mpiio_ext.common.printing import echo
from mpiio_ext.top import snapshot
from mpiio_ext.top.snapshot import Follower, NoJobError, Snapshot, Watch

#: Limits of the time between two readings.
_LEAST_S, _MOST_S = 0.1, 86_400.0


def _two_looks(follower: Follower, interval_s: float) -> Snapshot:
    """Return a snapshot after an interval, so that rates are present ones; at once if there is no job."""
    seen = follower.look()
    if seen.jobs:
        time.sleep(interval_s)
        seen = follower.look()
    return seen


def _put_json(follower: Follower, interval_s: float) -> None:
    """Print one object, also if there is no such job."""
    try:
        seen = _two_looks(follower, interval_s)
    except NoJobError as error:
        echo(json.dumps(snapshot.as_json(error.seen), indent=1))
        raise
    echo(json.dumps(snapshot.as_json(seen), indent=1))


@click.command(cls=Command)
@click.argument("job", required=False)
@click.option(
    "--interval",
    type=Duration(least=_LEAST_S),
    default="1s",
    show_default=True,
    help="Time between two readings; rates are those of the last interval.",
)
@click.option("--once", is_flag=True, help="Print once and end, as where the output is no terminal.")
@json_option("Print one JSON object and end.")
def top(job: str | None, interval: float, once: bool, as_json: bool) -> None:
    """Show what your running MPI programs do: ranks, files, bandwidth, delegates.

    JOB is the process ID of mpirun, the scheduler's number, the process of a rank, or a word of the command: the
    program, the script or an argument, with its folder or without (a glob). If several jobs match, they are listed.
    Without JOB all your jobs on this node are listed; a single one is shown.

    The command ends with JOB, whose last numbers stay on the screen, or at Ctrl-C. Exit status 1: there is no such job.

    The programs need no option: the command reads their counters in shared memory. For another node run it there.
    """
    if interval > _MOST_S:
        raise click.BadParameter(f"more than {_MOST_S:,.0f} s", param_hint="--interval")
    follower = Follower(Watch(), job)
    if as_json:
        _put_json(follower, interval)
        return
    from mpiio_ext.top import screen

    if once or not sys.stdout.isatty():
        echo(screen.once(_two_looks(follower, interval)))
        return
    screen.live(follower, interval)
