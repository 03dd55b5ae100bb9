"""A slow, obvious lock model to compare the one in C with: a cell for every lock unit, lists for all else.

Nothing is shared with csrc/tools/lock_model but the windows of the planners, which have a reference of their own. A
request
is walked through stripe by stripe, a lock grows unit by unit, and whoever stands in the way is looked for in full.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from mpiio_ext.partitioning import Geometry, Plan, plan
from mpiio_ext.partitioning.locks import FileSystem

NAMES = (
    "lock_requests",
    "grants",
    "matches",
    "conflicts",
    "revocations",
    "shared_units",
    "data_requests",
    "data_bytes",
    "owner_changes",
    "aggregators",
    "smallest_request_bytes",
    "largest_request_bytes",
)


@dataclass(eq=False)
class Lock:
    owner: int
    free_at: float = 0.0


@dataclass(eq=False)
class Piece:
    """What one request accesses on one server."""

    server: int
    number: int
    from_byte: int
    to_byte: int
    arrives: float = 0.0
    stored: float = 0.0

    @property
    def size(self) -> int:
        return self.to_byte - self.from_byte


@dataclass(eq=False)
class Request:
    aggregator: int
    offset: int
    length: int
    issued: float
    held: float
    pieces: list[Piece] = field(default_factory=list)


@dataclass
class Write:
    """What a client has written: its bytes leave the cache when it and all its earlier ones are on the servers."""

    server: int | None  # None: of the whole client
    size: int
    stored: float


class Random:
    """SplitMix64, and Fisher and Yates' shuffle from the end."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def next(self) -> int:
        mask = 2**64 - 1
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    def shuffle(self, items: list[int]) -> None:
        for i in range(len(items) - 1, 0, -1):
            j = self.next() % (i + 1)
            items[i], items[j] = items[j], items[i]


