"""Darshan logs that are damaged: each costs itself only, with a reason."""

from __future__ import annotations

import os
import pathlib
import random
import struct
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from mpiio_ext.analytics.sources import darshan
from support.darshan_logs import Log, mutated, mutated_inside, packaged_logs, place_of
from support.parts import require

require("darshan")


def converted(folder: pathlib.Path, logs: Sequence[str]) -> Any:
    """Convert logs; return outcomes by log, jobs by log, the number of files."""
    found = darshan.convert(logs, str(folder))
    for table in found.tables.values():
        table.validate(full=True)
    jobs = {row["log_file"]: row for row in found.tables["darshan_job"].to_pylist()}
    outcomes = [(each.log, each.status, each.reason, each.log_id, each.rows) for each in found.outcomes]
    files = found.tables["darshan_file"].num_rows
    assert [outcome[0] for outcome in outcomes] == list(logs)
    for log, status, reason, log_id, rows in outcomes:
        assert (status == "whole") == (reason == ""), (log, reason)
        assert (status == "skipped") == (log not in jobs) == (rows == {}) == (log_id == 0), log
        assert all(32 <= ord(letter) != 127 for letter in reason), (log, reason)
    assert files == sum(rows.get("darshan_file", 0) for *_, rows in outcomes)
    return {log: (status, reason, rows) for log, status, reason, _, rows in outcomes}, jobs, files


def small(name: str) -> bytes:
    (path,) = [path for path in packaged_logs() if path.name.startswith(name)]
    return path.read_bytes()


def test_every_kind_of_wrong_file(tmp_path: pathlib.Path) -> None:
    """Each is named with a reason that says what it is; what stands beside it is whole."""
    good = small("ior_hdf5")
    log = Log.parse(good)
    no_ranks = log.job[:24] + struct.pack("<q", -5) + log.job[32:]
    files: dict[str, tuple[bytes, str]] = {
        "empty": (b"", "is empty"),
        "short": (good[:10], "cut off"),
        "text": (b"# not a log\n" * 100, "is no Darshan log"),
        "zeros": (b"\0" * 4096, "is no Darshan log"),
        "gzip": (zlib.compress(good, wbits=31), "compressed file"),
        "newer": (b"9.99" + good[4:], "version 9.99"),
        "older": (b"2.05" + good[4:], "version 2.05"),
        "no version": (b"\xff\xfe\0\0\0\0\0\0" + good[8:], "names no version"),
        "header only": (good[:360], "job"),
        "half a header": (good[:200], "header"),
        "no ranks": (Log(log.version, no_ranks, log.names, log.modules).pack(), "impossible"),
    }
    names = []
    for number, (name, (data, _)) in enumerate(files.items()):
        (tmp_path / name).write_bytes(data)
        (tmp_path / f"good{number}").write_bytes(good)
        names += [name, f"good{number}"]
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    outcomes, jobs, _ = converted(tmp_path, [*names, "fifo", "folder", "missing"])
    for name, (_, why) in files.items():
        assert outcomes[name][0] == "skipped"
        assert why in outcomes[name][1], (name, outcomes[name])
    assert {outcomes[f"good{number}"][0] for number in range(len(files))} == {"whole"}
    assert len(jobs) == len(files)
    assert "not a regular file" in outcomes["fifo"][1]
    assert "not a regular file" in outcomes["folder"][1]
    assert "No such file" in outcomes["missing"][1]


def test_cut_off_anywhere(tmp_path: pathlib.Path) -> None:
    """What lies behind the cut is left out or the log is skipped; only the whole log is whole."""
    data = small("ior_hdf5")
    cuts = sorted({*range(0, len(data), 41), *range(355, 365), len(data) - 1})
    for cut in cuts:
        (tmp_path / str(cut)).write_bytes(data[:cut])
    (tmp_path / "whole").write_bytes(data)
    outcomes, jobs, _ = converted(tmp_path, [*map(str, cuts), "whole"])
    assert outcomes["whole"][0] == "whole"
    wanted = jobs["whole"]
    log = Log.parse(data)
    (posix_bytes,) = struct.unpack_from("<q", log.module("POSIX"), 16 + 8 * 15)  # of one record: POSIX_BYTES_WRITTEN
    assert 0 < posix_bytes < wanted["bytes_written"]
    seen = Counter(outcomes[str(cut)][0] for cut in cuts)
    assert seen["skipped"] > 5
    assert seen["partial"] > 5
    for cut in cuts:
        status, reason, _ = outcomes[str(cut)]
        if cut < 900:
            assert status == "skipped", cut
        if status != "partial":
            continue
        assert " left out: the log is cut off before its end" in reason or " is cut off" in reason
        job = jobs[str(cut)]
        lost = {name for name in ("POSIX", "STDIO") if f"{name} left out" in reason}
        assert job["bytes_written"] == (None if "POSIX" in lost else posix_bytes if lost else wanted["bytes_written"])
        assert job["start_time"] == wanted["start_time"]


