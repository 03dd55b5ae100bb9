"""Shared parts of ``analyze umami`` and ``analyze climate``: which rows of a table count, how figures are written."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common.commands import all_of
from mpiio_ext.common.options import Size

if TYPE_CHECKING:
    from mpiio_ext.analytics.jobs.filters import Filter
    from mpiio_ext.common.plots import Chart

_SUFFIXES = (".svg", ".html", ".png")


def day(text: str | None) -> datetime.date | None:
    """Return a date such as 2018-02-15.

    Raises
    ------
    click.BadParameter
        The text is no date.
    """
    if text is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"'{text}' is no date; write for example 2018-02-15") from error


def row_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose rows: ``--published``, ``--since`` and others."""
    return all_of(
        function,
        [
            click.option(
                "--published",
                is_flag=True,
                help="The filters of the published year of Edison's summaries (`mpiio-ext help explanation/metrics`).",
            ),
            click.option("--complete", is_flag=True, help="Only rows without a missing column."),
            click.option("--since", metavar="DATE", help="Only jobs that began on this day or later."),
            click.option("--until", metavar="DATE", help="Only jobs that began before this day."),
            click.option("--time-zone", default="UTC", show_default=True, help="Whose days and months these are."),
            click.option("--above", "above_gib", type=Size(), metavar="SIZE", help="Only jobs that moved more."),
            click.option("--without", multiple=True, metavar="MOTIF", help="Motifs to leave out; may be repeated."),
            click.option(
                "--processes-within",
                type=click.FloatRange(min=1),
                default=1.0,
                show_default=True,
                metavar="FACTOR",
                help="Most over fewest processes in a history; inf: all are compared.",
            ),
        ],
    )


def rules_of(options: dict[str, Any]) -> Filter:
    """Take the options of :func:`row_options` out of those of a command, and return their filters."""
    from mpiio_ext.analytics.jobs.filters import PUBLISHED, Filter

    taken = {
        name: options.pop(name)
        for name in ("published", "complete", "since", "until", "time_zone", "above_gib", "without", "processes_within")
    }
    within, above = taken.pop("processes_within"), taken["above_gib"]
    taken["above_gib"] = None if above is None else above / 2**30
    if taken.pop("published"):
        if any(taken[name] for name in ("complete", "since", "until", "above_gib", "without")):
            raise click.UsageError("--published stands for all filters; give no other with it")
        return dataclasses.replace(PUBLISHED, within=within)
    return Filter(**{**taken, "within": within, "since": day(taken["since"]), "until": day(taken["until"])})


def check_suffix(path: Path, suffixes: Sequence[str] = _SUFFIXES) -> None:
    """Raise an AnalyticsError for a file that is no figure by its name."""
    if path.suffix.lower() not in suffixes:
        raise AnalyticsError(f"{path}: name a file that ends in {', '.join(suffixes[:-1])} or {suffixes[-1]}")


def save_figure(path: Path, chart: Chart, theme: str) -> None:
    """Write a chart as SVG, which follows light and dark, or as PNG in the colours of a theme."""
    from mpiio_ext.analytics.cli_output import save
    from mpiio_ext.common import plots

    save(path, plots.png(chart, plots.THEMES[theme]) if path.suffix.lower() == ".png" else plots.svg_file(chart))
