"""What is wrong with a file that is stored as several, in words: few lines, however many subfiles it has."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiio_ext.subfiles.stored import Stored

#: Names in one line.
_FEW = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong.

    Attributes
    ----------
    kind : "missing", "unreadable", "short", "too long", "foreign" or "writing".
    path : of the subfile, or of the index.
    words : what is wrong with it.
    """

    kind: str
    path: Path
    words: str

    def __str__(self) -> str:
        return f"{self.path}: {self.words}"


def in_lines(stored: Stored, wrong: Sequence[Finding]) -> list[str]:
    """Return what is wrong, a line for each; many missing subfiles, and a folder that is not there, are one line."""
    missing = [one for one in wrong if one.kind == "missing"]
    if (words := missing_folder(stored)) is not None and missing:
        told = [words]
    elif len(missing) > _FEW:
        folder = stored.subfiles[0].parent
        told = [f"{stored.path}: {len(missing):,} of {len(stored.subfiles):,} subfiles are missing in {folder}: "
                f"{named([one.path.name for one in missing])}"]  # fmt: skip
    else:
        return list(map(str, wrong))
    return [*(str(one) for one in wrong if one.kind == "writing"), *told,
            *(str(one) for one in wrong if one.kind not in ("missing", "writing"))]  # fmt: skip


def named(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = [f"and {len(names) - _FEW:,} more"] if len(names) > _FEW else []
    return ", ".join([*names[:_FEW], *more])


def missing_folder(stored: Stored) -> str | None:
    """Return what to do about a folder of subfiles that is not there; None: it is."""
    folder = stored.subfiles[0].parent
    if stored.layout != "own" or os.path.lexists(folder):
        return None
    return (f"{stored.path}: the folder {folder} that this index speaks of is not there: was one of the two moved or "
            "renamed? Put it back: the folder beside the index, called after it (`mpiio-ext subfiles mv` moves both)")
