"""A plain event loop with servers in front of which work queues: what the simulator of the exchange runs on.

Events at the same time happen in the order in which they were planned, so that a simulation gives the same numbers
wherever it runs. Times are seconds of the model.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Loop", "Servers"]


class Loop:
    """Plans and runs events.

    Attributes
    ----------
    now : the present time, in seconds
    count : events that have happened
    """

    def __init__(self) -> None:
        self.now, self.count = 0.0, 0
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._planned = 0

    def at(self, time_s: float, then: Callable[..., None], *arguments: Any) -> None:
        """Call `then` at a time, which is not in the past.

        Raises
        ------
        ValueError
            the time is in the past
        """
        if time_s < self.now:
            raise ValueError(f"an event at {time_s} s was planned at {self.now} s")
        heapq.heappush(self._heap, (time_s, self._planned, then, arguments))
        self._planned += 1

    def after(self, delay_s: float, then: Callable[..., None], *arguments: Any) -> None:
        """Call `then` so many seconds from now."""
        self.at(self.now + delay_s, then, *arguments)

    def run(self) -> float:
        """Let everything happen; returns the time of the last event, in seconds."""
        while self._heap:
            self.now, _, then, arguments = heapq.heappop(self._heap)
            self.count += 1
            then(*arguments)
        return self.now


class Servers:
    """Equal servers with one queue, first come, first served.

    Parameters
    ----------
    loop : the event loop
    count : of the servers

    Attributes
    ----------
    busy_s : seconds that all of them worked, together
    """

    def __init__(self, loop: Loop, count: int = 1) -> None:
        self._loop, self._free = loop, count
        self._waiting: deque[tuple[float, Callable[..., None], tuple[Any, ...]]] = deque()
        self.busy_s = 0.0

    def work(self, seconds: float, then: Callable[..., None], *arguments: Any) -> None:
        """Have one server work so long, then call `then`."""
        if self._free:
            self._begin(seconds, then, arguments)
        else:
            self._waiting.append((seconds, then, arguments))

    def _begin(self, seconds: float, then: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._free -= 1
        self.busy_s += seconds
        self._loop.after(seconds, self._end, then, arguments)

    def _end(self, then: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._free += 1
        if self._waiting:
            self._begin(*self._waiting.popleft())
        then(*arguments)
