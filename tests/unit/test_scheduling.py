"""Request scheduling of the delegates: against plain lists, the order of each policy, and that nothing starves."""

from __future__ import annotations

import itertools
import pathlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mpiio_ext.errors import ArgumentError
from mpiio_ext.hints import registry
from support import cbuild
from support.schedule_reference import Reference
from support.scheduling import NEVER, Batch, Queue, Request, policies

NAMES = tuple(policies())
WAITING = ("twins", "aioli")  # let time pass by themselves
KIB = 1024

REQUEST = st.builds(
    Request,
    file=st.integers(0, 2),
    offset=st.integers(0, 11).map(lambda page: page * 4),
    length=st.sampled_from([4, 4, 4, 8, 16]),
    write=st.booleans(),
    flow=st.integers(0, 2),
    weight=st.integers(1, 3),
    server=st.integers(-1, 2),
)
STEP = st.one_of(
    st.tuples(st.just("add"), REQUEST),
    st.tuples(st.just("add"), REQUEST),
    st.tuples(st.just("next"), st.tuples(st.integers(0, 30), st.sampled_from([False, False, True]))),
    st.tuples(st.just("done"), st.integers(0, 1000)),
    st.tuples(st.just("cancel"), st.integers(0, 1000)),
)
OPTIONS = st.fixed_dictionaries(
    {
        "quantum": st.sampled_from([2, 4, 8, 12, 32]),
        "window": st.sampled_from([0, 10, 25]),
        "patience": st.sampled_from([0, 0, 40, 200]),
        "batch_bytes": st.sampled_from([4, 12, 24, 1000]),
        "batch_requests": st.sampled_from([1, 2, 3, 64]),
        "first_server": st.integers(0, 4),
        "clock_offset": st.integers(0, 60),
    }
)


class Checked:
    """A queue beside its reference: every batch is the same, and the order of what overlaps is kept."""

    def __init__(self, policy: str, options: dict[str, int]) -> None:
        self.queue, self.reference = Queue(policy, **options), Reference(policy, **options)
        self.options, self.policy = options, policy
        self.waiting: dict[int, Request] = {}
        self.served: list[int] = []
        self.order: dict[int, int] = {}
        self.now = 0
        self.count = {"added": 0, "served": 0, "batches": 0}

    def add(self, request: Request) -> None:
        name = self.queue.add(request, self.now)
        assert name not in self.waiting
        assert name not in self.served
        self.waiting[name] = request
        self.order[name] = self.count["added"]
        self.count["added"] += 1
        self.reference.add(request, self.now, name)

    def next(self, passed: int, hurry: bool) -> Batch:
        self.now += passed
        batch = self.queue.next(self.now, hurry=hurry)
        assert batch.ids == (expected := self.reference.next(self.now, hurry))[0]
        if not batch.ids:
            assert batch.until == expected[1]
            assert batch.until > self.now
            assert hurry <= (not self.reference.waiting())
            return batch
        requests = [self.waiting[name] for name in batch.ids]
        for one, other in itertools.pairwise(requests):
            assert (one.file, one.write, one.offset + one.length) == (other.file, other.write, other.offset)
        assert len(requests) <= self.options["batch_requests"]
        assert len(requests) == 1 or sum(r.length for r in requests) <= self.options["batch_bytes"]
        for name in batch.ids:
            self._is_before_what_overlaps(name)
        for name in batch.ids:
            del self.waiting[name]
        self.served += batch.ids
        self.count["served"] += len(requests)
        self.count["batches"] += 1
        return batch

    def _is_before_what_overlaps(self, name: int) -> None:
        mine = self.reference.entries[name]
        for other, entry in self.reference.entries.items():
            if other != name and self.reference.conflict(mine, entry):
                assert self.order[name] < self.order[other]

    def done(self, name: int) -> None:
        self.served.remove(name)
        self.queue.done(name)
        self.reference.done(name)

    def cancel(self, name: int) -> None:
        del self.waiting[name]
        self.queue.cancel(name)
        self.reference.cancel(name)

    def drain(self) -> None:
        while self.waiting or self.served:
            for name in list(self.served):
                self.done(name)
            if self.waiting:
                assert self.next(1, True).ids, self.waiting
        assert self.queue.next(self.now) == ((), NEVER)


