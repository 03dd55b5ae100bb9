"""Suites: parameter files, one at a time, and the archive."""

from __future__ import annotations

import datetime
import errno
import fcntl
import json
import os
import re
import subprocess
import sys

import click
import pytest

from mpiio_ext.bench import kernels
from mpiio_ext.bench.execution.afford import scaled
from mpiio_ext.bench.preview import volume_of
from mpiio_ext.bench.suites import files, lock
from mpiio_ext.bench.suites.archive import collect_darshan, folder_of, write_surroundings
from mpiio_ext.bench.work import plan
from mpiio_ext.errors import ArgumentError
from support.bench_options import parse
from support.launch import ROOT

pytestmark = pytest.mark.usefixtures("every_interface_is_there")

MIB = 1 << 20


@pytest.fixture
def suite_file(tmp_path):
    """Write a parameter file and return its path."""

    def write(text: str, name: str = "mine.toml") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


# ---- the project's own suites ----


@pytest.mark.parametrize("name", files.names())
@pytest.mark.parametrize("ranks", [1, 4, 5])
def test_every_suite_can_be_planned(name, ranks):
    options = parse("--suite", name)
    assert options.suite.title
    assert options.suite.source
    work = plan(options, ranks)
    assert work.kernels
    assert not work.absent


def test_tokio_abc_moves_what_the_paper_says():
    """Bytes of a process, on Mira: 64 MiB by IOR, 96 MiB by HACC, 8 Mi particles of 32 bytes by VPIC, 3/4 back."""
    ranks = 3
    items = {
        (item.request.kernel, item.interface.name): item.program
        for item in plan(parse("--suite", "tokio-abc"), ranks).kernels
    }
    volumes = {place: volume_of(kernel, place[1]) for place, kernel in items.items()}
    for place in (("ior_shared", "mpiio"), ("ior_fpp", "posix"), ("ior_fpp", "mpiio")):
        assert volumes[place].written_bytes == volumes[place].read_bytes == ranks * 64 * MIB
        assert volumes[place].files == (ranks if place[0] == "ior_fpp" else 1)
    hacc = volumes["hacc", "mpiio"]
    assert hacc.written_bytes == pytest.approx(ranks * 96 * MIB, rel=0.001)
    assert hacc.files == ranks
    assert volumes["vpic", "hdf5"].written_bytes == ranks * 8 * MIB * 32
    assert volumes["bdcats", "hdf5"].read_bytes == ranks * 8 * MIB * 32 * 3 // 4


def test_one_factor_scales_the_volume():
    full, eighth = (plan(parse("--suite", "tokio-abc", "--scale", scale), 2) for scale in ("1", "0.125"))
    for a, b in zip(full.kernels, eighth.kernels, strict=True):
        once, scaled = (volume_of(item.program, item.interface.name).written_bytes for item in (a, b))
        assert scaled == pytest.approx(once / 8, rel=0.01), a.request.kernel


def test_seeds_has_every_kernel_in_every_interface():
    (options, larger) = parse("--suite", "seeds"), parse("--suite", "seeds", "--preset", "laptop")
    assert {request.kernel: request.interfaces for request in options.kernels} == {
        name: kind.interfaces for name, kind in kernels.KERNELS.items()
    }
    assert {request.preset for request in options.kernels} == {"quick"}
    assert {request.preset for request in larger.kernels} == {"laptop"}
    assert options.patterns == ()


def test_quick_has_the_rows_of_the_table_in_the_readme():
    """What a newcomer measures can be compared with it; the rows are few, so that each is measured often enough."""
    options = parse("--suite", "quick")
    assert [method.name for method in options.methods] == ["native", "auto"]
    assert options.repetitions >= 3 and 0 < options.budget_s <= 60 and options.fit
    titles = [f"{case.title} [{case.interface.title}]" for case in plan(options, 4).cases]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("## What it gains")[2].partition("\n## ")[0]
    named = re.findall(r"^\| (.*\]) \|", table, re.MULTILINE)
    assert [re.sub(r", [\d x]+ \[", " [", title) for title in titles] == named


