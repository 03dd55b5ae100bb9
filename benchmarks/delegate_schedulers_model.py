"""Request scheduling in delegates, on a model of the file system: the same on every machine, to the last digit.

Usage: ``python benchmarks/delegate_schedulers_model.py [--latency-us 200] [--mbps 200] [--seconds 20] [--json m.json]``

The queue is the delegates' own (``mpiio_ext.delegates.scheduling``), but for `elevator`, the order that is built into
delegates, which is written here once more; clients and file system are modelled. One I/O thread serves one batch at a
time, which takes a latency, and its bytes at a rate. Clients:

writer    has up to 64 pages waiting at a time (what a cache holds of it), one after the other in a file of its own
shuffled  the same, but each 16 pages come in a random order
reader    waits for a page at random in a file of its own, then asks for the next
strided   the same, pages of one file dealt out in turn
rare      a reader that pauses for 10 ms after each page
large     has two requests of 64 pages at a time, at random places of a file that it shares with
little    which has four of one page at a time, the same way

Cases: those of ``delegate_schedulers.py``; "deep", which is "weights" on a file system of 2 MB/s, where requests wait
for longer than the patience of a second; "shuffled"; "large"; and "servers": several delegates, each with two
writers, meet the same servers, over which the files are striped. A server works on the pages of all batches that are
there in turn, and seeks whenever it changes to another file. Latency: from a request's coming to the end of its batch.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import os
import random
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpiio_ext.delegates.scheduling import NEVER, Batch, Queue, Request, policies

CASES = {
    "mixed": ("writer", "writer", "reader", "reader"),
    "strided": ("strided", "strided", "strided", "strided"),
    "weights": ("weight1", "weight4"),
    "deep": ("weight1", "weight4"),
    "small": ("writer", "writer", "writer", "rare"),
    "shuffled": ("shuffled", "shuffled", "shuffled", "shuffled"),
    "large": ("large", "little"),
}
SCHEDULERS = ("elevator", *policies())
UNITS = {"mb_s": "MB/s (10^6 bytes a second), all clients of the kind", "median_ms": "milliseconds of one request",
         "p99_ms": "milliseconds of one request, 99th percentile", "batch_pages": "mean pages of a batch",
         "seeks": "seeks of all servers a MB"}
PAGE, DEPTH, SERVERS, FILE_PAGES = 65536, 64, 4, 4096
STRIPE_PAGES, LARGE_PAGES = 16, 64
BATCH_PAGES = 256  # of `elevator`: 16 MiB
DEEP_MBPS = 2
SECOND = 10**9


class Elevator:
    """The order that is built into delegates: csrc/iod/server/mpiox_server_flush.c, mpiox_server_fill.c.

    Pages that are read and files that are written alternate; files take turns, each in file order from where it was
    left, and then from its start; pages that are read come in their order of asking. What follows joins.
    """

    def __init__(self, **_options: int) -> None:
        self.writes: dict[int, dict[int, int]] = {}  # file -> offset -> name
        self.reads: dict[tuple[int, int], int] = {}  # (file, offset) -> name, in order of arrival
        self.lengths: dict[int, int] = {}
        self.positions: dict[int, int] = {}
        self.turn, self.read_turn = 0, False
        self.names = itertools.count()
        self.counters: dict[str, int] = {}

    def add(self, request: Request, _now: int) -> int:
        """Let a request come."""
        name = next(self.names)
        self.lengths[name] = request.length
        if request.write:
            self.writes.setdefault(request.file, {})[request.offset] = name
        else:
            self.reads[request.file, request.offset] = name
        return name

    def next(self, _now: int) -> Batch:
        """Take the next batch out."""
        self.read_turn = not self.read_turn
        if self.read_turn and self.reads:
            return self._read()
        files = sorted(file for file, waiting in self.writes.items() if waiting)
        if files:
            return self._write(next((file for file in files if file >= self.turn), files[0]))
        return self._read() if self.reads else Batch((), NEVER)

    def done(self, name: int) -> None:
        """Forget a request that is served."""
        del self.lengths[name]

    def _read(self) -> Batch:
        file, offset = next(iter(self.reads))
        waiting = {at: name for (where, at), name in self.reads.items() if where == file}
        names, _ = self._run(waiting, offset)
        self.reads = {place: name for place, name in self.reads.items() if name not in names}
        return Batch(tuple(names), NEVER)

    def _write(self, file: int) -> Batch:
        waiting = self.writes[file]
        behind = [offset for offset in waiting if offset >= self.positions.get(file, 0)]
        names, self.positions[file] = self._run(waiting, min(behind or waiting))
        self.writes[file] = {at: name for at, name in waiting.items() if name not in names}
        self.turn = file + 1
        return Batch(tuple(names), NEVER)

    def _run(self, waiting: dict[int, int], offset: int) -> tuple[list[int], int]:
        names: list[int] = []
        start = offset
        while offset in waiting and (not names or offset - start < BATCH_PAGES * PAGE):
            names.append(waiting[offset])
            offset += self.lengths[names[-1]]
        return names, offset


def queue_of(policy: str, **options: int) -> Queue | Elevator:
    """Return the queue of a scheduler."""
    return Elevator(**options) if policy == "elevator" else Queue(policy, **options)


@dataclass(slots=True)
class Client:
    """Who asks: one file and direction, so many requests at a time, a pause after each."""

    number: int
    kind: str
    of: int
    rng: random.Random
    issued: int = 0
    latencies: list[int] = field(default_factory=list)
    block: list[int] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """Requests at a time."""
        return {"large": 2, "little": 4}.get(self.kind, DEPTH if self.writes else 1)

    @property
    def writes(self) -> bool:
        """Direction."""
        return self.kind.startswith(("writer", "weight", "shuffled"))

    @property
    def pause(self) -> int:
        """Nanoseconds after each."""
        return {"rare": 10**7, "strided": 20_000, "reader": 20_000}.get(self.kind, 0)

    @property
    def pages(self) -> int:
        """Pages of a request."""
        return LARGE_PAGES if self.kind == "large" else 1

    def page(self) -> int:
        """Return the first page of the next request."""
        self.issued += 1
        if self.kind in ("reader", "rare", "large", "little"):
            return self.rng.randrange(FILE_PAGES)
        if self.kind == "strided":
            return (self.issued - 1) * self.of + self.number
        if self.kind != "shuffled":
            return self.issued - 1
        if not self.block:
            self.block = list(range(self.issued - 1, self.issued + 15))
            self.rng.shuffle(self.block)
        return self.block.pop()

    def next(self) -> Request:
        """Return the next request."""
        page = self.page()
        shared = self.kind in ("strided", "large", "little")
        return Request(file=0 if shared else self.number, offset=page * PAGE, length=self.pages * PAGE,
                       write=self.writes, flow=self.number, weight=4 if self.kind == "weight4" else 1,
                       server=page // STRIPE_PAGES % SERVERS)


def rows_of(case: str, policy: str, clients: list[Client], seconds: float, **more: Any) -> list[dict[str, Any]]:
    """Return a row for each kind of client."""
    rows = []
    for kind in dict.fromkeys(client.kind for client in clients):
        some = [client for client in clients if client.kind == kind]
        found = sorted(value / 1e6 for client in some for value in client.latencies)
        rows.append({"case": case, "scheduler": policy, "kind": kind,
                     "mb_s": sum(len(client.latencies) * client.pages for client in some) * PAGE / seconds / 1e6,
                     "median_ms": statistics.median(found), "p99_ms": found[int(0.99 * (len(found) - 1))], **more})
    return rows


def simulate(case: str, policy: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Play a case with one delegate; a row for each kind of client."""
    queue = queue_of(policy, quantum=options.quantum, window=options.window_us * 1000, patience=SECOND)
    clients = [Client(k, kind, len(CASES[case]), random.Random(k)) for k, kind in enumerate(CASES[case])]
    due = [(0, k) for k, client in enumerate(clients) for _ in range(client.depth)]
    owners: dict[int, tuple[Client, int]] = {}
    now, end, batches = 0, int(options.seconds * SECOND), 0
    mbps = DEEP_MBPS if case == "deep" else options.mbps
    while now < end:
        while due and due[0][0] <= now:
            came, k = heapq.heappop(due)
            owners[queue.add(clients[k].next(), came)] = clients[k], came
        batch = queue.next(now)
        if not batch.ids:  # until somebody asks, or the policy serves again
            now = min(batch.until, due[0][0] if due else NEVER, end)
            continue
        pages = sum(owners[name][0].pages for name in batch.ids)
        now += options.latency_us * 1000 + pages * PAGE * 1000 // mbps
        batches += 1
        for name in batch.ids:
            client, came = owners.pop(name)
            client.latencies.append(now - came)
            queue.done(name)
            heapq.heappush(due, (now + client.pause, client.number))
    served = sum(len(client.latencies) * client.pages for client in clients)
    return rows_of(case, policy, clients, options.seconds, batch_pages=served / batches, counters=queue.counters)


