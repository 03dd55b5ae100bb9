"""The C planners seen from Python.

Every number comes from libmpiio_ext.so through cffi: there is no second implementation of a method in this package.
Offsets and lengths are bytes in int64; regions and extents are half-open.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mpiio_ext._binding import ffi, lib
from mpiio_ext.common.shown import MOST_SHOWN, html_of
from mpiio_ext.errors import ArgumentError, MpiioExtError

if TYPE_CHECKING:
    from cffi import FFI

#: Largest end of a region and largest stripe size, as the planners' limits in mpiox_partition.h.
MAX_OFFSET_BYTES = 2**62
#: Largest number of servers and of aggregators.
MAX_PARTIES = 2**24

#: One stripe set: `count` pieces of `length` bytes, the first at `offset`, one every `stride` bytes.
SET_DTYPE = np.dtype([("offset", np.int64), ("length", np.int64), ("stride", np.int64), ("count", np.int64)])
#: One extent: bytes [offset, offset + length).
EXTENT_DTYPE = np.dtype([("offset", np.int64), ("length", np.int64)])

_E_NOMEM = -1

IntArray = npt.NDArray[np.int64]


def _check(name: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise ArgumentError(f"{name} must be a whole number, not {value!r}")
    if not low <= value <= high:
        raise ArgumentError(f"{name} must be from {low} to {high}, not {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Input of a planner: an access region, and how the file is striped.

    Parameters
    ----------
    start_bytes, end_bytes : int
        Half-open access region [start_bytes, end_bytes) of the file, at most `MAX_OFFSET_BYTES`. It may start and end
        inside a stripe, and be empty.
    stripe_size_bytes : int
        Bytes of one stripe. Stripe ``s`` of the file is [s * stripe_size_bytes, (s + 1) * stripe_size_bytes).
    servers : int
        I/O servers; stripe ``s`` lies on server ``s % servers``.
    aggregators : int
        Processes that carry out the I/O.

    Raises
    ------
    ArgumentError
        A value is out of range (also a ValueError).
    """

    start_bytes: int = 0
    end_bytes: int
    stripe_size_bytes: int
    servers: int
    aggregators: int

    def __post_init__(self) -> None:
        _check("start_bytes", self.start_bytes, 0, MAX_OFFSET_BYTES)
        _check("end_bytes", self.end_bytes, 0, MAX_OFFSET_BYTES)
        _check("stripe_size_bytes", self.stripe_size_bytes, 1, MAX_OFFSET_BYTES)
        _check("servers", self.servers, 1, MAX_PARTIES)
        _check("aggregators", self.aggregators, 1, MAX_PARTIES)
        if self.start_bytes > self.end_bytes:
            raise ArgumentError(f"the region ends at {self.end_bytes} before it starts at {self.start_bytes}")

    @classmethod
    def of_stripes(cls, stripes: int, *, servers: int, aggregators: int, stripe_size_bytes: int = 2**20) -> Geometry:
        """Return the geometry of a region that is the first `stripes` stripes of a file."""
        return cls(
            end_bytes=stripes * stripe_size_bytes,
            stripe_size_bytes=stripe_size_bytes,
            servers=servers,
            aggregators=aggregators,
        )

    @property
    def first_stripe(self) -> int:
        """Index in the file of the first stripe that the region touches."""
        return self.start_bytes // self.stripe_size_bytes

    @property
    def stripes(self) -> int:
        """Number of stripes that the region touches."""
        if self.start_bytes == self.end_bytes:
            return 0
        return (self.end_bytes - 1) // self.stripe_size_bytes - self.first_stripe + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StripeSet:
    """`count` pieces of `length_bytes`, the first at `offset_bytes`, one every `stride_bytes` (0 when count is 1)."""

    offset_bytes: int
    length_bytes: int
    stride_bytes: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sets:
    """All domains of a plan as flat, read-only arrays.

    Parameters
    ----------
    rows : ndarray of `SET_DTYPE`, shape (sets,)
        The stripe sets of all aggregators, in the order of the aggregators and of their work. Whole stripes: the region
        clips them.
    first : ndarray of int64, shape (aggregators + 1,)
        Aggregator a has the rows first[a] up to, not including, first[a + 1].
    bytes : ndarray of int64, shape (aggregators,)
        Bytes of each domain, clipped to the region.
    servers : ndarray of int32, shape (aggregators,)
        Number of different servers that each domain lies on.
    """

    rows: npt.NDArray[np.void]
    first: IntArray
    bytes: IntArray
    servers: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A partition method: its name, as in the hint ``mpiox_partition``, and one line about it."""

    name: str
    description: str


def _text(pointer: Any) -> str:
    return str(ffi.string(pointer).decode())


def methods() -> tuple[Method, ...]:
    """Return every partition method, in the order of the library's registry."""
    return tuple(
        Method(name=_text(lib.mpiio_ext_partition_name(i)), description=_text(lib.mpiio_ext_partition_description(i)))
        for i in range(lib.mpiio_ext_partition_count())
    )


