"""One measured row over its repetitions: medians and spreads.

`Run` is what the report reads of one operation of one run of the bench; fields that older results lack have the value
"not known". `measure` joins the repetitions of a row into one `Measured`, as the bench's own summary does: medians of
bandwidths, of times and of the ratios formed inside each repetition, low medians of counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["OUTER_PHASES", "OWN_PHASES", "Key", "Measured", "Run", "Spread", "measure"]

#: Phases of a run, one after the other, and those of the extension inside the data phase, which overlap among ranks.
OUTER_PHASES = ("open", "view", "data", "close")
OWN_PHASES = ("plan", "exchange", "io", "wait", "independent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One operation of one run; the meaning of each field is that of `mpiio_ext.bench.results.Row`."""

    workload: str
    variant: str
    label: str
    interface: str
    strategy: str
    operation: str
    repetition: int
    ranks: int
    file_bytes: int
    data_bytes: int
    open_s: float
    view_s: float
    data_s: float
    close_s: float
    bandwidth_mb_per_s: float
    bandwidth_total_mb_per_s: float
    kind: str = "pattern"
    phase: str = ""
    scaled: bool = False
    gaps_written: bool = False
    noncontiguous: bool | None = None
    files: int | None = None
    compared: str = ""
    ratio_to_native: float | None = None
    ratio_to_best_native: float | None = None
    collectives_taken_over: int | None = None
    independents_taken_over: int | None = None
    native_calls: int | None = None
    rounds: int | None = None
    requests: int | None = None
    request_bytes: int | None = None
    request_size_log2: tuple[int, ...] | None = None
    requests_source: str = ""
    messages: int | None = None
    message_bytes: int | None = None
    plan_s: float | None = None
    exchange_s: float | None = None
    io_s: float | None = None
    wait_s: float | None = None
    independent_s: float | None = None
    partition: str = ""
    reason: str = ""
    delegates: int | None = None
    delegated_accesses: int | None = None
    delegated_bytes: int | None = None
    bypass_bytes: int | None = None
    cache_hits: int | None = None
    cache_misses: int | None = None
    prefetched_pages: int | None = None
    prefetch_used_pages: int | None = None
    delegation: str = ""
    begin_unix_s: float | None = None
    end_unix_s: float | None = None


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What the repetitions of a row have in common, and by which rows of two sets of results are matched."""

    variant: str
    interface: str
    strategy: str
    phase: str
    operation: str


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of `count` figures; low <= median <= high."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Return the spread of at least one figure."""
        return cls(statistics.median(figures), min(figures), max(figures), len(figures))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One row over its repetitions.

    Attributes
    ----------
    key : what it is
    last : the run of the last repetition, for all that is the same in each: names, sizes, method, reason, histogram
    bandwidth, bandwidth_total : 10⁶ bytes a second, without and with open and close
    ratio, ratio_best : to "native", to the better of "native" and "native_tuned", in the same repetition; or None
    seconds : median of each phase of `OUTER_PHASES` and `OWN_PHASES` that is known
    rounds, requests, request_bytes, messages, message_bytes : low medians; None where not known
    collectives, independents : data-access calls that the extension carried out, of all ranks; a direct collective
        counts as both, because every rank then accesses its own pieces
    passed_on : calls that it handed to the MPI library
    delegates, delegated_accesses, delegated_bytes, bypass_bytes, cache_hits, cache_misses, prefetched_pages,
        prefetch_used_pages : low medians of the columns of the same names; None without delegates
    compared : how the files were compared with those of the other methods; "" = not at all
    scaled, gaps_written : in any repetition
    periods : (begin, end) of each repetition of which both are known, in their order, in seconds since 1970 UTC
    """

    key: Key
    last: Run
    bandwidth: Spread
    bandwidth_total: Spread
    ratio: Spread | None
    ratio_best: Spread | None
    seconds: dict[str, float]
    rounds: int | None
    requests: int | None
    request_bytes: int | None
    messages: int | None
    message_bytes: int | None
    collectives: int | None
    independents: int | None
    passed_on: int | None
    delegates: int | None
    delegated_accesses: int | None
    delegated_bytes: int | None
    bypass_bytes: int | None
    cache_hits: int | None
    cache_misses: int | None
    prefetched_pages: int | None
    prefetch_used_pages: int | None
    compared: str
    scaled: bool
    gaps_written: bool
    periods: tuple[tuple[float, float], ...]

    @property
    def native(self) -> bool:
        """Whether the MPI library worked alone."""
        return self.key.strategy.startswith("native")

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What a row has in common with those of the other methods that it is compared with."""
        return self.key.variant, self.key.interface, self.key.phase, self.key.operation

    @property
    def taken_over(self) -> bool | None:
        """Whether the extension carried out any data access; None when that is not known."""
        known = [count for count in (self.collectives, self.independents) if count is not None]
        return any(known) if known else None

    @property
    def request_mean_bytes(self) -> float | None:
        """Mean size of a file-system request."""
        return self.request_bytes / self.requests if self.requests and self.request_bytes is not None else None