def test_smaller_cases_have_less_data():
    for case in plan(parse("--suite", "quick"), 4).cases:
        least = scaled(case, 1 / 16, 4)
        assert least.label.partition(",")[0] == case.label.partition(",")[0]
        assert 0 < volume_of(least.program, least.interface.name).written_bytes < case.bytes / 3


# ---- the command line and a suite ----


#: Words of a command line: what is given is stronger than the suite, and a part of it may be chosen.
GIVEN = (
    "--suite quick",
    "--suite quick -m native -r 1 -s 1MiB -i hdf5",
    "--suite quick -k flash,s3d",
    "--suite quick -w btio",
)


def chosen(options) -> dict:
    """Return what the options of a suite and of a command line choose together."""
    return {
        "methods": [method.name for method in options.methods],
        "repetitions": options.repetitions,
        "budget": options.budget_s,
        "bytes of a file": options.sizes.file_bytes,
        "native limit": options.native_limit_s,
        "hints": options.hints,
        "patterns": options.patterns,
        "kernels": [f"{one.kernel}, {one.preset}: {', '.join(one.interfaces)}" for one in options.kernels],
    }


@pytest.mark.parametrize("words", GIVEN)
def test_suites_and_what_is_given(words, expected):
    expected(chosen(parse(*words.split())))


def test_parts_that_a_suite_does_not_have():
    with pytest.raises(click.BadParameter, match="suite tokio-abc has no kernel flash"):
        parse("--suite", "tokio-abc", "-k", "flash")
    with pytest.raises(click.BadParameter, match="without a suite"):
        parse("--suite", "tokio-abc", "-P", "particles=1")


def test_a_suite_of_ones_own(suite_file, expected):
    path = suite_file("""
        title = "Mine"
        about = "what is slow"
        [options]
        workload = ["contiguous", "btio"]
        size = "2MiB"
        native-limit = 1
        hint = ["cb_nodes=2"]
        plot = false
        [[kernels]]
        kernel = "vpic"
        name = "small"
        interfaces = ["mpiio"]
        parameters = { particles = 1000 }
        [[kernels]]
        kernel = "vpic"
        interfaces = ["mpiio"]
        preset = "quick"
        scale = 0.5
    """)
    options = parse("--suite", path, "--scale", "2")
    work = plan(options, 2)
    items = [f"{item.variant}: {item.title}, {item.program.particles} particles" for item in work.kernels]
    suite = {"name": options.suite.name, "title": options.suite.title, "plot": options.plot}
    expected({**suite, **chosen(options), "work": items, "notes": work.notes})
    assert "what is slow" not in plan(parse("--suite", path, "-k", "vpic"), 2).notes


def test_every_public_complaint_is_named():
    """Each row is of a report; the line above the table says which one."""
    work = plan(parse("--suite", "complaints"), 4)
    assert {case.variant for case in work.patterns} == {"contiguous", "interleaved_4096"}
    for name in ("mpich-7645", *(case.name for case in work.kernels)):
        assert [note for note in work.notes if f"({name}): " in note], name


def test_presets_of_a_suite(suite_file):
    path = suite_file("""
        [options]
        preset = "published"
        [[kernels]]
        kernel = "vpic"
        preset = "quick"
        [[kernels]]
        kernel = "bdcats"
    """)
    assert [request.preset for request in parse("--suite", path).kernels] == ["quick", "published"]
    assert [request.preset for request in parse("--suite", path, "--preset", "laptop").kernels] == ["laptop", "laptop"]


ENTRY = '[[kernels]]\nkernel = "vpic"\n'


