"""The jobs of this user on this node, read again and again.

Problem. Ranks come and go, forked processes also have a rank's page open, and a page does not name its job: MPICH gives
a job no name.

Algorithm. Of the processes that have a page open, the page belongs to the one whose start time is in the page. Ranks
are of one job when the same launcher has started them: the nearest process above a rank that is one, and the launchers
directly above that. Without a launcher a rank of several belongs to its parent, and one that is alone is a job. The
launcher's process ID is the job's name.

Guarantees. Reading sends nothing to a rank and writes nothing; a rank that is stuck or stopped is read as others are. A
rank that has ended stays, with its last numbers, as long as its job does; a job that has ended is shown so once. The
search for pages in the descriptors of all processes takes a tenth of the time at most; known pages are read every time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpiio_ext.common.segments import PROC, held
from mpiio_ext.launchers import is_launcher_process
from mpiio_ext.top.names import is_word_of, name_of
from mpiio_ext.top.pages import NAME, Counts, Page, PageError, read

#: Time for which an ended job is remembered after the reading that found its end.
REMEMBERED_S = 5.0
#: Descriptors are searched again after this multiple of the time of a search.
_PAUSE = 10.0
_MOST_ABOVE = 64


@dataclass(frozen=True, slots=True)
class Process:
    """Fields of ``/proc/PID/stat``: name, state (one letter), parent and start of a process."""

    name: str
    state: str
    parent: int
    start_ticks: int


def process(pid: int, proc: Path = PROC) -> Process | None:
    """Return the facts of a process; None: it has ended."""
    try:
        with open(f"{proc}/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return Process(name, fields[0], int(fields[1]), int(fields[19])) if len(fields) > 19 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How fast the numbers of a rank, a file or a job move; `interval_s` is 0 if no time has passed."""

    interval_s: float = 0.0
    read_bytes_per_s: float = 0.0
    written_bytes_per_s: float = 0.0
    reads_per_s: float = 0.0
    writes_per_s: float = 0.0

    def __add__(self, other: Rates) -> Rates:
        return Rates(
            interval_s=max(self.interval_s, other.interval_s),
            read_bytes_per_s=self.read_bytes_per_s + other.read_bytes_per_s,
            written_bytes_per_s=self.written_bytes_per_s + other.written_bytes_per_s,
            reads_per_s=self.reads_per_s + other.reads_per_s,
            writes_per_s=self.writes_per_s + other.writes_per_s,
        )

    @property
    def bytes_per_s(self) -> float:
        """Both directions."""
        return self.read_bytes_per_s + self.written_bytes_per_s