class Model:
    """One simulation; `run` and then look at `counts`, `sizes` and `time`."""

    def __init__(
        self,
        geometry: Geometry,
        method: str,
        system: FileSystem,
        *,
        window_bytes: int,
        stripe_size_io: bool,
        operation: str,
        collectives: int,
        synchronise: bool,
        order_seed: int | None,
    ) -> None:
        self.geometry, self.method, self.system, self.window = geometry, method, system, window_bytes
        self.stripe_size_io, self.reads, self.collectives = stripe_size_io, operation == "read", collectives
        self.synchronise = synchronise
        self.random = None if order_seed is None else Random(order_seed)
        self.unit = system.granularity_bytes or geometry.stripe_size_bytes
        self.used = plan(geometry, method).aggregators_used
        servers = geometry.servers
        length = geometry.end_bytes - geometry.start_bytes
        self.units = (geometry.end_bytes + collectives * length) // self.unit + 2  # more than any object has
        self.cells: list[list[Lock | None]] = [[None] * self.units for _ in range(servers)]  # tokens: [0]
        self.counts = {name: [0] * servers for name in NAMES}
        self.sizes = [0] * 64
        self.served: list[list[int]] = [[] for _ in range(servers)]  # sizes of data requests, all of them
        self.clock = [0.0] * self.used
        self.written = [0.0] * self.used
        self.lock_clock = [0.0] * servers
        self.data_clock = [0.0] * servers
        self.caching = not self.reads and bool(system.dirty_server_bytes or system.dirty_client_bytes)
        self.link = [0.0] * self.used  # when the cache has sent all that it has
        self.history: list[list[Write]] = [[] for _ in range(self.used)]  # never shortened
        self.place: dict[int, int] = {}  # tokens: unit where an aggregator is or was last
        self.readers: set[tuple[int, int]] = set()
        self.visits: set[tuple[int, int]] = set()
        self.writers: dict[tuple[int, int], set[int]] = {}  # by object and unit
        self.order = list(range(self.used))
        self.time = 0.0

    def run(self) -> Model:
        g = self.geometry
        length = g.end_bytes - g.start_bytes
        last_owner: dict[int, int] = {}
        for c in range(self.collectives if length else 0):
            here = dataclasses.replace(g, start_bytes=g.start_bytes + c * length, end_bytes=g.end_bytes + c * length)
            p = plan(here, self.method)
            self.count_owner_changes(p, last_owner)
            windows = [list(p.windows(a, self.window)) for a in range(self.used)]
            for r in range(max(len(w) for w in windows)):
                self.round([w[r].tolist() if r < len(w) else [] for w in windows])
        for (server, _), who in self.writers.items():
            self.counts["shared_units"][server] += len(who) > 1
        for _, server in self.visits:
            self.counts["aggregators"][server] += 1
        self.counts["smallest_request_bytes"] = [min(sizes, default=0) for sizes in self.served]
        self.counts["largest_request_bytes"] = [max(sizes, default=0) for sizes in self.served]
        return self

    def count_owner_changes(self, p: Plan, last: dict[int, int]) -> None:
        for row in p.pieces():
            server, owner = int(row["server"]), int(row["aggregator"])
            self.counts["owner_changes"][server] += last.get(server, owner) != owner
            last[server] = owner

    def round(self, extents: list[list[tuple[int, int]]]) -> None:
        todo = [list(self.requests_of(e)) for e in extents]
        k = 0
        while True:
            if self.random is not None:
                self.random.shuffle(self.order)
            requests = [
                Request(a, *todo[a][k], issued=self.clock[a], held=self.clock[a])
                for a in self.order
                if k < len(todo[a])
            ]
            if not requests:
                break
            self.step(requests)
            k += 1
        if not self.caching:
            self.clock = [max(c, w) for c, w in zip(self.clock, self.written, strict=True)]
        if self.synchronise:
            self.clock = [max(self.clock)] * self.used
        self.time = max(self.clock + self.written)

    def requests_of(self, extents: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        size = self.geometry.stripe_size_bytes
        for offset, length in extents:
            if not self.stripe_size_io:
                yield offset, length
                continue
            at = offset
            while at < offset + length:
                end = min((at // size + 1) * size, offset + length)
                yield at, end - at
                at = end

    def step(self, requests: list[Request]) -> None:
        for r in requests:
            self.sizes[int(math.log2(r.length))] += 1
            r.pieces = self.pieces_of(r)
        if self.system.protocol == "token":
            self.tokens(requests)
        elif self.system.protocol == "server":
            for server in range(self.geometry.servers):
                here = [(r, p) for r in requests for p in r.pieces if p.server == server]
                self.object_locks(server, here)
        for r in requests:
            for p in r.pieces:
                self.visits.add((r.aggregator, p.server))
        self.data(requests)

    def pieces_of(self, r: Request) -> list[Piece]:
        g, pieces = self.geometry, []
        size, at = g.stripe_size_bytes, r.offset
        while at < r.offset + r.length:
            stripe = at // size
            end = min((stripe + 1) * size, r.offset + r.length)
            server, start = stripe % g.servers, stripe // g.servers * size + at % size
            known = [p for p in pieces if p.server == server]
            if known:
                assert known[0].to_byte == start
                known[0].to_byte += end - at
            else:
                pieces.append(Piece(server, len(pieces), start, start + end - at))
            at = end
        for p in pieces:
            self.counts["data_requests"][p.server] += 1
            self.counts["data_bytes"][p.server] += p.size
            self.served[p.server].append(p.size)
        self.note_writers(r, pieces)
        return pieces

    def note_writers(self, r: Request, pieces: list[Piece]) -> None:
        if self.reads:
            return
        if self.system.protocol == "token":
            g = self.geometry
            for u in range(r.offset // self.unit, (r.offset + r.length - 1) // self.unit + 1):
                server = u * self.unit // g.stripe_size_bytes % g.servers
                self.writers.setdefault((server, u), set()).add(r.aggregator)
            return
        for p in pieces:
            for u in range(p.from_byte // self.unit, (p.to_byte - 1) // self.unit + 1):
                self.writers.setdefault((p.server, u), set()).add(r.aggregator)

    # ---- locks of one server's object ----

    def need(self, p: Piece) -> range:
        return range(p.from_byte // self.unit, (p.to_byte - 1) // self.unit + 1)

    def data_time(self, p: Piece) -> float:
        s = self.system
        return math.ceil(p.size / s.rpc_bytes) * s.request_overhead_s + p.size / s.server_bandwidth_bytes_s

    def there(self, r: Request, p: Piece, leaves: float) -> float:
        """When a piece would be on its server if no other of the step came before it."""
        arrives = max(leaves, self.link[r.aggregator]) + self.system.round_trip_s / 2
        return max(arrives, self.data_clock[p.server]) + self.data_time(p) + self.system.commit_s

    def ask(self, server: int, r: Request, number: int) -> float:
        """When the lock service has looked at a request."""
        s = self.system
        arrives = r.issued + (number + 1) * s.enqueue_s + s.round_trip_s / 2
        self.lock_clock[server] = max(self.lock_clock[server], arrives) + s.lock_service_s
        return self.lock_clock[server]

    def object_locks(self, server: int, here: list[tuple[Request, Piece]]) -> None:
        cells, s = self.cells[server], self.system
        later = []
        for r, p in here:
            if self.reads:
                if (r.aggregator, server) in self.readers:
                    self.counts["matches"][server] += 1
                    continue
                self.readers.add((r.aggregator, server))
                self.counts["lock_requests"][server] += 1
                self.counts["grants"][server] += 1
                r.held = max(r.held, self.ask(server, r, p.number) + s.round_trip_s / 2)
                continue
            need = [cells[u] for u in self.need(p)]
            lock = need[0]
            if lock is not None and lock.owner == r.aggregator and all(c is lock for c in need):
                self.counts["matches"][server] += 1
                lock.free_at = max(lock.free_at, self.there(r, p, r.issued))
            else:
                later.append((r, p))
        for r, p in later:
            self.enqueue(server, r, p, [(q.aggregator, self.need(o)) for q, o in here if q is not r])

    def enqueue(self, server: int, r: Request, p: Piece, others: list[tuple[int, range]]) -> None:
        cells, s, me = self.cells[server], self.system, r.aggregator
        t = self.ask(server, r, p.number)
        self.counts["lock_requests"][server] += 1
        self.counts["grants"][server] += 1
        need = self.need(p)
        lock = Lock(me)
        if all(c is None for c in cells):
            cells[:] = [lock] * len(cells)
        else:
            met = {c for c in (cells[u] for u in need) if c is not None}
            revoked = {c for c in met if c.owner != me}
            own = {c for c in met if c.owner == me}
            if revoked:
                self.counts["conflicts"][server] += 1
                self.counts["revocations"][server] += len(revoked)
                free_at = max(c.free_at for c in revoked)
                t = max(t + s.round_trip_s / 2, free_at) + s.round_trip_s / 2 + len(revoked) * s.lock_service_s
            cells[:] = [None if c in revoked else c for c in cells]
            holders = len({c for c in cells if c is not None} - own)
            extent = self.grow(cells, me, need, [n for _, n in others], max(holders, len(others)))
            own |= {c for c in (cells[u] for u in extent) if c is not None}
            for u in range(len(cells)):
                if u in extent or cells[u] in own:
                    cells[u] = lock
            lock.free_at = max([c.free_at for c in own], default=0.0)
        held = t + s.round_trip_s / 2
        lock.free_at = max(lock.free_at, self.there(r, p, held))
        r.held = max(r.held, held)

    def grow(self, cells: list[Lock | None], me: int, need: range, others: list[range], crowd: int) -> range:
        s = self.system
        barred = set()  # what other requests of the step need, unless it cannot be kept apart
        for o in others:
            if not set(o) & set(need):
                barred |= set(o)

        def free(u: int) -> bool:
            cell = cells[u]
            return u not in barred and (cell is None or cell.owner == me)

        low, high = need.start, need.stop
        if crowd <= s.forward_holders:
            while low > 0 and free(low - 1):
                low -= 1
        limit = len(cells)
        if s.growth_bytes and crowd > s.growth_holders:
            limit = min(limit, max(need.stop, need.start + s.growth_bytes // self.unit))
        while high < limit and free(high):
            high += 1
        return range(low, high)

    # ---- tokens of the file ----

    def span(self, r: Request) -> range:
        return range(r.offset // self.unit, (r.offset + r.length - 1) // self.unit + 1)

    def token_data(self, r: Request, leaves: float) -> float:
        """When a request would be on its servers if nobody else used them."""
        s = self.system
        rate = min(len(r.pieces) * s.server_bandwidth_bytes_s, s.client_bandwidth_bytes_s)
        leaves = max(leaves, self.link[r.aggregator])
        return leaves + s.round_trip_s / 2 + s.request_overhead_s + r.length / rate + s.commit_s

    def tokens(self, requests: list[Request]) -> None:
        cells, later = self.cells[0], []
        for r in requests:
            counted = r.pieces[0].server
            if self.reads:
                if (r.aggregator, 0) in self.readers:
                    self.counts["matches"][counted] += 1
                    continue
                self.readers.add((r.aggregator, 0))
                self.counts["lock_requests"][counted] += 1
                self.counts["grants"][counted] += 1
                r.held = self.ask(0, r, 0) + self.system.round_trip_s / 2
                continue
            span = self.span(r)
            self.place[r.aggregator] = span.start
            token = cells[span.start]
            if token is not None and token.owner == r.aggregator and all(cells[u] is token for u in span):
                self.counts["matches"][counted] += 1
                token.free_at = max(token.free_at, self.token_data(r, r.issued))
            else:
                later.append(r)
        for r in later:
            self.acquire(r)
        for r in requests:
            self.place[r.aggregator] = self.span(r).stop

    def acquire(self, r: Request) -> None:
        cells, s, me, span = self.cells[0], self.system, r.aggregator, self.span(r)
        counted = r.pieces[0].server
        t = self.ask(0, r, 0) + s.round_trip_s / 2
        first_of_all = all(c is None for c in cells)
        token, free_at = Lock(me), 0.0
        met = {c for c in (cells[u] for u in span) if c is not None}
        for holder in sorted((c for c in met if c.owner != me), key=cells.index):
            has = [u for u, c in enumerate(cells) if c is holder]
            place = self.place[holder.owner]
            if span.start >= place:
                given = [u for u in has if u >= span.start]
                if place == span.start or has[0] >= span.start:
                    free_at = max(free_at, holder.free_at)
            else:
                given = [u for u in has if u < max(place, span.stop)]
                free_at = max(free_at, holder.free_at)
            for u in given:
                cells[u] = None
        revoked = sum(c.owner != me for c in met)
        low = 0 if first_of_all else span.start
        high = span.stop
        while high < len(cells) and (cells[high] is None or cells[high].owner == me):  # type: ignore[union-attr]
            high += 1
        own = {c for c in (cells[u] for u in range(low, high)) if c is not None}
        for u in range(len(cells)):
            if low <= u < high or cells[u] in own:
                cells[u] = token
        if revoked:
            self.counts["conflicts"][counted] += 1
            self.counts["revocations"][counted] += revoked
            t = max(t + s.round_trip_s / 2, free_at) + s.round_trip_s / 2
        self.counts["lock_requests"][counted] += 1
        self.counts["grants"][counted] += 1
        r.held = t
        token.free_at = max([c.free_at for c in own] + [self.token_data(r, t)])

    # ---- data ----

    def room(self, a: int, server: int | None, t: float, size: int, limit: int) -> float:
        """The first moment from t on at which `size` bytes more do not exceed the limit, or the cache is empty."""
        writes = [w for w in self.history[a] if w.server == server]
        # in order: a write has left when it and all before it are on the servers
        left = [max(w.stored for w in writes[: i + 1]) for i in range(len(writes))]
        for moment in sorted({t} | {when for when in left if when > t}):
            dirty = sum(w.size for w, when in zip(writes, left, strict=True) if when > moment)
            if dirty == 0 or dirty + size <= limit:
                return moment
        raise AssertionError("a cache that never empties")

    def into_cache(self, r: Request) -> None:
        s, a = self.system, r.aggregator
        t = r.held
        if s.dirty_client_bytes:
            t = self.room(a, None, t, r.length, s.dirty_client_bytes)
        for p in r.pieces:
            if s.dirty_server_bytes:
                t = self.room(a, p.server, t, p.size, s.dirty_server_bytes)
            self.link[a] = max(self.link[a], t) + p.size / s.client_bandwidth_bytes_s
            p.arrives = self.link[a] + s.round_trip_s / 2
        self.clock[a] = t

    def out_of_cache(self, r: Request) -> None:
        s, a = self.system, r.aggregator
        self.history[a] += [Write(p.server, p.size, p.stored) for p in r.pieces]
        stored = max(p.stored for p in r.pieces)
        self.history[a].append(Write(None, r.length, stored))
        through = [p.stored for p in r.pieces if s.dirty_server_bytes and p.size > s.dirty_server_bytes]
        if s.dirty_client_bytes and r.length > s.dirty_client_bytes:
            through.append(stored)
        self.clock[a] = max([self.clock[a], *through])
        if s.protocol == "token":
            held = [(self.cells[0][self.span(r).start], stored)]
        elif s.protocol == "server":
            held = [(self.cells[p.server][self.need(p).start], p.stored) for p in r.pieces]
        else:
            held = []
        for lock, when in held:
            if lock is not None and lock.owner == a:
                lock.free_at = max(lock.free_at, when)

    def data(self, requests: list[Request]) -> None:
        s = self.system
        for r in requests:
            if self.caching:
                self.into_cache(r)
                continue
            t = r.held
            for p in r.pieces:
                if not self.reads:
                    t += p.size / s.client_bandwidth_bytes_s
                p.arrives = t + s.round_trip_s / 2
            self.clock[r.aggregator] = t
            if self.reads:
                self.written[r.aggregator] = t + s.round_trip_s + r.length / s.client_bandwidth_bytes_s
        for server in range(self.geometry.servers):
            queue = [(p.arrives, i, r, p) for i, r in enumerate(requests) for p in r.pieces if p.server == server]
            for arrives, _, r, p in sorted(queue, key=lambda entry: entry[:2]):
                self.data_clock[server] = max(self.data_clock[server], arrives) + self.data_time(p)
                p.stored = self.data_clock[server] + s.round_trip_s / 2
                if not self.reads:
                    p.stored += s.commit_s
                self.written[r.aggregator] = max(self.written[r.aggregator], p.stored)
        if self.reads:
            for r in requests:
                self.clock[r.aggregator] = self.written[r.aggregator]
        if self.caching:
            for r in requests:
                self.out_of_cache(r)
