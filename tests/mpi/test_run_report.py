"""``mpiio-ext run --report``: the first sentence of programs whose problem is known, and pages of runs that fail."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

import mpiio_ext
from corpora import diagnosis_corpus
from mpiio_ext.analytics.diagnosis.case import OF_ONE_NODE
from mpiio_ext.analytics.run.shown import RunReport
from mpiio_ext.layout import inspect
from support import cbuild, hosts
from support.launch import Launch, base_environment, launcher, run_bounded
from support.marks import slow

pytestmark = pytest.mark.mpi

RUN = [sys.executable, "-m", "mpiio_ext", "run"]
SLOW = {"SLOW_STORAGE_US": "100", "SLOW_STORAGE_MBPS": "200"}
#: Each open is a message to a server and back: what a program does is as clear on a machine that starts it late.
LATE = {"SLOW_STORAGE_OPEN_US": "500"}
#: Program -> storage (memory would make some a race with the scheduler), and what the first sentence says.
KNOWN = {
    "small_independent": (
        SLOW,
        "512 B independent writes to `data`, interleaved in the file with writes of other ranks",
    ),
    "one_writer": (SLOW, "writes to `data` by rank 0 alone"),
    "unaligned": (SLOW, "writes to `data` that do not begin at blocks of the file system"),
    "shared_opens": ({}, "opens of `data`, 20,000 times by"),
    "metadata_storm": (LATE, "opens and stat calls of 900 files, such as `"),
    "random_reads": ({}, "4,096 B independent reads at random places from `input`"),
    "imbalance": (
        SLOW,
        "writes to `data` by the slowest rank for longer than by an average rank, with 2.4 times the bytes",
    ),
    "slow_target": ({"SLOW_STORAGE_MBPS": "4", "below": "slow"}, "a slow server"),
    "read_modify_write": (SLOW, "small writes to `data` carried out by read-modify-write"),
    "well_behaved": (SLOW, "no cause of slow I/O stands out"),
    "uneven_collective": (SLOW, "no cause of slow I/O stands out"),  # one rank writes what another has
    "mostly_compute": ({}, "too little to be worth tuning"),
}
#: Nothing is wrong with them.
RIGHT = ("well_behaved", "uneven_collective", "mostly_compute")
#: Whose time the first sentence has.
PROGRAM = r"(([Aa]n average rank of y|[Rr]ank \d+ of y|[Yy])our program|[Tt]he rank with most time in I/O)"


@pytest.fixture(scope="module")
def tools(family: str) -> dict[str, str]:
    """Return the programs, and the storage that sleeps."""
    return {"program": diagnosis_corpus.program(), "slow_storage": cbuild.slow_storage()}


def run(
    folder: pathlib.Path,
    words: list[str],
    *,
    ranks: int = 3,
    outside: bool = False,
    storage: dict[str, str] | None = None,
    more: tuple[str, ...] = (),
    wait: bool = False,
) -> Launch:
    """Run a program in a launcher with a page; `wait` until the page is there, for a while."""
    start = [str(launcher()), "-n", str(ranks)]
    command = [*RUN, "--report", str(folder / "io.html"), *more]
    command = [*command, "--", *start, *words] if outside else [*start, *command, "--", *words]
    if wait:
        command = until_there(folder, command)
    return run_bounded(command, env=base_environment() | (storage or {}), timeout_s=120, check=not wait)


def until_there(folder: pathlib.Path, command: list[str]) -> list[str]:
    """Return a command that ends when its page is there, or after a while, as it does."""
    there = "[ -e $0 ] && ! ls -d ${0%/*}/.io.html.*.run >/dev/null 2>&1"
    looks = f"n=0; until {{ {there}; }} || [ $n -gt 300 ]; do sleep .1; n=$((n+1)); done"
    return ["sh", "-c", f'"$@"; s=$?; {looks}; exit $s', str(folder / "io.html"), *command]


def prepared(folder: pathlib.Path) -> str:
    """Return the folder of the data, with what programs need."""
    data = folder / "data"
    diagnosis_corpus.prepare(data)
    return str(data)


def page(folder: pathlib.Path, done: Launch) -> RunReport:
    """Return what the page of a run says, and look at what is beside it."""
    assert (folder / "io.html").is_file(), done.describe()
    assert [path.name for path in folder.glob(".io.html*")] == [], done.describe()
    assert (folder / "io.html").stat().st_size <= 1_000_000
    return mpiio_ext.run_report(folder / "io.html")


@pytest.mark.slow_except("small_independent", "slow_target", "well_behaved")
@pytest.mark.parametrize("kind", KNOWN)
def test_the_first_sentence_names_the_cause(
    kind: str, extension: str, tools: dict[str, str], tmp_path: pathlib.Path
) -> None:
    storage, words = KNOWN[kind]
    right = kind in RIGHT
    if kind == "unaligned" and inspect(str(tmp_path)).value("file_system") in OF_ONE_NODE:  # nobody locks blocks
        words, right = KNOWN["well_behaved"][1], True
    data = prepared(tmp_path)
    settings = {"OMPI_MCA_io": "romio321"}
    if storage:
        below = f"{data}/{storage.get('below', '')}".rstrip("/")
        settings |= {"SLOW_STORAGE_PATH": below, "LD_PRELOAD": tools["slow_storage"], **storage}
    done = run(tmp_path, [tools["program"], kind, data, "1"], storage=settings)
    found = page(tmp_path, done)
    overloaded = any("The CPUs were overloaded" in text for text in found.document["notices"])
    if right and overloaded and "which is late to open or close `data`" in found.sentence:
        return  # the machine started a rank late, and the page says so
    assert words in found.sentence, (found, found.findings.rows())
    assert f"wrote {tmp_path / 'io.html'}: {found.sentence}" in done.stderr
    assert (found.advice == "") == right
    assert right or "Gain: " in found.advice
    assert found.figures["time-line-ranks"].table().num_rows > 0
    if kind == "shared_opens":
        row = found.files.rows()[0]
        assert row["opens"] == 3 * 20_000 + 1 and row["opening_s"] <= row["time_s"]  # rank 0 makes it first
    if kind == "read_modify_write":  # a view of a vector
        assert re.fullmatch(r"… × [\d,]+ bytes in blocks of [\d,]+ × [\d,]+", found.files.rows()[0]["arrays"])
    text = (tmp_path / "io.html").read_text("utf-8")
    text = text.replace("run --darshan", "")
    assert not re.search(r"Darshan|\bDXT\b|HEATMAP|\bthe log\b|--low-bandwidth|\bdocs/|\.md\b", text)


@pytest.mark.both
@pytest.mark.parametrize("outside", [True, *slow(False)], ids=["run_mpiexec", "mpiexec_run"])
@pytest.mark.parametrize("ranks", [*slow(1), 4])
def test_what_the_library_did(
    outside: bool, ranks: int, extension: str, tools: dict[str, str], tmp_path: pathlib.Path
) -> None:
    data = prepared(tmp_path)
    hints = ("-H", "cb_buffer_size=2M", "--stats")
    done = run(tmp_path, [tools["program"], "few_aggregators", data, "1"], ranks=ranks, outside=outside, more=hints)
    found = page(tmp_path, done)
    (row,) = found.library.rows()
    assert (row["file"], row["collectives"], row["ranks"]) == (f"{data}/data", 8, ranks)
    assert row["aggregators"] == (f"1 of {ranks} ranks" if ranks > 1 else None)  # of one: straight to the file
    assert row["requests"] > 0 and row["request_bytes"] >= ranks * 8 * (4 << 20)
    assert row["requests"] == found.files.rows()[0]["writes"]  # one number, counted here and there
    moved = sum(one["bytes"] for one in found.figures["heat"].rows())
    assert moved == found.files.rows()[0]["written_bytes"]  # and nothing that MPI keeps for itself
    assert {(hint["hint"], hint["value"], hint["set_by"]) for hint in found.hints.rows()} == {
        ("cb_buffer_size", "2097152", "MPIOX_HINTS"),
        ("cb_nodes", "1", "MPI_Info"),
        ("romio_cb_write", "enable", "MPI_Info"),
    }
    assert done.stderr.count("mpiio_ext: statistics of") == 1  # what --stats prints stays
    assert ["processes", f"{ranks}"] in found.document["facts"]
    of_the_run = [text for text in found.document["notices"] if "waited for a CPU" not in text]  # of this machine now
    assert not of_the_run and not found.document["lacks"]


def test_variable_and_log_at_once(extension: str, tools: dict[str, str], tmp_path: pathlib.Path) -> None:
    """MPIOX_REPORT is as good as the option, and does not make ranks inside write pages of their own."""
    data = prepared(tmp_path)
    command = [
        *RUN,
        "--darshan",
        str(tmp_path / "log"),
        "--",
        str(launcher()),
        "-n",
        "2",
        *RUN,
        "--",
        tools["program"],
        "well_behaved",
        data,
        "1",
    ]
    done = run_bounded(command, env=base_environment() | {"MPIOX_REPORT": str(tmp_path / "io.html")}, timeout_s=120)
    assert ["processes", "2"] in page(tmp_path, done).document["facts"]
    assert done.stderr.count("wrote ") == 2 and (tmp_path / "log").is_file()


def test_no_mpi_and_no_calls(extension: str, tmp_path: pathlib.Path) -> None:
    command = [*RUN, "--report", str(tmp_path / "io.html"), "--"]
    done = run_bounded(
        [*command, "sh", "-c", "echo a > f; exit 3"], env=base_environment(), timeout_s=60, cwd=tmp_path, check=False
    )
    assert done.returncode == 3
    (notice,) = page(tmp_path, done).document["notices"]
    assert "No MPI-IO here: no process whose calls were recorded has initialised MPI" in notice
    done = run_bounded([*command, "true"], env=base_environment(), timeout_s=60, cwd=tmp_path)
    found = page(tmp_path, done)
    assert "I/O" in found.sentence and found.rows() == []


def test_copies_are_input_and_output(extension: str, tmp_path: pathlib.Path) -> None:
    """`cp` moves a file by copy_file_range: a read of the one and a write of the other."""
    (tmp_path / "a").write_bytes(bytes(1 << 20))
    copy = "import os; a, b = open('a', 'rb'), open('b', 'wb'); print(os.copy_file_range(a.fileno(), b.fileno(), 9000))"
    command = [*RUN, "--report", str(tmp_path / "io.html"), "--", sys.executable, "-c", copy]
    done = run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path)
    rows = {pathlib.Path(row["file"]).name: row for row in page(tmp_path, done).rows()}
    assert (rows["a"]["read_bytes"], rows["b"]["written_bytes"]) == (int(done.stdout), int(done.stdout))
    assert rows["a"]["time_s"] > 0 < rows["b"]["time_s"]


def test_files_of_the_system_are_counted_and_only_takes_them(extension: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "table").write_bytes(bytes(9000))
    code = "open('model.pth', 'wb').write(bytes(70000)); open('site-packages/table', 'rb', buffering=0).read(9000)"
    for words, name, moved in (([], "model.pth", "0 B, 70 kB"), (["--only", "table"], "table", "9 kB, 0 B")):
        command = [*RUN, "--report", str(tmp_path / "io.html"), *words, "--", sys.executable, "-c", code]
        done = run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path)
        found = page(tmp_path, done)
        facts = dict(found.document["facts"])
        assert [pathlib.Path(row["file"]).name for row in found.rows()] == [name] and facts[
            "read, written by the program"
        ] == moved
        told = facts.get("not counted", "")
        pattern = r"[\d,]+ operations on [\d,]+ files of the system, such as /.*--only"
        assert bool(re.match(pattern, told)) == (not words), told
    done = run_bounded([*RUN, "--only", "*", "--", "true"], env=base_environment(), timeout_s=60, check=False)
    assert done.returncode == 2 and "give --report FILE.html" in done.stderr


def test_a_program_with_files_of_the_system_alone_is_counted(extension: str, tmp_path: pathlib.Path) -> None:
    """And where another process has the accesses, the run is of that one."""
    pattern = r"[2-9] operations on 1 file of the system, such as /etc/passwd\b.*`.*--only GLOB`"
    for option, name in (("--report", "io.html"), ("--darshan", "io.darshan"), ("--timeline", "io.pftrace")):
        command = [*RUN, option, str(tmp_path / name), "--", "cat", "/etc/passwd"]
        done = run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path)
        assert re.search(pattern, done.stderr) and "no call was recorded" not in done.stderr.lower(), done.describe()
    (tmp_path / "data").write_text("x")
    names = ["sh", "-c", 'printf "/etc/passwd data" | "$@"', "sh"]
    command = [*names, *RUN, "--report", str(tmp_path / "io.html"), "--", "xargs", "-n", "1", "cat"]
    found = page(tmp_path, run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path))
    assert found.document["program"] == "cat data" and len(found.rows()) == 1
    command = [sys.executable, "-m", "mpiio_ext", "trace", "-o", str(tmp_path / "trace"), "--", "cat", "/etc/passwd"]
    run_bounded(command, env=base_environment(), timeout_s=60)
    command = [*command[:3], "pioneer", "path", str(tmp_path / "trace"), "-o", str(tmp_path / "path.parquet")]
    done = run_bounded(command, env=base_environment(), timeout_s=60, check=False)
    assert re.search(pattern, done.stderr) and done.returncode == 2, done.describe()


def test_a_selection_that_leaves_no_call(extension: str, tmp_path: pathlib.Path) -> None:
    reason = "no call was recorded: the program has made no call on a file that --only/--skip select"
    only, skip = ("--only", "*.dat"), ("--skip", "/etc/passwd")
    for option, name, words in (
        ("--report", "io.html", only),
        ("--report", "skipped.html", skip),
        ("--darshan", "io.darshan", only),
        ("--timeline", "io.pftrace", only),
    ):
        command = [*RUN, option, str(tmp_path / name), *words, "--", "cat", "/etc/passwd"]
        done = run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path)
        assert reason in done.stderr.lower(), done.describe()


def test_a_copy_of_a_file_of_the_system_is_a_write(extension: str, tmp_path: pathlib.Path) -> None:
    """Of `/etc` nothing is recorded, but the copy is the program's."""
    copy = (
        "import os; a, b = open('/etc/passwd', 'rb'), open('b', 'wb');"
        " print(os.sendfile(b.fileno(), a.fileno(), 0, 99))"
    )
    command = [*RUN, "--report", str(tmp_path / "io.html"), "--", sys.executable, "-c", copy]
    done = run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path)
    rows = {pathlib.Path(row["file"]).name: row for row in page(tmp_path, done).rows()}
    assert (rows["b"]["written_bytes"], rows["b"]["writes"]) == (int(done.stdout), 1)


