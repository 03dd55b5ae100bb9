"""The jobs of this user on this node, looked at again and again.

Problem. Ranks come and go, processes are forked that hold a rank's page open, and a page does not say which job it is
of: MPICH gives a job no name.

Algorithm. A page belongs to the process that was started when it says, among those that hold it open. Ranks are of one
job when the same launcher has started them: the nearest process above a rank that is one, and the launchers directly
above that. Without a launcher a rank of several belongs to its parent, and one that is alone is a job. The launcher's
process ID is the job's name.

Guarantees. Looking asks nothing of a rank and writes nothing; a rank that is stuck or stopped is seen as others are.
Descriptors of all processes are gone through for a tenth of the time at most; pages found are read at every look.
"""

from __future__ import annotations

import contextlib
import fnmatch
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpiio_ext.common.segments import PROC, held
from mpiio_ext.launchers import is_launcher_process
from mpiio_ext.top.pages import NAME, Counts, Page, PageError, read

#: So long a rank that has ended is remembered.
REMEMBERED_S = 5.0
#: Descriptors are gone through again after so many times what that took.
_PAUSE = 10.0
_MOST_ABOVE = 64


@dataclass(frozen=True, slots=True)
class Process:
    """What ``/proc/PID/stat`` says of a process: its name, state (one letter), parent and start."""

    name: str
    state: str
    parent: int
    start_ticks: int


def process(pid: int, proc: Path = PROC) -> Process | None:
    """Return what is known of a process; None: it is gone."""
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
    """How fast the numbers of a rank, a file or a job move; `interval_s` is 0 where there was no time to tell."""

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
    """Return how fast numbers moved; a number that has fallen has not moved."""
    if interval_s <= 0:
        return Rates()
    read_bytes, written_bytes, reads, writes = (
        max(0, getattr(now, name) - getattr(before, name)) / interval_s for name in Counts.__dataclass_fields__
    )
    return Rates(interval_s=interval_s, read_bytes_per_s=read_bytes, written_bytes_per_s=written_bytes,
                 reads_per_s=reads, writes_per_s=writes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A rank as it is watched.

    Attributes
    ----------
    pid : its process, as this node numbers it.
    state : "running", "sleeping", "in the system" (it cannot be interrupted: the file system, as a rule), "stopped",
        "ended" (MPI_Finalize was done) or "gone" (it was not done when it was last seen).
    page : what it says, or said last.
    rates : since the last look.
    file_rates : of its open files, in their order.
    """

    pid: int
    state: str
    page: Page
    rates: Rates
    file_rates: tuple[Rates, ...]

    @property
    def lives(self) -> bool:
        """Whether its process is there."""
        return self.state not in ("ended", "gone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The ranks of a job on this node, by number; `name` is the process ID of its launcher, or of its only process."""

    name: str
    ranks: tuple[Rank, ...]

    @property
    def first(self) -> Page:
        """What the lowest rank of this node says."""
        return self.ranks[0].page

    @property
    def rates(self) -> Rates:
        """Of all ranks."""
        return sum((rank.rates for rank in self.ranks), Rates())

    @property
    def total(self) -> Counts:
        """Of all ranks, since their start."""
        return sum((rank.page.total for rank in self.ranks), Counts())

    def is_called(self, name: str) -> bool:
        """Whether somebody means this job: by its launcher, a rank's process, the scheduler's job, or the program."""
        page = self.first
        return (name in (self.name, page.scheduler_job) or fnmatch.fnmatchcase(page.program, name)
                or any(name == str(rank.pid) for rank in self.ranks))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A page at the last look: where it was found, of which job, what it said and when."""

    pid: int
    path: Path
    job: str
    page: Page
    at_s: float
    rates: Rates = Rates()
    file_rates: tuple[Rates, ...] = ()


_STATES = {"R": "running", "D": "in the system", "T": "stopped", "t": "stopped"}


class Watch:
    """Looks at the jobs of this user on this node; rates are those between two looks."""

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
        jobs: dict[str, list[Rank]] = {}
        for identity, seen in list(self._seen.items()):
            rank = self._look_again(identity, seen)
            if rank is not None:
                jobs.setdefault(seen.job, []).append(rank)
        found = (Job(name=name.partition(" ")[0], ranks=tuple(sorted(ranks, key=lambda rank: rank.page.rank)))
                 for name, ranks in jobs.items())  # fmt: skip
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
        """Return which of the holders is the rank; None: it is gone, and a child of it holds the page."""
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
        """Return the launcher's process, and the daemon of it that has started this rank."""
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

    # ---- looking again -----------------------------------------------------------------------------------------------

    def _look_again(self, identity: tuple[int, int], seen: _Seen) -> Rank | None:
        """Return a rank as it is now; None: it has ended, and is forgotten."""
        found = process(seen.pid, self._proc)
        page = None
        if found is not None and found.start_ticks == seen.page.start_ticks and found.state not in "ZX":
            with contextlib.suppress(OSError, PageError):
                page = read(seen.path, identity)
        now_s = time.monotonic()
        if page is None:
            if now_s - seen.at_s > REMEMBERED_S:
                del self._seen[identity]
                return None
            return Rank(pid=seen.pid, state="ended" if seen.page.finalized else "gone", page=seen.page, rates=Rates(),
                        file_rates=(Rates(),) * len(seen.page.files))  # fmt: skip
        if now_s - seen.at_s > 0.001:
            moved = rates(seen.page.total, page.total, now_s - seen.at_s)
            seen = _Seen(seen.pid, seen.path, seen.job, page, now_s, moved,
                         _file_rates(seen.page, page, now_s - seen.at_s))  # fmt: skip
            self._seen[identity] = seen
        return Rank(pid=seen.pid, state=_STATES.get(found.state if found else "", "sleeping"), page=seen.page,
                    rates=seen.rates, file_rates=seen.file_rates or (Rates(),) * len(seen.page.files))  # fmt: skip


def _file_rates(before: Page, now: Page, interval_s: float) -> tuple[Rates, ...]:
    """Return how fast each open file moves; one that was opened meanwhile from nothing."""
    known = {(file.path, file.opened_unix_s): file.counts for file in before.files}
    return tuple(rates(known.get((file.path, file.opened_unix_s), Counts()), file.counts, interval_s)
                 for file in now.files)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A file that ranks of a job have open: its path, how many of them, what they did, how fast."""

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
        SharedFile(path=path, ranks=len({number for number, _, _ in each}),
                   total=sum((counts for _, counts, _ in each), Counts()),
                   rates=sum((moved for _, _, moved in each), Rates()))
        for path, each in parts.items()
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda file: (-file.rates.bytes_per_s, -_bytes(file.total), file.path)))


def _bytes(counts: Counts) -> int:
    return counts.read_bytes + counts.written_bytes

