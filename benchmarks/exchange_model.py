"""A discrete-event model of the exchange of two-phase I/O between nodes: this library's, and ROMIO's for comparison.

Actors are nodes; an activity is what a node does in a round for one purpose. Processors, links and storage are servers
with queues (exchange_events.py), what must wait for what is below, and how much is moved between which nodes comes from
the geometry (exchange_traffic.py). Costs are those of LogGOPS (exchange_loggp.py). A write:

  ours     The ranks of a node pack for other nodes (pack), which waits for one of `buffers` halves of the node's pool
           and of the collective buffers. Messages (send) need a credit: the receiver has emptied what it got `credits`
           rounds ago. Their bytes pass the sender's link and the receiver's (wire) and are placed in the collective
           buffers (place), whose windows are stored (store). Rounds overlap as far as that allows. Before them the
           views and ranges are spread, domains placed (description); what moves no data is counted apart: meeting in
           the node, counting what there is for whom, credits, messages that only say when there will be something: one
           of a node to an aggregator in whose first window it has nothing (control). `Engine` has this form, in which
           all ranks send and aggregators place (csrc/mpiio/transport), the one before it, and that of leaders.
  native   ROMIO, ad_write_coll.c. Offset lists of all pieces go from every rank to every aggregator that it meets
           (description). In each round an all-to-all of counts (control), then a message from each rank to each
           aggregator, which places them piece by piece, then the request. Nothing overlaps: the next round begins when
           the slowest aggregator has stored.

A read is the way back: load, place (here: gather), send, wire, pack (here: unpack).

What is left out: congestion inside the network, noise, buffers of the network, memory bandwidth that cores share, and
that the ranks of a node count in the same words of memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from exchange_events import Loop, Servers
from exchange_loggp import Machine
from exchange_memory import BLOCK_BYTES, RANK_ACCESS_BYTES, STRUCTS, VIEW_BLOB_BYTES, view_message_bytes
from exchange_rounds import Floats, Round, Rounds
from exchange_traffic import Exchange

__all__ = ["PHASES", "Engine", "Outcome", "largest_messages_bytes", "simulate_native", "simulate_ours"]

PHASES = ("description", "control", "pack", "send", "wire", "place", "store")
#: Seconds of a rank to count what it has for a window that its node's range meets, and to lay that out (measured with
#: the functions of mpiox_exchange_rounds.c on one core: 40 + 3 ns for 64, 157 and 1,024 nodes; that other cores use the
#: same words is not in it). Of the first form: to compare a node with a window (measured: 2.55 microseconds for 64
#: nodes and as many windows). And of a step of a meeting inside a node.
LOOK_S, COMPARE_S, STEP_S = 43e-9, 0.62e-9, 0.1e-6
#: Before the rounds, measured in the same way: to find which windows of a domain are met, and, where the domains are
#: placed, to weigh a node for one (mpiox_owners.c).
DUE_S, PLACE_S = 20e-9, 1.6e-9
#: Seconds of a leader for each rank's view when views are spread.
VIEW_S = 0.1e-6
_STEPS = ("ready", "packed", "sent", "emptied", "ended")
_LIST_BYTES = 16  # of a piece in ROMIO's lists: offset and length


@dataclass(frozen=True, kw_only=True)
class Engine:
    """How this library exchanges: by default as csrc/mpiio/transport does.

    Attributes
    ----------
    leaders : one rank of each node sends, receives and places all that is its node's, one message for a pair of nodes;
        else all ranks send, a message for each aggregator, and aggregators receive and place
    buffers : collective buffers of an aggregator, and halves of the pool
    credits : rounds that a sender may be ahead of a receiver that has emptied its destinations
    ends : a node writes to all windows that its range meets, with data there or without (the form before); else the
        end of its messages says when it sends again, and rounds without data cost none
    in_step : a node's messages of a round wait until its own aggregators have placed the round before
    eager_bytes : longer messages wait for the receiver's word, a round trip each, one after the other
    all_pairs : who sends is found by comparing each node with each window; else it is computed
    """

    leaders: bool = False
    buffers: int = 2
    credits: int = 1
    ends: bool = False
    in_step: bool = True
    eager_bytes: int = 16384
    all_pairs: bool = False

    @staticmethod
    def of_leaders() -> Engine:
        """Return the first form: leaders that do all, and destinations for every other node without credits."""
        return Engine(leaders=True, credits=10**9, in_step=False, eager_bytes=65536, all_pairs=True)


@dataclass(kw_only=True)
class Outcome:
    """What a simulation gave.

    Attributes
    ----------
    seconds : from the first rank's begin to the last rank's end
    phases_s : seconds that the busiest node was busy with each of `PHASES`; they overlap, so that they may add up to
        more than `seconds`
    stored_bytes, crossed_bytes : moved between storage and windows, and between nodes
    messages : between nodes, in rounds
    largest_messages_bytes : the largest message of a node to each other one, summed over those; the largest node's
    events : of the simulation
    """

    seconds: float = 0.0
    phases_s: dict[str, float] = field(default_factory=dict)
    stored_bytes: float = 0.0
    crossed_bytes: float = 0.0
    messages: int = 0
    largest_messages_bytes: float = 0.0
    events: int = 0


class _Cluster:
    """Processors, links and storage of all nodes, and what each was busy with."""

    def __init__(self, machine: Machine, nodes: int, ranks: int, few: int) -> None:
        self.machine, self.nodes, self.few = machine, nodes, few
        self.loop = Loop()
        self.width = min(ranks, machine.shared_cores or machine.cores)
        self._all = Servers(self.loop, machine.shared_cores) if machine.shared_cores else None
        self._team = [Servers(self.loop) for _ in range(nodes)]
        self._few = [Servers(self.loop) for _ in range(nodes)]
        self.out = [Servers(self.loop) for _ in range(nodes)]
        self._store = [Servers(self.loop) for _ in range(nodes)]
        self.into_free_s = np.zeros(nodes)
        self.busy_s = {phase: np.zeros(nodes) for phase in PHASES}

    def compute(self, node: int, phase: str, core_s: float, then: Callable[..., None], *arguments: Any,
                by: int) -> None:
        """Have `by` ranks of a node do so many seconds of a core's work; few are its aggregators or its leader."""
        width = min(by, self.width)
        self.busy_s[phase][node] += core_s / width
        if self._all is None:
            (self._team if by > self.few else self._few)[node].work(core_s / width, then, *arguments)
            return
        left = [width]

        def done() -> None:
            left[0] -= 1
            if left[0] == 0:
                then(*arguments)

        for _ in range(width):
            self._all.work(core_s / width, done)

    def store(self, node: int, seconds: float, then: Callable[..., None], *arguments: Any) -> None:
        """Have the storage of a node's aggregators work so long."""
        if self.machine.storage_on_cores:
            self.compute(node, "store", seconds, then, *arguments, by=self.few)
            return
        self.busy_s["store"][node] += seconds
        self._store[node].work(seconds, then, *arguments)

    def phases(self) -> dict[str, float]:
        return {phase: float(busy.max()) for phase, busy in self.busy_s.items()}