@pytest.mark.parametrize(
    "text, words",
    [
        ("title = 3", ["/title: 3 is not a text"]),
        ("titel = 'a'", ["/titel: there is no such name", "did you mean 'title'"]),
        ("a = = 3", ["not TOML", "line 1"]),
        ("[options]\nrepeat = 3", ["options", "'repeat'", "did you mean 'repeats'"]),
        ("[options]\nrepeats = 0", ["options.repeats", "0 is not in the range"]),
        ("[options]\nmethod = ['natve']", ["options.method", "did you mean 'native'"]),
        ("[options]\nsize = { a = 1 }", ["/options/size", "one value or a list"]),
        ("[options]\npath = '/tmp'", ["/options/path", "command line"]),
        (
            "titel = 1\nsource = 2020-01-01\noptions = [2020-01-01]",
            ["/titel", "/options: a list of 1 is not an object"],
        ),
        ("options = 3", ["/options: 3 is not an object"]),
        ("kernels = 3", ["/kernels: 3 is not a list"]),
        ("[[kernels]]\nname = 'a'", ['/kernels/0: "kernel" is missing']),
        (ENTRY + "[[kernels]]\nkernel = 'vpix'", ["/kernels/1/kernel: ", "'vpix'", "did you mean 'vpic'"]),
        (ENTRY + "scal = 1", ["/kernels/0/scal: ", "did you mean 'scale'"]),
        (ENTRY + "scale = 0", ["/kernels/0/scale: 0 is not greater than 0"]),
        (ENTRY + "scale = inf", ["/kernels/0/scale: Infinity is not a number"]),
        (ENTRY + "scale = true", ["/kernels/0/scale: true is not a number"]),
        (ENTRY + "preset = 'hug'", ["/kernels/0/preset: unknown name 'hug', "]),
        (ENTRY + "name = 'a/b'", ["/kernels/0/name: 'a/b' is not made of letters"]),
        (ENTRY + "interfaces = 'hdf5'", ['/kernels/0/interfaces: "hdf5" is not a list']),
        (ENTRY + "interfaces = ['hdf4']", ["/kernels/0/interfaces/0: ", "did you mean 'hdf5'"]),
        (ENTRY + "interfaces = ['pnetcdf']", ["/kernels/0/interfaces/0: vpic has hdf5, mpiio only"]),
        (
            ENTRY + "parameters = { particle = 3 }",
            ["/kernels/0/parameters: ", "unknown parameter 'particle'", "particles"],
        ),
        (ENTRY + "parameters = { particles = 1.5 }", ["/kernels/0/parameters: ", "must be a whole number", "1.5"]),
        (ENTRY + "parameters = 3", ["/kernels/0/parameters: 3 is not an object"]),
    ],
)
def test_wrong_parameter_files_are_named_with_the_entry(suite_file, text, words):
    path = suite_file(text)
    with pytest.raises(click.BadParameter) as caught:
        parse("--suite", path)
    message = caught.value.format_message()
    for word in ["--suite", path, *words]:
        assert word in message
    assert "\n" not in message
    assert message.count(path) == 1


