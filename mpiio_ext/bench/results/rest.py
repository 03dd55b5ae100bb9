"""The output for people, made of results.json alone: the table and the page.

The bench makes them when it has ended; of a bench that was ended early the process beside it does (`interrupted`):
``python -m mpiio_ext.bench.results.rest FOLDER TITLE``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from rich.console import Console

from mpiio_ext.bench.results.files import write_results
from mpiio_ext.bench.results.table import print_table, print_worth
from mpiio_ext.common.printing import make_console
from mpiio_ext.common.results import Absent, measure
from mpiio_ext.report.load import rows_of

#: Columns of a table that goes to a file.
WIDTH = 150


def write_page(console: Console, output: Path, title: str) -> Path | None:
    """Write report.html; an error there is a warning, because the results are there already."""
    path = output / "report.html"
    try:
        from mpiio_ext.common.files import write_whole
        from mpiio_ext.report.load import load_all
        from mpiio_ext.report.page import render

        write_whole(path, render(*load_all([output / "results.json"]), title=title).text)
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        console.print(f"warning: no report.html ({text})", highlight=False, soft_wrap=True)
        return None
    return path


def _finish(output: Path, title: str) -> None:
    """Make all that there is of results until then: rows, medians, table, page."""
    document = json.loads((output / "results.json").read_text(encoding="utf-8"))
    rows = rows_of(
        {name: tuple(value) if isinstance(value, list) else value for name, value in run.items()}
        for run in document["runs"]
    )
    write_results(
        output,
        environment=document["environment"],
        configuration=document["configuration"],
        rows=rows,
        absent=[Absent(**item) for item in document["absent"]],
        failure=document["failure"],
    )
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        table = make_console(file=nowhere, width=WIDTH, record=True)
        print_table(table, measure(rows))
        print_worth(table, measure(rows))
        table.save_text(str(output / "table.txt"))
    console = make_console(width=WIDTH, no_color=not sys.stdout.isatty() or None)
    print_worth(console, measure(rows))
    page = write_page(console, output, title) if title else None
    if page is not None:
        console.print(f"report: {page}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    _finish(Path(sys.argv[1]), sys.argv[2])
