"""The arbiter beside Slurm: lists of jobs in every form, what they do to the jobs that count, prolog and epilog."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.common.slurm import SlurmError, expand_nodes, phase
from mpiio_ext.delegates.arbiter.announcements import here
from mpiio_ext.delegates.arbiter.service import Arbiter
from mpiio_ext.delegates.arbiter.settings import Settings
from mpiio_ext.delegates.arbiter.slurm import connector, scheduled
from mpiio_ext.delegates.arbiter.slurm.joblist import SlurmJob, parse
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.errors import MpiioExtError
from support.expected import Expected

#: What Slurm 22.05.8 printed of the same jobs: the query of `slurm-watch`, that in its help with steps, and JSON.
SAMPLES = pathlib.Path(__file__).parents[1] / "samples" / "slurm"
TEXTS = {name: (SAMPLES / name).read_text(encoding="utf-8") for name in ("squeue.txt", "sacct.txt", "squeue.json")}
#: `squeue --all --states=all --format='%A|%T|%D|%C|%j'`.
SHORT = """\
JOBID|STATE|NODES|CPUS|NAME
53|RUNNING|4|128|ior
57|COMPLETED|1|48|old
"""


def listed(**states: str) -> str:
    """Return what squeue printed, with jobs in these states alone: ``job53="RUNNING"``."""
    head, *lines = TEXTS["squeue.txt"].splitlines()
    wanted = {name.removeprefix("job"): state for name, state in states.items()}
    rows = [line.split("|", 4) for line in lines if line.split()[0] in wanted]
    kept = ["|".join([*row[:3], f"{wanted[row[0].strip()]:20}", row[4]]) for row in rows]
    return "\n".join([head, *kept, ""])


def of_slurm_23() -> str:
    """Return a list in which numbers are objects, unknown ones too, and a job has several states."""
    document = json.loads(TEXTS["squeue.json"])
    for item in document["jobs"]:
        for name in ("node_count", "tasks", "cpus"):
            item[name] = {"set": item["job_state"] != "PENDING", "infinite": False, "number": item[name]}
        item["job_state"] = ["COMPLETED", "COMPLETING"] if item["job_state"] == "FAILED" else [item["job_state"]]
    return json.dumps(document)


def without_raw_ids() -> str:
    """Return the list of sacct, whose first column then names the parts of a job by ``54+1``."""
    return "\n".join(line.partition("|")[2] for line in TEXTS["sacct.txt"].splitlines())


FORMS = {
    **TEXTS,
    "sacct.json": (SAMPLES / "sacct.json").read_text(encoding="utf-8"),
    "Slurm 23": of_slurm_23(),
    "short": SHORT,
    "sacct without raw numbers": without_raw_ids(),
    "cancelled": TEXTS["sacct.txt"].replace("FAILED", "CANCELLED by 1000"),
    "other states": listed(job53="COMPLETING", job54="SUSPENDED", job55="SUSPENDED"),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_list(name: str, expected: Expected) -> None:
    """The components of a heterogeneous job are one job, and a name may have the separator of the columns."""
    jobs, bad = parse(FORMS[name])
    assert not bad
    expected([f"{one.id} {one.phase} ({one.state}): {one.nodes} nodes, {one.processes}, {one.name}" for one in jobs])


def test_words_of_states(expected: Expected) -> None:
    words = ("R", "CG", "OOM", "CANCELLED+", "cancelled by 12", "", "WARM")
    expected({f"'{word}'": phase(word) for word in words})


def test_the_parts_of_a_job_come_in_any_order() -> None:
    head = "JOBID|HET_JOB_ID|HET_JOB_OFFSET|STATE|NODES|TASKS|NAME\n"
    lines = ["54|54|0|COMPLETING|1|2|x", "55|54|1|COMPLETED|2|3|y", "56|N/A|N/A|RUNNING|1|1|z"]
    whole = SlurmJob(id="54", state="COMPLETING", nodes=3, processes=5, name="x")
    requeued = [lines[1].replace("|3|", "|9|"), *lines]  # the last line of a part is the newest
    for order in (lines, lines[::-1], requeued):
        jobs = {job.id: job for job in parse(head + "\n".join(order))[0]}
        assert set(jobs) == {"54", "56"} and jobs["54"] == whole


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "columns"),
        ("\n\n", "columns"),
        ("slurm_load_jobs error: Unable to contact slurm controller\n", "columns"),
        ("NAME|USER\nx|y\n", "JOBID"),
        ("{", "no list of jobs"),
        ("[]", "list `jobs`"),
        ('{"jobs": 3}', "list `jobs`"),
        ('{"jobs": [], "errors": [{"error": "Unable to contact"}]}', "Unable to contact"),
        ("[" * 100_000, "no list"),
    ],
)
def test_what_is_no_list(text: str, words: str) -> None:
    with pytest.raises(SlurmError, match=words):
        parse(text)


def test_bad_lines_are_told_and_left_out() -> None:
    text = (
        "JOBID|STATE|NODES|TASKS|NAME\n1|RUNNING|1|2|a\nx|RUNNING|1|1|b\n2|RUNNING|one|1|c\n3|RUNNING\n4||1|1|d\n"
        "5_7|RUNNING|1|1|array\n6_[1-9]|PENDING|1|1|waits\n7|PENDING|1-4|1K|e\n8|RUNNING|-3|1|f\n"
    )
    jobs, bad = parse(text)
    assert [job.id for job in jobs] == ["1", "7"] and jobs[1].processes == 1024
    assert [line.partition(":")[0] for line in bad] == ["line 3", "line 4", "line 5", "line 6", "line 7", "line 10"]
    assert "%A" in bad[4]
    items = [3, {"job_id": "a"}, {"job_id": 5}, {"job_id": 6, "state": "R", "steps": 3}]
    jobs, bad = parse(json.dumps({"jobs": items}))
    assert not jobs and len(bad) == 4


@pytest.mark.parametrize("end", ["\n", "\r\n", "\v", "\x1c", "\x85", "\u2028"])
def test_a_line_break_in_a_name_forges_no_line(end: str) -> None:
    """The query of `slurm-watch` has columns of more characters in front of the name than the name may have."""
    *columns, last = connector.COLUMNS.split(",")
    widths = [int(column.rpartition(":")[2].removesuffix("|")) for column in columns]
    assert sum(widths) > int(last.rpartition(":")[2]) and last.startswith("Name:")
    for name in ("1201|N/A|N/A|COMPLETED|1|1|x", "1201     |N/A |N/A |COMPLETED    |1  |1 |x", "1201" + " " * 16 + "|"):
        rows = [("JOBID", "HET_JOB_ID", "HET_JOB_OFFSET", "STATE", "NODES", "TASKS")]
        rows += [("1201", "N/A", "N/A", "RUNNING", "4", "128"), ("7", "N/A", "N/A", "RUNNING", "1", "1")]
        names = ("NAME", "ior", f"x{end}{name}"[:64])
        lines = [
            "".join(f"{value:{width}}|" for value, width in zip(row, widths, strict=True)) + own
            for row, own in zip(rows, names, strict=True)
        ]
        jobs, bad = parse("\n".join(lines))
        assert {job.id: (job.state, job.name) for job in jobs} == {"1201": ("RUNNING", "ior"), "7": ("RUNNING", "x")}
        assert len(bad) == 1 and "part of a job's name" in bad[0]


def test_lists_may_be_padded_in_part() -> None:
    """As of ``squeue --format=%18i|%T|%j``: a column without a width, and separators behind it, may be anywhere."""
    for head in ("JOBID |STATE|NAME", "JOBID             |STATE|NAME", "STATE|JOBID             |NAME"):
        lines = ["12 |RUNNING|a", "12                |RUNNING|a|b", "COMPLETING|12|a"]
        line = lines[["JOBID |", "JOBID  ", "STATE|J"].index(head[:7])]
        jobs, bad = parse(f"{head}\n{line}")
        assert [job.id for job in jobs] == ["12"] and not bad, head


@given(st.text(max_size=300))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    for document in (text, f"JOBID|STATE|NODES\n{text}", f'{{"jobs": [{json.dumps(text)}]}}'):
        try:
            jobs, _ = parse(document)
        except SlurmError:
            continue
        assert all(job.id.isdigit() for job in jobs)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("nid0[0001-0003,5],login1", 5),
        ("node1", 1),
        ("rack[1-2]node[1-4]", 8),
        ("", 0),
        ("a[1-2", None),
        ("n[3-1]", None),
        ("n[x]", None),
    ],
)
def test_counting_nodes(text: str, count: int | None) -> None:
    if count is None:
        with pytest.raises(SlurmError):
            expand_nodes(text)
        return
    assert len(expand_nodes(text)) == count


# ---- the folder ------------------------------------------------------------------------------------------------------


def job(identity: str, state: str = "RUNNING", nodes: int | None = 2, processes: int | None = 8) -> SlurmJob:
    return SlurmJob(id=identity, state=state, nodes=nodes, processes=processes, name="app x")


def announce(folder: pathlib.Path, name: str, scheduler: str, nodes: str = "nodes 1\n") -> None:
    boot, space = here()
    text = (
        f"mpiox-job 1\njob {name}\nhost h\nboot {boot}\nprocesses {space}\npid {os.getpid()}\nranks 4\n{nodes}"
        f"delegates 4\nprogram app\nscheduler_job {scheduler}\napplied 0\n"
    )
    (folder / "jobs" / name).write_text(text)


def test_files_come_back(tmp_path: pathlib.Path) -> None:
    scheduled.write(tmp_path, job("12"))
    scheduled.write(tmp_path, job("3", "CANCELLED by 7", None, None))
    below = tmp_path / scheduled.FOLDER
    (below / "99").write_text("something else")
    (below / "notes").write_text(scheduled.encode(job("5")))
    (below / "7").symlink_to("/etc/passwd")
    (below / ".draft").write_text("x")
    os.mkfifo(below / "8")
    found, others = scheduled.read_all(tmp_path)
    assert [(one.id, one.state, one.nodes, one.processes) for one in found] == [
        ("3", "CANCELLED", None, None),
        ("12", "RUNNING", 2, 8),
    ]
    assert found[1].name == "app_x" and others == ["7", "8", "99", "notes"]


def old(folder: pathlib.Path, identity: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(folder / scheduled.FOLDER / identity, (then, then))


def test_a_list_becomes_files(tmp_path: pathlib.Path, expected: Expected) -> None:
    every = listed(job53="RUNNING", job54="SUSPENDED", job55="SUSPENDED", job56="PENDING", job57="COMPLETING")
    short = listed(job53="RUNNING", job57="COMPLETED")
    steps = {}

    def sync(what: str, text: str, *too_old: str, age_s: float = connector.GRACE_S + 5, whole: bool = True) -> None:
        for name in too_old:
            old(tmp_path, name, age_s)
        changed, _ = connector.sync(tmp_path, text, whole=whole)
        found = ", ".join(f"{one.id} {one.state}" for one in scheduled.read_all(tmp_path)[0])
        steps[what] = {"jobs": found, "changed": changed}

    sync("a waiting job has no file", every)
    scheduled.write(tmp_path, job("1300"))  # by the prolog, after the list was taken
    sync("one has ended", short)
    sync("again", short)
    sync("two are missing in a part of the list", short, "54", "1300", whole=False)
    sync("two are missing", short)
    sync("one is there again", every)
    sync("one list is not enough", short, "54")
    sync("another list", short)
    sync("one is forgotten", short, "1300", age_s=connector.FORGET_S + 5)
    with pytest.raises(SlurmError):
        sync("no list", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    sync("after that", short)
    expected(steps)


# ---- the arbiter -----------------------------------------------------------------------------------------------------


def test_ended_jobs_lose_their_nodes_at_once(tmp_path: pathlib.Path) -> None:
    """The lease is long, and the process lives: only Slurm can have said it."""
    lines: list[str] = []
    with Arbiter(tmp_path, Settings(io_nodes=4, policy="size", lease_s=1000), lines.append) as arbiter:
        announce(tmp_path, "a", "11")
        announce(tmp_path, "b", "12")
        announce(tmp_path, "c", "-")
        arbiter.step()
        assert set(arbiter.map.jobs) == {"a", "b", "c"}
        scheduled.write(tmp_path, job("11"))
        scheduled.write(tmp_path, job("12"))
        assert not arbiter.step()
        scheduled.write(tmp_path, job("12", "TIMEOUT"))
        assert arbiter.step() and set(arbiter.map.jobs) == {"a", "c"}
        scheduled.write(tmp_path, job("12", "RUNNING"))  # requeued, and begun again
        assert arbiter.step() and set(arbiter.map.jobs) == {"a", "b", "c"}
        scheduled.write(tmp_path, job("11", "WARM"))
        assert not arbiter.step()
    assert sum("TIMEOUT" in line for line in lines) == 1 and sum("WARM" in line for line in lines) == 1, lines


def test_jobs_are_counted_before_their_first_file(tmp_path: pathlib.Path) -> None:
    curves = {"app": {1: 100.0, 3: 400.0}, "app_x": {1: 10.0, 2: 500.0}}
    settings = Settings(io_nodes=4, policy="mckp", curves=curves, reserve_s=1000)
    with Arbiter(tmp_path, settings, lambda _: None) as arbiter:
        announce(tmp_path, "a", "11")
        arbiter.step()
        assert len(arbiter.map.jobs["a"]) == 3
        scheduled.write(tmp_path, job("12"))
        assert arbiter.step()
        assert len(arbiter.map.jobs["slurm-12"]) == 2 and len(arbiter.map.jobs["a"]) == 1
        announce(tmp_path, "b", "12")
        assert arbiter.step() and set(arbiter.map.jobs) == {"a", "b"}  # its own word counts
        (tmp_path / "jobs" / "b").unlink()
        assert arbiter.step() and set(arbiter.map.jobs) == {"a"}  # once
        scheduled.write(tmp_path, job("12", "COMPLETED"))
        assert not arbiter.step()


def test_without_a_reservation_nobody_is_counted(tmp_path: pathlib.Path) -> None:
    with Arbiter(tmp_path, Settings(io_nodes=4, policy="size"), lambda _: None) as arbiter:
        announce(tmp_path, "a", "11")
        arbiter.step()
        scheduled.write(tmp_path, job("12"))
        assert not arbiter.step() and set(arbiter.map.jobs) == {"a"}


def test_nodes_of_older_libraries(tmp_path: pathlib.Path) -> None:
    with Arbiter(tmp_path, Settings(io_nodes=4, policy="size"), lambda _: None) as arbiter:
        announce(tmp_path, "a", "11", nodes="")
        announce(tmp_path, "b", "12", nodes="")
        arbiter.step()
        assert {name: len(nodes) for name, nodes in arbiter.map.jobs.items()} == {"a": 2, "b": 2}
        scheduled.write(tmp_path, job("11", nodes=3))
        assert arbiter.step()
        assert {name: len(nodes) for name, nodes in arbiter.map.jobs.items()} == {"a": 3, "b": 1}


def test_a_job_of_which_only_the_name_changes_is_written_again(tmp_path: pathlib.Path) -> None:
    text = "JOBID|STATE|NODES|TASKS|NAME\n53|RUNNING|1|2|before\n"
    connector.sync(tmp_path, text)
    assert connector.sync(tmp_path, text) == ([], [])
    changed, _ = connector.sync(tmp_path, text.replace("before", "after"))
    assert changed == ["53: RUNNING"]
    assert [one.name for one in scheduled.read_all(tmp_path)[0]] == ["after"]


def test_a_list_that_lacks_a_job_does_not_end_it(tmp_path: pathlib.Path) -> None:
    """A controller that begins anew lists nobody, and one with PrivateData=jobs hides the jobs of others."""
    nobody = listed()
    settings = Settings(io_nodes=4, policy="size", lease_s=1000, reserve_s=1000)
    with Arbiter(tmp_path, settings, lambda _: None) as arbiter:
        announce(tmp_path, "a", "53")
        connector.sync(tmp_path, listed(job53="RUNNING"))
        arbiter.step()
        assert set(arbiter.map.jobs) == {"a"}
        scheduled.write(tmp_path, job("1400"))  # has not announced itself
        assert arbiter.step() and set(arbiter.map.jobs) == {"a", "slurm-1400"}
        for _ in range(3):
            for name in ("53", "1400"):
                old(tmp_path, name, connector.GRACE_S + 5)
            connector.sync(tmp_path, nobody)
        assert arbiter.step() and set(arbiter.map.jobs) == {"a"}  # it lives; the other one is not expected any more
        connector.sync(tmp_path, listed(job53="TIMEOUT"))
        assert arbiter.step() and not arbiter.map.jobs


# ---- the commands ----------------------------------------------------------------------------------------------------


def fake(path: pathlib.Path, text: str, status: int = 0) -> pathlib.Path:
    """Make a program that prints `text`, and writes its arguments beside itself."""
    text += "\n" if text and not text.endswith("\n") else ""
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {path}.args\ncat <<\'END\'\n{text}END\nexit {status}\n')
    path.chmod(0o755)
    return path


def run(*words: str, path: pathlib.Path | None = None, given: str = "") -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | ({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})
    return subprocess.run(
        [sys.executable, "-m", "mpiio_ext", "delegates", "arbiter", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
        input=given,
    )


def test_watching(tmp_path: pathlib.Path, expected: Expected) -> None:
    folder = tmp_path / "arbiter"
    folder.mkdir()
    (tmp_path / "bin").mkdir()
    squeue = tmp_path / "bin" / "squeue"
    found = {}

    def watch(what: str, *words: str, printed: str = "", status: int = 0, given: str = "") -> None:
        fake(squeue, printed, status)
        where = () if "--dir" in words else ("--dir", str(folder))
        done = run("slurm-watch", *where, *words, path=tmp_path / "bin", given=given)
        jobs = ", ".join(one.id for one in scheduled.read_all(folder)[0])
        found[what] = {
            "status": done.returncode,
            "output": done.stdout,
            "errors": done.stderr.rpartition("Error: ")[2],
            "jobs": jobs,
        }

    watch("a list with a bad line", "--once", printed=listed(job53="RUNNING", job57="COMPLETING") + "bad line\n")
    assert pathlib.Path(f"{squeue}.args").read_text().split() == list(connector.COMMAND[1:])
    watch("an error", "--once", status=1)
    watch("no output, not even the names of columns", "--once")
    watch("a part of a list", "--input", "-", "--part", given=TEXTS["sacct.txt"])
    watch("another command", "--once", "--command", f"{fake(tmp_path / 'jobs', TEXTS['squeue.json'])} -x")
    watch("no such folder", "--dir", str(tmp_path / "nowhere"), "--once")
    expected(found)


def test_the_command_in_help_prints_what_is_understood() -> None:
    """With the first line of columns: the form of the list in ``sacct.txt``."""
    text = " ".join(run("slurm-watch", "--help").stdout.split())
    columns = TEXTS["sacct.txt"].splitlines()[0].replace("|", ",")
    assert f"--parsable2 --format={columns} |" in text and "sacct -a -n" not in text


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(MpiioExtError, match="no-such-squeue: cannot be started"):
        connector.query(["no-such-squeue"])


def test_the_curve_of_a_job_that_is_counted_early() -> None:
    """Its name, as Slurm has it, is where a curve is looked for."""
    settings = Settings(io_nodes=2, curves={"app_x": {1: 10.0}})
    assert settings.curve("app_x") == Curve.of({1: 10.0})
