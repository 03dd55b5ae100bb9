"""``mpiio-ext analyze connector``: inspect monitoring sources, convert them, and check a site.

Subcommands read one file each. Exit status: 0 read, also where a part of it could not be (standard error says which), 1
with ``--strict`` where anything could not be, 2 nothing could be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.analytics.cli_output import FILE_PATH, dumps, output_options, save, show_table
from mpiio_ext.common.commands import Decorated, Group, all_of, output_option, warn
from mpiio_ext.common.printing import echo
from mpiio_ext.common.units import amount_text

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.sources.records import Records

_FILE = click.Path(path_type=Path)
_SHOWN_PROBLEMS = 10


@click.group(cls=Group)
def connector() -> None:
    """Inspect monitoring sources: GPFS, Lustre, Slurm, topology and others.

    \b
      mpiio-ext analyze connector list
      mpiio-ext analyze connector show ost-fullness.txt.gz
      mpiio-ext analyze connector show snx11025.sqlite3 --time-zone America/Los_Angeles --table operations --csv ops.csv
      mpiio-ext analyze connector convert mmperfmon.tgz mmperfmon.json.gz
      mpiio-ext analyze connector site site.json
    """  # noqa: D301  (click wants the backspace character itself)


def _reading_options(function: Decorated) -> Decorated:
    return all_of(
        function,
        [
            click.option(
                "--connector", "source", metavar="NAME", help="Its connector, see `list`.  [default: recognised]"
            ),
            click.option(
                "--time-zone",
                metavar="ZONE",
                help="Of times without zone, e.g. America/Los_Angeles.  [default: UTC, with a warning]",
            ),
            click.option("--strict", is_flag=True, help="Exit with 1 if a part cannot be read."),
        ],
    )


def _read(path: Path, source: str | None, time_zone: str | None) -> Records:
    """Read a source, or its saved records, and report on stderr the parts that could not be read."""
    from mpiio_ext.analytics import sources
    from mpiio_ext.analytics.errors import AnalyticsError
    from mpiio_ext.analytics.readerprocess import is_hdf5
    from mpiio_ext.analytics.sources.content import head_of
    from mpiio_ext.analytics.sources.records import FORMAT

    beginning = head_of(path).data
    if source is None and beginning.lstrip().startswith(f'{{"format": "{FORMAT}"'.encode()):
        records = sources.load(path)
    elif source is None and _is_site(path, beginning):
        raise AnalyticsError(f"{path}: is a site and no source; `mpiio-ext analyze connector site` shows its content")
    else:  # libhdf5 can crash on a damaged file
        reader = sources.read_apart if is_hdf5(path) else sources.read
        records = reader(path, source, time_zone=time_zone or "UTC")
        if time_zone is None and sources.local_times(path, source or records.source):
            warn(f"{path}: times without a zone are read as UTC; --time-zone names another zone")
    for problem in records.problems[:_SHOWN_PROBLEMS]:
        warn(problem)
    more = len(records.problems) - _SHOWN_PROBLEMS
    if more > 0:
        warn(f"{path}: {more:,} more problems (--json has all)")
    return records


def _is_site(path: Path, beginning: bytes) -> bool:
    """Return whether a file is facts about a site, of this package or of pytokio, and of no connector."""
    from mpiio_ext.analytics import sources
    from mpiio_ext.analytics.errors import AnalyticsError
    from mpiio_ext.analytics.site import is_pytokio, load_document

    if not beginning.lstrip().startswith(b"{"):
        return False
    try:
        sources.recognize(path)
        return False
    except sources.SourceError:
        pass
    try:
        document = load_document(path)
    except AnalyticsError:
        return False
    return is_pytokio(document) or (isinstance(document, Mapping) and "file_systems" in document)


def _end(records: Records, strict: bool) -> None:
    if strict and records.problems:
        raise SystemExit(1)


@connector.command("list")
@output_options
def list_command(as_json: bool, csv: Path | None, parquet: Path | None) -> None:
    """List the connectors: the built-in ones, and those of other packages."""
    import pyarrow as pa

    from mpiio_ext.analytics import sources

    found = sources.connectors()
    rows = [
        {
            "source": name,
            "role": item.ROLE,
            "what": item.MEANING,
            "tables": ", ".join(table.name for table in item.TABLES),
            "files": " ".join(item.PATTERNS),
            "built_in": name in sources.BUILT_IN,
        }
        for name, item in found.items()
    ]
    show_table(pa.Table.from_pylist(rows), as_json=as_json, csv=csv, parquet=parquet)


@connector.command()
@click.argument("name")
@output_options
def columns(name: str, as_json: bool, csv: Path | None, parquet: Path | None) -> None:
    """List the columns of a source's tables: types, units, meanings."""
    import pyarrow as pa

    from mpiio_ext.analytics import sources

    rows = [
        {
            "table": table.name,
            "column": column.name,
            "type": column.type,
            "unit": column.unit,
            "meaning": column.meaning,
        }
        for table in sources.connector_of(name).TABLES
        for column in table.columns
    ]
    show_table(pa.Table.from_pylist(rows), as_json=as_json, csv=csv, parquet=parquet, most=len(rows))


