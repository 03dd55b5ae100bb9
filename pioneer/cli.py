"""``mpiio-ext pioneer``: from traces to workload paths, profiles and synthetic workloads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiio_ext.pioneer.cli_replay import replay

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


def _groups(tables: dict[int, pa.Table], *, each_rank: bool) -> list[tuple[int, ...]]:
    """Return the subgroups of the ranks, the root's first."""
    import numpy as np

    from mpiio_ext.pioneer.path import MOST_GROUPS, find_groups

    if each_rank:
        if len(tables) > MOST_GROUPS:
            raise ValueError(f"--each-rank: the trace has {len(tables)} ranks; a path tells {MOST_GROUPS} apart")
        return [(rank,) for rank in sorted(tables)]
    words: dict[str, int] = {}
    operations = {
        rank: np.array([words.setdefault(word, len(words)) for word in table["operation"].to_pylist()], np.int32)
        for rank, table in tables.items()
    }
    return [tuple(group) for group in find_groups(operations, root=min(tables))]


@pioneer.command(context_settings=_HELP)
@click.argument("trace", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the workload path is put (Parquet).")
@click.option("--format", "name", metavar="NAME", help="Format of the trace; else it is found out.")
@click.option("--each-rank", is_flag=True, help="Keep what each rank has done, in place of what each subgroup does: "
              "carried out by as many ranks, every rank makes its own accesses. At most 63 ranks.")
def path(trace: tuple[str, ...], output: str, name: str | None, each_rank: bool) -> None:
    """Make the generic workload path of a TRACE: files or folders, one or several."""
    from mpiio_ext.pioneer.path import extract

    try:
        info, batches = _read(trace, name)
        tables = _tables(batches)
        _say_loss(info)
        if not tables:
            raise ValueError("the trace has no operations of the application")
        groups = _groups(tables, each_rank=each_rank)
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

pioneer.add_command(replay)
