"""The first sentences of a run: the share of I/O in its time, the calls that it was spent on, and the remedy.

Problem. A reader wants to know first whether I/O matters, which I/O it was, and what to change.

Algorithm. The share is the time in which a rank is in I/O calls over the run time. The first finding of the diagnosis
that explains enough of the time gives its reason, in a phrase of its own for each cause. Otherwise the sentence names
opening and closing, if they took most of the time, else the file with most of the time, and its bandwidth. The remedy
is the finding's first advice, with the program's own command.

Guarantees. A cause is stated without reservation only if its confidence is high. Gains: :mod:`.gains`.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mpiio_ext.analytics.diagnosis import causes
from mpiio_ext.analytics.diagnosis.limits import Limits
from mpiio_ext.analytics.diagnosis.model import LOST, UNLESS
from mpiio_ext.analytics.diagnosis.words import short_name, where
from mpiio_ext.analytics.ledger import Interval
from mpiio_ext.analytics.run.failed import Stood
from mpiio_ext.analytics.run.largest import Largest
from mpiio_ext.analytics.run.others import Others
from mpiio_ext.common.units import amount_text, count_text, digits_text, mean_text, seconds_text

#: What the library says of a file for which delegates would pay (csrc/core/stats/mpiox_stats_paying.c).
_PAYS = re.compile(r"would pay here: .*with (mpiox_delegates=\d+) .* about (\S+) to (\S+) times faster", re.DOTALL)
#: Percent below which values count as equal.
_LEAST_PERCENT = 0.01
#: Characters of a command line that is shown within another.
_MOST_COMMAND = 160
#: Share of the run time below which time is not worth a word.
TRIVIAL = 0.02
#: Shares of the time in I/O that are called all of it, and nearly all.
_ALL, _NEARLY = 0.995, 0.95
#: How many times its lower bound the upper bound of a bandwidth is at most that is worth a word.
_WIDE = 10.0
#: Share of it that a cause takes at least to come first, and that a file, or opening and closing, take at least.
_LEAST, MOST = 0.2, 0.5
#: Seconds of opening and closing below which they are no more than the start and the end of a run.
_LEAST_OPENING = Limits.slow_opening
#: The same share of a cause of high confidence: the diagnosis has none that explains less, and names it first.
_LEAST_SURE = 0.05
#: Share of the run that a cause of lower confidence takes at least to come first.
_LEAST_UNSURE = 0.05
#: Share of the run below which the calls in a log may be the smaller part of the program's calls on files.
_FEW = 0.1
#: Share of the run for which a file is open that is worth a word, though no call reads or writes it.
LONG = 0.5
#: Whose time in I/O is named, if it is that of an average rank.
AVERAGE = "an average rank of "
#: Whose it is, if that rank is not known.
MOST_IO = "the rank with most time in I/O"
#: Bytes from which on requests are large: no hint and no library would make them faster.
LARGE = 1 << 20
#: Errors of failed accesses that the first sentence names.
_MOST_FAILURES = 3
#: Words in front of a colon that say what an advice is about.
_MOST_ABOUT = 3

Document = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spent:
    """What a run has spent its time on; times in seconds.

    Attributes
    ----------
    io_s, run_s : time of a rank in I/O, and run time.
    io : the same at least and at most; None: `io_s` is exact.
    most_s : the time in I/O of any rank, at most; 0 if that is `io_s`.
    whose : "rank 3 of ", "an average rank of ", `MOST_IO`; "" if that is any rank.
    mean_s : time of an average rank in I/O, if `whose` is a slower one; else 0.
    opening_s : the part of `io_s` that is in no reads and writes.
    others : calls that neither read nor write, by what they do, those with most time first.
    failures : accesses that failed, a line for each function and error.
    files : rows of the page, those that took the most time first.
    names : names of all files.
    mapped : files in mapped memory, whose accesses may have taken a part of the time that matters.
    unmoved : files that were open for most of the run, and that no call has read or written: of a log that does not
        have calls of mmap.
    logged : the calls are those of a Darshan log, which does not have all kinds: the time is a lower bound.
    uncounted : a sentence about calls that the log does not have, and that may take longer; "" if it shows none.
    lost : the log has lost records.
    no_cpu : share of the time in which a rank waited for a CPU, where it matters; 0 where it does not.
    waiting_s : most that a rank waits for others; 0 if unknown.
    unfinished : the calls that ranks were in when they were ended.
    left_s, left : time in operations on files of the system, which are not counted; what they are, in words.
    largest : the calls that took most of `io_s`.
    in_vain : most of `io_s` is in nonblocking or split calls, and the program waits for all of their time.
    moved : by direction, of such calls the seconds of the rank with most, and the bytes and seconds of all ranks.
    processes : number of ranks.
    """

    io_s: float
    run_s: float
    io: Interval | None = None
    most_s: float = 0.0
    whose: str = ""
    mean_s: float = 0.0
    opening_s: float = 0.0
    others: Sequence[Others] = ()
    failures: Sequence[str] = ()
    files: Sequence[Document] = ()
    names: Collection[str] = ()
    mapped: Sequence[str] = ()
    unmoved: Sequence[str] = ()
    logged: bool = False
    uncounted: str = ""
    lost: bool = False
    no_cpu: float = 0.0
    waiting_s: float = 0.0
    unfinished: Stood = dataclasses.field(default_factory=Stood)
    left_s: float = 0.0
    left: str = ""
    largest: Largest | None = None
    in_vain: bool = False
    moved: Mapping[str, tuple[Interval, int, Interval]] = dataclasses.field(default_factory=dict)
    processes: int = 1

    @property
    def of_average(self) -> bool:
        """Whether the time in I/O is that of an average rank."""
        return self.whose == AVERAGE

    def short(self, name: str) -> str:
        """Return as much of the end of a file's name as no other file has."""
        return short_name(name, self.names)


