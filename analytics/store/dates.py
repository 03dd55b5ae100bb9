"""Dates of logs whose paths have none: the start of the job, which the log itself has.

Problem. A period is asked for in days of jobs. Logs that were copied or unpacked say by their last change when that was
done, and a whole folder falls out of the period without a word.

Algorithm. If the path has no date, the first bytes of the log are read (`Kind.header`), once: the manifest stores the
date, also of logs that are outside. Days are those of the site's time zone. If the log has no date, the day of the
file's last change stays. What is no file that can be read has no date, and belongs to every period.
"""

from __future__ import annotations

import concurrent.futures
import datetime
import importlib
import zoneinfo
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.sources.registry import KINDS
from mpiio_ext.analytics.store.logtable import keys_of

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Objects, Whole

#: Logs that are opened at a time: most of that is waiting for the disk.
_THREADS = 8
_BASES = {
    "path": "dated by their paths",
    "start": "dated by the start of their jobs, in the logs",
    "change": "dated by the time of their last change",
}


def with_dates(seen: pa.Table, logs: pa.Table, time_zone: str) -> pa.Table:
    """Return a scan in which every log has its date.

    Parameters
    ----------
    seen : as `SCANNED`; where ``dated`` is empty, the date is that of the last change, and the log may know better.
    logs : what the manifest knows.
    time_zone : of the days.
    """
    open_rows = np.flatnonzero(np.asarray(pc.equal(seen.column("dated"), "")))
    if not len(open_rows):
        return seen
    dates = seen.column("date").to_numpy(zero_copy_only=False).copy()
    dated = seen.column("dated").to_numpy(zero_copy_only=False).copy()
    dated[open_rows] = "change"
    bad = open_rows[np.asarray(pc.not_equal(seen.column("problem"), ""))[open_rows]]
    dates[bad], dated[bad] = "", "none"
    asked = _from_manifest(seen, np.setdiff1d(open_rows, bad), logs, dates, dated)
    _from_logs(seen, asked, zoneinfo.ZoneInfo(time_zone), dates, dated)
    for name, values in (("date", dates), ("dated", dated)):
        seen = seen.set_column(seen.column_names.index(name), name, pa.array(values, pa.string()))
    return seen


def _from_manifest(seen: pa.Table, rows: Whole, logs: pa.Table, dates: Objects, dated: Objects) -> Whole:
    """Take the dates of logs that are known and unchanged from the manifest, and return the rows of the others."""
    mine = seen.take(pa.array(rows))
    place = pc.index_in(keys_of(mine), value_set=keys_of(logs).combine_chunks())
    same = np.asarray(pc.is_valid(place))
    for name in ("size", "mtime_ns"):
        same &= np.asarray(pc.fill_null(pc.equal(mine.column(name), logs.column(name).take(place)), False))
    known = logs.take(place.filter(pa.array(same)))
    dates[rows[same]] = known.column("date").to_numpy(zero_copy_only=False)
    dated[rows[same]] = known.column("dated").to_numpy(zero_copy_only=False)
    others: Whole = rows[~same]
    return others


def _from_logs(seen: pa.Table, rows: Whole, zone: zoneinfo.ZoneInfo, dates: Objects, dated: Objects) -> None:
    """Look into logs for the start of their job."""
    mine = seen.take(pa.array(rows)).select(["kind", "root", "path"]).to_pydict()
    readers = {kind: importlib.import_module(KINDS[kind].header).start_of for kind in set(mine["kind"])}

    def start(kind: str, root: str, path: str) -> float | None:
        try:
            found: float | None = readers[kind](f"{root}/{path}")
        except OSError:  # the manifest will record it
            return None
        return found

    with concurrent.futures.ThreadPoolExecutor(_THREADS) as threads:
        for row, found in zip(rows.tolist(), threads.map(start, *mine.values()), strict=True):
            if found is not None:
                dates[row] = datetime.datetime.fromtimestamp(found, zone).strftime("%Y-%m-%d")
                dated[row] = "start"


def dates_in_words(outside: pa.Table) -> list[str]:
    """Return lines on the sources of the dates of logs outside a period, and on these dates."""
    lines = []
    for basis, words in _BASES.items():
        dates = outside.filter(pc.equal(outside.column("dated"), basis)).column("date")
        if len(dates):
            ends = pc.min_max(dates)
            first, last = ends["min"].as_py(), ends["max"].as_py()
            lines.append(f"outside the period: {len(dates):,} {words}, {first} to {last}")
    return lines