@pytest.mark.parametrize("short", [1, 10, 50])
@pytest.mark.parametrize("name", ["POSIX", "STDIO", "MPI-IO", "LUSTRE"])
def test_a_region_that_ends_too_early(name: str, short: int, tmp_path: pathlib.Path) -> None:
    """A part of its records would be wrong sums, without a word: it is left out."""
    data = small("sample.darshan")
    log = Log.parse(data)
    place = place_of(name, log.version)
    given = bytearray(data)  # the header gives it too few bytes
    struct.pack_into("<Q", given, 24 + 16 * (place + 1) + 8, len(log.modules[place][1]) - short)
    log.modules[place] = log.modules[place][0], log.modules[place][1][:-short]
    (tmp_path / "short").write_bytes(log.pack())
    (tmp_path / "given").write_bytes(given)
    (tmp_path / "whole").write_bytes(data)
    outcomes, jobs, _ = converted(tmp_path, ["short", "given", "whole"])
    assert outcomes["whole"][0] == "whole"
    if (name, short) == ("STDIO", 50):  # two streams of 128, which are a rank's each: nothing of the others is cut
        assert outcomes["given"][1] == "STDIO may lack records: behind it are bytes that the header gives to none"
        return
    assert outcomes["short"][:2] == ("partial", f"{name} left out: its bytes are cut off or damaged")
    assert outcomes["given"] == outcomes["short"]
    moved = [[jobs[log][f"bytes_{way}"] for way in ("read", "written")] for log in ("short", "whole")]
    if name == "POSIX":
        assert moved[0] == [None, None]
    else:
        assert (moved[0] == moved[1]) == (name != "STDIO") and None not in moved[0]


@pytest.mark.parametrize("seed", range(3))
def test_random_damage(seed: int, tmp_path: pathlib.Path) -> None:
    """Among hundreds of damaged logs the intact ones give what they give alone."""
    rng = random.Random(seed)
    originals = [small(name) for name in ("ior_hdf5", "shane", "sample-goodost", "pq_app_readAB", "noposixopens")]
    names = []
    for number in range(100):
        data = rng.choice(originals)
        damaged = mutated_inside(data, rng) if rng.random() < 0.5 else mutated(data, rng)
        (tmp_path / f"{number}.bad").write_bytes(damaged)
        names.append(f"{number}.bad")
        if number % 10 == 0:
            (tmp_path / f"{number}.good").write_bytes(originals[number // 10 % len(originals)])
            names.append(f"{number}.good")
    outcomes, jobs, _ = converted(tmp_path, names)
    good = [name for name in names if name.endswith(".good")]
    alone, alone_jobs, _ = converted(tmp_path, good)
    for name in good:
        assert outcomes[name] == alone[name]
        assert jobs[name] == alone_jobs[name]
        assert outcomes[name][0] == "whole"
    seen = Counter(outcomes[name][0] for name in names if name.endswith(".bad"))
    assert len(seen) == 3, seen  # the damage is of all degrees: a test of nothing else


def test_names_without_an_end(tmp_path: pathlib.Path) -> None:
    """The counters are read all the same."""
    log = Log.parse(small("ior_hdf5"))
    wanted = small("ior_hdf5")
    log.names = zlib.compress(struct.pack("<Q", 5) + b"/a/name/without/an/end")
    (tmp_path / "bad").write_bytes(log.pack())
    (tmp_path / "good").write_bytes(wanted)
    outcomes, jobs, _ = converted(tmp_path, ["good", "bad"])
    assert outcomes["bad"][0] == "partial"
    assert outcomes["bad"][1] == "file names left out: its bytes are cut off or damaged"
    assert outcomes["bad"][2] == outcomes["good"][2]
    assert jobs["bad"]["bytes_written"] == jobs["good"]["bytes_written"] > 0
