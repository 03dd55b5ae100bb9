"""Runs that store files as several (``mpiox_subfiles``), and the merge that makes one file of each again.

Problem.   A program that writes subfiles has not written the file that others read. A setting that is fast for the
           program alone can be slow for its user, who merges; and what such a run leaves is in the way of the next one.
Algorithm. After each run that was to store files as several, its files are merged for real, as `mpiio-ext subfiles
           merge -o` does it, and the plain file takes the place of the index. The time of the merge is part of what the
           run costs, unless the user does not merge. What a failed run has left is removed. The hint counts for files
           that a run makes: where none was stored as several the run says nothing about it.
Guarantee. Files that are stored as several before the first run are refused: none of them is touched.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mpiio_ext.common.files import replacing
from mpiio_ext.errors import MpiioExtError
from mpiio_ext.tune.errors import TuneError
from mpiio_ext.tune.setting import BASELINE, Setting
from mpiio_ext.tune.trial import Outcome, Runner

if TYPE_CHECKING:
    from mpiio_ext.tune.outcome import Record, Result

HINT = "mpiox_subfiles"
_NONE = ("0", "per_node=0")


def asks(setting: Setting) -> bool:
    """Return whether files that are made under a setting are stored as several."""
    return setting.as_dict().get(HINT, "0") not in _NONE


def servers_of(folder: Path) -> tuple[int, str]:
    """Return on how many servers whole files of a folder lie, each on one, and the file system; 0: not so."""
    from mpiio_ext import layout

    try:
        found = layout.inspect(folder)
    except MpiioExtError:
        return 0, ""
    targets = found.value("targets")
    return (targets if isinstance(targets, int) and targets > 1 else 0), str(found.value("file_system") or "")


def plain(path: Path) -> tuple[float, str]:
    """Make one file of a file that is stored as several; return the seconds of its merge, and how bytes were copied.

    Raises
    ------
    MpiioExtError, OSError
        It cannot be merged; index and subfiles are as they were.
    """
    from mpiio_ext.subfiles.merge import merge
    from mpiio_ext.subfiles.remove import remove_subfiles

    def still(_: int) -> None:
        """Show nothing: the bar is that of all runs."""

    begin_s = time.monotonic()
    with replacing(path, durable=False) as part:
        done = merge(path, part, advance=lambda _: still)
        took_s = time.monotonic() - begin_s
    remove_subfiles(done.stored)
    return took_s, done.method


class MergingRunner:
    """Runs settings, and leaves plain files.

    Parameters
    ----------
    runner : runs a setting.
    fresh : a folder of the tuner's own, in which files of a run before are removed before each run; None: the user's
        program or ``--before`` has to do it.
    """

    def __init__(self, runner: Runner, fresh: Path | None = None) -> None:
        self._runner, self._fresh = runner, fresh
        self._paths: set[Path] = set()

    def __call__(self, setting: Setting, number: int, limit_s: float, *, keep: bool = False) -> Outcome:
        """Run once; see `mpiio_ext.tune.trial.Runner`.

        Raises
        ------
        TuneError
            A file was stored as several before, or what a run has left cannot be removed.
        """
        for path in self._paths:
            if self._fresh is not None and path.is_relative_to(self._fresh):
                path.unlink(missing_ok=True)
        outcome = self._runner(setting, number, limit_s, keep=keep)
        self._paths |= {_of_name(use.path) for use in outcome.files}
        found = sorted(_indexes(self._paths))
        if not asks(setting):
            if found:
                raise TuneError(
                    f"{found[0]}: is stored as several already: merge it with `mpiio-ext subfiles merge "
                    "--in-place`, or remove it with `mpiio-ext subfiles rm`"
                )
            return outcome
        if outcome.status != "ok":
            self._remove(found)
            return outcome
        if not found:
            words = f"{HINT} had no effect: it counts for files that a run makes: let --before delete them"
            return dataclasses.replace(outcome, status="unused", reason=words)
        try:
            merged = [plain(path) for path in found]
        except (MpiioExtError, OSError) as error:
            self._remove(sorted(_indexes(self._paths)))
            return dataclasses.replace(outcome, status="failed", exit_status=1, reason=f"the merge: {error}")
        methods = ", ".join(dict.fromkeys(method for _, method in merged))
        return dataclasses.replace(outcome, merge_s=sum(took_s for took_s, _ in merged), merged_by=methods)

    def _remove(self, paths: Iterable[Path]) -> None:
        from mpiio_ext.subfiles.remove import remove

        for path in paths:
            try:
                remove(path)
            except (MpiioExtError, OSError) as error:
                raise TuneError(f"what a run has left cannot be removed: {error}") from error


def _of_name(name: str) -> Path:
    """Return the path of a file by the name that a program has opened it with, such as ``ufs:/scratch/f``."""
    kind, colon, rest = name.partition(":")
    return Path(rest if colon and "/" not in kind and not Path(name).exists() else name)


def _indexes(paths: Iterable[Path]) -> list[Path]:
    from mpiio_ext.subfiles.index import is_index

    found = []
    for path in paths:
        with contextlib.suppress(OSError, MpiioExtError):
            found += [path] if is_index(path) else []
    return found


def _middle(records: Iterable[Record], value: Callable[[Record], float | None]) -> float:
    return statistics.median(found for found in map(value, records) if found is not None)


def merge_lines(result: Result, shown: Callable[[float], str], *, counted: bool) -> list[str]:
    """Return lines on the time of the best setting that stores files as several, and of its merge; none without one.

    Parameters
    ----------
    shown : a cost in words.
    counted : whether the merge is part of the cost.
    """
    runs: dict[Setting, list[Record]] = {}
    for record in result.records:
        if record.cost is not None and asks(record.setting):
            runs.setdefault(record.setting, []).append(record)
    if not runs:
        return []
    kept = result.candidate if result.candidate in runs else min(runs, key=lambda one: _middle(runs[one], _cost))
    assert kept is not None
    some = [record for record in runs[kept] if record.phase == "confirm"] or runs[kept]
    merge_s = _middle(some, lambda record: record.merge_s)
    alone = _middle(some, lambda record: (record.cost or 0.0) - (record.merge_s if counted else 0.0))
    value, how = kept.as_dict()[HINT], f"merge {merge_s:.3f} s ({some[-1].merged_by})"
    if not counted:
        return [f"stored as several ({HINT}={value}): {shown(alone)}; {how}, which does not count (--unmerged)"]
    both = f"together {shown(alone + merge_s)}"
    base = [record for record in result.records if record.setting == BASELINE and record.cost is not None]
    against = f"; the program as it is {shown(_middle(base, _cost))}" if base else ""
    return [f"stored as several ({HINT}={value}): {shown(alone)}, {how}, {both}{against} (medians)"]


def _cost(record: Record) -> float | None:
    return record.cost