@pytest.mark.parametrize("words", [["py"], ["sync"]])
def test_small_pieces_one_by_one(words: list[str], extension: str, tmp_path: pathlib.Path) -> None:
    """Contiguous pieces that a program flushes each by itself, or syncs each by itself, have a cause."""
    write = (
        "import os, sys; f = open('log', 'wb')\nfor i in range(int(sys.argv[2])):\n    f.write(bytes(100));"
        " f.flush(); sys.argv[1] == 'sync' and os.fsync(f.fileno())"
    )
    count = {"py": "100000", "sync": "300"}[words[0]]
    command = [*RUN, "--report", str(tmp_path / "io.html"), "--", sys.executable, "-c", write, *words, count]
    found = page(tmp_path, run_bounded(command, env=base_environment(), timeout_s=120, cwd=tmp_path))
    causes = {
        "py": "Tiny pieces are written by read and write, 100 B a call",
        "sync": "Syncs (fsync) follow the writes",
    }
    assert any(row["finding"].startswith(causes[words[0]]) for row in found.findings.rows()), found


def test_a_rank_that_waits(extension: str, tools: dict[str, str], tmp_path: pathlib.Path) -> None:
    data = prepared(tmp_path)
    slow = {"SLOW_STORAGE_PATH": data, "LD_PRELOAD": tools["slow_storage"], **SLOW, "OMPI_MCA_io": "romio321"}
    found = page(tmp_path, run(tmp_path, [tools["program"], "few_aggregators", data, "1"], storage=slow))
    assert any(row["what"] == "waiting" and row["time_s"] > 0 for row in found.figures["time-line-ranks"].rows())


