"""What each round of an exchange moves: bytes, messages and time on the links, by node and between nodes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from exchange_loggp import Machine
from exchange_traffic import Exchange, Flows

Floats = npt.NDArray[np.float64]


class Round:
    """What a round moves: by node, and between which nodes; of `flows` [windows' node, ranks' node].

    kind : "rank" is a message of each rank that has a piece for a node's window, "node" one for a pair of nodes,
        "aggregator" one for each window with data and for the first that the node's range meets, "ends" for all that
        it meets
    """

    def __init__(self, flows: Flows, piece_bytes: float, ranks_per_node: int, machine: Machine, kind: str,
                 eager_bytes: int, *, write: bool) -> None:
        self.windows = flows.moved.sum(axis=1)
        self.own = np.diagonal(flows.moved).copy()
        sent, carrying, meeting, opening = (_away(one, write=write) for one in (
            flows.moved, flows.carrying, flows.meeting, flows.opening))
        messages = np.where(sent > 0, 1.0, 0.0)
        if kind == "rank":
            messages *= np.minimum(ranks_per_node, np.ceil(sent / piece_bytes))
        elif kind != "node":
            messages = carrying
        empty = np.maximum(meeting - messages, 0) if kind == "ends" else np.zeros_like(sent)
        empty = opening if kind == "aggregator" else empty
        self.looked = (flows.meeting - np.diag(np.diagonal(flows.meeting))).sum(axis=0)
        size = np.divide(sent, messages, out=np.zeros_like(sent), where=messages > 0)
        link = messages * np.maximum(machine.gap_s, size * machine.byte_gap_s) + empty * machine.gap_s
        long = np.where(size > eager_bytes, messages, 0)
        self.out_messages, self.in_messages = messages.sum(axis=1), messages.sum(axis=0)
        self.out_empty, self.in_empty = empty.sum(axis=1), empty.sum(axis=0)
        self.in_long = long.sum(axis=0)
        self.out_bytes, self.in_bytes = sent.sum(axis=1), sent.sum(axis=0)
        self.out_link_s, self.in_link_s = link.sum(axis=1), link.sum(axis=0)
        self.there = (messages + empty) > 0
        self.sources = self.there.sum(axis=0)
        self.targets = [np.nonzero(row)[0] for row in self.there]
        self.origins = [np.nonzero(column)[0] for column in self.there.T]


def _away(flows: Floats, *, write: bool) -> Floats:
    """Return [sender, receiver] between different nodes."""
    away = flows - np.diag(np.diagonal(flows))
    return away.T.copy() if write else away


class Rounds:
    """The rounds of an access, each made once for as long as it is needed."""

    def __init__(self, exchange: Exchange, machine: Machine, kind: str, eager_bytes: int = 1 << 62, *,
                 write: bool) -> None:
        self._of, self._machine, self._kind, self._eager, self._write = exchange, machine, kind, eager_bytes, write
        self._made: dict[int, Round] = {}
        self._by_flows: dict[int, tuple[Flows, Round]] = {}
        self.count = exchange.rounds

    def __getitem__(self, number: int) -> Round:
        if number not in self._made:
            flows = self._of.between(number)
            known = self._by_flows.get(id(flows))
            if known is None:
                pattern = self._of.pattern
                made = Round(flows, pattern.piece_bytes, pattern.ranks_per_node, self._machine, self._kind,
                              self._eager, write=self._write)
                if len(self._by_flows) > 8:
                    self._by_flows.clear()
                self._by_flows[id(flows)] = known = (flows, made)
            self._made[number] = known[1]
            self._made.pop(number - 16, None)
        return self._made[number]
