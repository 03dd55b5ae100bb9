"""``mpiio-ext analyze report``, ``job`` and ``logs``: pages and diagnoses."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.analytics.cli_output import areas_of, dumps, miner_of, save, store_options
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common.commands import HELP, json_option, output_option

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.diagnosis.activity import Activity
    from mpiio_ext.analytics.tools.health import DiskStates
    from mpiio_ext.analytics.tools.system import System


_PAGE = click.Path(path_type=Path, dir_okay=False)
_INTERACTIVE = click.option("--interactive", is_flag=True, help="Figures to zoom and to point at.")


@click.command("report", context_settings=HELP)
@store_options
@output_option(type=_PAGE, default=Path("analytics.html"), show_default=True, help="The page.")
@click.option("--title", default="I/O of a system", show_default=True, help="Heading of the page.")
@_INTERACTIVE
@click.option("--source", "origin", type=click.Choice(["darshan", "bench", "library", "all"]), default="darshan",
              show_default=True, help="Logs to count.")  # fmt: skip
def report(
    setup: Path, anonymous: bool, areas: Path | None, output: Path, title: str, interactive: bool, origin: str
) -> None:
    """Make one self-contained HTML page of a store: every analysis with its figure."""
    from mpiio_ext.analytics.report.output import store_page

    found = areas_of(areas)
    with miner_of(setup) as miner:
        text = store_page(miner, title=title, areas=found, interactive=interactive,
                          anonymous=anonymous or found is not None,
                          origin=None if origin == "all" else origin)  # fmt: skip
    save(output, text)


def report_of_bench(results: Sequence[Path], output: Path | None) -> None:
    """Write the report of the bench with a section that says why methods were slower, and tell where.

    Without `output` it takes the place of the page that the bench has put beside its results.
    """
    from mpiio_ext.analytics.analyses.methods import tables_of_results
    from mpiio_ext.analytics.report.bench import bench_page
    from mpiio_ext.common.files import check_target

    files = [path / "results.json" if path.is_dir() else path for path in results]
    target = files[0].parent / "report.html" if output is None else output
    check_target(target, files)
    page = bench_page(results, tables_of_results(results), target)
    save(target, page.text)
    if page.left_out:
        click.echo(f"mpiio-ext: left out, to keep the page below 1 MB: {page.left_out}", err=True)


@click.command("job", context_settings=HELP)
@click.argument("job_id", type=int, metavar="JOBID")
@store_options
@output_option(type=_PAGE, metavar="FILE.html", help="Make an HTML page.")
@json_option()
@_INTERACTIVE
def job(
    job_id: int, setup: Path, anonymous: bool, areas: Path | None, output: Path | None, as_json: bool, interactive: bool
) -> None:
    """Diagnose the job JOBID: what was slow, on what evidence, and what would help."""
    from mpiio_ext.analytics.report.job import job_tables, store_osts

    with miner_of(setup) as miner:
        tables = job_tables(miner, job_id)
        osts = store_osts(miner, tables)
    _tell(tables, areas_of(areas), anonymous, output, as_json, interactive, osts)


@click.command("logs", context_settings=HELP)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.darshan...")
@output_option(type=_PAGE, metavar="FILE.html", help="Make an HTML page; of one log.")
@json_option()
@click.option("--anonymous", is_flag=True, help="No names, IDs of jobs and people, or times of day.")
@click.option("--areas", type=_PAGE, metavar="FILE", help="JSON object: application or pattern -> science area.")
@_INTERACTIVE
@click.option("--site", type=_PAGE, metavar="FILE", help="Facts of the site: where sources and file systems are.")
@click.option("--source", "sources", multiple=True, type=_PAGE, metavar="FILE",
              help="A file of a monitoring source: states of disks (mmlsdisk); may be repeated.")
@click.option("--file-system", metavar="NAME", help="That the jobs used; default: the one with most of their bytes.")
def logs(
    files: tuple[Path, ...], output: Path | None, as_json: bool, anonymous: bool, areas: Path | None, interactive: bool,
    site: Path | None, sources: tuple[Path, ...], file_system: str | None,
) -> None:  # fmt: skip
    """Diagnose Darshan logs at once, without a set-up or a store."""
    if output is not None and len(files) > 1:
        raise click.UsageError("-o makes a page of one log; of many, fill a store (init) and use `report`")
    found = areas_of(areas)
    anonymous = anonymous or found is not None
    converted = _converted(files, anonymous)
    system = _system(site, sources)
    disks = {path: _disks(system, tables, file_system, anonymous) for path, tables in converted}
    if as_json and len(files) > 1:  # one document, whatever could be read
        click.echo(dumps([_document(*_hidden(tables, found, anonymous, path), anonymous, disks=disks.get(path))
                          for path, tables in converted]))  # fmt: skip
    else:
        for number, (path, tables) in enumerate(converted, 1):
            if len(files) > 1:
                click.echo(click.style(f"log {number}" if anonymous else str(path), bold=True))
            _tell(tables, found, anonymous, output, as_json, interactive, path=path, disks=disks.get(path))
    if all(_empty(tables) for _, tables in converted):
        raise AnalyticsError("no log could be diagnosed: the records of the files are lost")


def _system(site: Path | None, sources: Sequence[Path]) -> System | None:
    """Return the monitoring sources; None where none are named."""
    if site is None and not sources:
        return None
    from mpiio_ext.analytics.site import load_site
    from mpiio_ext.analytics.sources import recognize
    from mpiio_ext.analytics.tools.system import System

    for path in sources:
        if not path.is_file():
            raise AnalyticsError(f"{path}: there is no such source")
        with contextlib.suppress(AnalyticsError):  # of what nobody knows a note says so later
            connector = recognize(path)
            if not any(table.name == "disk_states" for table in connector.TABLES):
                click.echo(f"mpiio-ext: {path}: not used: {connector.NAME} has no states of disks", err=True)
    return System(load_site(site) if site is not None else None, sources)


def _disks(
    system: System | None, tables: Mapping[str, pa.Table], name: str | None, anonymous: bool
) -> DiskStates | None:
    """Return the states of the disks of a job's file system when it began; why they are not known stderr says."""
    if system is None:
        return None
    (job,) = tables["darshan_job"].select(["start_time", "log_file"]).to_pylist()
    moved = tables["darshan_file"].select(["mount", "bytes_read", "bytes_written"]).group_by("mount")
    sums = moved.aggregate([("bytes_read", "sum"), ("bytes_written", "sum")]).to_pylist()
    sums.sort(key=lambda row: -(row["bytes_read_sum"] or 0) - (row["bytes_written_sum"] or 0))
    mounts = [row["mount"] for row in sums if row["mount"]]
    chosen = system.named(name) if name is not None else system.file_system(mounts)
    if job["start_time"] is None:
        return None
    disks, notes = system.disk_states(chosen, job["start_time"])
    for note in notes:
        told = f"{note.source} {note.status}" if anonymous else f"{job['log_file']}: {note}"
        click.echo(f"mpiio-ext: {told}", err=True)
    return disks


