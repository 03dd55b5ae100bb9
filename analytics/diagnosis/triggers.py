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
from mpiio_ext.analytics.diagnosis.words import said
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
_MPI = "if MPI-IO calls move bytes of the critical files"


def _stripes(number: int) -> Callable[[str], Advice]:
    return lambda _: say.stripes(16, 1, None)[number]


TRIGGERS: tuple[Trigger, ...] = (
    Trigger(
        ("slow_ost",),
        "A storage target is slow.",
        "Alike files of 1 MiB or more, or requests to one stripe (DXT), take {slow} times as long there.",
        "four files or eight requests there, and few slow targets",
        ("slower than the others", "slower than those of the others"),
        (Offer(_ALWAYS, lambda _: say.contact(["1"])[0]), Offer(_ALWAYS, lambda _: say.contact(["1"])[1])),
    ),
    Trigger(
        ("slow_file",),
        "A rank, node or target is slow.",
        "One file takes {slow} times as long as its likes, of which there are {alike_files}, and OSTs do not explain"
        " it.",
        "",
        ("Some files take far longer",),
        (Offer(_ALWAYS, lambda _: say.imbalance(False)),),
    ),
    Trigger(
        ("small_requests",),
        "Each call costs more than its bytes.",
        "{small} of the requests to a file are of at most {small_bytes}, and {non_consecutive} of them do not follow"
        " the one before. Or a rank makes {many_calls} calls of at most {tiny_call_bytes}, or {some_collectives}"
        " collective calls of at most {tiny_bytes} together.",
        "{tiny_bytes} or less on average, and a fifth of the time in calls, unless ranks wait in MPI-IO calls for"
        " twice as long; or {many_collectives} such collective calls",
        (
            "The reads of critical files are small",
            "The writes of critical files are small",
            "Tiny pieces are ",
            "Collective calls have few bytes",
            "Each small ",
            "Small pieces are ",
        ),
        (
            Offer(
                "if the calls are collective, and all ranks make requests, nearly one a call", say.collective_buffering
            ),
            Offer("if the calls are independent, and ranks share the file", say.use_collective),
            Offer(
                "in the same case, unless fewer than {forward} of the requests lie behind the one before",
                lambda _: say.delegates(),
            ),
            Offer(
                "if the calls are independent, and each file has one rank; or calls of MPI-IO have tiny pieces",
                lambda _: say.larger_requests(True),
            ),
            Offer("without MPI-IO, in a job of several processes", lambda _: say.larger_requests(False)),
            Offer("without MPI-IO, in one process", lambda _: say.larger_requests(False, alone=True)),
            Offer(
                "if tiny pieces go through POSIX, each call a request",
                lambda _: say.larger_pieces(flushed=False, plain=True),
            ),
            Offer(
                "if tiny pieces go through the C library, with {flushed} flushes a call",
                lambda _: say.larger_pieces(flushed=True, plain=False),
            ),
            Offer(
                "if tiny pieces go through the C library, without flushes",
                lambda _: say.larger_pieces(flushed=False, plain=False),
            ),
            Offer(_MPI, lambda _: say.measure()),
        ),
    ),
    Trigger(
        ("pieces_of_one",),
        "One rank has the small pieces of all, as a header, and the others wait.",
        "Most requests are of 10 KiB or less, and others, of more than 100 KiB, have most of the bytes. The slowest"
        " rank has as many bytes more than the fastest as the small ones have, and twice the time of the others.",
        "common sizes in the log have exactly these bytes, and small ones take most of that time (DXT)",
        (" small pieces beside the large ones",),
        (
            Offer("if they are calls of MPI-IO", lambda _: say.larger_requests(True)),
            Offer("else", lambda _: say.larger_requests(False)),
        ),
    ),
    Trigger(
        ("read_modify_write",),
        "The MPI library reads, changes and rewrites ranges.",
        "POSIX reads {read_modify_write} of what MPI-IO writes, and no call asked for it; and it writes more than"
        " MPI-IO, or reads before each write.",
        "no MPI-IO reads, or {amplified} times what was asked for is written",
        ("The MPI library reads what it is about to overwrite", "The reads are not the program's"),
        (Offer(_ALWAYS, lambda _: say.no_sieving()[0]), Offer(_ALWAYS, lambda _: say.no_sieving()[1])),
    ),
    Trigger(
        ("read_before_write",),
        "The program reads each block, and overwrites it then.",
        "Reads and writes of a file alternate, have as many bytes, of {one_rank_bytes} or more, and the same last"
        " block; {forward} of either lie behind the one before, and a read is the first.",
        _ALWAYS,
        ("Each block is read before it is overwritten",),
        (Offer(_ALWAYS, lambda _: say.write_without_reading()),),
    ),
    Trigger(
        ("read_amplification",),
        "The MPI library reads ranges for pieces.",
        "POSIX reads {amplified} times what MPI-IO does, of a file that is not written.",
        _ALWAYS,
        ("The MPI library reads ",),
        (Offer(_ALWAYS, say.use_collective), Offer(_ALWAYS, lambda _: say.unsieved_reads())),
    ),
    Trigger(
        ("shared_pointer",),
        "Each call locks and rewrites a hidden file.",
        "Half as many requests to such a file as MPI-IO calls, and 50 at least.",
        "30 % of the time, in calls of {tiny_bytes} or less",
        ("Ranks wait for the shared file pointer",),
        (Offer(_ALWAYS, say.own_offsets),),
    ),
    Trigger(
        ("redundant_reads", "redundant_writes"),
        "Ranks read the same data, or one rank reads them again; or the same places are written again.",
        "{again} times the bytes up to the file's last one, and {alike_ranks} of ranks times these, of {one_rank_bytes}"
        " or more.",
        "reads of half of {small_bytes}, or {many_ranks} ranks; of writes, only if the file is read so as well, and"
        " fewer than {backward} of either lie behind the one before, as where a library moves data",
        ("Ranks read the same data", "The same data are read", "The same places of a file"),
        (
            Offer("if a library moves the data", lambda _: say.define_first()),
            Offer("if it is written", lambda _: say.write_once()),
            Offer("if each rank reads it once", lambda _: say.read_once()),
            Offer("if ranks read it again", lambda _: say.read_once(again=True)),
            Offer("if one process reads it", lambda _: say.read_once(again=True, alone=True)),
        ),
    ),
    Trigger(
        ("contention",),
        "Many processes meet at few OSTs.",
        "{contention} processes for each OST of the file, that move data, without collective calls.",
        "one OST and 16 processes; or 8 ranks for each at once (DXT)",
        ("a file that lies on",),
        (
            Offer("if more OSTs are known, or it is not known how many there are", _stripes(0)),
            Offer("in the same case", _stripes(1)),
            Offer(_ALWAYS, say.use_collective),
        ),
    ),
    Trigger(
        ("root_writes", "root_reads"),
        "One rank has the bandwidth and the memory of one node.",
        "{root} of the bytes by rank 0, or {one_rank} by another rank, of {one_rank_bytes} or more, without collective"
        " calls.",
        "{one_rank} of the bytes, and {busy_rank} of the critical time in calls",
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
        "Few ranks have the bandwidth of few nodes.",
        "At most half of the processes move all of {aggregated_bytes} or more, and are in calls for {busy_rank} of the"
        " critical time.",
        "",
        ("of the data",),
        (Offer(_ALWAYS, say.parallel_root),),
    ),
    Trigger(
        ("few_aggregators",),
        "One rank, or few, carry out the collective calls.",
        "One rank moves {one_rank} of a file of {aggregated_bytes} or more, alone or at a time (DXT); or at most a"
        " sixteenth of the ranks do, and half of the stripes. The calls take {aggregated} of the run time, or there are"
        " {node_ranks} ranks for each.",
        "{much_aggregated} of the run time, or so many ranks; {busy_aggregator} of the time in its calls, at"
        " {slow_rank} or more, no rank late, no slow windows (DXT)",
        ("Too few aggregators: ",),
        (
            Offer("if the file has one stripe, and there are more OSTs", _stripes(0)),
            Offer("in the same case", _stripes(1)),
            Offer(
                "if the file has several stripes, or their number is not known: `cb_nodes` is twice their number",
                lambda way: say.aggregators(way, 8),
            ),
        ),
    ),
    Trigger(
        ("many_aggregators",),
        "Ranks meet in locked stripes.",
        "{aggregators_per_ost} ranks that write for each OST, in collective calls, with requests below a stripe.",
        "half of the stripes are shared (DXT)",
        ("Too many aggregators: ",),
        (Offer(_ALWAYS, lambda way: say.aggregators(way, 4, fewer=True)),),
    ),
    Trigger(
        ("many_osts",),
        "Each open asks all OSTs of the file.",
        "A file of at most one stripe of data lies on {many_stripes} OSTs.",
        "",
        ("Too many OSTs: ",),
        (Offer(_ALWAYS, lambda _: say.fewer_stripes()),),
    ),
    Trigger(
        ("serialised",),
        "Files come one after the other.",
        "Critical files overlap for less than 1 - {serialised} of their time. Without I/O for {gaps} of the span, as"
        " between checkpoints, it is no cause.",
        "",
        ("Files are ",),
        (
            Offer("if MPI-IO moves the bytes, in several processes", say.overlap),
            Offer("without MPI-IO, in several processes", lambda way: say.overlap(way, mpi=False)),
            Offer("without MPI-IO, in one process", lambda way: say.overlap(way, mpi=False, alone=True)),
            Offer("with MPI-IO, in one process", lambda way: say.overlap(way, alone=True)),
        ),
    ),
    Trigger(
        ("small_files",),
        "Each file is opened for few bytes.",
        "{many_files} files of at most {small_file_bytes}; of a job whose bandwidth is {fast} or more, only if opens"
        " take longer than the data.",
        "",
        ("The job spends its time on many small files",),
        (Offer(_ALWAYS, lambda _: say.bundle()),),
    ),
    Trigger(
        ("metadata", "shared_opens"),
        "Opens, stats, seeks and syncs move no data; `shared_opens`: all ranks open the same files.",
        "{metadata} of a rank's time in calls.",
        "half of it, or files that are opened for little data; {many_opens} opens a process, {much_metadata} of the run"
        " time",
        ("Metadata ", "Every process opens", "Opens of the same file"),
        (
            Offer(
                "if a process opens, or looks up, most of the files {many_opens} times",
                lambda _: say.metadata(again=True),
            ),
            Offer("if there are {many_opens} files", lambda _: say.metadata(again=False, many=True)),
            Offer("if there are stats, and no file again and again", lambda _: say.metadata(again=False, stats=True)),
            Offer("if there are syncs or flushes", lambda _: say.metadata(again=False, syncs=True)),
            Offer("if there is none of these", lambda _: say.metadata(again=False)),
        ),
    ),
    Trigger(
        ("stragglers",),
        "One rank has more to do, or is slow.",
        "An average rank does not need {straggler} of the slowest one's time.",
        "it has {uneven} times the bytes of an average rank, and {busy_straggler} of the time in calls",
        ("Imbalance: ", "The slowest rank "),
        (
            Offer("if it has more bytes, without collective calls", lambda _: say.imbalance(True, False)),
            Offer("if it has more bytes, with collective calls", lambda _: say.imbalance(True)),
            Offer("if it has as many bytes", lambda _: say.imbalance(False)),
        ),
    ),
    Trigger(
        ("turns",),
        "Ranks work one after the other.",
        "{taking_turns} ranks move data, and at most {in_turn} are in a request at once, on average (DXT, HEATMAP)."
        " Some rank is in a request for {turning} of the time from the first to the last (DXT); or all of them"
        " together are in calls for {turning_calls} of it (HEATMAP; DXT, where no rank is in a request during syncs).",
        "DXT has all requests, and some rank is in one for {turning} of the time",
        ("Ranks take turns: ",),
        (Offer(_ALWAYS, say.at_once),),
    ),
    Trigger(
        ("late_rank",),
        "Collective calls wait for one rank.",
        "Each other rank waits for {late} of the time, on average.",
        "DXT has the calls of each rank; or a recording has waits at opens",
        ("Ranks wait in collective calls", "Ranks wait for one that comes late"),
        (Offer(_ALWAYS, lambda _: say.come_together(1)),),
    ),
    Trigger(
        ("exchange",),
        "Ranks exchange data, or wait.",
        "No rank is in a request for half of the time in collective calls.",
        "",
        ("Collective calls are not in requests",),
        (Offer(_ALWAYS, lambda _: say.come_together()),),
    ),
    Trigger(
        ("waiting_calls",),
        "Independent calls wait for locks, or copy.",
        "Calls take {waits} times as long as their requests, and the wait is 30 % of the time.",
        "requests are one after the other (DXT)",
        ("Ranks wait inside of MPI-IO calls",),
        (Offer(_ALWAYS, lambda _: say.no_locks()),),
    ),
    Trigger(
        ("syncs",),
        "Each sync waits for the storage.",
        "{synced} syncs a write, and {many_syncs} a rank.",
        "{slow_sync} each, {busy_sync} of the time",
        ("Writes are followed by syncs",),
        (Offer(_ALWAYS, lambda _: say.fewer_syncs()),),
    ),
    Trigger(
        ("slowed_down",),
        "Others load the storage, or it fails.",
        "Equal requests take {slow} times as long in some windows of time (DXT).",
        "the servers moved more for others",
        ("Equal requests take several times longer for a while",),
        (Offer(_ALWAYS, lambda _: say.other_load()),),
    ),
    Trigger(
        ("load_by_others",),
        "The same, seen by the servers.",
        "The job's share of what its OSTs moved is at most {own_share}.",
        "",
        ("Others load the job's OSTs",),
        (Offer(_ALWAYS, lambda _: say.other_load()),),
    ),
    Trigger(
        ("storage_fault",),
        "Disks are down or being emptied.",
        "The last `mmlsdisk` before the job shows it.",
        "",
        ("disks of the file system",),
        (),
    ),
    Trigger(
        ("unaligned",),
        "Two ranks write into one block, which the file system locks.",
        "{unaligned} of the requests to a shared file do not begin at blocks, on no local file system.",
        "90 % of large writes, on Lustre, GPFS or BeeGFS, without collective calls",
        ("Requests to shared files do not begin",),
        (
            Offer("if calls are collective", lambda _: say.align(collective=True)),
            Offer("if no call is", lambda _: say.align(collective=False)),
        ),
    ),
    Trigger(
        ("dominant_file",),
        "No counter explains why one file is slow.",
        "Without one file less than 1 - {dominant} of the path is left; its share of the time is {dominant_excess}"
        " times that of the bytes, and no rule is about it.",
        "",
        ("One file takes nearly all",),
        (Offer(_MPI, lambda _: say.measure()),),
    ),
)

_BANDWIDTHS, _TIMES = ("fast", "waiting", "slow_rank"), ("least", "slow_request", "slow_sync")


def _named(limits: Limits) -> dict[str, str]:
    """Return each threshold in words, with its name."""

    def words(name: str, value: float) -> str:
        if name.endswith("_bytes"):
            return size_text(value, exact=True)
        if name in _BANDWIDTHS:
            return said(value, "B/s")
        if name in _TIMES:
            return said(value, "s")
        return said(value, "share") if value < 1 and name not in ("synced", "flushed") else said(value, "count")

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
