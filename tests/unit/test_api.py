"""The API page: every import that it names works, costs no MPI, and is typed; commands called from Python."""

from __future__ import annotations

import importlib
import json
import pathlib
import re
import subprocess
import sys

import pytest

import mpiio_ext
import mpiio_ext.bench
import mpiio_ext.tune
from mpiio_ext import stats
from mpiio_ext.common.called import CommandError, call, words_of
from support.launch import ROOT

PAGE = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
IMPORTS = re.findall(r"`from ([\w.]+) import ([\w, ]+)`", PAGE)
#: Packages whose public names are all in the page.
WHOLE = ("mpiio_ext.advise", "mpiio_ext.analytics", "mpiio_ext.bench", "mpiio_ext.pioneer", "mpiio_ext.tune")


@pytest.mark.parametrize(("module", "names"), IMPORTS)
def test_what_the_page_names_can_be_imported(module: str, names: str) -> None:
    found = importlib.import_module(module)
    for name in names.split(", "):
        assert name in found.__all__ and getattr(found, name) is not None


@pytest.mark.parametrize("module", WHOLE)
def test_the_page_names_all_that_is_public(module: str) -> None:
    named = {name for found, names in IMPORTS if found == module for name in names.split(", ")}
    assert named == set(importlib.import_module(module).__all__)


def test_names_of_the_package() -> None:
    assert dir(mpiio_ext) == sorted(mpiio_ext.__all__) and {"hints", "stats", "layout"} <= set(dir(mpiio_ext))
    assert not {"Any", "Path", "sys"} & set(dir(mpiio_ext))
    assert all(getattr(mpiio_ext, name) is not None for name in mpiio_ext.__all__)


def test_importing_the_public_packages_is_quick() -> None:
    code = "import sys, mpiio_ext, mpiio_ext.bench, mpiio_ext.tune, mpiio_ext.pioneer, mpiio_ext.analytics; " \
        "print({'numpy', 'pyarrow', 'mpi4py.MPI', 'optuna'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "set()\n", done.stderr


def test_statistics_are_readable() -> None:
    zeros = {field.name: 0 for field in stats._Stats.__dataclass_fields__.values()}
    texts = {name: "" for name in stats._OTHERS if name != "request_size_log2"}
    one = stats.RunStats(**{**zeros, **texts, "request_size_log2": (), "calls": {}})
    assert repr(one) == "RunStats:\n  nothing was done"
    number = stats.numbers()[0]
    some = stats.RunStats(**{**zeros, **texts, "request_size_log2": (), "calls": {}, number.name: 1234})
    assert f"{number.name} " in repr(some) and "1,234" in repr(some) and len(some.rows()) == 1
    assert some.table().num_rows == 1 and number.meaning in some._repr_html_()


def test_options_by_name() -> None:
    given = {"quick": True, "budget": "5m", "hint": ["a=1", "b=2"], "metric_regex": None, "plot": False, "seed": 3}
    assert list(words_of(given)) == ["--quick", "--budget", "5m", "--hint", "a=1", "--hint", "b=2", "--seed", "3"]


def test_a_command_that_fails_raises_what_it_has_said(tmp_path: pathlib.Path) -> None:
    assert json.loads(call(["hints", "cb_nodes", "--json"]))["hints"][0]["name"] == "cb_nodes"
    with pytest.raises(CommandError, match="did you mean cb_nodes") as caught:
        call(["hints", "cb_nods"])
    assert caught.value.status == 2
    with pytest.raises(CommandError, match="no such folder"):
        mpiio_ext.bench.run(tmp_path / "none", launcher=())
    with pytest.raises(CommandError):
        mpiio_ext.tune.run(["false"], output=tmp_path / "tuned.hints", budget="5s")
    assert not (tmp_path / "tuned.hints").exists()