#: Advice that a program under the library has taken already.
TAKEN = "mpirun -n RANKS mpiio-ext run -- PROGRAM"
#: What advice to use delegates has in its command.
DELEGATES = "mpiox_delegates="
#: The hints of a command, and their values.
HINT = re.compile(r" -H ([a-z_]+)=(\S+)")
#: A hint of advice that takes a choice from the library, and hints by which a program has taken it already.
FORCES, FORCED = "mpiox_exchange=two_phase", frozenset({"mpiox_exchange", "romio_cb_read", "romio_cb_write"})


def _is_command(program: str) -> bool:
    """Return whether a command line can be pasted into a shell: it is whole, and quoted where it has to be."""
    try:
        return len(program) <= _MOST_COMMAND and "…" not in program and shlex.join(shlex.split(program)) == program
    except ValueError:  # a quotation mark without its other one
        return False


def concrete(command: str, program: str, processes: int) -> str:
    """Return a command of an advice with the program's own command line and its ranks."""
    if "PROGRAM" not in command:
        return command
    program = program if _is_command(program) else "PROGRAM"
    if "RANKS" in command:
        return command.replace("RANKS", str(processes)).replace("PROGRAM", program)
    launched = f"mpirun -n {processes} {program}" if processes > 1 else program
    return command.replace("PROGRAM", launched)


def bounds_text(time: Interval) -> str:
    """Return a time: one number if its bounds are close, else both."""
    if time.narrow:
        return seconds_text(time.middle)
    return f"between {seconds_text(time.least)} and {seconds_text(time.most)}"


def spent_text(spent: Spent) -> str:
    """Return the share of I/O in the run's time: one number if its bounds are close, else both."""
    time = spent.io
    if time is None or time.narrow or share_text(time.least, spent.run_s) == share_text(time.most, spent.run_s):
        return share_text(spent.io_s, spent.run_s)
    return f"between {share_text(time.least, spent.run_s)} and {share_text(time.most, spent.run_s)}"


def share_text(io_s: float, run_s: float) -> str:
    """Return the share of I/O in the time in whole percents; below one percent with one digit."""
    share = 100 * min(1.0, io_s / run_s) if run_s > 0 else 0.0
    if 0 < share < _LEAST_PERCENT:
        return f"less than {_LEAST_PERCENT:g} %"
    return f"{share:.0f} %" if share >= 1 or share == 0 else f"{digits_text(share, 1)} %"


