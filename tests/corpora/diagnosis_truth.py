"""What the programs of the diagnosis corpus do, and whether a diagnosis of their logs is right.

Guarantees. The truth is what a program was made to do, not what its log says. A kind whose cost is not in the log
(requests that are not aligned, waiting of others) has no cause that must be found, only ones that may not. A first
sentence is right where it names the largest cause, or none where there is none. Another cause of high confidence is
wrong unless the program does that as well.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.sources.darshan import convert


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
    """What one program does.

    Attributes
    ----------
    causes : cause -> its share of the I/O time, largest first; empty: nothing may be said with high confidence.
    instead : causes that name the same, or "" where saying nothing is right, too.
    possible : a log cannot make sure of the cause: it is right where it is the first possible one.
    """

    causes: Mapping[str, float]
    instead: tuple[str, ...] = ()
    possible: bool = False

    @property
    def first(self) -> str:
        """Return the largest cause; "" for none."""
        return next(iter(self.causes), "")


def _kind(cause: str = "", *instead: str, possible: bool = False) -> Kind:
    return Kind(causes={cause: 1.0} if cause else {}, instead=instead, possible=possible)


#: Cause -> programs that have this one alone; "": nothing is wrong with them.
_ONE_CAUSE = {
    "root_writes": "one_writer gather_and_write last_rank_writes one_writer_and_headers preallocated one_gives_all",
    "root_reads": "one_reader middle_reader",
    "few_aggregators": "few_aggregators one_aggregator_read one_aggregator_rows split_writes",
    "small_requests": (
        "no_buffering small_independent small_posix random_reads strided_reads strided_posix append_all "
        "seek_writes view_unsieved random_updates column_reads vector_writes seek_mpi records_apart "
        "stdio_bytes append_log tiny_collectives small_rounds two_tables records_of_ranks_in_turn"
    ),
    "read_modify_write": "read_modify_write view_sieved collective_holes sieved_records",
    "metadata": "metadata_storm open_per_record rename_each walk_files root_metadata temporary_files",
    "stragglers": "imbalance uneven_files",
    "": (
        "even_files unaligned large_independent small_consecutive well_behaved little_io unaligned_posix "
        "mostly_compute large_own_files collective_large checkpoint stdio_blocks restart collective_rows long_run "
        "uneven_collective large_random sync_once read_back late_start ordered_blocks"
    ),
    "syncs": "sync_per_write synced_files",
}
_SINGLE = {name: _kind(cause) for cause, names in _ONE_CAUSE.items() for name in names.split()} | {
    "shared_opens": _kind("shared_opens"),
    "text_seeks": _kind("seeks", "small_requests"),
    "sieved_reads": _kind("read_amplification"),
    "fill_values": _kind("redundant_writes"),
    "reader_broadcast": _kind("root_reads", possible=True),  # the broadcast takes most of the time
    "stat_storm": _kind("metadata", "shared_opens", ""),  # newer C libraries hide stat from Darshan
    "tiny_files": _kind("metadata", "small_files"),
    "busy_rank": _kind("stragglers", "root_writes"),  # of two ranks it has 91 %
    "redundant_reads": _kind("redundant_reads", ""),
    "stdio_lines": _kind("small_requests", ""),
    "random_samples": _kind("small_requests", ""),
    "slow_target": _kind("slow_file", possible=True),
    "two_writers": _kind("few_writers", possible=True),  # of more than two ranks
    "open_per_step": _kind("shared_opens", "metadata"),
    "busy_reader": _kind("stragglers", "root_reads"),
    "own_copies": _kind("", "redundant_reads"),
    "atomic_writes": _kind("waiting_calls", possible=True),
    "ranks_in_turn": _kind("turns", ""),
    "shared_records": _kind("shared_pointer", "small_requests"),
    "late_to_collectives": _kind("late_rank", ""),  # without DXT it is one of two things
    "filled_before": _kind("root_writes", "stragglers"),
    "own_parts": _kind("redundant_reads", ""),
    "backward_reads": _kind("small_requests", ""),
    "synchronous_writes": _kind("small_requests", possible=True),
    "scratch_blocks": _kind("", "redundant_reads"),
    "small_broadcasts": _kind("root_reads", ""),  # the broadcasts take most of the time
    "ten_times": _kind("stragglers", "root_writes"),  # of two ranks it has 91 %
    "direct_writes": _kind("small_requests", possible=True),
    "late_to_close": _kind("late_rank", possible=True),  # whether it is late to open or to close is not in a log
    "uneven_writes": _kind("stragglers", "root_writes"),
    "files_beside": _kind("metadata", "shared_opens"),
    "two_sizes": _kind("small_requests", ""),  # without DXT the large ones may take the time
}
_MIXED = (
    ("one_writer", "metadata_storm"),
    ("small_independent", "one_writer"),
    ("metadata_storm", "read_modify_write"),
    ("few_aggregators", "small_posix"),
    ("shared_opens", "imbalance"),
)
#: Each pair both ways: the first has three quarters of the time.
_MIXTURES = {
    f"{more}:0.75+{less}:0.25": Kind(causes={_SINGLE[more].first: 0.75, _SINGLE[less].first: 0.25})
    for pair in _MIXED
    for more, less in (pair, pair[::-1])
}
#: Name -> what it does.
KINDS: dict[str, Kind] = _SINGLE | _MIXTURES


def truth(row: dict[str, Any]) -> Kind:
    """Return what the program of a log does; of a mixture, in the order of its own clock."""
    kind, took = KINDS[row["kind"]], row.get("seconds", {})
    parts = [part.partition(":")[0] for part in row["kind"].split("+")]
    if len(parts) > 1 and set(parts) == set(took):
        causes = {cause: took[part] / sum(took.values()) for part, cause in zip(parts, kind.causes, strict=True)}
        kind = dataclasses.replace(kind, causes=dict(sorted(causes.items(), key=lambda each: -each[1])))
    return kind


def judged(row: dict[str, Any], folder: pathlib.Path) -> dict[str, Any]:
    """Return what is said of one log, and whether that is right."""
    kind, tables = truth(row), convert([row["log"]], str(folder)).tables
    told = [one["document"] for one in diagnoses(tables, Known(activity=activity_of(folder / row["log"], tables)))]
    findings = [each for one in told for each in one["findings"]]
    high = [each["cause"] for each in findings if each["confidence"] == "high"]
    first, right = (high[0] if high else ""), {kind.first, *kind.instead}
    if kind.possible and not high:
        right = {""} if findings and findings[0]["cause"] == kind.first else {"?"}
    wrong = sorted(set(high) - set(kind.causes) - set(kind.instead))
    return {
        **row,
        "first": first,
        "high": high,
        "right": first in right,
        "wrong": wrong,
        "sentences": [one["conclusion"] for one in told],
    }
