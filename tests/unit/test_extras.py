"""The core needs cffi, click and pyelftools alone; a command whose extra is missing says what installs it."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

import pytest

from mpiio_ext.analytics.sources.matrices import open_matrices
from mpiio_ext.cli import EXTRAS, manual
from mpiio_ext.common import extras
from mpiio_ext.common.extras import MissingExtraError, install_line
from support.commands import COMMANDS
from support.launch import ROOT, base_environment

#: Lets a child import the standard library, the package, and what the core needs.
ONLY_CORE = """
import importlib.abc, sys
class Core(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top, core = name.partition(".")[0], ("mpiio_ext", "click", "cffi", "_cffi_backend", "elftools", "pycparser")
        if top not in (*sys.stdlib_module_names, *core):
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)
sys.meta_path.insert(0, Core())
"""


@pytest.fixture(scope="module", autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the children of a checkout have the help that an installation keeps."""
    path = tmp_path_factory.mktemp("help") / "help.txt"
    path.write_text(manual.helps(), encoding="utf-8")
    global ONLY_CORE
    ONLY_CORE += f"import pathlib, mpiio_ext.common.commands as c; c.HELPS = pathlib.Path({str(path)!r})\n"


def child(
    words: list[str], code: str = "from mpiio_ext.cli import main; main(prog_name='mpiio-ext')"
) -> subprocess.CompletedProcess[str]:
    script = f"import sys; sys.argv = {['mpiio-ext', *words]!r}\n{ONLY_CORE}\n{code}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=ROOT)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--help"], "Exit status"),
        (["run", "--dry-run", "--", "./app"], "./app"),
        (["trace", "--dry-run", "-o", "trace", "--", "./app"], "./app"),
        (["hints", "cb_nodes"], "cb_nodes"),
        (["layout", "."], "stripe count"),
        (["completion", "bash"], "_mpiio_ext_completion"),
        (["doctor", "--help"], "doctor"),
        (["delegates", "status", "--json", "--interval", "0"], '"delegates"'),
        (["delegates", "wait", "pyproject.toml"], ""),
    ],
)
def test_what_the_core_does(words: list[str], shown: str) -> None:
    done = child(words)
    assert done.returncode == 0 and shown in done.stdout, done.stderr


#: Prints what the core says to each command line of argv[1], JSON.
HELPS = """
import contextlib, io, json, sys
from mpiio_ext.cli import main
found = {}
for line in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        main(line.split(), prog_name="mpiio-ext")
    found[line] = [out.getvalue(), err.getvalue()]
print(json.dumps(found))
"""


def test_the_core_prints_the_help_of_every_command() -> None:
    """What it keeps of those that need an extra, and what they say of themselves with it, is the same."""
    groups = {" ".join(words.split()[:end]) for words in COMMANDS for end in range(len(words.split()))}
    lines = [f"{words} --help".strip() for words in sorted({*COMMANDS, *groups})]
    width = base_environment() | {"COLUMNS": "80"}
    core, whole = (
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code],
                input=json.dumps(lines),
                env=width,
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=120,
                check=True,
            ).stdout
        )
        for code in (ONLY_CORE + HELPS, HELPS)
    )
    assert len(lines) > 60 and [line for line in lines if core[line] != whole[line]] == []
    assert all(out.startswith("Usage: mpiio-ext") and not err for out, err in core.values())


def test_a_process_of_ours_does_without_pandas() -> None:
    """PyArrow imports it where it is installed, which takes longer than what is to be done."""
    code = (
        "import sys, numpy, pyarrow; from mpiio_ext.common.extras import missing_here; missing_here('pandas'); "
        "print(pyarrow.array(numpy.arange(3)).to_pylist(), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[0, 1, 2] False\n"


def test_help_behind_two_dashes_is_of_the_program() -> None:
    done = child(["advise", "--", "true", "--help"])
    assert done.returncode == 2 and install_line("tune") in done.stderr and not done.stdout
    done = child(["bench", "compare", "--rounds", "2", "-h"])
    assert done.returncode == 0 and done.stdout.startswith("Usage: mpiio-ext bench compare [OPTIONS]")


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["bench", "--quick"], "bench"),
        (["bench", "report", "results"], "bench"),
        (["tune", "--", "true"], "tune"),
        (["advise", "--", "true"], "tune"),
        (["pioneer", "show", "pyproject.toml"], "pioneer"),
        (["analyze", "logs", "run.darshan"], "analytics"),
        (["delegates", "arbitrate", "solve", "--jobs", "jobs.csv", "--io-nodes", "4"], "arbitration"),
        (["delegates", "status", "--once"], "delegates"),
        (["locks", "--fs", "gpfs"], "bench"),
        (["partitioning", "--rules"], "bench"),
    ],
)
def test_a_missing_extra_is_one_line(words: list[str], extra: str) -> None:
    done = child(words)
    assert done.returncode == 2 and done.stdout == ""
    line = rf"mpiio-ext: .* needs \w+, which is not installed: {re.escape(install_line(extra))}\n"
    assert re.fullmatch(line, done.stderr), done.stderr


