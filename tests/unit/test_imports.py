"""The check that finds circles of imports, on trees with and without one, and on the project's own."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from support.scripts import load

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check():
    return load("scripts/check_imports.py")


@pytest.fixture(scope="module")
def project(check):
    return check.graph_of({"mpiio_ext": ROOT / "mpiio_ext"} | {f"mpiio_ext.{name}": ROOT / name
                                                               for name in check.MAPPED})


def tree(folder: Path, **files: str) -> dict[str, Path]:
    """Make package p of these modules, "__" in a name standing for a folder."""
    for name, text in {"__init__": "", "sub____init__": "", **files}.items():
        path = folder / (name.replace("sub__", "sub/", 1) + ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return {"p": folder}


def problems(check, folders: dict[str, Path]) -> list[str]:
    return check.import_cycle_problems(*check.graph_of(folders))


@pytest.mark.parametrize("files, circle", [
    ({"a": "from p import b", "b": "import p.c", "c": "from p.a import x"}, "p.a -> p.b -> p.c -> p.a"),
    ({"a": "from p.sub import b", "sub__b": "from .. import a"}, "p.a -> p.sub.b -> p.a"),
    ({"a": "from .sub.b import x", "sub__b": "def f():\n    from ..a import y"}, "p.a -> p.sub.b -> p.a"),
    ({"sub____init__": "from p.sub.b import x", "sub__b": "from p.sub import y"}, "p.sub -> p.sub.b -> p.sub"),
    ({"a": "try:\n    import p.b\nexcept ImportError:\n    pass", "b": "import p.a"}, "p.a -> p.b -> p.a"),
    ({"a": "import importlib\ndef f():\n    return importlib.import_module('p.b').x", "b": "import p.a"},
     "p.a -> p.b -> p.a"),
    ({"a": "_P = 'p.sub'\nTABLE = {'x': (f'{_P}.b', 'main', 'Do x.')}", "sub__b": "import p.a"},
     "p.a -> p.sub.b -> p.a"),
    ({"a": "TABLE = [Kind(name='p.b')]", "b": "class C:\n    parts: tuple = ('p.a',)"}, "p.a -> p.b -> p.a"),
    ({"sub____init__": "def f(x):\n    import importlib\n    importlib.import_module(f'{__name__}.{x}')",
      "sub__b": "import p.sub"}, "p.sub -> p.sub.b -> p.sub"),
])
def test_circles_are_found(check, tmp_path, files, circle):
    (problem,) = problems(check, tree(tmp_path, **files))
    assert problem.endswith(f"imports itself: {circle}")


@pytest.mark.parametrize("files", [
    {"a": "import p.b", "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import x"},
    {"a": "import p.b", "b": "import typing\nif typing.TYPE_CHECKING:\n    import p.a\nelse:\n    import json"},
    {"sub____init__": "from p.sub.b import x", "sub__b": "from p.sub.c import y", "sub__c": "import numpy"},
    {"a": "from p import b, c", "b": "from p import c", "c": "import os"},
    {"a": "import p.b", "b": "NAME = 'p.a'\ndef f():\n    return ['python', '-m', 'p.a', f'{NAME}.x']"},
    {"a": "import importlib\nimport p.b\nimportlib.import_module('json')", "b": "TABLE = {'p': f'{len}.a'}"},
])
def test_trees_without_a_circle_pass(check, tmp_path, files):
    assert problems(check, tree(tmp_path, **files)) == []


def test_packages_that_import_each_other_are_found(check, tmp_path):
    """No file is in a circle, but what is below p.sub needs p.a, and p.a needs something else below p.sub."""
    files = {"a": "from p.sub.low import x", "sub__low": "import os", "sub__high": "from p import a"}
    (problem,) = problems(check, tree(tmp_path, **files))
    assert problem.endswith("packages import each other: p.a -> p.sub -> p.a")


def test_two_circles_are_two_problems(check, tmp_path):
    found = problems(check, tree(tmp_path, a="import p.b", b="import p.a", c="import p.d", d="import p.c"))
    assert [text.partition("itself: ")[2] for text in found] == ["p.a -> p.b -> p.a", "p.c -> p.d -> p.c"]


def test_command_lines_may_combine_packages_and_packages_may_not_know_them(check, tmp_path):
    folders = {"mpiio_ext": tree(tmp_path, sub__cli="from mpiio_ext import a", sub__low="import mpiio_ext.errors",
                                 a="from mpiio_ext.sub import low", errors="")["p"]}
    known, graph = check.graph_of(folders)
    assert check.import_cycle_problems(known, graph) == [] == check.layer_problems(graph, {})
    for module, text, layer in (("a", "import mpiio_ext.sub.cli", "command lines"),
                                ("errors", "T = {'x': 'mpiio_ext.sub.low'}", "packages")):
        (tmp_path / f"{module}.py").write_text(text)
        graph = check.graph_of(folders)[1]
        (problem,) = check.layer_problems(graph, {})
        assert problem.startswith(f"mpiio_ext.{module}: imports") and f"`{layer}`" in problem
        allowed = {f"mpiio_ext.{module}": {problem.split()[2].strip(",")}}
        assert check.layer_problems(graph, allowed) == []
        (tmp_path / f"{module}.py").write_text("")
        (stale,) = check.layer_problems(check.graph_of(folders)[1], allowed)
        assert "take it out" in stale


def test_what_makes_commands_is_a_command_line(check, project):
    known, _ = project
    makes = re.compile(r"^@(click|[a-z_]+)\.(command|group)\(", re.MULTILINE)
    found = {module for module, path in known.items() if makes.search(path.read_text(encoding="utf-8"))}
    assert len(found) > 20 and {check.layer_of(module) for module in found} == {"command lines"}


def test_static_tools_see_every_import_statement(check, project, tmp_path):
    """With the tree of `scripts/tree`, what a tool as grimp does not see are imports by name only."""
    known, graph = project
    tree = subprocess.run([ROOT / "scripts" / "tree", tmp_path / "tree"], capture_output=True, text=True, check=True)
    code = """import json, sys
sys.path[:0] = sys.argv[1:]
import grimp
graph = grimp.build_graph("mpiio_ext", cache_dir=None)
print(json.dumps({name: sorted(graph.find_modules_directly_imported_by(name)) for name in graph.modules}))"""
    words = [sys.executable, "-S", "-c", code, tree.stdout.strip(), sysconfig.get_path("purelib")]  # without our hook
    seen = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert set(seen) == set(known)
    assert "mpiio_ext.delegates.arbitration.learn" in seen["mpiio_ext.analytics.learnt"]
    for module, names in graph.items():
        patterns = set(check._named(ast.parse(known[module].read_text(encoding="utf-8")), module))
        missed = names - set(seen[module])
        assert all(any(re.fullmatch(each, name) for each in patterns) for name in missed), (module, missed)


def test_the_project_has_none(check):
    modules = check.modules_of(ROOT / "mpiio_ext", "mpiio_ext")
    assert {"mpiio_ext", "mpiio_ext.bench", "mpiio_ext.bench.execution.player"} <= set(modules)
    assert "mpiio_ext.bench.kernels" in check.imports_of("mpiio_ext.bench.execution.case",
                                                         modules["mpiio_ext.bench.execution.case"], modules)
    reader, registry = "mpiio_ext.analytics.sources.darshan", ROOT / "analytics" / "sources" / "registry.py"
    assert reader in check.imports_of("mpiio_ext.analytics.sources.registry", registry, {reader: registry})
    assert check.main() == 0
