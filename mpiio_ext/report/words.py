"""Numbers and rows in words.

Bandwidths are in 10⁶ bytes a second, as the bench prints them; sizes of requests in powers of 1024, as stripes and
buffers come. Three significant digits are enough for figures whose spread is percents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mpiio_ext.common.results import Key, Measured, Spread
from mpiio_ext.common.units import count_text, digits_text, megabytes, size_text

DASH = "–"
_INTERFACES = {
    "mpiio": "MPI-IO",
    "hdf5": "HDF5",
    "pnetcdf": "PnetCDF",
    "netcdf4": "netCDF-4",
    "posix": "POSIX",
    "transposed": "MPI_Alltoallv and POSIX",
}


def bandwidth(value: float) -> str:
    """Return 10⁶ bytes a second without their unit."""
    return digits_text(value, 2)


def _ends(low: str, high: str) -> str:
    return low if low == high else f"{low}–{high}"


def bandwidth_spread(spread: Spread) -> str:
    """Return "smallest–largest"."""
    return _ends(bandwidth(spread.low), bandwidth(spread.high))


def ratio(value: float) -> str:
    """Return a ratio with two decimals, or three digits if it is large."""
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def ratio_spread(spread: Spread) -> str:
    """Return "smallest–largest"."""
    return _ends(ratio(spread.low), ratio(spread.high))


def interface_title(name: str) -> str:
    """Return the name of an interface as people write it."""
    return _INTERFACES.get(name, name)


def case_title(label: str, key: Key) -> str:
    """Return workload, interface, phase and operation."""
    return f"{label} [{interface_title(key.interface)}], {f'{key.phase}, ' if key.phase else ''}{key.operation}"


def row_title(row: Measured) -> str:
    """Return workload, interface, phase, operation and method."""
    return f"{case_title(row.last.label, row.key)}, {row.key.strategy}"


#: Meanings of the marks of rows; the page may add to these.
_MARKS = {
    "~": "system calls that read or write, counted by the kernel.",
    "*": "ran on a smaller file",
    "°": "wrote bytes that no rank wrote (MPI leaves them undefined in a new file); its data is right.",
    "!": "the extension passed these calls on to the MPI library.",
    "†": "no access went through delegates",
}


def marks(row: Measured) -> str:
    """Return the footnote marks of a row."""
    passed_all = not row.native and row.taken_over is False
    alone = not passed_all and row.delegated_accesses == 0
    return (
        ("*" if row.scaled else "")
        + ("°" if row.gaps_written else "")
        + ("!" if passed_all else "")
        + ("†" if alone else "")
    )


def notes(rows: Iterable[Measured], more: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the marks of rows and of their requests, and their meanings, with `more` behind."""
    used: set[str] = set()
    for row in rows:
        used.update(marks(row))
        if row.last.requests_source == "kernel" and row.requests is not None:
            used.add("~")
    return [(mark, text + more.get(mark, "")) for mark, text in _MARKS.items() if mark in used]


def _calls(row: Measured) -> str:
    passed = row.passed_on or 0
    if row.taken_over is None:
        return ""
    if not row.taken_over:
        return "passed every call on to the MPI library" if passed else "no data access reached it"
    done = []
    if row.collectives:
        done.append(count_text(row.collectives, "collective call"))
    if row.independents:
        done.append(count_text(row.independents, "access by a single rank", "accesses by single ranks"))
    rest = f", passed on {passed:,}" if passed else ""
    return f"carried out {' and '.join(done)}{rest}"


def _requests(row: Measured) -> str:
    if row.requests is None:
        return ""
    about = "~" if row.last.requests_source == "kernel" else ""
    what = "system call" if about else "request"
    mean = row.request_mean_bytes
    size = f" of {size_text(mean)} on average" if mean is not None else ""
    return f"{about}{count_text(row.requests, what)}{size}"


def _delegates(row: Measured) -> str:
    """Return the part that went through delegates; "" without."""
    if row.delegated_accesses is None:
        return ""
    if not row.delegated_accesses:
        none = row.last.delegation.startswith("none: ")
        return f"nothing went through delegates ({row.last.delegation[6:] if none else 'another way was chosen'})"
    accesses = count_text(row.delegated_accesses, "access", "accesses")
    parts = [f"{accesses} through {count_text(row.delegates or 0, 'delegate')}"]
    if row.delegated_bytes is not None:
        past = f", {megabytes(row.bypass_bytes)} past them" if row.bypass_bytes else ""
        parts.append(f"{megabytes(row.delegated_bytes)} in their pages{past}")
    looked = (row.cache_hits or 0) + (row.cache_misses or 0)
    if looked:
        hits = 100 * (row.cache_hits or 0) / looked
        parts.append(f"{hits:.1f} % of {looked:,} page accesses found the page cached")
    if row.prefetched_pages:
        used = row.prefetch_used_pages or 0
        parts.append(f"{used:,} of {count_text(row.prefetched_pages, 'page')} read ahead were used")
    return "; ".join(parts)


def done_by_extension(row: Measured) -> str:
    """Return in words how this row was carried out, and why: method, reason, calls, rounds, requests, messages."""
    if row.native:
        return "; ".join(part for part in ("the MPI library alone", _requests(row)) if part)
    parts = [_calls(row)]
    if row.last.partition:
        parts.append(f"file domains: {row.last.partition}")
    if row.last.reason:
        parts.append(row.last.reason)
    parts.append(_delegates(row))
    if row.rounds:
        parts.append(f"{count_text(row.rounds, 'round')} of the busiest aggregator")
    parts.append(_requests(row))
    if row.messages:
        size = f" of {size_text(row.message_bytes / row.messages)} on average" if row.message_bytes else ""
        parts.append(f"{count_text(row.messages, 'message')} between nodes{size}")
    return "; ".join(part for part in parts if part)


def histogram_words(counts: Sequence[int]) -> str:
    """Return "count × from size" of the buckets that are not empty, smallest size first.

    Parameters
    ----------
    counts : bucket k counts requests of [2^k, 2^(k+1)) bytes, and is named 2^k.
    """
    return ", ".join(f"{count:,} × {size_text(2**k, exact=True)}" for k, count in enumerate(counts) if count)
