"""Results of the bench: their schema, and the repetitions of a measurement joined.

Problem. The bench writes what it measured, and its table, the report, the comparison of two sets of results and the
analytics read it. All of them shall form the same ratios and the same medians.

Schema. One `Row` is one operation (write or read) of one run, a line of ``runs``. Column names carry their units:
``_unix_s`` seconds since 1970 UTC, other ``_s`` seconds, ``_bytes``, ``_mb_per_s`` 10⁶ bytes per second; others are
counts or pure ratios. `tables` has the columns as Arrow tables, with the units as metadata. Columns keep their names
while `SCHEMA_VERSION` does: a pattern or kernel is called a workload there, and a method a strategy.

Algorithm. `with_ratios` forms ratios inside a repetition, whose methods were measured right behind each other, so that
a slow minute of the machine hits both. `measure` joins the repetitions of a row: medians of bandwidths, times and
ratios, low medians of counts, which are counts that were seen. `summary` gives that as columns, a line of ``summary``.

Guarantees. A column that a file lacks is "not known". A few hundred rows need no table engine: pages
are made, and results kept while the bench runs, without importing one.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 2
#: Least repetitions for a judgement on which is faster.
ENOUGH = 3
#: Phases of a run, one after the other, and those of the extension inside the data phase, which overlap among ranks.
OUTER_PHASES = ("open", "view", "data", "close")
OWN_PHASES = ("plan", "exchange", "io", "wait", "independent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Something that was not run, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The properties that the repetitions of a row share, and by which rows of two sets of results are matched."""

    variant: str
    interface: str
    strategy: str
    phase: str
    operation: str

    @property
    def place(self) -> tuple[str, str, str, str]:
        """The properties that a row shares with the rows of other methods that it is compared with."""
        return self.variant, self.interface, self.phase, self.operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation of one run.

    Attributes
    ----------
    workload, variant, label : name of the pattern or kernel, of this variant of it, and the latter for people
    interface, strategy : names; the strategy is the method
    operation : "write", "read", or "both" where a phase does both
    kind : "pattern" or "kernel" (the I/O of an application)
    phase : of a kernel, e.g. "S" of MADBench2; "" for patterns
    noncontiguous : a rank's accesses are in pieces, in the file or in memory; None = unknown
    files : how many files hold the data; None = unknown
    compared : how the files were compared with those of the other methods: "bytes" (equal byte by byte), or the tool
        of the format that found no difference, e.g. "h5diff"; "" = not compared
    repetition : from 0
    order : how many runs came before this one
    ranks : that took part
    scaled : the native path ran on a smaller file than the others, because the full one would have taken too long
    gaps_written : the file had other than zero where no rank wrote, which only native methods are allowed
    file_bytes : extent of the file's data
    data_bytes : transferred by all ranks together
    open_s, view_s, data_s, close_s : longest time of a rank in each phase; view_s is the file view, or the dataset
    bandwidth_mb_per_s : data_bytes / (view_s + data_s), with delegates data_bytes / (view_s + data_s + close_s),
        because closing is when the last of the data reaches the file; of a kernel's phase the same as the next
    bandwidth_total_mb_per_s : data_bytes / (open_s + view_s + data_s + close_s)
    ratio_to_native : bandwidth over that of "native" in the same repetition; None when that was not run
    ratio_to_best_native : the same over the faster of "native" and "native_tuned"; None when neither was run
    collectives_taken_over, native_calls : data-access calls carried out by the extension, and handed to the MPI
        library, summed over the ranks; None without the extension
    rounds : two-phase rounds of the busiest aggregator; None without the extension
    requests, request_bytes : file-system requests of all ranks
    requests_source : "extension" (exact) or "kernel" (every system call that reads or writes), "" when unknown
    messages, message_bytes : between nodes, all ranks
    plan_s, exchange_s, io_s, wait_s : time of the extension's phases, longest rank
    independents_taken_over : accesses of one rank alone that the extension carried out, those of direct collectives
        included, summed over the ranks; None without the extension
    independent_s : time inside those, longest rank
    request_size_log2 : element k counts the file-system requests of 2^k to 2^(k+1)-1 bytes, all ranks; 48 elements;
        None without the extension
    partition, reason : the method that the extension used, and why
    delegates : delegates that were seen to count; None = the method has none, as for all that follow
    delegated_accesses, delegated_bytes, bypass_bytes : accesses of all ranks through delegates; their data bytes; those
        of them that went past the delegates straight to the file
    cache_hits, cache_misses : page accesses that found the page in a delegate's cache, and that did not
    prefetched_pages, prefetch_used_pages : pages read ahead of any request; those that were then accessed
    delegation : which delegates, or why none
    begin_unix_s, end_unix_s : when it began and ended, by the clock of rank 0, in seconds since 1970 UTC: before the
        first file is opened, and after the last one was closed on all ranks; None = unknown
    """

    workload: str
    variant: str
    label: str
    interface: str
    strategy: str
    operation: str
    repetition: int
    order: int = 0
    ranks: int
    scaled: bool = False
    file_bytes: int
    data_bytes: int
    open_s: float
    view_s: float
    data_s: float
    close_s: float
    bandwidth_mb_per_s: float
    bandwidth_total_mb_per_s: float
    ratio_to_native: float | None = None
    ratio_to_best_native: float | None = None
    collectives_taken_over: int | None = None
    native_calls: int | None = None
    rounds: int | None = None
    requests: int | None = None
    request_bytes: int | None = None
    requests_source: str = ""
    messages: int | None = None
    message_bytes: int | None = None
    plan_s: float | None = None
    exchange_s: float | None = None
    io_s: float | None = None
    wait_s: float | None = None
    partition: str = ""
    reason: str = ""
    gaps_written: bool = False
    kind: str = "pattern"
    phase: str = ""
    noncontiguous: bool | None = None
    files: int | None = None
    compared: str = ""
    independents_taken_over: int | None = None
    independent_s: float | None = None
    request_size_log2: tuple[int, ...] | None = None
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

    @property
    def key(self) -> Key:
        """The properties that the repetitions share."""
        return Key(self.variant, self.interface, self.strategy, self.phase, self.operation)


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
    ratios : repetition -> ratio to "native"
    seconds : median of each phase of `OUTER_PHASES` and `OWN_PHASES` that is known
    access_s, open_close_s : medians of view and data together, and of open and close
    rounds, requests, request_bytes, messages, message_bytes : low medians; None if not known
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
    last: Row
    bandwidth: Spread
    bandwidth_total: Spread
    ratio: Spread | None
    ratio_best: Spread | None
    ratios: Mapping[int, float]
    seconds: dict[str, float]
    access_s: float
    open_close_s: float
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
    def taken_over(self) -> bool | None:
        """Whether the extension carried out any data access; None if unknown."""
        known = [count for count in (self.collectives, self.independents) if count is not None]
        return any(known) if known else None

    @property
    def request_mean_bytes(self) -> float | None:
        """Mean size of a file-system request."""
        return self.request_bytes / self.requests if self.requests and self.request_bytes is not None else None


def with_ratios(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with their ratios set from the native methods of the same repetition."""
    rows = list(rows)
    natives: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows:
        if row.strategy in ("native", "native_tuned"):
            natives.setdefault((*row.key.place, row.repetition), {})[row.strategy] = row.bandwidth_mb_per_s
    out = []
    for row in rows:
        there = natives.get((*row.key.place, row.repetition), {})
        native, best = there.get("native"), max(there.values(), default=None)
        out.append(
            replace(
                row,
                ratio_to_native=row.bandwidth_mb_per_s / native if native else None,
                ratio_to_best_native=row.bandwidth_mb_per_s / best if best else None,
            )
        )
    return out


