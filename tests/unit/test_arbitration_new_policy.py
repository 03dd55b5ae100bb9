"""A policy is one file: dropped into the folder of the policies, it is in commands, simulation, figures and arbiter."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.common.plots import svg
from mpiio_ext.delegates.arbiter.service import Arbiter
from mpiio_ext.delegates.arbiter.settings import Settings
from mpiio_ext.delegates.arbitration import Curve, Job, Machine, catalogue, policy, policy_classes, rules, simulate
from mpiio_ext.delegates.arbitration.draw import draw_medians
from mpiio_ext.delegates.arbitration.pattern import Pattern
from mpiio_ext.delegates.arbitration.rules.base import Policy
from mpiio_ext.errors import ArgumentError
from support.cbuild import ROOT

HALF = '''
from mpiio_ext.delegates.arbitration.rules.base import Formula


class Half(Formula):
    """Half of the pool for every job."""

    name = "HALF"
    rule, exceeds = "half of the pool", "yes"

    def wanted(self, sizes):
        return 0 * sizes.compute_nodes + sizes.io_nodes // 2
'''
#: Without a simulation of its own.
ALL = """
from mpiio_ext.delegates.arbitration import Allocation, Grant
from mpiio_ext.delegates.arbitration.rules.base import Policy


class FirstTakesAll(Policy):
    name = "FIRST"
    rule = "the pool for the first job"

    def allocate(self, jobs, machine):
        counts = [machine.io_nodes if place == 0 else 0 for place in range(len(jobs))]
        return Allocation(policy="FIRST", pool=machine.io_nodes, grants={
            job.name: Grant(io_nodes=count, bandwidth=job.curve.bandwidth(count))
            for job, count in zip(jobs, counts)})
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder whose modules are policies, too."""
    folder = tmp_path / "rules"
    folder.mkdir()
    monkeypatch.setattr(rules, "__path__", [*rules.__path__, str(folder)])
    yield folder
    for path in folder.glob("*.py"):
        sys.modules.pop(f"{rules.__name__}.{path.stem}", None)
        vars(rules).pop(path.stem, None)


def curves() -> dict[Pattern, Curve]:
    rng = np.random.default_rng(5)
    return {
        Pattern(
            layout="shared", spatiality="contiguous", request_bytes=1024 * (number + 1), compute_nodes=8, processes=64
        ): Curve.of({count: float(rng.integers(1, 99)) for count in (0, 1, 2, 4, 8)})
        for number in range(9)
    }


def test_a_new_policy_is_one_file(added: Path, tmp_path: Path) -> None:
    (added / "half.py").write_text(HALF, encoding="utf-8")
    assert list(policy_classes())[-1] == "half" and "| HALF | half of the pool | yes |" in rules.table()
    for command in (["delegates", "arbitrate", "solve"], ["delegates", "arbitrate", "queue"], ["delegates", "arbiter"]):
        assert "|half]" in "".join(CliRunner().invoke(main, [*command, "--help"]).output.split()), command
    found = simulate(catalogue(curves()), pools=[1, 8], sets=20, apps=3)
    assert (found.given["half"] == [0, 12]).all()
    assert (found.bandwidth["half"][:, 1] != found.bandwidth["process"][:, 1]).any()
    assert {row["policy"] for row in found.table().to_pylist()} >= {"HALF", "MCKP"}
    assert "HALF" in svg(draw_medians(found))
    live = tmp_path / "live"
    with Arbiter(live, Settings(io_nodes=8, policy="half"), lambda _: None) as arbiter:
        grants = arbiter._ask([Job(name="a", compute_nodes=8, processes=8)], 8, {})
        assert grants["a"].io_nodes == 4


def test_a_policy_without_a_simulation_is_asked_set_by_set(added: Path) -> None:
    (added / "first.py").write_text(ALL, encoding="utf-8")
    found = simulate(catalogue(curves()), pools=[0, 8], sets=6, apps=3, policies=["FIRST"])
    assert (found.given["first"] == [0, 8]).all() and set(found.bandwidth) == {"first", "oracle", "mckp"}


def test_two_policies_of_one_name_are_refused(added: Path) -> None:
    (added / "other.py").write_text(HALF.replace('"HALF"', '"ONE"'), encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"other\.py|one\.py"):
        policy("one")


def test_the_table_of_the_documentation_is_that_of_the_classes() -> None:
    assert rules.table() in (ROOT / "docs" / "explanation" / "arbitration.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["zero", "one", "static", "size", "process", "oracle", "mckp"])
def test_all_sets_at_once_and_one_by_one(name: str) -> None:
    """The fast way of a policy, and asking it about each set, find the same."""
    from mpiio_ext.delegates.arbitration.sets import Sets

    members = np.random.default_rng(1).integers(0, 9, (10, 4))
    sets = Sets(catalogue(curves()), members, np.array([0, 3, 9, 40]), 64)
    fast, slow = policy(name).simulate(sets), Policy.simulate(policy(name), sets)
    assert fast[0] == pytest.approx(slow[0])
    assert fast[1] is None or (fast[1] == slow[1]).all()


def test_settings_are_those_of_the_policy() -> None:
    assert "floor" in rules.settings_of("mckp") and rules.settings_of("size") == ()
    with pytest.raises(ArgumentError, match="no setting floor"):
        policy("size", floor=0.5)


def test_results_show_themselves() -> None:
    job = Job(name="<a>", compute_nodes=8, processes=8, curve=Curve.of({0: 1.0, 8: 9.0}))
    found = policy("mckp").allocate([job], Machine(io_nodes=8))
    assert repr(found).startswith("Allocation:\n  <a>: 8, 9.0 MB/s\n  MCKP: 8 of 8 I/O nodes")
    assert found.table().to_pylist() == [{"job": "<a>", "io_nodes": 8, "bandwidth_mb_per_s": 9.0, "shared": False}]
    page = found._repr_html_()
    assert "<td>&lt;a&gt;</td><td>8</td><td>9</td>" in page and "<a>" not in page
    simulated = simulate(catalogue(curves()), pools=range(20), sets=3, apps=2, policies=["size"])
    assert "ORACLE" in repr(simulated) and simulated.table().num_rows == 60
    assert "0 more rows" not in simulated._repr_html_()