def check_method(
    method: str | None, *, before: tuple[str, ...] = (), behind: tuple[str, ...] = (), where: str = ""
) -> None:
    """Refuse a name that is neither a partition method nor one of the words around it; `where` names the caller."""
    names = [*before, *(m.name for m in methods()), *behind]
    if method not in names:
        raise ArgumentError(f"unknown partition method {method!r}{where}: choose from {', '.join(names)}")


def _fields(geometry: Geometry) -> dict[str, int]:
    """Return the fields of the C struct of a geometry."""
    return {
        "start": int(geometry.start_bytes),
        "end": int(geometry.end_bytes),
        "stripe_size": int(geometry.stripe_size_bytes),
        "servers": int(geometry.servers),
        "aggregators": int(geometry.aggregators),
    }


def plan(geometry: Geometry, method: str) -> Plan:
    """Cut a region into one file domain for each aggregator.

    Parameters
    ----------
    geometry : Geometry
        Region, stripes, servers and aggregators.
    method : str
        Name of a method: one of ``[m.name for m in methods()]``.

    Raises
    ------
    ArgumentError
        No method has this name.
    MpiioExtError
        The plan does not fit into memory.
    """
    check_method(method)
    return Plan(geometry, method)


class Plan:
    """File domains of one region under one method. Immutable; made by `plan`."""

    __slots__ = ("_domains", "_handle", "_sets", "geometry", "method")

    def __init__(self, geometry: Geometry, method: str) -> None:
        out = ffi.new("mpiio_ext_plan **")
        rc = lib.mpiio_ext_plan_create(method.encode(), ffi.new("mpiio_ext_geometry *", _fields(geometry)), out)
        if rc == _E_NOMEM:
            raise MpiioExtError(f"not enough memory for a plan of {geometry.aggregators} aggregators")
        if rc != 0:
            raise ArgumentError(f"the planner refuses method {method!r} with {geometry}")
        self._handle = ffi.gc(out[0], lib.mpiio_ext_plan_free)
        self._domains: tuple[npt.NDArray[np.void], ...] | None = None
        self._sets: Sets | None = None
        self.geometry = geometry
        self.method = method

    def __repr__(self) -> str:
        return f"Plan(method={self.method!r}, geometry={self.geometry!r}, aggregators_used={self.aggregators_used})"

    def _repr_html_(self) -> str:
        """Return the domains of the first aggregators, as a table."""
        flat, count = self.sets(), self.geometry.aggregators
        rows = [
            {
                "aggregator": each,
                "bytes": int(flat.bytes[each]),
                "servers": int(flat.servers[each]),
                "first_stripe": int(flat.rows["offset"][flat.first[each]]) // self.geometry.stripe_size_bytes
                if flat.first[each] < flat.first[each + 1]
                else None,
            }
            for each in range(min(count, MOST_SHOWN))
        ]
        return html_of([repr(self)], rows, count, ".sets()")

    @property
    def aggregators_used(self) -> int:
        """Aggregators after the method's adjustment; the domains of the others are empty."""
        return int(lib.mpiio_ext_plan_aggregators_used(self._handle))

    @property
    def domains(self) -> tuple[npt.NDArray[np.void], ...]:
        """One read-only array of stripe sets (`SET_DTYPE`) for each aggregator, in the order they are worked off.

        Sets are whole stripes: the region clips the first and the last of them; see `extents`.
        """
        if self._domains is None:
            flat = self.sets()
            bounds = flat.first.tolist()
            self._domains = tuple(flat.rows[a:b] for a, b in itertools.pairwise(bounds))
        return self._domains

    def sets(self) -> Sets:
        """Return all domains as flat arrays: one call of the library, whatever the number of aggregators."""
        if self._sets is None:
            aggregators = self.geometry.aggregators
            flat = Sets(
                rows=np.empty(lib.mpiio_ext_plan_set_count(self._handle), SET_DTYPE),
                first=np.empty(aggregators + 1, np.int64),
                bytes=np.empty(aggregators, np.int64),
                servers=np.empty(aggregators, np.int32),
            )
            lib.mpiio_ext_plan_flat(self._handle, _pointer(flat.rows), _pointer(flat.first))
            servers = _pointer(flat.servers, "int32_t *")
            if lib.mpiio_ext_plan_totals(self._handle, _pointer(flat.bytes), servers) != 0:
                raise MpiioExtError(f"not enough memory for the servers of {aggregators} aggregators")
            for array in (flat.rows, flat.first, flat.bytes, flat.servers):
                array.flags.writeable = False
            self._sets = flat
        return self._sets

    def stripe_sets(self, aggregator: int) -> tuple[StripeSet, ...]:
        """Return an aggregator's domain as objects instead of an array."""
        self._check_aggregator(aggregator)
        return tuple(
            StripeSet(offset_bytes=o, length_bytes=n, stride_bytes=d, count=c)
            for o, n, d, c in self.domains[aggregator].tolist()
        )

    def owner(self, offsets: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Return the aggregator that owns the byte at each offset, or -1 outside the region.

        Parameters
        ----------
        offsets : array_like of int
            File offsets in bytes, of any shape.

        Returns
        -------
        ndarray of int32
            Same shape as `offsets`.
        """
        given = np.asarray(offsets)
        if given.size and given.dtype.kind not in "iu":
            raise ArgumentError(f"offsets must be whole numbers, not {given.dtype}")
        wanted = np.ascontiguousarray(given, dtype=np.int64).reshape(given.shape)  # which keeps 0-d
        owners = np.empty(wanted.shape, np.int32)
        lib.mpiio_ext_plan_owners(self._handle, _pointer(wanted), wanted.size, _pointer(owners, "int32_t *"))
        return owners

    def extents(self, aggregator: int) -> npt.NDArray[np.void]:
        """Return the bytes of an aggregator's domain, clipped to the region.

        Returns
        -------
        ndarray of `EXTENT_DTYPE`, shape (pieces,)
            One row for each piece, in the order in which the aggregator works them off. Its length grows with the
            number of stripes: for huge regions use `domains`.
        """
        self._check_aggregator(aggregator)
        rows = np.empty(lib.mpiio_ext_plan_extents(self._handle, aggregator, ffi.NULL, 0), EXTENT_DTYPE)
        lib.mpiio_ext_plan_extents(self._handle, aggregator, _pointer(rows), len(rows))
        return rows

    def window_count(self, aggregator: int, window_bytes: int) -> int:
        """Return the number of rounds in which an aggregator works off its domain with a buffer of `window_bytes`."""
        self._check_aggregator(aggregator)
        _check("window_bytes", window_bytes, 1, MAX_OFFSET_BYTES)
        return int(lib.mpiio_ext_plan_window_count(self._handle, aggregator, window_bytes))

    def window(self, aggregator: int, window_bytes: int, index: int) -> npt.NDArray[np.void]:
        """Return the extents (`EXTENT_DTYPE`) of one window; empty behind the last window."""
        self._check_aggregator(aggregator)
        _check("window_bytes", window_bytes, 1, MAX_OFFSET_BYTES)
        _check("index", index, 0, 2**63 - 1)
        room = lib.mpiio_ext_plan_window_extents_max(self._handle, window_bytes)
        rows = np.empty(room, EXTENT_DTYPE)
        n = lib.mpiio_ext_plan_window(self._handle, aggregator, window_bytes, index, _pointer(rows), room)
        found: npt.NDArray[np.void] = rows[:n].copy()
        return found

    def windows(self, aggregator: int, window_bytes: int) -> Iterator[npt.NDArray[np.void]]:
        """Return an iterator over the windows of an aggregator, each an array of extents as from `window`.

        Parameters
        ----------
        aggregator : int
            0 up to, not including, ``geometry.aggregators``.
        window_bytes : int
            Size of a collective buffer.
        """
        count = self.window_count(aggregator, window_bytes)
        return (self.window(aggregator, window_bytes, i) for i in range(count))

    def _check_aggregator(self, aggregator: int) -> None:
        _check("aggregator", aggregator, 0, self.geometry.aggregators - 1)

    def pieces(self) -> npt.NDArray[np.void]:
        """Return the extents of all aggregators in file order, cut at stripe boundaries.

        Returns
        -------
        ndarray, shape (pieces,)
            Fields offset, length (bytes), aggregator, stripe (index in the file), server: all int64.
        """
        stripe_size = self.geometry.stripe_size_bytes
        found = [self.extents(a) for a in range(self.geometry.aggregators)]
        offsets = np.concatenate([e["offset"] for e in found])
        ends = offsets + np.concatenate([e["length"] for e in found])
        owners = np.repeat(np.arange(len(found), dtype=np.int64), [len(e) for e in found])
        first = offsets // stripe_size
        per_extent = (ends - 1) // stripe_size - first + 1
        index = np.repeat(np.arange(len(offsets)), per_extent)
        inside = np.arange(len(index)) - np.repeat(np.cumsum(per_extent) - per_extent, per_extent)
        stripe = first[index] + inside
        rows = np.empty(len(index), [(n, np.int64) for n in ("offset", "length", "aggregator", "stripe", "server")])
        rows["offset"] = np.maximum(offsets[index], stripe * stripe_size)
        rows["length"] = np.minimum(ends[index], (stripe + 1) * stripe_size) - rows["offset"]
        rows["aggregator"] = owners[index]
        rows["stripe"] = stripe
        rows["server"] = stripe % self.geometry.servers
        return rows[np.argsort(rows["offset"], kind="stable")]

    def owner_changes(self) -> IntArray:
        """Return how often the owner changes on each server, going through the server's stripes in file order.

        Each change is a place where extent locks of two aggregators meet on that server.

        Returns
        -------
        ndarray of int64, shape (servers,)
        """
        rows = self.pieces()
        rows = rows[np.argsort(rows["server"], kind="stable")]
        change = (rows["server"][1:] == rows["server"][:-1]) & (rows["aggregator"][1:] != rows["aggregator"][:-1])
        counts: IntArray = np.bincount(rows["server"][1:][change], minlength=self.geometry.servers).astype(np.int64)
        return counts

    def sub_regions(self) -> npt.NDArray[np.void]:
        """Return the contiguous sub-regions (`EXTENT_DTYPE`) that belong to groups of aggregators.

        Only ``group_cyclic`` has more than one sub-region; an empty region has no sub-region.
        """
        geometry = self.geometry
        group = geometry.servers if self.method == "group_cyclic" else geometry.aggregators
        rows = []
        for g in range(0, self.aggregators_used, group):
            parts = [self.domains[a] for a in range(g, min(g + group, self.aggregators_used))]
            sets = np.concatenate(parts)
            if len(sets):
                last = sets["offset"] + (sets["count"] - 1) * sets["stride"] + sets["length"]
                start = max(int(sets["offset"].min()), geometry.start_bytes)
                rows.append((start, min(int(last.max()), geometry.end_bytes) - start))
        return np.array(rows, EXTENT_DTYPE)


def _pointer(array: npt.NDArray[Any], kind: str = "int64_t *") -> FFI.CData:
    """Return the address of an array's first element for a C function; the array must outlive the call."""
    return ffi.cast(kind, array.ctypes.data)
