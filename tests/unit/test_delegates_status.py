"""Looking at delegates: memory like a delegate's, made and changed by a C program, and memory that is damaged."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import re
import subprocess
import time
import types
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from mpiio_ext import delegates
from mpiio_ext.cli import main
from mpiio_ext.delegates import _status, cli
from support import cbuild, fuzz

HEADER = cbuild.CSRC / "iod" / "cache" / "mpiox_cache.h"


def program() -> pathlib.Path:
    entry = cbuild.CSRC / "entry"
    more = (f"-I{entry / 'include'}", f"-I{entry / 'api'}", str(entry / "api" / "mpiio_ext_delegates.c"))
    return cbuild.program("api/delegates.c", "common", "typemap", "storage", "cache", more=more)


class Pretender:
    """A process that has memory like a delegate's."""

    def __init__(self, group: str, index: int, count: int, *, file: bool = False) -> None:
        arguments = [str(program()), "pretend", *(["file"] if file else [])]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        word, self.path = self._answer().split()
        assert word == "ready"
        self("group", group, "spawn", index, count)

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def __call__(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        assert self._answer() == "ok\n", words

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


@contextlib.contextmanager
def pretending(group: str, count: int, *, file: bool = False) -> Iterator[list[Pretender]]:
    made: list[Pretender] = []
    try:
        for index in range(count):
            made.append(Pretender(group, index, count, file=file))
        yield made
    finally:
        for one in made:
            one.end()


@pytest.fixture()
def group() -> str:
    """Return a name that no other test's delegates have: tests may run side by side."""
    return f"test-{os.getpid()}-{time.monotonic_ns()}"


def of(group: str) -> list[delegates.DelegateStatus]:
    return [item for item in delegates.status() if item.group == group]


# ---- the C interface -------------------------------------------------------------------------------------------------


def test_damaged_memory_under_sanitizers(tmp_path: pathlib.Path) -> None:
    cbuild.passes(program(), "fuzz", "300", fuzz.seed(), tmp_path / "memory")


def test_counters_are_the_c_list() -> None:
    found = re.findall(r'^\s*X\((\w+), "(\w+)", "([^"]+)"\)', HEADER.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) > 20
    assert [(item.name, item.unit, item.meaning) for item in delegates.counters()] == found


# ---- finding and reading ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [False, True], ids=["memfd", "file"])
def test_delegates_are_found_and_read(group: str, file: bool) -> None:
    with pretending(group, 2, file=file) as (first, second):
        first("count", "writes", 12)
        first("count", "misses", 3)
        first("count", "prefetch_used", 1)
        first("count", "prefetch_wasted", 3)
        first("flush", 20, 7)
        first("open", 5, 2, '/data/a "name"\twith ü.dat')
        first("frame", 0, 5, 100)
        first("frame", 1, 5, 0)
        second("state", 2)
        found = of(group)
    assert [(item.delegate, item.delegates, item.mode, item.state) for item in found] == [
        (0, 2, "spawn", "serving"),
        (1, 2, "spawn", "ended"),
    ]
    one, two = found
    assert one.pid == first.process.pid
    assert one.host == os.uname().nodename[:63]
    assert 0 <= one.uptime_s < 600
    assert one.counters["writes"] == 12
    assert (one.counters["hits"], one.counters["misses"]) == (9, 3)
    assert sum(one.counters.values()) == 2 * 12 + 4
    assert (one.hit_fraction, one.prefetch_used_fraction) == (0.75, 0.25)
    assert (two.hit_fraction, two.prefetch_used_fraction) == (None, None)
    assert one.flush_size_log2[20] == sum(one.flush_size_log2) == 7
    assert len(one.flush_size_log2) == 48
    assert (one.pages_used, one.pages_dirty, one.dirty_bytes) == (2, 1, 100)
    assert one.pages_free == one.pages - 2 > 0
    assert (one.page_bytes, one.cap_bytes) == (65536, 8 << 20)
    assert one.pages * one.page_bytes < one.cap_bytes
    assert [(file.path, file.openers, file.writable, file.readable, file.end_bytes) for file in one.files] == [
        ('/data/a "name"\twith ü.dat', 2, True, False, 12345)
    ]
    assert two.files == ()
    assert of(group) == []


def test_what_is_no_delegate_is_passed_over(group: str, tmp_path: pathlib.Path) -> None:
    foreign = tmp_path / "mpiox.123456"
    foreign.write_bytes(b"mpioxcac" * 100_000)
    short = os.memfd_create("mpiox")
    with pretending(group, 2) as (whole, cut), foreign.open("rb"):
        os.write(short, pathlib.Path(whole.path).read_bytes()[:300_000])
        cut("cut", 4096)
        assert [item.delegate for item in of(group)] == [0]
        whole("spoil")
        assert of(group) == []
    os.close(short)


def test_memory_that_is_shortened_while_it_is_watched(group: str) -> None:
    with pretending(group, 1) as (one,):
        watch = delegates.Watch()
        assert group in {item.status.group for item in watch.look()}
        one("cut", 4096)
        assert group not in {item.status.group for item in watch.look()}


def test_memory_that_is_shortened_and_no_longer_found(group: str) -> None:
    """The reader cannot check its length: its process has no descriptor of it any more."""
    with pretending(group, 1) as (one,):
        segment = _status._Segment.open(pathlib.Path(one.path))
        assert segment is not None and segment.read() is not None
        with open(one.path, "r+b") as memory:
            one.end()
            memory.truncate(4096)
            assert segment.read() is None


def test_memory_of_others_is_left_alone(group: str, tmp_path: pathlib.Path) -> None:
    """A process folder that belongs to somebody else, one without descriptors, and one that has gone."""
    own, gone, other = (tmp_path / name for name in ("11", "12", "13"))
    (own / "fd").mkdir(parents=True)
    other.mkdir()
    with pretending(group, 1) as (one,):
        target = tmp_path / "mpiox.target"
        target.symlink_to(one.path)
        (own / "fd" / "3").symlink_to(target)
        (own / "fd" / "4").symlink_to(tmp_path / "mpiox.nowhere")
        gone.symlink_to(tmp_path / "nobody")
        found = _status._segments(tmp_path)
        assert list(found.values()) == [own / "fd" / "3"]


# ---- watching --------------------------------------------------------------------------------------------------------


def test_rates_and_life(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> delegates.Observation:
        return next(item for item in watch.look() if item.status.group == group)

    with pretending(group, 1) as (one,):
        watch = delegates.Watch()
        one("count", "writes", 100)
        first = look()
        assert first.answers
        one("count", "writes", 150)
        one("count", "reads", 10)
        one("count", "bytes_written", 4_000_000)
        one("beat")
        second = look()
        interval_s = second.status.sampled_s - first.status.sampled_s
        assert second.rates.interval_s == interval_s > 0
        assert second.rates.accesses_per_s == pytest.approx(60 / interval_s)
        assert second.rates.written_mb_per_s == pytest.approx(4 / interval_s)
        assert second.rates.read_mb_per_s == 0
        assert second.answers
        monkeypatch.setattr(_status, "SILENT_S", 0.0)
        assert not look().answers
        one("state", 2)
    assert look().status.state == "ended"  # its memory is still mapped
    monkeypatch.setattr(_status, "REMEMBERED_S", 0.0)
    time.sleep(0.001)
    assert group not in {item.status.group for item in watch.look()}


def sample(**changes: object) -> delegates.DelegateStatus:
    names = [counter.name for counter in delegates.counters()]
    values = delegates.DelegateStatus(
        group="job",
        delegate=0,
        delegates=1,
        mode="thread",
        host="here",
        kept="",
        pid=7,
        state="serving",
        started_unix_s=100.0,
        sampled_unix_s=110.0,
        sampled_s=5.0,
        beat=1,
        threads=2,
        clients=4,
        queued=3,
        page_bytes=65536,
        cap_bytes=1 << 26,
        pages=1000,
        pages_used=500,
        pages_dirty=250,
        pages_prefetched=3,
        dirty_bytes=12345,
        counters=dict.fromkeys(names, 0),
        flush_size_log2=(0,) * 48,
        files=(),
    )
    return dataclasses.replace(values, **changes)  # type: ignore[arg-type]


def test_rates_since_the_start() -> None:
    now = sample(counters={**sample().counters, "bytes_read": 50_000_000, "requests": 20, "messages": 10})
    found = delegates.rates(None, now)
    assert (found.interval_s, found.read_mb_per_s, found.requests_per_s) == (10.0, 5.0, 3.0)
    assert delegates.rates(now, now).read_mb_per_s == 0  # no time has passed
    begun_later = dataclasses.replace(now, started_unix_s=120.0)  # clocks are set
    assert begun_later.uptime_s == 0
    assert delegates.rates(None, begun_later).read_mb_per_s == 0


def test_fields_are_documented() -> None:
    for kind in (delegates.DelegateStatus, delegates.DelegateFile, delegates.Rates, delegates.Observation):
        assert kind.__doc__ is not None
        for field in dataclasses.fields(kind):
            assert re.search(rf"\b{field.name}\b", kind.__doc__), (kind, field.name)


# ---- the command -----------------------------------------------------------------------------------------------------


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["delegates", "status", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_json_has_units(group: str) -> None:
    with pretending(group, 2) as (first, _):
        first("count", "flush_barriers", 3)
        first("flush", 16, 5)
        document = json.loads(run("--json", "--interval", "0.01"))
    assert set(document) == {"host", "sampled_unix_s", "delegates"}
    ours = [item for item in document["delegates"] if item["group"] == group]
    assert [item["delegate"] for item in ours] == [0, 1]
    counters = ours[0]["counters"]
    assert counters["flush_barriers_requests"] == 3
    assert {"writes_accesses", "bytes_written", "flush_requests", "hits_pages", "errors"} <= set(counters)
    assert len(counters) == len(delegates.counters())
    assert ours[0]["flush_requests_by_size"] == [{"from_bytes": 65536, "requests": 5}]
    assert 0.01 <= ours[0]["interval_s"] < 60
    assert ours[0]["hit_fraction"] is None


def test_once_prints_a_table(group: str) -> None:
    with pretending(group, 2) as (first, second):
        first("count", "reads", 1)
        first("flush", 20, 3)
        first("open", 0, 1, "/data/[bold]x.dat")
        second("state", 3)
        text = run("--interval", "0")
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"{group}: 2 delegates (spawn)"))
    assert "pages of 64 KiB" in lines[begin]
    titles, one, two, _, files = lines[begin + 1 : begin + 6]
    assert "used/dirty/free" in titles
    assert one.split()[1:3] == [str(first.process.pid), "serving"]
    assert "100 %" in one
    assert one.rstrip().endswith("1M █")
    assert two.split()[1:3] == [str(second.process.pid), "dead"]
    assert "/data/[bold]x.dat" in files


def test_collectives_past_the_delegates_are_said_in_a_line(group: str) -> None:
    with pretending(group, 2) as (first, second):
        for one in (first, second):
            one("open", 0, 1, "/data/a")
            one("open", 3, 1, "/data/b")
        assert "collective" not in run("--interval", "0", "--job-group", group)
        first("collectives", 0, 5)
        second("collectives", 0, 2)
        said = [line for line in run("--interval", "0", "--job-group", group).splitlines() if "collective" in line]
    assert len(said) == 1 and said[0].startswith("7 collective accesses of /data/a did not use the delegates"), said


def test_one_group(group: str) -> None:
    """Of several jobs on a host one is shown, by the name of its group or a part of it."""
    with pretending(group, 1), pretending(f"{group}.other", 1):
        for name in (group, f"{group}.o*"):
            document = json.loads(run("--json", "--interval", "0", "--job-group", name))
            assert len(document["delegates"]) == 1
        assert run("--job-group", "no such job") == "no I/O delegates of this user on this host\n"


def test_no_delegates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_status, "_segments", dict)
    assert run() == "no I/O delegates of this user on this host\n"
    assert json.loads(run("--json"))["delegates"] == []
    assert delegates.status() == ()