def test_several_launches_in_one_run(extension: str, tools: dict[str, str], tmp_path: pathlib.Path) -> None:
    """The page names each program with MPI that has accessed files, those beside them, and lasts as long as all."""
    data = prepared(tmp_path)
    start = f"{launcher()} -n 2 {tools['program']}"
    beside = f"dd if=/dev/zero of={data}/beside bs=1000 count=3000"
    script = f"{start} well_behaved {data} 1 && sleep 2 && {beside} && {start} small_independent {data} 1"
    command = [*RUN, "--report", str(tmp_path / "io.html"), "--", "sh", "-c", script]
    done = run_bounded(command, env=base_environment(), timeout_s=120)
    program = f"{tools['program']} well_behaved {data} 1; {tools['program']} small_independent {data} 1"
    document = page(tmp_path, done).document
    assert document["program"] == program
    assert any(f"`{beside}` (3 MB written)" in text for text in document["notices"])
    assert document["charts"][0]["data"]["run_time"] > 2


@pytest.mark.parametrize("mode", ["thread", *slow("spawn")])
def test_delegates_carry_requests_out(mode: str, extension: str, tools: dict[str, str], tmp_path: pathlib.Path) -> None:
    """Bytes and ranks are those of the program's calls, whoever writes."""
    data = prepared(tmp_path)
    hints = ("-H", "mpiox_delegates=per_node=1", "-H", f"mpiox_delegate_mode={mode}")
    done = run(tmp_path, [tools["program"], "small_independent", data, "1"], more=hints)
    found = page(tmp_path, done)
    (row,) = (each for each in found.rows() if each["file"] == f"{data}/data")
    assert row["written_bytes"] == pathlib.Path(row["file"]).stat().st_size and row["who"] == "all 3 ranks"
    assert any(text.startswith("Delegates ") and "made the requests" in text for text in found.document["notices"])
    assert "rank 0" not in found.sentence
    late_to_open = "The other ranks wait for rank "  # to open or close a file: a busy machine makes any rank late
    assert [row for row in found.findings.rows() if not row["finding"].startswith(late_to_open)] == []


