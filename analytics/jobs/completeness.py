"""Completeness of a table: in how many rows of each file system each source has a value, and where it is a gap.

A source is recognised by one column, or two, that it always has. A gap (:mod:`.coverage`) is a value that is stored and
not used. Rows are those of the table that is asked about, so that what filters left out is not counted here.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.jobs.coverage import shares
from mpiio_ext.analytics.jobs.table import FILE, PERFORMANCE, SYSTEM, Jobs

#: Source -> columns that it always has.
_SOURCES = {
    "program's log": (PERFORMANCE,),
    "servers' bytes": ("fs_tot_bytes_read", "fs_tot_bytes_written"),
    "metadata operations": ("fs_tot_open_ops",),
    "servers' load": ("fs_ave_oss_cpu",),
    "fullness": ("fshealth_ost_most_full_pct",),
    "failovers": ("fshealth_ost_overloaded_ost_count",),
    "states of disks": ("fshealth_disk_down_count",),
    "concurrent jobs": ("jobsdb_concurrent_nodes",),
    "topology": ("topology_job_max_radius",),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """In how many rows a source has a value.

    Attributes
    ----------
    file, system, source : file of the table ("": there is one), file system, and source.
    rows, known, gaps : int
        Rows of the file system in the file; those with a value; those whose value is stored and not used.
    """

    file: str
    system: str
    source: str
    rows: int
    known: int
    gaps: int


def completeness(table: Jobs) -> list[Known]:
    """Return the coverage of each file system of each file by each source; unknown sources are left out."""
    out = []
    files, systems = table.texts(FILE), table.texts(SYSTEM)
    sources = {
        source: columns
        for source, columns in _SOURCES.items()
        if any(name in table and not table.missing(name).all() for name in columns)
    }
    for rows in table.by_system():
        first = int(np.flatnonzero(rows)[0])
        for source, columns in sources.items():
            used = np.logical_and.reduce([~np.isnan(table.numbers(name)[rows]) for name in columns])
            stored = np.logical_and.reduce(
                [~table.missing(name)[rows] if name in table else ~rows[rows] for name in columns]
            )
            out.append(
                Known(
                    file=str(files[first]),
                    system=str(systems[first]),
                    source=source,
                    rows=int(rows.sum()),
                    known=int(used.sum()),
                    gaps=int((stored & ~used).sum()),
                )
            )
    return out


def in_words(table: Jobs) -> list[str]:
    """Return a line of the gaps that are no values anywhere, and one of shares that are shown in percent."""
    gaps: dict[str, int] = {}
    for one in completeness(table):
        gaps[one.source] = gaps.get(one.source, 0) + one.gaps
    named = ", ".join(f"{source} of {count:,}" for source, count in gaps.items() if count)
    lines = [f"gaps of monitoring in {count_words(len(table), 'row')}, used nowhere: {named}"] if named else []
    percent = dict.fromkeys(table.texts(SYSTEM)[shares(table)].tolist())
    return [
        *lines,
        *([f"fullness of {', '.join(percent)} is a share in the table, and shown in percent"] if percent else []),
    ]
