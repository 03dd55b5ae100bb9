"""``mpiio-ext pioneer replay``: carrying out a workload path by as many ranks as there are.

Every rank makes its own plan. A fault on one rank, such as a name that leads out of the folder or a file that cannot be
made, ends all ranks after they have agreed on it, so that no rank waits for another.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.cli.words import hint_options
from mpiio_ext.common.commands import FAILED, UNUSABLE, Command
from mpiio_ext.common.options import Duration, Size
from mpiio_ext.common.printing import echo
from mpiio_ext.errors import MpiioExtError

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiio_ext.pioneer.engine import Outcome, Plan


def _under_extension(hint: tuple[str, ...], hints_file: str | None, words: list[str]) -> None:
    """Start this command once more with the extension and the hints under it. Does not return."""
    import mpiio_ext
    from mpiio_ext.cli.run import select_library, settings_of, start

    command = (sys.executable, "-m", "mpiio_ext", "pioneer", "replay", *words)
    select_library(command)
    start(command, str(mpiio_ext.get_library()), settings_of(hint, hints_file), dry_run=False)


def _refuse(comm: MPI.Intracomm, error: Exception | None, status: int = UNUSABLE) -> None:
    """End all ranks when one has an error; collective."""
    found = comm.allgather(None if error is None else str(error))
    first = next(((rank, text) for rank, text in enumerate(found) if text is not None), None)
    if first is not None:
        if comm.rank == 0:
            echo(f"mpiio-ext: rank {first[0]}: {first[1]}", err=True)
        raise SystemExit(status)


def _not_made(plan: Plan, outcome: Outcome) -> Counter[str]:
    """Return how many calls the engine itself has left out, by function."""
    from mpiio_ext.pioneer.engine import engine_name
    from mpiio_ext.pioneer.engine.run import NOT_MADE

    return Counter(engine_name(number) for number in plan.operation[outcome.result == NOT_MADE].tolist())


def _say_left_out(comm: MPI.Intracomm, plan: Plan, outcome: Outcome | None = None) -> None:
    """Print the operations that are left out, and why; collective."""
    from mpiio_ext.pioneer.engine.coverage import NOT_OPEN

    not_made: Counter[str] = Counter() if outcome is None else _not_made(plan, outcome)
    found = comm.gather((plan.unknown, plan.reasons, not_made))
    if found is None:
        return
    total, late = Counter[str](), Counter[str]()
    for unknown, _, own in found:
        total.update(unknown)
        late.update(own)
    reasons = {name: why for _, own, _ in found for name, why in own.items()}
    for name, count in sorted(total.items()):
        echo(f"  left out: {count:,} x {name}: {reasons[name]}")
    for name, count in sorted(late.items()):
        echo(f"  left out: {count:,} x {name}: {NOT_OPEN}; or --most-bytes allows no more")


def _say_plan(comm: MPI.Intracomm, plan: Plan, place: Path) -> None:
    from mpiio_ext.pioneer.engine.room import input_bytes
    from mpiio_ext.pioneer.engine.run import needed_files

    made = input_bytes(needed_files(plan))
    numbers = comm.gather((plan.ids.size, plan.bytes_written, sum(plan.unknown.values()), made))
    files = comm.gather(plan.paths)
    if numbers is not None and files is not None:
        calls, written, left_out, made = (sum(column) for column in zip(*numbers, strict=True))
        echo(
            f"{comm.size} ranks would make {calls:,} calls on {len(set().union(*files)):,} files below {place} "
            f"and write {written:,} bytes; {left_out:,} operations are left out"
        )
        if made:
            echo(
                f"  before it files that are read would be made longer by {made:,} bytes, counted by each "
                "rank that reads them"
            )
    _say_communicators(comm, plan)
    _say_left_out(comm, plan)


def _say_communicators(comm: MPI.Intracomm, plan: Plan) -> None:
    """Print on which communicators of a part of the ranks files would be opened; collective."""
    from mpiio_ext.pioneer.show_operations import ranges

    opens = [
        (ranks, int((plan.communicator == number).sum()))
        for number, ranks in enumerate(plan.communicators)
        if ranks and ranks[0] == comm.rank
    ]
    found = comm.gather(opens)
    every = [one for several in found or () for one in several]
    if every:
        echo(
            f"  {sum(count for _, count in every):,} times ranks would open files with some of the others: "
            f"{len(every):,} communicators of {min(len(ranks) for ranks, _ in every)} to "
            f"{max(len(ranks) for ranks, _ in every)} ranks, the first of ranks {ranges(every[0][0])}"
        )


def _check_room(comm: MPI.Intracomm, plan: Plan, place: Path, most_bytes: int) -> None:
    """End all ranks where a rank would make more input than it may write, or the file system has too little room."""
    from mpiio_ext.pioneer.engine.room import free_bytes, input_bytes, room_needed
    from mpiio_ext.pioneer.engine.run import needed_files

    needed = needed_files(plan)
    made, error = input_bytes(needed), None
    if made > most_bytes:
        error = ValueError(
            f"the files that it reads would have to be made longer by {made:,} bytes; --most-bytes "
            f"allows {most_bytes:,}"
        )
    _refuse(comm, error)
    room = room_needed(plan, needed, comm, most_bytes)
    if comm.rank == 0 and room > (free := free_bytes(place)):
        error = ValueError(
            f"{place}: the path needs room for up to {room:,} bytes, and {free:,} are free: name a "
            "folder of another file system, or limit the bytes that each rank writes by --most-bytes"
        )
    _refuse(comm, error, FAILED)


def _failures(plan: Plan, outcome: Outcome, *, harmless: bool) -> Counter[tuple[str, str, bool]]:
    """Return how many calls have failed, by function, reason, and whether they have failed in the trace.

    `harmless`: those that programs make in vain.
    """
    import errno

    from mpi4py import MPI

    from mpiio_ext.pioneer.engine import engine_name

    found: Counter[tuple[str, str, bool]] = Counter()
    errors = -outcome.error if harmless else outcome.error
    for row in (errors > 0).nonzero()[0].tolist():
        name, error = engine_name(int(plan.operation[row])), int(errors[row])
        why = MPI.Get_error_string(error) if name.startswith("MPI_") else errno.errorcode.get(error, str(error))
        found[name, why, bool(plan.failed_before[row])] += 1
    return found


def _say_in_vain(comm: MPI.Intracomm, plan: Plan, outcome: Outcome) -> None:
    """Print which calls found no file, or another rank before them, and have not failed in the trace; collective."""
    several = comm.gather(_failures(plan, outcome, harmless=True))
    total: Counter[tuple[str, str]] = Counter()
    for own in several or ():
        for (name, why, before), count in own.items():
            total[name, why] += 0 if before else count
    for (name, why), count in sorted(total.items()):
        if count:
            echo(
                f"  in vain: {count:,} x {name}: {why} (as in a program that probes for a file, or in which another "
                f"rank was first)"
            )


def _say_failed(comm: MPI.Intracomm, plan: Plan, outcome: Outcome) -> bool:
    """Print which calls have failed, and why; whether rank 0 has seen one that had not failed in the trace."""
    _say_in_vain(comm, plan, outcome)
    several = comm.gather(_failures(plan, outcome, harmless=False))
    total: Counter[tuple[str, str, bool]] = Counter()
    where: dict[tuple[str, str, bool], int] = {}
    for rank, own in enumerate(several or ()):
        total.update(own)
        for kind in own:
            where.setdefault(kind, rank)
    for (name, why, before), count in sorted(total.items()):
        note = "in the trace, too" if before else f"first on rank {where[name, why, before]}"
        echo(f"  failed: {count:,} x {name}: {why} ({note})", err=not before)
    return any(not before for _, _, before in total)


def _say_late(late: Sequence[Any], spun_ns: int) -> None:
    """Print how exact the slack times were, if there were any."""
    import numpy as np

    every = np.concatenate(late)
    if every.size:
        half, most = (float(value) / 1e3 for value in np.percentile(every, [50, 99]))
        echo(
            f"  slack times ended {half:.1f} us late at the median, {most:.1f} us at the 99th percentile; "
            f"rank 0 spun for the last {spun_ns / 1e3:.1f} us of each"
        )


def _say_outcome(comm: MPI.Intracomm, plan: Plan, outcome: Outcome) -> None:
    seconds = max(comm.allgather(outcome.seconds))
    mine = (
        plan.ids.size,
        outcome.bytes_written,
        outcome.bytes_read,
        outcome.failed,
        outcome.left_out,
        sum(plan.unknown.values()),
    )
    numbers, late = comm.gather(mine), comm.gather(outcome.late)
    if numbers is not None and late is not None:
        total = [sum(column) for column in zip(*numbers, strict=True)]
        echo(
            f"{comm.size} ranks made {total[0] - total[4]:,} calls in {seconds:.6f} s, wrote {total[1]:,} "
            f"and read {total[2]:,} bytes; {total[3]:,} calls failed, {total[4] + total[5]:,} were left out"
        )
        _say_late(late, outcome.spun_ns)
    _say_left_out(comm, plan, outcome)


@click.command(cls=Command, short_help="Carry a path out, with any number of ranks.")
@click.argument("workload_path", metavar="PATH")
@click.argument("folder", metavar="[FOLDER]", required=False)
@click.option(
    "--time-scale",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Factor of the slack times; 0: as fast as possible.",
)
@click.option(
    "--spin",
    "spin_s",
    type=Duration(zero=True),
    metavar="TIME",
    help="Part at the end of each slack time in which the rank spins, such as 40us; 0: none.  [default: as much as "
    "sleeps are late here, measured; next to none where ranks share cores]",
)
@click.option(
    "--most-bytes",
    type=Size(),
    metavar="SIZE",
    help="Most bytes that a rank may write, preallocate, and create in files that it reads.",
)
@click.option(
    "--stuck-after",
    "report",
    type=Duration(zero=True),
    default="60s",
    show_default=True,
    help="A rank without progress for this time reports its place; 0: never.",
)
@click.option("--existing", is_flag=True, help="Use FOLDER even if it has files that no replay made; they may be lost.")
@click.option("--extension", is_flag=True, help="Put the extension under the replay, as mpiio-ext run does.")
@hint_options("Like --extension, with a hint.", "Like --extension, with the hints of FILE.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and exit.")
@click.option("--orders", is_flag=True, hidden=True)  # of a tuner: mpiio_ext.pioneer.orders
def replay(
    workload_path: str,
    folder: str | None,
    time_scale: float,
    spin_s: float | None,
    most_bytes: int | None,
    report: float,
    existing: bool,
    extension: bool,
    hint: tuple[str, ...],
    hints_file: str | None,
    dry_run: bool,
    orders: bool,
) -> None:
    """Carry out a workload PATH below FOLDER, by as many ranks as there are.

    FOLDER is created if it is missing; its default is PATH's name with ".replay" behind it. Nothing outside FOLDER is
    touched. A folder with files in it is used only if an earlier replay made it. The exit status is 3 if calls failed
    that had not failed in the trace.

    \b
      mpirun -n 8 mpiio-ext pioneer replay path.parquet /scratch/me/replay
      mpirun -n 8 mpiio-ext pioneer replay path.json -H mpiox_partition=group_cyclic
    """  # noqa: D301  (click wants the backspace character itself)
    place = Path(folder) if folder is not None else Path(Path(workload_path).stem + ".replay")
    if extension or hint or hints_file is not None:
        words = [workload_path, str(place), "--time-scale", repr(time_scale), "--stuck-after", repr(report)]
        words += [] if spin_s is None else ["--spin", repr(spin_s)]
        words += [] if most_bytes is None else ["--most-bytes", str(most_bytes)]
        words += ["--existing"] if existing else []
        _under_extension(hint, hints_file, [*words, *(["--dry-run"] if dry_run else [])])
    from mpi4py import MPI

    from mpiio_ext.pioneer.engine.tracer import unrecorded

    with unrecorded():
        most = 2**63 - 1 if most_bytes is None else most_bytes
        _replay(
            MPI.COMM_WORLD,
            Path(workload_path),
            place,
            dry_run,
            existing,
            orders,
            time_scale=time_scale,
            spin_ns=None if spin_s is None else round(1e9 * spin_s),
            most_bytes=most,
            report_s=report,
        )


def _replay(
    comm: MPI.Intracomm, source: Path, place: Path, dry_run: bool, existing: bool, orders: bool, **settings: Any
) -> None:
    from mpiio_ext.pioneer.engine import Places, make_plan
    from mpiio_ext.pioneer.engine.room import claim
    from mpiio_ext.pioneer.engine.run import together_alike
    from mpiio_ext.pioneer.orders import obey
    from mpiio_ext.pioneer.path import WorkloadPath

    error: Exception | None = None
    plan: Plan | None = None
    try:
        plan = make_plan(WorkloadPath.load(source), comm.rank, comm.size, Places(place))
    except (OSError, ValueError, MpiioExtError) as caught:
        error = caught
    _refuse(comm, error)
    assert plan is not None
    if problem := together_alike(plan, comm):
        _refuse(comm, ValueError(problem))
    if dry_run:
        _say_plan(comm, plan, place)
        return
    if comm.rank == 0:
        try:
            claim(place, existing=existing)
        except (OSError, ValueError) as caught:
            error = caught
    _refuse(comm, error)
    _check_room(comm, plan, place, settings["most_bytes"])
    if orders:
        obey(comm, lambda: _once(comm, plan, settings))
    elif status := _once(comm, plan, settings):
        raise SystemExit(status)


def _once(comm: MPI.Intracomm, plan: Plan, settings: dict[str, Any]) -> int:
    """Carry a plan out and print the result; return the exit status, on ranks other than 0 always 0."""
    from mpiio_ext.pioneer.engine import carry_out, prepare_files
    from mpiio_ext.pioneer.engine.room import CALLS_FAILED

    try:
        prepare_files(plan, comm)
    except OSError as caught:  # on all ranks, the same
        if comm.rank == 0:
            echo(f"mpiio-ext: {caught}", err=True)
        raise SystemExit(FAILED) from caught
    try:
        outcome = carry_out(plan, comm, **settings)
    except ValueError as caught:  # on all ranks; the one that has the wrong plan knows more
        _refuse(comm, caught)
        raise
    except (MemoryError, OSError) as caught:  # the others may be in calls that this rank takes part in
        echo(f"mpiio-ext: rank {comm.rank}: {caught}", err=True)
        comm.Abort(1)
        raise
    _say_outcome(comm, plan, outcome)
    failed = _say_failed(comm, plan, outcome)
    return CALLS_FAILED if failed and comm.rank == 0 else 0  # one of them is enough for the launcher
