"""Request scheduling in delegates, on a model of the file system: the same on every machine, to the last digit.

Usage: ``python benchmarks/delegate_schedulers_model.py [--latency-us 200] [--mbps 200] [--seconds 20] [--json m.json]``

The queue is the delegates' own (``mpiio_ext.delegates.scheduling``); clients and file system are modelled. One I/O
thread serves one batch at a time, which takes a latency, and its bytes at a rate. Clients:

writer    has up to 64 pages waiting at a time (what a cache holds of it), one after the other in a file of its own
reader    waits for a page at random in a file of its own, then asks for the next
strided   the same, pages of one file dealt out in turn
rare      a reader that pauses for 10 ms after each page

Cases as in ``delegate_schedulers.py``. Latency: from a request's coming to the end of its batch.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpiio_ext.delegates.scheduling import NEVER, Queue, Request, policies

CASES = {
    "mixed": ("writer", "writer", "reader", "reader"),
    "strided": ("strided", "strided", "strided", "strided"),
    "weights": ("weight1", "weight4"),
    "small": ("writer", "writer", "writer", "rare"),
}
UNITS = {"mb_s": "MB/s (10^6 bytes a second), all clients of the kind", "median_ms": "milliseconds of one request",
         "p99_ms": "milliseconds of one request, 99th percentile", "batch_pages": "mean pages of a batch"}
PAGE, DEPTH, SERVERS, FILE_PAGES = 65536, 64, 4, 4096
SECOND = 10**9


@dataclass(slots=True)
class Client:
    """Who asks: one file and direction, so many requests at a time, a pause after each."""

    number: int
    kind: str
    of: int
    rng: random.Random
    issued: int = 0
    latencies: list[int] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """Requests at a time."""
        return DEPTH if self.kind.startswith(("writer", "weight")) else 1

    @property
    def pause(self) -> int:
        """Nanoseconds after each."""
        return {"rare": 10**7, "strided": 20_000, "reader": 20_000}.get(self.kind, 0)

    def next(self) -> Request:
        """Return the next request."""
        page = self.issued
        if self.kind in ("reader", "rare"):
            page = self.rng.randrange(FILE_PAGES)
        elif self.kind == "strided":
            page = self.issued * self.of + self.number
        self.issued += 1
        return Request(file=0 if self.kind == "strided" else self.number, offset=page * PAGE, length=PAGE,
                       write=self.depth > 1, flow=self.number, weight=4 if self.kind == "weight4" else 1,
                       server=page % SERVERS)


def simulate(case: str, policy: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Play a case; a row for each kind of client."""
    queue = Queue(policy, quantum=options.quantum, window=options.window_us * 1000, patience=SECOND)
    clients = [Client(k, kind, len(CASES[case]), random.Random(k)) for k, kind in enumerate(CASES[case])]
    due = [(0, k) for k, client in enumerate(clients) for _ in range(client.depth)]
    owners: dict[int, tuple[Client, int]] = {}
    now, end, batches = 0, int(options.seconds * SECOND), 0
    while now < end:
        while due and due[0][0] <= now:
            came, k = heapq.heappop(due)
            owners[queue.add(clients[k].next(), came)] = clients[k], came
        batch = queue.next(now)
        if not batch.ids:  # until somebody asks, or the policy serves again
            now = min(batch.until, due[0][0] if due else NEVER, end)
            continue
        now += options.latency_us * 1000 + len(batch.ids) * PAGE * 1000 // options.mbps
        batches += 1
        for name in batch.ids:
            client, came = owners.pop(name)
            client.latencies.append(now - came)
            queue.done(name)
            heapq.heappush(due, (now + client.pause, client.number))
    served = sum(len(client.latencies) for client in clients)
    rows = []
    for kind in dict.fromkeys(CASES[case]):
        found = sorted(value / 1e6 for client in clients if client.kind == kind for value in client.latencies)
        rows.append({"case": case, "scheduler": policy, "kind": kind, "mb_s": len(found) * PAGE / options.seconds / 1e6,
                     "median_ms": statistics.median(found), "p99_ms": found[int(0.99 * (len(found) - 1))],
                     "batch_pages": served / batches, "counters": queue.counters})
    return rows


def main() -> None:
    """Simulate all, print, and write the file."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--latency-us", type=int, default=200, help="of each batch")
    parser.add_argument("--mbps", type=int, default=200, help="MB/s at which a batch's bytes arrive")
    parser.add_argument("--quantum", type=int, default=1 << 20, help="bytes")
    parser.add_argument("--window-us", type=int, default=1000, help="microseconds")
    parser.add_argument("--seconds", type=float, default=20, help="of the model's time")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [row for case in CASES for policy in policies() for row in simulate(case, policy, options)]
    print("| case | scheduler | clients | MB/s | median ms | 99 % ms | pages a batch |\n|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['case']} | {row['scheduler']} | {row['kind']} | {row['mb_s']:.1f} | {row['median_ms']:.2f} | "
              f"{row['p99_ms']:.1f} | {row['batch_pages']:.1f} |")
    if options.json is not None:
        document = {"units": UNITS, "rows": rows, "page_bytes": PAGE, "cores": os.cpu_count(),
                    "command_line": " ".join(["python", *sys.argv]),
                    "options": {name: str(value) for name, value in vars(options).items()}}
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
