"""``mpiio-ext delegates wait`` and ``recover``: files that have been closed and are still to be written.

Delegates write a file behind its close (``mpiox_close=staged``). ``wait`` reads their memory, as ``status`` does, until
no bytes are left, or names the files that cannot be written and the places of their bytes. If a delegate was killed,
and every process that would have written for it, too, ``recover`` writes the bytes of its cache on a disk to the files.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from mpiio_ext._binding import ffi, lib
from mpiio_ext.common.commands import Command, json_option
from mpiio_ext.common.options import Duration
from mpiio_ext.common.printing import echo
from mpiio_ext.common.units import size_text

if TYPE_CHECKING:
    from mpiio_ext.delegates._status import DelegateStatus, Observation, Watch

_SUFFIX = ".staging"
_LOOK_S = 0.1
#: Time for which a file that no delegate has is checked again: it may be getting its name.
_GRACE_S = 2.0
#: `mpiio_ext_delegates_recover()`: the delegate lives; the node was restarted since.
_IN_USE, _RESTARTED = -5, -8
_REPORT_BYTES = 1 << 18
#: What `recover` prints of a cache: its state in JSON, and the words.
_STATES = {
    _IN_USE: ("in use", "its delegate runs"),
    _RESTARTED: (
        "restarted",
        "this node was restarted since: which of its pages had come to the disk is not known, so nothing of it is "
        "written",
    ),
}
_UNUSABLE = ("unusable", "cannot be used: it is another user's, or no cache of this version")
_MOVED = "brought to their files"
#: States of caches whose bytes are not in the files.
_LOST = ("restarted", "unusable")


def final_name(path: Path | str) -> Path:
    """Return the final name of a file; its own if it has that already."""
    path = Path(path)
    hidden = path.name.startswith(".") and path.name.endswith(_SUFFIX)
    return path.with_name(path.name[1 : -len(_SUFFIX)]) if hidden else path


def staging_name(path: Path) -> Path:
    """Return the name of a file until all of it is written."""
    return path.with_name(f".{path.name}{_SUFFIX}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A file of which a delegate has bytes to write.

    Attributes
    ----------
    path : its final name.
    dirty_bytes : bytes that are not in the file yet.
    code : why they cannot be written, an errno; 0: nothing is wrong.
    where : who has them.
    """

    path: Path
    dirty_bytes: int
    code: int
    where: str


def left_by(rows: Iterable[Observation], wanted: set[Path]) -> Iterator[Left]:
    """Yield the files that running delegates still have to write: the wanted ones, or all that are closed."""
    for row in rows:
        item = row.status
        if item.state in ("ended", "rescued"):
            continue
        silent = ", silent" if row.state == "silent" else ""
        who = f"I/O delegate {item.delegate} (process {item.pid} on {item.host}{silent})"
        where = f"{item.kept} of {who}" if item.kept else f"the memory of {who}"
        for file in item.files:
            path = final_name(Path(file.path))
            if (path in wanted or not wanted) and (file.draining or bool(wanted and not file.replica)):
                yield Left(path=path, dirty_bytes=file.dirty_bytes, code=file.drain_errno, where=where)


def _clash(staging: Path) -> str:
    """As mpiox_storage_staging_clash()."""
    return (
        f"is complete as {staging}, but does not get its name, because another file has it now: rename one of the two"
    )


def _without_parts(staging: Path) -> str:
    """As mpiox_storage_staging_clash()."""
    return (
        f"does not get its name: {staging}.parts, the list of delegates with bytes of it, was removed; rename "
        f"{staging} when no I/O delegate (mpiio-ext delegates status) and no cache on a disk has bytes of it"
    )


def _is_whole(staging: Path) -> bool:
    """Return whether no delegate has bytes of a file any more, by the list beside it."""
    try:
        marks, _, _ = staging.with_name(f"{staging.name}.parts").read_bytes().partition(b"\n")  # the job follows
        return set(marks) == {ord("+")}
    except OSError:
        return False