def leading(diagnosed: Sequence[Document], spent: Spent) -> tuple[Document, str] | None:
    """Return the first finding, and its direction; None if none explains enough of the time.

    If opening and closing took most of the time, the finding is about these calls, or takes as long, or happens at the
    same time: ranks wait at a close for one that writes.
    """
    for one in diagnosed:
        for finding in one["findings"]:
            took_s, cause = finding["time"]["value"], causes.named(finding["cause"])
            least = _LEAST_SURE if finding["confidence"] == "high" else _LEAST
            least_s = max(least * spent.io_s, min(spent.opening_s, 1.1 * spent.io_s - spent.opening_s))
            least_s = least * spent.io_s if not _opened(spent) or cause.of_opening else least_s
            bound = finding.get("at_most") and took_s < 2 * TRIVIAL * spent.run_s  # it may be no time at all
            least_s = least_s if finding["confidence"] == "high" else max(least_s, _LEAST_UNSURE * spent.run_s)
            free = cause.often_free or 2 * took_s <= spent.no_cpu * spent.run_s  # or of ranks that wait for a CPU
            if took_s >= least_s and not bound and not (free and finding["confidence"] == "low"):
                return finding, one["direction"]
    return None


def leading_others(diagnosed: Sequence[Document], spent: Spent) -> Others | None:
    """Return the calls that neither read nor write and took the most time; None if another cause explains more.

    Causes that are about opening and closing are less exact, if such calls, which records count too, are most of their
    time.
    """
    first, most = leading(diagnosed, spent), next(iter(spent.others), None)
    if most is None or most.seconds < _LEAST * spent.io_s:
        return None
    took_s = spent.opening_s if _opened(spent) else 0.0
    exact = 1.0
    if first is not None:
        took_s = min(first[0]["time"]["value"], spent.io_s)
        cause = causes.named(first[0]["cause"])
        exact = MOST if cause.of_opening and not cause.waits and most.named else 1.0  # it is about many kinds
    elif most.named:
        exact = MOST
    return most if most.seconds >= exact * took_s else None


def _opened(spent: Spent) -> bool:
    """Return whether opening, closing and the like took most of the time, and longer than in the best of runs.

    Ranks meet in these calls: without a free CPU for each rank they take as long as the ranks wait for a CPU.
    """
    return spent.opening_s - spent.no_cpu * spent.run_s >= max(
        MOST * spent.io_s, _LEAST_OPENING, _LEAST_UNSURE * spent.run_s
    )


def _waited(spent: Spent) -> str:
    share = f"{100 * spent.no_cpu:.0f} % of the time from MPI_Init to MPI_Finalize"
    return f"On average, a rank waited for a CPU for {share}"


def _without_cause(diagnosed: Sequence[Document], spent: Spent, *, known: bool) -> str:
    """Return what most of the time was, where no cause is known: the direction with its bandwidth, and the file.

    `known`: all calls are.
    """
    sides = [side for one in diagnosed if (side := _moved(one, spent)) is not None]
    seconds, rate, size, low, way = max(sides, default=(0.0, "", 0.0, True, ""))
    path_s = max((_on_path(one) for one in diagnosed if one["direction"] == way), default=0.0)
    said = ""
    if seconds >= _LEAST * spent.io_s:
        verb = "written" if way == "write" else "read"
        fine = ", and the bandwidth of all ranks is not low" if spent.processes > 1 else ", which is not low"
        said = f". {amount_text(size)} were {verb}{rate}{'' if low else fine}"
    first = next(iter(spent.files), None)
    each, what = _each(first, way) if said and len(spent.files) == 1 and first is not None else (0.0, "")
    side_by_side = path_s * MOST <= spent.io_s  # else a rank pauses, or waits where no counter is: maybe for its turn
    right = known and bool(said) and (not low or (each >= LARGE and side_by_side))
    right &= not any(one["findings"] for one in diagnosed)
    right &= all(side[0] < _LEAST * spent.io_s or not side[3] for side in sides if side[4] != way)
    right &= not spent.failures and not spent.in_vain
    right &= spent.waiting_s < MOST * spent.io_s  # ranks have not as much to do
    right &= not low or ((first or {}).get(f"mean_{way}_bytes") or LARGE) >= LARGE / 4  # nor are calls many requests
    largest = "" if right else _largest(spent, 0.0)
    said += f", in {what} of {mean_text(each)}" if each and low and not largest else ""
    if spent.no_cpu:
        said += f". {_waited(spent)}"
    said += f". {largest[0].upper()}{largest[1:]}" if largest else ""
    said += "; nothing overlaps the program's nonblocking or split calls" if spent.in_vain else ""
    end = f"; nothing {'' if _is_all_seen(spent) else 'found '}to change" if right else ""
    sure = any(finding["confidence"] == "high" for one in diagnosed for finding in one["findings"])
    return f"{'no cause explains much of this time' if sure else 'no cause of slow I/O stands out'}{said}{end}"


