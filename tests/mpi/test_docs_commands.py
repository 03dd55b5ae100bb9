"""Every command of the tutorial, the how-to pages, the explanations and the README runs, and prints what the page says.

The commands of a page run one after the other in one shell, in an empty folder that has ``./app``, the program of the
tutorial with fewer rows. Those marked slow, and the build of the site, run with --run-slow.
``tests/unit/test_docs.py`` checks blocks without running them. Marks: :mod:`support.documents`.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator

import pytest

from mpiio_ext.common import guide
from support import documents
from support.documents import ROOT, Block
from support.launch import LaunchError, base_environment, run_bounded

pytestmark = pytest.mark.mpi

DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial" / "first-hour.md"
#: Pages that every run of the tests goes through, and those that --run-slow adds.
HOW_TO = (
    "hdf5",
    "python-loaders",
    "fortran",
    "hints",
    "delegates",
    "lustre",
    "slurm",
    "cray",
    "darshan",
    "read-a-run",
    "subfiles",
    "timeline",
    "watch",
)
QUICK = (TUTORIAL, *(DOCS / "howto" / f"{name}.md" for name in HOW_TO))
SLOW_HOW_TO = (
    "arbitrate",
    "ask-a-store",
    "check",
    "checkpoint",
    "find-hints",
    "install",
    "measure",
    "program-or-system",
    "read-a-report",
    "synthesize",
    "trace",
    "why-was-my-job-slow",
)
SLOW_EXPLANATIONS = ("cached-collectives", "file-domains", "interposition", "locks", "metrics")
SLOW = (
    ROOT / "README.md",
    *(DOCS / "howto" / f"{name}.md" for name in SLOW_HOW_TO),
    *(DOCS / "explanation" / f"{name}.md" for name in SLOW_EXPLANATIONS),
    *(DOCS / "reference" / f"{name}.md" for name in ("c-api", "delegates", "figures", "sources", "trace-formats")),
)
#: What a command may print to tell that one begins; no page prints it.
MARK = "@@@ block at line"


def environment() -> dict[str, str]:
    """Return what a reader's shell has: the commands of this environment first on PATH."""
    found = base_environment()
    return found | {"PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{found['PATH']}", "COLUMNS": "200"}


@pytest.fixture
def folder(extension: str) -> Iterator[pathlib.Path]:
    """An empty folder, in memory where there is room: the commands write a few hundred MB."""
    memory = pathlib.Path("/dev/shm")
    room = memory.is_dir() and shutil.disk_usage(memory).free > 2 << 30
    with tempfile.TemporaryDirectory(prefix="mpiox-docs-", dir=memory if room else None) as name:
        yield pathlib.Path(name)


def script_of(found: list[Block], slow: bool, install: bool) -> Iterator[str]:
    """Yield the lines of the shell script that runs the blocks of a page.

    install : also those that are not run, since they install something.
    """
    yield "set -eo pipefail"
    for block in found:
        run = block.is_run_here or (install and block.is_command and block.mark == "not run")
        if not run or (block.is_slow and not slow):
            continue
        yield f"echo '{MARK} {block.line}'"
        if block.language == "python":
            yield f"python - <<'EOF_PAGE'\n{block.text}EOF_PAGE"
        elif block.may_judge:
            # Not by standard input, which a launcher of MPI programs would read.
            yield f"status=0; bash -eo pipefail -c {shlex.quote(block.text)} || status=$?; [ $status -le 1 ]"
        else:
            yield block.text.rstrip("\n")


def outputs(text: str) -> dict[int, str]:
    """Return what each block printed, by its line, without the variables that a test adds."""
    text = re.sub(r"\bMPIOX_TEST\w*=\w+ ", "", text)
    parts = re.split(rf"^{MARK} (\d+)\n", text, flags=re.MULTILINE)
    return dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))


def run_page(
    page: pathlib.Path, folder: pathlib.Path, *, slow: bool, shell: dict[str, str] | None = None
) -> dict[int, str]:
    """Run the blocks of a page; return what each printed, by its line.

    shell : the environment of a reader who has nothing installed, and installs what the page says.
    """
    program = next(block for block in documents.blocks(TUTORIAL) if block.argument == "columns.c")
    assert "ROWS = 262144" in program.text
    (folder / "app.c").write_text(program.text.replace("ROWS = 262144", "ROWS = 16384"), encoding="utf-8")
    subprocess.run(["mpicc", "-O2", "app.c", "-o", "app"], cwd=folder, env=environment(), check=True)
    found = list(documents.blocks(page))
    for block in found:
        if block.mark == "file":
            (folder / block.argument).write_text(block.text, encoding="utf-8")
    script = folder / "page.sh"
    script.write_text("\n".join(script_of(found, slow, shell is not None)) + "\n", encoding="utf-8")
    command = ["bash", "-c", f"exec bash {script.name} 2>&1"]
    limit_s = 900 if shell is not None else 600 if slow else 60
    done = run_bounded(command, env=shell or environment(), timeout_s=limit_s, cwd=folder, check=False)
    if done.returncode != 0:
        last = [line for line in done.stdout.splitlines() if line.startswith(MARK)][-1:]
        raise LaunchError(f"{page.relative_to(ROOT)}: {last}\n{done.describe()}")
    return outputs(done.stdout)


