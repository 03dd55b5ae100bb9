"""Metrics made of other columns: the kind of I/O, coverage factors, contention, normalised performance.

Source: Lockwood et al., UMAMI (PDSW-DISCS 2017), Section III: the coverage factor of a job is the traffic of the job
itself (Darshan) over the traffic of all servers of the file system meanwhile (LMT or ggiostat). SC18 ("A Year in the
Life of a Parallel File System"), Section III: contention is 1 minus the coverage factor. Performance is normalised by
the best job of the same kind on the same file system. The rules by which a row is *file per process* or *shared file*,
and *read* or *write*, are those of the published tools (tokio-abcutils).

Guarantees. A value that lacks one of its terms, or whose denominator is 0, is NaN. A value that the table already has
is not changed. A value that a row lacks is computed, also if other rows have it, so that tables of several origins can
be stacked. But columns that depend on the other rows (`RELATIVE`) are always computed, since a stored value belongs to
another set of rows. A coverage factor beyond the limit is not used, nor its contention, from whatever origin.
"""

from __future__ import annotations

import posixpath
from typing import Any

import numpy as np

from mpiio_ext.analytics.jobs.coverage import COVERAGE, MOST_COVERAGE, below_own, sum_of
from mpiio_ext.analytics.jobs.table import MOTIF, PERFORMANCE, PROCESSES, SCALE, SYSTEM, Jobs
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Texts

#: The number of files is a multiple of the number of processes, but for this share (input files that all share).
_EVENLY = 0.05
#: Scale of a job whose number of processes is not known, while that of others of its motif and file system is.
UNKNOWN_SCALE = "not known"

_KIND = (
    "darshan_app",
    "darshan_nprocs",
    "darshan_biggest_read_api_bytes",
    "darshan_biggest_write_api_bytes",
    "darshan_biggest_read_api_files",
    "darshan_biggest_write_api_files",
)
_CONTENDED = ("bw", "opens", "stats", "ops")
_METADATA = (
    "open",
    "close",
    "getattr",
    "getxattr",
    "link",
    "mkdir",
    "mknod",
    "rename",
    "rmdir",
    "setattr",
    "statfs",
    "unlink",
)

#: Derived column -> columns that it is made of.
SOURCES: dict[str, tuple[str, ...]] = {
    MOTIF: _KIND,
    **{f"coverage_factor_{name}": (*job, *servers) for name, (job, servers) in COVERAGE.items()},
    **{
        f"contention_{name}": (f"coverage_factor_{name}", *COVERAGE[name][0], *COVERAGE[name][1]) for name in _CONTENDED
    },
    "coverage_factor_nodehrs": ("darshan_nprocs", "darshan_walltime", "jobsdb_concurrent_nodehrs"),
    "fs_tot_bytes": ("fs_tot_bytes_read", "fs_tot_bytes_written"),
    "fs_tot_openclose_ops": ("fs_tot_open_ops", "fs_tot_close_ops"),
    "fs_tot_metadata_ops": tuple(f"fs_tot_{name}_ops" for name in _METADATA),
    SCALE: (*_KIND, SYSTEM),
    "darshan_normalized_perf_by_max": (*_KIND, SYSTEM, PERFORMANCE),
}

#: Derived columns whose values depend on which other rows the table has: never stored.
RELATIVE = frozenset({SCALE, "darshan_normalized_perf_by_max"})


def derive(table: Jobs, *, within: float = 1.0) -> Jobs:
    """Return the table with the derived columns, computed where a row has no value, and those of `RELATIVE` anew.

    Parameters
    ----------
    table : Jobs
        Columns of the published names; what is missing makes the derived values NaN.
    within : float
        Factor between the most and the fewest processes of jobs that are compared with each other, from 1.
    """
    made: dict[str, Any] = {}

    def put(name: str, values: Any) -> None:
        made[name] = _filled(table, name, values)

    made[MOTIF] = motifs(table)
    for name, (job, servers) in COVERAGE.items():
        put(f"coverage_factor_{name}", _ratio(sum_of(table, job), sum_of(table, servers)))
    if "coverage_factor_nodehrs" in table:
        made["coverage_factor_nodehrs"] = table.stored("coverage_factor_nodehrs")
    above = {name: values > MOST_COVERAGE for name, values in made.items() if name != MOTIF}  # not where it is NaN
    made |= {name: np.where(rows, np.nan, made[name]) for name, rows in above.items()}
    for name in _CONTENDED:
        put(f"contention_{name}", 1 - made[f"coverage_factor_{name}"])
        stored = made[f"contention_{name}"]
        rows = above[f"coverage_factor_{name}"] | (stored < 1 - MOST_COVERAGE)
        made[f"contention_{name}"] = np.where(rows, np.nan, stored)
    for name in ("fs_tot_bytes", "fs_tot_openclose_ops", "fs_tot_metadata_ops"):
        put(name, sum_of(table, SOURCES[name]))
    whole = table.joined(made)
    whole = whole.joined({SCALE: _scales(whole, within)})
    return whole.joined({"darshan_normalized_perf_by_max": _normalised(whole)})


