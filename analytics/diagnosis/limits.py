"""From which value on something is called a cause: every threshold of a diagnosis, in one place."""

from __future__ import annotations

import dataclasses

__all__ = ["Limits"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """Thresholds; shares are 0 to 1.

    Attributes
    ----------
    reported : float
        Share of the critical time that a finding must explain.
    trivial : float
        Share of the run time below which the critical time is not worth tuning: there are no findings then.
    fast : float
        Bandwidth over the critical time (B/s) from which on it is not low. What a log says of requests, layouts and
        ranks is then no cause of slow I/O, only something seen; what can be shown to cost time still is one. The
        paper's bound of a low bandwidth.
    small_bytes : int
        Largest small request (B); a bound of Darshan's histogram.
    small, non_consecutive, unaligned, independent : float
        Share of a file's requests, or of its MPI-IO calls, from which on the file is called so.
    read_modify_write : float
        Bytes that POSIX reads and no MPI-IO call asked for, over those that MPI-IO writes to the file.
    contention : float
        Processes per OST of a file (the paper's jobs above 3 were slow).
    root : float
        Rank 0's share of the bytes.
    serialised, dominant, gaps : float
        See the factors of these names.
    dominant_excess : float
        How many times its share of the bytes a file's share of the time must be for it to be called dominant.
    straggler, metadata : float
        Share of a file's time.
    busy : float
        Share of the critical time spent in calls, below which files alone are no cause, and a note says so.
    slow : float
        How many times slower than the median an OST or a file must be.
    alike_files, alike_osts, many_files, small_file_bytes
        See the factors.
    """

    reported: float = 0.05
    trivial: float = 0.02
    fast: float = 1e9
    small_bytes: int = 1 << 20
    small: float = 0.5
    non_consecutive: float = 0.5
    unaligned: float = 0.5
    independent: float = 0.5
    read_modify_write: float = 0.05
    contention: float = 3.0
    root: float = 0.5
    serialised: float = 0.5
    dominant: float = 0.8
    dominant_excess: float = 1.5
    gaps: float = 0.5
    straggler: float = 0.5
    metadata: float = 0.3
    busy: float = 0.1
    slow: float = 3.0
    alike_files: int = 4
    alike_osts: int = 4
    many_files: int = 100
    small_file_bytes: int = 1 << 20
