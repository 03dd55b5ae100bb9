"""Random histories of several ranks against MPI's consistency rules, and tests of these rules. See run.py."""

from __future__ import annotations

import collections
import copy
import functools
import json
import pathlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from differential.typetree import Offsets
from model.campaign import Report, campaign, save
from model.consistency import File
from model.history import Bytes, History, initial
from model.oracle import judge
from model.pool import Pool
from model.settings import MORE, SETTINGS, SMALL, Setting, delegated, random_setting
from model.strategy import DRAWN, KINDS, Raw, legal
from support import fuzz

QUICK, LONG = fuzz.examples(150), 5000
RANDOM_SETTINGS, OF_EACH = 40, 250


@functools.cache
def history_of(number: int) -> History:
    """Return the legal history of a number."""
    return legal(drawn(number))


def drawn(number: int) -> tuple[int, list[int], list[Raw]]:
    """Return the tuples of a history, without hypothesis."""
    rng = random.Random(number)
    sizes = [rng.choice([-1, rng.randrange(70_000)]) for _ in range(rng.randrange(1, 3))]
    raw = [(rng.choice(DRAWN), *(rng.randrange(1 << 16) for _ in range(6))) for _ in range(rng.randrange(5, 40))]
    return rng.randrange(1, 7), sizes, raw  # type: ignore[return-value]


# ---- the library ----------------------------------------------------------------------------------------------------


def complain(report: Report, tmp_path: pathlib.Path) -> str:
    """Return what failed and how to see it again."""
    lines = []
    for i, failure in enumerate(report.failures):
        path = save(failure, tmp_path, f"history{i}")
        lines.append(f"{path}: {failure.problems[:3]}\n{json.dumps(failure.history)}")
    return "\n".join([*lines, "again: python tests/model/run.py --replay FILE --times 20"])


def check(setting: Setting, histories: int, tmp_path: pathlib.Path, seed: int = 1) -> None:
    """Run histories; none may fail."""
    with Pool(setting) as pool:
        report = campaign(pool, histories, seed, most_failures=2)
        print(f"{report.histories} histories, {report.calls} calls, {report.elapsed_s:.0f} s, {dict(pool.counts)}")
    assert not report.failures, f"{setting}\n{complain(report, tmp_path)}"
    assert report.histories >= histories
    for name in ("delegated_writes", "delegated_reads", "delegated_flush_barriers"):
        assert (pool.counts[name] > 0) == setting.delegates, pool.counts


@pytest.mark.both_with("two nodes", "delegates, two nodes")
@pytest.mark.slow_with("short transfers", "delegates, as*", "delegates, threads,*", "delegates, some opens")
@pytest.mark.mpi
@pytest.mark.parametrize("name", SETTINGS)
def test_bounded(extension: str, tmp_path: pathlib.Path, name: str) -> None:
    """A few histories of each kind of launch."""
    check(SETTINGS[name], QUICK, tmp_path, int(fuzz.seed()))


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS | MORE)
def test_long(extension: str, tmp_path: pathlib.Path, name: str) -> None:
    """Thousands."""
    check((SETTINGS | MORE)[name], LONG, tmp_path)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("number", range(RANDOM_SETTINGS))
def test_random_hints(extension: str, tmp_path: pathlib.Path, number: int) -> None:
    """Delegates with hints of all kinds."""
    check(random_setting(number), OF_EACH, tmp_path, seed=100 + number)


