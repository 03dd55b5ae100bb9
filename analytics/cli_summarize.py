"""``mpiio-ext analyze summarize-job``: a row of scalars, and slices of the servers' series, for each Darshan log."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.analytics.cli_output import (
    dumps,
    miner_of,
    print_notes,
    setup_option,
    show_table,
    site_option,
    system_option,
)
from mpiio_ext.common.commands import Command, json_option, output_option, warn
from mpiio_ext.common.printing import echo
from mpiio_ext.common.units import amount_text, digits_text

if TYPE_CHECKING:
    from mpiio_ext.analytics.jobs.table import Jobs
    from mpiio_ext.analytics.readerprocess import Started
    from mpiio_ext.analytics.tools.system import System

_PATH = click.Path(path_type=Path)
#: Headings of the parts of a printed summary, by prefix of the columns.
_PARTS = {
    "darshan_": "Program (Darshan)",
    "bench_": "Measurement (bench)",
    "fs_": "Servers in this period",
    "fshealth_": "File system before",
    "jobsdb_": "Scheduler",
    "topology_": "Network",
    "coverage_factor_": "Share of the job",
}
#: Columns that are shown without --all: the job's I/O, and other things that may have made it slow.
_FIRST = frozenset(
    (
        "darshan_app",
        "darshan_nprocs",
        "darshan_walltime",
        "darshan_io_time",
        "darshan_agg_perf_by_slowest_posix",
        "darshan_tot_bytes_read_posix",
        "darshan_tot_bytes_written_posix",
        "darshan_tot_opens_posix",
        "fs_tot_bytes_read",
        "fs_tot_bytes_written",
        "fs_max_oss_cpu",
        "fs_max_mds_cpu",
        "fs_frac_missing",
        "fshealth_ost_avg_full_pct",
        "fshealth_ost_most_full_pct",
        "fshealth_ost_overloaded_ost_count",
        "jobsdb_concurrent_jobs",
        "topology_job_max_radius",
        "coverage_factor_bw",
        "coverage_factor_nodehrs",
        "bench_repetitions",
        "bench_spread",
        "bench_ratio_to_native",
        "bench_exchange_s",
        "bench_io_s",
    )
)
_INSTANT = "s since 1970 UTC"
#: Bytes of the units of columns.
_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@click.command(cls=Command)
@click.argument("logs", nargs=-1, required=True, type=_PATH, metavar="LOG...")
@site_option
@click.option(
    "--source",
    "files",
    multiple=True,
    type=_PATH,
    metavar="FILE",
    help="A file of a monitoring source, recognised by its content; may be repeated.",
)
@click.option("--time-zone", metavar="ZONE", help="Of times without zone in --source; default: the site's.")
@system_option
@click.option(
    "--edges",
    type=click.Choice(["begin", "touch", "share"]),
    default="begin",
    show_default=True,
    help="Steps at the edges of a job: those that begin in it, all that touch it, or their share.",
)
@output_option(
    "outputs",
    multiple=True,
    type=_PATH,
    metavar="FILE",
    help="Add to this file (.parquet, .csv, .sqlite: scalars; .h5: slices, too); may be repeated.",
)
@click.option(
    "--join",
    metavar="TABLE",
    help="Print the rows beside those of a table of a store: darshan_job, darshan_file, runs or slurm.",
)
@setup_option
@click.option(
    "--joined", "joined_file", type=_PATH, metavar="FILE", help="With --join: write them to this file (.csv, .parquet)."
)
@click.option("--all", "entire", is_flag=True, help="Print all columns for people, not the 20 most important ones.")
@json_option("Print the rows as JSON.")
@click.option("--strict", is_flag=True, help="Exit with 1 if a log or source is missing, damaged or not readable.")
@click.option(
    "--allow-missing", is_flag=True, help="With --strict: only damaged logs and sources are errors, not missing ones."
)
def summarize_job(
    logs: tuple[Path, ...],
    site: Path | None,
    files: tuple[Path, ...],
    time_zone: str | None,
    file_system: str | None,
    edges: Any,
    outputs: tuple[Path, ...],
    as_json: bool,
    strict: bool,
    allow_missing: bool,
    entire: bool,
    join: str | None,
    setup: Path,
    joined_file: Path | None,
) -> None:
    """Join everything that is known of the I/O of jobs: a row for each Darshan log, or measurement of the bench.

    LOG is a log of Darshan, a results.json of the bench, or a folder of such, as the archive of a suite.

    \b
      mpiio-ext analyze summarize-job run.darshan --site site.json
      mpiio-ext analyze summarize-job *.darshan --site site.json -o jobs.parquet -o jobs.h5
      mpiio-ext analyze summarize-job bench-results/nightly/results.json --site site.json
      mpiio-ext analyze summarize-job *.darshan --site site.json --join slurm --setup setup.json
      mpiio-ext analyze summarize-job run.darshan --source lmt.hdf5 --source osts.txt.gz --time-zone America/Los_Angeles

    A source that is missing leaves its columns empty, and a note says why; standard error counts them. Exit status: 0
    done, 1 with --strict where there is such a note (with --allow-missing: one of damage), 2 no log could be read, a
    zone or file system is not known, or an output cannot be written.
    """  # noqa: D301  (click wants the backspace character itself)
    started = _started(files, site)  # before it imports anything
    from mpiio_ext.analytics.errors import AnalyticsError
    from mpiio_ext.analytics.jobs import files as forms
    from mpiio_ext.analytics.jobs.summarize import summarize

    if allow_missing and not strict:
        raise click.UsageError("--allow-missing limits the errors of --strict; give both")
    if joined_file is not None and (join is None or joined_file.suffix not in (".csv", ".parquet")):
        raise click.UsageError("--joined is a file that ends in .csv or .parquet, for the rows of --join TABLE")
    for path in outputs:
        forms.check_target(path)  # before the work
    if joined_file is not None:
        from mpiio_ext.common.files import check_target

        check_target(joined_file, list(logs))
    found = summarize(logs, _system(site, files, time_zone, started), file_system=file_system, edges=edges)
    _tell(found)
    if not len(found):
        raise AnalyticsError("none of the logs could be read")
    for path in outputs:
        whole = forms.update(found, path)
        echo(f"{path}: {len(whole):,} jobs, {amount_text(path.stat().st_size)}", err=True)
    if join is not None:
        _show_joined(found, join, setup, joined_file, as_json)
    elif as_json:
        echo(dumps(found.rows()))
    elif not outputs:
        _print(found, entire)
    if strict and _fails(found, allow_missing):
        raise SystemExit(1)


def _started(files: tuple[Path, ...], site: Path | None) -> Started | None:
    """Start the process that reads files of HDF5, if there may be some; it imports beside this one."""
    from mpiio_ext.analytics import readerprocess

    with contextlib.suppress(OSError):  # the code that needs it reports it
        if readerprocess.may_crash(files, site):
            return readerprocess.start()
    return None


def _show_joined(found: Jobs, name: str, setup: Path, file: Path | None, as_json: bool) -> None:
    """Show the rows beside those of a table of a store; missing values stay empty, and are counted."""
    from mpiio_ext.analytics.jobs.joins import joined

    with miner_of(setup) as miner:
        without = joined(found, miner, name, "anti").arrow().num_rows
        table = joined(found, miner, name, "left").arrow()
    if without:
        echo(f"mpiio-ext: {without:,} of {len(found):,} rows have no counterpart in {name} of {setup}", err=True)
    ending = "" if file is None else file.suffix
    show_table(
        table, as_json=as_json, csv=file if ending == ".csv" else None, parquet=file if ending == ".parquet" else None
    )


def _fails(found: Jobs, allow_missing: bool) -> bool:
    """Return whether there is a note, or where something may be missing, one of damage."""
    from mpiio_ext.analytics.tools.system import Note

    notes = [Note(source=row["source"], status=row["status"], what=row["what"]) for row in found.notes.to_pylist()]
    return any(note.damage or not allow_missing for note in notes)


def _tell(found: Jobs) -> None:
    """Print on stderr which logs cannot be read, and how many notes the rows have, by source and status."""
    notes = found.notes.to_pylist()
    for note in notes:
        if note["_log_id"] is None:
            warn(f"{note['source']} {note['status']}: {note['what']}")
    of_rows = ((note["source"], note["status"]) for note in notes if note["_log_id"] is not None)
    print_notes(of_rows, " (column _notes has the reasons)")


def _system(site: Path | None, files: tuple[Path, ...], time_zone: str | None, started: Started | None) -> System:
    from mpiio_ext.analytics.errors import AnalyticsError
    from mpiio_ext.analytics.sources import ApartReader
    from mpiio_ext.analytics.tools.moments import moment
    from mpiio_ext.analytics.tools.system import System

    reader = ApartReader(started)
    if time_zone is not None:
        moment("2000-01-01T00:00:00", time_zone)  # refuses texts that are no zone
    if site is not None:
        from mpiio_ext.analytics.site import load_site

        return System(load_site(site), files, time_zone=time_zone, reader=reader)
    system = System(None, files, time_zone=time_zone, reader=reader)
    local = system.without_zone()
    if local:
        raise AnalyticsError(
            f"local times, and no time zone is known: {', '.join(local)}; "
            "give --time-zone, e.g. America/Los_Angeles, or UTC where they are in it"
        )
    return system


# ---- for people ------------------------------------------------------------------------------------------------------


def _print(found: Jobs, entire: bool) -> None:
    from mpiio_ext.analytics.jobs.columns import SUMMARY

    units = {column.name: column.unit for column in SUMMARY.columns}
    for number, row in enumerate(found.rows()):
        if number:
            echo()
        period = f"{_when(row['_datetime_start'])} to {_when(row['_datetime_end'])}"
        job = "" if row["bench_method"] is not None else f"job {row['_jobid']}, "
        echo(f"{row['_log']}: {job}{period}, file system {row['_file_system'] or 'not known'}")
        there = {name: value for name, value in row.items() if value is not None and name.startswith(tuple(_PARTS))}
        shown = {name: value for name, value in there.items() if entire or name in _FIRST}
        for prefix, heading in _PARTS.items():
            known = {name: value for name, value in shown.items() if name.startswith(prefix)}
            if not known:
                continue
            echo(f"\n{'Program' if prefix == 'darshan_' and not job else heading}")
            for name, value in known.items():
                echo(f"  {name.removeprefix(prefix):<38} {_words(value, units[name])}")
        if len(there) > len(shown):
            echo(f"\n{len(there) - len(shown)} more columns: --all")
        if row["_notes"]:
            echo("\nNot known, or in part")
            for line in row["_notes"].splitlines():
                echo(f"  {line}")


def _when(seconds: float | None) -> str:
    from mpiio_ext.analytics.tools.moments import shown

    return "?" if seconds is None else shown(seconds)


def _words(value: Any, unit: str) -> str:
    """Return a value with its unit, sizes in powers of 1000 as everywhere."""
    from mpiio_ext.common.units import size_text

    if isinstance(value, str):
        return value
    if unit == _INSTANT:
        return _when(value)
    size, per, _ = unit.partition("/s")
    if size in _SIZES:
        return size_text(value * _SIZES[size]) + per
    number = f"{value:,}" if isinstance(value, int) else digits_text(value, 4)
    return f"{number} {unit}".rstrip() if unit != "count" else number