def compare(page: pathlib.Path, printed: dict[int, str]) -> int:
    """Compare what was printed with what the page says; return how many blocks of output the page has."""
    before, compared = "", 0
    for block in documents.blocks(page):
        if block.mark == "output" and before:
            assert documents.matches(block.text, before), (
                f"{page.relative_to(ROOT)}:{block.line}: the page says\n{block.text}\nthe command printed\n{before}"
            )
            compared += 1
        elif block.is_command:
            before = printed.get(block.line, "")
    return compared


@pytest.mark.slow_with("hdf5", "timeline")
@pytest.mark.parametrize("page", QUICK, ids=lambda page: page.stem)
def test_commands_of_a_page(page: pathlib.Path, folder: pathlib.Path) -> None:
    printed = run_page(page, folder, slow=False)
    assert printed
    compare(page, printed)


@pytest.mark.slow
@pytest.mark.parametrize("page", [*QUICK, *SLOW], ids=lambda page: page.stem)
def test_all_commands_of_a_page(page: pathlib.Path, folder: pathlib.Path) -> None:
    printed = run_page(page, folder, slow=True)
    assert printed
    compare(page, printed)
    if page.name == "find-hints.md":
        assert any("traced: " in text for text in printed.values())
    if page.name == "file-domains.md":
        for drawing in folder.glob("*.svg"):
            same_drawing(drawing, DOCS / "images" / "methods" / drawing.name)


@pytest.mark.slow
def test_the_tutorial_runs_from_the_wheel(folder: pathlib.Path, family: str) -> None:
    """A shell that has an MPI, a compiler and Python installs the wheel as the page says, and runs all of the page."""
    if family != "openmpi":
        pytest.skip("the MPI of the tutorial is the machine's: `make test-mpis` tries the others")
    command = [str(ROOT / "scripts" / "wheel")]
    built = run_bounded(command, env=base_environment(), timeout_s=1800, cwd=ROOT, check=False)
    if built.returncode != 0 and "pip" in built.stderr:
        pytest.skip(f"no package index can be reached: {built.stderr[-300:]}")
    assert built.returncode == 0, built.describe()
    for wheel in (ROOT / "build" / "wheel" / "dist").glob("*.whl"):
        shutil.copy(wheel, folder)
        assert {f"mpiio_ext/docs/{page}.md" for page in guide.titles()} <= set(zipfile.ZipFile(wheel).namelist())
    shell = base_environment() | {"HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin", "COLUMNS": "200"}
    shell.setdefault("PIP_CONFIG_FILE", str(pathlib.Path.home() / ".config" / "pip" / "pip.conf"))
    compare(TUTORIAL, run_page(TUTORIAL, folder, slow=True, shell=shell))


def same_drawing(drawn: pathlib.Path, kept: pathlib.Path) -> None:
    """Compare the words and numbers of two drawings: the paths between them depend on the release of Matplotlib."""
    words = [re.findall(r">([^<>\n]+)</text>", path.read_text(encoding="utf-8")) for path in (drawn, kept)]
    assert words[0] and words[0] == words[1], f"{kept.relative_to(ROOT)} is out of date: draw it again"


