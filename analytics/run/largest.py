"""The calls that took most of a rank's time: one kind of calls, on the files that have most of their time.

Problem. If no cause is sure, or the cause takes little of the time, a reader wants to know at least the calls that took
the time. A cause that is only possible is a guess; the ledger is not.

Algorithm. The calls are those of the rank whose time in I/O is printed: the kind of calls with the most time, by the
lower bounds of the ledger. The files are those with most time in these calls, as many as have nearly all of it. Number
and mean size of the calls are those of the same rank and files.

Guarantees. Every number is that of the same calls. Of one rank, no number of calls is printed that is a share of those
of several ranks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

import numpy as np

from mpiio_ext.analytics.diagnosis.words import sized, where
from mpiio_ext.analytics.ledger import KINDS, Interval, Ledger
from mpiio_ext.common.units import count_text, size_text

#: Share of the time of a kind of calls that the named files have together.
_NEARLY = 0.9
#: Calls by what they do, and the word before the files.
_WORDS = {
    "read": ("reads", "from"),
    "write": ("writes", "to"),
    "meta": ("opens, closes, seeks and queries", "of"),
    "sync": ("syncs", "of"),
    "lock": ("waits for locks", "of"),
    "rename": ("renames", "of"),
    "unlink": ("removals", "of"),
    "mapping": ("mappings into memory", "of"),
    "other": ("other calls", "on"),
    "waiting": ("waits for other ranks", "to open or close"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Largest:
    """Calls of one kind: their seconds, and what they are, in words."""

    seconds: Interval
    words: str


def largest(ledger: Ledger, names: Mapping[int, str], among: Collection[str], rank: int | None) -> Largest | None:
    """Return the kind of calls with most time, and its files.

    Parameters
    ----------
    ledger : of the run.
    names : of files, by number.
    among : names of all files, of which short ones differ.
    rank : whose time it is; None: an average rank's.

    Returns
    -------
    Largest, or None
        None: no call takes any time.
    """
    cells = ledger.cells(rank)
    if not cells.seconds.least.sum() > 0:
        return None
    kind = int(cells.seconds.least.sum(axis=1).argmax())
    least, most = cells.seconds.least[kind], cells.seconds.most[kind]
    order = np.argsort(-least, kind="stable")
    count = int(np.searchsorted(np.cumsum(least[order]), _NEARLY * least.sum())) + 1
    chosen = order[:count]
    calls, moved = cells.calls[kind, chosen].sum(), cells.bytes[kind, chosen].sum()
    what, to = _WORDS[KINDS[kind]]
    sync = KINDS.index("sync")
    if KINDS[kind] == "write" and cells.calls[sync, chosen].any() and not cells.seconds.most[sync, chosen].any():
        what = "writes and syncs"
    elif moved > 0 and calls > 0:
        mean = float(moved / calls)
        same = (
            mean == int(mean) and int(mean) & (int(mean) - 1) == 0
        )  # a mean of several sizes is hardly a power of two
        what = sized(mean, what) if same else f"{what} of {size_text(mean)} on average"
    files = [names.get(int(ledger.files[place])) or f"file {ledger.files[place]}" for place in chosen]
    by = "" if ledger.processes == 1 else " by an average rank" if rank is None else f" by rank {rank}"
    number = f" ({count_text(round(float(calls)), 'call')}{by})" if calls >= 1 and cells.exact[chosen].all() else ""
    seconds = Interval(float(least[chosen].sum()), float(most[chosen].sum()))
    return Largest(seconds=seconds, words=f"{what}{where(files, to, among)}{number}")
