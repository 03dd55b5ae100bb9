"""Repetition of operations on files that are removed or renamed: as a whole, from their creation to their end.

Problem.   `--multiply opens=2` repeats the units of a file. Where a program writes `checkpoint.tmp` and renames it to
           `checkpoint`, the units in turn would be one writing and three renamings, two of them of no file.
Algorithm. A track is cut where its first file is used again after its name is gone: each part is a life. Parts are
           repeated whole, and so is what is done to the files that the first one is renamed to. Tracks in which no
           name ends have a part for each unit.
Guarantee. Where the calls of the track succeed, those of its repetitions do: before anything is made, the repetitions
           are gone through, and refused where they need a file that was there before the program and is there no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mpiio_ext.pioneer.access import creates, parsed
from mpiio_ext.pioneer.operations import NEEDING, REMOVING, SECOND_NAMES, Role, operation_of
from mpiio_ext.pioneer.synthesis.model import Archetype, Kind, Model, Step

#: Opens of objects that cannot be missing, or are open already.
_OTHER_OPENS = frozenset({"opendir", "fdopen", "tmpfile"})


def _of_names(kind: Kind) -> bool:
    """Return whether it is a call that needs, makes or ends a name, and succeeded."""
    if not kind.named or '"errno":' in (kind.extra or ""):
        return False
    return kind.operation in REMOVING | NEEDING or operation_of(kind.layer, kind.operation).role is Role.OPEN


def _needs(kind: Kind) -> bool:
    """Return whether it fails where its file is not there."""
    if kind.operation in NEEDING:
        return True
    recorded = any(name in parsed(kind.extra) for name in ("flags", "mode", "amode"))
    return (
        recorded
        and kind.operation not in _OTHER_OPENS
        and not creates(operation_of(kind.layer, kind.operation), kind.extra)
    )


class Lives:
    """The lives of files in the tracks of a model.

    Parameters
    ----------
    model : what is repeated.
    """

    def __init__(self, model: Model) -> None:
        named = np.array([_of_names(kind) for kind in model.kinds], bool)
        self._calls = [
            [model.kinds[number] for number in shape.kinds[named[shape.kinds]].tolist()] for shape in model.shapes
        ]
        self._removes = [any(kind.operation in REMOVING for kind in calls) for calls in self._calls]
        self._ends = [bool(calls) and calls[-1].operation in REMOVING for calls in self._calls]

    def of(self, archetype: Archetype) -> list[tuple[Step, ...]]:
        """Return the parts of a track that can be repeated: units, or where names end whole lives."""
        track = archetype.track
        if not any(self._ends[step.shape] for step in track):
            return [(step,) for step in track]
        parts: list[list[Step]] = [[]]
        gone = False
        for step in track:
            if step.member == track[0].member:
                if gone:
                    parts.append([])
                gone = self._ends[step.shape]
            parts[-1].append(step)
        return [tuple(part) for part in parts]

    def check(self, archetype: Archetype, lives: Sequence[Sequence[Step]]) -> None:
        """Refuse repetitions that need a name which an earlier repetition has removed.

        Raises
        ------
        ValueError
            A unit needs a file that is there no more, where the track itself has none such.
        """
        if not any(self._removes[step.shape] for step in archetype.track):
            return
        if self._missing(archetype, archetype.track) is not None:
            return
        missing = self._missing(archetype, (step for life in lives for step in life))
        if missing is not None:
            raise ValueError(
                f"scale of opens: {missing} was there before the program, which removes or renames it, "
                "so it cannot be opened again; a scale of files makes more such files"
            )

    def _missing(self, archetype: Archetype, steps: Iterable[Step]) -> str | None:
        """Return the first name that is needed and missing, None if there is none."""
        names = [str(archetype.names[0]), *(str(names[0]) for _, names in archetype.linked)]
        there: dict[str, bool] = {}
        for step in steps:
            name = names[step.member]
            for kind in self._calls[step.shape]:
                if _needs(kind) and not there.setdefault(name, True):
                    return name
                there[name] = kind.operation not in REMOVING
                second: Any = parsed(kind.extra).get("file2")
                if kind.operation in SECOND_NAMES and isinstance(second, str):
                    there[second] = True
        return None
