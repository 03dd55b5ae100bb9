"""The simulator of the exchange between nodes: bytes are conserved, simple cases have closed forms, more costs more."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.launch import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from exchange_events import Loop, Servers
from exchange_loggp import FABRIC, Machine, fit_line, load, save
from exchange_memory import STRUCTS, Hints, leader_bytes, native_bytes
from exchange_model import PHASES, Engine, simulate_native, simulate_ours
from exchange_traffic import Blocks3d, Exchange, Interleaved, dims

MIB = 1 << 20
#: Everything is free but what a test says.
FREE = Machine(latency_s=0, send_overhead_s=0, receive_overhead_s=0, gap_s=0, byte_gap_s=0, send_byte_s=0,
               receive_byte_s=0, copy_byte_s=0, piece_s=0, native_piece_s=0, store_byte_s=0, load_byte_s=0, cores=4)
ENGINES = {"default": Engine(), "ends": Engine(ends=True), "leaders": Engine.of_leaders(),
           "deep": Engine(buffers=4, credits=3, in_step=False)}


def interleaved(nodes=4, ranks=2, mib=16, block=64):
    return Interleaved(nodes, ranks, mib * MIB, block)


# ---- events ----


def test_events_in_order_and_ties_as_planned():
    loop, seen = Loop(), []
    for name, time in (("b", 2.0), ("a", 1.0), ("c", 2.0)):
        loop.at(time, seen.append, name)
    assert loop.run() == 2.0
    assert seen == ["a", "b", "c"]
    assert loop.count == 3
    with pytest.raises(ValueError, match="planned"):
        loop.at(1.0, seen.append, "past")


def test_servers_queue():
    loop, ends = Loop(), {}
    servers = Servers(loop, 2)
    for name, seconds in (("a", 3.0), ("b", 1.0), ("c", 1.0), ("d", 5.0)):
        servers.work(seconds, lambda name=name: ends.setdefault(name, loop.now))
    loop.run()
    assert ends == {"b": 1.0, "c": 2.0, "a": 3.0, "d": 7.0}
    assert servers.busy_s == 10.0


# ---- traffic ----


def by_brute_force(pattern, owner, first, last):
    """Bytes of each node in [first, last), byte by byte through `owner`."""
    found = np.zeros(pattern.nodes)
    for at in range(first, last):
        found[owner(at) // pattern.ranks_per_node] += 1
    return found


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 7), st.integers(0, 300), st.integers(0, 300))
@settings(max_examples=60, deadline=None)
def test_interleaved_against_every_byte(nodes, ranks, block, a, b):
    pattern = Interleaved(nodes, ranks, 1000, block)
    first, last = min(a, b), max(a, b)
    expected = by_brute_force(pattern, lambda at: at // block % (nodes * ranks), first, last)
    assert pattern.of_nodes(np.array([first]), np.array([last]))[0] == pytest.approx(expected)


@pytest.mark.parametrize("nodes, ranks", [(1, 1), (2, 4), (3, 4), (4, 2)])
def test_blocks_against_every_row(nodes, ranks):
    pattern = Blocks3d(nodes, ranks, 8 * 24**3)
    x, y, z = dims(nodes * ranks)
    side = pattern.side
    assert side**3 * 8 == pattern.file_bytes
    row = 8 * side

    def owner(at):
        i, j, k = at // 8 // side // side, at // 8 // side % side, at // 8 % side
        return (i * x // side * y + j * y // side) * z + k * z // side

    ranges_first, ranges_last = pattern.ranges()
    for first, last in ((0, 3 * row), (row, 2 * row), (5 * row, 31 * row)):
        found = pattern.of_nodes(np.array([first]), np.array([last]))[0]
        assert found == pytest.approx(by_brute_force(pattern, owner, first, last))
        there = (first < ranges_last) & (last > ranges_first)
        assert not found[~there].any(), "a node has bytes outside of its range"


def test_dims_is_balanced():
    assert dims(64) == (4, 4, 4)
    assert dims(65536) == (64, 32, 32)
    assert dims(7) == (7, 1, 1)


@pytest.mark.parametrize("pattern", [interleaved(), interleaved(block=65536), interleaved(3, 5, 7, 640),
                                     Blocks3d(4, 2, 1 << 22)])
@pytest.mark.parametrize("aggregators, window, near, turned", [(1, MIB, False, False), (2, 1 << 18, False, True),
                                                               (2, MIB, True, False)])
def test_rounds_hold_every_byte_once(pattern, aggregators, window, near, turned):
    exchange = Exchange(pattern, aggregators, window, near=near, turned=turned)
    rounds = [exchange.between(number) for number in range(exchange.rounds)]
    moved = sum(one.moved for one in rounds)
    assert moved.sum() == pytest.approx(pattern.file_bytes)
    whole = pattern.of_nodes(np.array([0]), np.array([pattern.file_bytes]))[0]
    assert moved.sum(axis=0) == pytest.approx(whole), "of the ranks of each node"
    assert np.bincount(exchange.node, minlength=pattern.nodes).max() == aggregators
    for one in rounds:
        assert (one.carrying <= one.meeting).all(), "data outside of a node's range"
        assert ((one.moved > 0) == (one.carrying > 0)).all()
        assert (one.opening + one.carrying <= one.meeting).all(), "an end alone where there is data, or no range"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("pattern", [interleaved(), Interleaved(8, 2, 64 * MIB, MIB), Blocks3d(4, 2, 1 << 22),
                                     Interleaved(8, 1, 128 * MIB, MIB // 4)])  # the last: rounds that are alike
def test_each_node_opens_with_each_aggregator_once(pattern, turned):
    exchange = Exchange(pattern, 2, 1 << 18, turned=turned)
    met, opened = (np.zeros((pattern.nodes, pattern.nodes)) for _ in range(2))
    for a in range(exchange.count):
        known = np.zeros(pattern.nodes, dtype=bool)
        for number in range(exchange.rounds):
            first, last = (edge[a : a + 1] for edge in exchange.windows(number))
            ranges_first, ranges_last = pattern.ranges()
            meets = (first < ranges_last) & (last > ranges_first) & (first < last) & ~known
            known |= meets
            met[exchange.node[a]] += meets
            opened[exchange.node[a]] += meets & (pattern.of_nodes(first, last)[0] == 0)
    found = sum(exchange.between(number).opening for number in range(exchange.rounds))
    assert (found == opened).all()
    assert (opened <= met).all()


def test_rounds_without_data_cost_no_message():
    exchange = Exchange(Interleaved(8, 1, 64 * MIB, MIB), 1, MIB)  # a window is of one node
    away = [one - np.diag(np.diagonal(one)) for one in (
        sum(getattr(exchange.between(number), name) for number in range(exchange.rounds))
        for name in ("carrying", "opening", "meeting"))]
    carrying, opening, meeting = (int(one.sum()) for one in away)
    assert simulate_ours(exchange, FREE, Engine()).messages == carrying + opening
    assert simulate_ours(exchange, FREE, Engine(ends=True)).messages == meeting
    assert carrying + opening < meeting / 3


def by_the_library(exchange, aggregators):
    """Nodes of the domains by the steps of mpiox_owners.c, one by one."""
    pattern = exchange.pattern
    first, last = pattern.ranges()
    whole = pattern.of_nodes(np.array([0]), np.array([pattern.file_bytes]))[0]
    usual = [a % pattern.nodes for a in range(exchange.count)]
    if not any(b - a <= pattern.file_bytes // 8 * 7 for a, b in zip(first, last, strict=True)):
        return usual
    left, chosen = [aggregators] * pattern.nodes, []
    for domain in range(exchange.count):
        start, end = exchange.starts[domain : domain + 2]

        def accesses(n, start=start, end=end):
            common = min(end, last[n]) - max(start, first[n])
            return whole[n] * (max(0, common) / (last[n] - first[n]))

        best = usual[domain] if left[usual[domain]] else -1
        most = accesses(best) if best >= 0 else -1
        for n in range(pattern.nodes):
            if left[n] and accesses(n) > most + 1e-6:
                best, most = n, accesses(n)
        left[best] -= 1
        chosen.append(best)
    return chosen


@pytest.mark.parametrize("pattern", [interleaved(), Interleaved(4, 1, 8 * MIB, 2 * MIB), Blocks3d(8, 2, 32 * MIB),
                                     Blocks3d(5, 3, 32 * MIB), Interleaved(7, 2, 28 * MIB, MIB)])
def test_domains_are_placed_as_the_library_places_them(pattern):
    exchange = Exchange(pattern, 2, MIB, near=True)
    assert exchange.node.tolist() == by_the_library(exchange, 2)
    assert np.bincount(exchange.node).tolist() == [2] * pattern.nodes


def test_pieces_in_turn_leave_no_choice():
    placed, turn = (Exchange(interleaved(), 2, MIB, near=near) for near in (True, False))
    assert not placed.placed
    assert (placed.node == turn.node).all()


def test_near_domains_cross_less():
    pattern = Interleaved(4, 1, 8 * MIB, 2 * MIB)  # each node has one contiguous part
    assert Exchange(pattern, 1, MIB, near=True).crossing_bytes() == 0
    assert Exchange(interleaved(), 1, MIB, near=True).crossing_bytes() == pytest.approx(0.75 * 16 * MIB)


def test_turned_windows_spread_a_round_over_the_senders():
    pattern = Interleaved(8, 1, 64 * MIB, MIB)  # a window is of one node, and domains begin alike
    plain, turned = (Exchange(pattern, 1, MIB, turned=turned).between(0).moved.sum(axis=0) for turned in (False, True))
    assert plain.max() == 8 * MIB, "all of one node"
    assert turned.max() == MIB


# ---- simulations ----


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("pattern", [interleaved(), interleaved(5, 3, 12, 4096), Blocks3d(4, 2, 1 << 24)])
def test_bytes_are_conserved(pattern, engine, write):
    exchange = Exchange(pattern, 2, MIB)
    ours = simulate_ours(exchange, FABRIC, engine, write=write)
    assert ours.stored_bytes == pytest.approx(pattern.file_bytes)
    assert ours.crossed_bytes == pytest.approx(exchange.crossing_bytes())
    native = simulate_native(exchange, FABRIC, write=write)
    assert native.stored_bytes == pytest.approx(pattern.file_bytes)
    assert native.crossed_bytes == pytest.approx(exchange.crossing_bytes())
    assert set(ours.phases_s) == set(native.phases_s) == set(PHASES)


@pytest.mark.parametrize("write", [True, False])
def test_storage_alone_bounds(write):
    machine = dataclasses.replace(FREE, store_byte_s=1e-6, load_byte_s=1e-6)
    exchange = Exchange(interleaved(), 1, MIB)
    expected = 4 * MIB * 1e-6  # a node's quarter
    assert simulate_ours(exchange, machine, Engine(), write=write).seconds == pytest.approx(expected, rel=1e-3)
    assert simulate_native(exchange, machine, write=write).seconds == pytest.approx(expected, rel=1e-3)


def test_link_alone_bounds():
    machine = dataclasses.replace(FREE, byte_gap_s=1e-6)
    exchange = Exchange(interleaved(), 1, MIB)
    out = simulate_ours(exchange, machine, Engine(eager_bytes=1 << 62))
    sent = 0.75 * 4 * MIB * 1e-6  # three quarters of each node's quarter leave it, and as much comes
    assert out.phases_s["wire"] == pytest.approx(sent)
    assert sent <= out.seconds <= 2.01 * sent


def test_one_node_sends_nothing():
    exchange = Exchange(interleaved(1, 4), 2, MIB)
    out = simulate_ours(exchange, FABRIC, Engine())
    assert (out.messages, out.crossed_bytes, out.phases_s["wire"]) == (0, 0, 0)


def test_messages_of_leaders_and_aggregators():
    exchange = Exchange(interleaved(), 2, MIB)
    pairs = 4 * 3
    assert simulate_ours(exchange, FREE, Engine.of_leaders()).messages == pairs * exchange.rounds
    assert simulate_ours(exchange, FREE, Engine()).messages == 2 * pairs * exchange.rounds
    assert simulate_native(exchange, FREE).messages == 2 * pairs * exchange.rounds, "each of the two ranks sends"


@pytest.mark.parametrize("name", ["latency_s", "send_overhead_s", "receive_overhead_s", "gap_s", "byte_gap_s",
                                  "send_byte_s", "receive_byte_s", "copy_byte_s", "store_byte_s", "window_s"])
@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_what_costs_more_takes_no_less(name, engine):
    exchange = Exchange(interleaved(), 2, MIB)
    dearer = dataclasses.replace(FABRIC, **{name: 5 * getattr(FABRIC, name) + 1e-9})
    assert simulate_ours(exchange, dearer, engine).seconds >= simulate_ours(exchange, FABRIC, engine).seconds - 1e-12
    if name != "window_s":
        assert simulate_native(exchange, dearer).seconds >= simulate_native(exchange, FABRIC).seconds


def test_more_buffers_and_credits_are_no_slower():
    exchange = Exchange(interleaved(), 1, 1 << 18)
    times = [simulate_ours(exchange, FABRIC, Engine(buffers=n, credits=n, in_step=False)).seconds for n in (1, 2, 4)]
    assert times[0] >= times[1] - 1e-12 >= times[2] - 2e-12
    assert times[0] > times[2], "one buffer does not overlap"


def test_shared_cores_are_slower_than_own():
    exchange = Exchange(interleaved(), 1, MIB)
    machine = dataclasses.replace(FREE, copy_byte_s=1e-9, send_byte_s=1e-9, cores=2)
    shared = dataclasses.replace(machine, shared_cores=2)
    assert simulate_ours(exchange, shared, Engine()).seconds > simulate_ours(exchange, machine, Engine()).seconds


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("pattern", [interleaved(4, 1, 32, 4096), Blocks3d(4, 1, 32 * MIB), Blocks3d(8, 2, 32 * MIB)])
def test_cores_that_all_share_keep_the_order_of_rounds(pattern, engine, write):
    machine = dataclasses.replace(FABRIC, cores=2, shared_cores=2, storage_on_cores=True, window_s=1e-4)
    out = simulate_ours(Exchange(pattern, 1, MIB), machine, engine, write=write)
    assert out.stored_bytes == pytest.approx(pattern.file_bytes)


def test_simulations_repeat_exactly():
    exchange = Exchange(interleaved(6, 4, 24, 4096), 2, MIB)
    first, again = (simulate_ours(exchange, FABRIC, Engine()) for _ in range(2))
    assert first == again


# ---- parameters ----


def test_fit_finds_a_line():
    sizes = [1, 16, 256, 4096, 65536]
    fixed, byte = fit_line(sizes, [2e-6 + 1e-9 * size for size in sizes])
    assert (fixed, byte) == (pytest.approx(2e-6), pytest.approx(1e-9))
    assert fit_line([1, 2, 3], [3e-6, 2e-6, 1e-6])[1] == 0.0, "a byte has no negative cost"


def test_machines_are_saved_and_checked(tmp_path):
    path = tmp_path / "machine.json"
    save(path, {"fabric": FABRIC})
    assert load(path) == {"fabric": FABRIC}
    for text in ("{}", "no", '{"machines": {"a": {"latency_s": 1}}}'):
        path.write_text(text)
        with pytest.raises(ValueError, match="no parameters"):
            load(path)


# ---- memory ----


def test_leader_of_10000_ranks():
    terms = leader_bytes(157, 64, Hints())
    assert sum(terms.values()) <= 256 << 20
    assert all(value > 0 for value in terms.values())


def test_pool_does_not_grow_with_messages_and_areas_do():
    small, large = (leader_bytes(64, 64, Hints(destinations="each"), n * MIB)["destinations"] for n in (1, 100))
    assert large - small == pytest.approx(3 * 99 * MIB)
    assert leader_bytes(64, 64, Hints(), 1)["destinations"] == leader_bytes(64, 64, Hints(), 1e9)["destinations"]


def test_native_lists_grow_with_pieces():
    few, many = (sum(native_bytes(64, 64, 64, MIB, piece, Hints()).values()) for piece in (4096, 8))
    assert many > 100 * (few - 16 * MIB - MIB) / 10
    assert many > few + 1e8


def test_sizes_are_those_of_the_headers(tmp_path):
    """The compiler's sizes of every struct that the headers have; the others are of another form of the transport."""
    compiler = shutil.which("mpicc")
    if compiler is None:
        pytest.skip("no mpicc")
    folders = [path for path in (ROOT / "csrc").glob("*/*") if path.is_dir()]
    headers = list((ROOT / "csrc/mpiio/transport").glob("mpiox_message*.h"))
    text = "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.glob("*.h"))
    known = [name for name in STRUCTS if re.search(rf"}}\s*{name};", text)]
    agreed = {"mpiox_contribution", "mpiox_reduction"}
    assert {"mpiox_message_entry", "mpiox_destination_buffer", "mpiox_buffer_slot"} | agreed <= set(known)
    assert "mpiox_interval" in known
    lines = [f'#include "{path.name}"' for path in sorted(headers)] + ["#include <stdio.h>", "int main(void)", "{"]
    lines += [f'    printf("{name} %zu\\n", sizeof({name}));' for name in known]
    source = tmp_path / "sizes.c"
    source.write_text("\n".join([*lines, "    return 0;", "}"]) + "\n")
    program = tmp_path / "sizes"
    subprocess.run([compiler, "-std=c11", "-D_GNU_SOURCE", *(f"-I{folder}" for folder in folders), str(source), "-o",
                    str(program)], check=True, timeout=120)
    output = subprocess.run([str(program)], check=True, timeout=30, capture_output=True, text=True).stdout
    found = {name: int(size) for name, size in (line.split() for line in output.splitlines())}
    assert found == {name: STRUCTS[name] for name in known}
