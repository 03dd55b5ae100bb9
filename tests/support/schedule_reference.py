"""The schedulers of the delegates as plain lists: what csrc/iod/schedule must do, request by request."""

from __future__ import annotations

from dataclasses import dataclass, field

from support.scheduling import NEVER, Request


@dataclass(slots=True, eq=False)
class Entry:
    """A request in the queue."""

    number: int
    what: Request
    arrival: int
    ready: bool = False
    looks: int = 0  # of its lane when it became ready
    finish: float = 0.0
    lane: Lane | None = None

    @property
    def end(self) -> int:
        return self.what.offset + self.what.length

    @property
    def stream(self) -> tuple[int, bool]:
        return self.what.file, self.what.write


@dataclass(slots=True, eq=False)
class Lane:
    """What a policy keeps of a file and direction, a flow, or a server."""

    key: object
    quantum: int
    used: int = 0
    end: int = -1
    wait_until: int = 0
    waited_for: int = -1
    looks: int = 0
    finish: float = 0.0


@dataclass(slots=True)
class Reference:
    """A queue; the arguments are those of `support.scheduling.Queue`."""

    policy: str
    quantum: int
    window: int = 0
    patience: int = 0
    batch_bytes: int = 16 << 20
    batch_requests: int = 256
    first_server: int = 0
    clock_offset: int = 0
    entries: dict[int, Entry] = field(default_factory=dict)  # in order of arrival, until they are done
    taken: set[int] = field(default_factory=set)
    lanes: list[Lane] = field(default_factory=list)
    turn: int = -1
    since_overdue: int = 7  # batches
    window_now: int = 0
    servers: list[int] = field(default_factory=list)
    clock: float = 0.0
    allowance: int = NEVER
    number: int = 0

    # ---- requests ----

    def add(self, what: Request, now: int, name: int) -> None:
        self.entries[name] = Entry(self.number, what, now)
        self.number += 1
        self._release()

    def done(self, name: int) -> None:
        del self.entries[name]
        self.taken.discard(name)
        self._release()

    cancel = done

    @staticmethod
    def conflict(one: Entry, other: Entry) -> bool:
        return (
            one.what.file == other.what.file
            and (one.what.write or other.what.write)
            and one.what.offset < other.end
            and other.what.offset < one.end
        )

    def _release(self) -> None:
        """Those that no older conflicting one is before are ready: in the order of the queue's own tree."""
        older: list[Entry] = []
        found = []
        for entry in self.entries.values():
            if not entry.ready and not any(self.conflict(entry, each) for each in older):
                found.append(entry)
            older.append(entry)
        for entry in sorted(found, key=lambda e: (e.stream, e.what.offset, e.number)):
            self._make_ready(entry)

    def _make_ready(self, entry: Entry) -> None:
        key = {
            "sjf": entry.stream,
            "aioli": entry.stream,
            "mlf": entry.stream,
            "hbrr": entry.stream,
            "twins": entry.what.server,
            "wfq": entry.what.flow,
        }.get(self.policy, 0)
        lane = next((each for each in self.lanes if each.key == key), None)
        if lane is None:
            lane = Lane(key, self.quantum)
            self.lanes.append(lane)
        entry.ready, entry.lane, entry.looks = True, lane, lane.looks
        if self.policy == "wfq":
            entry.finish = max(lane.finish, self.clock) + entry.what.length / entry.what.weight
            lane.finish = entry.finish

    # ---- what is next ----

    def waiting(self, lane: Lane | None = None) -> list[tuple[int, Entry]]:
        """Ready ones in order of arrival."""
        return [
            (name, entry)
            for name, entry in self.entries.items()
            if entry.ready and name not in self.taken and (lane is None or entry.lane is lane)
        ]

    def lowest(self, lane: Lane) -> tuple[int, Entry]:
        return min(self.waiting(lane), key=lambda item: (item[1].what.offset, item[1].number))

    def next(self, now: int, hurry: bool) -> tuple[tuple[int, ...], int]:
        ready = self.waiting()
        if not ready:
            return (), NEVER
        self.allowance = NEVER
        fair = self.policy in ("fifo", "to_agg", "wfq")
        due = ready[0][1].arrival + self.patience if self.patience and not fair else NEVER
        name: int | None = None
        until = NEVER
        if now < due or self.since_overdue < 7:
            name, until = getattr(self, f"_{self.policy}")(now, hurry)
            self.since_overdue += name is not None
        if name is None and now < due:
            return (), min(until, due)
        if name is None:
            name, self.since_overdue, self.allowance = ready[0][0], 0, self.quantum
        return self._gather(name), NEVER

    def _gather(self, head: int) -> tuple[int, ...]:
        batch = [head]
        self.taken.add(head)
        first = self.entries[head]
        while (found := self._joins(batch, first, after=True)) is not None:
            batch.append(found)
            self.taken.add(found)
        while (found := self._joins(batch, first, after=False)) is not None:
            batch.insert(0, found)
            self.taken.add(found)
        assert first.lane is not None
        first.lane.used += self.entries[batch[-1]].end - self.entries[batch[0]].what.offset
        first.lane.end = self.entries[batch[-1]].end
        return tuple(batch)

    def _joins(self, batch: list[int], first: Entry, *, after: bool) -> int | None:
        start, end = self.entries[batch[0]].what.offset, self.entries[batch[-1]].end
        ready = self.waiting()
        fits = [
            (name, e)
            for name, e in ready
            if e.stream == first.stream and (e.what.offset == end if after else e.end == start)
        ]
        if not fits or len(batch) >= self.batch_requests:
            return None
        name, entry = min(fits, key=lambda item: (item[1].what.offset, item[1].number))
        if end - start + entry.what.length > min(self.batch_bytes, self.allowance):
            return None
        if self.policy == "fifo" and name != ready[0][0]:
            return None
        if self.policy in ("twins", "wfq") and entry.lane is not first.lane:
            return None
        return name

    # ---- policies ----

    def _fifo(self, _now: int, _hurry: bool) -> tuple[int, int]:
        return self.waiting()[0][0], NEVER

    _to_agg = _fifo

    def _sjf(self, _now: int, _hurry: bool) -> tuple[int, int]:
        def size(lane: Lane) -> tuple[int, int]:
            waiting = self.waiting(lane)
            return sum(entry.what.length for _, entry in waiting), waiting[0][1].number

        return self.lowest(min((lane for lane in self.lanes if self.waiting(lane)), key=size))[0], NEVER

    def _next_lane(self) -> Lane:
        while True:
            self.turn = (self.turn + 1) % len(self.lanes)
            if self.waiting(self.lanes[self.turn]):
                return self.lanes[self.turn]

    def _reached(self, entry: Entry) -> int:
        assert entry.lane is not None
        looks = entry.lane.looks - entry.looks
        return self.quantum << (looks - 1) if looks > 0 else 0

    def _is_reached(self, entry: Entry) -> bool:
        return entry.what.length <= self._reached(entry)

    def _mlf(self, _now: int, _hurry: bool) -> tuple[int, int]:
        while True:
            lane = self._next_lane()
            lane.looks += 1
            reached = [
                (entry.what.offset, entry.number, name) for name, entry in self.waiting(lane) if self._is_reached(entry)
            ]
            if reached:
                name = min(reached)[2]
                self.allowance = self._reached(self.entries[name])
                return name, NEVER

    def _hbrr(self, _now: int, _hurry: bool) -> tuple[int, int]:
        lane = self.lanes[max(self.turn, 0)]
        if self.turn < 0 or lane.used == 0 or lane.used >= self.quantum or not self.waiting(lane):
            lane = self._next_lane()
            lane.used = 0
        self.allowance = self.quantum - lane.used
        return self.lowest(lane)[0], NEVER

    def _twins(self, now: int, hurry: bool) -> tuple[int | None, int]:
        if self.window == 0:
            return self.waiting()[0][0], NEVER
        window = (now + self.clock_offset) // self.window
        if not self.servers or window != self.window_now:
            self.servers = sorted(int(str(lane.key)) for lane in self.lanes)
        self.window_now = window
        turn = (self.first_server + window) % len(self.servers)
        for server in (self.servers[turn:] + self.servers[:turn])[: len(self.servers) if hurry else 1]:
            if found := [name for name, entry in self.waiting() if entry.what.server == server]:
                return found[0], NEVER
        return (self.waiting()[0][0], NEVER) if hurry else (None, (window + 1) * self.window - self.clock_offset)

    def _wfq(self, _now: int, _hurry: bool) -> tuple[int, int]:
        heads = [self.waiting(lane)[0] for lane in self.lanes if self.waiting(lane)]
        name, entry = min(heads, key=lambda item: (item[1].finish, item[1].number))
        self.clock = max(self.clock, entry.finish)
        self.allowance = self.quantum
        return name, NEVER

    def _aioli(self, now: int, hurry: bool) -> tuple[int | None, int]:
        lane = self.lanes[self.turn] if self.turn >= 0 else Lane(None, self.quantum)  # nobody has had a turn
        left = lane.quantum - lane.used
        if lane.used and left > 0 and self.waiting(lane):
            name, head = self.lowest(lane)
            if head.what.length <= left and not self._is_ahead(lane, head, hurry):
                self.allowance = left
                return name, NEVER
        if lane.used:
            most = max(self.batch_bytes, self.quantum)
            if lane.used < lane.quantum - lane.quantum // 4:
                lane.quantum //= 2
            elif self.waiting(lane):
                lane.quantum *= 2 if lane.quantum <= self.batch_bytes // 2 else 1
            lane.quantum = min(max(lane.quantum, self.quantum), most)
            lane.used = 0
        found, again, until = None, True, NEVER
        while found is None and again:
            found, again, until = self._look_round(now, hurry)
        if found is None:
            return None, until
        chosen = self.entries[found].lane
        assert chosen is not None
        self.turn = self.lanes.index(chosen)
        chosen.used = 0
        self.allowance = chosen.quantum
        return found, NEVER

    def _is_ahead(self, lane: Lane, head: Entry, hurry: bool) -> bool:
        gap = head.what.offset - lane.end
        return (
            not hurry
            and self.window > 0
            and lane.end >= 0
            and 0 < gap <= lane.quantum
            and lane.waited_for != head.number
        )

    def _look_round(self, now: int, hurry: bool) -> tuple[int | None, bool, int]:
        heads, unreached = [], False
        for lane in self.lanes:
            if not self.waiting(lane) or (now < lane.wait_until and not hurry):
                continue
            name, head = self.lowest(lane)
            lane.looks += 1
            if not self._is_reached(head):
                unreached = True
            elif self._is_ahead(lane, head, hurry):
                lane.waited_for, lane.wait_until = head.number, now + self.window
            else:
                heads.append((head.number, name))
        until = min(
            (lane.wait_until for lane in self.lanes if self.waiting(lane) and lane.wait_until > now), default=NEVER
        )
        return (min(heads)[1] if heads else None), unreached, until
