"""Recipes of the page on the architecture for one that adds something: each, followed in a copy of the sources, works.

Problem.   A recipe that leaves a place out, or names one that is gone, costs a contributor an hour.
Algorithm. A recipe is data: files that are new, and lines that are added to others. The packages of the copy are laid
           out under their import names, with the installation's compiled parts, and are imported in place of the
           installation's. The library of the copy is built without the binding.
Guarantee. A recipe touches three files of the product at most, and its row names the folder of each new file, and each
           file that gets a line. The two recipes in C are of the slow tier. Tests that a recipe asks for are left out.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping

import pytest

from support.launch import mpi_family

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ("analytics", "delegates", "mpiio_ext", "partitioning", "pioneer")
MOST_FILES = 3
COMPILERS = {"openmpi": "mpicc.openmpi", "mpich": "mpicc"}

_READER = """
NAME = "toy"


def recognizes(path):
    return path.read_bytes().startswith(b"toy trace")


def read(paths):
    raise NotImplementedError
"""
_CAUSE = """
from mpiio_ext.analytics.diagnosis.cause import Cause, Cells

TOY = Cause(
    name="toy",
    rule=lambda case: None,
    cells=Cells(("data",)),
    section="Small requests, one by one",
    mechanism="A toy slows it down.",
    condition="Never.",
    sure="",
    sentences=("a toy",),
    advice=(),
)
"""
_COMMAND = '''
import click

from mpiio_ext.common.commands import Command


@click.command(cls=Command)
def toy():
    """Print a word."""
    click.echo("toy works")
'''


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a contributor adds: new files by their path, and for files that are there a line and what follows it."""

    row: str
    new: Mapping[str, str] = dataclasses.field(default_factory=dict)
    added: Mapping[str, tuple[tuple[str, str], ...]]

    def follow(self, tree: pathlib.Path) -> None:
        """Change the copy."""
        for path, text in self.new.items():
            (tree / path).write_text(text, encoding="utf-8")
        for path, lines in self.added.items():
            text = (tree / path).read_text(encoding="utf-8")
            for before, line in lines:
                assert text.count(before) == 1, f"{path}: {text.count(before)} times {before!r}"
                text = text.replace(before, before + line)
            (tree / path).write_text(text, encoding="utf-8")


def _renamed(path: str, old: str, new: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8").replace(old, new)


RECIPES = {
    "reader": Recipe(
        row="a reader of traces",
        new={"pioneer/readers/toy.py": _READER},
        added={"pioneer/readers/__init__.py": (("FORMATS = {\n", '    "toy": "mpiio_ext.pioneer.readers.toy",\n'),)},
    ),
    "cause": Recipe(
        row="a cause",
        new={"analytics/diagnosis/causes_toy.py": _CAUSE},
        added={
            "analytics/diagnosis/causes.py": (
                ("from __future__ import annotations\n", "from mpiio_ext.analytics.diagnosis.causes_toy import TOY\n"),
                ("CAUSES: tuple[Cause, ...] = (\n", "    TOY,\n"),
            )
        },
    ),
    "command": Recipe(
        row="a command",
        new={"mpiio_ext/cli/toy.py": _COMMAND},
        added={
            "mpiio_ext/cli/__init__.py": (("_COMMANDS = {\n", '    "toy": ("mpiio_ext.cli.toy", "toy", "Toy."),\n'),)
        },
    ),
    "method": Recipe(
        row="a partition method",
        new={
            "csrc/core/domains/mpiox_partition_toy.c": _renamed(
                "csrc/core/domains/mpiox_partition_even.c", "even", "toy"
            )
        },
        added={
            "csrc/core/domains/mpiox_partition_methods.h": (("X(transpose)", " X(toy)"),),
            "csrc/sources.cmake": (
                (
                    "    csrc/core/domains/mpiox_partition_transpose.c\n",
                    "    csrc/core/domains/mpiox_partition_toy.c\n",
                ),
            ),
        },
    ),
    "hint": Recipe(
        row="a hint",
        added={
            "csrc/core/hints/mpiox_hints.h": (("typedef struct mpiox_hints {\n", "    int32_t toy;\n"),),
            "csrc/core/hints/mpiox_hints_registry.c": (
                (
                    "static const mpiox_hint_spec specs[] = {\n",
                    '    INTEGER("mpiox_toy", toy, 0, 9, "7", "a toy", FOR_SPEED),\n',
                ),
            ),
            "docs/reference/hints.md": (
                ("|---|---|---|---|---|\n", "| `mpiox_toy` | integer | 0 .. 9 | `7` | a toy |\n"),
            ),
        },
    ),
}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_its_row_names_each_place(recipe: Recipe) -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith(f"| {recipe.row} |"))
    places = [*(f"{pathlib.PurePath(path).parent}/" for path in recipe.new), *recipe.added]
    assert [path for path in places if path not in row and f"`{pathlib.PurePath(path).name}`" not in row] == []
    assert len(recipe.new) + len(recipe.added) <= MOST_FILES


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a copy of the sources in which all recipes were followed."""
    folder = tmp_path_factory.mktemp("tree")
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    for name in names.stdout.decode().splitlines():
        if name.startswith(("tests/", "findings/")) or not (ROOT / name).is_file():
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for recipe in RECIPES.values():
        recipe.follow(folder)
    subprocess.run(["bash", folder / "scripts" / "tree"], check=True, capture_output=True, timeout=60)
    for path in pathlib.Path(sysconfig.get_path("purelib"), "mpiio_ext").iterdir():
        if not (folder / "build" / "tree" / "mpiio_ext" / path.name).exists():
            (folder / "build" / "tree" / "mpiio_ext" / path.name).symlink_to(path)
    return folder


def python_of(tree: pathlib.Path, code: str, *words: str) -> str:
    """Run code with the packages of the copy: without site's hooks, which lead to the installation."""
    places = (str(tree / "build" / "tree"), sysconfig.get_path("purelib"))
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *words],
        cwd=tree / "build",  # which is the first folder of imports
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_reader_of_traces(tree: pathlib.Path) -> None:
    (tree / "a.toy").write_text("toy trace\n", encoding="utf-8")
    code = (
        "import sys, pathlib; from mpiio_ext.pioneer.readers import find_reader\n"
        "print(find_reader(pathlib.Path(sys.argv[1])).NAME)"
    )
    assert python_of(tree, code, str(tree / "a.toy")) == "toy\n"


