"""Launches, statistics and JSON of `compare`, without MPI: a function plays the kernel."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from mpiio_ext.bench.compare import compare, launches
from mpiio_ext.bench.compare.launches import Case, Outcome, on_nodes, parse_output
from mpiio_ext.bench.compare.peers import Installation, Peer, peers_of, with_delegates
from mpiio_ext.bench.execution.agreement import span_of
from mpiio_ext.common.results import Spread

INSTALLATION = Installation(
    family="openmpi",
    version="Open MPI 4",
    mpiexec=Path("mpirun"),
    program=Path("kernel"),
    library=Path("libmpiio_ext.so"),
    python=Path("python3"),
    romio="romio321",
)


def peers(ranks: int) -> list[Peer]:
    return peers_of(INSTALLATION, ranks)


# ---- launches ----


def test_arguments_of_a_launch():
    case = Case(
        title="t",
        pattern=("--pattern", "inter", "--block", "8"),
        ranks=4,
        file_bytes=100,
        file=Path("/f"),
        repeats=3,
        access="split",
        sync=True,
        limit_s=20,
    )
    words = case.arguments()
    for name, value in (
        ("--pattern", "inter"),
        ("--block", "8"),
        ("--bytes", "100"),
        ("--repeats", "3"),
        ("--file", "/f"),
        ("--access", "split"),
        ("--time-limit", "35"),
    ):
        assert words[words.index(name) + 1] == value
    assert "--sync" in words
    plain = Case(title="t", pattern=(), ranks=1, file_bytes=1, file=Path("/f")).arguments()
    assert "--sync" not in plain


def test_output_of_the_kernel():
    records = parse_output('noise\n{"bytes": 1}\n{"bytes": 2}\n')
    assert [record["bytes"] for record in records] == [1, 2]
    assert parse_output("") == []


def launcher(tmp_path: Path, text: str, *, ours: bool = False) -> Peer:
    """Return a peer whose launcher is a shell script."""
    script = tmp_path / "mpiexec"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    installation = Installation(
        family="mpich", version="", mpiexec=script, program=Path("k"), library=Path("l"), python=Path("p")
    )
    return Peer(name="p", title="P", installation=installation, ours=ours)


def a_case(tmp_path: Path, **changes) -> Case:
    return Case(title="case", pattern=(), ranks=1, file_bytes=1, file=tmp_path / "f", **changes)


def test_why_a_launch_gives_nothing(tmp_path):
    late = launches.run_benchmark(launcher(tmp_path, "exec sleep 60"), a_case(tmp_path, limit_s=0.2))
    assert (late.reason, late.records) == ("not done in 0.2 s", [])
    failing = launcher(tmp_path, "echo 'mpiio_bandwidth: rank 0: no' >&2; exit 3")
    failed = launches.run_benchmark(failing, a_case(tmp_path))
    assert failed.reason == "failed (3): mpiio_bandwidth: rank 0: no"


def test_wrong_bytes_are_an_error_of_ours_only(tmp_path):
    text = """echo '{"bytes": 1, "wrong_bytes": 5}'"""
    (tmp_path / "f").touch()
    assert launches.run_benchmark(launcher(tmp_path, text), a_case(tmp_path)).reason == "5 wrong bytes"
    assert not (tmp_path / "f").exists(), "the file is left behind"
    with pytest.raises(launches.WrongDataError, match="P, case: 5 wrong bytes") as raised:
        launches.run_benchmark(launcher(tmp_path, text, ours=True), a_case(tmp_path))
    assert raised.value.exit_status == 3


def test_pretended_nodes_are_for_ours():
    there = on_nodes(peers(4), 4, 2)
    assert {peer.name: peer.environment.get("MPIOX_RANKS_PER_NODE") for peer in there if peer.ours} == {
        "ours_openmpi": "2"
    }
    assert not any("MPIOX_RANKS_PER_NODE" in peer.environment for peer in there if not peer.ours)
    assert on_nodes(peers(4), 4, 0) == peers(4)
    for nodes in (3, 8):
        with pytest.raises(launches.ArgumentError, match="--nodes"):
            on_nodes(peers(4), 4, nodes)


def test_spread():
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0, 3)


# ---- compare ----


class Records:
    """Plays the kernel for `compare`: the same speed for all, OMPIO tuned fails."""

    def __init__(self):
        self.cases: list[Case] = []

    def __call__(self, peer: Peer, case: Case) -> Outcome:
        self.cases.append(case)
        if peer.name == "ompio_tuned":
            return Outcome(reason="failed (1): no")
        seconds = 0.001 if peer.ours else 0.01
        record = {
            "bytes": case.file_bytes,
            "write_s": seconds,
            "rewrite_s": seconds / 2,
            "read_s": seconds,
            "open_close_s": 0.5,
            "wrong_bytes": 0,
            "memory_growth_bytes": 9,
            "write_close_s": seconds,
            "rewrite_close_s": seconds / 2,
            "read_close_s": seconds,
        }
        return Outcome(records=[record] * case.repeats)


def test_compare_results():
    there = [*peers(4), Peer(name="raw", title="raw", installation=INSTALLATION, raw=True)]
    kernel = Records()
    chosen = compare.Options(
        ranks=4,
        file_bytes=1 << 26,
        rounds=2,
        repeats=3,
        patterns=("inter64",),
        file=Path("/f"),
        limit_s=1e6,
        access="independent",
        sync=True,
        nodes=2,
    )
    results = compare.summarize(compare.measure(there, chosen, lambda text: None, kernel), there, ("inter64",))
    assert {case.access for case in kernel.cases} == {"independent"}
    assert all(case.sync for case in kernel.cases)
    assert all(case.rewrite for case in kernel.cases)
    write, rewrite, read = results
    assert (write["op"], rewrite["op"], read["op"]) == ("write", "rewrite", "read")
    assert rewrite["mbytes_per_s"]["raw"] == pytest.approx(2 * write["mbytes_per_s"]["raw"])
    assert write["present"] == ["ompio", "ompi_romio", "ompi_romio_tuned", "ours_openmpi", "raw"]
    assert write["absent"] == {"ompio_tuned": "failed (1): no"}
    assert write["ratio_native"] == pytest.approx(10)
    assert write["ratio_raw"] == pytest.approx(10)
    assert write["memory_growth_bytes"]["ours_openmpi"] == 9
    assert json.loads(json.dumps(results)) == results


def interrupted(monkeypatch, folder: Path, module, kernel, number: int, launch: int, words: list[str]):
    """Run a command, and send it a signal at a launch; return its result, and the text of its file before that."""
    before: list[str] = []

    def run(peer: Peer, case: Case) -> Outcome:
        if len(before) == launch:
            before.append(out.read_text() if out.exists() else "")
            os.kill(os.getpid(), number)
        before.append("")
        return kernel(peer, case)

    monkeypatch.setattr(module, "some_installations", lambda: [INSTALLATION])
    monkeypatch.setattr(module, "run_benchmark", run)
    out = folder / "out.json"
    done = CliRunner().invoke(module.command, [*words, "--path", str(folder), "--json", "-o", str(out)])
    return done, before[launch], json.loads(out.read_text())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_compare_that_is_interrupted_has_what_was_measured(monkeypatch, tmp_path: Path, number: int) -> None:
    """Rows that are done are in the file before the end; the table has the others as far as they go."""
    words = ["--quick", *(f"--pattern={name}" for name in list(compare.PATTERNS)[:3])]
    # Nine launches of a pattern: four native peers are tried, of which one fails.
    done, before, document = interrupted(monkeypatch, tmp_path, compare, Records(), number, 9 + 5, words)
    assert done.exit_code == 130, done.output + repr(done.exception)
    first, second, third = list(compare.PATTERNS)[:3]
    assert {row["pattern"] for row in json.loads(before)["results"]} == {first}
    rows = [row for row in document["results"] if row["pattern"] == second]
    assert len(document["results"]) == 6 and rows[0]["absent"]["raw"] == "interrupted"
    assert "ompio" in rows[0]["present"] and third not in {row["pattern"] for row in document["results"]}
    assert ": interrupted" in done.stdout and "mpiio-ext: interrupted\n" in done.stderr
    assert f"{compare.PATTERNS[first].title}, write, MB/s: " in done.stderr


def test_compare_counts_closing_where_data_is_written_behind():
    there = with_delegates(peers(4), "2", "spawn")
    chosen = compare.Options(
        ranks=4,
        file_bytes=1 << 26,
        rounds=1,
        repeats=1,
        patterns=("inter64",),
        file=Path("/f"),
        limit_s=1e6,
        delegates="2",
    )
    results = compare.summarize(compare.measure(there, chosen, lambda text: None, Records()), there, ("inter64",))
    for result in results:
        plain, behind = (result["mbytes_per_s"][name] for name in ("ours_openmpi", "ours_openmpi_delegates"))
        assert plain == pytest.approx(2 * behind)
        assert result["ours"] == "ours_openmpi"


def test_compare_on_hosts_counts_what_crosses():
    class OnHosts(Records):
        def __call__(self, peer: Peer, case: Case) -> Outcome:
            found = super().__call__(peer, case)
            if found.reason or peer.raw:
                return found
            sent = 3_000_000 if peer.ours else 6_000_000
            more = {
                "hosts": 4,
                "write_sent_bytes": sent,
                "rewrite_sent_bytes": sent + 1,
                "read_sent_bytes": sent + 2,
                "cross_even_bytes": 2_000_000,
                "cross_least_bytes": 3_000_000,
            }
            return Outcome(records=[{**record, **more} for record in found.records])

    there = [*peers(4), Peer(name="raw", title="raw", installation=INSTALLATION, raw=True)]
    chosen = compare.Options(
        ranks=4,
        file_bytes=1 << 26,
        rounds=2,
        repeats=1,
        patterns=("inter64",),
        file=Path("/f"),
        limit_s=1e6,
        hosts=4,
        ranks_per_host=1,
    )
    results = compare.summarize(compare.measure(there, chosen, lambda text: None, OnHosts()), there, ("inter64",))
    write, _, read = results
    assert write["sent_bytes"] == dict.fromkeys(("ompio", "ompi_romio", "ompi_romio_tuned"), 6_000_000) | {
        "ours_openmpi": 3_000_000
    }
    assert read["sent_bytes"]["ours_openmpi"] == 3_000_002
    assert write["cross_bytes"]["ours_openmpi"] == {"even": 2_000_000, "least": 2_000_000}
    assert write["ratio_sent_cross"]["ours_openmpi"] == pytest.approx(1.5)
    assert write["ratio_sent_cross"]["ompio"] == pytest.approx(3)
    assert "4 hosts x 1" in compare._title(chosen)


def test_launches_on_hosts_spread_the_ranks(monkeypatch):
    class Started:
        folder, agent = Path("/shared"), Path("/agent")

        def hosts(self):
            return [1, 2]

        def on(self, k, words):
            return ["on", f"node{k}", *words]

    place = compare.Place(Started(), 2)
    case = Case(title="t", pattern=("--pattern", "inter"), ranks=4, file_bytes=8, file=Path("/shared/f"))
    ours = next(peer for peer in peers(4) if peer.ours)
    words = [str(word) for word in place.command(ours, case)]
    assert words[:3] == ["on", "node1", str(INSTALLATION.mpiexec)]
    assert "node1:2,node2:2" in words
    assert words[-1] == "--wire"
    assert f"LD_PRELOAD={INSTALLATION.library}" in words


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--hosts", "2", "--nodes", "2"], "--hosts goes neither with --nodes nor with --delegates"),
        (["--hosts", "2", "--ranks", "5", "--path", "."], "the hosts have room for 4"),
        (["--rate", "1gbit", "--path", "."], "it needs --hosts"),
        (["--hosts", "2", "--rate", "fast", "--path", "."], "bandwidth 'fast'"),
        (["--delegates", "many"], "n | n% of the ranks, 1% to 100% | per_node=n"),
        (["--path", "/nonexistent/folder"], "no such folder"),
        (["--interface", "hdf5", "--pattern", "inter64"], "has no pattern inter64, only contiguous and blocks3d"),
        (["--interface", "hdf5", "--access", "split"], "goes with --access collective or independent"),
        (["--interface", "hdf5", "--sync"], "not with --sync"),
        (["--ranks", "4", "--nodes", "3", "--path", "."], "cannot be dealt evenly to 3 nodes"),
    ],
)
def test_compare_arguments(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "some_installations", lambda: [INSTALLATION])
    result = CliRunner().invoke(compare.command, arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert not list(tmp_path.iterdir()), "its folder is left behind"


# ---- time ----


def test_time_is_from_the_first_begin_to_the_last_end_of_a_host():
    assert span_of([("a", 1.0, 2.0), ("a", 2.0, 3.5)]) == 2.5, "one rank after the other on one processor"
    assert span_of([("a", 1.0, 2.0), ("b", 101.0, 101.5)]) == 1.0, "hosts have no common clock"