def _copy_s(machine: Machine, n_bytes: float, piece_bytes: float) -> float:
    return n_bytes * machine.copy_byte_s + n_bytes / piece_bytes * machine.piece_s


def _gather_all_s(machine: Machine, nodes: int, node_bytes: float) -> float:
    """An all-gather among the nodes, recursive doubling: log2(n) steps, every byte once through the link."""
    steps = math.ceil(math.log2(nodes)) if nodes > 1 else 0
    overhead = machine.send_overhead_s + machine.receive_overhead_s + machine.latency_s
    per_byte = max(machine.byte_gap_s, machine.send_byte_s + machine.receive_byte_s)
    return steps * overhead + (nodes - 1) * node_bytes * per_byte


class _Ours:
    """One access of this library under way."""

    def __init__(self, exchange: Exchange, machine: Machine, engine: Engine, *, write: bool) -> None:
        self.engine, self.machine, self.write = engine, machine, write
        self.piece = exchange.pattern.piece_bytes
        self.ranks = exchange.pattern.ranks_per_node
        self.nodes = exchange.pattern.nodes
        kind = "node" if engine.leaders else "ends" if engine.ends else "aggregator"
        self.rounds = Rounds(exchange, machine, kind, engine.eager_bytes, write=write)
        self.aggregators = exchange.count // self.nodes
        self.few = 1 if engine.leaders else min(self.aggregators, self.ranks)
        self.on = _Cluster(machine, self.nodes, self.ranks, self.few)
        self.done = {name: [-1] * self.nodes for name in _STEPS}
        self.begun = {name: [-1] * self.nodes for name in _STEPS}
        self.arrivals: dict[int, Any] = {}  # round -> [nodes] senders that a node still waits for
        self.first_s: dict[int, Floats] = {}  # round -> [nodes] when the first of them began
        self.credits: dict[int, Any] = {}  # round -> [nodes] receivers whose credit a node still waits for
        self.credit_s: dict[int, Floats] = {}  # round -> [nodes] when the last of them comes
        self.came: set[tuple[int, int]] = set()  # (node, round) that have all their messages
        self.out = Outcome()

    # ---- what a node waits for ---------------------------------------------------------------------------------------

    def advance(self, node: int) -> None:
        """Begin whatever this node can."""
        for name in _STEPS:
            number = self.begun[name][node] + 1
            if number < self.rounds.count and self.done[name][node] == number - 1 and self.may(name, node, number):
                self.begun[name][node] = number
                getattr(self, f"begin_{name}")(node, number)

    def may(self, name: str, node: int, number: int) -> bool:
        """Tell whether a node may begin a step of a round."""
        done, again = self.done, number - self.engine.buffers
        if name == "ready":  # a read loads its windows; a write has nothing to load
            return self.write or min(done["sent"][node], done["ended"][node]) >= again
        if name == "packed":
            return done["ready"][node] >= number and min(done["sent"][node], done["ended"][node]) >= again
        if name == "sent":
            ready = done["emptied"][node] >= number - 1 or not self.engine.in_step
            return done["packed"][node] >= number and ready and self.has_credit(node, number)
        if name == "ended":
            return done["emptied"][node] >= number
        before = "sent" if self.engine.leaders else "packed"  # a leader sends before it receives
        return done[before][node] >= number and ((node, number) in self.came or not self.rounds[number].sources[node])

    def has_credit(self, node: int, number: int) -> bool:
        """Tell whether all receivers of a node's messages have emptied the destinations of long enough ago."""
        if number < self.engine.credits or not len(self.rounds[number].targets[node]):
            return True
        self.expect_credits(number)
        return bool(self.credits[number][node] == 0 and self.credit_s[number][node] <= self.on.loop.now)

    def expect_credits(self, number: int) -> None:
        """Make the counts of a round's credits, once."""
        if number not in self.credits:
            self.credits[number] = self.rounds[number].there.sum(axis=1)
            self.credit_s[number] = np.zeros(self.nodes)

    def give_credits(self, node: int, number: int) -> None:
        """A node has emptied its destinations of a round: those who will send to it may do so after a latency."""
        later = number + self.engine.credits
        if later >= self.rounds.count:
            return
        self.expect_credits(later)
        origins = self.rounds[later].origins[node]
        self.credits[later][origins] -= 1
        ready = origins[self.credits[later][origins] == 0]
        self.credit_s[later][ready] = when = self.on.loop.now + self.machine.latency_s
        for origin in ready.tolist():
            self.on.loop.at(when, self.advance, origin)

    # ---- the steps of a round ----------------------------------------------------------------------------------------

    def begin_ready(self, node: int, number: int) -> None:
        """Load the windows of a read."""
        if self.write:
            self.finish("ready", node, number)
            return
        loaded = self.rounds[number].windows[node]
        self.out.stored_bytes += loaded
        self.on.store(node, loaded * self.machine.load_byte_s, self.finish, "ready", node, number)

    def begin_packed(self, node: int, number: int) -> None:
        """Put messages together, a write's ranks theirs, a read's aggregators others'; copies inside the node."""
        data = self.rounds[number]
        work = _copy_s(self.machine, data.out_bytes[node], self.piece)
        if self.write:
            work += _copy_s(self.machine, data.own[node], self.piece)
        phase, by = ("pack", self.ranks) if self.write else ("place", self.few)
        width = min(by, self.on.width)
        control = self._control_s(data, node)
        self.on.busy_s["control"][node] += control
        self.on.busy_s[phase][node] -= control
        self.on.compute(node, phase, work + (control + self.machine.window_s) * width, self.finish, "packed", node,
                        number, by=by)

    def _control_s(self, data: Round, node: int) -> float:
        """Return seconds for all that moves nothing: meeting in the node, who sends, messages without data."""
        machine, few = self.machine, min(self.few, self.on.width)
        senders = 1 if self.engine.leaders else self.on.width
        pairs = self.nodes * self.nodes * self.aggregators
        looking = pairs * COMPARE_S if self.engine.all_pairs else LOOK_S * data.looked[node]
        control = 2 * STEP_S * math.log2(max(2, self.ranks)) + looking
        control += data.out_empty[node] * machine.send_overhead_s / senders
        control += data.in_empty[node] * machine.receive_overhead_s / few
        if not self.write and not self.engine.leaders:  # data that is read is asked for
            control += data.in_messages[node] * machine.send_overhead_s / senders
            control += data.out_messages[node] * machine.receive_overhead_s / few + 2 * machine.latency_s
        return float(control)

    def begin_sent(self, node: int, number: int) -> None:
        """Send a message to each node that gets something."""
        data, machine = self.rounds[number], self.machine
        work = data.out_messages[node] * machine.send_overhead_s + data.out_bytes[node] * machine.send_byte_s
        self.on.busy_s["wire"][node] += data.out_link_s[node]
        self.out.messages += int(data.out_messages[node] + data.out_empty[node])
        self.out.crossed_bytes += data.out_bytes[node]
        if number not in self.arrivals:
            self.arrivals[number], self.first_s[number] = data.sources.copy(), np.full(self.nodes, np.inf)
        targets = data.targets[node]
        self.first_s[number][targets] = np.minimum(self.first_s[number][targets], self.on.loop.now)
        left = [2]

        def half() -> None:
            left[0] -= 1
            if left[0] == 0:
                self.leave(node, number)

        by = 1 if self.engine.leaders else self.ranks if self.write else self.few
        self.on.compute(node, "send", work, half, by=by)
        self.on.out[node].work(data.out_link_s[node], half)

    def leave(self, node: int, number: int) -> None:
        """All messages of a node's round have left it: they arrive where they were the last after a latency."""
        targets = self.rounds[number].targets[node]
        missing = self.arrivals[number]
        missing[targets] -= 1
        data, into = self.rounds[number], self.on.into_free_s
        for target in targets[missing[targets] == 0].tolist():
            last = self.on.loop.now + self.machine.latency_s
            begun = max(into[target], self.first_s[number][target] + self.machine.latency_s)
            into[target] = max(last, begun + data.in_link_s[target])
            self.on.loop.at(into[target], self.arrive, target, number)
        self.finish("sent", node, number)

    def arrive(self, node: int, number: int) -> None:
        """All messages of a round have come to a node."""
        self.came.add((node, number))
        self.advance(node)

    def begin_emptied(self, node: int, number: int) -> None:
        """Empty the destinations: place a write's data in the windows, or have a read's ranks copy theirs."""
        data, machine = self.rounds[number], self.machine
        self.came.discard((node, number))
        work = data.in_messages[node] * machine.receive_overhead_s + data.in_bytes[node] * machine.receive_byte_s
        copies = _copy_s(machine, data.in_bytes[node], self.piece)
        if self.write:
            asking = 2 * machine.latency_s * data.in_long[node]  # one message after the other at each aggregator
            self.on.compute(node, "place", work + copies + asking, self.finish, "emptied", node, number, by=self.few)
            return
        copies += _copy_s(machine, data.own[node], self.piece)
        alone = self.on.width if self.engine.leaders else 1  # the leader receives alone, then all copy
        self.on.compute(node, "pack", work * alone + copies, self.finish, "emptied", node, number, by=self.ranks)

    def finish(self, name: str, node: int, number: int) -> None:
        """A step of a round is done."""
        self.done[name][node] = number
        if name == "emptied":
            self.give_credits(node, number)
        self.advance(node)

    def begin_ended(self, node: int, number: int) -> None:
        """Store the windows of a write."""
        if not self.write:
            self.finish("ended", node, number)
            return
        stored = self.rounds[number].windows[node]
        self.out.stored_bytes += stored
        self.on.store(node, stored * self.machine.store_byte_s, self.finish, "ended", node, number)


