"""Simulated sets and queues: against the policies, the paper's figures where the data are there, the command."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.common.plots import svg
from mpiio_ext.delegates.arbitration import Curve, Job, Machine, catalogue, policy, policy_classes, simulate
from mpiio_ext.delegates.arbitration.draw import draw_curves, draw_queue
from mpiio_ext.delegates.arbitration.pattern import Pattern
from mpiio_ext.delegates.arbitration.queue import QueueJob, run_queue
from mpiio_ext.delegates.arbitration.tables import read_forge
from mpiio_ext.errors import ArgumentError
from support.cbuild import ROOT

DATA = Path(os.environ.get("MPIOX_TEST_DATA", ROOT.parent / "shared" / "data")) / "marenostrum4_forge"


def forge_files() -> list[Path]:
    if not DATA.is_dir():
        pytest.skip(f"the measurements of MareNostrum 4 are not at hand ({DATA})")
    return [DATA / "forwarding.csv", DATA / "direct.csv"]


def random_curves(seed: int = 1) -> dict[Pattern, Curve]:
    rng = np.random.default_rng(seed)
    found = {}
    for request in range(30):
        nodes = int(rng.choice([8, 16, 32]))
        each = Pattern(
            layout="shared",
            spatiality="contiguous",
            request_bytes=1024 * (request + 1),
            compute_nodes=nodes,
            processes=nodes * int(rng.choice([12, 24, 48])),
        )
        found[each] = Curve.of({count: float(rng.integers(1, 4000)) for count in (0, 1, 2, 4, 8)})
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "forge.csv"
    lines = ["forwarders;clients;processes;layout;spatiality;request;operation;bandwidth"]
    for pattern, curve in random_curves().items():
        size = pattern.request_bytes // 1024
        lines += [
            f"{count};{pattern.compute_nodes};{pattern.processes};1;0;{size};write;{p.mean}"
            for count, p in curve.points.items()
        ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_arrays_say_what_the_policies_say() -> None:
    curves = random_curves()
    data = catalogue(curves)
    sets, apps, pools = 12, 5, (0, 1, 7, 24, 40)
    found = simulate(data, pools=pools, sets=sets, apps=apps, seed=4)
    members = np.random.default_rng(4).integers(0, len(curves), (sets, apps))
    patterns = list(curves)
    for row, chosen in enumerate(members.tolist()):
        jobs = [
            Job(
                name=f"{k}",
                compute_nodes=patterns[i].compute_nodes,
                processes=patterns[i].processes,
                curve=curves[patterns[i]],
            )
            for k, i in enumerate(chosen)
        ]
        for column, pool in enumerate(pools):
            machine = Machine(io_nodes=pool, compute_nodes=found.compute_nodes)
            for name in policy_classes():
                expected = policy(name).allocate(jobs, machine)
                assert found.bandwidth[name][row, column] == pytest.approx(expected.bandwidth), (name, pool)
                if name in found.given:
                    assert found.given[name][row, column] == expected.io_nodes
        assert found.set_nodes[row] == sum(job.compute_nodes for job in jobs)


def test_static_in_a_system_as_large_as_the_set() -> None:
    """Each set is a system of its own: STATIC's numbers are those of that system."""
    curves = random_curves()
    found = simulate(catalogue(curves), pools=[12], sets=5, apps=6, seed=3, compute_nodes="set")
    members = np.random.default_rng(3).integers(0, len(curves), (5, 6))
    patterns = list(curves)
    for row, chosen in enumerate(members.tolist()):
        jobs = [
            Job(
                name=f"{k}",
                compute_nodes=patterns[i].compute_nodes,
                processes=patterns[i].processes,
                curve=curves[patterns[i]],
            )
            for k, i in enumerate(chosen)
        ]
        expected = policy("static").allocate(jobs, Machine(io_nodes=12))
        assert found.bandwidth["static"][row, 0] == pytest.approx(expected.bandwidth)
    assert found.compute_nodes is None


