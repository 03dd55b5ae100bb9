"""Find the logs of a set-up: folders walked with scandir, sizes and times beside the names, dates by one expression.

A log's date is, in this order and as its input says: a date in its path (``2018-01-28``, ``2018/1/28``; the last one),
or the time of its last change in UTC where the kind writes logs once, or none: then it belongs to every period.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.connectors.registry import KINDS
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.setup import Input
from mpiio_ext.analytics.store.logtable import SEEN, keys_of

__all__ = ["Found", "scan"]

_DATE = (
    r".*(?:^|[^0-9])(?P<y>(?:19|20)[0-9]{2})[-_/](?P<m>0?[1-9]|1[0-2])[-_/](?P<d>0?[1-9]|[12][0-9]|3[01])(?:[^0-9]|$)"
)


class Found:
    """What a scan has found: logs as lists, and what it could not look at.

    Attributes
    ----------
    problems : list of str
        Folders and logs that could not be looked at, and patterns without a match: one line each.
    others : int
        Files with names that no log of the kind has.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.sizes: list[int] = []
        self.times: list[int] = []
        self.problems: list[str] = []
        self.others = 0

    def add(self, path: str, status: os.stat_result) -> None:
        """Add a log."""
        self.paths.append(path)
        self.sizes.append(status.st_size)
        self.times.append(status.st_mtime_ns)

    def cannot(self, path: str, error: OSError) -> None:
        """Note what could not be looked at."""
        self.problems.append(f"{path}: {error.strerror or error}")


def _walk(root: str, matches: Any, found: Found) -> None:
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
                        _stat(entry, f"{below}{entry.name}", found)
        except OSError as error:
            found.cannot(f"{root}/{below}", error)


def _stat(entry: os.DirEntry[str], path: str, found: Found) -> None:
    try:
        found.add(path, entry.stat())
    except OSError as error:
        found.cannot(entry.path, error)


def _matcher(patterns: Sequence[str]) -> Any:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns)).match


def _look(source: Input, found: Found) -> str:
    """Look for the logs of one input, and return the folder that their paths are relative to."""
    path = source.path
    place = Path(path)
    if place.is_dir():
        _walk(path, _matcher(KINDS[source.kind].patterns), found)
        return path
    if place.is_file():
        found.add(place.name, place.stat())
        return str(place.parent)
    if not glob.has_magic(path):
        raise AnalyticsError(f"{path}: no such folder or file; the set-up names it under /inputs/{source.kind}")
    parts = place.parts
    plain = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    root = Path(*parts[:plain])
    for name in sorted(root.glob(str(Path(*parts[plain:])))):
        try:
            if name.is_file():
                found.add(str(name.relative_to(root)), name.stat())
        except OSError as error:
            found.cannot(str(name), error)
    if not found.paths:
        found.problems.append(f"{path}: no file matches")
    return str(root)


def _path_dates(paths: Any) -> Any:
    parts = pc.extract_regex(paths, _DATE)
    year, month, day = (pc.struct_field(parts, name) for name in ("y", "m", "d"))
    month, day = (pc.utf8_lpad(part, 2, padding="0") for part in (month, day))
    return pc.binary_join_element_wise(year, month, day, "-")


def _dates(source: Input, paths: Any, times: Any) -> Any:
    """Return the date of each log as ``YYYY-MM-DD``, or an empty text."""
    rule = source.date
    if rule == "any":
        return pa.array([""] * len(paths), pa.string())
    changed = pc.strftime(pa.array(times).cast(pa.timestamp("ns")).cast(pa.timestamp("s"), safe=False), "%Y-%m-%d")
    if rule == "mtime":
        return changed
    dates = _path_dates(paths)
    if rule == "auto" and KINDS[source.kind].dated:
        dates = pc.coalesce(dates, changed)
    return pc.fill_null(dates, "")


def scan(inputs: Sequence[Input]) -> tuple[Any, list[str], int]:
    """Find all logs of the inputs.

    Returns
    -------
    logs : pyarrow.Table
        Of the schema ``SEEN``; a file that several inputs name is there once.
    problems : list of str
        What could not be looked at.
    others : int
        Files whose names are not those of logs.

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
        tables.append(
            pa.table(
                {
                    "kind": pa.array([source.kind] * count, pa.string()),
                    "root": pa.array([root] * count, pa.string()),
                    "path": paths,
                    "size": pa.array(found.sizes, pa.int64()),
                    "mtime_ns": pa.array(times),
                    "date": _dates(source, whole, times) if count else paths,
                }
            ).cast(SEEN)
        )
        problems += found.problems
        others += found.others
    logs = pa.concat_tables(tables) if tables else SEEN.empty_table()
    if len(tables) > 1:
        keyed = pa.table({"key": keys_of(logs), "row": np.arange(logs.num_rows)})
        first = keyed.group_by("key").aggregate([("row", "min")]).column("row_min")
        logs = logs.take(pa.array(np.sort(np.asarray(first))))
    return logs, problems, others