def compiled(line: documents.CompileLine, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Call a compiler as a document says, in a folder that has what its reader has, and the program of the tutorial."""
    for place in (*ROOT.iterdir(), *line.page.parent.iterdir()):
        if place.name not in ("build", ".git") and not (folder / place.name).exists():
            (folder / place.name).symlink_to(place)
    pages = {TUTORIAL, *([line.page] if line.page.suffix == ".md" else [])}
    for block in (block for page in pages for block in documents.blocks(page) if block.mark == "file"):
        (folder / block.argument).unlink(missing_ok=True)  # never through a link into the sources
        (folder / block.argument).write_text(block.text, encoding="utf-8")
        (folder / "app.c").write_text(block.text, encoding="utf-8") if block.argument == "columns.c" else None
    script = f"set -e\n{line.before}\n{line.command}\n"
    return run_bounded(["bash", "-c", script], env=environment(), timeout_s=120, cwd=folder, check=False)


@pytest.mark.parametrize(
    "line", list(documents.compile_lines()), ids=lambda line: f"{line.page.relative_to(ROOT)}:{line.line}"
)
def test_every_compile_line_of_the_documents_compiles(line: documents.CompileLine, folder: pathlib.Path) -> None:
    compiler = line.command.split()[0]
    if compiler.startswith("clang") and shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on this machine")
    done = compiled(line, folder)
    assert done.returncode == 0, f"{line.page.relative_to(ROOT)}:{line.line}: {line.command}\n{done.describe()}"
    target = re.search(r" -o (\S+)", line.command)
    assert target is not None and (folder / target[1]).stat().st_size > 0


def test_no_compile_line_is_overlooked() -> None:
    found = {str(line.page.relative_to(ROOT)) for line in documents.compile_lines()}
    assert found >= {"tests/programs/slow_storage.c", "docs/reference/c-api.md", "docs/howto/delegates.md"}


def test_no_page_is_left_out() -> None:
    with_commands = {
        page
        for page in DOCS.rglob("*.md")
        if page.parent not in (DOCS, DOCS / "project") and any(block.is_run_here for block in documents.blocks(page))
    }
    assert with_commands | {ROOT / "README.md"} == {*QUICK, *SLOW}


@pytest.fixture(scope="module")
def site(family: str) -> pathlib.Path:
    """Return the folder of the site, which `make docs` has built without a warning."""
    command = [str(ROOT / "scripts" / "docs"), family]
    done = run_bounded(command, env=environment(), timeout_s=300, cwd=ROOT, check=False)
    if done.returncode != 0 and "pip install" in done.stderr:
        pytest.skip("Sphinx cannot be installed: no package index can be reached")
    assert done.returncode == 0, done.describe()
    return ROOT / "build" / "docs" / "html"


@pytest.mark.slow
def test_the_site_is_built(site: pathlib.Path) -> None:
    assert "docs/index.html" in (site / "index.html").read_text(encoding="utf-8")
    assert "docs/tutorial/first-hour" in (site / "searchindex.js").read_text(encoding="utf-8")
    assert "mpiox_partition" in (site / "docs" / "reference" / "hints.html").read_text(encoding="utf-8")
    local = [page.name for page in site.rglob("*.html") if str(ROOT) in page.read_text(encoding="utf-8")]
    assert not local, f"paths of this machine: {local}; a constant wants ':meta hide-value:' in its comment"


#: What people type, and the page that answers it.
SEARCHES = {
    "h5py": "howto/hdf5",
    "segfault": "reference/messages",
    "slow checkpoint": "howto/checkpoint",
    "lustre stripe": "howto/lustre",
    "cb_nodes": "reference/hints",
    "darshan": "howto/darshan",
    "delegates": "howto/delegates",
    "netcdf": "howto/hdf5",
    "slurm srun": "howto/slurm",
    "hang": "reference/messages",
    "nfs slow": "reference/messages",
    "asynchronous checkpoint": "howto/checkpoint",
    "gpu": "explanation/limitations",
    "independent write with filters": "howto/hdf5",
    "hang write_at_all": "reference/messages",
    "fortran": "howto/fortran",
    "MPI_ERR_IO": "reference/messages",
    "darshan or recorder": "explanation/which-tool",
}
#: Questions of people who have read no page; the page that answers it is the first one.
QUESTIONS = {
    "how many aggregators": "docs/howto/hints",
    "is my data safe": "docs/explanation/guarantees",
    "add a partition method": "CONTRIBUTING",
    "paper figure": "docs/reference/figures",
    "python 3.9": "docs/howto/install",
    "install without root": "docs/howto/install",
    "uninstall": "docs/howto/install",
    "does it work on my cluster": "docs/howto/check",
    "is it faster than romio": "docs/explanation/performance",
    "why is my job slow": "docs/howto/why-was-my-job-slow",
    "cuda buffer": "docs/howto/gpu",
    "ld_preload": "docs/explanation/interposition",
    "many small writes": "docs/howto/delegates",
    "what is an aggregator": "docs/reference/glossary",
    "perfetto": "docs/howto/timeline",
    "docker": "docs/howto/install-from-source",
    "run the tests": "docs/project/testing",
    "openmpi 5": "docs/reference/mpis",
    "split one file into several": "docs/howto/subfiles",
    "what is a file domain": "docs/explanation/file-domains",
    "replay my application": "docs/howto/synthesize",
    "encryption": "docs/explanation/security",
    "autotune": "docs/howto/find-hints",
    "monitor a running job": "docs/howto/watch",
    "share i/o nodes between jobs": "docs/howto/arbitrate",
    "how do I contribute": "CONTRIBUTING",
    "pytorch": "docs/howto/python-loaders",
}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="the search is JavaScript, and node is not installed")
def test_the_search_finds_the_page(site: pathlib.Path) -> None:
    wanted = {query: (f"docs/{page}", 3) for query, page in SEARCHES.items()}
    wanted |= {query: (page, 1) for query, page in QUESTIONS.items()}
    command = ["node", str(ROOT / "tests" / "support" / "search.js"), str(site), *wanted]
    found = json.loads(run_bounded(command, env=environment(), timeout_s=60).stdout)
    missed = {query: found[query][:3] for query, (page, first) in wanted.items() if page not in found[query][:first]}
    assert not missed
