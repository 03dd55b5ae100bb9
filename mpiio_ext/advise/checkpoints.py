"""Does a program write, compute, and write again? Then it need not wait for the file system (``mpiox_close=staged``).

Problem.   Hints that make a checkpoint's requests faster leave a program waiting for them. One that computes for long
           enough between its checkpoints can have them written behind it, at a risk that it has to decide on itself:
           the hint is proposed, and not put into a hints file.
Algorithm. The calls of the root's MPI-IO fall into bursts: a pause that is not much shorter than the longest one is
           computation. Bursts are checkpoints if there are several, if each opens a file, writes and closes it and
           reads hardly anything, and if each is shorter than the pauses between them. Otherwise there is no time to
           write behind.
"""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiio_ext.common.units import digits_text, size_text

if TYPE_CHECKING:
    from mpiio_ext.pioneer.path import WorkloadPath

#: A pause is computation from this part of the longest one on, and from this many seconds on.
_LONG_PART, _LONG_S = 0.25, 0.1
#: So many checkpoints at least, of so many bytes; of all bytes so many may be read; waiting is worth a word from this
#: part of the program's time on.
_LEAST, _LEAST_BYTES, _MOST_READ, _LEAST_WAIT = 3, 1 << 20, 0.1, 0.01
_DELEGATES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """The checkpoints that a program writes between its computations.

    Attributes
    ----------
    count : of them.
    size_bytes : of the largest, all ranks together.
    wait_s : that the root is in one, the median.
    compute_s : between two, the median.
    """

    count: int
    size_bytes: int
    wait_s: float
    compute_s: float

    @property
    def hints(self) -> tuple[str, ...]:
        """The hints for delegates that write checkpoints behind the program; caches have room for one and a half."""
        cache_mib = -(-3 * self.size_bytes // (2 * _DELEGATES << 20))
        return f"mpiox_delegates={_DELEGATES}", "mpiox_close=staged", f"mpiox_delegate_cache={cache_mib}m"

    def __str__(self) -> str:
        """One sentence, and the risk."""
        return (
            f"{self.count} checkpoints of up to {size_text(self.size_bytes)}, waits {digits_text(self.wait_s, 2)} s "
            f"for each and computes {digits_text(self.compute_s, 2)} s: {' '.join(self.hints)} would write them "
            "behind it; until a file is written, a crash of its node loses it"
        )


@dataclass(slots=True)
class _Burst:
    begin_s: float
    end_s: float
    opens: int = 0
    closes: int = 0
    written: int = 0
    read: int = 0


def _bursts(path: WorkloadPath) -> list[_Burst]:
    """Return the bursts of the root's calls of MPI-IO; their bytes are the bytes of all ranks."""
    from mpiio_ext.pioneer.operations import operation_of

    ranks_of = [len(members) for members in path.info.members]
    columns = [f"size_{group}" for group in range(path.group_count)]
    rows = path.table.select(["layer", "operation", "slack_0", "duration_0", *columns]).to_pylist()
    now_s, calls = 0.0, list[_Burst]()
    for row in rows:
        begin_s = now_s + (row["slack_0"] or 0) / 1e9
        now_s = begin_s + (row["duration_0"] or 0) / 1e9
        if row["layer"] != "mpiio":
            continue
        name, size = row["operation"], sum((row[c] or 0) * n for c, n in zip(columns, ranks_of, strict=True))
        writes = operation_of("mpiio", name).writes
        calls.append(
            _Burst(
                begin_s,
                now_s,
                name == "MPI_File_open",
                name == "MPI_File_close",
                size if writes else 0,
                size if writes is False else 0,
            )
        )
    longest_s = max((b.begin_s - a.end_s for a, b in itertools.pairwise(calls)), default=0.0)
    found = calls[:1]
    for call in calls[1:]:
        last = found[-1]
        if call.begin_s - last.end_s >= max(_LONG_S, _LONG_PART * longest_s):
            found.append(call)
            continue
        last.end_s = call.end_s
        last.opens, last.closes = last.opens + call.opens, last.closes + call.closes
        last.written, last.read = last.written + call.written, last.read + call.read
    return found


def checkpoints_of(path: WorkloadPath) -> Checkpoints | None:
    """Return a program's checkpoints; None if it writes none, or if delegates cannot write them behind the program."""
    bursts = _bursts(path)
    written = [burst for burst in bursts if burst.opens and burst.closes and burst.written >= _LEAST_BYTES]
    moved = sum(burst.written + burst.read for burst in bursts)
    if len(written) < _LEAST or sum(burst.written for burst in written) < (1 - _MOST_READ) * moved:
        return None
    wait_s = statistics.median(burst.end_s - burst.begin_s for burst in written)
    compute_s = statistics.median(b.begin_s - a.end_s for a, b in itertools.pairwise(written))
    if wait_s > compute_s or wait_s < _LEAST_WAIT * compute_s:
        return None
    return Checkpoints(
        count=len(written), size_bytes=max(burst.written for burst in written), wait_s=wait_s, compute_s=compute_s
    )