def simulate_ours(exchange: Exchange, machine: Machine, engine: Engine, *, write: bool = True) -> Outcome:
    """Simulate one collective access of this library.

    Parameters
    ----------
    exchange : what is moved
    machine, engine : where, and how
    """
    state = _Ours(exchange, machine, engine, write=write)
    nodes, ranks = state.nodes, state.ranks
    views = ranks * VIEW_BLOB_BYTES if engine.leaders else view_message_bytes(nodes, ranks)
    spread = _gather_all_s(machine, nodes, views) + nodes * ranks * VIEW_S
    if engine.leaders:
        ranges = _gather_all_s(machine, nodes, ranks * RANK_ACCESS_BYTES)
    else:
        spread += _gather_all_s(machine, nodes, BLOCK_BYTES)
        ranges = exchange.count * (DUE_S + (nodes * PLACE_S if exchange.placed else 0.0))
    outcome = STRUCTS["mpiox_error"] + 8
    agreeing = _gather_all_s(machine, nodes, STRUCTS["mpiox_reduction"]) + _gather_all_s(machine, nodes, outcome)
    begin = spread + ranges + agreeing + machine.call_s * nodes * ranks
    state.on.busy_s["description"] += begin
    for node in range(nodes):
        state.on.loop.at(begin, state.advance, node)
    out = state.out
    out.seconds = state.on.loop.run()
    out.phases_s, out.events = state.on.phases(), state.on.loop.count
    if min(state.done["ended"]) < state.rounds.count - 1:
        raise RuntimeError("the simulation ended before the access: a node waits for something that cannot come")
    return out