# ---- several delegates, several servers ------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Share:
    """What one server has to do of a batch."""

    delegate: int
    file: int
    left: int  # pages
    begun: bool = False


@dataclass(slots=True)
class Server:
    """One page after the other, of all batches in turn; a seek whenever the file is another one."""

    shares: list[Share] = field(default_factory=list)
    last: int = -1
    seeks: int = 0

    def time(self, options: argparse.Namespace) -> int:
        """Nanoseconds of the next page."""
        share = self.shares[0]
        seeks = share.file != self.last
        first = not share.begun
        self.seeks += seeks
        self.last, share.begun = share.file, True
        return (first * options.latency_us + seeks * options.seek_us) * 1000 + PAGE * 1000 // options.mbps


@dataclass(slots=True)
class Delegate:
    """A queue, its clients, and the batch that its I/O thread has in the servers."""

    queue: Queue | Elevator
    clients: list[Client]
    batch: tuple[int, ...] = ()
    left: int = 0  # shares of it
    owners: dict[int, tuple[Client, int, Request]] = field(default_factory=dict)

    def ask(self, client: Client, now: int) -> None:
        """Let the next request of a client come."""
        request = client.next()
        self.owners[self.queue.add(request, now)] = client, now, request

    def end(self, now: int) -> None:
        """Take note that the batch is served: its clients ask for more."""
        for name in self.batch:
            client, came, _ = self.owners.pop(name)
            client.latencies.append(now - came)
            self.queue.done(name)
            self.ask(client, now)
        self.batch = ()