def _nobodys(wanted: set[Path], left: Iterable[Left]) -> dict[Path, str]:
    """Return the incomplete files that no delegate has, and the facts about them."""
    texts = {}
    for path in wanted - {item.path for item in left}:
        if path.exists() and _is_whole(staging_name(path)):
            texts[path] = _clash(staging_name(path))
        elif staging_name(path).exists() and not Path(f"{staging_name(path)}.parts").exists():
            texts[path] = _without_parts(staging_name(path))
        elif staging_name(path).exists():
            texts[path] = (
                f"is incomplete, and no delegate of this host writes it: its bytes are in {staging_name(path)}"
            )
        elif not path.exists():
            texts[path] = "is not there"
    return texts


def _abandoned(running: Iterable[DelegateStatus]) -> dict[Path, str]:
    """Return the closed files of which caches whose delegates are all gone have bytes, in the folders of the hint."""
    from mpiio_ext.delegates._status import read_cache
    from mpiio_ext.hints import in_force

    texts: dict[Path, str] = {}
    used = {item.kept for item in running}
    folders = next(hint.value for hint in in_force() if hint.spec.name == "mpiox_delegate_cache_dir")
    for folder in map(Path, filter(None, re.split("[,;]", folders))):
        for cache in _caches(folder) if folder.is_dir() else ():
            status = read_cache(cache) if str(cache) not in used else None
            texts |= {
                final_name(file.path): f"is not all written: the rest is in {cache}, whose delegate was killed: "
                f"mpiio-ext delegates recover {folder}"
                for file in (status.files if status else ())
                if file.draining and not file.replica
            }
    return texts


def _left_behind(wanted: set[Path], left: Sequence[Left], rows: Iterable[Observation]) -> dict[Path, str]:
    """Return the requested files, or all, that are incomplete and that no delegate writes, with their known facts."""
    abandoned = _abandoned(row.status for row in rows)
    if not wanted:
        return abandoned
    having = {item.path for item in left}
    return {path: abandoned[path] for path in wanted - having if path in abandoned} | _nobodys(wanted, left)


def _by_file(left: Iterable[Left]) -> dict[Path, list[Left]]:
    """Return by file the delegates that have its bytes, or if none has, those that wait for its name."""
    found = dict[Path, list[Left]]()
    for item in left:
        found.setdefault(item.path, []).append(item)
    return {path: [one for one in items if one.dirty_bytes] or items for path, items in found.items()}


def _why(items: Sequence[Left]) -> str:
    """Return why a file is not complete."""
    item = items[0]
    staging = staging_name(item.path)
    if item.code == errno.EEXIST and not item.dirty_bytes:
        return _clash(staging)
    if item.code == errno.ENODATA and not item.dirty_bytes:
        return _without_parts(staging)
    return f"cannot be written: {os.strerror(item.code)}; its bytes are in {' and '.join(one.where for one in items)}"


