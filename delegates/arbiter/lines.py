"""Lines about files that users put into the folder: so few for each user that they neither hide others nor fill a disk.

Algorithm. A bucket for each user: a burst, then one line every ten seconds. Lines that are not printed are counted, and
the count is printed as soon as there is room for a line.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

_BURST = 16.0
_EVERY_S = 10.0


class Lines:
    """A bucket for each user.

    Parameters
    ----------
    report : receives the lines
    about : subject of the lines that are not printed
    """

    def __init__(self, report: Callable[[str], None], about: str) -> None:
        self._report, self._about = report, about
        self._left: dict[int, float] = {}  # user -> lines that it may still cause; not in it: the burst
        self._unreported: Counter[int] = Counter()
        self._looked = time.monotonic()

    def report(self, lines: Iterable[tuple[int, str]]) -> None:
        """Print lines, each of a user, and how many were not printed."""
        now = time.monotonic()
        gained, self._looked = (now - self._looked) / _EVERY_S, now
        self._left = {uid: left + gained for uid, left in self._left.items() if left + gained < _BURST}
        for uid, line in lines:
            if not self._print(uid, line, 2):  # the last one is for the count
                self._unreported[uid] += 1
        for uid, count in list(self._unreported.items()):
            if self._print(uid, f"{self._about}: {count} more lines about files of user {uid}", 1):
                del self._unreported[uid]

    def _print(self, uid: int, line: str, least: float) -> bool:
        left = self._left.get(uid, _BURST)
        if left < least:
            return False
        self._left[uid] = left - 1
        self._report(line)
        return True
