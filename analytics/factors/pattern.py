"""Factors about the pattern of access beyond the paper's: alignment, and many small files."""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.factors.equations import ratio
from mpiio_ext.analytics.factors.files import Files, bins
from mpiio_ext.analytics.factors.registry import factor
from mpiio_ext.analytics.tables.arrays import Numbers


@factor(
    "unaligned",
    "share of POSIX requests, of both directions, that do not begin at a block of the file system",
    columns=("unaligned", *bins("read"), *bins("write")),
)
def unaligned(files: Files) -> Numbers:
    """Return the share of unaligned requests of each file."""
    return np.clip(ratio(files["unaligned"], files.requests("read") + files.requests("write")), 0, 1)


@factor(
    "small_files",
    "share of the critical time in files of which at most small_file_bytes were moved; 0 unless there are many_files",
    columns=("{bytes}",),
)
def small_files(files: Files, *, small_file_bytes: float = 1 << 20, many_files: float = 100) -> Numbers:
    """Return 1 for a small file of a job with many of them, else 0."""
    moved = files["{bytes}"]
    is_small = files.counted & (moved <= small_file_bytes)
    many = files.per_file(files.count(is_small) >= many_files)
    return np.where(np.isnan(moved), np.nan, (is_small & many).astype(float))
