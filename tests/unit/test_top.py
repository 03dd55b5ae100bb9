"""`mpiio-ext top`: pages of ranks that are whole, torn, cut off, foreign or dead; how many; what is shown of them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.top import fitting, jobs, names, pages, screen, snapshot, tables
from mpiio_ext.top.pages import Counts, PageError
from support import cbuild, live_pages
from support.live_pages import content, hold, holding
from support.marks import slow


@contextlib.contextmanager
def descriptor_of(page: bytes | bytearray, **changes: object) -> Iterator[pathlib.Path]:
    held = hold(page, **changes)  # type: ignore[arg-type]
    try:
        yield pathlib.Path(f"/proc/{os.getpid()}/fd/{held}")
    finally:
        os.close(held)


def own(found: tuple[jobs.Job, ...], pid: int | None = None) -> list[jobs.Rank]:
    """Return the ranks of one process, of all that are seen: other jobs of this user may run.

    Of this process those that `content` has made: it is a rank itself once a test has imported an HDF5 that uses MPI.
    """
    ranks = [rank for job in found for rank in job.ranks if rank.pid == (pid or os.getpid())]
    return ranks if pid else [rank for rank in ranks if rank.page.world == f"test-{os.getpid()}"]


# ---- one page --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("files", "threads"), [(0, 1), (1, 1), (9000, 8)])
def test_the_page_in_c(files: int, threads: int) -> None:
    """Also with more files than it has entries, and with threads that access one file; under sanitizers."""
    program = cbuild.program("live/test_live.c", "common", "stats", "live")
    assert cbuild.passes(program, files, threads).startswith(f"page {4096 + 8000 * 256}\n")


@pytest.mark.parametrize(
    ("value", "seen"),
    [("0", False), ("false", False), ("OFF", False), ("disabled", False), ("1", True), ("", True), ("00", True)],
)
def test_the_variable_leaves_it_out(value: str, seen: bool) -> None:
    out = cbuild.passes(cbuild.program("live/test_live.c", "common", "stats", "live"), 3, 2, MPIOX_LIVE=value)
    assert out.startswith("page " if seen else "no page\n")


@pytest.mark.parametrize(("blocks", "line"), [(64, f"page {4096 + 60 * 256}"), (8, "no page")])
def test_where_files_may_not_be_large(blocks: int, line: str) -> None:
    """Under ulimit -f the page is smaller, or there is none; no signal ends the process."""
    program = cbuild.program("live/test_live.c", "common", "stats", "live")
    done = subprocess.run(
        ["sh", "-c", f'ulimit -f {blocks} && exec "$0" 100 2', program], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, line), done.stderr


@pytest.mark.parametrize("files", [0, 1, 5000])
def test_a_page_is_read(files: int) -> None:
    with descriptor_of(content(2, 7, files, program="lmp", service="s", arbiter="/a")) as path:
        page = pages.read(path)
    assert (page.rank, page.ranks, page.program, page.service, page.arbiter) == (2, 7, "lmp", "s", "/a")
    assert (page.command, page.finalized, page.opened, page.open) == ("./lmp --in x", False, files + 2, files)
    assert page.total == Counts(5 + 30 * files, 6 + 4000 * files, 7 + 3 * files, 8 + 40 * files)
    assert [file.path for file in page.files] == [f"/scratch/file.{index}" for index in range(files)]
    assert all(file.counts == Counts(*live_pages.EACH) for file in page.files)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (content(version=2), "another version"),
        (content(magic=b"SOMETHNG"), "no page of a rank"),
        (content(state=0), "not complete yet"),
        (content()[:4095], "cut off"),
        (content()[:4096], "cut off"),
        (content()[:-256], "cut off"),
        (content() + bytes(8), "cut off"),
        (b"", "cut off"),
        (content(3, 3), "rank cannot be"),
        (content(-1, 3), "rank cannot be"),
        (content(room=2)[:60] + b"\xff\xff\xff\x7f" + content(room=2)[64:], "numbers of files cannot be"),
        (bytes(range(256)) * 32, "no page of a rank"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_page(page: bytes, reason: str) -> None:
    with descriptor_of(page) as path, pytest.raises(PageError, match=reason):
        pages.read(path)


def test_a_page_that_could_shrink_is_not_mapped(tmp_path: pathlib.Path) -> None:
    with descriptor_of(content(), sealed=False) as path, pytest.raises(PageError, match="not sealed"):
        pages.read(path)
    (tmp_path / "page").write_bytes(content())
    with pytest.raises(PageError, match="not sealed"):
        pages.read(tmp_path / "page")
    with descriptor_of(content()) as path, pytest.raises(PageError, match="another file"):
        pages.read(path, (1, 1))


def test_a_page_of_a_process_that_was_stopped_within_a_change() -> None:
    with descriptor_of(content(change=7)) as path:
        assert pages.read(path).total == Counts(35, 4006, 10, 48)


TURNING = """
import mmap, time
from support.live_pages import content, hold, holding
fd = hold(content(files=1, rest=(0, 0, 0, 0)))
words = memoryview(mmap.mmap(fd, 4096 + 8 * 256)).cast("q")
print(fd, flush=True)
while True:  # a file is closed and opened: what it counted is in its entry, or in the head
    for here, there in ((512, 12), (12, 512)):
        words[8] += 1
        values = words[here : here + 4].tolist()
        for index in range(4):
            words[here + index] = 0
        words[516] = int(there == 512)
        for index in range(4):
            words[there + index] += values[index]
        words[8] += 1
        time.sleep(0.0005)
