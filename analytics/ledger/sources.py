"""Make a ledger: from a Darshan log, with the requests of its DXT, or from rows of a store.

Guarantees. A log that cannot be read raises DamagedLogError; a log that lacks records makes a partial ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.ledger import records
from mpiio_ext.analytics.ledger.ledger import Ledger, Traced
from mpiio_ext.analytics.tables.arrays import Whole
from mpiio_ext.analytics.tables.plain import values_of
from mpiio_ext.common.darshanfile import DarshanFile

if TYPE_CHECKING:
    from mpiio_ext.analytics.factors.files import Files


def of_log(
    log: DarshanFile | str | Path,
    processes: int = 0,
    run_s: float = 0.0,
    traced: Mapping[tuple[int, str], Traced] | None = None,
    *,
    partial: bool = False,
) -> Ledger:
    """Return the ledger of a Darshan log.

    Parameters
    ----------
    log : the log, or its path.
    processes, run_s : of the job; 0: as the log has them.
    traced : what its DXT has.
    partial : the log is known to lack calls.

    Raises
    ------
    OSError, DamagedLogError
        The log cannot be read.
    """
    log = log if isinstance(log, DarshanFile) else DarshanFile(log)
    if not processes or not run_s:
        job = log.job()
        lasting = job.end - job.start + (job.end_ns - job.start_ns) / 1e9
        processes, run_s = processes or max(job.processes, 1), run_s or max(lasting, 0.0)
    found, lost = records.of_log(log, processes)
    return Ledger(found, processes, run_s, partial=partial or lost, traced=traced)


def of_files(known: Ledger | None, files: Files, processes: int, run_s: float) -> Ledger:
    """Return the ledger of some files: that of their log, or of their rows where there is no log."""
    return of_rows(files, processes, run_s) if known is None else known.of(numbers_of(files).tolist())


def numbers_of(files: Files) -> Whole:
    """Return the numbers of files in a ledger: those of their log, or their places if rows do not have one each."""
    places = np.arange(len(files))
    if "file_id" not in files.table.schema.names or files.table["file_id"].null_count:
        return places
    numbers = values_of(files.table["file_id"])
    return numbers if len(np.unique(numbers)) == len(numbers) else places


def of_rows(
    files: Files, processes: int, run_s: float, traced: Mapping[tuple[int, str], Traced] | None = None
) -> Ledger:
    """Return the ledger of rows of ``darshan_file``: sums of POSIX and STDIO, without the times of MPI-IO."""
    found = records.empty(len(files))
    found["file"] = numbers_of(files)
    ranks = np.nan_to_num(files["ranks"], nan=float(processes)).clip(1, processes)
    found["ranks"], found["rank"] = ranks, np.where(ranks >= processes, records.ALL, records.SOME)
    for kind, name in enumerate(("read_time", "write_time", "meta_time")):
        found["seconds"][:, kind] = np.nan_to_num(files[name])
    for way, name in enumerate(("bytes_read", "bytes_written")):
        found["bytes"][:, way] = np.nan_to_num(files[name])
    found["opens"] = np.nan_to_num(files["opens"])
    found["pending"] = np.nan_to_num(files["mpiio_nb_reads"]) + np.nan_to_num(files["mpiio_nb_writes"])
    of_root = (found["ranks"] == 1) & (files["root_bytes_written"] >= np.maximum(files["bytes_written"], 1.0))
    found["rank"][of_root & (processes > 1)] = 0
    known = (found["rank"] == records.ALL) & (files["slowest_rank_time"] > 0)
    found["slowest"] = np.where(known, np.nan_to_num(files["slowest_rank"], nan=0.0).clip(0, processes - 1), -1)
    found["slowest_s"] = np.where(known, np.nan_to_num(files["slowest_rank_time"]), 0.0)
    return Ledger(found, processes, run_s, partial=bool((files["partial"] > 0).any()), traced=traced)