class _Waiting:
    """The files that cannot be written, and since when."""

    def __init__(self, wanted: set[Path], patience_s: float) -> None:
        self._wanted, self._patience_s = wanted, patience_s
        self._since_s: dict[Path, float] = {}

    def look(self, watch: Watch) -> tuple[bool, dict[Path, str]]:
        """Return whether all is written, and what has been wrong for too long, by file."""
        rows = watch.look()
        left = list(left_by(rows, self._wanted))
        nobodys = _left_behind(self._wanted, left, rows)
        clashes = {item.path for item in left if item.code in (errno.EEXIST, errno.ENODATA)}
        wrong = [
            item
            for item in left
            if item.code
            and (item.code != errno.EEXIST or item.path.exists())
            and (item.code != errno.ENODATA or staging_name(item.path).exists())
        ]
        stuck = {path: _why(items) for path, items in _by_file(wrong).items()}
        now_s = time.monotonic()
        self._since_s = {path: self._since_s.get(path, now_s) for path in (*nobodys, *stuck)}
        failed = {path: text for path, text in nobodys.items() if now_s - self._since_s[path] >= _GRACE_S}
        failed |= {
            path: text
            for path, text in stuck.items()
            if path in clashes or now_s - self._since_s[path] >= self._patience_s
        }
        return not left and not nobodys, failed


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and in all below it, but for those of subfiles."""
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.endswith(".subfiles")]
        yield from (Path(root, name) for name in names)


def _left_aside(path: Path) -> Iterator[Path]:
    """Yield the final names of what killed jobs left of a file, which later jobs have renamed."""
    return map(final_name, path.parent.glob(f".{glob.escape(path.name)}.left-*{_SUFFIX}"))


def _wanted(paths: Iterable[Path], watch: Watch) -> set[Path]:
    """Return the files that are named, and those below folders that are named which are written, or were left there."""
    named = {Path(os.path.realpath(path)) for path in paths}
    folders = {path for path in named if path.is_dir()}
    staged = {final_name(path) for folder in folders for path in _below(folder) if final_name(path) != path}
    staged |= {aside for path in named - folders for aside in _left_aside(path)}
    rows = watch.look()
    closed = {item.path for item in left_by(rows, set())} | set(_abandoned(row.status for row in rows))
    return named - folders | staged | {path for path in closed if folders.intersection(path.parents)}


def _not_yet(items: Iterable[Left]) -> str:
    where = ", ".join(f"{size_text(item.dirty_bytes)} of it are in {item.where}" for item in items)
    return f"is not written yet: {where}"


def _answer(failed: dict[Path, str], as_json: bool) -> None:
    """Print the files that are not written, and why; the exit status is 1 if there are any."""
    if as_json:
        files = [{"path": str(path), "why": text} for path, text in sorted(failed.items())]
        echo(json.dumps({"written": not failed, "files": files}, indent=1))
    else:
        for path, text in sorted(failed.items()):
            echo(f"{path} {text}", err=True)
    if failed:
        raise SystemExit(1)


@click.command(cls=Command)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--patience",
    type=Duration(zero=True),
    default="10s",
    show_default=True,
    help="How long the file system may refuse a file before that is a failure.",
)
@click.option("--timeout", type=Duration(zero=True), help="How long to wait altogether.  [default: without end]")
@json_option("Print as JSON whether all is written, and each file that is not.")
def wait(files: tuple[Path, ...], patience: float, timeout: float | None, as_json: bool) -> None:
    """Wait until files that programs of this host have closed before are all written.

    A folder stands for the files below it that delegates still write, or left there; a file, also for what killed jobs
    left of it (NAME.left-1, NAME.left-2 …). Without FILES the command waits
    for all files that your delegates on this host drain, and for those that killed delegates left in the folders of
    mpiox_delegate_cache_dir. The exit status is 1 if a file cannot be written, does not exist, or is not complete in
    time: standard error names the file and the place of its bytes.
    """
    from mpiio_ext.delegates._status import Watch

    watch = Watch()
    wanted = _wanted(files, watch)
    if files and not wanted:
        _answer({}, as_json)
        return
    waiting = _Waiting(wanted, patience)
    until_s = time.monotonic() + timeout if timeout is not None else None
    while True:
        done, failed = waiting.look(watch)
        if failed or done:
            _answer(failed, as_json)
            return
        if until_s is not None and time.monotonic() >= until_s:
            rows = watch.look()
            left = list(left_by(rows, wanted))
            late = {path: _not_yet(items) for path, items in _by_file(left).items()}
            late |= _left_behind(wanted, left, rows)
            if late:
                _answer(late, as_json)
                return
        time.sleep(_LOOK_S)


# ---- recovering ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritten:
    """A file some of whose bytes are in a cache.

    Attributes
    ----------
    path : its final name.
    why : what keeps them from it; follows the name in a sentence.
    changed : others have written it since.
    code : why, an errno.
    whole : none are left, but it does not get its name.
    waits : so it is because another cache of its job may have bytes.
    """

    path: Path
    why: str
    code: int
    changed: bool
    whole: bool
    waits: bool


def recover_cache(path: Path, folders: Iterable[Path] = (), *, force: bool = False) -> tuple[int, list[Unwritten]]:
    """Write the bytes of a cache that was left on a disk to their files, and remove the cache once it is empty.

    folders: folders with more caches of its job, beside the cache's own folder. force: bytes that others have written
    since are overwritten. Returns the bytes, or a number below 0 (the cache is in use, or none that can be used), and
    the files that could not be written, or wait for another cache.
    """
    text, near = ffi.new("char[]", _REPORT_BYTES), os.fsencode(";".join(map(str, folders)))
    moved = int(lib.mpiio_ext_delegates_recover(os.fsencode(path), near, force, text, _REPORT_BYTES))
    failed = json.loads(ffi.string(text).decode()) if moved >= 0 else []
    return moved, [
        Unwritten(
            path=Path(item["path"]),
            why=item["why"],
            code=item["errno"],
            changed=item["changed"],
            whole=item["whole"],
            waits=item["waits"],
        )
        for item in failed
    ]


def _said(item: Unwritten, caches: str) -> str:
    """Return the line about a file whose bytes are still in caches, with advice."""
    if item.whole:
        return f"{item.path} {item.why}"
    if item.code == errno.ENOENT:
        renamed = "was it removed or renamed?" if item.path.parent.is_dir() else "was its folder renamed?"
        return (
            f"{item.path} {item.why}: {renamed} Rename it back, and recover again; or remove {caches}, where its "
            "bytes are, if these are not wanted"
        )
    all_the_same = ": --force writes them all the same" if item.changed else ""
    half = ", and the file is incomplete" if item.path.exists() and not item.changed else ""
    return f"{item.path} {item.why}; its bytes are in {caches}{half}{all_the_same}"


#: Unwritten bytes of a file, with the caches that have them.
_Kept: TypeAlias = "list[tuple[Unwritten, Path]]"


def _caches(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("mpiox.*") if stat.S_ISREG(path.lstat().st_mode))


@click.command(cls=Command)
@click.argument(
    "folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--force", is_flag=True, help="Write also to files that others have written since.")
@json_option("Print each cache, and each file that could not be written, as JSON.")
def recover(folders: tuple[Path, ...], force: bool, as_json: bool) -> None:
    """Write to their files what delegates that were killed have left in a folder of mpiox_delegate_cache_dir.

    Caches of running delegates stay untouched. The exit status is 1 if a file could not be written: standard error
    names it, and its cache stays for another attempt. The status is also 1 if another program has written the file
    since, or if a closed file is not complete because another I/O delegate of its job had some of its bytes.
    """
    caches, waiting, unwritten = list[dict[str, object]](), dict[Path, str](), dict[object, _Kept]()
    for cache in (cache for folder in folders for cache in _caches(folder)):
        moved, failed = recover_cache(cache, folders, force=force)
        state, text = _STATES.get(moved, _UNUSABLE) if moved < 0 else ("recovered", f"{size_text(moved)} {_MOVED}")
        caches.append({"cache": str(cache), "state": state, "bytes": max(0, moved)})
        if not as_json:
            echo(f"{cache}: {text}", err=state in _LOST)
        waiting |= {item.path: item.why for item in failed if item.waits}
        for item in (item for item in failed if not item.waits):
            unwritten.setdefault((item.path, item.code, item.whole), []).append((item, cache))
    left = [
        (items[0][0].path, _said(items[0][0], " and ".join(str(cache) for _, cache in items)))
        for items in unwritten.values()
    ]
    left += [(path, f"{path} {why}") for path, why in sorted(waiting.items()) if staging_name(path).exists()]
    whole = not left and not any(row["state"] in _LOST for row in caches)
    if as_json:
        files = [{"path": str(path), "why": text.removeprefix(f"{path} ")} for path, text in left]
        echo(json.dumps({"written": whole, "caches": caches, "files": files}, indent=1))
    else:
        for _, text in left:
            echo(text, err=True)
    if not whole:
        raise SystemExit(1)