def _empty(tables: Mapping[str, pa.Table]) -> bool:
    """Return whether a log has lost the records of all its files."""
    return not tables["darshan_file"].num_rows and any(tables["darshan_job"]["partial"].to_pylist())


def _converted(files: Sequence[Path], anonymous: bool) -> list[tuple[Path, dict[str, pa.Table]]]:
    """Return the tables of each log; those that cannot be read are told on stderr, and an error if none can."""
    from mpiio_ext.analytics.report.log import tables_of

    found = []
    for path in files:
        if not path.is_file():
            raise AnalyticsError(f"{path}: there is no such log")
        tables, outcome = tables_of(path)
        if outcome.status != "whole":
            reason = outcome.status if anonymous else f"{path}: {outcome.status}: {outcome.reason}"
            click.echo(f"mpiio-ext: {reason}", err=True)
        if outcome.status != "skipped":
            found.append((path, tables))
    if not found:
        raise AnalyticsError("no log could be read")
    return found


def _hidden(
    tables: Mapping[str, pa.Table], areas: Mapping[str, str] | None, anonymous: bool, path: Path | None = None
) -> tuple[Mapping[str, pa.Table], Activity | None]:
    """Return the tables, and what DXT and HEATMAP of the log at `path` tell; without names where that was asked for."""
    from mpiio_ext.analytics.diagnosis.activity_read import activity_of

    activity = None if path is None else activity_of(path, tables)
    if areas is None and not anonymous:
        return tables, activity
    from mpiio_ext.analytics.anonymous import anonymous_tables

    hidden = anonymous_tables(tables, areas)
    old, new = (each["darshan_file"]["file_id"].to_pylist() for each in (tables, hidden))
    return hidden, activity and activity.renamed(dict(zip(old, new, strict=True)))


def _document(
    tables: Mapping[str, pa.Table], activity: Activity | None, anonymous: bool, osts: int | None = None,
    disks: DiskStates | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return what is known of a job as JSON can hold it."""
    from mpiio_ext.analytics.report.job import document

    found = document(tables, anonymous=anonymous, osts=osts, activity=activity, disks=disks)
    found["diagnosis"] = [one["document"] for one in found["diagnosis"]]
    return found


def _tell(
    tables: Mapping[str, pa.Table],
    areas: Mapping[str, str] | None,
    anonymous: bool,
    output: Path | None,
    as_json: bool,
    interactive: bool,
    osts: int | None = None,
    path: Path | None = None,
    disks: DiskStates | None = None,
) -> None:
    """Tell what is known of a job, and of its log at `path`: on a page, as JSON, or on the terminal."""  # fmt: skip
    from mpiio_ext.analytics.report.output import job_page, job_text

    hide = anonymous or areas is not None
    tables, seen = _hidden(tables, areas, anonymous, path)
    if output is not None:
        save(output, job_page(tables, anonymous=hide, osts=osts, interactive=interactive, activity=seen, disks=disks))
    if as_json:
        click.echo(dumps(_document(tables, seen, hide, osts, disks)))
    elif output is None:
        click.echo(job_text(tables, anonymous=hide, osts=osts, activity=seen, disks=disks))
