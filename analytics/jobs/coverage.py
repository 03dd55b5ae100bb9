"""Gaps of monitoring in the servers' values: the job itself moved more than the servers counted.

Problem. Where samples of the servers are missing, their sums are too small, or 0. Such a number looks like a quiet file
system, and would enter medians, quarters, correlations and explanations.

Algorithm. The servers' bytes, opens and requests include those of the job. A sum of the servers below the job's own, by
more than clocks explain (`MOST_COVERAGE`), is a gap. The values of the same samples are gaps, too: mean and extreme
rates, and for opens all operations of metadata servers. A metric of the servers that is 0 in all rows of a file system
was never measured. Shares of fullness that a table calls percent are recognised by their values.

Guarantees. Readers of the table's numbers get no value for a gap; the table itself keeps the stored value, so that a
saved table can be filtered again. If the job's own traffic is not known, no value is a gap. State of the file system
(``fshealth_``), which may be 0 for a year, is no traffic.

Source: Lockwood et al. (PDSW-DISCS 2017; SC18) for coverage factors and for the limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.tables.arrays import Flags, Numbers

if TYPE_CHECKING:
    from mpiio_ext.analytics.jobs.table import Jobs

#: A job cannot move, open or ask for more than the servers saw. Above this the servers' samples are incomplete, or a
#: cache answered instead, and the factor says nothing of the job's share. Published for bytes (up to the limit clocks
#: explain the excess); the factor of opens of a third of the jobs on Edison's scratch3 is above it, up to 4,098.
MOST_COVERAGE = 1.2

#: Coverage factor -> columns of the job, and of the servers, whose sums are divided.
COVERAGE: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "read_bw": (("darshan_tot_bytes_read_posix",), ("fs_tot_bytes_read",)),
    "write_bw": (("darshan_tot_bytes_written_posix",), ("fs_tot_bytes_written",)),
    "bw": (
        ("darshan_tot_bytes_read_posix", "darshan_tot_bytes_written_posix"),
        ("fs_tot_bytes_read", "fs_tot_bytes_written"),
    ),
    "opens": (("darshan_tot_opens_posix",), ("fs_tot_open_ops",)),
    "stats": (("darshan_tot_stats_posix",), ("fs_tot_getattr_ops",)),
    "ops": (("darshan_tot_reads_posix", "darshan_tot_writes_posix"), ("fs_tot_read_ops", "fs_tot_write_ops")),
}

#: Columns of the servers -> coverage factors whose terms say whether a value is a gap; the first pattern counts.
_JUDGED = tuple(
    (re.compile(pattern), factors)
    for pattern, factors in (
        (r"fs_(tot|ave|min|max)_(bytes|gibs)_read(_per_sec)?", ("read_bw",)),
        (r"fs_(tot|ave|min|max)_(bytes|gibs)_written(_per_sec)?", ("write_bw",)),
        (r"fs_tot_bytes", ("bw",)),
        (r"fs_(tot|ave|min|max)_(read|write)_ops(_per_sec)?", ("ops",)),
        (r"fs_(tot|ave|min|max)_(getattr|metadata)_ops(_per_sec)?", ("opens", "stats")),
        (r"fs_(tot|ave|min|max)_\w+_ops(_per_sec)?", ("opens",)),
    )
)
#: Measurements of servers that are never 0 in all jobs: not the shares of missing samples.
_MEASURED = re.compile(r"fs_(tot|ave|max)_\w+")
_FULLNESS = re.compile(r"fshealth_ost_(avg|most|least)_full_pct")
_FULLEST = "fshealth_ost_most_full_pct"


def judged_by(name: str) -> tuple[str, ...]:
    """Return the coverage factors that show whether a value of a column is a gap; of other columns none."""
    return next((factors for pattern, factors in _JUDGED if pattern.fullmatch(name)), ())


def terms(name: str) -> frozenset[str]:
    """Return the columns that show whether a value of a column is a gap, and its unit."""
    more = {_FULLEST} if _FULLNESS.fullmatch(name) else set()
    return frozenset(column for factor in judged_by(name) for side in COVERAGE[factor] for column in side) | more


def sum_of(table: Jobs, names: tuple[str, ...]) -> Numbers:
    """Return the sum of columns as stored; NaN if one of them has no value."""
    total: Numbers = np.zeros(len(table)) + sum(table.stored(name) for name in names)
    return total


def below_own(table: Jobs, factor: str) -> Flags:
    """Return the rows in which the servers' sum of a coverage factor is below the job's own."""
    job, servers = (sum_of(table, names) for names in COVERAGE[factor])
    out: Flags = job > MOST_COVERAGE * servers  # not where either is NaN
    return out


def of_servers(table: Jobs, name: str, values: Numbers) -> Numbers:
    """Return the values of a column, NaN in the gaps of monitoring, and fullness in percent.

    Parameters
    ----------
    name : of the column.
    values : numpy.ndarray, shape (jobs,)
        As stored.
    """
    if not name.startswith("fs"):
        return values
    for factor in judged_by(name):
        values = np.where(below_own(table, factor), np.nan, values)
    if _MEASURED.fullmatch(name):
        for rows in table.by_system():
            if not np.nan_to_num(values[rows]).any():
                values = np.where(rows, np.nan, values)
    if _FULLNESS.fullmatch(name):
        values = np.where(shares(table), 100 * values, values)
    return values


def shares(table: Jobs) -> Flags:
    """Return the rows whose fullness is a share: that of others' tables whose fullest OST was never above 1 "%"."""
    out = np.zeros(len(table), dtype=np.bool_)
    fullest = table.stored(_FULLEST)
    for rows in table.by_system():
        known = fullest[rows & ~np.isnan(fullest)]
        if len(known) and known.max() <= 1:
            out |= rows
    out &= ~table.own_rows()
    return out
