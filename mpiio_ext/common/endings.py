"""The failure of a run: the rank that failed first, the kind of the failure, its time, and the acts of the others.

Problem. The process that has watched the ranks makes a page. If that process was killed, too, a later process makes the
page from the recordings. The two pages must agree.

Algorithm. The watching process writes what it has observed beside the recordings. Without that the recordings show it:
a rank writes its exit status, and that it calls MPI_Abort, into its own.

Guarantees. No guess is reported: if several ranks were ended from outside, and nothing shows which rank was the first,
all of them are named as such. This module imports only the standard library.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mpiio_ext.common.recordings import State, lives, states

_NOTED = "failure.json"
#: Signals by which a launcher ends ranks, or a user or a batch system the job.
OF_LAUNCHERS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
_OF_JOBS = (signal.SIGTERM, signal.SIGINT)
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A rank that has failed.

    Attributes
    ----------
    rank, host : which.
    status : its exit status; None: it has none, or that is not known.
    number : of the signal that has ended it; 0: one that is not known; None: none has.
    abort_code : it has called MPI_Abort with this one; None: it has not.
    moment_ns : when that was, or was seen (ns since 1970); None: unknown.
    """

    rank: int
    host: str
    status: int | None = None
    number: int | None = None
    abort_code: int | None = None
    moment_ns: int | None = None

    @property
    def by_itself(self) -> bool:
        """Whether it is not known to have been ended as launchers end ranks."""
        return self.abort_code is not None or self.number is None or self.number not in (0, *OF_LAUNCHERS)

    def text(self) -> str:
        """Return how the rank ended."""
        if self.abort_code is not None:
            how = f"called MPI_Abort with error code {self.abort_code}"
        elif self.number is not None:
            how = f"was ended by {signal_text(self.number)}"
        else:
            how = f"ended with status {self.status}" if self.status else "ended without MPI_Finalize"
        return f"rank {self.rank} on {self.host} {how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How a run has failed.

    Attributes
    ----------
    first : the rank that failed first; several: one of these did; none: it is not known of any that it failed.
    others : further ranks that failed.
    whole : what became of the program that was started, or of its launcher; "" if that says nothing more.
    moment_ns : when the first rank failed, or the program had ended (ns since 1970); None: unknown.
    ends : by host and process, when they were seen to end (ns since 1970).
    """

    first: Sequence[Ending] = ()
    others: Sequence[Ending] = ()
    whole: str = ""
    moment_ns: int | None = None
    ends: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.first or self.whole)

    def reason(self) -> str:
        """Return why the job failed, as the end of a sentence; "" if it has not failed."""
        if len(self.first) > 1:
            return f"one of these ranks was ended by a signal, which one first is not known: {_places(self.first)}"
        if not self.first:
            return self.whole
        first = self.first[0]
        if first.number not in _OF_JOBS or not self.others or any(one.number != first.number for one in self.others):
            return first.text()
        return (
            f"{signal_text(first.number)} ended its ranks, rank {first.rank} on {first.host} first; a launcher sends"
            " this signal when a rank fails, at a time limit, or at Ctrl-C"
        )

    def further(self) -> list[str]:
        """Return further facts beside the reason."""
        more = sorted(ending.rank for ending in self.others if ending.by_itself)
        others = [f"further ranks that failed: {_numbers(more)}"] if more else []
        return [*others, *([self.whole] if self.whole and self.first else [])]

    def text(self) -> str:
        """Return the whole failure in one line; "" if there is none."""
        return "; ".join(filter(None, (self.reason(), *self.further())))


def signal_text(number: int) -> str:
    """Return a signal in words; 0: one that is not known."""
    try:
        return f"signal {signal.Signals(number).name}" if number else "a signal"
    except ValueError:  # of real time
        return f"signal {number}"


def _numbers(ranks: Sequence[int]) -> str:
    hidden = f" and {len(ranks) - _MOST_NAMED:,} more" if len(ranks) > _MOST_NAMED else ""
    return f"{', '.join(map(str, ranks[:_MOST_NAMED]))}{hidden}"


def _places(endings: Sequence[Ending]) -> str:
    hosts: dict[str, list[int]] = {}
    for ending in sorted(endings, key=lambda each: each.rank):
        hosts.setdefault(ending.host, []).append(ending.rank)
    return "; ".join(f"{_numbers(ranks)} on {host}" for host, ranks in hosts.items())


def ending_of(state: State, code: int | None = None, seen_ns: int | None = None) -> Ending | None:
    """Return the failure of a rank; None if the rank has not failed.

    Parameters
    ----------
    state : of it, which has ended.
    code : how the process has ended, as of wait(); None: not known.
    seen_ns : when it was seen to have ended (ns since 1970); None: nobody has.
    """
    found = Ending(rank=state.rank, host=state.host, abort_code=state.abort_code, moment_ns=state.failed_ns or seen_ns)
    if code is None and state.exit_status is not None:
        code = state.exit_status << 8
    if state.abort_code is not None:
        return found
    if code is None:
        return dataclasses.replace(found, number=0) if state.running else None if state.finalized else found
    if code & 0x7F:
        return dataclasses.replace(found, number=code & 0x7F)
    return None if code >> 8 == 0 and state.finalized else dataclasses.replace(found, status=code >> 8)


def judged(seen: Sequence[Ending], unseen: Sequence[Ending], launcher: int = 0) -> tuple[list[Ending], list[Ending]]:
    """Return the rank that has failed first, or the ranks of which one has, and the other ranks.

    Parameters
    ----------
    seen : those of this host, in the order in which they failed.
    unseen : those of which nobody has seen when they ended: of other hosts.
    launcher : exit status of what has started the ranks, which may name a signal; 0: not known.
    """
    alone = sorted((each for each in unseen if each.by_itself), key=lambda each: each.moment_ns or 0)
    rest = [each for each in unseen if not each.by_itself]
    first = list(seen[:1])
    if alone and (not first or (not first[0].by_itself and (alone[0].moment_ns or 0) <= (first[0].moment_ns or 0))):
        first = alone[:1]
    elif rest and not (first and first[0].by_itself):
        first += rest
    number = launcher - 128
    fits = [
        dataclasses.replace(each, number=number if each.number == 0 else each.number)
        for each in first
        if number > 0 and (each.by_itself or each.number in (0, number))
    ]
    first = fits or first
    chosen = {(each.rank, each.host) for each in first}
    return first, [each for each in (*seen, *unseen) if (each.rank, each.host) not in chosen]


def note_failure(folder: Path, failure: Failure) -> None:
    """Write beside the recordings how a run has failed; write nothing if the disk is full."""
    with suppress(OSError):
        (folder / _NOTED).write_text(json.dumps(dataclasses.asdict(failure)), encoding="utf-8")


def failure_of(folder: Path) -> Failure:
    """Return the failure of a run, as the watching process or else the recordings show it; falsy if it did not fail."""
    with suppress(OSError, ValueError, TypeError):
        noted = json.loads((folder / _NOTED).read_text(encoding="utf-8"))
        for name in ("first", "others"):
            noted[name] = [Ending(**each) for each in noted[name]]
        return Failure(**noted)
    ranks = [state for state in states(folder) if state.rank >= 0]
    here = os.uname().nodename
    if any(state.running and state.host == here and lives(state.pid) for state in ranks):
        return Failure()  # it goes on
    endings = (ending_of(state) for state in ranks if state.running or state.failed_ns is not None)
    first, others = judged([], list(filter(None, endings)))
    return Failure(first=first, others=others, moment_ns=first[0].moment_ns if len(first) == 1 else None)