def test_pools_in_which_the_jobs_cannot_run_are_left_out() -> None:
    """Each job of curves without "no I/O node" needs one: of smaller pools there is nothing to say."""
    curves = {each: Curve.of({n: p.mean for n, p in c.points.items() if n}) for each, c in random_curves().items()}
    found = simulate(catalogue(curves), pools=(0, 3, 4, 8), sets=5, apps=4)
    assert found.pools.tolist() == [4, 8] and found.too_small == (0, 3)
    assert "left out: pools of 0, 3 I/O nodes, with which 4 jobs" in "\n".join(found.lines())
    assert not re.search(r"\b(inf|nan)\b", "\n".join(found.lines())) and json.dumps(found.document(), allow_nan=False)
    with pytest.raises(ArgumentError, match="4 jobs of these curves need 4 I/O nodes at least"):
        simulate(catalogue(curves), pools=(0, 3), sets=5, apps=4)


def test_same_seed_same_result_and_refusals() -> None:
    data = catalogue(random_curves())
    one, two = (simulate(data, pools=[8], sets=50, apps=4, seed=9) for _ in range(2))
    assert all((one.bandwidth[name] == two.bandwidth[name]).all() for name in one.bandwidth)
    assert (one.bandwidth["mckp"] != simulate(data, pools=[8], sets=50, apps=4, seed=8).bandwidth["mckp"]).any()
    for bad in ({"pools": []}, {"pools": [-1]}, {"pools": [1], "sets": 0}, {"pools": [1], "policies": ["best"]}):
        with pytest.raises(ArgumentError):
            simulate(data, **bad)  # type: ignore[arg-type]


def test_the_papers_figures_from_its_data() -> None:
    curves = read_forge(forge_files())
    assert len(curves) == 189
    assert catalogue(curves).best_counts == {0: 62, 1: 12, 2: 83, 4: 15, 8: 17}
    found = simulate(catalogue(curves), pools=[0, 16, 24, 32, 48, 56, 64, 96, 128], seed=0)
    gain = 100 * (found.ratio("oracle", "zero")[:, 0] - 1)
    assert 0 <= gain.min() < 2 and 110 < gain.max() < 150 and np.median(gain) == pytest.approx(25.63, abs=1.5)
    assert 100 * (1 - np.median(found.ratio("one", "zero")[:, 0])) == pytest.approx(82.11, abs=1)
    fair = found.given["static"] <= found.pools
    assert (found.ratio("mckp", "static")[fair] >= 1 - 1e-9).all() and fair[:, 3:].mean() > 0.99
    assert np.median(found.ratio("mckp", "static")[:, 2]) == pytest.approx(5.11, abs=0.6)
    assert 50 <= np.median(found.meets_oracle) <= 60
    (line,) = [each for each in found.lines() if each.startswith("STATIC gives")]
    for pool, more in zip(found.pools, (~fair).sum(axis=0), strict=True):
        assert (f" {more:,} with {pool}" in line) == (more > 0), (line, pool)


def items() -> list[QueueJob]:
    curve = Curve.of({1: 10.0, 2: 20.0, 4: 40.0})
    return [
        QueueJob(job=Job(name=name, compute_nodes=nodes, processes=nodes, curve=curve), volume_bytes=volume * 1_000_000)
        for name, nodes, volume in (("a", 4, 400), ("b", 4, 100), ("c", 8, 80), ("d", 4, 10))
    ]


def test_queue_is_strict_fifo_and_moves_every_byte() -> None:
    machine = Machine(io_nodes=4, compute_nodes=8, direct=False)
    found = run_queue(items(), machine, policy("mckp"))
    ends = {job.name: job for job in found.jobs}
    # a and b share four I/O nodes, 20 MB/s each, until b has moved 100 MB; a has four of them then: 300 MB more.
    assert ends["b"].end_s == pytest.approx(5.0) and ends["a"].end_s == pytest.approx(5.0 + 300 / 40)
    assert ends["c"].start_s == pytest.approx(12.5)  # not d before c, though d would fit beside a
    assert ends["d"].start_s == pytest.approx(ends["c"].end_s) == pytest.approx(14.5)
    assert ends["a"].changes == 1 and found.makespan_s == pytest.approx(14.75)
    moved: dict[str, float] = {}
    for now, then in zip(found.steps, found.steps[1:], strict=False):
        assert sum(count for count, _ in now.grants.values()) <= 4
        for name, (_, rate) in now.grants.items():
            moved[name] = moved.get(name, 0.0) + rate * (then.time_s - now.time_s)
    assert moved == pytest.approx({"a": 400, "b": 100, "c": 80, "d": 10})


