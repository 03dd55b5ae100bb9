"""What ranks do when, from the steps of their recordings: seconds in reads, writes and metadata calls by band and bin.

Problem. A log has the time in metadata calls, not when that was, and DXT only of runs of few accesses. Algorithm: the
time of a step is spread evenly over it; the sum so far, which is a line of few corners, is read at the edges of bins.
Guarantee. The sum over bins is that of the steps, as far as they lie within the run.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from mpiio_ext.pioneer.darshan import recordings

_READ, _WRITE, _META = 0, 1, 2


def _so_far(steps: recordings.Structured, edges: npt.NDArray[np.float64], since: int) -> npt.NDArray[np.float64]:
    """Return the seconds in steps of one class up to each edge (s)."""
    starts, ends = ((steps[name].astype(np.float64) + since) / 1e9 for name in ("start", "end"))
    order = np.argsort(starts, kind="stable")
    sums = np.cumsum(steps["busy"][order] / 1e9)
    corners = np.maximum.accumulate(np.stack([starts[order], ends[order]], axis=1).ravel())  # steps may overlap
    values = np.stack([np.append(0, sums[:-1]), sums], axis=1).ravel()
    found: npt.NDArray[np.float64] = np.interp(edges, corners, values, left=0.0)
    return found


def in_calls(folder: Path, run_s: float, *, bands: int, bins: int) -> npt.NDArray[np.float64] | None:
    """Return seconds in reads, writes and metadata calls, by band of ranks and bin of the run; None: no recordings.

    Parameters
    ----------
    folder : of the recordings of one run.
    run_s : seconds from the first rank's start.
    bands, bins : how many.
    """
    heads = recordings.heads([folder])
    heads = [head for head in heads if head.rank >= 0] or heads
    if not heads:
        return None
    found = np.zeros((3, bands, bins))
    origin, processes = min(head.started_ns for head in heads), max(1, *(head.ranks for head in heads))
    edges = np.linspace(0, run_s, bins + 1)
    for head in heads:
        recording = recordings.read(head.path)
        band = min(max(head.rank, 0) * bands // processes, bands - 1)
        for kind in (_READ, _WRITE, _META):
            steps = recording.steps[recording.steps["class"] == kind]
            if len(steps):
                found[kind, band] += np.diff(_so_far(steps, edges, recording.since_ns - origin))
    return found