def _largest(spent: Spent, took_s: float) -> str:
    """Return the calls that took at least half of the time in I/O, and longer than a cause; "" if there are none."""
    most = spent.largest
    if most is None or most.seconds.least < max(MOST * spent.io_s, took_s):
        return ""
    low, high = (min(each, spent.io_s) for each in (most.seconds.least, most.seconds.most))
    if spent.whose == MOST_IO:
        words = most.words.replace(" by an average rank", "")
        return f"an average rank spent {'' if high <= 1.1 * low else 'at least '}{seconds_text(low)} in {words}"
    part = _part(low, spent)
    return f"{part if high <= 1.1 * low else f'at least {part}'} were {most.words}"


def _is_all_seen(spent: Spent) -> bool:
    """Return whether no other time than that of counted reads and writes can matter: the proof of a good run.

    A Darshan log has no locks, flushes of mapped memory and failed calls.
    """
    others = (spent.opening_s, spent.waiting_s, sum(one.seconds for one in spent.others), spent.left_s)
    little = max(TRIVIAL * spent.run_s, _LEAST * spent.io_s)
    return not (spent.logged or spent.mapped or spent.unfinished.longest_s) and all(each < little for each in others)


def _each(row: Document, way: str) -> tuple[float, str]:
    """Return the mean bytes of the program's accesses in one direction, and whether they count calls or requests."""
    calls = row.get(f"collective_{way}s", 0) + row.get(f"independent_{way}s", 0)
    asked = row.get(f"asked_{'read' if way == 'read' else 'written'}_bytes") or 0
    return (asked / calls, "calls") if calls else (row.get(f"mean_{way}_bytes") or 0.0, "requests")


def _on_path(one: Document) -> float:
    """Return the time (s) in which any file is accessed in a direction; 0 if unknown."""
    size = next((float(fact["value"]) for fact in one["facts"] if fact["unit"] == "B"), 0.0)
    rates = [fact["value"] for fact in one["facts"] if fact["unit"] == "B/s"]  # the last one: over the time in I/O
    return size / rates[-1] if rates and rates[-1] > 0 else 0.0


def _moved(one: Document, spent: Spent) -> tuple[float, str, float, bool, str] | None:
    """Return time (s), bandwidth in words, bytes, whether that is low, and direction; None where they are not known.

    The bandwidth is that of a rank, since a log shows not which ranks are in calls at the same time: bytes of all ranks
    over the seconds of all ranks in the same calls.
    """
    way, low = one["direction"], one["low_bandwidth"]
    if way in spent.moved:
        slowest, moved, time = spent.moved[way]
        rates = [f"{amount_text(moved / each)}/s" for each in (time.most, time.least) if each > 0]
        if not rates:
            return None
        rate = amount_text(moved / time.middle) + "/s"
        close = time.most <= _WIDE * time.least  # else the calls may return long before their accesses end
        wide = f"between {rates[0]} and {rates[1]}" if close else f"{rates[0]} or more"
        rate = rate if time.narrow else wide
        reached = f". In its {way}s, a rank moved {rate} on average" if spent.processes > 1 else f" at {rate}"
        return slowest.middle, reached, float(moved), low, way
    size = next((float(fact["value"]) for fact in one["facts"] if fact["unit"] == "B"), 0.0)
    known = [fact["value"] for fact in one["facts"] if fact["unit"] == "B/s"]  # the last one: over the time in I/O
    return (size / known[-1], f" at {amount_text(known[-1])}/s", size, low, way) if known and known[-1] > 0 else None


def _part(took_s: float, spent: Spent) -> str:
    """Return how much of the time in I/O something took; a time with two bounds is no number."""
    io_s, narrow = spent.io_s, spent.io is None or spent.io.narrow
    if took_s >= _NEARLY * io_s:
        whole = f"of these {seconds_text(io_s)}" if narrow else "of the time in I/O"
        return f"{'nearly ' if took_s < _ALL * io_s else ''}all {whole}"
    return f"{seconds_text(took_s)} of {seconds_text(io_s) if narrow else 'the time in I/O'}"


def _of_finding(finding: Document, spent: Spent) -> str:
    """Return how much of the time in I/O a finding is about."""
    took_s = min(finding["time"]["value"], spent.io_s)
    return f"{'up to ' if finding['at_most'] and took_s < _NEARLY * spent.io_s else ''}{_part(took_s, spent)}"


