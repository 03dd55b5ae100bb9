"""``mpiio-ext analyze report``, ``job`` and ``logs``: pages and diagnoses."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiio_ext.analytics.cli_output import (
    FILE_PATH,
    anonymous_option,
    areas_of,
    areas_option,
    dumps,
    miner_of,
    origin_option,
    save,
    site_option,
    store_options,
    system_option,
)
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common.commands import FAILED, Command, json_option, output_option, warn
from mpiio_ext.common.files import cannot_read, missing
from mpiio_ext.common.options import Bandwidth
from mpiio_ext.common.printing import echo, echo_styled

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.report.logs import JobReport, Logs
    from mpiio_ext.analytics.tools.health import DiskStates
    from mpiio_ext.analytics.tools.system import System


#: Logs of a job that are named.
_MOST_NAMED = 3


@click.command("report", cls=Command)
@store_options
@output_option(type=FILE_PATH, default=Path("analytics.html"), show_default=True, help="The page.")
@click.option("--title", default="I/O of a system", show_default=True, help="Heading of the page.")
@origin_option
def report(setup: Path, anonymous: bool, areas: Path | None, output: Path, title: str, origin: str) -> None:
    """Make one self-contained HTML page of a store: every analysis with its figure."""
    from mpiio_ext.analytics.report.store import store_page

    found = areas_of(areas)
    with miner_of(setup) as miner:
        text = store_page(
            miner,
            title=title,
            areas=found,
            anonymous=anonymous or found is not None,
            origin=None if origin == "all" else origin,
        )
    save(output, text)


def report_of_bench(results: Sequence[Path], output: Path | None) -> None:
    """Write the report of the bench with a section on why methods were slower, and print its place.

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
        warn(f"left out, to keep the page below 1 MB: {page.left_out}")


_LOW = click.option(
    "--low-bandwidth",
    type=Bandwidth(),
    default="1GB/s",
    show_default=True,
    metavar="BANDWIDTH",
    help="Bandwidth below which I/O counts as slow: of a faster job, only what is seen to cost time is a cause.",
)


@click.command("job", cls=Command)
@click.argument("job_id", type=int, metavar="JOBID")
@click.option("--user", type=int, metavar="UID", help="Owner of the job, if several users have one of this ID.")
@store_options
@output_option(type=FILE_PATH, metavar="FILE.html", help="Make an HTML page.")
@json_option()
@_LOW
def job(
    job_id: int,
    user: int | None,
    setup: Path,
    anonymous: bool,
    areas: Path | None,
    output: Path | None,
    as_json: bool,
    low_bandwidth: float,
) -> None:
    """Diagnose the job JOBID: why its I/O was slow, on what evidence, and what would help."""
    from mpiio_ext.analytics.report.job import job_tables, store_osts
    from mpiio_ext.analytics.report.logs import Logs, logs_of_store, unread_of_store
    from mpiio_ext.analytics.run.spent import headline

    with miner_of(setup) as miner:
        tables = job_tables(miner, job_id, user)
        paths, gone = logs_of_store(miner, tables)
        one = Logs(tables=tables, paths=paths, osts=store_osts(miner, tables), unread=unread_of_store(miner, job_id))
    found = areas_of(areas)
    for log, why in gone:
        name = "a log" if anonymous or found is not None else log
        warn(f"{name} {why}: its DXT and HEATMAP are not used")
    _print(one.report(found, anonymous or found is not None, low_bandwidth, headline), output, as_json)