@pytest.mark.both
@pytest.mark.parametrize("binding", [*slow(2), 3])
def test_a_fortran_program_ends_well(binding: int, extension: str, tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, [str(cbuild.fortran_program(binding)), prepared(tmp_path) + "/file"], ranks=2)
    found = page(tmp_path, done)
    refused = "2 of 4 MPI_File_write_at_all calls on `file` failed with MPI_ERR_COUNT"  # a negative one
    assert re.match(rf"Accesses failed: {re.escape(refused)}\. {PROGRAM} spent ", found.sentence), found
    assert found.files.rows()[0]["opens"] >= 2


def test_a_mistyped_program_leaves_nothing(extension: str, tmp_path: pathlib.Path) -> None:
    command = [str(launcher()), "-n", "3", *RUN, "--report", str(tmp_path / "io.html"), "--", str(tmp_path / "nosuch")]
    done = run_bounded(command, env=base_environment(), timeout_s=60, check=False)
    assert done.returncode != 0 and "cannot execute" in done.stderr and list(tmp_path.iterdir()) == []


def failed_by(who: str, found: Mapping[str, Any]) -> bool:
    """Return whether the first sentence begins with a rank that has failed, and goes on with the program's I/O.

    Where a rank's recording lacks its end, it says so; the others of an abort may come to their ends.
    """
    lacks = "As far as was recorded, " if found["lacks"] else ""
    words = rf"The job failed after [\d.]+ (m?s|min): {re.escape(who)}\. {lacks}{PROGRAM} .*"
    return re.fullmatch(words, found["sentence"]) is not None


