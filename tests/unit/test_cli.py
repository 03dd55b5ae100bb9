"""The command mpiio-ext: what it would execute, what it refuses, what it lists. Launches are in tests/mpi."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

import mpiio_ext
from mpiio_ext import hints, launchers
from mpiio_ext.cli import main
from mpiio_ext.cli.logged import DarshanLog, Recording
from mpiio_ext.common.programs import path_of
from mpiio_ext.errors import FileSystemError, MpiioExtError
from mpiio_ext.launchers import TRACER, launcher_family, plan
from support import cbuild
from support.expected import Expected

LIBRARY = "/lib/libmpiio_ext.so"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    ranks = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
    for name in [name for name in os.environ if name.startswith("MPIOX_") or name in ("LD_PRELOAD", *ranks)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MPIOX_SITE_FILE", str(tmp_path / "site"))
    (tmp_path / "site").write_text("", encoding="utf-8")


def dry(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["run", "--dry-run", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_patterns_reach_the_tracer_of_a_page(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside that for the recorder's own folder."""
    monkeypatch.setenv("MPIOX_TRACE_SKIP", "*.tmp")
    words = ["--report", str(tmp_path / "io.html"), "--only", "*.dat", "--skip", "/x", "--skip", "b.dat", "./app"]
    folder = rf"{re.escape(str(tmp_path))}/\.io\.html\.[0-9a-f]{{16}}\.run/\*"
    assert re.search(rf"'MPIOX_TRACE_ONLY=\*\.dat' 'MPIOX_TRACE_SKIP=/x\n\*/b\.dat\n{folder}'", dry(*words))


