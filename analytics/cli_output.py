"""Shared parts of the subcommands of ``mpiio-ext analyze``: options, the store at hand, and ways to show a result."""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common.commands import Decorated, all_of, json_option, warn
from mpiio_ext.common.files import cannot_read, missing
from mpiio_ext.common.printing import echo, make_console, printable
from mpiio_ext.common.units import amount_text

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.analyses.result import Result
    from mpiio_ext.analytics.miner import IOMiner

_SHOWN_ROWS = 40
#: A file that an option names.
FILE_PATH = click.Path(path_type=Path, dir_okay=False)

# Options that several subcommands have; each is a decorator.
setup_option = click.option(
    "--setup",
    type=FILE_PATH,
    default=Path("setup.json"),
    envvar="MPIIO_EXT_SETUP",
    show_default=True,
    show_envvar=True,
    help="The set-up of the store.",
)
origin_option = click.option(
    "--logs",
    "origin",
    type=click.Choice(["darshan", "bench", "library", "all"]),
    default="darshan",
    show_default=True,
    help="Logs to count.",
)
anonymous_option = click.option("--anonymous", is_flag=True, help="No names, IDs of jobs and people, or times of day.")
areas_option = click.option(
    "--areas",
    type=FILE_PATH,
    metavar="FILE",
    help="JSON object: application or pattern -> science area; implies --anonymous.",
)
figure_option = click.option("--figure", type=FILE_PATH, metavar="FILE.svg", help="Write the figure, too.")
site_option = click.option(
    "--site", type=FILE_PATH, metavar="FILE", help="Facts of the site: places of sources and file systems, clocks."
)
system_option = click.option(
    "--file-system", metavar="NAME", help="File system of the jobs; default: the one with most of their bytes."
)


def store_options(function: Decorated) -> Decorated:
    """Add ``--setup``, ``--anonymous``, ``--areas``."""
    return all_of(function, [setup_option, anonymous_option, areas_option])


def output_options(function: Decorated) -> Decorated:
    """Add ``--json``, ``--csv``, ``--parquet``."""
    return all_of(
        function,
        [
            json_option(),
            click.option("--csv", type=FILE_PATH, metavar="FILE", help="Write the table as CSV; -: on the terminal."),
            click.option("--parquet", type=FILE_PATH, metavar="FILE", help="Write the table as Parquet."),
        ],
    )


def miner_of(setup: Path) -> IOMiner:
    """Return the miner of a set-up.

    Raises
    ------
    AnalyticsError
        The set-up does not exist, or its contents are wrong.
    """
    from mpiio_ext.analytics.miner import IOMiner

    if not setup.exists():
        raise AnalyticsError(
            f"{cannot_read(setup, missing())}; write it, or name another (`mpiio-ext help howto/ask-a-store`)"
        )
    miner = IOMiner(setup)
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get("mpiio_ext.analytics.verbose") and miner.setup.engine.name == "spark":
        engine = miner.setup.engine
        engine = dataclasses.replace(engine, options={**engine.options, "verbose": True})
        miner.setup = dataclasses.replace(miner.setup, engine=engine)
    return miner


def areas_of(path: Path | None) -> dict[str, str] | None:
    """Return the science areas of applications from a file; None without one.

    Raises
    ------
    AnalyticsError
        The file is not a JSON object of texts.
    """
    if path is None:
        return None
    from mpiio_ext.common import documents

    try:
        return documents.parse(dict[str, str], documents.read_json(path, AnalyticsError))
    except documents.DocumentError as error:
        raise AnalyticsError(f'{error.of(path)}; areas are a JSON object such as {{"vasp*": "Materials"}}') from error


# ---- showing ---------------------------------------------------------------------------------------------------------