USUAL = {
    "quantum": 4,
    "window": 10,
    "patience": 40,
    "batch_bytes": 1000,
    "batch_requests": 64,
    "first_server": 0,
    "clock_offset": 0,
}


def added(offset: int, flow: int = 0) -> tuple[str, Request]:
    """Return the step that adds a write of 4 bytes."""
    return "add", Request(file=0, offset=offset, length=4, write=True, flow=flow, weight=1, server=0)


#: Four requests, one behind the other, that are overdue together: a batch of them is no longer than the quantum.
OVERDUE = [*(added(4 * page) for page in range(4)), ("next", (100, False)), ("next", (100, False))]
#: What was held for the request before it is older than one that was ready at once.
HELD = [added(0), added(0), added(80), ("next", (1, True)), ("done", 0), ("next", (1, True)), ("next", (1, True))]


@pytest.mark.parametrize("policy", NAMES)
@settings(deadline=None, max_examples=150)
@given(OPTIONS, st.lists(STEP, max_size=60))
@example(USUAL, OVERDUE)
@example(USUAL, HELD)
def test_is_what_the_reference_is(policy: str, options: dict[str, int], steps: list[tuple[str, object]]) -> None:
    """Every request comes out once, in the order of the policy, after what it overlaps."""
    checked = Checked(policy, options)
    for what, argument in steps:
        if what == "add" and isinstance(argument, Request):
            checked.add(argument)
        elif what == "next" and isinstance(argument, tuple):
            checked.next(*argument)
        elif what == "done" and checked.served and isinstance(argument, int):
            checked.done(checked.served[argument % len(checked.served)])
        elif what == "cancel" and checked.waiting and isinstance(argument, int):
            checked.cancel(list(checked.waiting)[argument % len(checked.waiting)])
        assert len(checked.queue) == len(checked.waiting)
    checked.drain()
    counters = checked.queue.counters
    assert {name: counters[name] for name in checked.count} == checked.count
    assert counters["merged"] == counters["served"] - counters["batches"]
    assert counters["depth_max"] <= counters["added"]


# ---- what one queue gives out ----------------------------------------------------------------------------------------


def order(queue: Queue, requests: list[Request], *, hurry: bool = True) -> list[list[int]]:
    """Return the numbers of the requests, batch by batch, when all have come at once."""
    names = {queue.add(request, 0): number for number, request in enumerate(requests)}
    found = []
    while batch := queue.next(0, hurry=hurry).ids:
        found.append([names[name] for name in batch])
        for name in batch:
            queue.done(name)
    return found


def at(file: int, page: int, **more: int) -> Request:
    return Request(file, page * KIB, KIB, **more)  # type: ignore[arg-type]


