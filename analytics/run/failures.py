"""Calls that failed, in words: their number by function, their errors, and their files.

Problem. A run whose writes failed leaves nothing to tune, and its data do not exist. Programs also make calls that are
meant to fail: they search for files, or create what may be there.

Algorithm. The tallies of a run have its calls by outcome (:mod:`mpiio_ext.pioneer.darshan.tallies`). A call that
failed counts if it moves or syncs data, sets a size, or belongs to MPI-IO, and if its error shows no probe; any other
call counts if its error is one of the storage. A call on a file inside of a call of MPI-IO shows by the outcome of
that; it counts by itself if no call of MPI-IO on its file has failed, since MPI libraries lose such errors.

Guarantees. Numbers are of all ranks, and exact, as far as the recordings are whole.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpiio_ext.analytics.diagnosis.words import short_name
from mpiio_ext.common.iocalls import CALLS
from mpiio_ext.common.units import count_text
from mpiio_ext.pioneer.darshan.tallies import Tallies

#: Errors of calls that look for something, or try whether something works.
_PROBES = frozenset("ENOENT EEXIST EINTR EAGAIN EOPNOTSUPP ENOSYS ENOTTY EISDIR".split())
_PROBES_OF_MPI = frozenset(("MPI_ERR_NO_SUCH_FILE", "MPI_ERR_FILE_EXISTS"))
#: Of calls for which file systems, or pairs of them, have no way: the caller goes another one.
_NO_WAY = frozenset(("EINVAL", "EXDEV"))
_OTHER_WAYS = frozenset("fallocate fsync fdatasync sync_file_range sendfile copy_file_range".split())
#: Errors of the storage, whatever the call.
_OF_STORAGE = frozenset("ENOSPC EDQUOT EIO ESTALE EROFS EFBIG ETIMEDOUT EMFILE ENFILE".split())
_ROLES = frozenset(("read", "write", "sync", "resize"))
#: Error classes of MPI whose names leave a question.
_MEANT = {
    "MPI_ERR_NO_SPACE": "no space is left on the device",
    "MPI_ERR_QUOTA": "the quota is used up",
    "MPI_ERR_ACCESS": "permission is denied",
    "MPI_ERR_READ_ONLY": "the file or its file system is read-only",
}
#: Functions and files that the first sentence names.
_MOST = 3


Done = Mapping[str, Mapping[str, int]]


def _matters(layer: str, function: str, error: str, *, inside: bool) -> bool:
    """Return whether the failure of a call is no ordinary one."""
    if not error:
        return False
    if layer in ("mpiio", "mpi"):
        return not inside and error not in _PROBES_OF_MPI
    role = next((call.role for call in CALLS if call.name == function), "")
    if error in _PROBES or (error in _NO_WAY and function in _OTHER_WAYS):
        return False
    return error in _OF_STORAGE or (not inside and (role in _ROLES or function == "truncate"))


def failed(tallies: Tallies) -> Tallies:
    """Return the rows of calls that failed and should not have."""
    columns = zip(tallies.layer, tallies.function, tallies.error, tallies.inside, strict=True)
    chosen = [_matters(layer, function, error, inside=inside) for layer, function, error, inside in columns]
    some = tallies.where(np.array(chosen, bool))
    reported = {*some.file[np.isin(some.layer, ("mpiio", "mpi"))]}
    hidden = [inside and name in reported for inside, name in zip(some.inside, some.file, strict=True)]
    return some.where(~np.array(hidden, bool))


def _why(error: str, below: Sequence[str]) -> str:
    """Return an error with what it means; `below`: errors of requests that MPI's class may hide."""
    number = getattr(errno, error, 0)
    text = os.strerror(number).lower() if number else _MEANT.get(error, "")
    if not text and below:
        text = f"requests to the file system failed with {' and '.join(below)}"
    return f"{error} ({text})" if text else error


def _below(tallies: Tallies, mine: Tallies) -> list[str]:
    """Return the errors of the storage that calls of MPI-IO on some files had inside of them."""
    chosen = tallies.inside & np.isin(tallies.file, list({*mine.file})) & np.isin(tallies.layer, ("posix", "stdio"))
    return [error for error in dict.fromkeys(tallies.error[chosen]) if error in _OF_STORAGE]


