"""The first sentences of a run: how much of its time was I/O, what that time was spent on, and what would help.

Problem. A reader wants to know first whether I/O matters, which I/O it was, and what to change.

Algorithm. The share is the time in which a rank is in I/O calls over the run time. What it was spent on is the first
finding of the diagnosis that explains enough of it, in a phrase of its own for each cause. Else it is opening and
closing, where these took most of it; else the file with most of it, with its bandwidth. What would help is the
finding's first advice, with the program's own command.

Guarantees. A cause is stated without reservation only if its confidence is high. Gains: :mod:`.gains`.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from mpiio_ext.analytics.diagnosis.causes_calls import keeps_pointer
from mpiio_ext.analytics.diagnosis.limits import Limits
from mpiio_ext.analytics.diagnosis.model import COMMON_SIZE, MOST_SIZE
from mpiio_ext.analytics.run.failed import Stood
from mpiio_ext.common.units import amount_text, count_text, digits_text, mean_text, seconds_text, size_text

#: What the library says of a file for which delegates would pay (csrc/core/stats/mpiox_stats_paying.c).
_PAYS = re.compile(r"would pay here: about (\S+) to (\S+) times.*try (mpiox_delegates=\d+)", re.DOTALL)
#: The rank that comes late, and whether others do so, too, in the title of that finding.
_RANK = re.compile(r"(rank \d+)( most)?:")
#: That rank, and how many bytes it has, in the title of a finding of imbalance.
_UNEVEN = re.compile(r"(rank \d+) (?:reads|writes) (.+), and needs far longer")
#: Percent below which values count as equal.
_LEAST_PERCENT = 0.01
#: Characters of a command line that is shown within another.
_MOST_COMMAND = 160
#: Share of the run time below which time is not worth a word.
TRIVIAL = 0.02
#: Shares of the time in I/O that are called all of it, and nearly all.
_ALL, _NEARLY = 0.995, 0.95
#: Share of it that a cause takes at least to come first, and that a file, or opening and closing, take at least.
_LEAST, _MOST = 0.2, 0.5
#: Seconds of opening and closing below which they are no more than the start and the end of a run.
_LEAST_OPENING = Limits.slow_opening
#: The same share of a cause of high confidence: the diagnosis has none that explains less, and names it first.
_LEAST_SURE = 0.05
#: Share of the run for which a file is open that is worth a word, though no call reads or writes it.
LONG = 0.5
#: Bytes from which on requests are large: no hint and no library would make them faster.
LARGE = 1 << 20
#: Causes that need at least medium confidence to come first: caches often make them cost nothing.
_WEAK = ("unaligned",)
#: Causes of a long time in opening and closing.
_OF_OPENING = ("opening", "metadata", "shared_opens", "small_files", "late_rank")
#: Causes whose time a rank spends in calls, as it is measured: the time in I/O of an average rank may be less.
_OF_A_RANK = ("late_rank", "metadata", "shared_opens")
#: Words in front of a colon that say what an advice is about.
_MOST_ABOUT = 3

#: Where small requests are: a part of the title, and words of the sentence.
_PLACES = {
    "at random places": "at random places",
    "appended": "appended by several ranks in turn",
    "with gaps between them": "with gaps between them",
    "between those of": "between those of other ranks",
}

Document = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spent:
    """What a run has spent its time on; times in seconds.

    Attributes
    ----------
    io_s, run_s : time of a rank in I/O, and run time.
    opening_s : the part of `io_s` that is in no reads and writes.
    other_s : time in calls on files that are not counted, at most.
    files : rows of the page, those that took the most time first.
    mapped : files in mapped memory, whose accesses may have taken a part of the time that matters.
    unmoved : files that were open for most of the run, and that no call has read or written: of a log that does not
        have calls of mmap.
    logged : the calls are those of a Darshan log, which does not have all kinds; and `lost`: nor all files.
    no_cpu : share of the time in which a rank waited for a CPU, where it matters; 0 where it does not.
    waiting_s : most that a rank waits for others; 0 if unknown.
    unfinished : the calls that ranks were in when they were ended.
    left_s, left : time in operations on files of the system, which are not counted; what they are, in words.
    """

    io_s: float
    run_s: float
    opening_s: float = 0.0
    other_s: float = 0.0
    files: Sequence[Document] = ()
    mapped: Sequence[str] = ()
    unmoved: Sequence[str] = ()
    logged: bool = False
    lost: bool = False
    no_cpu: float = 0.0
    waiting_s: float = 0.0
    unfinished: Stood = dataclasses.field(default_factory=Stood)
    left_s: float = 0.0
    left: str = ""


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


def share_text(io_s: float, run_s: float) -> str:
    """Return how much of the time is I/O: whole percents, below one of them one digit."""
    share = 100 * min(1.0, io_s / run_s) if run_s > 0 else 0.0
    if 0 < share < _LEAST_PERCENT:
        return f"less than {_LEAST_PERCENT:g} %"
    return f"{share:.0f} %" if share >= 1 or share == 0 else f"{digits_text(share, 1)} %"


def _where(files: Sequence[str], word: str) -> str:
    """Return which files: "to `a`", "to `a` and 3 more"."""
    names = [name for name in files if not name.startswith("and ")]
    if not names:
        return ""
    hidden = sum(int(name.split()[1].replace(",", "")) for name in files if name.startswith("and "))
    left = len(names) - 1 + hidden
    more = f" and {count_text(left, 'more file')}" if left else ""
    return f" {word} `{names[0].rsplit('/', 1)[-1]}`{more}"


def _small(finding: Document, way: str, at: str, known: Mapping[str, float]) -> str:
    size = f"{size_text(known['mean request'])} " if "mean request" in known else "small "
    if finding["title"].startswith("Collective calls are carried out in small rounds"):
        return f"collective {way}s{at} carried out in rounds of {size.strip()} (cb_buffer_size)"
    if finding["title"].startswith("Collective calls have few bytes"):
        few = amount_text(known["bytes of a call, all ranks together"])
        return f"collective {way}s{at} of few bytes, {few} a call of all ranks together"
    if finding["title"].startswith("Tiny pieces"):
        flushed = ", each of them flushed," if "flushed" in finding["title"] else ""
        through = " through the C library" if "through the C library" in finding["title"] else ""
        return f"{size_text(known['mean piece'])} {way}s{through}{flushed}{at}, one by one"
    if "through the C library" in finding["title"]:
        return f"{size}{way}s through the C library with seeks between them{at}"
    kind = "independent " if "(independent calls)" in finding["title"] else ""
    if not kind and known.get("collective MPI-IO calls, of all ranks"):
        kind = "collective "
    place = next((words for part, words in _PLACES.items() if part in finding["title"]), "")
    sizes = [one["value"] for one in finding["evidence"] if one["meaning"] == COMMON_SIZE]
    if sizes or MOST_SIZE in known:
        named = [size_text(each) for each in sorted(sizes)]
        size = f"{' and '.join(named)} " if named else f"{size_text(known[MOST_SIZE])} and smaller "
    if "each rank carries out by itself" in finding["title"]:
        why = "collective buffering is off, or gathers nothing"
        return f"{size}collective {way}s{at} that each rank makes by itself: {why}"
    place += ", for whose locks they may wait" if "locks" in finding["title"] else ""
    larger = known.get("mean request", 0.0) > 2 * max(sizes, default=float("inf"))
    beside = ", beside larger ones" if larger or MOST_SIZE in known else ""
    return f"{size}{kind}{way}s{at}{f' {place}' if place else ''}{beside}"


def _opens(finding: Document, known: Mapping[str, float], at: str) -> str:
    opens, files = known.get("opens of a process", 0.0), known.get("files")
    least = "at least " if finding.get("lost") else ""  # the log has no records of other files
    if finding["cause"] == "shared_opens" and files and files > 1:
        return f"metadata calls (open, stat, seek, sync) of the same {least}{files:,.0f} files by all ranks"
    if finding["cause"] == "shared_opens":
        of = at.replace(" to ", " of ").replace(" from ", " of ")
        return f"opens{of}, {least}{count_text(opens, 'time')} by each rank"
    of = f" of {least}{count_text(files, 'file')}" if files else ""
    return f"metadata calls (open, stat, seek, sync){of}, with {least}{count_text(round(opens), 'open')} by each rank"


def _rewriting(way: str, at: str, *, small: bool) -> str:
    """Return what read-modify-write is; the time of its reads is that of the calls in which the library makes both."""
    if way == "read":
        return f"read-modify-write{at.replace(' from ', ' of ')}: the MPI library reads what it is about to overwrite"
    return f"{'small ' if small else ''}writes{at} carried out by read-modify-write"


def _by_pointer(finding: Document, way: str) -> str:
    """Return what the program does by the shared pointer, and to which file: not what the MPI library does."""
    way = way if f"MPI_File_{way}" in finding["title"] else ("read" if way == "write" else "write")
    mine = [name for name in finding["files"] if not keeps_pointer(name)]
    at = _where(mine, "to" if way == "write" else "from")
    return f"{way}s{at} by the shared file pointer, for which ranks wait for one another"


def _late(title: str, way: str, at: str) -> str:
    """Return for whom ranks wait, and where."""
    who, found = "a rank that comes late", _RANK.search(title)
    if found is not None:
        who = f"ranks that come late, {found[1]} most" if found[2] else f"{found[1]}, which comes late"
    if "open or close" in title:
        return f"waiting for {who} to open or close{at.removeprefix(' to').removeprefix(' from') or ' a file'}"
    return f"waiting in collective {way}s{at} for {who}"


def _of_hdf5(title: str, way: str, at: str, known: Mapping[str, float]) -> str:
    """Return what HDF5 moves beside data, and how often a program flushes it."""
    flushes = known.get("flushes of a process (H5Fflush)", 0.0) if "flushes" in title else 0.0
    flushed = f", flushed {count_text(round(flushes), 'time')} by each process" if flushes else ""
    return f"{way}s{at} of HDF5's own metadata (groups, attributes, headers){flushed}"


def _again(finding: Document, way: str, at: str, known: Mapping[str, float]) -> str:
    """Return what is read or written again, and by whom."""
    title = finding["title"]
    if "fill values" in title:
        return f"writes{at} of everything twice: one rank writes fill values, and data replace them"
    if "header grows" in title:
        return f"{way}s{at} of data that are moved again and again, as where a header grows"
    if title.startswith("HDF5"):
        both = "reads and writes" if "reads and writes" in title else f"{way}s"
        of = _where(finding["files"], "of")
        return f"{both}{of} by whole chunks, again and again for parts of them: HDF5's chunk cache has no room for them"
    if title.startswith("Ranks read the same data"):
        over = known["bytes read"] / known["bytes up to the last one that is read"]
        who = "all" if over >= _NEARLY * known["ranks that open the file"] else "several"
        return f"reads{at} of the same data by {who} ranks, each for itself"
    what = "data by several ranks, or by one" if "or by one again" in title else "data" if way == "read" else "places"
    return f"{way}s{at} of the same {what} again{' and again' if 'or by' not in what else ''}"


def phrase(finding: Document, direction: str) -> str:
    """Return what the time of a finding was spent on, as a noun."""
    way = direction
    at = _where(finding["files"], "to" if way == "write" else "from")
    known = {one["meaning"]: one["value"] for one in finding["evidence"]}
    cause, title = finding["cause"], finding["title"]
    if cause == "small_requests":
        return _small(finding, way, at, known)
    if cause == "pieces_of_one":
        count, size = known.get("small pieces"), known.get("mean piece")
        what = f"{count_text(count, way)} of {mean_text(size)}" if count and size else f"small {way}s"
        found = re.match(r"Rank \d+", title)
        return f"{what}{at} by {found[0].lower() if found else 'one rank'} alone, beside the large ones"
    if cause in ("metadata", "shared_opens"):
        return _opens(finding, known, at)
    if cause == "stragglers" and (found := _UNEVEN.search(title)):
        return f"{way}s{at} by {found[1]}, which has {found[2]}"
    if cause == "stragglers":
        most, mean = (
            known.get("bytes of the slowest rank", known.get("its bytes")),
            known.get("bytes of an average rank"),
        )
        if "more to do" in title and most and mean:
            return f"{way}s{at} of the slowest rank, which has {most / mean:.1f} times the bytes of an average rank"
        return f"{way}s{at} of one slow rank, which has as much to do as the others"
    who = "rank 0" if title.startswith("Rank 0") else "one rank"
    plain = {
        "root_writes": f"{way}s{at} by {who} alone",
        "root_reads": f"{way}s{at} by {who} alone",
        "few_aggregators": f"collective {way}s{at} that too few aggregators carry out",
        "read_modify_write": _rewriting(way, at, small="mean piece, at most" in known),
        "read_before_write": f"reads and writes{_where(finding['files'], 'of')} in turn: each block is read before it"
        " is overwritten",
        "unaligned": f"{way}s{at} that do not begin at blocks of the file system, which several ranks share",
        "slow_file": f"{way}s{at} that take far longer than those of files with as many bytes: a slow server,"
        " or load by others",
        "slow_ost": f"{way}s{at} on a slow server",
        "turns": f"{way}s{at} by one rank at a time",
        "waiting_calls": f"waiting inside of MPI-IO calls{at}, as for locks or in atomic mode",
        "syncs": f"syncs after {way}s{at}",
        "slowed_down": f"{way}s{at} that took several times longer for a while",
        "read_amplification": f"{way}s{at} of far more bytes than the program asks for",
        "shared_pointer": _by_pointer(finding, way),
        **dict.fromkeys(("redundant_reads", "redundant_writes"), _again(finding, way, at, known)),
        "contention": f"{way}s{at} by many processes at few storage targets",
        "few_writers": f"{way}s{at} by few of the processes",
        "few_readers": f"{way}s{at} by few of the processes",
        "many_aggregators": f"collective {way}s{at} by more aggregators than the storage targets take",
        "many_osts": f"{way}s{at} of small files that are striped over many storage targets",
        "serialised": f"{way}s{at}, one file after the other",
        "small_files": f"{way}s{at}, each of them small",
        "late_rank": _late(title, way, at),
        "hdf5_metadata": _of_hdf5(title, way, at, known),
        "exchange": f"collective {way}s{at} in which no rank was in a request: ranks exchanged data, or waited for one"
        " that came late",
        "load_by_others": f"{way}s{at} while others loaded the storage",
        "storage_fault": f"{way}s{at} while disks of the file system were not as they should be",
        "dominant_file": f"{way}s{at}, which has far less of the bytes",
        "opening": "opening and closing files, and other calls that neither read nor write",
    }
    return plain[cause]


def leading(diagnosed: Sequence[Document], spent: Spent) -> tuple[Document, str] | None:
    """Return the first finding, and its direction; None if none explains enough of the time.

    Where opening and closing took most of the time, it is about these, or takes as long, or at the same time: ranks
    wait at a close for one that writes.
    """
    for one in diagnosed:
        for finding in one["findings"]:
            took_s, weak = finding["time"]["value"], finding["confidence"] == "low" and finding["cause"] in _WEAK
            least = _LEAST_SURE if finding["confidence"] == "high" else _LEAST
            least_s = max(least * spent.io_s, min(spent.opening_s, 1.1 * spent.io_s - spent.opening_s))
            least_s = least * spent.io_s if not _opened(spent) or finding["cause"] in _OF_OPENING else least_s
            if not weak and took_s >= least_s:
                return finding, one["direction"]
    return None


def _opened(spent: Spent) -> bool:
    """Return whether opening, closing and the like took most of the time, and longer than in the best of runs."""
    return spent.opening_s >= max(_MOST * spent.io_s, _LEAST_OPENING)


def _without_cause(diagnosed: Sequence[Document], spent: Spent) -> str:
    """Return what most of the time was, where no cause is known: the direction with its bandwidth, and the file."""
    sides = [side for one in diagnosed if (side := _bandwidth(one)) is not None]
    seconds, rate, size, low, way = max(sides, default=(0.0, 0.0, 0.0, True, ""))
    said = ""
    if seconds >= _LEAST * spent.io_s:
        verb = "written" if way == "write" else "read"
        said = f": {amount_text(size)} were {verb} at {amount_text(rate)}/s{'' if low else ', which is not low'}"
    first = next(iter(spent.files), None)
    each, what = _each(first, way) if said and len(spent.files) == 1 and first is not None else (0.0, "")
    said += f", in {what} of {mean_text(each)}" if each and low else ""
    side_by_side = seconds * _MOST <= spent.io_s  # else a rank pauses, or waits where no counter is: maybe for its turn
    right = (
        bool(said) and (not low or (each >= LARGE and side_by_side)) and not any(one["findings"] for one in diagnosed)
    )
    right &= spent.waiting_s < _MOST * spent.io_s  # ranks have not as much to do
    right &= not low or ((first or {}).get(f"mean_{way}_bytes") or LARGE) >= LARGE / 4  # nor are calls many requests
    if (
        len(spent.files) > 1
        and first is not None
        and first["time_s"] >= _MOST * max(spent.io_s, sum(row["time_s"] for row in spent.files))
    ):
        said += f"; most of the time was that of `{first['file'].rsplit('/', 1)[-1]}`"
    if spent.no_cpu:
        said += f", while a rank waited for a CPU for {100 * spent.no_cpu:.0f} % of the time"
    return f"no cause of slow I/O stands out{said}{'; nothing to change' if right else ''}."


def _each(row: Document, way: str) -> tuple[float, str]:
    """Return the mean bytes of what the program asked for in one direction, and whether by calls or by requests."""
    calls = row.get(f"collective_{way}s", 0) + row.get(f"independent_{way}s", 0)
    asked = row.get(f"asked_{'read' if way == 'read' else 'written'}_bytes") or 0
    return (asked / calls, "calls") if calls else (row.get(f"mean_{way}_bytes") or 0.0, "requests")


def _bandwidth(one: Document) -> tuple[float, float, float, bool, str] | None:
    """Return time (s), bandwidth, bytes, whether that is low, and direction; None where they are not known."""
    size = next((fact["value"] for fact in one["facts"] if fact["unit"] == "B"), 0.0)
    rates = [fact["value"] for fact in one["facts"] if fact["unit"] == "B/s"]  # the last one: over the time in I/O
    if not rates or not rates[-1] > 0:
        return None
    return size / rates[-1], rates[-1], size, one["low_bandwidth"], one["direction"]


def _part(took_s: float, io_s: float) -> str:
    """Return how much of the time in I/O something took."""
    whole = seconds_text(io_s)
    if took_s >= _NEARLY * io_s:
        return f"{'nearly ' if took_s < _ALL * io_s else ''}all of these {whole}"
    return f"{seconds_text(took_s)} of {whole}"


def _of_finding(finding: Document, io_s: float) -> str:
    """Return how much of the time in I/O a finding is about."""
    took_s = min(finding["time"]["value"], io_s)
    return f"{'up to ' if finding['at_most'] and took_s < _NEARLY * io_s else ''}{_part(took_s, io_s)}"


def first_sentence(diagnosed: Sequence[Document], spent: Spent, *, whole: bool = True) -> str:
    """Return the first sentence.

    Parameters
    ----------
    diagnosed : the diagnoses of both directions, the most important first.
    spent : what the run has spent its time on.
    whole : nothing lacks in the recordings; otherwise no cause is certain.
    """
    io_s, run_s, mapped, other_s = spent.io_s, spent.run_s, spent.mapped, spent.other_s
    who = "Your program" if whole else "As far as was recorded, your program"
    lead = f"{who} spent {'at least ' if spent.lost else ''}{share_text(io_s, run_s)} of its time in I/O"
    of = f"{seconds_text(io_s)} of {seconds_text(run_s)}"
    if io_s < TRIVIAL * run_s and mapped:
        return f"{lead} calls ({of}); how long it was in mapped memory{_where(mapped, 'of')} is not known."
    if io_s < TRIVIAL * run_s <= other_s:
        return f"{lead} ({of}), and up to {seconds_text(other_s)} in calls that fail, or that change names or sizes."
    if io_s < TRIVIAL * run_s and spent.left_s > io_s:
        all_s = min(io_s + spent.left_s, run_s)
        end = ": too little to be worth tuning." if all_s < TRIVIAL * run_s else "."
        return (
            f"{who} spent {share_text(all_s, run_s)} of its time in I/O ({seconds_text(all_s)} of"
            f" {seconds_text(run_s)}), {seconds_text(spent.left_s)} of it in {spent.left}, which are in no other"
            f" number here: `mpiio-ext run --only GLOB` counts them{end}"
        )
    if io_s < TRIVIAL * run_s and spent.unmoved:
        return (
            f"{lead} calls ({of}); but no call in the log reads or writes {_where(spent.unmoved, '').strip()}, open for"
            " most of the run: mapped memory, or other layers, are not in it."
        )
    if io_s < TRIVIAL * run_s:
        by = f"By the calls in the log, {_small_first(lead)}" if spent.logged else lead
        return f"{by} ({of}): too little to be worth tuning."
    if spent.unfinished.longest_s >= _MOST * io_s:
        took = _part(min(spent.unfinished.longest_s, io_s), io_s)
        return f"{lead}; {took} were in {spent.unfinished.longest}, which had not ended."
    first = leading(diagnosed, spent)
    if first is not None and first[0]["cause"] in _OF_A_RANK and min(first[0]["time"]["value"], run_s) > io_s:
        spent = dataclasses.replace(spent, io_s=min(first[0]["time"]["value"], run_s))
        return first_sentence(diagnosed, spent, whole=whole)
    if first is None and _opened(spent):
        return (
            f"{lead}; {_part(spent.opening_s, io_s)} were opening and closing files, and other calls that neither"
            " read nor write."
        )
    if first is None:
        return f"{lead} ({of}); {_without_cause(diagnosed, spent)}"
    part, words = _of_finding(first[0], io_s), phrase(*first)
    if first[0]["confidence"] == "high" and whole:
        return f"{lead}; {part} were {words}."
    cpu = f" A rank waited for a CPU for {100 * spent.no_cpu:.0f} % of the time: that is in it." if spent.no_cpu else ""
    return f"{lead} ({of}). No cause is certain; possibly {part.removeprefix('up to ')} were {words}.{cpu}"


def paying(statistics: Sequence[Document], program: str, processes: int) -> dict[str, str] | None:
    """Return what the library itself has measured: that delegates would pay for a file; None: nothing."""
    for row in statistics:
        if found := _PAYS.search(row["delegation"]):
            least, most, hint = found.groups()
            return {
                "text": "Delegates that collect these accesses",
                "command": concrete(f"mpirun -n RANKS mpiio-ext run -H {hint} -- PROGRAM", program, processes),
                "gain": f"{least} to {most} times faster, by what the library measured, if the file system moves 1 MiB"
                " in 10 to 1 ms",
                "most": most,
            }
    return None


def help_sentence(advice: Mapping[str, str] | None) -> str:
    """Return the second sentence; "" without advice."""
    if advice is None:
        return ""
    command = f": `{advice['command']}`" if advice["command"] else ""
    return f"What would help: {_small_first(advice['text'])}{command}. Gain: {advice['gain']}."


def _small_first(text: str) -> str:
    """Return a sentence as the end of another: without what it is about ("Many files: …"), its first letter small."""
    about, colon, rest = text.partition(": ")
    text = rest if colon and len(about.split()) <= _MOST_ABOUT else text
    return text[:1].lower() + text[1:]
