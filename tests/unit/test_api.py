"""The API page: every import that it names works, costs no MPI, and is typed; commands called from Python."""

from __future__ import annotations

import importlib
import inspect as inspect_module
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import get_type_hints

import click
import pyarrow as pa
import pytest

import mpiio_ext
import mpiio_ext.advise
import mpiio_ext.bench
import mpiio_ext.tune
from mpiio_ext import stats
from mpiio_ext.analytics.jobs.umami import Umami
from mpiio_ext.analytics.run.shown import RunReport
from mpiio_ext.common.called import CommandError, Number, Quantity, Several, call, words_of
from mpiio_ext.common.shown import MOST_SHOWN
from mpiio_ext.delegates.arbitration import Simulation, catalogue
from mpiio_ext.errors import ArgumentError
from mpiio_ext.hints import HintValues, in_force, registry
from mpiio_ext.layout import Layout, inspect
from mpiio_ext.partitioning import Geometry, Plan, plan
from mpiio_ext.pioneer import Profile, WorkloadPath
from mpiio_ext.pioneer.path.document import PathInfo
from mpiio_ext.pioneer.recording import TraceOptions, record
from mpiio_ext.report.found import Found
from mpiio_ext.tune.found import Tuned
from support.commands import COMMANDS
from support.expected import Expected
from support.launch import ROOT
from support.options import kind_of

PAGE = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
IMPORTS = re.findall(r"`from ([\w.]+) import ([\w, ]+)`", PAGE)
#: Classes of results.
SHOWN = (
    stats.RunStats,
    stats.FileStats,
    Found,
    HintValues,
    Layout,
    Plan,
    Profile,
    RunReport,
    Simulation,
    Tuned,
    Umami,
    WorkloadPath,
)
#: Public functions whose result is the argument of another one.
NO_RESULT = (catalogue,)
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
    code = (
        "import sys, mpiio_ext, mpiio_ext.bench, mpiio_ext.tune, mpiio_ext.pioneer, mpiio_ext.analytics; "
        "print({'numpy', 'pyarrow', 'mpi4py.MPI', 'optuna'} & set(sys.modules))"
    )
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


def test_errors_are_those_of_the_command_and_not_of_its_launcher(expected: Expected) -> None:
    said = (
        "mpiio-ext: Invalid value for --size\n-----\nmpirun detected that a process\n  Exit code:    2\n",
        "something else\n---\n",
        "mpirun was unable to launch:\n\nExecutable: nothere\nNode: n\n\nwhile starting process rank 0.\n",
        "\n",
    )
    expected([str(CommandError(2, text)) for text in said])


def test_results_show_themselves(expected: Expected) -> None:
    here = inspect(ROOT)
    assert f"{ROOT}\n" in repr(here) and "file_system" in here._repr_html_()
    assert here.table()["name"].to_pylist() == [fact.spec.name for fact in here.facts]
    run = {"number": 1, "hints": {"cb_nodes": "1", "cb_buffer_size": "8"}, "cost": 0.5}
    tuned = Tuned(
        {
            "verdict": "wins",
            "reason": "",
            "hints": {"cb_nodes": "1"},
            "hints_file": "a.hints",
            "spent_s": 2.0,
            "metric": "io [s]",
            "runs": [run],
        }
    )
    assert tuned["verdict"] == "wins" and "<td>cb_nodes=1 cb_buffer_size=8</td>" in tuned._repr_html_()
    hints = mpiio_ext.Hints(cb_nodes=4, enable=False)
    expected({"hints": repr(hints), "tuned": repr(tuned), "runs": tuned.table().to_pylist()})


def rows_of(html: str) -> int:
    return html.count("<tr>") - 1


def test_hints_in_force_show_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MPIOX_HINTS", "MPIOX_HINTS_FILE", "ROMIO_HINTS", "MPICH_MPIIO_HINTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MPIOX_HINTS", "*.h5:cb_nodes=3")
    found = in_force("a.h5")
    assert isinstance(found, tuple) and repr(found) == "HintValues:\n  cb_nodes=3 (MPIOX_HINTS)"
    assert rows_of(found._repr_html_()) == len(registry()) == found.table().num_rows
    assert "<td>cb_nodes</td><td>3</td><td>MPIOX_HINTS</td>" in found._repr_html_()
    assert repr(in_force("a.dat")) == f"HintValues:\n  all {len(registry())} hints have their defaults"