def _count(runs: Sequence[Run], name: str) -> int | None:
    known = [value for run in runs if (value := getattr(run, name)) is not None]
    return int(statistics.median_low(known)) if known else None


def _spread(figures: Iterable[float | None]) -> Spread | None:
    known = [figure for figure in figures if figure is not None]
    return Spread.of(known) if known else None


def _seconds(runs: Sequence[Run]) -> dict[str, float]:
    out = {}
    for phase in (*OUTER_PHASES, *OWN_PHASES):
        known = [value for run in runs if (value := getattr(run, f"{phase}_s")) is not None]
        if known:
            out[phase] = statistics.median(known)
    return out


def _measured(key: Key, runs: Sequence[Run]) -> Measured:
    return Measured(
        key=key,
        last=runs[-1],
        bandwidth=Spread.of([run.bandwidth_mb_per_s for run in runs]),
        bandwidth_total=Spread.of([run.bandwidth_total_mb_per_s for run in runs]),
        ratio=_spread(run.ratio_to_native for run in runs),
        ratio_best=_spread(run.ratio_to_best_native for run in runs),
        seconds=_seconds(runs),
        rounds=_count(runs, "rounds"),
        requests=_count(runs, "requests"),
        request_bytes=_count(runs, "request_bytes"),
        messages=_count(runs, "messages"),
        message_bytes=_count(runs, "message_bytes"),
        collectives=_count(runs, "collectives_taken_over"),
        independents=_count(runs, "independents_taken_over"),
        passed_on=_count(runs, "native_calls"),
        delegates=_count(runs, "delegates"),
        delegated_accesses=_count(runs, "delegated_accesses"),
        delegated_bytes=_count(runs, "delegated_bytes"),
        bypass_bytes=_count(runs, "bypass_bytes"),
        cache_hits=_count(runs, "cache_hits"),
        cache_misses=_count(runs, "cache_misses"),
        prefetched_pages=_count(runs, "prefetched_pages"),
        prefetch_used_pages=_count(runs, "prefetch_used_pages"),
        compared=next((run.compared for run in runs if run.compared), ""),
        scaled=any(run.scaled for run in runs),
        gaps_written=any(run.gaps_written for run in runs),
        periods=tuple((run.begin_unix_s, run.end_unix_s) for run in runs
                      if run.begin_unix_s is not None and run.end_unix_s is not None and
                      run.begin_unix_s <= run.end_unix_s),
    )


def measure(runs: Iterable[Run]) -> list[Measured]:
    """Return one row per group of repetitions, in the order in which the groups first appear."""
    groups: dict[Key, list[Run]] = {}
    for run in runs:
        key = Key(run.variant, run.interface, run.strategy, run.phase, run.operation)
        groups.setdefault(key, []).append(run)
    return [_measured(key, group) for key, group in groups.items()]