@pytest.mark.parametrize("outside", [True, *slow(False)], ids=["run_mpiexec", "mpiexec_run"])
def test_a_rank_that_is_killed(outside: bool, extension: str, tmp_path: pathlib.Path) -> None:
    """The page has what was done until then, and says what lacks."""
    data = tmp_path / "data"
    data.mkdir()
    program = str(cbuild.mpi_program("darshan_calls", "-O1"))
    done = run(tmp_path, [program, str(data), "1"], outside=outside, wait=True)
    assert not done.timed_out and done.returncode != 0
    found = page(tmp_path, done).document
    assert any("rank" in line for line in found["lacks"])
    assert not any("No call reached" in line for line in found["notices"])
    who = f"rank 1 on {os.uname().nodename} ended with status 7"
    assert found["lacks"] and failed_by(who, found) and who in done.stderr, (found["sentence"], done.stderr)


@pytest.mark.both
@pytest.mark.parametrize("outside", [*slow(True), False], ids=["run_mpiexec", "mpiexec_run"])
def test_a_rank_that_aborts(outside: bool, extension: str, tmp_path: pathlib.Path) -> None:
    """The line on the terminal and the page name the rank that has called MPI_Abort; the exit status stays."""
    program = str(cbuild.mpi_program("aborting", "-O1"))
    done = run(tmp_path, [program, str(tmp_path / "data"), "100"], outside=outside, wait=True)
    assert not done.timed_out and done.returncode == 7, done.describe()
    found = page(tmp_path, done).document
    who = f"rank 2 on {os.uname().nodename} called MPI_Abort with error code 7"
    assert failed_by(who, found) and who in done.stderr, (found["sentence"], done.stderr)
    assert "completed calls had read 0 B and written 10 kB" in found["at_end"]