def test_live_until_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    looks = 0

    def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        assert seconds == 0.5
        if looks == 3:
            raise KeyboardInterrupt

    class Fixed(delegates.Watch):
        def look(self) -> tuple[delegates.Observation, ...]:
            now = sample()
            return (delegates.Observation(status=now, rates=delegates.rates(None, now), answers=looks < 2),)

    monkeypatch.setattr(cli, "time", types.SimpleNamespace(sleep=sleep))  # other threads sleep as ever
    out = io.StringIO()
    cli._live(Console(file=out, force_terminal=True, width=150), Fixed(), None, 0.5)
    assert looks == 3
    assert "silent" in out.getvalue()


@pytest.mark.parametrize("width", [40, 80, 100, 120, 200])
def test_columns_fit(width: int) -> None:
    from rich.console import Console

    rows = [
        delegates.Observation(
            status=sample(delegate=index, pid=4_000_000 + index, pages_used=1000),
            rates=delegates.rates(None, sample()),
            answers=True,
        )
        for index in range(3)
    ]
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=False)
    console.print(cli._group_table(rows, width))
    lines = console.export_text().splitlines()
    assert max(len(line) for line in lines) <= width
    if width >= 80:
        assert "…" not in "".join(lines[1:])
        assert "access/s" in lines[1] or "access/s" in lines[2]


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({}, ""),
        ({0: 1}, "1 █"),
        ({12: 1, 16: 1}, "4K █   █ 64K"),
        ({16: 1, 17: 4, 20: 8}, "64K ▁▄  █ 1M"),
        ({10: 10**9, 11: 1}, "1K █▁ 2K"),
    ],
)
def test_histogram(counts: dict[int, int], text: str) -> None:
    assert cli.histogram([counts.get(power, 0) for power in range(48)]) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7.25, "7.2"),
        (812, "812"),
        (9999, "9,999"),
        (12345, "12.3k"),
        (1.5e6, "1,500k"),
        (4.5e7, "45.0M"),
        (3e12, "3,000.0G"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert cli._number(value) == text