def dumps(document: object) -> str:
    """Return JSON; a value that is not a number is null."""
    return json.dumps(_plain(document), indent=1, allow_nan=False, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if value - value == 0 else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def units_of(table: pa.Table) -> dict[str, dict[str, str]]:
    """Return ``units`` of the columns that have one, for JSON; Parquet has them as metadata of its fields."""
    units = {field.name: (field.metadata or {}).get(b"unit", b"").decode() for field in table.schema}
    found = {name: unit for name, unit in units.items() if unit}
    return {"units": found} if found else {}


def print_notes(notes: Iterable[tuple[str, str]], more: str = "") -> None:
    """Print on stderr how many notes there are, by source, of each status (missing, partial, skipped)."""
    counts: dict[str, collections.Counter[str]] = {}
    for source, status in notes:
        counts.setdefault(source, collections.Counter())[status] += 1
    for source, of_source in counts.items():
        words = ", ".join(f"{count:,} {status}" for status, count in sorted(of_source.items()))
        warn(f"notes about {source}: {words}{more}")


def save(path: Path, content: str | bytes) -> None:
    """Write a file that is there whole or not at all; FileSystemError otherwise."""
    from mpiio_ext.common.files import check_target, write_whole

    check_target(path)
    echo(f"{path}: {amount_text(write_whole(path, content))}", err=True)


def _say_size(path: Path) -> None:
    """Print on stderr the size of a file that was written."""
    echo(f"{path}: {amount_text(path.stat().st_size)}", err=True)


def _save_table(table: pa.Table, csv: Path | None, parquet: Path | None) -> None:
    import pyarrow as pa

    try:
        if csv is not None:
            import sys

            import pyarrow.csv

            lists = [field.name for field in table.schema if pa.types.is_list(field.type)]
            for name in lists:  # CSV has no lists
                texts = [None if row is None else " ".join(map(str, row)) for row in table[name].to_pylist()]
                table = table.set_column(table.column_names.index(name), name, pa.array(texts, pa.string()))
            if str(csv) == "-":
                sys.stdout.flush()
                pyarrow.csv.write_csv(table, sys.stdout.buffer)
                sys.stdout.flush()
            else:
                pyarrow.csv.write_csv(table, csv)
                _say_size(csv)
        if parquet is not None:
            import pyarrow.parquet

            pyarrow.parquet.write_table(table, parquet)
            _say_size(parquet)
    except (OSError, pa.ArrowException) as error:
        raise AnalyticsError(f"{csv or parquet}: cannot be written: {error}") from error


def show_table(
    table: pa.Table,
    *,
    as_json: bool = False,
    csv: Path | None = None,
    parquet: Path | None = None,
    most: int = _SHOWN_ROWS,
) -> None:
    """Print a table on the terminal (at most so many rows), or as JSON, or write it."""
    _save_table(table, csv, parquet)
    if as_json:
        echo(dumps(table.to_pylist()))
        return
    if csv is not None or parquet is not None:
        return
    _print_table(table, most)


def _print_table(table: pa.Table, most: int) -> None:
    """Print the columns that have values and fit beside each other, and name the others."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from mpiio_ext.analytics.report.grids import grid

    table = table.select([name for name in table.column_names if table[name].null_count < max(1, table.num_rows)])
    shown = grid(table, most=most)
    console = make_console()
    if not console.is_terminal:  # a pipe has no width
        console = make_console(width=160)
    rows = [[printable(cell) for cell in row] for row in shown.rows]
    # Headings are broken between words, cells are not.
    widths = [
        max(len(word) for word in [*name.split(), *(row[at] for row in rows)]) + 3
        for at, name in enumerate(shown.columns)
    ]
    fitting = max(1, sum(sum(widths[: at + 1]) <= console.width for at in range(len(widths))))
    if len(widths) <= 5:  # names of files may take several lines
        fitting = len(widths)
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, number, width in list(zip(shown.columns, shown.numbers, widths, strict=True))[:fitting]:
        drawn.add_column(
            Text(name), justify="right" if number else "left", overflow="fold", min_width=width - 3 if number else None
        )
    for row in rows:
        drawn.add_row(*(Text(text) for text in row[:fitting]))
    console.print(drawn)
    if fitting < len(widths):
        echo(f"Not shown (--json, --csv and --parquet have all): {', '.join(shown.columns[fitting:])}")
    if shown.note:
        echo(shown.note)


def show(
    result: Result,
    *,
    as_json: bool,
    csv: Path | None,
    parquet: Path | None,
    figure: Path | None,
    most: int = _SHOWN_ROWS,
) -> None:
    """Show the result of an analysis: on the terminal, as JSON, as a table in a file, as figures."""
    if figure is not None:
        _save_figures(result, figure)
    if as_json:
        _save_table(result.table, csv, parquet)
        echo(dumps(result.as_json() | units_of(result.table)))
        return
    if csv is None and parquet is None:
        echo(result.title)
        if result.caption_first:
            echo(f"\n{result.caption}")
        _print_table(result.table if result.shown is None else result.shown, most)
        if not result.caption_first:
            echo(result.caption)
        return
    _save_table(result.table, csv, parquet)


def _save_figures(result: Result, path: Path) -> None:
    """Write the figures; of several, the name of each is put behind that of the file."""
    if path.suffix != ".svg":
        raise AnalyticsError(f"{path}: figures are SVG; name a file that ends in .svg")
    if not result.charts:
        raise AnalyticsError(f"{result.name}: nothing to draw: {result.caption}")
    from mpiio_ext.analytics.report.drawing import chart_of
    from mpiio_ext.common.plots import svg_file

    for chart in result.charts:
        target = path if len(result.charts) == 1 else path.with_stem(f"{path.stem}-{chart.name.split('-')[-1]}")
        save(target, svg_file(chart_of(chart)))