"""


def test_totals_are_those_of_one_moment() -> None:
    """A file that is being closed is counted once, never twice or not at all."""
    environment = {**os.environ, "PYTHONPATH": str(cbuild.ROOT / "tests")}
    with subprocess.Popen(
        [sys.executable, "-c", TURNING], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        path = f"/proc/{process.pid}/fd/{int(process.stdout.readline())}"
        seen = [pages.read(path) for _ in range(2000)]
        process.kill()
    assert {len(page.files) for page in seen} == {0, 1}
    assert {page.total for page in seen} == {Counts(*live_pages.EACH)}


def test_texts_cannot_reach_the_terminal() -> None:
    with descriptor_of(content(program="\x1b[2Jrm\n", path="/\x1b]0;x\x07/\u202e")) as path:
        page = pages.read(path)
    assert page.program == "?[2Jrm?"
    assert page.files[0].path == "/?]0;x?/?.0"


# ---- jobs ------------------------------------------------------------------------------------------------------------


def test_a_page_of_another_version_is_told() -> None:
    with descriptor_of(content(version=9)):
        watch = snapshot.Watch()
        assert any("another version of the library" in text for text in watch.look().problems)


def test_a_page_that_a_child_holds_is_not_the_childs() -> None:
    """The rank is gone; a process that it has forked has its descriptor still."""
    with descriptor_of(content(ticks=live_pages.start_ticks() - 1)), descriptor_of(content(pid=os.getppid())):
        assert own(jobs.Watch().look()) == []


def test_foreign_memory_is_left_alone() -> None:
    with descriptor_of(content(), name="other"), descriptor_of(content(), name="mpiox"):
        assert own(jobs.Watch().look()) == []


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_killed_job(sent: signal.Signals) -> None:
    with holding(3, 2) as process:
        watch = jobs.Watch()
        assert [rank.page.rank for rank in own(watch.look(), process.pid)] == [0, 1, 2]
        process.send_signal(sent)
        process.wait(10)
        gone = own(watch.look(), process.pid)
        assert [(rank.state, rank.lives) for rank in gone] == [("gone", False)] * 3
        assert gone[0].page.total == Counts(65, 8006, 13, 88)
        assert own(jobs.Watch().look(), process.pid) == []


def test_ranks_that_have_ended_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    with holding(1, 0) as process:
        watch = jobs.Watch()
        watch.look()
        process.kill()
        process.wait(10)
        monkeypatch.setattr(jobs, "REMEMBERED_S", 0.0)
        assert [rank.state for rank in own(watch.look(), process.pid)] == ["gone"]
        assert own(watch.look(), process.pid) == []


def test_a_rank_that_has_ended_counts_as_long_as_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a job has done does not shrink when a rank of it ends."""
    monkeypatch.setattr(jobs, "REMEMBERED_S", 0.0)
    with holding(1, 1, "0/2") as one, holding(1, 1, "1/2") as other:
        watch, follower = jobs.Watch(), snapshot.Follower(snapshot.Watch(), str(other.pid))
        watch.look()
        follower.look()
        one.kill()
        one.wait(10)
        for _ in range(3):
            (job,) = (each for each in watch.look() if own((each,), other.pid))
            assert [rank.lives for rank in job.ranks] == [False, True]
            assert (job.ended_unix_s, job.total.written_bytes) == (None, 2 * 4006)
        assert not follower.is_over(follower.look())
        other.kill()
        other.wait(10)
        seen = follower.look()
        assert follower.is_over(seen) and seen.jobs[0].job.total.written_bytes == 2 * 4006
        assert abs((seen.ended_unix_s or 0) - time.time()) < 60
        assert follower.look().jobs == seen.jobs, "the last numbers stay"