def _files(some: Tallies, among: Collection[str]) -> str:
    """Return on which files calls were made."""
    counts: dict[str, int] = {}
    for name, calls in zip(some.file, some.calls, strict=True):
        counts[name] = counts.get(name, 0) + int(calls)
    names = sorted((name for name in counts if name), key=lambda name: -counts[name])
    if not names:
        return ""
    more = " and further files" if "" in counts else ""
    if len(names) > _MOST:
        more = f" and {'at least ' * bool(more)}{count_text(len(names) - _MOST, 'more file')}"
    return f" on {', '.join(f'`{short_name(name, among)}`' for name in names[:_MOST])}{more}"


def _of(tallies: Tallies, mine: Tallies, done: Done) -> str:
    """Return of how many calls some have failed: of the function, or, where records count them, accesses of files."""
    kind, function = str(mine.kind[0]), str(mine.function[0])
    if mine.layer[0] not in ("posix", "stdio") or kind not in ("read", "write"):
        every = tallies.where(tallies.function == function)
        return count_text(int(every.calls.sum()), f"{function} call")
    names = set(done) if "" in mine.file else {*mine.file}
    beside = tallies.where((tallies.kind == kind) & (tallies.error != "") & np.isin(tallies.layer, ("posix", "stdio")))
    asked = sum(int(calls) for name, calls in zip(beside.file, beside.calls, strict=True) if name in {*names, ""})
    asked += sum(done.get(name, {}).get(kind, 0) for name in names)
    return f"{count_text(asked, kind)} ({function})"


def _listed(calls: Sequence[tuple[int, str]]) -> str:
    """Return texts as a list, those of most calls first."""
    *texts, last = (text for _, text in sorted(calls, key=lambda one: -one[0]))
    return f"{', '.join(texts)} and {last}" if texts else last


def lines(tallies: Tallies, done: Done) -> list[str]:
    """Return a line for each error and its files, most failures first.

    Parameters
    ----------
    tallies : of a run.
    done : name of a file -> "read" and "write" -> how many such calls of POSIX and stdio have succeeded.
    """
    some = failed(tallies)
    found: dict[tuple[str, str, bool], list[tuple[int, str]]] = {}
    for function, error in dict.fromkeys(zip(some.function, some.error, strict=True)):
        mine = some.where((some.function == function) & (some.error == error))
        calls = int(mine.calls.sum())
        key = (
            _files(mine, {name for name in tallies.file if name}),
            _why(error, _below(tallies, mine)),
            bool(mine.inside.any()),
        )
        found.setdefault(key, []).append((calls, f"{calls:,} of {_of(tallies, mine, done)}"))
    order = sorted(found.items(), key=lambda item: -sum(calls for calls, _ in item[1]))
    return [
        f"{_listed(calls)}{on} failed with {why}{', which no MPI-IO call returned' if inside else ''}"
        for (on, why, inside), calls in order
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The MPI-IO accesses of a file that failed.

    Attributes
    ----------
    calls : "collective" or "independent", and "read" or "write" -> calls.
    more : some failed after their start, as the call that waits for them returned.
    """

    calls: Mapping[tuple[str, str], int] = field(default_factory=dict)
    more: bool = False


def of_file(tallies: Tallies, name: str) -> Lost:
    """Return the MPI-IO accesses of a file that failed."""
    found: dict[tuple[str, str], int] = {}
    some = failed(tallies)
    some = some.where((some.file == name) & np.isin(some.layer, ("mpiio", "mpi")))
    words = {call.name: call.words for call in CALLS}
    for function, calls in zip(some.function, some.calls, strict=True):
        mine = words.get(function, ())
        if way := next((way for way in ("read", "write") if way in mine), ""):
            key = ("collective" if "collective" in mine else "independent", way)
            found[key] = found.get(key, 0) + int(calls)
    return Lost(calls=found, more=any(layer == "mpi" for layer in some.layer))


def rows(tallies: Tallies) -> list[dict[str, Any]]:
    """Return the failed calls as rows: function, error, file, calls of all ranks."""
    some = failed(tallies)
    found: dict[tuple[str, str, str], int] = {}
    for key, calls in zip(zip(some.function, some.error, some.file, strict=True), some.calls, strict=True):
        found[key] = found.get(key, 0) + int(calls)
    return [dict(zip(("function", "error", "file"), key, strict=True)) | {"calls": n} for key, n in found.items()]
