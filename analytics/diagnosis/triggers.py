"""The table of triggers: of each cause its mechanism, condition, sentence, and each advice with its own condition.

Problem. A reader wants to know from which number on something is called a cause, and why he gets this advice.
Algorithm. :data:`TRIGGERS` has the words beside the advice itself; numbers are those of
:class:`mpiio_ext.analytics.diagnosis.limits.Limits`, each with its name. :func:`markdown` makes a page of it.
Guarantees. Tests compare the page with the table, the causes with the rules, and findings on real logs with both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.limits import Limits
from mpiio_ext.analytics.diagnosis.model import Advice
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.common.printing import echo
from mpiio_ext.common.units import size_text


@dataclasses.dataclass(frozen=True)
class Offer:
    """An advice, and when a finding has it: `make` returns it for a direction."""

    when: str
    make: Callable[[str], Advice]


@dataclasses.dataclass(frozen=True)
class Trigger:
    """A cause.

    Attributes
    ----------
    causes : sequence of str
        Its names, the first that of its rule.
    mechanism : why it is slow.
    condition : when it is reported; thresholds by their names between braces.
    sure : when its confidence is high; "" for never.
    sentences : sequence of str
        Parts of the titles of its findings.
    offers : sequence of Offer
    """

    causes: Sequence[str]
    mechanism: str
    condition: str
    sure: str
    sentences: Sequence[str]
    offers: Sequence[Offer]


_ALWAYS = "always"
_NO_OR_WIDE = "if POSIX writes at most {no_gaps} times what MPI-IO writes (no gaps), or {wide_gaps} times as much"
_MPI = "if MPI-IO calls move bytes of the critical files"


def _stripes(number: int) -> Callable[[str], Advice]:
    return lambda _: say.stripes(16, 1, None)[number]


TRIGGERS: tuple[Trigger, ...] = (
    Trigger(
        ("slow_ost",),
        "A storage target is slow.",
        "On one storage target, alike files take {slow} times as long for a byte as on the median target. Or"
        " requests to one stripe take {slow} times as long (DXT).",
        "if four alike files, or eight requests, go to that target, and at most a quarter of the targets are slow",
        ("slower than the others", "slower than those of the others"),
        (Offer(_ALWAYS, lambda _: say.contact(["1"])[0]), Offer(_ALWAYS, lambda _: say.contact(["1"])[1])),
    ),
    Trigger(
        ("slow_file",),
        "A rank, a node or a target is slow.",
        "One file takes {slow} times as long for a byte as the median of at least {alike_files} alike files, and no"
        " storage target explains it.",
        "",
        ("Some files take far longer",),
        (Offer(_ALWAYS, lambda _: say.imbalance(False)),),
    ),
    Trigger(
        ("small_requests",),
        "Each call costs more than its bytes.",
        "Requests to a file are small and scattered: {small} of them have at most {small_bytes}, and"
        " {non_consecutive} of them do not follow the one before. That does not apply to collective calls on a file"
        " system of one node whose requests have more than {tiny_bytes} each. Or a rank makes {many_calls} calls of at"
        " most {tiny_call_bytes} each. Or a rank makes {some_collectives} collective calls, to each of which all ranks"
        " together give at most {tiny_bytes}. Or requests of at most {tiny_bytes} take {slow_request} each, and move"
        " at most {waiting}. Or aggregators make {small_rounds} requests for each collective call, one behind the"
        " other, of a quarter of {small_bytes} or less.",
        "if the requests have at most {tiny_bytes} on average, and take a fifth of the time in calls, unless ranks wait"
        " in MPI-IO calls for twice as long; or if there are {many_collectives} such collective calls, or each round of"
        " {tiny_bytes} takes {slow_request}. If most requests are far smaller than the mean, the large ones have to"
        " take less than half of the time: none of them takes longer than the longest request",
        (
            "The reads of critical files are small",
            "The writes of critical files are small",
            "Tiny pieces are ",
            "Collective calls have few bytes",
            "Collective calls are carried out in small rounds",
            "Each small ",
            "Small pieces are ",
        ),
        (
            Offer("if aggregators make the requests in small rounds", lambda _: say.LARGER_ROUNDS),
            Offer(
                "if the calls are collective, and all ranks make requests, nearly one for each call",
                say.collective_buffering,
            ),
            Offer("if collective calls write from front to back, and leave gaps (DXT)", lambda _: say.WHOLE_RECORDS),
            Offer("if the calls are independent, and ranks share the file", say.use_collective),
            Offer(
                "if ranks write between one another, more than {tiny_bytes} in each request", lambda _: say.OWN_REGIONS
            ),
            Offer(
                "if the calls are independent, ranks share the file, and {forward} or more of the requests lie"
                " behind the one before",
                lambda _: say.DELEGATES,
            ),
            Offer(
                "if the calls are independent, and one rank uses each file; or MPI-IO calls move tiny pieces",
                lambda way: say.larger_requests(way, mpiio=True),
            ),
            Offer("if several processes work without MPI-IO", say.larger_requests),
            Offer("if one process, or a program without MPI, works", lambda way: say.larger_requests(way, alone=True)),
            Offer("if HDF5 works without MPI-IO", lambda way: say.larger_requests(way, hdf5=True)),
            Offer(
                "if HDF5 works in one process, or without MPI",
                lambda way: say.larger_requests(way, hdf5=True, alone=True),
            ),
            Offer(
                "if tiny pieces go through POSIX, and each call is a request",
                lambda _: say.larger_pieces(flushed=False, plain=True),
            ),
            Offer(
                "if tiny pieces go through the C library, with {flushed} flushes for each call",
                lambda _: say.larger_pieces(flushed=True, plain=False),
            ),
            Offer(
                "if tiny pieces go through the C library, without flushes",
                lambda _: say.larger_pieces(flushed=False, plain=False),
            ),
            Offer(_MPI, lambda _: say.MEASURE),
        ),
    ),
    Trigger(
        ("pieces_of_one",),
        "One rank has the small pieces of all, as a header, and the others wait.",
        "Most requests have 10 KiB or less, and others, of more than 100 KiB, have most of the bytes. The slowest"
        " rank has as many bytes more than the fastest as the small requests have, and takes twice the time of the"
        " others.",
        "if common sizes in the log have exactly these bytes, and the small ones take most of that time (DXT)",
        (" small pieces beside the large ones",),
        (
            Offer("if they are calls of MPI-IO", lambda way: say.larger_requests(way, mpiio=True)),
            Offer("else", say.larger_requests),
        ),
    ),
    Trigger(
        ("hdf5_metadata",),
        "HDF5 keeps groups, attributes and headers in small pieces of the file, and each flush writes them.",
        "HDF5 opens a file, which gets {wide_gaps} times the bytes of its datasets, by {some_collectives} requests of"
        " {hdf5_bytes} or less on average, twice as many as the calls that access datasets. Or so many requests have"
        " 1 KiB or less, and its datasets have {wide_gaps} times the bytes that these can have. The log needs Darshan's"
        " module of HDF5.",
        "if no dataset is accessed",
        ("its own metadata (groups, attributes, headers)",),
        (
            Offer(
                "if a process flushes the files it writes {many_opens} times",
                lambda way: say.hdf5_metadata(way, flushed=True),
            ),
            Offer("else", lambda way: say.hdf5_metadata(way, flushed=False)),
        ),
    ),
    Trigger(
        ("read_modify_write",),
        "The MPI library reads a range of the file, changes pieces of it, and writes the range again.",
        "Through POSIX the job reads bytes that no MPI-IO call asked for: {read_modify_write} of what MPI-IO"
        " writes. And POSIX writes more than MPI-IO, or reads before each write.",
        "if no MPI-IO call reads, or POSIX writes {amplified} times what MPI-IO writes",
        ("The MPI library reads what it is about to overwrite", "The reads are not the program's"),
        (
            Offer(_NO_OR_WIDE, lambda _: say.NO_SIEVING[0]),
            Offer(_NO_OR_WIDE, lambda _: say.NO_SIEVING[1]),
            Offer("else", lambda _: say.MEASURE),
        ),
    ),
    Trigger(
        ("read_before_write",),
        "The program reads each block, and overwrites it then.",
        "Reads and writes of a file alternate, have as many bytes, of {one_rank_bytes} or more, and the same last"
        " block; {forward} of either lie behind the one before, and a read is the first.",
        _ALWAYS,
        ("Each block is read before it is overwritten",),
        (Offer(_ALWAYS, lambda _: say.WRITE_WITHOUT_READING),),
    ),
    Trigger(
        ("read_amplification",),
        "The MPI library reads whole ranges where the program wants pieces.",
        "POSIX reads {amplified} times what MPI-IO reads, from a file that the job does not write.",
        _ALWAYS,
        ("The MPI library reads ",),
        (Offer(_ALWAYS, say.use_collective),),
    ),
    Trigger(
        ("shared_pointer",),
        "Each call locks and rewrites the hidden file that has the shared pointer.",
        "The hidden file gets half as many requests as there are MPI-IO calls, and at least 50. Or {some_collectives}"
        " calls or more, of {tiny_bytes} or less, name no place and no view, and ranks fill the file, pieces of one"
        " between those of others (recordings of this library).",
        "if the calls take 30 % of the time, and move {tiny_bytes} or less each",
        ("Ranks wait for the shared file pointer",),
        (Offer(_ALWAYS, say.own_offsets),),
    ),
    Trigger(
        ("redundant_reads", "redundant_writes"),
        "Ranks read the same data, or one rank reads them again; or ranks write the same places again.",
        "The job moves the bytes of a file, up to the last one that it moves, {again} times or more. If several"
        " ranks read the file, they move these bytes at least as often as {alike_ranks} of the number of ranks. The"
        " file has {one_rank_bytes} or more.",
        "for reads, if requests have half of {small_bytes} (or {tiny_bytes}, if each rank reads the file {again}"
        " times), or {many_ranks} ranks read; for writes, only if one rank moves as many bytes more than the fastest as"
        " the file has (fill values), or a library moves data within the file: the job reads the file as often, and"
        " fewer than {backward} of the requests, and one for each move of a rank if the file grows, lie behind the one"
        " before; for both, if HDF5 accesses whole chunks"
        " for parts of them",
        (
            "Ranks read the same data",
            "The same data are read",
            "whole chunks again and again for parts of them",
            "The same places of a file",
            "One rank writes a whole file",
        ),
        (
            Offer("if one rank fills the file", lambda _: say.NO_FILL),
            Offer("if a library moves data within the file", lambda _: say.DEFINE_FIRST),
            Offer(
                "if HDF5 reads {again} times the bytes that the program asks of datasets with chunks",
                lambda _: say.CHUNK_CACHE,
            ),
            Offer("if the job writes the file", lambda _: say.WRITE_ONCE),
            Offer("if each rank reads the file once", lambda _: say.read_once()),
            Offer("if ranks read the file again", lambda _: say.read_once(again=True)),
            Offer("if one process reads the file", lambda _: say.read_once(again=True, alone=True)),
        ),
    ),
    Trigger(
        ("contention",),
        "Many processes use few OSTs at the same time.",
        "For each OST of the file {contention} processes move data, without collective calls.",
        "if 16 processes use one OST, or 8 ranks for each OST are in requests at once (DXT)",
        ("a file that lies on",),
        (
            Offer("if the file system has more OSTs, or an unknown number", _stripes(0)),
            Offer("in the same case", _stripes(1)),
            Offer(_ALWAYS, say.use_collective),
        ),
    ),
    Trigger(
        ("root_writes", "root_reads"),
        "One rank has only the bandwidth and the memory of one node.",
        "Rank 0 moves {root} of the bytes, or another rank moves {one_rank}, without collective calls. The job"
        " moves {one_rank_bytes} or more.",
        "if the rank moves {one_rank} of the bytes, and is in calls for {busy_rank} of the critical time",
        ("Rank 0 ", "One rank "),
        (
            Offer(_ALWAYS, say.parallel_root),
            Offer(
                "if collective calls write the file, and did not ask for most of its bytes",
                lambda way: say.parallel_root(way, filled=True),
            ),
        ),
    ),
    Trigger(
        ("few_writers", "few_readers"),
        "Few ranks have only the bandwidth of few nodes.",
        "At most half of the processes move all bytes, {aggregated_bytes} or more, and the slowest of them is in"
        " calls for {busy_rank} of the critical time.",
        "",
        ("of the data",),
        (Offer(_ALWAYS, say.parallel_root),),
    ),
    Trigger(
        ("few_aggregators",),
        "One rank, or few, make the requests of the collective calls.",
        "One rank moves {one_rank} of a file of {aggregated_bytes} or more, or one rank at a time does (DXT). Or at"
        " most one rank in sixteen moves data, and at most one for two stripes. The calls take {aggregated} of the"
        " run time, or each of these ranks works for {node_ranks} ranks.",
        "if the calls take {much_aggregated} of the run time, or each of these ranks works for so many; and the"
        " rank is in its calls for {busy_aggregator} of that time, moves {slow_rank} or more, no other rank is late,"
        " and the storage is not slow for a while (DXT)",
        ("Too few aggregators: ",),
        (
            Offer("if the file has one stripe, and there are more OSTs", _stripes(0)),
            Offer("in the same case", _stripes(1)),
            Offer(
                "if the file has several stripes, or an unknown number: `cb_nodes` is twice the number",
                lambda way: say.aggregators(way, 8),
            ),
        ),
    ),
    Trigger(
        ("many_aggregators",),
        "Ranks write into the same stripes, which the file system locks.",
        "For each OST {aggregators_per_ost} ranks write, in collective calls, and their requests are smaller than a"
        " stripe.",
        "if several ranks write half of the stripes (DXT)",
        ("Too many aggregators: ",),
        (Offer(_ALWAYS, lambda way: say.aggregators(way, 4, fewer=True)),),
    ),
    Trigger(
        ("many_osts",),
        "Each open asks all OSTs of the file.",
        "The data of a file fit into one stripe, and the file lies on {many_stripes} OSTs.",
        "",
        ("Too many OSTs: ",),
        (Offer(_ALWAYS, lambda _: say.FEWER_STRIPES),),
    ),
    Trigger(
        ("serialised",),
        "The job accesses its files one after the other.",
        "The critical files do not overlap for {serialised} of their time. It is no cause if the job has no I/O for"
        " {gaps} of the time from the first access to the last, as between checkpoints; nor if one rank of several is"
        " in calls on files of its own for {root} of the critical time, and {uneven} times as long as an average one.",
        "",
        ("Files are ",),
        (
            Offer("if MPI-IO moves the bytes, and the job has several processes", say.overlap),
            Offer("if several processes work without MPI-IO", lambda way: say.overlap(way, mpi=False)),
            Offer("if one process works without MPI-IO", lambda way: say.overlap(way, mpi=False, alone=True)),
            Offer("if one process works with MPI-IO", lambda way: say.overlap(way, alone=True)),
        ),
    ),
    Trigger(
        ("small_files",),
        "The job opens each file for few bytes.",
        "The job accesses {many_files} files of at most {small_file_bytes}. If its bandwidth is {fast} or more,"
        " opens have to take longer than the data.",
        "",
        ("The job spends its time on many small files",),
        (Offer(_ALWAYS, lambda _: say.BUNDLE),),
    ),
    Trigger(
        ("metadata", "shared_opens"),
        "Opens, stats, seeks and syncs move no data. `shared_opens`: all ranks open the same files.",
        "These calls take {metadata} of the time that a rank is in calls.",
        "if they take half of that time, or the job opens files for little data; and a process makes {many_opens}"
        " opens, and the calls take {much_metadata} of the run time",
        ("Metadata ", "Every process opens", "Opens of the same file"),
        (
            Offer(
                "if a process opens, or looks up, most of the files {many_opens} times",
                lambda _: say.metadata(again=True),
            ),
            Offer("if the job opens {many_opens} files", lambda _: say.metadata(again=False, many=True)),
            Offer(
                "if the calls are stats, and no process opens a file again and again",
                lambda _: say.metadata(again=False, stats=True),
            ),
            Offer("if the calls are syncs or flushes", lambda _: say.metadata(again=False, syncs=True)),
            Offer("if none of these conditions is true", lambda _: say.metadata(again=False)),
        ),
    ),
    Trigger(
        ("opening",),
        "The MPI library opens, closes or sets views, or ranks wait for one another in these calls.",
        "These calls of MPI-IO take half of the time that a rank is in calls, without waiting for a slower rank, and"
        " {much_metadata} of the run time, and {slow_opening} or a process makes {many_opens} opens; no rank is late,"
        " and the calls of POSIX below take less than {metadata}.",
        "",
        ("MPI-IO calls that open and close files",),
        (
            Offer("if a process opens a file twice or more", lambda _: say.open_once()),
            Offer("if each process opens each file once", lambda _: say.open_once(again=False)),
        ),
    ),
    Trigger(
        ("stragglers",),
        "One rank has more to do than the others, or is slow.",
        "An average rank does not need {straggler} of the time that the slowest rank is in calls: on a file that ranks"
        " share, or on files that ranks have for themselves, of which that rank moves {uneven} times the bytes of an"
        " average one.",
        "if that rank moves {uneven} times the bytes of an average rank, and is in calls for {busy_straggler} of"
        " the critical time",
        ("Imbalance: ", "The slowest rank "),
        (
            Offer(
                "if that rank has more bytes, and the calls are not collective", lambda _: say.imbalance(True, False)
            ),
            Offer("if that rank has more bytes, and the calls are collective", lambda _: say.imbalance(True)),
            Offer("if that rank has as many bytes as the others", lambda _: say.imbalance(False)),
        ),
    ),
    Trigger(
        ("turns",),
        "Ranks work one after the other.",
        "At least {taking_turns} ranks move data, and on average at most {in_turn} of them are in a request at once"
        " (DXT, HEATMAP). Some rank is in a request for {turning} of the time from the first to the last (DXT); or all"
        " of them together are in calls for {turning_calls} of it (HEATMAP; DXT, where no rank is in a request during"
        " syncs).",
        "if DXT has all requests, and some rank is in one for {turning} of the time",
        ("Ranks take turns: ",),
        (Offer(_ALWAYS, say.at_once),),
    ),
    Trigger(
        ("late_rank",),
        "Ranks wait in collective calls for one rank.",
        "Each other rank waits for {late} of the time, on average.",
        "if DXT has the calls of each rank, or a recording has how long ranks wait at opens",
        ("Ranks wait in collective calls", "Ranks wait for one that comes late"),
        (Offer(_ALWAYS, lambda _: say.come_together(1)),),
    ),
    Trigger(
        ("exchange",),
        "Ranks exchange data, or wait for one that comes late.",
        "For half of the time in collective calls no rank is in a request, and that is half of the time of a rank in"
        " MPI-IO calls, reads and writes together.",
        "",
        ("Collective calls are not in requests",),
        (Offer(_ALWAYS, lambda _: say.come_together()),),
    ),
    Trigger(
        ("waiting_calls",),
        "Independent calls wait for locks, or copy pieces.",
        "Calls take {waits} times as long as their requests, and ranks wait for 30 % of the time.",
        "if the requests of all ranks come one after the other (DXT)",
        ("Ranks wait inside of MPI-IO calls",),
        (Offer(_ALWAYS, lambda _: say.NO_LOCKS),),
    ),
    Trigger(
        ("syncs",),
        "Each sync waits for the storage.",
        "A file has {synced} syncs for each write, and {many_syncs} for each rank.",
        "if a sync takes {slow_sync}, and syncs take {busy_sync} of the critical time",
        ("Writes are followed by syncs",),
        (Offer(_ALWAYS, lambda _: say.FEWER_SYNCS),),
    ),
    Trigger(
        ("slowed_down",),
        "Other jobs load the storage, or it is at fault.",
        "In some windows of time equal requests take {slow} times as long as usual (DXT).",
        "if the servers moved more for other jobs",
        ("Equal requests take several times longer for a while",),
        (Offer(_ALWAYS, lambda _: say.OTHER_LOAD),),
    ),
    Trigger(
        ("load_by_others",),
        "Other jobs load the storage: the servers' logs show it.",
        "At most {own_share} of what the job's OSTs moved is the job's.",
        "",
        ("Others load the job's OSTs",),
        (Offer(_ALWAYS, lambda _: say.OTHER_LOAD),),
    ),
    Trigger(
        ("storage_fault",),
        "Disks are down, or the administrators empty them.",
        "The last list of `mmlsdisk` before the job names such disks.",
        "",
        ("disks of the file system",),
        (),
    ),
    Trigger(
        ("unaligned",),
        "Two ranks write into one block, which the file system locks.",
        "{unaligned} of the requests to a shared file do not begin at a block, and the file system is not a local one.",
        "if ranks write large pieces, 90 % of them not at blocks, to Lustre, GPFS or BeeGFS, without collective calls",
        ("Requests to shared files do not begin",),
        (
            Offer("if calls are collective", lambda _: say.align(collective=True)),
            Offer("if no call is collective", lambda _: say.align(collective=False)),
        ),
    ),
    Trigger(
        ("dominant_file",),
        "One file is slow, and no counter explains why.",
        "Without this file the critical time would be shorter by {dominant}, its share of the time is"
        " {dominant_excess} times its share of the bytes, and no rule is about it.",
        "",
        ("One file takes nearly all",),
        (Offer(_MPI, lambda _: say.MEASURE),),
    ),
)

_BANDWIDTHS, _TIMES = ("fast", "waiting", "slow_rank"), ("least", "slow_request", "slow_sync", "slow_opening")


def _named(limits: Limits) -> dict[str, str]:
    """Return each threshold in words, with its name."""

    def words(name: str, value: float) -> str:
        if name.endswith("_bytes"):
            return size_text(value, exact=True)
        if name in _BANDWIDTHS:
            return worded(value, "B/s")
        if name in _TIMES:
            return worded(value, "s")
        return worded(value, "share") if value < 1 and name not in ("synced", "flushed") else worded(value, "count")

    return {name: f"{words(name, value)} (`{name}`)" for name, value in vars(limits).items()}


def markdown() -> str:
    """Return the table as sections of a page."""
    limits, lines = _named(Limits()), []
    for one in TRIGGERS:
        names = ", ".join(f"`{name}`" for name in one.causes)
        sure = one.sure.format(**limits) or "never"
        lines += [
            f"## {names}",
            "",
            one.mechanism,
            "",
            f"- **Reported if:** {one.condition.format(**limits)}",
            f"- **High confidence:** {sure}.",
            f"- **Sentence:** {'; '.join(f'*… {text.strip()} …*' for text in one.sentences)}",
            "",
        ]
        if one.offers:
            lines += ["| advice | when |", "|---|---|"]
            for offer in one.offers:
                made = offer.make("write")
                lines.append(f"| {made.text} | {offer.when.format(**limits)} |")
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    echo(markdown(), nl=False)