#: The file before any write of the history below.
BEFORE = initial(0, 100).tobytes()
#: What a wrong library may do: of a result (call, rank) or of the file at the end, and how the model names it.
WRONG: dict[str, tuple[tuple[int, int] | None, Callable[[Any], Any], str]] = {
    "a byte that was read is another": ((2, 1), lambda seen: seen | {"data": flipped(seen["data"], 20)}, "read"),
    "a byte behind those that were read": ((2, 1), lambda seen: seen | {"data": flipped(seen["data"], 150)}, "read"),
    "a byte between the pieces of the buffer": ((2, 1), lambda seen: seen | {"spoilt": True}, "memory"),
    "fewer bytes were read": ((2, 1), lambda seen: seen | {"n": seen["n"] - 1}, "read"),
    "fewer bytes were written": ((1, 1), lambda seen: seen | {"n": seen["n"] - 1}, "status"),
    "another size": ((3, 0), lambda seen: seen | {"size": seen["size"] + 1}, "size"),
    "no result": ((1, 1), lambda _: None, "lost"),
    "an error": ((1, 1), lambda _: {"error": "MPI_ERR_IO"}, "error"),
    "a write at the shared pointer is torn": ((5, 0), lambda seen: seen | {"look": flipped(seen["look"], 3)}, "shared"),
    "a read at the shared pointer is torn": ((8, 0), lambda seen: seen | {"data": flipped(seen["data"], 3)}, "shared"),
    "an atomic write is torn": ((11, 1), lambda seen: seen | {"look": flipped(seen["look"], 3)}, "atomic"),
    "a rank does not see its own write": ((2, 1), lambda seen: seen | {"data": before(seen["data"], 10, 0)}, "read"),
    "a read is older than a sync": ((13, 0), lambda seen: seen | {"data": before(seen["data"], 0, 20)}, "read"),
    "a write that was synced is lost": (None, lambda held: before(held, 20, 0), "file"),
    "a byte of the file is another": (None, lambda held: flipped(held, 99), "file"),
    "the file is gone": (None, lambda _: None, "exists"),
}


