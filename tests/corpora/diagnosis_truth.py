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


_SINGLE = {
    "one_writer": _kind("root_writes"),
    "one_reader": _kind("root_reads"),
    "few_aggregators": _kind("few_aggregators"),
    "no_buffering": _kind("small_requests"),
    "read_modify_write": _kind("read_modify_write"),
    "small_independent": _kind("small_requests"),
    "small_posix": _kind("small_requests"),
    "random_reads": _kind("small_requests"),
    "strided_reads": _kind("small_requests"),
    "metadata_storm": _kind("metadata"),
    "shared_opens": _kind("shared_opens"),
    "imbalance": _kind("stragglers"),
    "uneven_files": _kind("stragglers"),
    "even_files": _kind(),
    "unaligned": _kind(),
    "large_independent": _kind(),
    "small_consecutive": _kind(),
    "well_behaved": _kind(),
    "little_io": _kind(),
    "strided_posix": _kind("small_requests"),
    "reader_broadcast": _kind("root_reads", possible=True),  # the broadcast takes most of the time
    "open_per_record": _kind("metadata"),
    "sync_per_write": _kind("syncs"),
    "stat_storm": _kind("metadata", "shared_opens", ""),  # newer C libraries hide stat from Darshan
    "tiny_files": _kind("metadata", "small_files"),
    "append_all": _kind("small_requests"),
    "seek_writes": _kind("small_requests"),
    "busy_rank": _kind("stragglers", "root_writes"),  # of two ranks it has 91 %
    "view_sieved": _kind("read_modify_write"),
    "view_unsieved": _kind("small_requests"),
    "one_aggregator_read": _kind("few_aggregators"),
    "collective_holes": _kind("read_modify_write"),
    "unaligned_posix": _kind(),
    "redundant_reads": _kind("redundant_reads", ""),
    "mostly_compute": _kind(),
    "large_own_files": _kind(),
    "collective_large": _kind(),
    "stdio_lines": _kind("small_requests", ""),
    "random_samples": _kind("small_requests", ""),
    "checkpoint": _kind(),
    "gather_and_write": _kind("root_writes"),
    "slow_target": _kind("slow_file", possible=True),
    "two_writers": _kind("few_writers", possible=True),  # of more than two ranks
    "last_rank_writes": _kind("root_writes"),
    "random_updates": _kind("small_requests"),
    "column_reads": _kind("small_requests"),
    "open_per_step": _kind("shared_opens", "metadata"),
    "rename_each": _kind("metadata"),
    "text_seeks": _kind("small_requests"),
    "stdio_blocks": _kind(),
    "restart": _kind(),
    "collective_rows": _kind(),
    "busy_reader": _kind("stragglers", "root_reads"),
    "vector_writes": _kind("small_requests"),
    "one_aggregator_rows": _kind("few_aggregators"),
    "sieved_records": _kind("read_modify_write"),
    "long_run": _kind(),
    "own_copies": _kind("", "redundant_reads"),
    "middle_reader": _kind("root_reads"),
    "walk_files": _kind("metadata"),
    "seek_mpi": _kind("small_requests"),
    "uneven_collective": _kind(),
    "large_random": _kind(),
    "sync_once": _kind(),
    "records_apart": _kind("small_requests"),
    "one_writer_and_headers": _kind("root_writes"),
    "atomic_writes": _kind("waiting_calls", possible=True),
    "ranks_in_turn": _kind("turns", ""),
    "root_metadata": _kind("metadata"),
    "stdio_bytes": _kind("small_requests"),
    "append_log": _kind("small_requests"),
    "tiny_collectives": _kind("small_requests"),
    "shared_records": _kind("shared_pointer", "small_requests"),
    "sieved_reads": _kind("read_amplification"),
    "late_to_collectives": _kind("late_rank", ""),  # without DXT it is one of two things
    "read_back": _kind(),
    "filled_before": _kind("root_writes", "stragglers"),
    "own_parts": _kind("redundant_reads", ""),
    "backward_reads": _kind("small_requests", ""),
    "synchronous_writes": _kind("small_requests", possible=True),
    "scratch_blocks": _kind("", "redundant_reads"),
    "small_broadcasts": _kind("root_reads", ""),  # the broadcasts take most of the time
    "ten_times": _kind("stragglers", "root_writes"),  # of two ranks it has 91 %
    "temporary_files": _kind("metadata"),
    "late_start": _kind(),
    "ordered_blocks": _kind(),
    "preallocated": _kind("root_writes"),
    "one_gives_all": _kind("root_writes"),
    "direct_writes": _kind("small_requests", possible=True),
    "split_writes": _kind("few_aggregators"),
    "synced_files": _kind("syncs"),
    "late_to_close": _kind("late_rank", possible=True),  # whether it is late to open or to close is not in a log
    "uneven_writes": _kind("stragglers", "root_writes"),
    "small_rounds": _kind("small_requests"),
    "fill_values": _kind("redundant_writes"),
    "files_beside": _kind("metadata", "shared_opens"),
    "two_sizes": _kind("small_requests", ""),  # without DXT the large ones may take the time
    "two_tables": _kind("small_requests"),
    "records_of_ranks_in_turn": _kind("small_requests"),
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