#: Counts of a measurement, and the columns whose low medians they are.
_COUNTS = {
    **{
        name: name
        for name in (
            "rounds",
            "requests",
            "request_bytes",
            "messages",
            "message_bytes",
            "delegates",
            "delegated_accesses",
            "delegated_bytes",
            "bypass_bytes",
            "cache_hits",
            "cache_misses",
            "prefetched_pages",
            "prefetch_used_pages",
        )
    },
    "collectives": "collectives_taken_over",
    "independents": "independents_taken_over",
    "passed_on": "native_calls",
}


def _known(rows: Sequence[Row], name: str) -> list[Any]:
    return [value for row in rows if (value := getattr(row, name)) is not None]


def _spread(rows: Sequence[Row], name: str) -> Spread | None:
    known = _known(rows, name)
    return Spread.of(known) if known else None


def _measured(key: Key, rows: Sequence[Row]) -> Measured:
    return Measured(
        key=key,
        last=rows[-1],
        bandwidth=Spread.of([row.bandwidth_mb_per_s for row in rows]),
        bandwidth_total=Spread.of([row.bandwidth_total_mb_per_s for row in rows]),
        ratio=_spread(rows, "ratio_to_native"),
        ratio_best=_spread(rows, "ratio_to_best_native"),
        ratios={row.repetition: row.ratio_to_native for row in rows if row.ratio_to_native is not None},
        seconds={
            phase: statistics.median(known)
            for phase in (*OUTER_PHASES, *OWN_PHASES)
            if (known := _known(rows, f"{phase}_s"))
        },
        access_s=statistics.median(row.view_s + row.data_s for row in rows),
        open_close_s=statistics.median(row.open_s + row.close_s for row in rows),
        compared=next((row.compared for row in rows if row.compared), ""),
        scaled=any(row.scaled for row in rows),
        gaps_written=any(row.gaps_written for row in rows),
        periods=tuple(
            (row.begin_unix_s, row.end_unix_s)
            for row in rows
            if row.begin_unix_s is not None and row.end_unix_s is not None and row.begin_unix_s <= row.end_unix_s
        ),
        **{
            name: int(statistics.median_low(known)) if (known := _known(rows, column)) else None
            for name, column in _COUNTS.items()
        },
    )