def flipped(data: bytes, at: int) -> bytes:
    """Return bytes of which one is another."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def before(data: bytes, first: int, at: int) -> bytes:
    """Return bytes of the file from an offset on; those from `first` to byte 60 of the file are as before the write."""
    return data[:first] + BEFORE[at + first : 60] + data[60 - at :]


@pytest.mark.both
@pytest.mark.mpi
def test_a_wrong_library_is_found(extension: str) -> None:
    """What a rank saw is changed in one place: the model names it."""
    opened = {"op": "open", "file": 0, "comm": "world", "mode": ["rdwr"], "hints": {}}
    shared = {"how": "shared", "who": [0, 1], "n": 10, "mem": [0, 0], "from": 0}
    history: History = {
        "ranks": 2,
        "files": [100],
        "ops": [
            {**opened, "h": 0},
            {"op": "write", "h": 0, "how": "at", "rank": 1, "at": 10, "n": 50, "mem": [5, 3]},
            {"op": "read", "h": 0, "how": "at", "rank": 1, "at": 0, "n": 200, "mem": [0, 0]},
            {"op": "ask", "h": 0, "rank": 0},
            {"op": "fence"},
            {"op": "write", "h": 0, **shared},
            {"op": "fence"},
            {**opened, "h": 1},
            {"op": "read", "h": 1, **shared},
            {"op": "fence"},
            {"op": "atomicity", "h": 0, "flag": True},
            {"op": "race", "h": 0, "who": [0, 1], "at": 0, "n": 8},
            {"op": "fence"},
            {"op": "read", "h": 0, "how": "at", "rank": 0, "at": 20, "n": 40, "mem": [0, 0]},
        ],
    }
    with Pool(ranks=2) as pool:
        assert pool.run(history) == []
        file = pathlib.Path(pool.folder, "f0")
        file.write_bytes(BEFORE)
        results = pool.exchange({"history": history, "folder": pool.folder, "limit_s": 240.0}, history)
        held = file.read_bytes()
    assert judge(history, results, [held]) == []
    for name, (place, change, kind) in WRONG.items():
        seen, left = copy.deepcopy(results), held
        if place is None:
            left = change(held)
        else:
            call, rank = place
            seen[rank][call] = change(seen[rank][call])
        assert kind in {problem.split(":")[0] for problem in judge(history, seen, [left])}, name


@pytest.mark.mpi
@pytest.mark.parametrize("comm", ["world", "self"])
def test_own_collective_write_over_pages_of_another_opening(extension: str, comm: str) -> None:
    """A page is cached for one opening; a collective write through a second one goes straight to the file."""
    opened = {"op": "open", "file": 0, "mode": ["rdwr", "create"], "hints": {}}
    history: History = {
        "ranks": 1,
        "files": [-1],
        "ops": [
            {**opened, "h": 0, "comm": "world"},
            {"op": "write", "h": 0, "how": "burst", "at": 0, "block": 1, "count": 1},
            {"op": "read", "h": 0, "how": "burst", "at": 0, "block": 40, "count": 19},
            {**opened, "h": 1, "comm": comm},
            {"op": "write", "h": 1, "how": "all", "n": [8192], "mem": [0, 0]},
            {"op": "read", "h": 1, "how": "burst", "at": 0, "block": 200, "count": 1},
        ],
    }
    with Pool(delegated(SMALL), ranks=1) as pool:
        assert [pool.run(history) for _ in range(5)] == [[]] * 5


@pytest.mark.mpi
@pytest.mark.parametrize("delegates", ["0", "1"])
def test_made_shorter_through_another_opening(extension: str, delegates: str) -> None:
    """Once both sides have synchronised, nothing is read behind the new end, whoever has cached what was there."""
    opened = {"op": "open", "file": 0, "comm": "world", "mode": ["rdwr", "create"]}
    history: History = {
        "ranks": 2,
        "files": [-1],
        "ops": [
            {**opened, "h": 0, "hints": {}},
            {**opened, "h": 1, "hints": {"mpiox_delegates": delegates}},
            {"op": "write", "h": 0, "how": "at", "rank": 0, "at": 0, "n": 20_000, "mem": [0, 0]},
            {"op": "fence"},
            {"op": "size", "h": 1, "bytes": 100},
            {"op": "fence"},
            {"op": "ask", "h": 0, "rank": 1},
            {"op": "read", "h": 0, "how": "at", "rank": 1, "at": 50, "n": 9000, "mem": [0, 0]},
            {"op": "read", "h": 0, "how": "at", "rank": 0, "at": 5000, "n": 9000, "mem": [0, 0]},
        ],
    }
    with Pool(SETTINGS["delegates, some opens"], ranks=2) as pool:
        assert [pool.run(history) for _ in range(5)] == [[]] * 5


@pytest.mark.mpi
def test_a_history_that_hangs_is_named(extension: str, family: str) -> None:
    """A rank that never comes: the launch is ended, what each rank was doing is said, the next history runs."""
    opened = {"op": "open", "h": 0, "file": 0, "comm": "world", "mode": ["rdwr", "create"], "hints": {}}
    stuck: History = {"ranks": 2, "files": [-1], "ops": [opened, {"op": "wait", "rank": 0, "reqs": []}]}
    stuck["ops"].append({"op": "open", "h": 1, "file": 0, "comm": "nobody", "mode": ["rdwr"], "hints": {}})
    well: History = {"ranks": 2, "files": [-1], "ops": [opened]}
    with Pool(ranks=2, limit_s=10.0) as pool:
        with pytest.raises(Exception, match=r"rank \d is in call 2 \(open"):
            pool.run(stuck)
        assert pool.run(well) == []
        assert pool.launches == 2


# ---- the model ------------------------------------------------------------------------------------------------------


def test_histories_cover_everything() -> None:
    """No call, way of access, communicator or mode is left out."""
    found: collections.Counter[str] = collections.Counter()
    for number in range(250):
        history = history_of(number)
        for op in history["ops"]:
            found[op["op"]] += 1
            found[op.get("how", "-")] += 1
            found[op.get("comm", "-")] += 1
            found.update(op.get("mode", []))
            found.update(f"to {op['whence']}" for _ in [0] if op["op"] == "seek")
        found[f"{history['ranks']} ranks"] += 1
        found[f"{len(history['files'])} files"] += 1
    wanted = {*KINDS, "write", "read", "world", "self", "halves", "low", "high", "rdonly", "wronly", "append", "delete"}
    wanted |= {"to set", "to cur", "to end", "1 files", "2 files", *(f"{n} ranks" for n in range(1, 7))}
    assert not wanted - set(found), wanted - set(found)


def bytes_of(*several: int) -> Bytes:
    return np.array(several, np.uint8)


def offsets(*several: int) -> Offsets:
    return np.array(several, np.int64)


def possible(file: File, opening: int, rank: int, at: int) -> set[int]:
    """Return the values that a byte may have for an agent."""
    reading = file.read((opening, rank), offsets(at))
    return {value for value in range(256) if reading.check(bytes_of(value), 1) is None}


def test_the_rules() -> None:
    """Sync, barrier, sync; conflicts; own writes; what was read first holds."""
    file = File(bytes_of(1, 1, 1, 1), exists=True)
    file.openings = {0, 1}
    file.write((0, 0), offsets(2), bytes_of(7), atomic=False, done=True)
    assert possible(file, 0, 0, 2) == {7}
    assert possible(file, 0, 1, 2) == {1, 7}
    file.sync(0)
    file.barrier()
    assert possible(file, 0, 1, 2) == {1, 7}
    file.sync(0)
    assert possible(file, 0, 1, 2) == {7}
    assert possible(file, 1, 1, 2) == {1, 7}  # through another opening
    file.write((0, 1), offsets(2), bytes_of(8), atomic=False, done=True)  # knows the 7
    assert possible(file, 0, 0, 2) == {7, 8}
    assert possible(file, 0, 1, 2) == {8}
    for turn in range(2):
        file.sync(0)
        file.sync(1)
        if not turn:
            file.barrier()
    file.barrier()
    assert possible(file, 1, 0, 2) == {8}
    file.barrier()
    assert not file.entries
    assert list(file.data) == [1, 1, 8, 1]
    for rank, value in ((0, 20), (1, 30)):
        file.write((0, rank), offsets(0, 3), bytes_of(value, value), atomic=False, done=True)
    for turn in range(2):
        file.sync(0)
        file.sync(1)
        if not turn:
            file.barrier()
    file.barrier()
    assert possible(file, 1, 5, 0) == {20, 30}
    reading = file.read((1, 5), offsets(0))
    assert file.learn(reading, bytes_of(20)) is None
    assert possible(file, 1, 5, 0) == {20}
    assert possible(file, 0, 0, 3) == {20, 30}
    assert file.compare(bytes_of(20, 1, 8, 30)) is None
    assert file.compare(bytes_of(30, 1, 8, 30)) is not None


def test_atomic_mode() -> None:
    """A barrier is enough for the ranks of the same opening."""
    file = File(bytes_of(1), exists=True)
    file.openings = {0, 1}
    file.write((0, 0), offsets(0), bytes_of(9), atomic=True, done=True)
    assert possible(file, 0, 1, 0) == {1, 9}
    file.barrier()
    assert possible(file, 0, 1, 0) == {9}
    assert possible(file, 1, 1, 0) == {1, 9}


def test_reads_are_open_to_later_writes_until_a_barrier() -> None:
    """Ranks go on their own: what comes later in the list may come earlier in time."""
    file = File(bytes_of(1, 1), exists=True)
    file.openings = {0}
    early = file.read((0, 1), offsets(0))
    file.write((0, 0), offsets(0, 5), bytes_of(9, 9), atomic=False, done=True)
    assert early.check(bytes_of(9), 1) is None
    assert early.check(bytes_of(1), 1) is None
    sizing = file.ask((0, 1))
    assert sizing.sizes == {2, 6}
    file.barrier()
    late = file.read((0, 1), offsets(1))
    file.barrier()
    file.write((0, 0), offsets(1), bytes_of(9), atomic=False, done=True)
    assert late.check(bytes_of(9), 1) is not None