def largest_messages_bytes(exchange: Exchange) -> float:
    """Return the largest message to each other node over all rounds, summed: the largest of all nodes' sums."""
    most = np.zeros((exchange.pattern.nodes, exchange.pattern.nodes))
    seen: set[int] = set()
    for number in range(exchange.rounds):
        flows = exchange.between(number)
        if id(flows) not in seen:
            seen = {id(flows)}
            np.maximum(most, flows.moved, out=most)
    np.fill_diagonal(most, 0)
    return float(most.sum(axis=0).max())


# ---- ROMIO -----------------------------------------------------------------------------------------------------------


def _alltoall_s(machine: Machine, nodes: int, ranks: int, width: int) -> float:
    """An all-to-all of an int between all ranks: Bruck's algorithm, log2(P) steps of P/2 ints each a rank."""
    size = nodes * ranks
    steps = math.ceil(math.log2(size)) if size > 1 else 0
    node_bytes = ranks * size / 2 * 4
    waves = ranks / width
    cpu = waves * (machine.send_overhead_s + machine.receive_overhead_s) + node_bytes / width * (
        machine.send_byte_s + machine.receive_byte_s)
    if machine.shared_cores:  # all nodes' ranks take turns on the same cores
        cpu *= nodes * min(ranks, width) / machine.shared_cores
    return steps * (machine.latency_s + max(cpu, node_bytes * machine.byte_gap_s, ranks * machine.gap_s))


