"""Every method over a series of aggregators, through the lock model; and the names that its tables use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mpiio_ext.common.units import digits_text
from mpiio_ext.errors import ArgumentError
from mpiio_ext.partitioning._plan import Geometry, check_method, methods
from mpiio_ext.partitioning.locks._outcome import Outcome
from mpiio_ext.partitioning.locks._simulate import simulate
from mpiio_ext.partitioning.locks._systems import FileSystem

#: Data requests of a sweep that take half an hour with Lustre's locks, two with tokens: more only if asked for.
_MOST_REQUESTS = 10**10
#: One core, as docs/explanation/locks.md measured it for Lustre; token managers take up to four times as long.
_REQUEST_S = 0.2e-6
_LONG = ((365 * 86400.0, "years"), (86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A partition method, carried out with or without stripe-size I/O."""

    method: str
    stripe_size_io: bool

    @property
    def label(self) -> str:
        """As in tables and figures: ``aligned + stripe-size``."""
        return self.method + (" + stripe-size" if self.stripe_size_io else "")


def variants(names: Sequence[str], stripe_size_io: str) -> list[Variant]:
    """Return the variants to compare.

    Parameters
    ----------
    names : partition methods, or ``all``.
    stripe_size_io : {"aligned", "both", "no", "yes"}
        The methods that are also run with stripe-size I/O: aligned alone (as Figure 2 of the SDCI page has it), each,
        none; or each with stripe-size I/O only.

    Raises
    ------
    ArgumentError
        No method has this name.
    """
    known = [m.name for m in methods()]
    for name in names:
        check_method(name, behind=("all",))
    chosen = known if "all" in names else [name for name in known if name in names]
    found = []
    for name in chosen:
        if stripe_size_io != "yes":
            found.append(Variant(method=name, stripe_size_io=False))
        if stripe_size_io in ("yes", "both") or (stripe_size_io == "aligned" and name == "aligned"):
            found.append(Variant(method=name, stripe_size_io=True))
    return found


def relation(aggregators: int, servers: int) -> str:
    """Return how aggregators match servers: ``equal``, ``factor``, ``multiple``, ``co-prime`` or ``neither``."""
    if aggregators == servers:
        return "equal"
    if servers % aggregators == 0:
        return "factor"
    if aggregators % servers == 0:
        return "multiple"
    return "co-prime" if math.gcd(aggregators, servers) == 1 else "neither"


def requests_about(geometries: Sequence[Geometry], compared: Sequence[Variant], window_bytes: int) -> int:
    """Return about how many data requests a sweep simulates, each aggregator's turn in each round being one more."""
    found = 0
    for geometry in geometries:
        length = geometry.end_bytes - geometry.start_bytes
        pieces = -(-length // max(min(geometry.stripe_size_bytes, window_bytes), 1))
        rounds = -(-length // max(window_bytes * geometry.aggregators, 1))
        found += pieces + rounds * geometry.aggregators
    return found * len(compared)


def check_requests(requests: int) -> None:
    """Raise ArgumentError where so many data requests take more than half an hour."""
    if requests <= _MOST_REQUESTS:
        return
    took_s = requests * _REQUEST_S
    took = next(f"{took_s / unit_s:,.0f} {unit}" for unit_s, unit in _LONG if took_s >= unit_s)
    raise ArgumentError(
        f"that is about {digits_text(requests, 2)} data requests, {took} or more of one core: take a smaller region, "
        f"fewer aggregators or methods, or larger stripes; or force it with --force (Ctrl-C ends it)"
    )


def sweep(
    geometries: Sequence[Geometry],
    compared: Sequence[Variant],
    *,
    file_system: FileSystem,
    window_bytes: int,
    progress: Callable[[Geometry, Variant, int], None] | None = None,
) -> Iterator[Outcome]:
    """Yield the outcome of every variant for each geometry, in this order; see `simulate` for the parameters.

    Parameters
    ----------
    progress : callable, optional
        Called before each simulation, and ten times a second in it, with the bytes that have been accessed so far.
    """
    for geometry in geometries:
        for variant in compared:
            advance = None if progress is None else partial(progress, geometry, variant)
            if advance is not None:
                advance(0)
            yield simulate(
                geometry,
                variant.method,
                file_system=file_system,
                window_bytes=window_bytes,
                stripe_size_io=variant.stripe_size_io,
                progress=advance,
            )