def test_make_build_completes_what_make_bench_has_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    stamps = tmp_path / "a b" / "build" / "mpich" / "stamps"
    stamps.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(stamps.with_name("venv")))
    pip = install_line("analytics")
    (stamps / "editable").touch()
    assert install_line("analytics") == f"make -C '{tmp_path}/a b' MPI=mpich build"
    (stamps / "packages").touch()
    assert install_line("analytics") == pip != ""


def test_the_documents_need_no_test_packages() -> None:
    """``make docs`` behind ``make bench`` updates that environment, and installs nothing for tests and analytics."""
    for target, purpose in (("docs", " bench"), ("build", "")):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
        assert re.findall(r"^scripts/setup \w+(.*)$", done.stdout, re.MULTILINE) == [purpose], done.stdout


def test_the_bench_as_a_module() -> None:
    done = child([], "import runpy; runpy.run_module('mpiio_ext.bench', run_name='__main__')")
    assert done.returncode == 2 and done.stderr.startswith("mpiio-ext: the bench needs ")
    assert done.stderr.endswith(f"{install_line('bench')}\n")


def packages_of() -> dict[str, set[str]]:
    """Return what each extra brings, extras within it resolved: names of packages and of extras."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    lists = dict(re.findall(r"^(\w+) = (\[.*?\])(?: #.*)?$", table, re.MULTILINE | re.DOTALL))

    def brought(extra: str) -> set[str]:
        within = {name for names in re.findall(r"mpiio_ext\[([\w,]+)\]", lists[extra]) for name in names.split(",")}
        own = set(re.findall(r'"([\w.-]+)[<>=\[]', lists[extra])) - {"mpiio_ext"}
        return {extra, *own}.union(*map(brought, within))

    return {extra: brought(extra) for extra in lists}


def test_the_line_names_packages_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package itself is on no index: its name would be found only beside its wheel."""
    for extra, brought in packages_of().items():
        found = extras.packages_of(extra)
        assert {*found} == {name for name in brought if name not in packages_of()} - extras_of_other_pythons()
        monkeypatch.setattr(extras, "_is_installed", lambda name: name != "rich")
        assert ("rich" not in found) or install_line(extra) == "pip install 'rich>=13'"
    monkeypatch.setattr(extras, "_is_installed", lambda _: True)
    assert install_line("doctor") == "pip install 'mpi4py>=4.0'"
    monkeypatch.setattr(extras, "packages_of", lambda _: {})  # a folder of sources that is on PYTHONPATH
    assert install_line("doctor") == "pip install 'mpiio_ext[doctor]'"


def extras_of_other_pythons() -> set[str]:
    return {"tomli"} if sys.version_info >= (3, 11) else set()


def test_no_page_installs_an_extra_without_the_wheel() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    assert len(pages) > 60
    named = [line for line in lines if "pip install 'mpiio_ext[" in line and "--find-links" not in line]
    assert len(named) == 1 and "only if it is installed already" in named[0]


def test_extras_of_commands_are_those_of_the_package() -> None:
    assert set(EXTRAS.values()) <= packages_of().keys()


def test_no_extra_but_its_own_brings_a_serial_h5py() -> None:
    """In an environment with a parallel h5py, or in front of a module's, PyPI's would be in the way."""
    assert {extra for extra, packages in packages_of().items() if "h5py" in packages} == {"hdf5"}


def test_an_hdf5_file_without_h5py_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    line = rf"an HDF5 file needs h5py, .*: {re.escape(install_line('hdf5'))}"
    with pytest.raises(MissingExtraError, match=line), open_matrices(tmp_path / "a.h5", None):
        pass


def test_what_the_tutorial_installs_is_what_its_commands_need() -> None:
    text = (ROOT / "docs/tutorial/first-hour.md").read_text(encoding="utf-8")
    installed = re.search(r'^pip install "\$\(ls mpiio_ext-\*\.whl\)\[([\w,]+)\]"', text, re.MULTILINE)
    assert installed is not None
    brought = set().union(*(packages_of()[extra] for extra in installed[1].split(",")))
    used = set(re.findall(r"\bmpiio-ext ([a-z]+)", text))
    assert {"doctor", "run", "tune", "bench", "hints"} <= used & {words.split()[0] for words in COMMANDS}
    assert {EXTRAS[word] for word in used if word in EXTRAS} <= brought