def _summary(records: Records) -> dict[str, Any]:
    return {
        "source": records.source,
        "path": records.path,
        "status": records.status,
        "lost": records.lost,
        "header": records.header,
        "tables": {name: table.num_rows for name, table in records.tables.items()},
        "times": {name: _times(table) for name, table in records.tables.items() if "time" in table.column_names},
        "problems": [
            {"file": item.file, "line": item.line, "what": item.what, "lost": item.lost} for item in records.problems
        ],
    }


def _times(table: pa.Table) -> list[float | None]:
    """Return the first and the last time of a table [s since 1970 UTC]."""
    import pyarrow.compute as pc

    ends = pc.min_max(table["time"]).as_py()
    return [ends["min"], ends["max"]]


def _said(seconds: float | None) -> str:
    import datetime

    if seconds is None:
        return "-"
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _print_summary(found: Mapping[str, Any], records: Records) -> None:
    lost = f", {found['lost']:,} lines lost" if found["lost"] else ""
    echo(f"{found['path']}: {found['source']}, {found['status']}{lost}")
    for name, value in found["header"].items():
        text = json.dumps(value, ensure_ascii=False)
        echo(f"  {name}: {text if len(text) <= 100 else text[:97] + '...'}")
    for name, table in records.tables.items():
        ends = found["times"].get(name)
        span = f", {_said(ends[0])} to {_said(ends[1])}" if ends and ends[0] is not None else ""
        echo(f"\n{name}: {table.num_rows:,} rows{span}")
        if table.num_rows:
            show_table(table, most=5)


@connector.command()
@click.argument("file", type=_FILE)
@click.option("--table", metavar="NAME", help="Show this table, with all its columns that fit.")
@_reading_options
@output_options
def show(
    file: Path,
    table: str | None,
    source: str | None,
    time_zone: str | None,
    strict: bool,
    as_json: bool,
    csv: Path | None,
    parquet: Path | None,
) -> None:
    """Show what a file contains, and which parts cannot be read.

    Without --table it prints a summary of all tables; with it, the first rows of that table. --json, --csv and
    --parquet write all rows.
    """
    from mpiio_ext.analytics.errors import AnalyticsError

    records = _read(file, source, time_zone)
    if table is None and len(records.tables) == 1 and (csv is not None or parquet is not None):
        table = next(iter(records.tables))
    if table is None and (csv is not None or parquet is not None):
        raise AnalyticsError(f"{file}: has several tables; name one by --table: {', '.join(records.tables)}")
    if table is not None:
        if table not in records.tables:
            raise AnalyticsError(f"{file}: has no table {table!r}; it has {', '.join(records.tables)}")
        show_table(records.tables[table], as_json=as_json, csv=csv, parquet=parquet)
    elif as_json:
        echo(dumps(_summary(records)))
    else:
        _print_summary(_summary(records), records)
    _end(records, strict)


@connector.command()
@click.argument("file", type=_FILE)
@click.argument("output", type=FILE_PATH)
@_reading_options
def convert(file: Path, output: Path, source: str | None, time_zone: str | None, strict: bool) -> None:
    """Write the contents of a file as JSON, which `show` reads again; compressed if OUTPUT ends in .gz."""
    records = _read(file, source, time_zone)
    records.save(output)
    echo(f"{output}: {amount_text(output.stat().st_size)}", err=True)
    _end(records, strict)


@connector.command()
@click.argument("file", type=FILE_PATH)
@click.option("--from-pytokio", is_flag=True, help="FILE is pytokio's; print it as a site of this package.")
@click.option(
    "--time-zone", default="UTC", show_default=True, metavar="ZONE", help="With --from-pytokio: of the machine."
)
@output_option(type=FILE_PATH, metavar="FILE", help="Write the site there.")
@click.option(
    "--schema",
    "print_schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, wanted: _print_schema(context) if wanted else None,
    help="Print the JSON Schema of a site, and leave.",
)
def site(file: Path, from_pytokio: bool, time_zone: str, output: Path | None) -> None:
    """Check a site.json, and list its contents; mistakes are reported with their place as a JSON pointer."""
    from mpiio_ext.analytics.site import load_document, load_site
    from mpiio_ext.analytics.sitetokio import from_pytokio as converted

    if not from_pytokio:
        found = load_site(file)
        for system in found.file_systems.values():
            places = ", ".join([*system.mounts, *system.mount_patterns]) or "no mount point"
            echo(f"{system.name}: {system.kind}, {system.backend}, {places}")
        counts = [len(part) for part in (found.file_systems, found.clocks, found.files)]
        counted = "{} file systems, {} clocks, {} patterns of files".format(*counts)
        echo(f"{file}: {counted}, times in {found.time_zone}")
        return
    document, left = converted(load_document(file), time_zone)
    load_site(document, file.absolute().parent)
    if left:
        warn(f"{file}: left out, without counterpart: {', '.join(left)}")
    text = json.dumps(document, indent=2, ensure_ascii=False)
    if output is None:
        echo(text)
    else:
        save(output, text + "\n")


def _print_schema(context: click.Context) -> None:
    from mpiio_ext.analytics.site import schema

    echo(json.dumps(schema(), indent=2))
    context.exit()
