"""``mpiio-ext pioneer``: from traces to workload paths, profiles and synthetic workloads."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.pioneer.path import WorkloadPath
    from mpiio_ext.pioneer.table import TraceInfo

__all__ = ["pioneer"]

_HELP = {"help_option_names": ["-h", "--help"]}


def _fail(error: Exception) -> click.ClickException:
    return click.ClickException(str(error))


def _load_path(name: str) -> WorkloadPath:
    from mpiio_ext.pioneer.path import WorkloadPath

    try:
        return WorkloadPath.load(Path(name))
    except (OSError, ValueError) as error:
        raise _fail(error) from error


@click.group(context_settings=_HELP)
def pioneer() -> None:
    """Trace a program once, characterize its I/O, and carry it out with any number of processes."""


# ---- traces ----------------------------------------------------------------------------------------------------------


def _read(sources: Sequence[str], name: str | None) -> tuple[TraceInfo, Iterable[pa.RecordBatch]]:
    from mpiio_ext.pioneer.readers import find_reader, reader_of

    paths = [Path(source) for source in sources]
    reader = find_reader(paths[0]) if name is None else reader_of(name)
    return reader.read(paths)


def _surveyed(
    sources: Sequence[str], name: str | None, info: TraceInfo, batches: Iterable[pa.RecordBatch]
) -> Iterable[pa.RecordBatch]:
    """Return the rows with corrected times and whole names; what people have to know of that is said."""
    from mpiio_ext.pioneer.sanitize.survey import take_survey

    survey = take_survey(info, batches)
    for line in survey.report():
        click.echo(f"mpiio-ext: {line}", err=True)
    return survey.apply(_read(sources, name)[1])


def _selected(only: Sequence[str], skip: Sequence[str], table: pa.Table) -> pa.Table:
    """Return the rows whose files are selected by patterns; those that name no file stay."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = pc.unique(table["file"].cast(pa.string())).to_pylist()

    def wanted(name: str | None) -> bool:
        if name is None:
            return True
        return (not only or any(fnmatch.fnmatchcase(name, each) for each in only)) and not any(
            fnmatch.fnmatchcase(name, each) for each in skip
        )

    if not only and not skip:
        return table
    kept = pa.array([name for name in names if wanted(name)], pa.string())
    return table.filter(pc.is_in(table["file"].cast(pa.string()), kept))


