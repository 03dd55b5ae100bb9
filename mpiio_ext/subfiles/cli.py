"""``mpiio-ext subfiles``: files that are stored as several, for everybody who wants one file."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.common.commands import FAILED, HELP, Command, LazyGroup, all_of, json_option, output_option, tell
from mpiio_ext.common.options import Existing, Size
from mpiio_ext.common.printing import echo
from mpiio_ext.common.progress import Advance, progress
from mpiio_ext.common.units import count_text, size_text
from mpiio_ext.errors import MpiioExtError

if TYPE_CHECKING:
    from mpiio_ext.subfiles.findings import Finding
    from mpiio_ext.subfiles.folders import Orphan
    from mpiio_ext.subfiles.stored import Stored

_COMMANDS = {
    "merge": (__name__, "merge", "Make one plain file of a file that is stored as several."),
    "split": (__name__, "split", "Store a plain file as several."),
    "info": (__name__, "info", "Show what an index says, and its subfiles."),
    "check": (__name__, "check", "Examine whether files are whole: index, subfiles, lengths."),
    "mv": (__name__, "mv", "Rename a file that is stored as several."),
    "rm": (__name__, "rm", "Remove files that are stored as several."),
    "mount": (__name__, "mount", "Show such files as one each, to every program, read-only."),
}
_EVERY_S = 10.0


@click.group("subfiles", cls=LazyGroup, subcommands=_COMMANDS, context_settings=HELP)
def main() -> None:
    """Files that the hint mpiox_subfiles has stored as several: one index, and a folder NAME.subfiles.

    Programs under the library open the index as the file that it stands for. All others need one of these commands.
    """


def _file() -> Callable[[Command], Command]:
    return click.argument("file", type=click.Path(path_type=Path), metavar="FILE")


def _layout_option() -> Callable[[Command], Command]:
    return click.option("--layout", type=click.Choice(["own", "hdf5"]), default="own", show_default=True,
                        help="Whose subfiles; for hdf5, FILE is the driver's stub or its .config.")  # fmt: skip


def _copies(function: Command) -> Command:
    """Put the options of commands that copy on one."""
    return all_of(function, [
        click.option("--in-place", is_flag=True, help="FILE itself becomes that; needs the space of both meanwhile."),
        click.option("--verify", is_flag=True,
                     help="Compare all bytes of the copy with what it is made of, before it gets its name."),
        click.option("--threads", type=click.IntRange(1, 256), metavar="N",
                     help="Threads that copy.  [default: processors, 8 at most; 1 to one file of a local file system]"),
    ])  # fmt: skip


def _target(file: Path, output: Path | None, ending: str, *, in_place: bool) -> Path | None:
    """Return where the result goes; None: in the place of the file."""
    if in_place and output is not None:
        raise click.UsageError("--output and --in-place exclude each other")
    return None if in_place else output or file.with_name(file.name + ending)


@contextlib.contextmanager
def _bar(name: str) -> Iterator[Callable[[float], Advance]]:
    """Yield what makes a bar of bytes, in megabytes."""
    with contextlib.ExitStack() as stack:

        def begin(total: float) -> Advance:
            move = stack.enter_context(progress(total / 1e6, step="MB", every_s=_EVERY_S, name=name, about=True))

            def advance(text: str = "", *, by: float = 1, to: float | None = None, of: float | None = None,
                        left_s: float | None = None) -> None:  # fmt: skip
                move(text, by=by / 1e6, to=to, of=of, left_s=left_s)

            return advance

        yield begin


@click.command(context_settings=HELP)
@_file()
@output_option(type=click.Path(path_type=Path), metavar="OUT", help="The plain file.  [default: FILE.merged]")
@_copies
@_layout_option()
@click.option("--unfinished", is_flag=True, help="Take what is there of a file that no program has closed.")
def merge(
    file: Path, output: Path | None, in_place: bool, verify: bool, threads: int | None, layout: str, unfinished: bool
) -> None:
    """Make one plain file of the subfiles of FILE, an index.

    Blocks are shared where the file system can (Btrfs, XFS), which takes no space and moments; else bytes are copied
    within the system. Holes stay. The bytes go to a hidden file first: OUT is there whole or not at all. A merge that
    was killed goes on when it is started again.
    """
    from mpiio_ext.subfiles import merge as work

    target = _target(file, output, ".merged", in_place=in_place)
    if in_place and unfinished:
        raise click.UsageError("--in-place removes the subfiles, of which --unfinished may take a part: give -o OUT, "
                               "look at OUT, then `mpiio-ext subfiles rm FILE`")  # fmt: skip
    with _bar("subfiles merge") as begin:
        done = work.merge(file, target, layout=layout, unfinished=unfinished, verified=verify,
                          threads=threads, advance=begin)  # fmt: skip
    how = f"{done.method}{', gone on with' if done.resumed else ''}{', compared' if verify else ''}"
    echo(f"{done.target}: {done.size:,} B ({how})")
    if done.unfinished:
        tell(f"{file}: was not closed: what no rank had written by then is missing, or zeros")
    _tell_foreign(done.left, ", and stays")


@click.command(context_settings=HELP)
@_file()
@output_option(type=click.Path(path_type=Path), metavar="OUT", help="The index.  [default: FILE.split]")
@click.option("--count", type=click.IntRange(1, 4096), required=True, metavar="N", help="Subfiles.")
@click.option("--unit", type=Size(least=1, most=2**62), default="1M", show_default=True,
              help="Bytes that go to one subfile in turn: 1M, 64KiB.")  # fmt: skip
@_copies
def split(
    file: Path, output: Path | None, count: int, unit: int, in_place: bool, verify: bool, threads: int | None
) -> None:
    """Store FILE, a plain file, as subfiles in the folder OUT.subfiles with the index OUT.

    It is the inverse of merge, with the same guarantees: OUT is an index of subfiles that are whole, or what it was.
    """
    from mpiio_ext.subfiles import split as work
    from mpiio_ext.subfiles.index import Striping

    target = _target(file, output, ".split", in_place=in_place)
    with _bar("subfiles split") as begin:
        done = work.split(file, target, Striping(unit, count), verified=verify, threads=threads,
                          advance=begin)  # fmt: skip
    how = f"{done.method}{', gone on with' if done.resumed else ''}{', compared' if verify else ''}"
    echo(f"{done.target}: {done.size:,} B in {count_text(count, 'subfile')} ({how})")


def _as_dict(stored: Stored, lengths: list[int], wrong: list[Finding]) -> dict[str, Any]:
    from mpiio_ext.subfiles.stored import size_of

    return {
        "path": str(stored.path), "layout": stored.layout, "state": stored.state, "unit_bytes": stored.striping.unit,
        "count": stored.striping.count, "size_bytes": size_of(stored, lengths) if stored.size is None else stored.size,
        "id": stored.ident,
        "subfiles": [{"path": str(path), "size_bytes": length, "allocated_bytes": _allocated(path)}
                     for path, length in zip(stored.subfiles, lengths, strict=True)],
        "problems": [{"kind": one.kind, "path": str(one.path), "text": one.words} for one in wrong],
    }  # fmt: skip


def _allocated(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0


@click.command(context_settings=HELP)
@_file()
@_layout_option()
@json_option("Print JSON; sizes are in bytes.")
def info(file: Path, layout: str, as_json: bool) -> None:
    """Show what the index FILE says, and the subfiles with their sizes."""
    from mpiio_ext.cli.tables import print_table
    from mpiio_ext.subfiles.findings import in_lines
    from mpiio_ext.subfiles.stored import examine, find

    stored = find(file, layout)
    lengths, wrong = examine(stored)
    shown = _as_dict(stored, lengths, wrong)
    if as_json:
        echo(json.dumps(shown, indent=2))
        return
    echo(f"{file}: {shown['size_bytes']:,} B in {count_text(stored.striping.count, 'subfile')} by units of "
         f"{size_text(stored.striping.unit, exact=True)}, state {stored.state}, id {stored.ident}")  # fmt: skip
    print_table(("subfile", "size", "allocated"), [
        (_shown(one["path"], file), f"{one['size_bytes']:,} B", f"{one['allocated_bytes']:,} B")
        for one in shown["subfiles"]
    ])  # fmt: skip
    for line in in_lines(stored, wrong):
        echo(line)


def _shown(path: str, file: Path) -> str:
    """Return a path by the folder of the index, where it is in that."""
    with contextlib.suppress(ValueError):
        path = str(Path(path).relative_to(file.resolve().parent))
    return path


@click.command(context_settings=HELP)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@_layout_option()
@json_option("Print JSON: a list with one object for each file, and for each folder without an index.")
def check(files: tuple[Path, ...], layout: str, as_json: bool) -> None:
    """Examine whether FILEs are whole: checksum and state of the index; missing, short, too long, foreign subfiles.

    Of a folder, all indexes in it are examined, and folders NAME.subfiles are found that no index speaks of. The exit
    status is 1 where one is not whole, or without an index, and 2 where one is no index, or a damaged one. Foreign
    files in the folder of a file that is whole are told, and no failure.
    """
    found, status = list[dict[str, Any]](), 0
    for file in files:
        try:
            paths, orphans = _in_folder(file) if layout == "own" else ([file], [])
        except MpiioExtError as error:
            tell(error)
            status = error.exit_status
            continue
        for path in paths:
            try:
                found.append(_checked(path, layout, quiet=as_json))
            except MpiioExtError as error:
                tell(error)
                status = error.exit_status
        for one in orphans:
            problem = {"kind": "orphan", "path": str(one.folder), "text": str(one)}
            found.append({"path": str(one.folder), "count": len(one.subfiles), "size_bytes": one.size,
                          "subfiles": [{"path": str(path)} for path in one.subfiles], "problems": [problem]})
            if not as_json:
                echo(one)
        if not paths and not orphans and not as_json:
            echo(f"{file}: no file in it is stored as several")
    if as_json:
        echo(json.dumps(found, indent=2))
    raise SystemExit(max(status, FAILED if any(one["problems"] for one in found) else 0))


def _in_folder(path: Path) -> tuple[list[Path], list[Orphan]]:
    """Return the indexes in a folder, and the folders of subfiles that none speaks of; what is no folder, itself."""
    from mpiio_ext.subfiles.folders import indexes, is_folder, orphans

    return (indexes(path), orphans(path)) if is_folder(path) else ([path], [])


def _checked(file: Path, layout: str, *, quiet: bool) -> dict[str, Any]:
    """Return what a file is, as JSON has it; unless `quiet`, say whether it is whole."""
    from mpiio_ext.subfiles.findings import in_lines
    from mpiio_ext.subfiles.sharing import foreign_in, problems
    from mpiio_ext.subfiles.stored import find

    stored = find(file, layout)
    lengths, wrong = problems(stored)
    found = _as_dict(stored, lengths, wrong)
    for line in () if quiet else in_lines(stored, wrong):
        echo(line)
    if not wrong and not quiet:
        echo(f"{file}: whole, {found['size_bytes']:,} B in {count_text(len(lengths), 'subfile')}")
    others = foreign_in(stored)
    if not quiet:
        _tell_foreign(others)
    return found | {"foreign": [str(path) for path in others]}


@click.command(context_settings=HELP)
@_file()
@click.argument("target", type=click.Path(path_type=Path), metavar="NEW")
def mv(file: Path, target: Path) -> None:
    """Rename FILE, an index, and with it the folder of its subfiles, to NEW, or into NEW where that is a folder.

    Nothing is replaced. At each moment, and after a kill, the file is whole under one of the names; started again, it
    ends. So it does where the index alone was renamed by hand.
    """
    from mpiio_ext.subfiles.move import move

    echo(f"{file}: is {move(file, target)} now")


@click.command(context_settings=HELP)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--orphans", is_flag=True, help="FILEs are folders: list the subfiles in them that no index has.")
@click.option("--yes", is_flag=True, help="With --orphans: remove them.")
def rm(files: tuple[Path, ...], orphans: bool, yes: bool) -> None:
    """Remove FILEs that are stored as several: subfiles, their folder, and the index.

    What is no index is refused, a link, and what a program has open. All FILEs are tried; the exit status is 1 where
    some could not be removed, 2 where none could. An index that was moved without its folder leaves orphans: look for
    it before --yes.
    """
    if yes and not orphans:
        raise click.UsageError("--yes is for --orphans")
    statuses = []
    for file in files:
        try:
            statuses += _remove_orphans(file, yes=yes) if orphans else [_remove(file)]
        except MpiioExtError as error:
            tell(error)
            statuses.append(error.exit_status)
    if any(statuses):
        raise SystemExit(max(statuses) if all(statuses) else FAILED)


def _remove(file: Path) -> int:
    from mpiio_ext.subfiles.remove import remove

    count, left = remove(file)
    echo(f"{file}: removed with {count_text(count, 'subfile')}")
    _tell_foreign(left, ", and stays")
    return 0


def _remove_orphans(folder: Path, *, yes: bool) -> list[int]:
    """Remove the orphans in a folder, or without `yes` list them; return the status of each."""
    from mpiio_ext.subfiles.folders import orphans, remove_orphan

    found = orphans(folder)
    for one in found:
        if one.kept:
            tell(one)
        elif not yes:
            echo(one)
        else:
            remove_orphan(one)
            echo(f"{one.place}: removed with {count_text(len(one.subfiles), 'subfile')}, {one.size:,} B")
    if not found:
        echo(f"{folder}: nothing in it is without an index")
    elif not yes:
        tell("nothing was removed: --yes does that")
    return [FAILED if one.kept or not yes else 0 for one in found]


def _tell_foreign(paths: Sequence[Path], more: str = "") -> None:
    """Name what is in a folder of subfiles and none of them."""
    from mpiio_ext.subfiles.findings import named

    if paths:
        tell(f"{paths[0].parent}: {named([path.name for path in paths])} in it: no subfile of this file{more}")


@click.command(context_settings=HELP)
@click.argument("path", type=Existing(path_type=Path), metavar="PATH")
@click.argument("mountpoint", type=Existing(path_type=Path, file_okay=False), metavar="MOUNTPOINT")
@click.option("--foreground", is_flag=True, help="Stay until it is unmounted, or Ctrl-C.")
def mount(path: Path, mountpoint: Path, foreground: bool) -> None:
    """Show a folder, or one index, at MOUNTPOINT: each file that is stored as several as one file, all else as it is.

    It is read-only. It ends with ``fusermount3 -u MOUNTPOINT``, or ``umount``. A file that is not whole cannot be
    opened (EIO); standard error, with --foreground, and the system's log say why. It needs FUSE (/dev/fuse, libfuse)
    and the extra: pip install 'mpiio_ext[mount]'.
    """
    from mpiio_ext.subfiles import mount as work

    work.mount(path, mountpoint, foreground=foreground)