def measure(rows: Iterable[Row]) -> list[Measured]:
    """Return one measurement per group of repetitions, in the order in which the groups first appear."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.key, []).append(row)
    return [_measured(key, group) for key, group in groups.items()]


# ---- columns ---------------------------------------------------------------------------------------------------------


def summary(row: Measured) -> dict[str, Any]:
    """Return the columns of a measurement, a line of ``summary``.

    The names are the names of `Row`, with ``median``, ``min`` and ``max`` over the repetitions. Counts and
    ``ratio_to_best_native`` are medians. Names and the histogram come from the last repetition. ``begin_unix_s`` is
    that of the first repetition and ``end_unix_s`` of the last one: other rows were measured between them.
    """
    last, seconds = row.last, {phase: row.seconds.get(phase) for phase in (*OUTER_PHASES, *OWN_PHASES)}

    def same(*names: str) -> dict[str, Any]:
        return {name: getattr(last, name) for name in names}

    return {
        **same("workload", "variant", "label", "interface", "strategy", "operation"),
        "repetitions": row.bandwidth.count,
        **same("ranks"),
        "scaled": row.scaled,
        **same("file_bytes", "data_bytes"),
        "bandwidth_median_mb_per_s": row.bandwidth.median,
        "bandwidth_min_mb_per_s": row.bandwidth.low,
        "bandwidth_max_mb_per_s": row.bandwidth.high,
        "bandwidth_total_median_mb_per_s": row.bandwidth_total.median,
        "data_access_median_s": row.access_s,
        "open_close_median_s": row.open_close_s,
        "ratio_to_native": row.ratio and row.ratio.median,
        "ratio_to_native_min": row.ratio and row.ratio.low,
        "ratio_to_native_max": row.ratio and row.ratio.high,
        "ratio_to_best_native": row.ratio_best and row.ratio_best.median,
        "rounds": row.rounds,
        "requests": row.requests,
        "request_bytes": row.request_bytes,
        **same("requests_source"),
        "taken_over": row.taken_over,
        **same("partition", "reason"),
        "gaps_written": row.gaps_written,
        **same("kind", "phase", "noncontiguous", "files"),
        "compared": row.compared,
        "independents_taken_over": row.independents,
        **{f"{phase}_median_s": median for phase, median in seconds.items()},
        **same("request_size_log2"),
        **{
            name: getattr(row, name)
            for name in (
                "delegates",
                "delegated_accesses",
                "delegated_bytes",
                "bypass_bytes",
                "cache_hits",
                "cache_misses",
                "prefetched_pages",
                "prefetch_used_pages",
            )
        },
        **same("delegation"),
        "begin_unix_s": min((begin for begin, _ in row.periods), default=None),
        "end_unix_s": max((end for _, end in row.periods), default=None),
    }


_ANNOTATIONS = {field.name: str(field.type) for field in fields(Row)} | {
    "repetitions": "int",
    "taken_over": "bool | None",
    "data_access_s": "float",
    "open_close_s": "float",
}
_UNITS = {"_unix_s": "s since 1970-01-01 UTC", "_mb_per_s": "10^6 B/s", "_s": "s", "_bytes": "B"}


def _field(name: str) -> pa.Field[Any]:
    """Return the Arrow field of a column; a median or an end has the field of the column that it is computed from."""
    import pyarrow as pa

    annotation = _ANNOTATIONS[re.sub("_(?:median|min|max)(?=_|$)", "", name)]
    kind = annotation.split(" | ")[0]
    types: Mapping[str, pa.DataType] = {
        "str": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "tuple[int, ...]": pa.list_(pa.int64()),
    }
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
    return pa.field(name, types[kind], nullable="None" in annotation, metadata={"unit": unit})


def tables(rows: Sequence[Row], metadata: dict[bytes | str, bytes | str]) -> dict[str, pa.Table]:
    """Return ``runs`` and ``summary`` as Arrow tables; the unit of each column is its field's metadata."""
    import pyarrow as pa

    columns = [field.name for field in fields(Row)]
    found = {"runs": (columns, [asdict(row) for row in rows])}
    summaries = [summary(row) for row in measure(rows)]
    required = [field for field in fields(Row) if field.default is MISSING]
    nothing: dict[str, Any] = {field.name: "" if field.type == "str" else 0 for field in required}
    found["summary"] = list(summary(measure([Row(**nothing)])[0])), summaries
    return {
        what: pa.Table.from_pylist(lines, schema=pa.schema([_field(name) for name in names], metadata=metadata))
        for what, (names, lines) in found.items()
    }