@click.command("logs", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.darshan|FOLDER...")
@output_option(type=FILE_PATH, metavar="FILE.html", help="Make an HTML page; of one job.")
@json_option()
@anonymous_option
@areas_option
@site_option
@click.option(
    "--source",
    "sources",
    multiple=True,
    type=FILE_PATH,
    metavar="FILE",
    help="A file of a monitoring source: states of disks (mmlsdisk); may be repeated.",
)
@system_option
@click.option("--one-job", is_flag=True, help="The logs are of one job, even if their job IDs differ.")
@_LOW
def logs(
    paths: tuple[Path, ...],
    output: Path | None,
    as_json: bool,
    anonymous: bool,
    areas: Path | None,
    site: Path | None,
    sources: tuple[Path, ...],
    file_system: str | None,
    one_job: bool,
    low_bandwidth: float,
) -> None:
    """Diagnose Darshan logs at once, without a set-up or a store; logs with one ID of a job make one report.

    Of several jobs an overview comes first: those with most time in I/O, and the first sentence about each.

    Exit status 1: a log is cut off, damaged or cannot be read; what is intact was used.
    """
    from mpiio_ext.analytics.report.logs import by_job, is_empty
    from mpiio_ext.analytics.run.spent import headline, seconds_in_io

    found = areas_of(areas)
    anonymous = anonymous or found is not None
    system = _system(site, sources)
    files = _files(paths)
    whole, lost, hurt = _converted(files, anonymous)
    jobs = by_job(whole, one_job=one_job)
    jobs = [dataclasses.replace(one, unread=_unread(one, lost, len(jobs))) for one in jobs]
    if output is not None and len(jobs) > 1:
        raise click.UsageError("-o makes a page of one job; of many, fill a store (init) and use `report`")
    for number, one in enumerate(jobs if system is not None else ()):
        disks = {log: _disks(system, one.of(log), file_system, anonymous) for log in one.paths}
        jobs[number] = dataclasses.replace(one, disks=disks)
    job_report = [one.report(found, anonymous, low_bandwidth, headline) for one in jobs]
    named = {path for path, tables in whole if any(tables["darshan_job"]["partial"].to_pylist())}
    for path, modules in (pair for each in job_report for pair in each.damaged.items() if pair[0] not in named):
        warn("damaged" if anonymous else f"{path}: damaged: {', '.join(modules)}")
    if as_json and len(files) > 1:  # one document, whatever could be read
        echo(dumps([each.document() for each in job_report]))
    else:
        names = [f"job {number}" if anonymous else _named(one) for number, one in enumerate(jobs, 1)]
        if len(jobs) > 1:
            from mpiio_ext.analytics.report.overview import overview

            echo(overview(list(zip(names, job_report, strict=True)), len(lost), seconds_in_io))
        for name, each in zip(names, job_report, strict=True):
            if len(jobs) > 1:
                echo_styled([("\n" + name, {"bold": True})])
            _print(each, output, as_json)
    if all(is_empty(one.tables) for one in jobs):
        raise AnalyticsError("no log could be diagnosed: the records of the files are lost")
    if hurt or any(each.damaged for each in job_report):
        sys.exit(FAILED)


def _named(one: Logs) -> str:
    """Return the names of a job's logs, of many the first ones."""
    own = list(map(str, one.paths.values()))
    return ", ".join([*own[:_MOST_NAMED], *(["…"] if own[_MOST_NAMED:] else [])])


def _files(paths: Sequence[Path]) -> list[Path]:
    """Return the logs that are given, and those in and below folders that are given."""
    from mpiio_ext.analytics.sources.darshan import SOURCE

    files = []
    for path in paths:
        found = sorted(each for pattern in SOURCE.PATTERNS for each in path.rglob(pattern)) if path.is_dir() else [path]
        if not found:
            raise AnalyticsError(f"{path}: no log of Darshan in this folder ({', '.join(SOURCE.PATTERNS)})")
        for each in found:
            if not each.is_file():
                raise AnalyticsError(cannot_read(each, missing()))
        files += found
    return files


def _unread(one: Logs, unread: Sequence[str], jobs: int) -> list[str]:
    """Return which of the logs that cannot be read may be of one of `jobs` jobs, by their names."""
    from mpiio_ext.analytics.report.logs import job_in_name

    if jobs == 1:
        return list(unread)
    own = one.tables["darshan_job"]["job_id"][0].as_py()
    whose = {name: job_in_name(name) for name in unread}
    return [f"{name} (owner unknown)" if job is None else name for name, job in whose.items() if job in (None, own)]


def _system(site: Path | None, sources: Sequence[Path]) -> System | None:
    """Return the monitoring sources; None if none is named."""
    if site is None and not sources:
        return None
    from mpiio_ext.analytics.site import load_site
    from mpiio_ext.analytics.sources import recognize
    from mpiio_ext.analytics.tools.system import System

    for path in sources:
        if not path.is_file():
            raise AnalyticsError(cannot_read(path, missing()))
        with contextlib.suppress(AnalyticsError):  # a note names unknown states later
            connector = recognize(path)
            if not any(table.name == "disk_states" for table in connector.TABLES):
                warn(f"{path}: not used: {connector.NAME} has no states of disks")
    return System(load_site(site) if site is not None else None, sources)


def _disks(
    system: System | None, tables: Mapping[str, pa.Table], name: str | None, anonymous: bool
) -> DiskStates | None:
    """Return the states of the disks of a job's file system at its begin; if unknown, stderr names the reason."""
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
        line = f"{note.source} {note.status}" if anonymous else f"{job['log_file']}: {note}"
        warn(line)
    return disks


def _converted(
    files: Sequence[Path], anonymous: bool
) -> tuple[list[tuple[Path, dict[str, pa.Table]]], list[str], bool]:
    """Return the tables of each log, the unreadable logs (standard error names them), and whether any is damaged.

    An error if none can be read.
    """
    from mpiio_ext.analytics.report.logs import converted, is_hurt

    found, unread, hurt = [], [], False
    for path, outcome, tables in converted(files):
        hurt |= is_hurt(outcome)
        if outcome.status != "whole":
            reason = outcome.status if anonymous else f"{path}: {outcome.status}: {outcome.reason}"
            warn(reason)
        if outcome.status != "skipped":
            found.append((path, tables))
        else:
            unread.append(path.name)
    if not found:
        raise AnalyticsError("no log could be read")
    return found, unread, hurt


def _print(job_report: JobReport, output: Path | None, as_json: bool) -> None:
    """Report the facts of a job: on a page, as JSON, or on the terminal."""
    if output is not None:
        save(output, job_report.page())
    if as_json:
        echo(dumps(job_report.document()))
    elif output is None:
        echo(job_report.text())