def test_static_does_not_reallocate_and_migration_costs_time() -> None:
    machine = Machine(io_nodes=4, compute_nodes=8, direct=False)
    static = run_queue(items(), machine, policy("static"))
    assert all(job.changes == 0 for job in static.jobs)
    assert {job.name: job.end_s for job in static.jobs}["a"] == pytest.approx(20.0)  # keeps its two I/O nodes
    slow = run_queue(items(), machine, policy("mckp"), migration_s=3.0)
    assert {job.name: job.end_s for job in slow.jobs}["a"] == pytest.approx(12.5 + 3.0)
    with pytest.raises(ArgumentError, match="at most the machine's 4"):
        run_queue(items(), Machine(io_nodes=4, compute_nodes=4), policy("mckp"))
    with pytest.raises(ArgumentError, match="one name"):
        run_queue([items()[0]] * 2, machine, policy("mckp"))


def test_a_job_that_stands_still_moves_nothing_until_another_one_ends() -> None:
    """b ends after 5 s, a stands still until 8 s and has 40 MB/s then; e ends meanwhile, after 10 s."""
    machine = Machine(io_nodes=5, compute_nodes=12, direct=False)
    job = Job(name="e", compute_nodes=4, processes=4, curve=Curve.of({1: 10.0}))
    queue = [*items()[:2], QueueJob(job=job, volume_bytes=100_000_000)]
    found = run_queue(queue, machine, policy("mckp"), migration_s=3.0)
    assert {job.name: job.end_s for job in found.jobs} == pytest.approx({"b": 5.0, "e": 10.0, "a": 8.0 + 300 / 40})