#: Ways of tests/programs/failing.c, and what is said of the rank then.
WAYS = {
    "kill": "was ended by signal SIGKILL",
    "segv": "was ended by signal SIGSEGV",
    "exit": "ended with status 3",
    "abort": "called MPI_Abort with error code 7",
}


@pytest.mark.both
@pytest.mark.parametrize(
    ("way", "ranks", "outside"),
    [
        ("kill", 4, True),
        *slow(
            ("kill", 4, False),
            *(
                (way, ranks, outside)
                for ranks in (1, 4, 7)
                for way in WAYS
                for outside in (True, False)
                if (way, ranks) != ("kill", 4)
            ),
        ),
    ],
)
def test_the_rank_that_failed_first_is_named(
    way: str, ranks: int, outside: bool, extension: str, tmp_path: pathlib.Path
) -> None:
    """The others wait for it in a collective call, which counts, until the launcher ends them."""
    bad = ranks // 2
    program = str(cbuild.mpi_program("failing", "-O1"))
    words = [program, str(tmp_path / "data"), way, str(bad), "1"]
    found = page(tmp_path, run(tmp_path, words, ranks=ranks, outside=outside, wait=True)).document
    assert failed_by(f"rank {bad} on {os.uname().nodename} {WAYS[way]}", found), found["sentence"]
    waited = [line.partition(" in MPI_File_write_at_all of `data` for ") for line in found["at_end"]]
    waited = [parts for parts in waited if parts[1]]
    others = sorted(rank for who, _, _ in waited for rank in re.findall(r"\d+", who))
    assert others == [str(rank) for rank in range(ranks) if rank != bad], found["at_end"]
    # On a busy machine a rank is still in its own request.
    ends = (", waiting for other ranks", ", in a request to the file system")
    assert all(line.endswith(ends) for _, _, line in waited), found["at_end"]
    assert ranks == 1 or any(line.endswith(ends[0]) for _, _, line in waited), found["at_end"]
    assert ranks == 1 or "in MPI_File_write_at_all of `data`, which had not ended." in found["sentence"]