def _and(lead: str, rest: str, spent: Spent) -> str:
    """Return two statements as one sentence; as two, if the first one has bounds."""
    narrow = spent.io is None or spent.io.narrow
    return f"{lead}; {rest}" if narrow else f"{lead}. {rest[0].upper()}{rest[1:]}"


def _up_to(finding: Document, took_s: float) -> str:
    return f"{'up to ' if finding['at_most'] else ''}{seconds_text(took_s)}"


def _longer(diagnosed: Sequence[Document], first: Document, io_s: float) -> str:
    """Return as a sentence a cause that is not sure, and that may explain most of the time, far more than the first."""
    least_s = max(MOST * io_s, 2 * first["time"]["value"])
    others = [each for one in diagnosed for each in one["findings"] if each["time"]["value"] >= least_s]
    most = max((each for each in others if each["confidence"] == "medium"), key=_time_of, default=None)
    return (
        ""
        if most is None
        else f" Another cause may explain up to {seconds_text(min(_time_of(most), io_s))}: {most['what']}."
    )


def _time_of(finding: Document) -> float:
    return float(finding["time"]["value"])


def first_sentence(diagnosed: Sequence[Document], spent: Spent, *, whole: bool = True) -> str:
    """Return the first sentence.

    Parameters
    ----------
    diagnosed : the diagnoses of both directions, the most important first.
    spent : what the run has spent its time on.
    whole : nothing lacks in the recordings; otherwise no cause is certain.
    """
    said = _of_time(diagnosed, spent, whole=whole)
    if spent.uncounted and spent.io_s < _NEARLY * spent.run_s:
        said = f"{said} {spent.uncounted}"
    return f"{_of_failures(spent.failures)} {said}" if spent.failures else said


def _of_failures(found: Sequence[str]) -> str:
    more = f"; {count_text(len(found) - _MOST_FAILURES, 'more line')} below" if len(found) > _MOST_FAILURES else ""
    return f"Accesses failed: {'; '.join(found[:_MOST_FAILURES])}{more}."


def _of_time(diagnosed: Sequence[Document], spent: Spent, *, whole: bool) -> str:
    """Return what the time was spent on."""
    io_s, run_s = spent.io_s, spent.run_s
    known = whole and not spent.lost
    who = spent.whose if spent.whose == MOST_IO else f"{spent.whose}your program"
    who = f"{'' if whole else 'As far as was recorded, '}{who}"
    who = who[0].upper() + who[1:]
    narrow = spent.io is None or spent.io.narrow
    bound = spent.logged and narrow and TRIVIAL * run_s <= io_s < _ALL * run_s
    least = "at least " if spent.lost or bound else ""
    lead = f"{who} spent {least}{spent_text(spent)} of its time in I/O"
    if spent.logged and not narrow:
        lead = f"The log gives two bounds: {_small_first(lead)}"
    of = f"{seconds_text(io_s) if spent.io is None else bounds_text(spent.io)} of {seconds_text(run_s)}"
    if spent.mean_s:
        mean = f"an average rank: {share_text(spent.mean_s, run_s)}"
        of = f"{of}; {mean}"
    lead_of = f"{lead} ({of})"
    if io_s < TRIVIAL * run_s:
        return _of_little(spent, who, lead, of, known=known)
    if spent.unfinished.longest_s >= MOST * io_s:
        took = _part(min(spent.unfinished.longest_s, io_s), spent)
        return _and(lead_of, f"{took} were in {spent.unfinished.longest}, which had not ended.", spent)
    first = leading(diagnosed, spent)
    if (others := leading_others(diagnosed, spent)) is not None:
        return _and(lead_of, _of_others(others, spent), spent)
    if first is None and _opened(spent):
        took = _part(spent.opening_s, spent)
        return _and(
            lead_of, f"{took} were opening and closing files, and other calls that neither read nor write.", spent
        )
    if first is None:
        unless = UNLESS if spent.logged and io_s < _FEW * run_s else ""
        return _and(lead_of, f"{_without_cause(diagnosed, spent, known=known)}{unless}.", spent)
    part, words = _of_finding(first[0], spent), first[0]["what"]
    took_s = min(first[0]["time"]["value"], io_s)
    largest = _largest(spent, took_s) if took_s < MOST * io_s else ""
    lead_of = _and(lead_of, largest, spent) if largest else lead_of
    if first[0]["confidence"] == "high" and whole:
        unknown = f" {text}" if (text := causes.named(first[0]["cause"]).not_shown) else ""
        if not largest:
            return _and(lead_of, f"{part} were {words}.{unknown}", spent)
        sure = f"A sure cause explains {_up_to(first[0], took_s)}: {words}."
        return f"{lead_of}. {sure}{_longer(diagnosed, first[0], io_s)}{unknown}"
    cpu = f" {_waited(spent)}; time in I/O may include this wait." if spent.no_cpu else ""
    return f"{lead_of}. No cause is certain; possibly {part.removeprefix('up to ')} were {words}.{cpu}"