def _filled(table: Jobs, name: str, values: Numbers) -> Numbers:
    """Return a column in which computed values replace missing ones."""
    if name not in table:
        return values
    stored = table.stored(name)
    missing = np.isnan(stored)
    return np.where(missing, values, stored) if missing.any() else stored


def motifs(table: Jobs) -> Texts:
    """Return the motif of each row: that of the table, or else the one from Darshan's columns; "" if unknown."""
    if MOTIF not in table:
        return _motifs(table)
    missing = table.missing(MOTIF)
    stored = table.texts(MOTIF).astype(object)
    return np.where(missing, _motifs(table), stored) if missing.any() else stored


def beyond(table: Jobs) -> dict[str, int]:
    """Return in how many rows each coverage factor is beyond `MOST_COVERAGE`; it is undefined if the servers saw 0."""
    found = {
        f"coverage_factor_{name}": int((below_own(table, name) & (sum_of(table, servers) > 0)).sum())
        for name, (_, servers) in COVERAGE.items()
    }
    return {name: count for name, count in found.items() if count}


def _ratio(job: Numbers, servers: Numbers) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = job / servers
    out: Numbers = np.where(np.isfinite(found), found, np.nan)
    return out


def _per_process(files: Numbers, processes: Numbers) -> Flags:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.abs(np.fmod(files, processes) / files) < _EVENLY


def _motifs(table: Jobs) -> Texts:
    """Return application, layout and direction of each row as one name such as ``ior_fpp_write``; "" if not known.

    A row without its number of processes has no layout, where others have one.
    """
    processes = table.numbers("darshan_nprocs")
    lacking = np.isnan(processes) & ~np.isnan(processes).all()
    read, written = (table.numbers(f"darshan_biggest_{side}_api_bytes") for side in ("read", "write"))
    writes = np.nan_to_num(written) > np.nan_to_num(read)
    own = np.where(
        writes,
        _per_process(table.numbers("darshan_biggest_write_api_files"), processes),
        _per_process(table.numbers("darshan_biggest_read_api_files"), processes),
    )
    programs = table.texts("darshan_app").tolist()
    return np.array(
        [
            f"{posixpath.basename(program)}_{'fpp' if alone else 'shared'}_{'write' if out else 'read'}"
            if program and not lack
            else ""
            for program, alone, out, lack in zip(programs, own, writes, lacking, strict=True)
        ],
        dtype=object,
    )


def _scales(table: Jobs, within: float) -> Texts:
    """Return which processes the history of each row has; "" if its motif has but one history on the file system.

    From the smallest number on, those of up to `within` times as many are of one history.
    """
    out = np.full(len(table), "", dtype=object)
    processes = table.numbers(PROCESSES)
    for rows in groups_of(table.joined({SCALE: out})).values():
        known = np.unique(processes[rows][~np.isnan(processes[rows])])
        if not len(known):
            continue
        out[rows[np.isnan(processes[rows])]] = UNKNOWN_SCALE
        parts = []
        while len(known):
            parts.append(known[known <= within * known[0]])
            known = known[len(parts[-1]) :]
        for part in parts if len(parts) > 1 else ():
            name = f"{part[0]:.0f}" if len(part) == 1 else f"{part[0]:.0f} to {part[-1]:.0f}"
            out[rows[np.isin(processes[rows], part)]] = name
    return out


def groups_of(table: Jobs) -> dict[tuple[str, str, str], Any]:
    """Return (file system, motif, scale) -> places of its rows: by name, and then by processes.

    A row whose file system, motif or number of processes is not known is of no group, since others are known not to be
    of the same. Where no row has one, as in a table of one file system that does not name it, this name is "" and
    separates nothing.
    """
    systems, kinds, scales = table.texts(SYSTEM), table.texts(MOTIF), table.texts(SCALE)
    known = [names != "" if (names != "").any() else np.ones(len(table), dtype=np.bool_) for names in (systems, kinds)]
    keys: dict[tuple[str, str, str], list[int]] = {}
    for row in np.flatnonzero(known[0] & known[1] & (scales != UNKNOWN_SCALE)).tolist():
        keys.setdefault((str(systems[row]), str(kinds[row]), str(scales[row])), []).append(row)
    ordered = sorted(keys, key=lambda key: (*key[:2], int(key[2].split()[0]) if key[2] else 0))
    return {key: np.array(keys[key], dtype=np.int64) for key in ordered}


def _normalised(table: Jobs) -> Numbers:
    """Return performance over the largest of its history."""
    performance = table.numbers(PERFORMANCE)
    out = np.full(len(table), np.nan)
    for rows in groups_of(table).values():
        known = performance[rows][~np.isnan(performance[rows])]
        if len(known) and known.max() > 0:
            out[rows] = performance[rows] / known.max()
    return out