@pytest.mark.parametrize("aggregators", [1, 6, 61, 2**24])
def test_a_plan_shows_its_first_domains(aggregators: int) -> None:
    domains = plan(Geometry.of_stripes(36, servers=3, aggregators=aggregators), "group_cyclic")
    html = domains._repr_html_()
    assert rows_of(html) == min(aggregators, MOST_SHOWN) and domains.method in html
    assert (f"… {aggregators - MOST_SHOWN:,} more rows: .sets()" in html) == (aggregators > MOST_SHOWN)
    sets = domains.sets()
    assert f"<tr><td>0</td><td>{sets.bytes[0]}</td><td>{sets.servers[0]}</td><td>0</td></tr>" in html
    if aggregators > 2**20:  # more than there are stripes: one that has nothing begins nowhere
        empty = [number for number in range(MOST_SHOWN) if sets.bytes[number] == 0]
        assert empty and f"<td>{empty[0]}</td><td>0</td><td>0</td><td></td>" in html


@pytest.mark.parametrize("operations", [0, 1, 1000])
def test_a_workload_path_shows_its_first_operations(operations: int) -> None:
    path = WorkloadPath(
        pa.Table.from_pylist(
            [
                {"id": number, "operation": "MPI_File_write_all", "file": "<a&b>", "groups": 1, "layer": "mpi"}
                for number in range(operations)
            ],
            WorkloadPath.schema(1),
        ),
        PathInfo(representatives=(0,), members=((0, 1),), ranks=2),
    )
    html = path._repr_html_()
    assert rows_of(html) == min(operations, MOST_SHOWN)
    assert html.startswith(f"<p>WorkloadPath: {operations:,} operations")
    assert ("<td>MPI_File_write_all</td><td>&lt;a&amp;b&gt;</td>" in html) == (operations > 0)
    assert "<th>session</th>" not in html
    assert (f"… {operations - MOST_SHOWN} more rows: .table<" in html) == (operations > MOST_SHOWN)


def test_what_the_public_functions_return_shows_itself() -> None:
    """By annotation: every function that the page names returns a class of which a notebook shows a table."""
    kinds = {kind.__name__: kind for kind in SHOWN}
    public = [getattr(importlib.import_module(module), name) for module, names in IMPORTS for name in names.split(", ")]
    returned = {
        one: inspect_module.signature(one).return_annotation
        for one in public
        if inspect_module.isfunction(one) and one not in NO_RESULT
    }
    assert len(returned) > 10 and set(returned.values()) <= set(kinds), returned
    assert all(callable(getattr(kind, "_repr_html_", None)) for kind in SHOWN)


@pytest.mark.parametrize(
    ("function", "options", "command", "left_out"),
    [
        (mpiio_ext.tune.run, mpiio_ext.tune.TuneOptions, "tune", {"dry_run"}),
        (mpiio_ext.advise.run, mpiio_ext.advise.AdviseOptions, "advise", set()),
        (mpiio_ext.bench.run, mpiio_ext.bench.BenchOptions, "bench", {"path", "list", "dry_run", "ranks"}),
        (record, TraceOptions, "trace", {"dry_run"}),
    ],
)
def test_keyword_arguments_are_the_options_of_the_command(
    function: Callable[..., object], options: type, command: str, left_out: set[str]
) -> None:
    """Each has the type of its option, and `help` and completion show it; what prints instead of runs is left out."""
    kinds: dict[str, object] = {"flag": bool | None, "text": str | None, "path": str | None}
    kinds |= {"number": Number, "size": Quantity, "duration": Quantity}
    expected = {}
    for option in COMMANDS[command].params:
        if isinstance(option, click.Option):
            name = max(option.opts, key=len)[2:].replace("-", "_")
            expected[name] = Several if option.multiple else kinds[kind_of(option)]
    for name in {"output", "json"} | left_out:
        expected.pop(name, None)
    if command == "bench":
        expected["delegates"] = Quantity  # a number, or "25%"
    assert get_type_hints(options) == expected
    shown = inspect_module.signature(function).parameters
    assert expected.keys() < shown.keys() and "options" not in shown


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
    options: dict[str, object] = {"figures": False, "quick": True, "dry_run": False, "method": "auto", "limit": None}
    assert [*words_of(options, "figures", "page")] == ["--no-figures", "--quick", "--method", "auto"]