class Servers:
    """The case "servers", event by event: (time, number, kind, which)."""

    def __init__(self, policy: str, options: argparse.Namespace) -> None:
        self.options = options
        self.servers = [Server() for _ in range(SERVERS)]
        self.delegates = []
        for k in range(options.delegates):
            queue = queue_of(policy, quantum=options.quantum, window=options.servers_window_us * 1000, patience=SECOND,
                             first_server=k)
            clients = [Client(2 * k + i, "writer", 2, random.Random(i)) for i in range(2)]
            self.delegates.append(Delegate(queue, clients))
        self.events: list[tuple[int, int, str, int]] = []
        self.numbers = itertools.count()
        self.batches = 0

    def at(self, when: int, kind: str, which: int) -> None:
        """Let something happen later."""
        heapq.heappush(self.events, (when, next(self.numbers), kind, which))

    def play(self) -> None:
        """Play it to the end."""
        for k, delegate in enumerate(self.delegates):
            for _ in range(DEPTH):
                for client in delegate.clients:
                    delegate.ask(client, 0)
            self.at(0, "look", k)
        end = int(self.options.seconds * SECOND)
        while self.events and self.events[0][0] < end:
            now, _, kind, which = heapq.heappop(self.events)
            if kind == "look":
                self.look(which, now)
            else:
                self.page_served(which, now)

    def look(self, which: int, now: int) -> None:
        """Let a delegate ask its queue for the next batch, and hand it to the servers."""
        delegate = self.delegates[which]
        if delegate.batch:
            return
        found = delegate.queue.next(now)
        if not found.ids:
            self.at(found.until, "look", which)
            return
        delegate.batch = found.ids
        requests = [delegate.owners[name][2] for name in found.ids]
        pages = [0] * SERVERS
        for request in requests:
            pages[request.server] += 1
        delegate.left = sum(count > 0 for count in pages)
        self.batches += 1
        for number, count in enumerate(pages):
            if count > 0:
                server = self.servers[number]
                server.shares.append(Share(which, requests[0].file, count))
                if len(server.shares) == 1:
                    self.at(now + server.time(self.options), "page", number)

    def page_served(self, which: int, now: int) -> None:
        """Go on with the next batch's page, in turn."""
        server = self.servers[which]
        share = server.shares.pop(0)
        share.left -= 1
        if share.left > 0:
            server.shares.append(share)
        if server.shares:
            self.at(now + server.time(self.options), "page", which)
        delegate = self.delegates[share.delegate]
        delegate.left -= share.left == 0
        if delegate.left == 0:
            delegate.end(now)
            self.look(share.delegate, now)


def simulate_servers(policy: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Play the case "servers"; a row."""
    play = Servers(policy, options)
    play.play()
    clients = [client for delegate in play.delegates for client in delegate.clients]
    served = sum(len(client.latencies) for client in clients)
    return rows_of("servers", policy, clients, options.seconds, batch_pages=served / play.batches,
                   seeks=sum(server.seeks for server in play.servers) / (served * PAGE / 1e6))


def main() -> None:
    """Simulate all, print, and write the file."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--latency-us", type=int, default=200, help="of each batch")
    parser.add_argument("--mbps", type=int, default=200, help="MB/s at which a batch's bytes arrive")
    parser.add_argument("--quantum", type=int, default=1 << 20, help="bytes")
    parser.add_argument("--window-us", type=int, default=1000, help="microseconds")
    parser.add_argument("--seconds", type=float, default=20, help="of the model's time")
    parser.add_argument("--delegates", type=int, default=4, help="of the case \"servers\"")
    parser.add_argument("--seek-us", type=int, default=1000, help="of a server that changes to another file")
    parser.add_argument("--servers-window-us", type=int, default=50_000, help="window of the case \"servers\"")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [row for case in CASES for policy in SCHEDULERS for row in simulate(case, policy, options)]
    rows += [row for policy in SCHEDULERS for row in simulate_servers(policy, options)]
    print("| case | scheduler | clients | MB/s | median ms | 99 % ms | pages a batch |\n|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['case']} | {row['scheduler']} | {row['kind']} | {row['mb_s']:.1f} | {row['median_ms']:.2f} | "
              f"{row['p99_ms']:.1f} | {row['batch_pages']:.1f} |")
    print("\nseeks a MB: " + ", ".join(f"{row['scheduler']} {row['seeks']:.2f}" for row in rows if "seeks" in row))
    if options.json is not None:
        document = {"units": UNITS, "rows": rows, "page_bytes": PAGE, "cores": os.cpu_count(),
                    "command_line": " ".join(["python", *sys.argv]),
                    "options": {name: str(value) for name, value in vars(options).items()}}
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
