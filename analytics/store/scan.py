r"""Find the logs of a set-up: folders walked with scandir, sizes and times beside the names, dates by one expression.

A log's date is, in this order and as its input says: a date in its path (``2018-01-28``, ``2018/1/28``; the last one);
where the kind writes logs once, the start of the job that the log itself has (:mod:`mpiio_ext.analytics.store.dates`).
Else it is the time of its last change in UTC. A log with none belongs to every period.

A name that is no file that can be read (a FIFO, a link to nothing) is a log with a problem, for the manifest to say so.
So is a name that is not UTF-8: tables hold UTF-8 alone. It is written with its bytes as ``\xff``.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.setup import Input
from mpiio_ext.analytics.sources.registry import KINDS
from mpiio_ext.analytics.store.logtable import SEEN, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiio_ext.analytics.tables.arrays import Whole

#: What a scan sees; ``problem``: why the log cannot be read, its status and a reason ("skipped: …"), or empty. Where
#: ``dated`` is empty the log itself may have a better date than the file's change.
SCANNED = SEEN.append(pa.field("problem", pa.string()))
_NO_FILES = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}

_DATE = (
    r".*(?:^|[^0-9])(?P<y>(?:19|20)[0-9]{2})[-_/](?P<m>0?[1-9]|1[0-2])[-_/](?P<d>0?[1-9]|[12][0-9]|3[01])(?:[^0-9]|$)"
)


class Found:
    """The result of a scan: logs as lists, and the folders that it could not read.

    Attributes
    ----------
    problems : list of str
        Folders that could not be looked at, and patterns without a match: one line each.
    others : int
        Files with names that no log of the kind has.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.sizes: list[int] = []
        self.times: list[int] = []
        self.bad: list[str] = []
        self.problems: list[str] = []
        self.others = 0

    def look_at(self, root: str, path: str, status: os.stat_result | None = None) -> None:
        """Add the log `path` of the folder `root`, whatever it is; `status` if it is known.

        Raises
        ------
        OSError
            The log does not exist any more.
        """
        problem = ""
        try:
            status = status or os.stat(f"{root}/{path}")  # noqa: PTH116 (a Path a log)
            if not stat.S_ISREG(status.st_mode):
                problem = f"skipped: no file but {_NO_FILES.get(stat.S_IFMT(status.st_mode), 'a device')}"
        except OSError as error:
            status = os.lstat(f"{root}/{path}")
            why = "a link to nothing" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
            problem = f"unreadable: {why}"
        name = _printable(path)
        if name != path:
            problem = problem or "skipped: its name is not UTF-8; rename it"
        self.bad.append(problem)
        self.paths.append(name)
        self.sizes.append(status.st_size)
        self.times.append(status.st_mtime_ns)

    def cannot(self, path: str, error: OSError) -> None:
        """Note a folder that could not be read."""
        self.problems.append(f"{_printable(path)}: {error.strerror or error}")


def _printable(path: str) -> str:
    r"""Return a path as text: bytes that are not UTF-8, lone surrogates in Python, as ``\xff``."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    return path


def _walk(root: str, matches: Callable[[str], re.Match[str] | None], found: Found) -> None:
    stack = [""]
    while stack:
        below = stack.pop()
        try:
            with os.scandir(f"{root}/{below}") as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(f"{below}{entry.name}/")
                    elif not matches(entry.name):
                        found.others += 1
                    else:
                        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                            found.look_at(root, f"{below}{entry.name}")
        except OSError as error:
            found.cannot(f"{root}/{below}", error)


def _matcher(patterns: Sequence[str]) -> Callable[[str], re.Match[str] | None]:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns)).match


def _look(source: Input, found: Found) -> str:
    """Look for the logs of one input, and return the folder that their paths are relative to."""
    path = source.path
    place = Path(path)
    if place.is_dir():
        _walk(path, _matcher(KINDS[source.kind].patterns), found)
        return path
    if place.is_file():
        found.look_at(str(place.parent), place.name)
        return str(place.parent)
    if not glob.has_magic(path):
        raise AnalyticsError(f"{path}: no such folder or file; the set-up names it under /inputs/{source.kind}")
    parts = place.parts
    plain = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    root = Path(*parts[:plain])
    for name in sorted(root.glob(str(Path(*parts[plain:])))):
        try:
            if not name.is_dir():
                found.look_at(str(root), str(name.relative_to(root)))
        except OSError as error:
            found.cannot(str(name), error)
    if not found.paths:
        found.problems.append(f"{path}: no file matches")
    return str(root)


def _path_dates(paths: pa.Array) -> pa.Array:
    parts = pc.extract_regex(paths, _DATE)
    year, month, day = (pc.struct_field(parts, name) for name in ("y", "m", "d"))
    month, day = (pc.utf8_lpad(part, 2, padding="0") for part in (month, day))
    return pc.binary_join_element_wise(year, month, day, "-")


def _dates(source: Input, paths: pa.Array, times: Whole) -> tuple[pa.Array, pa.Array]:
    """Return the date of each log as ``YYYY-MM-DD``, or an empty text; and the source of the date, see `SCANNED`."""
    rule, kind = source.date, KINDS[source.kind]
    if rule == "any":
        return pa.array([""] * len(paths), pa.string()), pa.array(["none"] * len(paths), pa.string())
    changed = pc.strftime(pa.array(times).cast(pa.timestamp("ns")).cast(pa.timestamp("s"), safe=False), "%Y-%m-%d")
    if rule == "mtime":
        return changed, pa.array(["change"] * len(paths), pa.string())
    dates = _path_dates(paths)
    other = "none" if rule == "path" or not kind.dated else "" if kind.header else "change"
    basis = pc.if_else(pc.is_valid(dates), "path", other)
    return pc.fill_null(pc.coalesce(dates, changed) if other != "none" else dates, ""), basis


def scan(inputs: Sequence[Input]) -> tuple[Any, list[str], int]:
    """Find all logs of the inputs.

    Returns
    -------
    logs : pyarrow.Table
        Of the schema ``SCANNED``; a file that several inputs name is there once.
    problems : list of str
        Paths that could not be read.
    others : int
        Files whose names are not names of logs.

    Raises
    ------
    AnalyticsError
        An input is neither a folder nor a file nor a pattern.
    """
    tables, problems, others = [], [], 0
    for source in inputs:
        found = Found()
        root = _look(source, found)
        count = len(found.paths)
        paths = pa.array(found.paths, pa.string())
        times = np.array(found.times, dtype=np.int64)
        whole = pc.binary_join_element_wise(pa.scalar(root), paths, "/") if count else paths
        dates, dated = _dates(source, whole, times) if count else (paths, paths)
        tables.append(
            pa.table(
                {
                    "kind": pa.array([source.kind] * count, pa.string()),
                    "root": pa.array([root] * count, pa.string()),
                    "path": paths,
                    "size": pa.array(found.sizes, pa.int64()),
                    "mtime_ns": pa.array(times),
                    "date": dates,
                    "dated": dated,
                    "problem": pa.array(found.bad, pa.string()),
                }
            ).cast(SCANNED)
        )
        problems += found.problems
        others += found.others
    logs = pa.concat_tables(tables) if tables else SCANNED.empty_table()
    if len(tables) > 1:
        keyed = pa.table({"key": keys_of(logs), "row": np.arange(logs.num_rows)})
        first = keyed.group_by("key").aggregate([("row", "min")]).column("row_min")
        logs = logs.take(pa.array(np.sort(np.asarray(first))))
    return logs, problems, others
