"""``mpiio-ext pioneer replay``: carrying out a workload path by as many ranks as there are.

Every rank makes its own plan. What goes wrong on one of them, a name that leads out of the folder or a file that cannot
be made, ends all of them after they have agreed on it, so that none waits for another.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.errors import MpiioExtError

if TYPE_CHECKING:
    from mpiio_ext.pioneer.engine import Outcome, Plan

__all__ = ["replay"]

_HELP = {"help_option_names": ["-h", "--help"]}
#: By these `mpiio-ext run` and `mpiio-ext tune` put the extension under a program, or the user tells it hints.
_ASKED_BY = ("MPIOX_HINTS", "MPIOX_HINTS_FILE")


def _under_extension(hint: tuple[str, ...], hints_file: str | None, words: list[str]) -> None:
    """Start this command once more with the extension and the hints under it. Does not return."""
    import mpiio_ext
    from mpiio_ext.cli.run import _settings, start

    command = (sys.executable, "-m", "mpiio_ext", "pioneer", "replay", *words)
    start(command, str(mpiio_ext.get_library()), _settings(hint, hints_file, None), dry_run=False)


def _extension_is_asked() -> bool:
    """Return whether somebody has put the extension under this process, rather than Python's import of mpiio_ext."""
    preloaded = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return any(Path(item).name == "libmpiio_ext.so" for item in preloaded) or any(map(os.environ.get, _ASKED_BY))


def _hints() -> Any:
    """Return the hints of every MPI_File_open; None: none. The MPI library's own way where nobody wants another."""
    from mpi4py import MPI

    return None if _extension_is_asked() else MPI.Info.Create({"mpiox_enable": "false"})


def _refuse(comm: Any, error: Exception | None) -> None:
    """End all ranks when one has an error; collective."""
    found = comm.allgather(None if error is None else str(error))
    first = next(((rank, text) for rank, text in enumerate(found) if text is not None), None)
    if first is not None:
        if comm.rank == 0:
            print(f"mpiio-ext: rank {first[0]}: {first[1]}", file=sys.stderr, flush=True)
        raise SystemExit(1)


def _say_left_out(comm: Any, plan: Plan) -> None:
    """Print what the engine leaves out, and why; collective."""
    found = comm.gather((plan.unknown, plan.reasons))
    if found is None:
        return
    total: Counter[str] = Counter()
    for unknown, _ in found:
        total.update(unknown)
    reasons = {name: why for _, own in found for name, why in own.items()}
    for name, count in sorted(total.items()):
        click.echo(f"  left out: {count:,} x {name}: {reasons[name]}")


def _say_plan(comm: Any, plan: Plan, place: Path) -> None:
    numbers = comm.gather((plan.ids.size, plan.bytes_written, len(plan.paths), sum(plan.unknown.values())))
    if numbers is not None:
        counts = [sum(column) for column in zip(*numbers, strict=True)]
        click.echo(f"{comm.size} ranks would make {counts[0]:,} calls on {counts[2]:,} files below {place} "
                   f"and write {counts[1]:,} bytes; {counts[3]:,} operations are left out")  # fmt: skip
    _say_left_out(comm, plan)


def _say_late(late: Sequence[Any], spun_ns: int) -> None:
    """Print how exact the slack times were, where there were any."""
    import numpy as np

    every = np.concatenate(late)
    if every.size:
        half, most = (float(value) / 1e3 for value in np.percentile(every, [50, 99]))
        click.echo(f"  slack times ended {half:.1f} us late at the median, {most:.1f} us at the 99th percentile; "
                   f"rank 0 spun for the last {spun_ns / 1e3:.1f} us of each")  # fmt: skip


def _say_outcome(comm: Any, plan: Plan, outcome: Outcome) -> None:
    seconds = max(comm.allgather(outcome.seconds))
    mine = (plan.ids.size, outcome.bytes_written, outcome.bytes_read, outcome.failed, outcome.left_out,
            sum(plan.unknown.values()))  # fmt: skip
    numbers, late = comm.gather(mine), comm.gather(outcome.late)
    if numbers is not None:
        total = [sum(column) for column in zip(*numbers, strict=True)]
        click.echo(f"{comm.size} ranks made {total[0] - total[4]:,} calls in {seconds:.6f} s, wrote {total[1]:,} "
                   f"and read {total[2]:,} bytes; {total[3]:,} calls failed, {total[4] + total[5]:,} were left out")
        _say_late(late, outcome.spun_ns)
    _say_left_out(comm, plan)


