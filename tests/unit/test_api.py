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
from mpiio_ext.common.called import CommandError, Option, call, words_of
from mpiio_ext.errors import ArgumentError
from mpiio_ext.layout import inspect
from mpiio_ext.tune.found import Tuned
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


def test_errors_are_those_of_the_command_and_not_of_its_launcher() -> None:
    said = "mpiio-ext bench: Invalid value for --size\n-----\nmpirun detected that a process\n  Exit code:    2\n"
    assert str(CommandError(2, said)) == "mpiio-ext bench: Invalid value for --size"
    assert str(CommandError(2, "something else\n---\n")) == "something else"
    assert str(CommandError(2, "\n")) == "the command ended with status 2"


def test_results_show_themselves() -> None:
    assert repr(mpiio_ext.Hints(cb_nodes=4, enable=False)) == "Hints(enable=False, cb_nodes=4)"
    here = inspect(ROOT)
    assert f"{ROOT}\n" in repr(here) and "file_system" in here._repr_html_()
    assert here.table()["name"].to_pylist() == [fact.spec.name for fact in here.facts]
    run = {"number": 1, "hints": {"cb_nodes": "1", "cb_buffer_size": "8"}, "cost": 0.5}
    tuned = Tuned({"verdict": "wins", "reason": "", "hints": {"cb_nodes": "1"}, "hints_file": "a.hints", "spent_s": 2.0,
                   "metric": "io [s]", "runs": [run]})  # fmt: skip
    assert repr(tuned) == "Tuned:\n  wins\n  cb_nodes=1 (in a.hints)\n  1 runs in 2 s, judged by io [s]"
    assert tuned["verdict"] == "wins" and tuned.table()["hints"].to_pylist() == ["cb_nodes=1 cb_buffer_size=8"]
    assert "<td>cb_nodes=1 cb_buffer_size=8</td>" in tuned._repr_html_()


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
    with pytest.raises(CommandError, match=r"^no-mpirun cannot be started: No such file"):
        mpiio_ext.bench.run(tmp_path, launcher=("no-mpirun",))
    with pytest.raises(ArgumentError, match=r"give a list of words, as .'mpirun', './app'."):
        mpiio_ext.tune.run("mpirun ./app")
    with pytest.raises(CommandError):
        mpiio_ext.tune.run(["false"], output=tmp_path / "tuned.hints", budget="5s")
    assert not (tmp_path / "tuned.hints").exists()


def test_false_is_the_opposite_of_a_flag_that_has_one() -> None:
    options: dict[str, Option] = {"plot": False, "quick": True, "dry_run": False, "method": "auto", "limit": None}
    assert [*words_of(options, "plot", "report")] == ["--no-plot", "--quick", "--method", "auto"]