def test_the_folder_of_a_page_is_not_made_for_no_program(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank that a launcher kills since another has failed could not remove it."""
    monkeypatch.setattr(Recording, "prepare", lambda _: pytest.fail("a folder"))
    result = CliRunner().invoke(main, ["run", "--report", str(tmp_path / "io.html"), "--", str(tmp_path / "none")])
    assert result.exit_code == 127 and "cannot execute" in result.output, result.output


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["run", *arguments])
    assert result.exit_code == 2
    return result.output


def test_report_is_of_a_run(tmp_path: pathlib.Path) -> None:
    """Other folders and files are refused with the reason."""
    (tmp_path / ".io.html.0.run").mkdir()
    (tmp_path / ".io.html.0.run" / "0.mpioxtrace").write_bytes(b"cut")
    done = CliRunner().invoke(main, ["report", str(tmp_path / ".io.html.0.run"), "-o", str(tmp_path / "io.html")])
    assert "No call was recorded" in done.output
    assert "RUNDIR" in CliRunner().invoke(main, ["report", "--help"]).output
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no recording")
    for name, why in (("empty", "a folder without recordings of a run"), ("text", "Darshan log")):
        done = CliRunner().invoke(main, ["report", str(tmp_path / name), "-o", str(tmp_path / "no.html")])
        assert done.exit_code == 2 and why in done.output, done.output
        with pytest.raises(MpiioExtError, match=why):
            mpiio_ext.run_report(tmp_path / name)
    assert not (tmp_path / "no.html").exists()
    mistyped = CliRunner().invoke(main, ["report", str(tmp_path / "nothing")])
    assert mistyped.exit_code == 2 and "cannot be read" in mistyped.output and "bench" not in mistyped.output


def test_program_of_another_c_library(tmp_path: pathlib.Path) -> None:
    """One line, before it is started, in place of one for every function that it lacks; behind a launcher, too."""
    (tmp_path / "app.c").write_text("int main(void) { return 0; }", encoding="utf-8")
    app, musl = str(tmp_path / "app"), tmp_path / "libc.musl-x86_64.so.1"
    build = [cbuild.compiler(), f"{app}.c", "-o"]
    subprocess.run([*build, musl, "-shared", "-fPIC", f"-Wl,-soname,{musl.name}"], check=True, timeout=120)
    needs = ["-Wl,--no-as-needed", musl, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]
    subprocess.run([*build, app, *needs], check=True, timeout=120)
    musl.unlink()
    for words in ([app], ["mpirun", "-n", "2", "env", "A=1", app]):
        said = refused("--", *words)
        assert f"{app} is built with the C library musl (/lib/ld-musl-x86_64.so.1)" in said, said
        assert "build the program with glibc" in " ".join(said.split())


# ---- launchers -------------------------------------------------------------------------------------------------------


#: Commands, with the family of the MPI library and the environment. Libraries that users preload stay: if a launcher
#: gets a variable twice, one of the two values counts.
LAUNCHES: dict[str, tuple[list[str], str, dict[str, str]]] = {
    "a program": (["./app", "-x"], "openmpi", {"LD_PRELOAD": "/lib/other.so", "HOME": "/"}),
    "preloaded already": (["./app"], "openmpi", {"LD_PRELOAD": f"/lib/other.so {LIBRARY}"}),
    "Open MPI": (["orterun", "-n", "2", "./app"], "openmpi", {"MPIOX_SITE_FILE": "/s"}),
    "two programs": (["orterun", "-n", "1", "a", ":", "-n", "1", "b"], "openmpi", {}),
    "a list of variables": (["orterun", "./app"], "openmpi", {"OMPI_MCA_mca_base_env_list": "A=1"}),
    # rank 0 of a file reads hints of other libraries, on whichever host it is; what the user hands on himself stays
    "hints of other libraries": (
        ["orterun", "-x", "ROMIO_HINTS=/mine", "./app"],
        "openmpi",
        dict.fromkeys(launchers.FORWARDED, "x") | {"HOME": "/"},
    ),
    "hints in a list of variables": (
        ["orterun", "./app"],
        "openmpi",
        {"ROMIO_HINTS": "/r", "OMPI_MCA_mca_base_env_list": "A"},
    ),
    "libraries of two programs": (
        ["orterun", "-x", "LD_PRELOAD=/lib/a.so:/lib/b.so", "-n", "1", "a", ":", "-x", "LD_PRELOAD", "-n", "1", "b"],
        "openmpi",
        {"LD_PRELOAD": "/lib/other.so"},
    ),
    **{
        f"a library of Hydra, {option}": (
            ["mpiexec.hydra", option, "LD_PRELOAD", "/d.so", "-n", "2", "./app"],
            "mpich",
            {},
        )
        for option in ("-genv", "-env")
    },
    "Hydra": (["mpiexec.hydra", "./app"], "mpich", {}),
    "Slurm": (["srun", "-n", "2", "./app"], "openmpi", {}),
    # to srun (22.05) a variable of its environment is stronger than the value that --export=ALL,NAME=VALUE gives
    "another library under Slurm": (["srun", "./app"], "openmpi", {"LD_PRELOAD": "/lib/other.so"}),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches(name: str, expected: Expected) -> None:
    command, family, environment = LAUNCHES[name]
    settings = {"MPIOX_HINTS": "*:cb_nodes=1"}
    found = plan(command, library=LIBRARY, settings=settings, family=family, environment=environment)
    expected({"arguments": shlex.join(found.arguments), "environment": dict(sorted(found.environment.items()))})


#: Hints in a variable, or in the file that one names; whether calls past MPI have to wait, or to look into a file.
LOOKS_PAST = [
    ("MPIOX_HINTS", "*.h5:cb_nodes=1:mpiox_close=staged", True),
    ("MPIOX_HINTS", "*.tmp:MPIOX_CLOSE=Staged,*:mpiox_close=written", True),
    ("MPIOX_HINTS", '*:mpiox_close="staged"', True),
    ("MPIOX_HINTS", "*:mpiox_subfiles=0", True),
    ("MPIOX_HINTS", "*:mpiox_close=written:mpiox_subfile_unit=1m", False),
    ("MPICH_MPIIO_HINTS", "*:mpiox_close=staged", True),
    ("MPICH_MPIIO_HINTS", "*:mpiox_close=#staged#", True),
    ("PNETCDF_HINTS", "nc_header_align_size=1;mpiox_subfiles=2", True),
    ("MPIOX_HINTS_FILE", "[*.h5]\nmpiox_close = staged\n", True),
    ("MPIOX_HINTS_FILE", "[*.h5]\nmpiox_close = written\n", False),
    ("MPIOX_SITE_FILE", "[*]\nmpiox_close = staged\n", True),
    ("ROMIO_HINTS", "mpiox_close staged\n", True),
]


@pytest.mark.parametrize(("name", "text", "looks"), LOOKS_PAST)
def test_calls_past_mpi_wait_where_a_hint_asks_for_it(
    tmp_path: pathlib.Path, name: str, text: str, looks: bool
) -> None:
    """A second library stands beside the first, behind the tracer, and before what the user preloads."""
    (tmp_path / "hints").write_text(text, encoding="utf-8")
    value = text if name.endswith("_HINTS") and name != "ROMIO_HINTS" else str(tmp_path / "hints")
    environment = {"MPIOX_SITE_FILE": "/nowhere", "LD_PRELOAD": "/lib/tool.so", name: value}
    found = plan(["./app"], library=f"/t/{TRACER}:{LIBRARY}", settings={}, family="openmpi", environment=environment)
    both = [LIBRARY, "/lib/libmpiio_ext_posix.so"] if looks else [LIBRARY]
    assert found.environment["LD_PRELOAD"].split(":") == [f"/t/{TRACER}", *both, "/lib/tool.so"]
    alone = plan(["./app"], library=f"/t/{TRACER}", settings={}, family="openmpi", environment=environment)
    assert alone.environment["LD_PRELOAD"] == f"/t/{TRACER}:/lib/tool.so"


@pytest.mark.parametrize(
    ("program", "default", "expected"),
    [
        ("/opt/mpi/bin/orterun", "mpich", "openmpi"),
        ("mpirun.openmpi", "mpich", "openmpi"),
        ("prterun", "mpich", "openmpi"),
        ("mpiexec.hydra", "openmpi", "hydra"),
        ("/nowhere/mpirun", "mpich", "hydra"),
        ("/nowhere/mpiexec", "openmpi", "openmpi"),
        ("./app", "openmpi", None),
        ("srun", "openmpi", "slurm"),
    ],
)
def test_kinds_of_launchers(program: str, default: str, expected: str | None) -> None:
    assert launcher_family(program, default) == expected


def test_kind_of_a_launcher_by_its_folder(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "mpirun"
    for name, default, expected in (
        ("mpirun", "openmpi", "openmpi"),
        ("mpiexec.hydra", "openmpi", "hydra"),
        ("prterun", "mpich", "hydra"),  # both
        ("orterun", "mpich", "hydra"),
    ):
        (tmp_path / name).touch(0o755)
        assert launcher_family(str(program), default) == expected
    (tmp_path / "mpiexec.hydra").unlink()
    assert launcher_family(str(program), "mpich") == "openmpi"
    (tmp_path / "prterun").unlink()
    assert launcher_family(str(program), "mpich") == "openmpi"  # of Open MPI 4


# ---- run ------------------------------------------------------------------------------------------------------------


#: Commands, and variables of their environment.
COMMANDS: dict[str, tuple[list[str], dict[str, str]]] = {
    "hints become rules": (
        ["run", "--dry-run", "-H", "cb_nodes=4", "-H", "*.h5:cb_config_list=*:*", "--", "./app", "--stats"],
        {},
    ),
    "hints beside the environment's": (
        ["run", "--dry-run", "-H", "cb_nodes=2", "./app"],
        {"MPIOX_HINTS": "cb_nodes=1"},
    ),
    **{
        f"statistics: {' '.join(words)}": (["run", "--dry-run", *words], {})
        for words in (
            ["--stats", "./app"],
            ["--stats=s.jsonl", "--", "./app"],
            ["--stats", "--", "full"],
            ["--stats", "env", "--", "./app"],
        )
    },
    "a variable that does not exist": (["run", "--dry-run", "./app"], {"MPIOX_STAT": "1"}),
    "a variable that does not exist, rank 2": (["run", "--dry-run", "./app"], {"MPIOX_STAT": "1", "PMI_RANK": "2"}),
    "every access is part of a log": (["run", "--darshan-dxt", "--", "./app"], {}),
    # what starts later is not recorded
    **{
        f"{' '.join(options)} {' '.join(words)}": ([*options, "--", *words], {})
        for options in (["run", "--darshan", "x.darshan"], ["trace", "-o", "x"])
        for words in (["sbatch", "job.sh"], ["/usr/bin/flux", "submit", "./app"])
    },
    "hints by name": (["hints", "cb_nodes", "striping_unit", "--json"], {}),
    "a hint that does not exist": (["hints", "cb_nods"], {}),
    "hints that somebody has set": (["hints", "--changed", "--json"], {"MPIOX_HINTS": "cb_nodes=3"}),
    "hints of a path": (["hints", "--path", "a.h5", "--changed", "--json"], {"MPIOX_HINTS": "*.h5:cb_nodes=4"}),
    # also in groups of groups, each of which sees the error
    **{
        f"misspelt: {' '.join(words)}": (words, {})
        for words in (["rnu"], ["delegates", "sttus"], ["analyze", "querry"], ["delegates", "arbiter", "slurm-wach"])
    },
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, expected: Expected) -> None:
    words, variables = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, words, env=variables)
    usage, _, error = done.output.partition("\nError: ")
    expected({"status": done.exit_code, "output": error or usage}, hide={r"LD_PRELOAD=\S+": "LD_PRELOAD=LIBRARY"})


REFUSED = (
    ("-H", "cb_nods=4", "./app"),
    ("-H", "*.h5:cb_nodes=four", "./app"),
    ("-H", "cb_nodes", "./app"),
    ("-H", "cb_nodes=4"),
    ("--stats=/missing/file", "--", "./app"),
    *((f"--stats={word}", "--", "./app") for word in ("josn", "line=2", "Full", "ful", "JSON", "lines")),
    ("--stats", "full"),
    ("--stats", "json", "./app"),
    ("--stats", "line", "--", "./app"),
    ("--stats", "s.jsonl", "--", "./app"),
    *((option, "--dry-run", "--", "./app") for option in ("--report", "--timeline", "--darshan")),  # without a name
    ("--hints-file", "hints", "./app"),
    ("--hints-file", "none", "./app"),
)


def test_refuses_what_does_not_exist(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, expected: Expected
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hints").write_text("cb_nods = 4\n", encoding="utf-8")
    expected({" ".join(words): " ".join(refused(*words).partition("Error: ")[2].split()) for words in REFUSED})
    for name in ("./Full", "file", "full.jsonl", "stats"):
        assert f"MPIOX_STATS_FILE={pathlib.Path(name).absolute()}" in dry(f"--stats={name}", "--", "./app")


def test_one_rank_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a launcher every rank runs the command; it is not said once for each."""
    monkeypatch.setattr(launchers, "_SPEAKING_S", 0.0)
    for rank, said in ((0, True), (2, False)):
        monkeypatch.setenv("PMI_RANK", str(rank))
        result = CliRunner().invoke(main, ["run", "-H", "cb_nods=4", "--", "./app"])
        assert result.exit_code == 2
        assert ("did you mean cb_nodes?" in result.output) == said


def test_program_that_does_not_exist() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mpiio_ext", "run", "--", "./no-such-program"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 127
    assert done.stderr == "mpiio-ext: cannot execute ./no-such-program: No such file or directory\n"


def test_a_program_gets_its_signals_as_without_the_command() -> None:
    """Python ignores some: a program at its limit of a file's size is to be ended, or reads what it has not written."""
    command = [sys.executable, "-m", "mpiio_ext", "run", "--", "grep", "SigIgn", "/proc/self/status"]
    plain = subprocess.run(command[5:], capture_output=True, text=True, timeout=60, check=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == plain.stdout, done.stderr


def test_run_imports_little() -> None:
    """Every rank of `mpirun mpiio-ext run` pays for what the command imports."""
    program = (
        "import sys\nfrom mpiio_ext.cli import main\n"
        "main(['run', '-H', 'cb_nodes=4', '--dry-run', 'true'], standalone_mode=False)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    heavy = {"numpy", "mpi4py", "mpi4py.MPI", "rich", "pyarrow", "matplotlib", "elftools", "mpiio_ext.cli.logged"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize("hints", [[], ["-H", "cb_nodes=4"]], ids=["plain", "hint"])
def test_what_a_rank_imports_before_its_program(hints: list[str]) -> None:
    """Neither the command line nor what it imports; each module of ours is here by its name."""
    command = [sys.executable, "-X", "importtime", "-m", "mpiio_ext", "run", *hints, "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    names = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    ours = {name for name in names if name.partition(".")[0] == "mpiio_ext"}
    needed = {"", "._load", ".abi", ".common", ".common.programs", ".elf", ".environment", ".errors", ".launchers"}
    needed |= {".loadable", ".started", "._binding"}
    if not hints:
        assert ours == {f"mpiio_ext{name}" for name in needed}
        assert not {"dataclasses", "difflib", "inspect"} & names
    assert not {"click", "mpiio_ext.cli", "platform", "shutil", "subprocess", "tempfile", "threading", "uuid"} & names


@pytest.mark.parametrize("words", [["-H", "cb_nodes=4", "--hint", "*.h5:cb_nodes=2", "--"], ["--"], []])
def test_a_program_gets_the_same_with_and_without_the_command_line(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--hints-file` and the like need the command line; what it prints for `--dry-run` is what ranks get."""
    monkeypatch.setenv("MPIOX_HINTS", "cb_nodes=1")
    command = [sys.executable, "-m", "mpiio_ext", "run", *words, "env"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found = {line for line in done.stdout.splitlines() if line.startswith(("MPIOX_", "LD_PRELOAD="))}
    assert found == set(shlex.split(dry(*words, "env"))[1:-1])


@pytest.mark.parametrize("program", ["sh", "/bin/sh", "own", "./own", "no-such", "folder", "plain", ""])
def test_where_a_program_is(program: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    for name, mode in (("own", 0o755), ("plain", 0o644)):
        (tmp_path / name).touch(mode)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert path_of(program) == shutil.which(program)


def test_only_a_log_brings_the_tracer(tmp_path: pathlib.Path) -> None:
    """Without --darshan the tracer is not loaded, and nothing else is set than before."""
    plain = dry("./app").split()
    assert not [word for word in plain if "_trace.so" in word or "MPIOX_TRACE" in word]
    words = dry("--darshan", str(tmp_path / "log"), "./app").split()
    more = [word.partition("=") for word in words if word not in plain]
    assert [name for name, _, _ in more] == [
        "LD_PRELOAD",
        "MPIOX_RECORDING_BYTES",
        "MPIOX_RECORDING_NODE_BYTES",
        "MPIOX_TRACE_DIR",
        "MPIOX_TRACE_MODE",
    ]
    assert more[0][2].split(":")[0].endswith("/libmpiio_ext_trace.so")
    assert not list(tmp_path.glob(".*"))


def test_a_trace_of_nothing_leaves_no_folder(tmp_path: pathlib.Path) -> None:
    def traced(folder: pathlib.Path) -> Result:
        return CliRunner().invoke(main, ["trace", "-o", str(folder), "--", "no-such-program"])

    place = tmp_path / "place"
    (place / "there").mkdir(parents=True)
    (place / "file").touch()
    for folder in (place / "new" / "deep", place / "there", place / "there" / "new"):
        assert traced(folder).exit_code == 127
        assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN, "this process goes on with signals of the program"
    assert sorted(path.name for path in place.rglob("*")) == ["file", "there"]
    done = traced(place / "file")
    assert done.exit_code == 2 and "file cannot be made: it is a file; name a folder" in " ".join(done.output.split())


def test_a_link_in_the_place_of_the_traces_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names in a folder of many users can be guessed: nothing that a link leads to is touched."""
    monkeypatch.setenv("PMIX_RANK", "0")
    log = Recording.of([DarshanLog(target=tmp_path / "log", dxt=False)])
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "old.mpioxtrace").touch()
    os.utime(kept / "old.mpioxtrace", (0, 0))
    log.folder.symlink_to(kept)
    with pytest.raises(FileSystemError, match="no folder of yours"):
        log.prepare()
    log.folder.unlink()
    kept.rename(log.folder)
    (log.folder / "new.mpioxtrace").touch()
    log.prepare()
    assert [path.name for path in log.folder.iterdir()] == ["new.mpioxtrace"]  # not what a killed run has left


# ---- hints ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "wide"), [("80", False), ("109", False), ("110", True), (None, True)])
def test_hints_can_be_searched(columns: str | None, *, wide: bool) -> None:
    """No name is broken, in a terminal of 80 columns nor in a pipe."""
    environment = {"COLUMNS": columns, "MPIOX_HINTS": "*:cb_nodes=4"}
    output = CliRunner().invoke(main, ["hints"], env=environment).output
    for item in hints.registry():
        assert f" {item.name} " in output
    (line,) = [line for line in output.splitlines() if " cb_nodes " in line]
    cells = [cell.strip() for cell in line.strip("│┃").split("│")]
    assert cells[:5] == ["cb_nodes", "integer", "4", "MPIOX_HINTS", "0"] if wide else cells[1:3] == ["4", "MPIOX_HINTS"]
    if columns is None:
        assert cells[-1] == "number of aggregators; 0 lets the library choose"


def test_no_hint_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiio_ext.hints.in_force", lambda path: [])
    result = CliRunner().invoke(main, ["hints", "--changed"])
    assert result.output.startswith("no hint is set")


def test_all_hints_as_json() -> None:
    """Also those that have their defaults."""
    rows = json.loads(CliRunner().invoke(main, ["hints", "--path", "F", "--json"]).output)["hints"]
    assert [row["name"] for row in rows] == [spec.name for spec in hints.registry()]
    assert {row["source"] for row in rows if row["name"] == "mpiox_enable"} == {"default"}


def test_hints_table_and_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIOX_HINTS", "*:cb_nods=4")
    result = CliRunner().invoke(main, ["hints"], env={"COLUMNS": "200"})
    assert result.exit_code == 1
    assert "did you mean cb_nodes?" in result.output
    for name in ("mpiox_partition", "cb_nodes", "striping_unit"):
        assert name in result.output
