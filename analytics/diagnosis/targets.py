"""How many OSTs there are, by the files.

Problem. Advice to stripe a file over 1,024 OSTs where there are 248 is no help, and where it lies on all of them, none.

Algorithm. Files name the OSTs that they lie on, by index from 0. A few may be all that there are, or all that were
requested. So a number is concluded only from many OSTs with hardly a gap between the first index and the highest.
"""

from __future__ import annotations

from collections.abc import Iterable

#: OSTs from which on, and share of the indexes up to the highest that must have been met.
_LEAST, _MET = 16, 0.9


def count_of_osts(met: Iterable[int]) -> int | None:
    """Return how many OSTs there are, by the indexes that were met; None if these do not show it."""
    indexes = set(met)
    count = max(indexes, default=-1) + 1
    return count if len(indexes) >= _LEAST and len(indexes) >= _MET * count else None