def test_a_job_that_hangs_and_is_ended(extension: str, tmp_path: pathlib.Path) -> None:
    """Rank 1 does not come: the page says so, and that the job was ended from outside, as by a batch system."""
    data = tmp_path / "data"
    program = str(cbuild.mpi_program("failing", "-O1"))
    end = f'"$@" & p=$!; until [ -s {data} ]; do sleep .1; done; sleep 2; kill $p; wait $p'
    command = [
        "sh",
        "-c",
        end,
        "sh",
        *RUN,
        "--report",
        str(tmp_path / "io.html"),
        "--",
        str(launcher()),
        "-n",
        "3",
        program,
        str(data),
        "hang",
        "1",
        "0",
    ]
    done = run_bounded(until_there(tmp_path, command), env=base_environment(), timeout_s=60, check=False)
    found = page(tmp_path, done).document
    words = r"The job failed after .* s: (it was|its ranks were) ended .*\. As far as"
    assert re.match(words, found["sentence"]), found["sentence"]
    lines = found["at_end"]
    assert any(line.startswith("ranks 0, 2 were in MPI_File_write_at_all of `data` for ") for line in lines), lines
    assert "rank 1 was in no call on files and in no call of MPI-IO" in lines


@pytest.mark.parametrize(("way", "outside"), slow(*((way, outside) for way in WAYS for outside in (True, False))))
def test_a_rank_of_another_host(way: str, outside: bool, extension: str) -> None:
    """Rank 3 is on the second host. Of what it tells nobody, one of those is named that may have been the first."""
    hosts.require()
    with hosts.cluster(2) as up:
        words = [str(cbuild.mpi_program("failing", "-O1")), str(up.folder / "data"), way, "3", "1"]
        command = [*RUN, "--report", str(up.folder / "io.html")]
        start = up.launcher(4, 2)[len(up.on(1, [])) :]
        command = [*command, "--", *start, *words] if outside else [*start, *command, "--", *words]
        done = run_bounded(
            up.on(1, until_there(up.folder, command)), env=base_environment(), timeout_s=60, check=False, cwd=up.folder
        )
        found = page(up.folder, done).document
        name = up.call(2, ["uname", "-n"]).strip()
    if way in ("exit", "abort"):
        assert failed_by(f"rank 3 on {name} {WAYS[way]}", found), (found["sentence"], done.stderr)
    else:
        words = rf": (one of these ranks was ended by a signal, .* 2, 3 on {name}|rank 3 on {name} {WAYS[way]})\."
        assert re.search(words, found["sentence"]), (found["sentence"], done.stderr)


def test_a_launcher_that_ends_a_rank(extension: str, tmp_path: pathlib.Path) -> None:
    """Before the launcher is gone, and with it the terminal, the page is announced, once."""
    target = tmp_path / "io.html"
    start = ["sh", "-c", 'n=0; "$@"; until [ -e "$0" ] || [ $n -gt 600 ]; do sleep .1; n=$((n+1)); done', str(target)]
    command = [*RUN, "--report", str(target), "--", "sh", "-c", "sleep 2; kill -TERM $PPID; exec sleep 60"]
    done = run_bounded(
        [*start, *command],
        env=base_environment() | {"PMI_RANK": "0", "PMI_SIZE": "1"},
        timeout_s=90,
        cwd=tmp_path,
        check=False,
    )
    line = f"mpiio-ext: {target}: made when all ranks have ended, in some seconds\n"
    assert done.stderr.count(line) == 1 and target.exists(), done.describe()