#: Policies, their options, requests that come at once, and the order in which they are served, batch by batch.
ORDERS: dict[str, tuple[str, dict[str, int], list[Request], list[list[int]]]] = {
    "fifo merges only what came one after the other": (
        "fifo",
        {},
        [at(0, 5), at(0, 6), at(1, 0), at(0, 7), at(0, 4)],
        [[0, 1], [2], [3], [4]],
    ),
    "to_agg takes along what continues the oldest": (
        "to_agg",
        {},
        [at(0, 5), at(1, 0), at(0, 7), at(0, 4), at(0, 6)],
        [[3, 0, 4, 2], [1]],
    ),
    "sjf serves the file that wants least": (
        "sjf",
        {},
        [at(0, 0), at(0, 5), at(0, 9), at(1, 3), at(1, 1), at(2, 8)],
        [[5], [4], [3], [0], [1], [2]],
    ),
    "hbrr gives every file its quantum, in file order": (
        "hbrr",
        {"quantum": 2 * KIB},
        [*(at(0, page) for page in (6, 2, 0, 4)), *(at(1, page) for page in (3, 1, 2))],
        [[2], [1], [5, 6], [3], [0], [4]],
    ),
    "mlf lets small requests pass until the quantum reaches the large one": (
        "mlf",
        {"quantum": KIB},
        [Request(0, 0, 8 * KIB), *(at(0, 20 + 2 * page) for page in range(6))],
        [[1], [2], [3], [0], [4], [5], [6]],
    ),
    "mlf gives files turns": (
        "mlf",
        {"quantum": KIB},
        [at(file, page) for file in (0, 1) for page in (0, 2, 4)],
        [[0], [3], [1], [4], [2], [5]],
    ),
    "mlf merges up to the quantum reached: small requests that touch wait as one large one": (
        "mlf",
        {"quantum": KIB},
        [*(at(0, page) for page in range(9)), *(at(1, page) for page in range(3))],
        [[0], [9], [1, 2], [10, 11], [3, 4, 5, 6], [7, 8]],
    ),
    "aioli keeps to a file for its quantum, and raises it": (
        "aioli",
        {"quantum": 2 * KIB, "window": 5},
        [at(file, 2 * page) for page in range(8) for file in (0, 1)],
        [[each] for each in (0, 2, 1, 3, 4, 6, 8, 10, 5, 7, 9, 11, 12, 14, 13, 15)],
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_of_the_policies(name: str) -> None:
    policy, options, requests, wanted = ORDERS[name]
    assert order(Queue(policy, **options), requests) == wanted


@pytest.mark.parametrize("policy", NAMES)
def test_batches_are_as_large_as_may_be_and_no_larger(policy: str) -> None:
    """Ten pages that follow each other: batches of the bytes, and of the requests, that the options allow."""
    requests = [at(0, page) for page in range(10)]
    for limits, sizes in (
        ({"batch_bytes": 3 * KIB}, [3, 3, 3, 1]),
        ({"batch_bytes": 4 * KIB - 1}, [3, 3, 3, 1]),
        ({"batch_requests": 4}, [4, 4, 2]),
        ({}, [10]),
    ):
        found = order(Queue(policy, quantum=100 * KIB, **limits), requests)
        assert [len(batch) for batch in found] == sizes, limits


def test_aioli_waits_for_what_is_missing_but_once() -> None:
    queue = Queue("aioli", quantum=4 * KIB, window=100)
    queue.add(at(0, 0), 0)
    assert len(queue.next(0).ids) == 1
    for now, missing in ((10, at(0, 1)), (500, None)):
        start = 2 if missing else 4
        queue.add(at(0, start), now)
        assert queue.next(now + 5) == ((), now + 105)
        if missing:
            queue.add(missing, now + 20)
        assert len(queue.next(now + 105).ids) == (2 if missing else 1)
    assert queue.counters["windows"] == 2
    assert queue.counters["waited_ns"] == 200


def play_windows(queue: Queue, servers: list[int], *, window: int = 100, end: int = 1000) -> dict[int, set[int]]:
    """Return which servers were served in each window; requests of a server never touch, and come all at once."""
    names = {queue.add(at(0, 2 * page, server=server), 0): server for page, server in enumerate(servers)}
    found: dict[int, set[int]] = {}
    for now in range(0, end, 7):
        batch = queue.next(now)
        for name in batch.ids:
            found.setdefault(now // window, set()).add(names[name])
            queue.done(name)
        if not batch.ids and len(queue):
            assert batch.until == (now // window + 1) * window
    return found


def test_twins_serves_one_server_in_a_window() -> None:
    """Server number (delegate + window) mod 3 by rising ID, whatever came first."""
    queue = Queue("twins", window=100, first_server=1)
    assert play_windows(queue, [7, 2, 7, 5, 2, 2]) == {0: {5}, 1: {7}, 2: {2}}
    assert len(queue) == 0


def test_twins_delegates_are_at_different_servers() -> None:
    """Three delegates, to which requests come in different orders and at different numbers, never meet at a server."""
    arrivals = ([0, 1, 2, 3] * 20, [3, 1, 0, 2] * 20, [2, 2, 3, 1, 0] * 16)
    played = [play_windows(Queue("twins", window=100, first_server=k), servers) for k, servers in enumerate(arrivals)]
    for window in range(4):
        at_once = [server for each in played for server in each[window]]
        assert len(at_once) == len(set(at_once)) == 3, (window, played)


def test_twins_windows_begin_by_the_clock_of_all_delegates() -> None:
    """One delegate's clock is 250 behind the other's: with that for an offset they change servers at the same time."""
    for now in range(0, 900, 10):
        servers = set()
        for delegate, offset in ((0, 250), (1, 0)):
            queue = Queue("twins", window=100, first_server=delegate, clock_offset=offset)
            names = {queue.add(at(0, 2 * server, server=server), 0): server for server in range(4)}
            servers.add(names[queue.next(now + 250 - offset).ids[0]])
        assert len(servers) == 2, now


def test_twins_does_not_change_its_turn_within_a_window() -> None:
    """Server 3 is met in the middle of a window of server 5, and would be before it: it has turns from the next on."""
    queue = Queue("twins", window=100)
    five = [queue.add(at(0, 2 * page, server=5), 0) for page in range(2)]
    queue.add(at(1, 0, server=6), 0)
    assert queue.next(210).ids == (five[0],)  # number 2 mod 2 of 5, 6
    queue.add(at(2, 0, server=3), 220)
    assert queue.next(230).ids == (five[1],)
    assert queue.next(240) == ((), 300)
    assert [len(queue.next(now).ids) for now in (310, 320, 410, 510)] == [1, 0, 0, 1]  # of 3, 5, 6


def test_twins_does_not_wait_where_only_one_server_is_met() -> None:
    queue = Queue("twins", window=10**9)
    assert order(queue, [at(0, page, server=7) for page in (3, 0, 9)], hurry=False) == [[0], [1], [2]]


def test_wfq_shares_by_weight() -> None:
    queue = Queue("wfq", quantum=KIB, capacity=1000)
    requests = [
        at(flow, 2 * page, flow=flow, weight=weight) for page in range(60) for flow, weight in ((0, 1), (1, 2), (2, 3))
    ]
    found = [batch[0] % 3 for batch in order(queue, requests)][:60]
    assert [found.count(flow) for flow in range(3)] == [10, 20, 30]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=2, max_size=4), st.integers(1, 16))
def test_wfq_keeps_its_bound(flows: list[tuple[int, int]], quantum: int) -> None:
    """Bytes by weight of two flows that always wait differ by one batch of each, by weight, in any interval."""
    queue = Queue("wfq", quantum=quantum, capacity=4096)
    names = {
        queue.add(Request(flow, k * length, length, flow=flow, weight=weight), 0): flow
        for k in range(200)
        for flow, (weight, length) in enumerate(flows)
    }
    total = [[0.0] for _ in flows]
    for _ in range(150):
        if not (batch := queue.next(0).ids):
            break
        flow = names[batch[0]]
        for k, (weight, length) in enumerate(flows):
            total[k].append(total[k][-1] + (len(batch) * length / weight if k == flow else 0))
        for name in batch:
            queue.done(name)
    largest = [max(quantum, length) / weight for weight, length in flows]
    backlogged = min(
        next((i for i, t in enumerate(each) if t * flows[k][0] > 150 * flows[k][1]), len(each))
        for k, each in enumerate(total)
    )
    for one, other in itertools.combinations(range(len(flows)), 2):
        differences = [total[one][i] - total[other][i] for i in range(backlogged)]
        assert max(differences) - min(differences) <= largest[one] + largest[other] + 1e-9


def test_wfq_gives_an_idle_flow_no_credit() -> None:
    """A flow that comes when another has been served for long takes turns with it from then on."""
    queue = Queue("wfq", quantum=KIB, capacity=1000)
    flows = {queue.add(at(0, 2 * page, flow=0), 0): 0 for page in range(40)}
    found = []
    for turn in range(60):
        if turn == 20:
            flows |= {queue.add(at(1, 2 * page, flow=1), 0): 1 for page in range(20)}
        (name,) = queue.next(0).ids
        queue.done(name)
        found.append(flows[name])
    assert found[:20] == [0] * 20
    assert all(found[i : i + 2].count(1) == 1 for i in range(20, 58, 2)), found


# ---- starvation ------------------------------------------------------------------------------------------------------

FAIR = ("fifo", "to_agg", "wfq")  # bound the wait themselves; of the others the patience does
OVERDUE_EVERY = 8
VICTIM = Request(0, 0, 64 * KIB, server=0)


def serve_against(policy: str, patience: int, weight: int, rounds: int = 1500) -> int | None:
    """Return after how many batches the victim is served while others come faster than they are served."""
    queue = Queue(policy, quantum=4 * KIB, window=50, patience=patience, capacity=4 * rounds)
    name = queue.add(VICTIM, 0)
    for k in range(rounds):
        now = 10 * k
        queue.add(Request(1, 2 * k * KIB, KIB, flow=1, server=1, weight=weight), now)
        queue.add(Request(2 + k % 2, 2 * k * KIB, KIB, flow=2, server=2, weight=weight), now)
        batch = queue.next(now).ids
        if name in batch:
            return k
        for each in batch:
            queue.done(each)
    return None


@pytest.mark.parametrize("policy", [name for name in NAMES if name not in FAIR])
def test_nothing_starves(policy: str) -> None:
    """After the patience (1,000 ns, 100 rounds) it is next: it is the oldest, and no other was overdue before it."""
    served = serve_against(policy, 1000, weight=1000)
    assert served is not None
    assert served <= 100


def test_wfq_bounds_the_wait_by_the_weights() -> None:
    """The victim's 64 KiB of weight 1 wait for 4 times as much of each of two flows of weight 4, and one batch each."""
    served = serve_against("wfq", 1000, weight=4)
    assert served is not None
    assert 64 * 4 <= served <= 2 * (64 * 4 + 1)


@pytest.mark.parametrize(
    ("policy", "starves"),
    [
        ("sjf", True),
        ("fifo", False),
        ("to_agg", False),
        ("wfq", False),
        ("mlf", False),
        ("aioli", False),
        ("hbrr", False),
        ("twins", False),
    ],
)
def test_who_would_starve_without_patience(policy: str, starves: bool) -> None:
    assert (serve_against(policy, 0, weight=4) is None) == starves


@pytest.mark.parametrize("policy", [name for name in NAMES if name != "wfq"])
@settings(deadline=None, max_examples=40)
@given(requests=st.lists(REQUEST, min_size=1, max_size=40), patience=st.integers(1, 60))
def test_waits_at_most_for_the_patience_and_those_before(policy: str, requests: list[Request], patience: int) -> None:
    """One comes and one batch is served in every step: a request waits for the patience, all before it, and itself."""
    queue = Queue(policy, quantum=8, window=7, patience=patience)
    came: dict[int, tuple[int, int]] = {}
    now = 0
    for now, request in enumerate([*requests, *[None] * (2 * OVERDUE_EVERY * len(requests) + patience + 60)]):
        if request is not None:
            came[queue.add(request, now)] = (now, len(came))
        for name in queue.next(now).ids:
            begun, before = came.pop(name)
            assert now - begun <= patience + OVERDUE_EVERY * (before + 1)
            queue.done(name)
    assert not came


@pytest.mark.parametrize("policy", [name for name in NAMES if name not in FAIR])
def test_overdue_requests_have_every_eighth_batch(policy: str) -> None:
    """All are overdue from the start: of eight batches that are served one is the oldest's, the others the policy's."""
    queue = Queue(policy, quantum=KIB, window=10**6 if policy == "twins" else 0, patience=1)
    names = [queue.add(at(k % 2, 2 * (600 - k), flow=k % 2, server=k % 2), 0) for k in range(600)]
    waiting = dict.fromkeys(names)
    oldest = []
    for k in range(240):
        (served,) = queue.next(10 + k).ids
        if served == next(iter(waiting)):
            oldest.append(k)
        del waiting[served]
        queue.done(served)
    assert queue.counters["overdue"] == 30
    assert set(range(0, 240, OVERDUE_EVERY)) <= set(oldest)


def test_an_overdue_request_is_served_while_the_policy_waits() -> None:
    """A window of another server, which has nothing: the overdue one does not wait for its own."""
    queue = Queue("twins", window=1000, patience=300)
    one = queue.add(at(0, 0, server=1), 0)
    zero = queue.add(at(0, 2, server=0), 0)
    assert queue.next(10).ids == (zero,)
    again = queue.add(at(0, 4, server=1), 20)
    assert queue.next(30) == ((), 300)
    assert queue.next(300).ids == (one,)
    assert queue.next(310) == ((), 320)
    assert queue.next(320).ids == (again,)


def test_a_deep_queue_leaves_the_weights_alone() -> None:
    """Two flows keep 64 requests waiting each, for longer than the patience: they are served by their weights."""
    queue = Queue("wfq", quantum=KIB, patience=100, capacity=1000)
    flows: dict[int, int] = {}
    served = [0, 0]
    pages = [0, 0]

    def add(flow: int, now: int) -> None:
        flows[queue.add(at(flow, 2 * pages[flow], flow=flow, weight=1 + 3 * flow), now)] = flow
        pages[flow] += 1

    for flow in (0, 1) * 64:
        add(flow, 0)
    for now in range(0, 10000, 10):
        (name,) = queue.next(now).ids
        queue.done(name)
        flow = flows.pop(name)
        served[flow] += 1
        add(flow, now)
    assert served == [200, 800]
    assert queue.counters["overdue"] == 0


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_hundreds_of_files_share_lanes() -> None:
    """More files, flows and servers than there are lanes: coarser, but nothing is lost."""
    for policy in NAMES:
        queue = Queue(policy, capacity=5000, window=10)
        requests = [Request(k, 0, 4, flow=k, server=k) for k in range(3000)]
        assert sorted(itertools.chain(*order(queue, requests))) == list(range(3000)), policy


def test_bad_arguments() -> None:
    for policy, options in (
        ("elevator", {}),
        ("fifo", {"quantum": 0}),
        ("fifo", {"capacity": 0}),
        ("wfq", {"patience": -1}),
        ("sjf", {"batch_requests": 0}),
    ):
        with pytest.raises(ArgumentError, match="choose one of fifo, sjf, to_agg"):
            Queue(policy, **options)
    queue = Queue("fifo", capacity=1)
    for bad in (Request(0, 0, 0), Request(0, -1, 4), Request(0, 2**63 - 2, 4), Request(0, 0, 4, weight=0)):
        with pytest.raises(ArgumentError, match="1 or more"):
            queue.add(bad, 0)
    name = queue.add(Request(0, 0, 4), 0)
    with pytest.raises(ArgumentError, match="full"):
        queue.add(Request(0, 0, 4), 0)
    with pytest.raises(ArgumentError, match="not being served"):
        queue.done(name)
    queue.next(0)
    with pytest.raises(ArgumentError, match="does not wait"):
        queue.cancel(name)
    queue.done(name)
    with pytest.raises(ArgumentError, match="not being served"):
        queue.done(name)


def test_the_hint_names_every_policy() -> None:
    values = next(spec.values for spec in registry() if spec.name == "mpiox_delegate_scheduler")
    assert values.split(" | ") == ["elevator", *NAMES]
    assert all("20" in source or "19" in source for source in policies().values()), "a source has a year"


@pytest.mark.parametrize("policy", NAMES)
def test_stress_under_sanitizers(policy: str) -> None:
    """Thousands of requests that overlap, cancelled and served by several at once, with all lanes in use."""
    program: pathlib.Path = cbuild.program("schedule/stress.c", "common", "schedule")
    cbuild.passes(program, policy, "20000", "7")
