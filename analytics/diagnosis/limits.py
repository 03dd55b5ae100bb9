"""From which value on something is called a cause: every threshold of a diagnosis, in one place."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """Thresholds; shares are 0 to 1.

    Attributes
    ----------
    reported : float
        Share of the critical time that a finding must explain.
    sure : float
        Share of the time in calls that a finding of high confidence must explain.
    least : float
        Time (s) that it must explain where its confidence is not high: less is chance.
    trivial : float
        Share of the run time below which the critical time is not worth tuning: there are no findings then.
    fast : float
        Bandwidth over the critical time (B/s) from which on a bandwidth is not low. Then findings of a log on requests,
        layouts and ranks are observations, not causes of slow I/O; a finding with a proven cost in time is still a
        cause. The paper's bound of a low bandwidth.
    small_bytes : int
        Largest small request (B); a bound of Darshan's histogram. The mean request must be less than half of it.
    tiny_bytes : int
        Mean request (B) up to which the calls cost more than the bytes: what is small then is a cause of high
        confidence, however fast the job is.
    forward : float
        Share of requests behind the one before, below which the places are called random (half of random ones are).
    backward : float
        The same share below which none is said to be behind the one before: backwards, or at one place.
    requests_of_an_open : float
        Requests of each open below which small requests are no cause, but opens may be.
    small, non_consecutive, unaligned, independent : float
        Share of a file's requests, or of its MPI-IO calls, from which on the file is called so.
    read_modify_write : float
        Bytes that POSIX reads and no MPI-IO call requested, over the bytes that MPI-IO writes to the file.
    reads_of_a_write : float
        POSIX reads for each write from which on these belong to read-modify-write, whatever they read.
    amplified : float
        Bytes that POSIX writes to a file, over those that MPI-IO does, from which on that is called amplified.
    no_gaps, wide_gaps : float
        The same up to which pieces have no gaps between them, and from which on gaps are far larger than the pieces.
    contention : float
        Processes per OST of a file (the paper's jobs above 3 were slow).
    again, alike_ranks, many_ranks : float
        How often the bytes of a file are moved over, at least (twice, but for its headers), and that over its ranks,
        from which on ranks are said to read the same. Ranks from which on that is sure whatever the size of their
        requests.
    often : float
        How often each rank reads the bytes of a file from which on that is a cause, however small file and requests
        are: three quarters of these bytes are needless.
    tiny_call_bytes, many_calls, busy_calls
        Mean bytes of calls, of the C library or of POSIX, up to which they are tiny. Such calls of a rank, and the
        share of the critical time that it spends in them, from which on they are a cause.
    hdf5_bytes : int
        Mean request (B) up to which what HDF5 moves beyond its datasets is metadata: chunks are larger.
    small_rounds : float
        Requests of an aggregator in each collective call, one behind the other, from which on its buffer is too small.
    some_collectives, many_collectives : float
        Collective calls of a rank, of ``tiny_bytes`` of all ranks together at most, from which on they are a cause, and
        from which on that is sure.
    slow_request, waiting : float
        Time (s) for a small request from which on, and its bytes over that time (B/s) up to which, it waits for the
        storage, though it follows the one before.
    flushed : float
        Flushes for each such call from which on flushes of pieces are reported.
    root : float
        Rank 0's share of the bytes.
    one_rank : float
        Share of the bytes of a file from which on one rank moves all of it.
    one_rank_bytes : int
        Bytes of all files below which one rank is enough (standard output is rank 0's), and of a file below which all
        may read it.
    busy_rank : float
        Share of the critical time that such a rank spends in calls, from which on it is sure that the job waits for it.
    busy_straggler, busy_sync : float
        The same of a rank that has more to do than the others, and of one that syncs.
    busy_aggregator : float
        The same of an aggregator: between its calls the others send it their data.
    aggregated, much_aggregated : float
        Share of the run time that collective calls with few aggregators take at least, and from which on it is sure
        that they are too few.
    node_ranks : float
        Ranks for each aggregator from which on it serves more than one node: it is too few of them then, however much
        of the run they take. One for each node is what MPI libraries choose, and often enough.
    slow_rank : float
        Bandwidth (B/s) of one process in large requests, below which it waits for the storage, and more may as well.
    aggregated_bytes : int
        Bytes below which one aggregator is enough.
    serialised, dominant, gaps : float
        See the factors of these names.
    dominant_excess : float
        How many times its share of the bytes a file's share of the time must be for it to be called dominant.
    straggler : float
        Share of the slowest rank's time that an average one does not need, of what it can be with so many ranks.
    uneven : float
        Bytes of the slowest rank, over the bytes of an average rank, from which on the slowest rank surely has more
        work.
    metadata : float
        Share of a rank's time in calls.
    many_opens : float
        Opens of each process from which on they are called many.
    polls : float
        Calls of stat of a process on each file from which on it waits until the file changes.
    much_metadata : float
        Share of the run time from which on a rank's metadata calls are sure to matter.
    slow_opening : float
        Time (s) of a rank in calls that open and close files below which they are the start and the end of any run,
        unless a process makes ``many_opens``.
    many_stripes, aggregators_per_ost : float
        OSTs of a file of one stripe, and ranks that write for each OST, from which on they are too many.
    taking_turns : float
        Ranks that move data from which on they can take turns.
    in_turn : float
        Ranks in a request at once, on average, up to which they are called to take turns.
    turning, turning_calls : float
        Share of the time from the first request to the end of the last in which some rank is in a request, and what all
        ranks together are in calls over that time, from which on they take turns: ranks that pause meet seldom, too.
    waits : float
        Time in MPI-IO calls over that in their requests from which on the calls are said to wait.
    late : float
        Share of a file's time in which an average rank waits in collective calls for the last one, from which on that
        is a cause.
    own_share : float
        The job's share of the bytes that its OSTs moved, up to which the diagnosis blames the load on others.
    synced, many_syncs : float
        Syncs for each write of a file, and for each of its ranks, from which on they are a cause.
    slow_sync : float
        Time (s) for each sync, with the writes before it, from which on it is sure that the storage is waited for.
    busy : float
        Share of the critical time spent in calls, below which files alone are no cause, and a note says so.
    slow : float
        How many times slower than the median an OST or a file must be, and than the fastest rank the slowest one.
    alike_files, alike_osts, many_files, small_file_bytes
        See the factors.
    """

    reported: float = 0.05
    sure: float = 0.1
    least: float = 0.02
    trivial: float = 0.02
    fast: float = 1e9
    small_bytes: int = 1 << 20
    tiny_bytes: int = 64 << 10
    forward: float = 0.75
    backward: float = 0.1
    requests_of_an_open: float = 2.0
    small: float = 0.5
    non_consecutive: float = 0.5
    unaligned: float = 0.5
    independent: float = 0.5
    read_modify_write: float = 0.05
    reads_of_a_write: float = 0.1
    amplified: float = 1.5
    no_gaps: float = 1.1
    wide_gaps: float = 3.0
    contention: float = 3.0
    again: float = 1.9
    alike_ranks: float = 0.5
    many_ranks: float = 16.0
    often: float = 4.0
    tiny_call_bytes: int = 512
    many_calls: float = 10_000.0
    busy_calls: float = 0.1
    hdf5_bytes: int = 4 << 10
    small_rounds: float = 4.0
    some_collectives: float = 100.0
    many_collectives: float = 1_000.0
    slow_request: float = 5e-5
    waiting: float = 128e6
    flushed: float = 0.3
    root: float = 0.5
    one_rank: float = 0.9
    one_rank_bytes: int = 1 << 20
    busy_rank: float = 0.12
    busy_straggler: float = 0.3
    busy_sync: float = 0.3
    busy_aggregator: float = 0.2
    aggregated: float = 0.125
    much_aggregated: float = 0.5
    node_ranks: float = 256.0
    slow_rank: float = 32e6
    aggregated_bytes: int = 16 << 20
    serialised: float = 0.5
    dominant: float = 0.8
    dominant_excess: float = 1.5
    gaps: float = 0.5
    straggler: float = 0.5
    uneven: float = 1.5
    metadata: float = 0.3
    many_opens: float = 10.0
    polls: float = 100.0
    much_metadata: float = 0.04
    slow_opening: float = 0.1
    many_stripes: float = 8.0
    aggregators_per_ost: float = 4.0
    taking_turns: float = 3.0
    in_turn: float = 1.2
    turning: float = 0.7
    turning_calls: float = 0.8
    waits: float = 1.5
    late: float = 0.3
    own_share: float = 0.5
    synced: float = 0.2
    many_syncs: float = 10.0
    slow_sync: float = 1e-4
    busy: float = 0.1
    slow: float = 3.0
    alike_files: int = 4
    alike_osts: int = 4
    many_files: int = 100
    small_file_bytes: int = 1 << 20
