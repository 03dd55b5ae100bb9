"""``mpiio-ext bench report``: results of the bench as one HTML file, and two sets of results compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.common.commands import Command, json_option, output_option, reporting, warn
from mpiio_ext.common.printing import echo
from mpiio_ext.common.units import amount_text

if TYPE_CHECKING:
    from mpiio_ext.report.baseline import Comparison
    from mpiio_ext.report.load import ResultSet

_PATH = click.Path(path_type=Path)
_DEFAULT_OUTPUT = Path("report.html")


def _compared(
    baseline: tuple[Path, ...], sets: list[ResultSet], fail_below: float | None, as_json: bool
) -> tuple[Comparison | None, list[Path]]:
    """Return the comparison that the options request, or None, and the files of the baseline."""
    from mpiio_ext.report.baseline import compare
    from mpiio_ext.report.errors import ReportError
    from mpiio_ext.report.load import load_all

    if not baseline:
        for given, name in ((fail_below is not None, "--fail-below"), (as_json, "--json")):
            if given:
                raise click.UsageError(f"{name} compares with another set of results: give --baseline too")
        return None, []
    old, peers = load_all(baseline)
    if peers:
        raise ReportError(f"{peers[0].path}: results of `bench compare`, which cannot be a baseline")
    if not sets:
        raise ReportError("no results of the bench to compare with the baseline, only those of `bench compare`")
    return compare(old, sets), [item.path for item in old]


def _verdict(comparison: Comparison, limit: float) -> int:
    """Print the rows below the limit; return the exit status."""
    from mpiio_ext.report.baseline import falls_below
    from mpiio_ext.report.errors import EXIT_SLOWER, ReportError
    from mpiio_ext.report.words import ratio, row_title

    judged = [match for match in comparison.matches if match.judgment != "not judged" and not match.new.native]
    if not judged:
        raise ReportError(
            "--fail-below has nothing to judge: no row of the extension is in both sets with at least "
            "three repetitions on each side"
        )
    below = [match for match in judged if falls_below(match, limit)]
    for match in below:
        assert match.ratio is not None and match.ratio_low is not None and match.ratio_high is not None
        echo(
            f"mpiio-ext: below {limit:g}: {row_title(match.new)}: {ratio(match.ratio)}× "
            f"({ratio(match.ratio_low)}–{ratio(match.ratio_high)})",
            err=True,
        )
    return EXIT_SLOWER if below else 0


def _make(
    results: tuple[Path, ...],
    output: Path | None,
    baseline: tuple[Path, ...],
    title: str,
    as_json: bool,
    fail_below: float | None,
) -> int:
    """Make the page, print the requested output, and return the exit status."""
    from mpiio_ext.common.files import check_target, write_whole
    from mpiio_ext.report.baseline import as_json as plain
    from mpiio_ext.report.load import load_all

    sets, peers = load_all(results)
    comparison, inputs = _compared(baseline, sets, fail_below, as_json)
    target = output if output is not None or as_json else _DEFAULT_OUTPUT
    if target is not None:
        from mpiio_ext.report.page import render

        check_target(
            target,
            [*(item.path for item in sets), *(item.path for item in peers), *inputs],
            example=_DEFAULT_OUTPUT.name,
        )
        page = render(sets, peers, title=title, comparison=comparison, limit=fail_below)
        size = write_whole(target, page.text)
        rows = sum(len(item.rows) for item in sets) + sum(len(item.results) for item in peers)
        echo(f"{target}: {rows:,} rows, {amount_text(size)}", err=as_json)
        if page.left_out:
            warn(f"left out, to keep the page below 1 MB: {page.left_out}")
    if comparison is None:
        return 0
    if as_json:
        echo(json.dumps(plain(comparison, fail_below), indent=1))
    else:
        words = ("faster", "within noise", "slower", "not judged")
        echo(
            f"{len(comparison.matches):,} rows compared: "
            + ", ".join(f"{comparison.count(word):,} {word}" for word in words)
        )
    for item in comparison.warned:
        named = ", ".join(difference.what for difference in item.differences)
        warn(f"{item.old_name} and {item.new_name} differ in: {named}")
    return 0 if fail_below is None else _verdict(comparison, fail_below)


@click.command(cls=Command)
@click.argument("results", nargs=-1, required=True, type=_PATH, metavar="RESULTS...")
@output_option(type=_PATH, metavar="FILE", help="The page.  [default: report.html; none with --json]")
@click.option(
    "--baseline",
    multiple=True,
    type=_PATH,
    metavar="OTHER",
    help="Compare with these results, row by row; may be repeated.",
)
@click.option("--title", default="I/O benchmark of mpiio_ext", show_default=True, help="Heading of the page.")
@json_option("Print the comparison as JSON; the page is made only with -o.")
@click.option(
    "--fail-below",
    type=click.FloatRange(min=0, min_open=True),
    metavar="R",
    help="Exit with 1 when a row's bandwidth, new over old, lies below R beyond noise.",
)
def report(**given: Any) -> None:
    """Make one self-contained HTML page of results of the bench.

    RESULTS are folders that the bench wrote, their results.json, or files of `bench compare --json`.

    \b
      mpiio-ext bench report bench-results/2026-01-02T03-04-05 -o report.html
      mpiio-ext bench report new --baseline old --fail-below 0.9

    Exit status: 0 done, 1 a row fell below --fail-below, 2 results or output that cannot be used.
    """  # noqa: D301  (click wants the backspace character itself)
    with reporting():
        status = _make(**given)
    raise SystemExit(status)