def test_parameter_files_that_cannot_be_read(tmp_path, suite_file):
    for path, word in ((str(tmp_path / "none.toml"), "No such file"), (suite_file("", "ü.toml"), "names the suite")):
        with pytest.raises(ArgumentError, match=word):
            files.load(path)
    (tmp_path / "latin.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(ArgumentError, match="not UTF-8"):
        files.load(str(tmp_path / "latin.toml"))


def test_the_same_name_twice_is_an_error(suite_file):
    path = suite_file(2 * (ENTRY + "interfaces = ['mpiio']\n"))
    with pytest.raises(Exception, match="called vpic through mpiio: give one of the entries a name"):
        plan(parse("--suite", path), 2)


# ---- one at a time ----


def test_the_lock_names_its_holder_and_is_given_back(tmp_path):
    with lock.hold(tmp_path, "first"):
        with pytest.raises(lock.LockedError) as caught, lock.hold(tmp_path, "second"):
            pass
        for word in ("one suite at a time", "suite first", f"process {os.getpid()}", str(tmp_path)):
            assert word in str(caught.value)
        assert caught.value.exit_status == 2
    with lock.hold(tmp_path, "third"):
        pass


HOLDER = """
import pathlib, sys, time
from mpiio_ext.bench.suites.lock import hold
with hold(pathlib.Path(sys.argv[1]), "crashed"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_dies_with_its_process(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(lock.LockedError, match=f"suite crashed .* process {process.pid}"), lock.hold(tmp_path, "b"):
            pass
    finally:
        process.kill()
        process.wait(timeout=10)
        process.stdout.close()
    with lock.hold(tmp_path, "b"):
        pass


def test_without_flock_the_file_is_the_lock(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    held = pytest.raises(lock.LockedError, match=r"no flock.*remove .*exclusive")
    with lock.hold(tmp_path, "first"), held, lock.hold(tmp_path, "second"):
        pass
    with pytest.raises(ZeroDivisionError), lock.hold(tmp_path, "third"):
        raise ZeroDivisionError
    with lock.hold(tmp_path, "fourth"):
        pass


def test_other_errors_of_the_lock_are_told(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="Input/output"), lock.hold(tmp_path, "first"):
        pass


# ---- the archive ----


def test_runs_are_kept_by_date(tmp_path):
    now = datetime.datetime(2026, 3, 4, 5, 6, 7).astimezone()
    found = [folder_of(tmp_path, "quick", now).relative_to(tmp_path) for _ in range(3)]
    assert [str(path) for path in found] == [
        "quick/2026-03-04/05-06-07",
        "quick/2026-03-04/05-06-07-2",
        "quick/2026-03-04/05-06-07-3",
    ]


def test_surroundings_without_secrets(tmp_path, monkeypatch):
    for name, value in {
        "SLURM_JOB_ID": "77",
        "SLURM_JWT": "abc",
        "LOADEDMODULES": "gcc/12:hdf5/1.14",
        "HOME": "/me",
        "PBS_API_KEY": "def",
    }.items():
        monkeypatch.setenv(name, value)
    suite = files.load("quick")
    paths = write_surroundings(tmp_path, suite, {"ranks": 4})
    assert [path.name for path in paths] == ["quick.toml", "environment.json"]
    assert paths[0].read_text() == suite.text
    document = json.loads(paths[1].read_text())
    assert document["modules"] == ["gcc/12", "hdf5/1.14"]
    assert document["environment"] == {"ranks": 4}
    assert document["job"]["SLURM_JOB_ID"] == "77"
    assert "abc" not in paths[1].read_text()
    assert "def" not in document["job"].values()


def test_darshan_logs_of_this_job_are_kept(tmp_path, monkeypatch):
    logs, target = tmp_path / "logs", tmp_path / "results"
    target.mkdir()
    started = datetime.datetime.now().astimezone() - datetime.timedelta(seconds=5)
    day = logs / str(started.year) / str(started.month) / str(started.day)
    day.mkdir(parents=True)
    for name in (
        logs / "me_python_id77-12_3-4-5_6.darshan",
        logs / "me_python_id78-12_3-4-5_6.darshan",
        day / "me_python_id77-13_3-4-5_6.darshan",
        logs / "other.txt",
        logs / "odd.darshan",
    ):
        name.write_bytes(b"log")
    old = logs / "me_python_id77-1_3-4-5_6.darshan"
    old.write_bytes(b"log")
    os.utime(old, (0, 0))
    monkeypatch.delenv("DARSHAN_LOGFILE", raising=False)
    monkeypatch.setenv("DARSHAN_LOGPATH", str(logs))
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    found = collect_darshan(target, started)
    assert sorted(path.name for path in found) == [
        "me_python_id77-12_3-4-5_6.darshan",
        "me_python_id77-13_3-4-5_6.darshan",
    ]
    assert all(path.parent == target / "darshan" for path in found)
    monkeypatch.setenv("DARSHAN_LOGFILE", str(logs / "odd.darshan"))
    assert [path.name for path in collect_darshan(target, started)] == ["odd.darshan"]


def test_without_darshan_there_is_nothing_to_keep(tmp_path, monkeypatch):
    for name in ("DARSHAN_LOGFILE", "DARSHAN_LOGPATH"):
        monkeypatch.delenv(name, raising=False)
    assert collect_darshan(tmp_path, datetime.datetime.now().astimezone()) == []
    assert list(tmp_path.iterdir()) == []