def _tables(batches: Iterable[pa.RecordBatch]) -> dict[int, pa.Table]:
    """Return the application's operations by rank."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from mpiio_ext.pioneer.sanitize import SANITIZED, application_only, sanitize

    kept = [application_only(pa.Table.from_batches([batch], SANITIZED)) for batch in sanitize(batches)]
    if not kept:
        return {}
    whole = pa.concat_tables(kept).unify_dictionaries()
    ranks = pc.unique(whole["rank"]).to_pylist()
    return {rank: whole.filter(pc.equal(whole["rank"], rank)) for rank in sorted(ranks)}


def _say_loss(info: TraceInfo) -> None:
    for source in info.sources:
        loss = source.loss
        if loss.skipped or loss.truncated:
            click.echo(f"mpiio-ext: {source.path}: {loss.skipped} of {source.lines} lines were not understood"
                       f"{', and its end is missing' if loss.truncated else ''}", err=True)  # fmt: skip
            for problem in loss.problems[:3]:
                click.echo(f"  line {problem.line}: {problem.why}: {problem.text[:80]}", err=True)


@pioneer.command(context_settings=_HELP)
@click.argument("trace", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the workload path is put (Parquet).")
@click.option("--format", "name", metavar="NAME", help="Format of the trace; else it is found out.")
@click.option("--only", multiple=True, metavar="GLOB", help="Take operations on files that match; may be repeated.")
@click.option("--skip", multiple=True, metavar="GLOB", help="Leave out those on files that match; may be repeated.")
def path(trace: tuple[str, ...], output: str, name: str | None, only: tuple[str, ...], skip: tuple[str, ...]) -> None:
    """Make the generic workload path of a TRACE: files or folders, one or several."""
    import numpy as np

    from mpiio_ext.pioneer.path import extract, find_groups

    try:
        info, batches = _read(trace, name)
        tables = _tables(_surveyed(trace, name, info, batches))
        tables = {rank: _selected(only, skip, table) for rank, table in tables.items()}
        _say_loss(info)
        if not tables:
            raise ValueError("the trace has no operations of the application")
        words: dict[str, int] = {}
        operations = {
            rank: np.array([words.setdefault(word, len(words)) for word in table["operation"].to_pylist()], np.int32)
            for rank, table in tables.items()
        }
        groups = find_groups(operations, root=min(tables))
        found = extract(tables, groups, ranks=info.ranks or len(tables))
        found.save(Path(output))
    except (OSError, ValueError) as error:
        raise _fail(error) from error
    sizes = ", ".join(str(len(group)) for group in groups[1:]) or "none"
    click.echo(f"{output}: {found.table.num_rows:,} operations of {len(tables)} ranks; subgroups of children: {sizes}"
               f"{'' if found.info.minimal else '; the differences may not be the fewest'}")  # fmt: skip


# ---- profiles --------------------------------------------------------------------------------------------------------


@pioneer.command(context_settings=_HELP)
@click.argument("workload_path", metavar="PATH", type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the profile is put (JSON).")
def profile(workload_path: str, output: str) -> None:
    """Characterize a workload PATH: open sessions, gaps, sizes, offsets, slack times by file class."""
    from mpiio_ext.pioneer.profile import characterize
    from mpiio_ext.pioneer.profile.document import save

    found = characterize(_load_path(workload_path))
    try:
        save(found, Path(output))
    except OSError as error:
        raise _fail(error) from error
    for name, item in found.classes.items():
        sessions = sum(item.access_mode.values())
        click.echo(f"{name}: {item.files} files, {sessions} open sessions, "
                   f"{sum(item.inside.values()) + sum(item.outside.values()):,} operations")  # fmt: skip


@pioneer.command(context_settings=_HELP)
@click.argument("document", metavar="PROFILE", type=click.Path(exists=True, dir_okay=False))
def check(document: str) -> None:
    """Say what is wrong with a PROFILE, and where."""
    from mpiio_ext.pioneer.profile.document import ProfileError, load

    try:
        load(Path(document))
    except (OSError, ProfileError) as error:
        raise _fail(error) from error
    click.echo(f"{document}: fine")


@pioneer.command(context_settings=_HELP)
@click.argument("original", type=click.Path(exists=True, dir_okay=False))
@click.argument("synthetic", type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(original: str, synthetic: str, as_json: bool) -> None:
    """Say how close the workload path SYNTHETIC comes to ORIGINAL. The status is 1 where a limit is passed."""
    import json

    from mpiio_ext.pioneer.compare import LIMITS, compare_paths

    found = compare_paths(_load_path(original), _load_path(synthetic))
    failed = found.failed
    if as_json:
        click.echo(json.dumps({"values": dict(found.values), "limits": dict(LIMITS), "failed": sorted(failed)}))
    else:
        width = max(len(name) for name in found.values)
        for name, value in found.values.items():
            limit = LIMITS[name.rpartition(".")[2]]
            click.echo(f"{name:<{width}}  {value:8.4f}  limit {limit}{'  FAILED' if name in failed else ''}")
    raise SystemExit(1 if failed else 0)


# ---- the engine ------------------------------------------------------------------------------------------------------


@pioneer.command(context_settings=_HELP)
@click.argument("workload_path", metavar="PATH", type=click.Path(exists=True, dir_okay=False))
@click.argument("folder", metavar="FOLDER", type=click.Path(file_okay=False))
@click.option("--time-scale", type=click.FloatRange(min=0), default=1.0, show_default=True, metavar="X",
              help="Slack times are multiplied by it; 0: as fast as can be.")
@click.option("--spin-us", type=click.IntRange(min=0), default=0, show_default=True, metavar="US",
              help="End of each slack time that is spun for: more exact, where each rank has a core.")
@click.option("--most-bytes", type=click.IntRange(min=0), default=None, metavar="N", help="That a rank may write.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and end.")
def replay(
    workload_path: str, folder: str, time_scale: float, spin_us: int, most_bytes: int | None, dry_run: bool
) -> None:
    """Carry out a workload PATH below FOLDER, by as many ranks as there are.

    \b
      mpirun -n 8 mpiio-ext pioneer replay path.parquet /scratch/me/replay
    """  # noqa: D301  (click wants the backspace character itself)
    found = _load_path(workload_path)
    from mpi4py import MPI

    from mpiio_ext.pioneer.engine import PlaceError, Places, make_plan
    from mpiio_ext.pioneer.engine import replay as carry_out

    comm = MPI.COMM_WORLD
    place = Path(folder)
    try:
        if dry_run:
            plan = make_plan(found, comm.rank, comm.size, Places(place))
            numbers = comm.gather((plan.ids.size, plan.bytes_written, len(plan.paths), sum(plan.unknown.values())))
            if numbers is not None:
                counts = [sum(column) for column in zip(*numbers, strict=True)]
                click.echo(f"{comm.size} ranks would make {counts[0]:,} calls on {counts[2]:,} files below {place} "
                           f"and write {counts[1]:,} bytes; the engine lacks {counts[3]:,} operations")  # fmt: skip
            return
        place.mkdir(parents=True, exist_ok=True)
        begun = MPI.Wtime()
        plan, outcome = carry_out(found, place, comm, time_scale=time_scale, spin_ns=1000 * spin_us,
                                  most_bytes=2**63 - 1 if most_bytes is None else most_bytes)  # fmt: skip
    except (OSError, PlaceError) as error:
        print(f"mpiio-ext: rank {comm.rank}: {error}", file=sys.stderr, flush=True)
        comm.Abort(1)
        raise
    seconds = comm.reduce(MPI.Wtime() - begun, MPI.MAX)
    mine = (plan.ids.size, outcome.bytes_written, outcome.bytes_read, outcome.failed, outcome.left_out,
            sum(plan.unknown.values()))  # fmt: skip
    numbers = comm.gather(mine)
    if numbers is not None:
        total = [sum(column) for column in zip(*numbers, strict=True)]
        click.echo(f"{comm.size} ranks made {total[0] - total[4]:,} calls in {seconds:.3f} s, wrote {total[1]:,} "
                   f"and read {total[2]:,} bytes; {total[3]:,} calls failed, {total[4] + total[5]:,} were left out")