def rates(before: Counts, now: Counts, interval_s: float) -> Rates:
    """Return the rates of numbers; a number that has fallen has the rate 0."""
    if interval_s <= 0:
        return Rates()
    read_bytes, written_bytes, reads, writes = (
        max(0, getattr(now, name) - getattr(before, name)) / interval_s for name in Counts.__dataclass_fields__
    )
    return Rates(
        interval_s=interval_s,
        read_bytes_per_s=read_bytes,
        written_bytes_per_s=written_bytes,
        reads_per_s=reads,
        writes_per_s=writes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A rank as it is watched.

    Attributes
    ----------
    pid : its process, as this node numbers it.
    state : "running", "sleeping", "in the system" (it cannot be interrupted: the file system, as a rule), "stopped",
        "ended" (MPI_Finalize was done) or "gone" (it was not done when it was last seen).
    page : its present contents, or the last.
    rates : since the last look.
    file_rates : of its open files, in their order.
    ended_unix_s : when its process was first seen to be gone; None: it is there.
    """

    pid: int
    state: str
    page: Page
    rates: Rates
    file_rates: tuple[Rates, ...]
    ended_unix_s: float | None = None

    @property
    def lives(self) -> bool:
        """Whether its process is there."""
        return self.ended_unix_s is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The ranks of a job on this node, by number; `name` is the process ID of its launcher, or of its only process."""

    name: str
    ranks: tuple[Rank, ...]

    @property
    def first(self) -> Page:
        """The page of the lowest rank of this node."""
        return self.ranks[0].page

    @property
    def ended_unix_s(self) -> float | None:
        """When its last rank was found to have ended; None if the job continues."""
        return None if any(rank.lives for rank in self.ranks) else max(rank.ended_unix_s or 0.0 for rank in self.ranks)

    @property
    def rates(self) -> Rates:
        """Of all ranks."""
        return sum((rank.rates for rank in self.ranks), Rates())

    @property
    def total(self) -> Counts:
        """Of all ranks, since their start."""
        return sum((rank.page.total for rank in self.ranks), Counts())

    @property
    def called(self) -> str:
        """The name of the job for people: its script or program, and the arguments."""
        return name_of(self.first.command, self.first.program)

    def is_numbered(self, number: str) -> bool:
        """Whether a number means this job: of its launcher, a rank's process, or the scheduler."""
        return number in (self.name, self.first.scheduler_job) or any(number == str(rank.pid) for rank in self.ranks)

    def has_word(self, word: str) -> bool:
        """Whether a glob matches a word of its commands, or its program."""
        return is_word_of(word, {text for rank in self.ranks for text in (rank.page.command, rank.page.program)})


@dataclass(frozen=True, slots=True)
class _Seen:
    """A page at the last reading: its place, its job, its contents and the time of the reading.

    `ended` : when its process was first seen to be gone, monotonic and of the Unix epoch; None: it is there.
    """

    pid: int
    path: Path
    job: str
    page: Page
    at_s: float
    state: str = ""
    rates: Rates = Rates()
    file_rates: tuple[Rates, ...] = ()
    ended: tuple[float, float] | None = None

    @property
    def rank(self) -> Rank:
        """Its contents."""
        return Rank(
            pid=self.pid,
            state=self.state,
            page=self.page,
            rates=self.rates,
            file_rates=self.file_rates or (Rates(),) * len(self.page.files),
            ended_unix_s=None if self.ended is None else self.ended[1],
        )


_Identity = tuple[int, int]
_STATES = {"R": "running", "D": "in the system", "T": "stopped", "t": "stopped"}


class Watch:
    """Reads the jobs of this user on this node; rates are those between two readings."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._seen: dict[tuple[int, int], _Seen] = {}
        self._search_at_s = 0.0
        #: What could not be read: reason -> how many.
        self.unreadable: dict[str, int] = {}

    def look(self) -> tuple[Job, ...]:
        """Return all jobs, the newest one last."""
        began_s = time.monotonic()
        if began_s >= self._search_at_s:
            self._search()
            took_s = time.monotonic() - began_s
            self._search_at_s = began_s + _PAUSE * took_s
        jobs: dict[str, list[_Identity]] = {}
        for identity, seen in list(self._seen.items()):
            jobs.setdefault(seen.job, []).append(identity)
            self._look_again(identity, seen)
        kept = {name: self._without_the_forgotten(identities, began_s) for name, identities in jobs.items()}
        found = (
            Job(name=name.partition(" ")[0], ranks=tuple(sorted(ranks, key=lambda rank: rank.page.rank)))
            for name, ranks in kept.items()
            if ranks
        )
        return tuple(sorted(found, key=lambda job: (job.first.started_unix_s, job.name)))

    # ---- finding -----------------------------------------------------------------------------------------------------

    def _search(self) -> None:
        """Take up pages that are new."""
        self.unreadable = {}
        above: dict[int, Process | None] = {}
        for identity, paths in held(lambda target: target.startswith(NAME), self._proc).items():
            if identity in self._seen:
                continue
            try:
                page = read(paths[0], identity)
            except PageError as error:
                self.unreadable[str(error)] = self.unreadable.get(str(error), 0) + 1
                continue
            except OSError:
                continue
            owner = self._owner(page, paths)
            if owner is not None:
                job = f"{self._launcher(owner[0], above, alone=page.ranks == 1)} {page.world}"
                self._seen[identity] = _Seen(*owner, job, page, time.monotonic())

    def _owner(self, page: Page, paths: Iterable[Path]) -> tuple[int, Path] | None:
        """Return the process that is the rank; None if it has ended and a child of it has the page open."""
        for path in paths:
            pid = int(path.parent.parent.name)
            found = process(pid, self._proc)
            if found is not None and found.start_ticks == page.start_ticks and page.pid in (pid, self._inner(pid)):
                return pid, path
        return None

    def _inner(self, pid: int) -> int:
        """Return the number that a process has in its own namespace."""
        with contextlib.suppress(OSError, ValueError):
            for line in (self._proc / str(pid) / "status").read_text(errors="replace").splitlines():
                if line.startswith("NSpid:"):
                    return int(line.split()[-1])
        return pid

    def _launcher(self, pid: int, known: dict[int, Process | None], *, alone: bool) -> str:
        """Return the launcher's process, and its daemon that has started this rank."""

        def look(one: int) -> Process | None:
            if one not in known:
                known[one] = process(one, self._proc)
            return known[one]

        own = look(pid)
        parent = own.parent if own is not None else 0
        at = parent
        for _ in range(_MOST_ABOVE):
            found = look(at) if at > 1 else None
            if found is None:
                return str(pid if alone or parent <= 1 else parent)
            if is_launcher_process(found.name):
                break
            at = found.parent
        nearest = at
        while (found := look(at)) is not None and (upper := look(found.parent)) and is_launcher_process(upper.name):
            at = found.parent
        return f"{at} {nearest}"

    # ---- reading again -----------------------------------------------------------------------------------------------

    def _look_again(self, identity: _Identity, seen: _Seen) -> None:
        """Look at a rank as it is now."""
        if seen.ended is not None:
            return
        found = process(seen.pid, self._proc)
        page = None
        if found is not None and found.start_ticks == seen.page.start_ticks and found.state not in "ZX":
            with contextlib.suppress(OSError, PageError):
                page = read(seen.path, identity)
        now_s = time.monotonic()
        if found is None or page is None:
            self._seen[identity] = replace(
                seen,
                state="ended" if seen.page.finalized else "gone",
                rates=Rates(),
                file_rates=(),
                ended=(now_s, time.time()),
            )
            return
        interval_s = now_s - seen.at_s if seen.state else 0.0  # the first reading shows no rate
        seen = replace(seen, state=_STATES.get(found.state, "sleeping"))
        if interval_s > 0.001:
            seen = replace(
                seen,
                page=page,
                at_s=now_s,
                rates=rates(seen.page.total, page.total, interval_s),
                file_rates=_file_rates(seen.page, page, interval_s),
            )
        self._seen[identity] = seen

    def _without_the_forgotten(self, identities: Sequence[_Identity], now_s: float) -> list[Rank]:
        """Return the ranks of a job; forget ranks whose place others have taken, and a job that ended long ago."""
        newest: dict[int, int] = {}
        for page in (self._seen[identity].page for identity in identities):
            newest[page.rank] = max(page.start_ticks, newest.get(page.rank, 0))
        ends = [self._seen[identity].ended for identity in identities]
        over_s = None if None in ends else max(end[0] for end in ends if end is not None)
        is_over = over_s is not None and now_s - over_s > REMEMBERED_S
        ranks = []
        for identity in identities:
            seen = self._seen[identity]
            if seen.ended is not None and (is_over or seen.page.start_ticks < newest[seen.page.rank]):
                del self._seen[identity]
            else:
                ranks.append(seen.rank)
        return ranks


def _file_rates(before: Page, now: Page, interval_s: float) -> tuple[Rates, ...]:
    """Return the rate of each open file; a file opened since the last reading counts from 0."""
    known = {(file.path, file.opened_unix_s): file.counts for file in before.files}
    return tuple(
        rates(known.get((file.path, file.opened_unix_s), Counts()), file.counts, interval_s) for file in now.files
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A file that ranks of a job have open: its path, how many of them, their bytes and calls, their rates."""

    path: str
    ranks: int
    total: Counts
    rates: Rates


def files_of(ranks: Sequence[Rank]) -> tuple[SharedFile, ...]:
    """Return the open files of a job, the busiest one first."""
    parts: dict[str, list[tuple[int, Counts, Rates]]] = {}
    for rank in ranks:
        for file, moved in zip(rank.page.files, rank.file_rates, strict=True):
            parts.setdefault(file.path, []).append((rank.page.rank, file.counts, moved))
    found = [
        SharedFile(
            path=path,
            ranks=len({number for number, _, _ in each}),
            total=sum((counts for _, counts, _ in each), Counts()),
            rates=sum((moved for _, _, moved in each), Rates()),
        )
        for path, each in parts.items()
    ]
    return tuple(sorted(found, key=lambda file: (-file.rates.bytes_per_s, -_bytes(file.total), file.path)))


def _bytes(counts: Counts) -> int:
    return counts.read_bytes + counts.written_bytes