def test_a_cause(tree: pathlib.Path) -> None:
    """Its texts are on the page of triggers."""
    code = "import runpy; runpy.run_module('mpiio_ext.analytics.diagnosis.triggers', run_name='__main__')"
    assert "A toy slows it down." in python_of(tree, code)


def test_a_command(tree: pathlib.Path) -> None:
    code = "import sys; from mpiio_ext.cli import main; main(sys.argv[1:], standalone_mode=False)"
    assert python_of(tree, code, "toy") == "toy works\n"
    assert "Toy." in python_of(tree, code, "--help")


@pytest.mark.slow
def test_a_method_and_a_hint(tree: pathlib.Path) -> None:
    """The library of the copy lists both, and accepts the method as a value of its hint."""
    build = tree / "build" / "library"
    options = ("-DMPIOX_BUILD_BINDING=OFF", "-DMPIOX_BUILD_TESTS=OFF", "-DMPIOX_WERROR=ON", "-DCMAKE_BUILD_TYPE=Debug")
    compiler = f"-DMPI_C_COMPILER={COMPILERS[mpi_family() or '']}"
    for command in (["cmake", "-S", tree, "-B", build, compiler, *options], ["cmake", "--build", build, "-j2"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (library,) = build.rglob("libmpiio_ext.so")
    code = (
        "import ctypes, sys; from mpi4py import MPI; lib = ctypes.CDLL(sys.argv[1])\n"
        "def text(name, at):\n"
        "    function = getattr(lib, name); function.restype = ctypes.c_char_p; return function(at).decode()\n"
        "hints = [text('mpiio_ext_hint_name', at) for at in range(lib.mpiio_ext_hint_count())]\n"
        "at = hints.index('mpiox_toy')\n"
        "print(*(text('mpiio_ext_hint_' + what, at) for what in sys.argv[2:]), sep='\\n')\n"
        "print(lib.mpiio_ext_hint_for_speed(at))\n"
        "print('toy' in [text('mpiio_ext_partition_name', at) for at in range(lib.mpiio_ext_partition_count())])\n"
        "print(lib.mpiio_ext_hint_check(b'mpiox_partition', b'toy', None, 0))\n"
    )
    words = ("name", "type", "values", "default", "description")
    name, kind, values, default, meaning, *found = python_of(tree, code, str(library), *words).splitlines()
    page = (tree / "docs" / "reference" / "hints.md").read_text(encoding="utf-8")
    assert f"\n| `{name}` | {kind} | {values} | `{default}` | {meaning} |\n" in page
    assert found == ["1", "True", "0"]