def test_a_rank_whose_place_is_taken_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of programs that follow each other under one launcher the one that runs is shown."""
    monkeypatch.setattr(jobs, "_PAUSE", 0.0)
    with holding(1, 1, "1/2") as other, holding(1, 1, "0/2") as first:
        watch = jobs.Watch()
        watch.look()
        first.kill()
        first.wait(10)
        with holding(1, 1, "0/2") as second:
            (job,) = (each for each in watch.look() if own((each,), other.pid))
            assert [(rank.pid, rank.lives) for rank in job.ranks] == [(second.pid, True), (other.pid, True)]


def test_a_stopped_process_is_seen() -> None:
    with holding(1, 1) as process:
        process.send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + 10
        while not (found := jobs.process(process.pid)) or found.state != "T":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert [rank.state for rank in own(jobs.Watch().look(), process.pid)] == ["stopped"]


@pytest.mark.parametrize("ranks", [1, 7, *slow(10_000)])
def test_sizes(ranks: int) -> None:
    """All ranks of a node are seen, with nothing kept open; 10,000 of them within the patience of a person."""
    with holding(ranks, 1) as process:
        before = len(os.listdir("/proc/self/fd"))
        began = time.monotonic()
        watch = snapshot.Watch()
        name = str(process.pid)
        seen = watch.look().only(name)
        shown = screen.lines(seen, height=40)
        took_s = time.monotonic() - began
        assert len(os.listdir("/proc/self/fd")) == before
        assert [rank.page.rank for rank in seen.jobs[0].job.ranks] == list(range(ranks))
        assert seen.jobs[0].job.total.written_bytes == 4006 * ranks
        assert len(shown) <= 40
        assert len(snapshot.as_json(seen)["jobs"][0]["ranks_seen"]) == ranks
    assert took_s < 60


@pytest.mark.parametrize(
    ("worlds", "expected"),
    [
        (("0/1", "0/1"), [[0], [0]]),  # two programs that one shell has started, each alone
        (("0/2", "1/2"), [[0, 1]]),  # two ranks of a launcher that is not known
    ],
)
def test_processes_without_a_launcher(worlds: tuple[str, str], expected: list[list[int]]) -> None:
    with holding(1, 1, worlds[0]) as one, holding(1, 1, worlds[1]) as other:
        found = [
            [rank.page.rank for rank in job.ranks]
            for job in jobs.Watch().look()
            if {rank.pid for rank in job.ranks} & {one.pid, other.pid}
        ]
    assert found == expected


def test_rates_follow_from_two_looks() -> None:
    before, now = Counts(0, 1000, 1, 10), Counts(500, 3000, 0, 30)
    moved = jobs.rates(before, now, 2.0)
    assert (moved.read_bytes_per_s, moved.written_bytes_per_s) == (250, 1000)
    assert (moved.reads_per_s, moved.writes_per_s) == (0, 10)
    assert jobs.rates(before, now, 0.0) == jobs.Rates()


# ---- the command -----------------------------------------------------------------------------------------------------


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["top", *words])
    return done.exit_code, done.output


def test_the_command_without_a_job() -> None:
    """Who asks for one that is not there is told what there is; for a script there is none."""
    with holding(1, 1) as process:
        for words in ((), ("--once",)):
            done = CliRunner().invoke(main, ["top", "no such program", *words])
            assert (done.exit_code, done.stdout) == (1, "")
            assert done.stderr.startswith("mpiio-ext: no job no such program of this user on this node: there are ")
            assert f"{process.pid} (app --in x)" in done.stderr
        done = CliRunner().invoke(main, ["top", "999999999", "--json"])
        assert (done.exit_code, json.loads(done.stdout)["jobs"]) == (1, [])


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/bin/python3.11 -u /home/me/long.py 20 /scratch/x", "long.py 20 /scratch/x"),
        ("python -W error -m mpi4py.run many.py", "many.py"),
        ("python -m package.solver --n 3", "package.solver --n 3"),
        ("python -c pass", "python -c pass"),
        ("python", "python"),
        ("./lmp -in in.melt", "lmp -in in.melt"),
        ("bash job.sh", "job.sh"),
        ("", "app"),
        (f"./app {'x' * 100}", f"app {'x' * 43}…"),
    ],
)
def test_what_a_job_is_called(command: str, name: str) -> None:
    assert names.name_of(command, "app") == name


def test_jobs_are_found_by_words_of_their_commands() -> None:
    """A number of a job means it alone, also where it is a word of another."""
    with (
        holding(1, 1, command="python /home/long.py 20") as one,
        holding(1, 1, command=f"python many.py {one.pid}") as other,
    ):
        seen = snapshot.Watch().look()
        both = {str(one.pid), str(other.pid)}
        for word, found in (
            ("long.py", {one}),
            ("/home/long.py", {one}),
            ("m*.py", {other}),
            ("20", {one}),
            ("python", {one, other}),
            (str(one.pid), {one}),
            ("long", set()),
        ):
            means = {each.job.name for each in seen.only(word).jobs}
            assert means & both == {str(process.pid) for process in found}, word
        status, text = run("python", "--once", "--interval", "0.1s")
    assert status == 0 and re.search(rf"^{one.pid} .* long\.py 20 ", text, re.M) and f"many.py {one.pid}" in text
    found = {each["job"]: each for each in snapshot.as_json(seen)["jobs"]}
    assert (found[str(one.pid)]["program"], found[str(one.pid)]["command"]) == ("long.py", "python /home/long.py 20")


def test_the_command_shows_a_job() -> None:
    with holding(4, 3) as process:
        status, text = run(str(process.pid), "--interval", "0.1s")
        found = json.loads(run(str(process.pid), "--json", "--interval", "100ms")[1])
    assert status == 0
    assert "app --in x, 4 ranks on" in text and "/scratch/file.2" in text
    (job,) = found["jobs"]
    assert (job["ranks"], job["ranks_here"], job["program"]) == (4, 4, "app")
    assert job["written_bytes"] == 4 * (6 + 3 * 4000)
    assert [(file["path"], file["ranks"], file["written_bytes"]) for file in job["files"]] == [
        (f"/scratch/file.{index}", 4, 16000) for index in range(3)
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("--interval", "0"),
        ("--interval", "0.01s"),
        ("--interval", "-1s"),
        ("--interval", "inf"),
        ("--interval", "nan"),
        ("--interval", "86401s"),
        ("--interval", "1000000000h"),
    ],
)
def test_what_cannot_be_used_is_refused(words: tuple[str, ...]) -> None:
    status, text = run(*words)
    assert status == 2
    assert "Traceback" not in text


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written(unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mpiio_ext", "top", "--once"],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (1, "mpiio-ext: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("interval", ["0.1", "1s", "24h"])
def test_intervals_that_are_taken(interval: str) -> None:
    assert run("no such program", "--once", "--interval", interval)[0] == 1


def test_a_screen_fits_its_height() -> None:
    with holding(50, 40) as process:
        seen = snapshot.Watch().look().only(str(process.pid))
    for width, height in ((None, 16), (80, 24), (80, 40), (120, 25), (200, 200)):
        shown = screen.lines(seen, width=width, height=height)
        assert len(shown) == min(height, 50 + 40 + 6)
        hidden = [int(line.split()[1]) for line in shown if line.startswith("…")]
        rows = sum(line.startswith("/scratch/file.") or " sleeping " in line for line in shown)
        assert rows + sum(hidden) == 50 + 40, "what is not shown is counted"
    assert sum("/scratch/file." in line for line in screen.lines(seen)) == 40


@pytest.mark.parametrize(
    ("needs", "room", "given"),
    [
        ([8, 1], 40, [8, 1]),
        ([50, 1], 20, [19, 1]),
        ([1, 50, 50], 21, [1, 10, 10]),
        ([5, 5], 0, [0, 0]),
        ([], 5, []),
        ([9, 2, 9], -3, [0, 0, 0]),
    ],
)
def test_lines_are_shared_out(needs: list[int], room: int, given: list[int]) -> None:
    assert fitting.shares(needs, room) == given


PATH = "/scratch/of/a/user/with/a/long/name.h5"  # 38 characters


@pytest.mark.parametrize(
    ("width", "heads", "cells", "spared"),
    [
        (None, "file ranks written read mean~size read~so~far", (PATH, "4", "1.29 GB/s", "–", "65.5 kB", "0 B"), []),
        (79, "file ranks written read size so~far", (PATH, "4", "1.29 GB/s", "–", "65.5 kB", "0 B"), []),
        (66, "file ranks written size", (PATH, "4", "1.29 GB/s", "65.5 kB"), []),
        (51, "file ranks written size", (f"…{PATH[-23:]}", "4", "1.29 GB/s", "65.5 kB"), []),
        (42, "file ranks written", (f"…{PATH[-23:]}", "4", "1.29 GB/s"), ["mean size"]),
        (30, "file written", (f"…{PATH[-18:]}", "1.29 GB/s"), ["ranks", "mean size"]),
    ],
)
def test_a_table_fits_its_width(width: int | None, heads: str, cells: tuple[str, ...], spared: list[str]) -> None:
    """Names of files stay to be read: they come first, and a long path loses its start."""
    table = tables.Table(
        title="",
        columns=("file", "ranks", "written", "read", "mean size", "read so far"),
        long="file",
        cut_at_start=True,
        spare=("mean size", "ranks"),
        rows=((PATH, "4", "1.29 GB/s", "–", "65.5 kB", "0 B"),),
    )
    found, left_out = fitting.fitted(table, table.rows, width)
    assert re.split(" {2,}", found[-1]) == list(cells)
    assert re.split(" {2,}", found[-2]) == [name.replace("~", " ") for name in heads.split()]
    assert left_out == spared and all(len(line) <= (width or 999) for line in found)


def test_a_terminal_is_drawn_until_ctrl_c() -> None:
    """The screen is left as it was, and the status is 0; a window of another size is drawn at once."""
    own_end, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("4H", 20, 60, 0, 0))
    words = [
        "env",
        "--default-signal=INT",
        "-u",
        "COLUMNS",
        "-u",
        "LINES",
        sys.executable,
        "-m",
        "mpiio_ext",
        "top",
        "--interval",
        "1h",
    ]
    with (
        holding(1, 1) as job,
        open(own_end, "rb", 0) as out,
        subprocess.Popen([*words, str(job.pid)], stdin=its_end, stdout=its_end, stderr=its_end) as process,
    ):
        os.close(its_end)
        shown = b""
        for columns in (60, 30):  # as wide as the window are lines that tell of the window's width
            line = "In a wider window: pid" if columns == 30 else f"Job {job.pid}: app --in x, 1 rank on"
            while line.encode() not in shown:
                shown += out.read(4096)
            fcntl.ioctl(own_end, termios.TIOCSWINSZ, struct.pack("4H", 20, 30, 0, 0))
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # of a terminal whose other end is closed
            while more := out.read(4096):
                shown += more
        assert process.wait(30) == 0
    assert shown.startswith(b"\x1b[?1049h") and shown.endswith(b"\x1b[?1049l")


def test_the_last_numbers_of_a_job_stay_on_the_terminal() -> None:
    """When the job ends the screen is left, its last numbers are printed below it, and the status is 0."""
    own_end, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("4H", 24, 200, 0, 0))
    with holding(2, 1) as job:
        words = [
            "env",
            "-u",
            "COLUMNS",
            "-u",
            "LINES",
            sys.executable,
            "-m",
            "mpiio_ext",
            "top",
            str(job.pid),
            "--interval",
            "0.2s",
        ]
        with (
            subprocess.Popen(words, stdin=its_end, stdout=its_end, stderr=its_end) as process,
            open(own_end, "rb", 0) as out,
        ):
            os.close(its_end)
            shown = b""
            with contextlib.suppress(OSError):  # of a terminal whose other end is closed
                while more := out.read(4096):
                    shown += more
                    if b"/scratch/file.0" in shown:
                        job.kill()
            assert process.wait(30) == 0
    left = shown.rpartition(b"\x1b[?1049l")[2].decode()
    assert re.search(r"app --in x, 2 ranks on \S+, ended at \d\d:\d\d:\d\d after \d+ s", left)
    assert re.search(r"^all .*8\.01 kB", left, re.M) and "/scratch/file.0" in left and "No job" not in left
