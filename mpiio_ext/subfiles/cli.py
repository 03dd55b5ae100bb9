"""``mpiio-ext subfiles``: files that are stored as several, for users who want one file."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.common.commands import FAILED, Command, LazyGroup, json_option, output_option, warn
from mpiio_ext.common.options import Existing
from mpiio_ext.common.printing import echo
from mpiio_ext.common.progress import progress
from mpiio_ext.common.units import count_text, size_text
from mpiio_ext.errors import MpiioExtError

if TYPE_CHECKING:
    from mpiio_ext.subfiles.index import Stored
    from mpiio_ext.subfiles.stored import Finding

_COMMANDS = {
    "merge": (__name__, "merge", "Make one plain file of a file that is stored as several."),
    "check": (__name__, "check", "Check whether files are complete: index, subfiles, lengths."),
    "rm": (__name__, "rm", "Remove files that are stored as several."),
    "mount": (__name__, "mount", "Show each such file as one file to every program, read-only."),
}


@click.group("subfiles", cls=LazyGroup, subcommands=_COMMANDS)
def main() -> None:
    """Handle files that the hint mpiox_subfiles stores as several: an index, and a folder NAME.subfiles.

    Programs under the library open the index like the file that it stands for. All other programs need one of these
    commands.
    """


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@output_option(type=click.Path(path_type=Path), metavar="OUT", help="The plain file.  [default: FILE.merged]")
@click.option("--in-place", is_flag=True, help="FILE itself becomes the plain file; needs the space of both meanwhile.")
@click.option("--unfinished", is_flag=True, help="Merge the bytes of a file that its program did not close.")
def merge(file: Path, output: Path | None, in_place: bool, unfinished: bool) -> None:
    """Make one plain file of the subfiles of FILE, an index.

    If the file system can share blocks (Btrfs, XFS), the merge takes moments and no space; otherwise the kernel copies
    the bytes. Holes stay. The bytes go to a hidden file first: OUT exists complete or not at all.
    """
    from mpiio_ext.subfiles import merge as work

    if in_place and output is not None:
        raise click.UsageError("--output and --in-place exclude each other")
    if in_place and unfinished:
        raise click.UsageError(
            "--in-place removes all subfiles, and --unfinished may merge a part of their bytes: give -o OUT, "
            "examine OUT, then `mpiio-ext subfiles rm FILE`"
        )
    target = None if in_place else output or file.with_name(f"{file.name}.merged")
    with contextlib.ExitStack() as stack:

        def begin(total: int) -> Callable[[int], None]:
            bar = progress(total / 1e6, step="MB", every_s=10.0, name="subfiles merge", about=True)
            move = stack.enter_context(bar)
            return lambda length: move("", by=length / 1e6)

        done = work.merge(file, target, unfinished=unfinished, advance=begin)
    echo(f"{target or file}: {done.size:,} B ({done.method})")
    if done.stored.size is None:
        warn(f"{file}: was not closed: bytes that no rank had written are missing, or zeros")
    if in_place:
        _report_foreign(done.stored, ", and stays")


def _as_dict(stored: Stored, lengths: list[int], wrong: list[Finding]) -> dict[str, Any]:
    from mpiio_ext.subfiles.stored import foreign_in, size_of

    return {
        "path": str(stored.path),
        "state": stored.state,
        "unit_bytes": stored.striping.unit,
        "count": stored.striping.count,
        "size_bytes": size_of(stored, lengths),
        "id": stored.ident,
        "subfiles": [
            {"path": str(path), "size_bytes": length} for path, length in zip(stored.subfiles, lengths, strict=True)
        ],
        "problems": [{"kind": one.kind, "path": str(one.path), "text": one.words} for one in wrong],
        "foreign": foreign_in(stored),
    }


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@json_option("Print JSON: a list with one object for each file; sizes are in bytes.")
def check(files: tuple[Path, ...], as_json: bool) -> None:
    """Check whether FILEs are complete: checksum and state of the index; missing, short, too long, foreign subfiles.

    The exit status is 1 if one is not complete, and 2 if one is no index, or a damaged one. Foreign files in the folder
    of a complete file are reported, but are no failure.
    """
    from mpiio_ext.subfiles.stored import find, problems

    found, status = list[dict[str, Any]](), 0
    for file in files:
        try:
            stored = find(file)
        except MpiioExtError as error:
            warn(error)
            status = error.exit_status
            continue
        lengths, wrong = problems(stored)
        one = _as_dict(stored, lengths, wrong)
        found.append(one)
        if as_json:
            continue
        for line in wrong:
            echo(line)
        if not wrong:
            echo(
                f"{file}: whole, {one['size_bytes']:,} B in {count_text(len(lengths), 'subfile')} by units of "
                f"{size_text(stored.striping.unit, exact=True)}"
            )
        _report_foreign(stored)
    if as_json:
        echo(json.dumps(found, indent=2))
    raise SystemExit(max(status, FAILED if any(one["problems"] for one in found) else 0))


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
def rm(files: tuple[Path, ...]) -> None:
    """Remove FILEs that are stored as several: subfiles, their folder, and the index.

    The command refuses a link, a file that is no index, and a file that a program has open. It tries all FILEs; the
    exit status is 1 if it could not remove some, 2 if it could remove none.
    """
    from mpiio_ext.subfiles.remove import remove

    statuses = []
    for file in files:
        try:
            stored = remove(file)
        except MpiioExtError as error:
            warn(error)
            statuses.append(error.exit_status)
        else:
            statuses.append(0)
            echo(f"{file}: removed with {count_text(len(stored.subfiles), 'subfile')}")
            _report_foreign(stored, ", and stays")
    if any(statuses):
        raise SystemExit(max(statuses) if all(statuses) else FAILED)


def _report_foreign(stored: Stored, more: str = "") -> None:
    """Name the entries in a folder of subfiles that are no subfiles."""
    from mpiio_ext.subfiles.stored import foreign_in

    if names := foreign_in(stored):
        rest = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        warn(f"{stored.folder}: {', '.join(names[:3])}{rest} in it: no subfile of this file{more}")


@click.command(cls=Command)
@click.argument("folder", type=Existing(path_type=Path, file_okay=False), metavar="FOLDER")
@click.argument("mountpoint", type=Existing(path_type=Path, file_okay=False), metavar="MOUNTPOINT")
@click.option("--foreground", is_flag=True, help="Stay until it is unmounted, or Ctrl-C.")
def mount(folder: Path, mountpoint: Path, foreground: bool) -> None:
    """Show FOLDER at MOUNTPOINT: each file stored as several as one file, all else unchanged.

    The mount is read-only. ``fusermount3 -u MOUNTPOINT`` or ``umount`` ends it. A file that is not complete cannot be
    opened (EIO); standard error (with --foreground) and the system's log name the reason. The command needs FUSE
    (/dev/fuse, libfuse) and the extra: pip install "$(ls mpiio_ext-*.whl)[mount]".
    """
    from mpiio_ext.subfiles import mount as work

    work.mount(folder, mountpoint, foreground=foreground)