def simulate_native(exchange: Exchange, machine: Machine, *, write: bool = True) -> Outcome:
    """Simulate one collective access of ROMIO: `exchange` has its aggregators and its collective buffer.

    A round is one step after the other, and begins for all nodes at the same time, so that no events are needed: each
    step takes as long as on the node where it takes longest; processors that all nodes share add up.
    """
    pattern = exchange.pattern
    nodes, ranks = pattern.nodes, pattern.ranks_per_node
    rounds = Rounds(exchange, machine, "rank", write=write)
    width = min(ranks, machine.shared_cores or machine.cores)
    busy = dict.fromkeys(PHASES, 0.0)
    out = Outcome()
    aggregators = exchange.count // nodes

    def longest(core_s: Floats, wide: int) -> float:
        if machine.shared_cores:
            return float(max(core_s.max() / wide, core_s.sum() / machine.shared_cores))
        return float(core_s.max() / wide)

    pieces = pattern.file_bytes / pattern.piece_bytes
    node_pieces = np.full(nodes, pieces / nodes)
    lists = pieces / nodes * _LIST_BYTES * (nodes - 1) / nodes
    messages = ranks * exchange.count
    work = messages * (machine.send_overhead_s + machine.receive_overhead_s) + lists * (
        machine.send_byte_s + machine.receive_byte_s)
    busy["description"] = longest(node_pieces * machine.native_piece_s + work, width) + max(
        lists * machine.byte_gap_s, messages * machine.gap_s) + machine.latency_s + _alltoall_s(
            machine, nodes, ranks, width)
    for number in range(rounds.count):
        data = rounds[number]
        moved = data.own + (data.out_bytes if write else data.in_bytes)
        pack = moved * machine.copy_byte_s + moved / pattern.piece_bytes * machine.native_piece_s
        place = data.windows * machine.copy_byte_s + data.windows / pattern.piece_bytes * machine.native_piece_s
        send = data.out_messages * machine.send_overhead_s + data.out_bytes * machine.send_byte_s
        receive = data.in_messages * machine.receive_overhead_s + data.in_bytes * machine.receive_byte_s
        placing = min(aggregators, width)
        busy["control"] += _alltoall_s(machine, nodes, ranks, width) + machine.native_round_s
        busy["pack"] += longest(pack, width)
        busy["send"] += longest(send, width if write else placing)
        busy["wire"] += machine.latency_s + float(max(data.out_link_s.max(), data.in_link_s.max()))
        busy["place"] += longest(place + receive, placing) if write else longest(place, placing)
        busy["pack"] += 0.0 if write else longest(receive, width)
        store = data.windows * (machine.store_byte_s if write else machine.load_byte_s)
        busy["store"] += longest(store, placing) if machine.storage_on_cores else float(store.max())
        out.messages += int(data.out_messages.sum())
        out.crossed_bytes += float(data.out_bytes.sum())
        out.stored_bytes += float(data.windows.sum())
    out.phases_s = busy
    out.seconds = sum(busy.values())
    return out
