"""The check that finds circles of imports, on trees with and without one, and on the project's own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_imports", ROOT / "scripts" / "check_imports.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree(folder: Path, **files: str) -> dict[str, Path]:
    """Make package p of these modules, "__" in a name standing for a folder."""
    for name, text in {"__init__": "", "sub____init__": "", **files}.items():
        path = folder / (name.replace("sub__", "sub/", 1) + ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return {"p": folder}


@pytest.mark.parametrize("files, circle", [
    ({"a": "from p import b", "b": "import p.c", "c": "from p.a import x"}, "p.a -> p.b -> p.c -> p.a"),
    ({"a": "from p.sub import b", "sub__b": "from .. import a"}, "p.a -> p.sub.b -> p.a"),
    ({"a": "from .sub.b import x", "sub__b": "def f():\n    from ..a import y"}, "p.a -> p.sub.b -> p.a"),
    ({"sub____init__": "from p.sub.b import x", "sub__b": "from p.sub import y"}, "p.sub -> p.sub.b -> p.sub"),
    ({"a": "try:\n    import p.b\nexcept ImportError:\n    pass", "b": "import p.a"}, "p.a -> p.b -> p.a"),
])
def test_circles_are_found(check, tmp_path, files, circle):
    (problem,) = check.import_cycle_problems(tree(tmp_path, **files))
    assert problem.endswith(f"imports itself: {circle}")


@pytest.mark.parametrize("files", [
    {"a": "import p.b", "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import x"},
    {"a": "import p.b", "b": "import typing\nif typing.TYPE_CHECKING:\n    import p.a\nelse:\n    import json"},
    {"sub____init__": "from p.sub.b import x", "sub__b": "from p.sub.c import y", "sub__c": "import numpy"},
    {"a": "from p import b, c", "b": "from p import c", "c": "import os"},
])
def test_trees_without_a_circle_pass(check, tmp_path, files):
    assert check.import_cycle_problems(tree(tmp_path, **files)) == []


def test_packages_that_import_each_other_are_found(check, tmp_path):
    """No file is in a circle, but what is below p.sub needs p.a, and p.a needs something else below p.sub."""
    files = {"a": "from p.sub.low import x", "sub__low": "import os", "sub__high": "from p import a"}
    (problem,) = check.import_cycle_problems(tree(tmp_path, **files))
    assert problem.endswith("packages import each other: p.a -> p.sub -> p.a")


def test_two_circles_are_two_problems(check, tmp_path):
    found = check.import_cycle_problems(tree(tmp_path, a="import p.b", b="import p.a", c="import p.d", d="import p.c"))
    assert [text.partition("itself: ")[2] for text in found] == ["p.a -> p.b -> p.a", "p.c -> p.d -> p.c"]


def test_the_project_has_none(check):
    modules = check.modules_of(ROOT / "mpiio_ext", "mpiio_ext")
    assert {"mpiio_ext", "mpiio_ext.bench", "mpiio_ext.bench.run.player"} <= set(modules)
    assert "mpiio_ext.bench.kernels" in check.imports_of("mpiio_ext.bench.run.case",
                                                         modules["mpiio_ext.bench.run.case"], modules)
    assert check.main() == 0
