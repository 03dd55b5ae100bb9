"""A failed run in words: the failure, its reason and its time, and the activity of the ranks at that moment.

Problem. The reader of a dead job's page wants to know first why it died. The reader of a page of a job that hung, and
was ended, wants to know which rank did not arrive.

Algorithm. What :mod:`mpiio_ext.common.endings` knows is the first sentence. A recording has the call that its process
was in (:mod:`mpiio_ext.pioneer.darshan.unfinished`); ranks in the same call of the same file are one line.

Guarantees. A run that has not failed gets no sentence. What a rank does between its calls of MPI-IO, and on files, is
not known, and is called so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.units import count_text, seconds_text

if TYPE_CHECKING:
    from mpiio_ext.common.endings import Failure

_MOST_RANKS, _MOST_LINES = 8, 6
_WITHIN = {
    "waiting": ", waiting for other ranks",
    "messages": ", in messages between nodes",
    "read": ", in a request to the file system",
    "write": ", in a request to the file system",
    "metadata": ", in a request to the file system",
}


def _ranks(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"rank {numbers[0]} was"
    more = f" and {len(numbers) - _MOST_RANKS:,} more" if len(numbers) > _MOST_RANKS else ""
    return f"ranks {', '.join(map(str, numbers[:_MOST_RANKS]))}{more} were"


def _span(values: Sequence[float]) -> str:
    least, most = seconds_text(min(values)), seconds_text(max(values))
    return most if least == most else f"{least} to {most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """Which calls ranks were in when they were ended.

    Attributes
    ----------
    lines : for a reader, the calls of most ranks first.
    longest_s, longest : the longest that a rank was in a call of I/O, and in which.
    of_files : name of a file and rank -> seconds of the rank in a call on it.
    in_mpiio : a rank was in a call of MPI-IO.
    """

    lines: Sequence[str] = ()
    longest_s: float = 0.0
    longest: str = ""
    of_files: Mapping[tuple[str, int], float] = field(default_factory=dict)
    in_mpiio: bool = False


def stood(folder: Path, ends: Mapping[str, int]) -> Stood:
    """Return which calls ranks were in when they were ended.

    `ends`: by host and process, when they had ended (ns since 1970), "" for all others.
    """
    from mpiio_ext.pioneer.darshan import recordings, unfinished
    from mpiio_ext.pioneer.darshan.names import clean

    found: dict[tuple[str, str], dict[int, float]] = {}
    outside, longest, of_files = list[int](), (0.0, ""), dict[tuple[str, int], float]()
    for head in recordings.heads([folder]):
        if head.rank < 0 or not head.running:
            continue
        recording = recordings.read(head.path)
        end_ns = ends.get(f"{head.host} {head.pid}", ends.get("", recording.last_ns))
        calls = unfinished.calls(recording)
        for call in calls:
            what = f"{call.what} of `{call.file.rsplit('/', 1)[-1]}`" if call.file else call.what
            spent_s = max((end_ns - call.since_ns) / 1e9, 0.0)
            within = _WITHIN.get(call.within, "") if call.what.startswith("MPI_") else ""
            found.setdefault((what, within), {})[head.rank] = spent_s
            if call.within:
                longest = max(longest, (spent_s, what))
                mine = (clean(call.file), head.rank)
                of_files[mine] = of_files.get(mine, 0.0) + spent_s
        if not calls:
            outside.append(head.rank)
    order = sorted(found.items(), key=lambda item: (-len(item[1]), min(item[1])))
    lines = [
        f"{_ranks(sorted(spans))} in {what} for {_span(list(spans.values()))}{within}"
        for (what, within), spans in order
    ]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"{count_text(len(lines) - _MOST_LINES, 'more call')}, of fewer ranks each"]
    if outside and found:
        lines.append(f"{_ranks(sorted(outside))} in no call on files and in no call of MPI-IO")
    return Stood(
        lines=lines,
        longest_s=longest[0],
        longest=longest[1],
        of_files=of_files,
        in_mpiio=any(what.startswith("MPI_File_") for what, _ in found),
    )


def with_failure(document: Mapping[str, Any], failure: Failure, start_ns: int | None, at_end: Stood) -> dict[str, Any]:
    """Return a document that begins with the failure of its run; an unchanged document if the run has not failed.

    Parameters
    ----------
    document : of the run.
    failure : how it has failed.
    start_ns : when it began (ns since 1970); None: that is not known.
    at_end : what ranks were doing then.
    """
    if not failure:
        return dict(document)
    after = ""
    if failure.moment_ns is not None and start_ns is not None:
        after = f" after {seconds_text(max(failure.moment_ns - start_ns, 0) / 1e9)}"
    read, _, written = dict(document["facts"]).get("read, written by the program", "").partition(", ")
    moved = [f"completed calls had read {read} and written {written}"] if written else []
    return {
        **document,
        "sentence": f"The job failed{after}: {failure.reason()}. {document['sentence']}",
        "ended": failure.text(),
        "at_end": [*failure.further(), *at_end.lines, *moved],
    }