def invoke(*arguments: object) -> str:
    done = CliRunner().invoke(main, ["delegates", "arbitrate", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def test_command_simulate(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = invoke("simulate", "--forge", table, "--sets", 40, "--apps", 6, "--io-nodes", "0..48:16", "-o", out)
    assert "ORACLE over ZERO" in text and "MCKP meets ORACLE" in text
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert document["pools"] == [0, 16, 32, 48] and set(document["bandwidth"]) == set(policy_classes())
    assert document["units"]["bandwidth"].startswith("MB/s") and document["sets"] == 40
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == 2 and "http-equiv" not in page and "<script" not in page
    assert {path.name for path in out.glob("*.svg")} == {"figure2.svg", "figure3.svg"}
    lines = invoke("simulate", "--forge", table, "--sets", 40, "--compute-nodes", "set", "--io-nodes", "0..128")
    for said in ("compute nodes of a set", "those of the set", "with 24: ", "with 56: ", "with 64 and 128: ", "23.75"):
        assert said in lines, said
    again = invoke("simulate", "--forge", table, "--sets", 40, "--apps", 6, "--io-nodes", "0..48:16", "--json")
    assert json.loads(again) == document


def test_command_queue_and_curves(table: Path, tmp_path: Path) -> None:
    text = invoke("queue", "--forge", table, "--policy", "static", "--policy", "mckp", "-o", tmp_path / "q")
    assert "× STATIC" in text and "× as fast" in text and (tmp_path / "q" / "queue.svg").is_file()
    document = json.loads((tmp_path / "q" / "results.json").read_text(encoding="utf-8"))
    assert len(document["policies"]["mckp"]["jobs"]) == 14
    store = tmp_path / "store.json"
    out = invoke("curves", "--forge", table, "--match", "shared-contiguous-3KiB", "--store", store, "--json")
    assert len(json.loads(out)["curves"]) == 1 and json.loads(store.read_text(encoding="utf-8"))["format"] == 1


def test_curves_are_all_drawn_with_ticks_where_they_were_measured() -> None:
    """Eight to a panel; no tick at a quarter of a delegate."""
    curves = {f"pattern-{index}": Curve.of({0: 10.0 + index, 1: 20.0, 2: 15.0}) for index in range(12)}
    figure = svg(draw_curves(curves))
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", figure)
    assert [text for text in texts if text.startswith("pattern-")] == list(curves)
    assert texts.count("I/O nodes") == 2 and "0.25" not in texts and "0.5" not in texts
    assert all(texts.count(tick) >= 2 for tick in ("0", "1", "2"))


def test_the_queue_is_drawn_over_time_and_by_job() -> None:
    items = [
        QueueJob(
            job=Job(name=name, compute_nodes=4, processes=4, curve=Curve.of({1: 10.0, 2: 20.0})), volume_bytes=volume
        )
        for name, volume in (("b", 10**9), ("a", 10**11))
    ]
    machine = Machine(io_nodes=2, compute_nodes=8, direct=False)
    figure = svg(draw_queue([run_queue(items, machine, policy(name)) for name in ("one", "static")]))
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", figure)
    assert texts.index("a") < texts.index("b")  # they start at once: by name
    assert {"ONE", "STATIC"} <= set(texts)


def test_command_compare(table: Path, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "job,compute_nodes,processes,io_nodes,bandwidth\na,4,8,0,10\na,4,8,4,90\nb,4,8,0,50\nb,4,8,4,60\n",
        encoding="utf-8",
    )
    command = ("compare", "--jobs", jobs, "--io-nodes", "4,8", "--policy", "static", "--policy", "mckp")
    found = json.loads(invoke(*command, "--json"))
    assert found["alone"] == {"a": [90, 90], "b": [60, 60]} and found["pools"] == [4, 8]
    assert [one["bandwidth"] for one in found["policies"]["mckp"]] == [140, 150]
    invoke(*command, "-o", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").glob("*.svg")} == {"figure6.svg", "figure7.svg", "figure8.svg"}
    assert (tmp_path / "out" / "index.html").read_text(encoding="utf-8").count("<figure>") == 3
    lines = invoke("compare", "--forge", table, "--io-nodes", 12, "--policy", "zero", "-o", tmp_path / "zero")
    assert "ZERO, 12 I/O nodes: " in lines and "IOR-MPI 0" in lines
    assert [path.name for path in (tmp_path / "zero").glob("*.svg")] == ["figure6.svg"]
    jobs.write_text("job,compute_nodes,processes,io_nodes,bandwidth\na,4,8,,\n", encoding="utf-8")
    for words, said in ((("--jobs", jobs), "no bandwidth is known of a"), ((), "by --jobs, or measured patterns")):
        done = CliRunner().invoke(main, ["delegates", "arbitrate", "compare", *map(str, words)])
        assert done.exit_code == 2 and said in done.output


def test_command_solve_and_errors(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "job,compute_nodes,processes,io_nodes,bandwidth\na,8,8,0,10\na,8,8,4,90\nb,8,8,0,10\nb,8,8,4,50\n",
        encoding="utf-8",
    )
    found = json.loads(invoke("solve", "--jobs", jobs, "--io-nodes", 4, "--json"))
    assert {name: each["io_nodes"] for name, each in found["jobs"].items()} == {"a": 4, "b": 0}
    assert found["bandwidth"] == 100 and found["within_pool"] is True
    assert "a: 4, 90.0 MB/s" in invoke("solve", "--jobs", jobs, "--io-nodes", 4)
    jobs.write_text("job,compute_nodes,processes,io_nodes,bandwidth\na,8,8,0,nan\n", encoding="utf-8")
    done = CliRunner().invoke(main, ["delegates", "arbitrate", "solve", "--jobs", str(jobs), "--io-nodes", "4"])
    assert done.exit_code == 2 and "jobs.csv:2: bandwidth is not a number" in done.output
    for pools in ("4..2", "x", "1..9:0"):
        done = CliRunner().invoke(
            main, ["delegates", "arbitrate", "simulate", "--forge", str(jobs), "--io-nodes", pools]
        )
        assert done.exit_code == 2 and "Error" in done.output