def test_a_run_that_has_left_its_recordings(extension: str, tmp_path: pathlib.Path) -> None:
    """The writer is killed, as by a batch system: the folder stays, is named, and becomes a page."""
    kill = "for p in $(cat /proc/$PPID/task/$PPID/children); do [ $p = $$ ] || kill -9 $p; done"
    command = [*RUN, "--report", str(tmp_path / "io.html"), "--", "sh", "-c", f"echo a > f; {kill}"]
    done = run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path)
    (left,) = tmp_path.glob(".io.html.*.run")
    assert f"the recordings stay: mpiio-ext report {left} -o" in done.stderr, done.describe()
    words = [sys.executable, "-m", "mpiio_ext", "report", str(left), "-o", str(tmp_path / "late.html")]
    done = run_bounded(words, env=base_environment(), timeout_s=60)
    found = mpiio_ext.run_report(tmp_path / "late.html")
    assert str(tmp_path / "f") in [row["file"] for row in found.rows()], done.describe()
    assert left.is_dir() and mpiio_ext.run_report(left).sentence == found.sentence


def test_who_does_not_wait_for_the_page(extension: str, tmp_path: pathlib.Path) -> None:
    """A signal after the end of the program ends the command, with the program's status; the page comes later."""
    stays = "f = open('f', 'w'); print('x' * 100000, file=f, flush=True); import time; time.sleep(300)"
    program = f"{shlex.join([sys.executable, '-c', stays])} 2>/dev/null & until [ -s f ]; do sleep .1; done; exit 3"
    command = [*RUN, "--report", str(tmp_path / "io.html"), "--", "sh", "-c", program]
    with subprocess.Popen(command, env=base_environment(), cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        waits = run.stderr.readline()
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 3
        rest = run.stderr.read()  # as long as the writer works
    found = re.fullmatch(r"mpiio-ext: waits up to 10 s for process (\d+) \(.*\), which the .*\n", waits)
    assert found is not None, waits + rest
    os.kill(int(found[1]), signal.SIGKILL)
    assert f"{tmp_path / 'io.html'}: made when all ranks have ended, in some seconds\n" in rest
    lacks = mpiio_ext.run_report(tmp_path / "io.html").document["lacks"]
    assert any(f"process {found[1]} " in line and "still runs" in line for line in lacks), lacks


@pytest.mark.parametrize(("target", "message"), [(".", "is a folder"), ("missing/io.html", "there is no folder")])
def test_what_cannot_be_written_is_refused_before_the_run(
    target: str, message: str, extension: str, tmp_path: pathlib.Path
) -> None:
    command = [*RUN, f"--report={tmp_path / target}", "--", "touch", "started"]
    done = run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path, check=False)
    assert (done.returncode, message in done.stderr) == (2, True), done.describe()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("recorder", ["--report=x.html", *slow("--darshan=x.darshan", "--timeline=x.json")])
def test_the_first_error_is_the_programs_own(recorder: str, extension: str, tmp_path: pathlib.Path) -> None:
    """The first call that is recorded makes the recording: in the program, in its child, and in what that executes."""
    (tmp_path / "there").mkdir()
    for words in (["mkdir", "there"], ["sh", "-c", "mkdir there; mkdir there"], ["sh", "-c", "exec mkdir there"]):
        command = [*RUN, recorder, "--", *words]
        done = run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path, check=False)
        assert done.returncode == 1 and "File exists" in done.stderr, done.describe()
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    run_bounded([*RUN, recorder, "--", "cp", "a", "b"], env=base_environment(), timeout_s=60, cwd=tmp_path)
    assert (tmp_path / "b").read_text() == "a"


def test_commands_are_quoted(extension: str, tools: dict[str, str], tmp_path: pathlib.Path) -> None:
    """What is printed can be pasted into a shell: nothing of a file's name is carried out."""
    data = prepared(tmp_path / 'a $(touch b) "c" it\'s')
    done = run(tmp_path, [tools["program"], "small_independent", data, "1"], storage={"OMPI_MCA_io": "romio321"})
    command = f" -- {shlex.join([tools['program'], 'small_independent', data, '1'])}"
    assert command in page(tmp_path, done).advice or len(command) > 160
