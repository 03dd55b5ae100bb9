"""What the programs of the diagnosis corpus are told to do: kind -> causes, and mixtures with their shares.

Guarantees. The truth is what a program was told to do, not what its log says. A kind whose cost is not in the log
(requests that are not aligned, waiting of others) has no cause that must be found, only ones that may not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

#: Variant -> what it is about. Those with the library are not in the table of precision and recall.
VARIANTS = {
    "plain": "as Darshan is by default",
    "dxt": "with DXT",
    "bare": "without HEATMAP",
    "slow": "200 MB/s a rank at most",
    "slow-dxt": "the same with DXT",
    "front": "with the library in front of Darshan",
    "behind": "with the library behind Darshan",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
    """What one program does.

    Attributes
    ----------
    group : str
        ``known``: the rules were made with it; ``held``: written after them; ``later``: written after they had been
        mended with those, and ``last``, with which nothing was mended; ``fresh``: written by somebody who had made no
        rule; ``second``: six that a second one found to be judged wrongly; ``mixture``: of known ones.
    causes : mapping of str to float
        Cause -> its share of the I/O time, largest first; empty: nothing may be said with high confidence.
    instead : tuple of str
        Causes that name the same, or "" where saying nothing is right, too.
    possible : bool
        A log cannot make sure of the cause: it is right where it is told as the first possible one.
    large : bool
        Its requests are large: slow storage does not add a cause.
    mpiio : bool
        It calls MPI-IO, which the library carries out.
    most : int
        Ranks up to which there is no cause: two writers of two ranks.
    """

    group: str
    causes: Mapping[str, float]
    instead: tuple[str, ...] = ()
    possible: bool = False
    large: bool = False
    mpiio: bool = False
    most: int = 0

    @property
    def first(self) -> str:
        """Return the largest cause; "" for none."""
        return next(iter(self.causes), "")


def _kind(group: str, cause: str, marks: str = "", *instead: str) -> Kind:
    words = marks.split()
    return Kind(group=group, causes={cause: 1.0} if cause else {}, instead=instead, possible="possible" in words,
                large="large" in words, mpiio="mpiio" in words)  # fmt: skip


_SINGLE = {
    "one_writer": _kind("known", "root_writes", "large"),
    "one_reader": _kind("known", "root_reads"),
    "few_aggregators": _kind("known", "few_aggregators", "mpiio large"),
    "no_buffering": _kind("known", "small_requests", "mpiio"),
    "read_modify_write": _kind("known", "read_modify_write", "mpiio"),
    "small_independent": _kind("known", "small_requests", "mpiio"),
    "small_posix": _kind("known", "small_requests"),
    "random_reads": _kind("known", "small_requests", "mpiio"),
    "strided_reads": _kind("known", "small_requests", "mpiio"),
    "metadata_storm": _kind("known", "metadata"),
    "shared_opens": _kind("known", "shared_opens"),
    "imbalance": _kind("known", "stragglers", "mpiio large"),
    "uneven_files": _kind("known", "stragglers", "large"),
    "even_files": _kind("known", "", "large"),
    "unaligned": _kind("known", "", "mpiio large"),
    "large_independent": _kind("known", "", "mpiio large"),
    "small_consecutive": _kind("known", ""),
    "well_behaved": _kind("known", "", "mpiio large"),
    "little_io": _kind("known", "", "mpiio"),
    "strided_posix": _kind("held", "small_requests"),
    "reader_broadcast": _kind("held", "root_reads", "large possible"),  # the broadcast takes most of the time
    "open_per_record": _kind("held", "metadata"),
    "sync_per_write": _kind("held", "syncs", "large"),
    "stat_storm": _kind("held", "metadata", "", "shared_opens", ""),  # newer C libraries hide stat from Darshan
    "tiny_files": _kind("held", "metadata", "", "small_files"),
    "append_all": _kind("held", "small_requests"),
    "seek_writes": _kind("held", "small_requests"),
    "busy_rank": _kind("held", "stragglers", "large", "root_writes"),  # of two ranks it has 91 %
    "view_sieved": _kind("held", "read_modify_write", "mpiio"),
    "view_unsieved": _kind("held", "small_requests", "mpiio"),
    "one_aggregator_read": _kind("held", "few_aggregators", "mpiio large"),
    "collective_holes": _kind("held", "read_modify_write", "mpiio"),
    "unaligned_posix": _kind("held", "", "large"),
    "redundant_reads": _kind("held", "redundant_reads", "large", ""),
    "mostly_compute": _kind("held", ""),
    "large_own_files": _kind("held", "", "large"),
    "collective_large": _kind("held", "", "mpiio large"),
    "stdio_lines": _kind("held", "small_requests", "", ""),
    "random_samples": _kind("held", "small_requests", "", ""),
    "checkpoint": _kind("held", "", "mpiio large"),
    "gather_and_write": _kind("held", "root_writes", "mpiio large"),
    "slow_target": _kind("held", "slow_file", "possible"),
}
_SINGLE |= {
    "two_writers": dataclasses.replace(_kind("later", "few_writers", "large possible"), most=2),
    "last_rank_writes": _kind("later", "root_writes", "large"),
    "random_updates": _kind("later", "small_requests"),
    "column_reads": _kind("later", "small_requests", "mpiio"),
    "open_per_step": _kind("later", "shared_opens", "mpiio", "metadata"),
    "rename_each": _kind("later", "metadata"),
    "text_seeks": _kind("later", "small_requests"),
    "stdio_blocks": _kind("later", "", "large"),
    "restart": _kind("later", "", "mpiio large"),
    "collective_rows": _kind("later", "", "mpiio large"),
    "busy_reader": _kind("later", "stragglers", "large", "root_reads"),
    "vector_writes": _kind("later", "small_requests"),
    "one_aggregator_rows": _kind("later", "few_aggregators", "mpiio large"),
    "sieved_records": _kind("later", "read_modify_write", "mpiio"),
    "long_run": _kind("later", "", "large"),
    "own_copies": _kind("later", "", "large", "redundant_reads"),
    "middle_reader": _kind("last", "root_reads", "large"),
    "walk_files": _kind("last", "metadata"),
    "seek_mpi": _kind("last", "small_requests", "mpiio"),
    "uneven_collective": _kind("last", "", "mpiio large"),
    "large_random": _kind("last", "", "large"),
    "sync_once": _kind("last", "", "large"),
    "records_apart": _kind("last", "small_requests"),
    "one_writer_and_headers": _kind("last", "root_writes", "large"),
    "atomic_writes": _kind("known", "waiting_calls", "mpiio possible"),
    "ranks_in_turn": _kind("known", "turns", "large", ""),
    "root_metadata": _kind("known", "metadata"),
    "stdio_bytes": _kind("known", "small_requests"),
}
_SINGLE |= {
    "append_log": _kind("fresh", "small_requests"),
    "tiny_collectives": _kind("fresh", "small_requests", "mpiio"),
    "shared_records": _kind("fresh", "shared_pointer", "mpiio", "small_requests"),
    "sieved_reads": _kind("fresh", "read_amplification", "mpiio"),
    "late_to_collectives": _kind("fresh", "late_rank", "mpiio", ""),  # without DXT it is one of two things
    "read_back": _kind("fresh", "", "mpiio large"),
    "filled_before": _kind("fresh", "root_writes", "mpiio large", "stragglers"),
    "own_parts": _kind("fresh", "redundant_reads", "large", ""),
    "backward_reads": _kind("fresh", "small_requests", "", ""),
    "synchronous_writes": _kind("fresh", "small_requests", "possible"),
    "scratch_blocks": _kind("fresh", "", "", "redundant_reads"),
    "small_broadcasts": _kind("fresh", "root_reads", "", ""),  # the broadcasts take most of the time
    "ten_times": _kind("fresh", "stragglers", "large", "root_writes"),  # of two ranks it has 91 %
    "temporary_files": _kind("fresh", "metadata"),
    "late_start": _kind("fresh", "", "large"),
    "ordered_blocks": _kind("second", "", "mpiio large"),
    "preallocated": _kind("second", "root_writes", "mpiio large"),
    "one_gives_all": _kind("second", "root_writes", "mpiio large"),
    "direct_writes": _kind("second", "small_requests", "possible"),
    "split_writes": _kind("second", "few_aggregators", "mpiio large"),
    "synced_files": _kind("second", "syncs"),
}
_MIXED = (
    ("one_writer", "metadata_storm"),
    ("small_independent", "one_writer"),
    ("metadata_storm", "read_modify_write"),
    ("few_aggregators", "small_posix"),
    ("shared_opens", "imbalance"),
)


def _mixtures() -> dict[str, Kind]:
    """Return each pair both ways: the first has three quarters of the time."""
    pairs = [pair for both in _MIXED for pair in (both, both[::-1])]
    return {
        f"{more}:0.75+{less}:0.25": Kind(
            group="mixture",
            causes={_SINGLE[more].first: 0.75, _SINGLE[less].first: 0.25},
            mpiio=_SINGLE[more].mpiio or _SINGLE[less].mpiio,
        )
        for more, less in pairs
    }


#: Name -> what it does.
KINDS: dict[str, Kind] = _SINGLE | _mixtures()