def _of_others(others: Others, spent: Spent) -> str:
    """Return how much of the time in I/O calls took that neither read nor write, and how long each rank was in them."""
    ranks = f" {others.ranks}." if others.ranks else ""
    return f"{_part(min(others.seconds, spent.io_s), spent)} were {others.words}.{ranks}"


def conclusions(diagnosed: Sequence[Document], spent: Spent) -> list[str]:
    """Return those of both directions, after the calls that the first sentence names instead of reads and writes."""
    others = None if spent.io_s < TRIVIAL * spent.run_s else leading_others(diagnosed, spent)
    first = [] if others is None else [f"Other calls: {_of_others(others, spent)}"]
    return [*first, *(f"{one['direction'].capitalize()}s: {one['conclusion']}" for one in diagnosed)]


def _of_little(spent: Spent, who: str, lead: str, of: str, *, known: bool) -> str:
    """Return that calls take too little of the time to matter, or where other time may lie; `known`: all calls are."""
    io_s, run_s = spent.io_s, spent.run_s
    mapped, unmoved = ([spent.short(name) for name in names] for names in (spent.mapped, spent.unmoved))
    if mapped:
        return f"{lead} calls ({of}); the time of accesses to mapped memory{where(mapped, 'of')} is not known."
    if spent.left_s > io_s:
        all_s = min(io_s + spent.left_s, run_s)
        end = "; the time is too little to be worth tuning." if all_s < TRIVIAL * run_s and known else "."
        return (
            f"{who} spent {share_text(all_s, run_s)} of its time in I/O ({seconds_text(all_s)} of"
            f" {seconds_text(run_s)}), {seconds_text(spent.left_s)} of this time in {spent.left}. No other number here"
            f" includes these operations: `mpiio-ext run --only GLOB` counts them{end}"
        )
    if unmoved:
        return (
            f"{lead} calls ({of}); but no call in the log reads or writes {where(unmoved, '').strip()}, open for most"
            " of the run. The log has neither accesses to mapped memory (mmap) nor calls of interfaces that Darshan"
            " does not record."
        )
    by = f"By the calls in the log, {_small_first(lead)}" if spent.logged and lead.startswith(who) else lead
    unless = UNLESS if spent.logged else ""
    if spent.most_s >= TRIVIAL * run_s:
        return f"{by} ({of}); a single rank may have spent up to {seconds_text(spent.most_s)}."
    little = (
        f": {'these calls take ' if unless else ''}too little{' time' if unless else ''} to be worth tuning{unless}"
    )
    little = little if known and not spent.uncounted else ""
    return f"{by} ({of}){f'; {LOST}' if spent.lost else little}."


def paying(statistics: Sequence[Document], program: str, processes: int) -> dict[str, str] | None:
    """Return the library's own measurement that delegates would pay for a file; None if there is none."""
    for row in statistics:
        if found := _PAYS.search(row["delegation"]):
            hint, least, most = found.groups()
            return {
                "text": "Use delegates, processes that collect small accesses of the ranks",
                "command": concrete(f"mpirun -n RANKS mpiio-ext run -H {hint} -- PROGRAM", program, processes),
                "gain": f"{least} to {most} times faster, if the file system moves 1 MiB in 10 to 1 ms",
                "most": most,
            }
    return None


def help_sentence(advice: Mapping[str, str] | None) -> str:
    """Return the second sentence; "" without advice."""
    if advice is None:
        return ""
    command = f": `{advice['command']}`" if advice["command"] else ""
    return f"Next step: {_small_first(advice['text'])}{command}. Gain: {advice['gain']}."


def _small_first(text: str) -> str:
    """Return a sentence as the end of another: without what it is about ("Many files: …"), its first letter small."""
    about, colon, rest = text.partition(": ")
    text = rest if colon and len(about.split()) <= _MOST_ABOUT else text
    return text[:1].lower() + text[1:]
