"""``mpiio-ext layout``: how files lie on the servers of their file system, and where each fact came from."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import click

from mpiio_ext.cli.tables import print_table, terminal_columns
from mpiio_ext.common.commands import UNUSABLE, Command, json_option, warn
from mpiio_ext.common.options import Size
from mpiio_ext.common.printing import echo, in_one_line
from mpiio_ext.common.units import size_text

if TYPE_CHECKING:
    from mpiio_ext.layout import Component, Layout

#: Targets of a component that are shown; --json has all.
_MOST_TARGETS = 64
#: Facts that have a row even if no source has them.
_EXPECTED = ("stripe_count", "servers")


def _value(value: int | bool | str, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "bytes" and isinstance(value, int):
        return size_text(value, exact=True)
    return "all" if value == -1 else str(value)


def _extent(part: Component) -> str:
    end = "end" if part.end_bytes is None else size_text(part.end_bytes, exact=True)
    return f"{size_text(part.start_bytes, exact=True)} – {end}"


def _numbers(part: Component) -> str:
    count = part.stripe_count
    stripe = None if part.stripe_size_bytes is None else size_text(part.stripe_size_bytes, exact=True)
    found = (("stripe", stripe), ("count", "all" if count == -1 else count), ("servers", part.servers))
    return ", ".join(f"{name} {value}" for name, value in (*found, ("mirror", part.mirror)) if value is not None)


def _words(part: Component) -> str:
    found = (("pattern", part.pattern), ("flags", part.flags), ("pool", part.pool))
    return ", ".join(f"{name} {value}" for name, value in found if value)


def _targets(part: Component) -> str:
    shown = " ".join(part.targets[:_MOST_TARGETS])
    rest = len(part.targets) - _MOST_TARGETS
    return ("targets " + shown if shown else "") + (f" … and {rest} more" if rest > 0 else "")


def _show_components(parts: tuple[Component, ...]) -> None:
    """Some lines for each: a table of so many columns has no room for words."""
    echo("components")
    for part in parts:
        echo(f"  {_extent(part)}")
        for line in (_numbers(part), _words(part), _targets(part)):
            if line:
                echo(textwrap.fill(line, terminal_columns(), initial_indent="    ", subsequent_indent="    "))


def _show(found: Layout) -> None:
    from mpiio_ext.layout import registry

    echo(f"{in_one_line(found.path)}{' (folder: what new files get)' * found.is_folder}")
    rows = []
    for spec in registry():
        item = found.fact(spec.name)
        if item is not None:
            rows.append((spec.name.replace("_", " "), _value(item.value, spec.unit), item.source))
        elif spec.name in _EXPECTED:
            rows.append((spec.name.replace("_", " "), "unknown", ""))
    print_table(("fact", "value", "source"), rows)
    if found.components:
        _show_components(found.components)


@click.command(cls=Command)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@json_option("Print JSON: a list with one object for each path.")
@click.option("--striping-unit", type=Size(least=1, most=2**62), help="As if the hint striping_unit were given: 1M.")
@click.option("--striping-factor", type=click.IntRange(min=-1, max=2**31 - 1), help="As the hint striping_factor.")
def layout(paths: tuple[str, ...], as_json: bool, striping_unit: int | None, striping_factor: int | None) -> None:
    """Show file system, stripes, servers, locks and coherence of files, and where each fact came from.

    Of a folder it shows what new files in it get. Nothing is written. Paths that cannot be examined are printed on
    standard error and make the exit status 2.
    """
    from mpiio_ext.errors import FileSystemError
    from mpiio_ext.layout import inspect

    found: list[Layout] = []
    failed = False
    for path in paths:
        try:
            found.append(inspect(path, striping_unit_bytes=striping_unit, striping_factor=striping_factor))
        except FileSystemError as error:
            warn(f"{in_one_line(path)}: {error.strerror}")
            failed = True
    if as_json:
        echo(json.dumps([item.as_dict() for item in found], indent=2))
    elif found:
        for item in found:
            _show(item)
    if failed:
        raise SystemExit(UNUSABLE)