@click.command(context_settings=_HELP, short_help="Carry a path out, with any number of ranks.")
@click.argument("workload_path", metavar="PATH")
@click.argument("folder", metavar="[FOLDER]", required=False)
@click.option("--time-scale", type=click.FloatRange(min=0), default=1.0, show_default=True, metavar="X",
              help="Slack times are multiplied by it; 0: as fast as can be.")
@click.option("--spin-us", type=click.IntRange(min=0), metavar="US", help="End of each slack time that is spun for; "
              "0: none.  [default: as much as sleeps are late here, measured; next to none where ranks share cores]")
@click.option("--most-bytes", type=click.IntRange(min=0), default=None, metavar="N", help="That a rank may write.")
@click.option("--extension", is_flag=True, help="Put the extension under it, as mpiio-ext run does.")
@click.option("-H", "--hint", multiple=True, metavar="[GLOB:]NAME=VALUE", help="The same, with a hint.")
@click.option("--hints-file", metavar="FILE", help="The same, with the hints of FILE.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and end.")
def replay(
    workload_path: str, folder: str | None, time_scale: float, spin_us: int | None, most_bytes: int | None,
    extension: bool, hint: tuple[str, ...], hints_file: str | None, dry_run: bool,
) -> None:  # fmt: skip
    """Carry out a workload PATH below FOLDER, by as many ranks as there are.

    FOLDER is made where it is missing; without it the folder is that of PATH's name with ".replay" behind it. Nothing
    outside of it is touched.

    \b
      mpirun -n 8 mpiio-ext pioneer replay path.parquet /scratch/me/replay
      mpirun -n 8 mpiio-ext pioneer replay path.json -H mpiox_partition=group_cyclic
    """  # noqa: D301  (click wants the backspace character itself)
    place = Path(folder) if folder is not None else Path(Path(workload_path).stem + ".replay")
    if extension or hint or hints_file is not None:
        words = [workload_path, str(place), "--time-scale", repr(time_scale)]
        words += [] if spin_us is None else ["--spin-us", str(spin_us)]
        words += [] if most_bytes is None else ["--most-bytes", str(most_bytes)]
        _under_extension(hint, hints_file, [*words, *(["--dry-run"] if dry_run else [])])
    from mpi4py import MPI

    from mpiio_ext.pioneer.engine.tracer import unrecorded

    with unrecorded():
        most = 2**63 - 1 if most_bytes is None else most_bytes
        _replay(MPI.COMM_WORLD, Path(workload_path), place, dry_run, time_scale=time_scale,
                spin_ns=None if spin_us is None else 1000 * spin_us, most_bytes=most, info=_hints())  # fmt: skip


def _replay(comm: Any, source: Path, place: Path, dry_run: bool, **settings: Any) -> None:
    from mpiio_ext.pioneer.engine import Places, carry_out, make_plan, prepare_files
    from mpiio_ext.pioneer.path import WorkloadPath

    error: Exception | None = None
    plan: Plan | None = None
    try:
        plan = make_plan(WorkloadPath.load(source), comm.rank, comm.size, Places(place))
    except (OSError, ValueError, MpiioExtError) as caught:
        error = caught
    _refuse(comm, error)
    assert plan is not None
    if dry_run:
        _say_plan(comm, plan, place)
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as caught:
        error = caught
    _refuse(comm, error)
    try:
        prepare_files(plan, comm)
    except OSError as caught:  # on all ranks, the same
        if comm.rank == 0:
            print(f"mpiio-ext: {caught}", file=sys.stderr, flush=True)
        raise SystemExit(1) from caught
    try:
        outcome = carry_out(plan, comm, **settings)
    except (MemoryError, OSError) as caught:  # the others may be in calls that this rank takes part in
        print(f"mpiio-ext: rank {comm.rank}: {caught}", file=sys.stderr, flush=True)
        comm.Abort(1)
        raise
    _say_outcome(comm, plan, outcome)
