"""``mpiio-ext layout``: how files lie on the servers of their file system, and where each fact came from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from mpiio_ext.layout import Component, Layout

__all__ = ["layout"]

#: Targets of a component that are shown; --json has all.
_MOST_TARGETS = 64


class _Bytes(click.ParamType[int]):
    """A size as hints are written: 65536, 64k, 1M."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip().lower()
        shift = {"k": 10, "m": 20, "g": 30, "t": 40}.get(text[-1:], 0)
        digits = text[:-1] if shift else text
        if not digits.isdecimal() or not 0 < int(digits) << shift <= 2**62:
            self.fail(f"{value!r} is no size: give bytes, or k, m, g, t for powers of 1024", param, ctx)
        return int(digits) << shift


def size(count: int) -> str:
    """Return bytes for people: exact, with a unit where it divides."""
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count and count % (1 << shift) == 0:
            return f"{count >> shift} {unit}"
    return f"{count} B"


def _value(value: int | bool | str, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "bytes" and isinstance(value, int):
        return size(value)
    return "all" if value == -1 else str(value)


def _extent(part: Component) -> str:
    return f"{size(part.start_bytes)} – {'end' if part.end_bytes is None else size(part.end_bytes)}"


def _count(number: int | None) -> str:
    return "" if number is None else "all" if number < 0 else str(number)


def _targets(part: Component) -> str:
    shown = " ".join(part.targets[:_MOST_TARGETS])
    rest = len(part.targets) - _MOST_TARGETS
    return f"{shown} … and {rest} more" if rest > 0 else shown


def _show(console: Console, found: Layout) -> None:
    from rich.table import Table

    title = f"{found.path} (folder: what new files get)" if found.is_folder else found.path
    console.print(title, markup=False, highlight=False, soft_wrap=True)
    table = Table()
    for name in ("fact", "value", "source"):
        table.add_column(name, overflow="fold")
    for item in found.facts:
        table.add_row(item.spec.name.replace("_", " "), _value(item.value, item.spec.unit), item.source)
    console.print(table, markup=False)
    if not found.components:
        return
    console.print("components")
    parts = Table()
    for name in ("extent", "stripe", "count", "servers", "mirror", "pattern", "flags", "pool", "targets"):
        parts.add_column(name, overflow="fold")
    for part in found.components:
        stripe = "" if part.stripe_size_bytes is None else size(part.stripe_size_bytes)
        parts.add_row(_extent(part), stripe, _count(part.stripe_count), _count(part.servers), str(part.mirror),
                      part.pattern, part.flags, part.pool, _targets(part))  # fmt: skip
    console.print(parts, markup=False)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list with one object for each path.")
@click.option("--striping-unit", type=_Bytes(), help="As if the hint striping_unit were given: 1M.")
@click.option("--striping-factor", type=click.IntRange(min=-1, max=2**31 - 1), help="As the hint striping_factor.")
@click.option("--start-iodevice", type=click.IntRange(min=0, max=2**31 - 1), help="As the hint start_iodevice.")
def layout(
    paths: tuple[str, ...],
    as_json: bool,
    striping_unit: int | None,
    striping_factor: int | None,
    start_iodevice: int | None,
) -> None:
    """Show file system, stripes, servers, locks and coherence of files, and where each fact came from.

    Of a folder it shows what new files in it get. Nothing is written. Paths that cannot be asked are told on standard
    error and make the exit status 1.
    """
    from mpiio_ext.errors import FileSystemError
    from mpiio_ext.layout import inspect

    found: list[Layout] = []
    failed = False
    for path in paths:
        try:
            found.append(inspect(path, striping_unit_bytes=striping_unit, striping_factor=striping_factor,
                                 start_iodevice=start_iodevice))  # fmt: skip
        except FileSystemError as error:
            click.echo(f"mpiio-ext: {path}: {error.strerror}", err=True)
            failed = True
    if as_json:
        click.echo(json.dumps([item.as_dict() for item in found], indent=2))
    elif found:
        from rich.console import Console

        console = Console()
        for item in found:
            _show(console, item)
    if failed:
        raise SystemExit(1)
