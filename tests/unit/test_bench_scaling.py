"""Launches, statistics, JSON and picture of `compare` and `scaling`, without MPI: a function plays the kernel."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from mpiio_ext.bench.compare import compare, launches, scaling
from mpiio_ext.bench.compare.launches import Case, Outcome, on_nodes, parse_output
from mpiio_ext.bench.compare.peers import Installation, Peer, peers_of, with_delegates
from mpiio_ext.bench.compare.scaling import (
    CLAIM_BYTES,
    Options,
    Samples,
    collective_buffers_bytes,
    measure,
    plan,
    summarize,
)
from mpiio_ext.bench.compare.scaling_plot import families, plot_scaling
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
HINTS = {"cb_nodes": "2", "cb_buffer_size": "1048576", "mpiox_buffers": "2"}


def peers(ranks: int) -> list[Peer]:
    return peers_of(INSTALLATION, ranks)


def options(**changes) -> Options:
    values = {
        "series": ("ranks_inter64", "pieces_inter"),
        "rank_counts": (1, 2, 3),
        "ranks": 2,
        "rank_series_bytes": 1 << 20,
        "pieces_series_bytes": 10**6,
        "pieces_most": 10**5,
        "rounds": 2,
        "repeats": 2,
        "access": "collective",
        "limit_s": 20.0,
        "memory_limit_bytes": 1 << 30,
        "file": Path("/nowhere/f"),
    }
    return Options(**(values | changes))


class Kernel:
    """Plays the kernel: OMPIO needs a second, its tuned form half of one, everything else two, this library 1/10."""

    def __init__(self, too_many_pieces: int = 10**9):
        self.too_many_pieces = too_many_pieces
        self.launches: list[tuple[str, Case]] = []

    def __call__(self, peer: Peer, case: Case) -> Outcome:
        self.launches.append((peer.name, case))
        block = int(case.pattern[3])
        if peer.name == "ompio" and case.file_bytes // block >= self.too_many_pieces:
            return Outcome(reason="not done in 20 s", exhausted=True)
        seconds = {"ompio": 1.0, "ompio_tuned": 0.5, "ours_openmpi": 0.1}.get(peer.name, 2.0)
        record = {
            "bytes": case.file_bytes,
            "write_s": seconds,
            "read_s": seconds / 2,
            "open_close_s": 0.01,
            "wrong_bytes": 0,
            "memory_growth_bytes": 5 << 20,
        }
        if case.memory:
            record |= {"private_growth_bytes": 1 << 20, "shared_growth_bytes": 4 << 20, "mapped_file_growth_bytes": 0}
        return Outcome(records=[record] * case.repeats, hints=HINTS if case.memory and peer.ours else {})


def measured(kernel: Kernel, chosen: Options):
    points = plan(chosen)
    found = measure(points, peers, chosen, lambda text: None, kernel)
    return points, summarize(found, points, peers, chosen.rounds)


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
        memory=True,
        memory_limit_bytes=7,
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
        ("--memory-limit", "7"),
        ("--time-limit", "35"),
    ):
        assert words[words.index(name) + 1] == value
    assert {"--sync", "--memory"} <= set(words)
    plain = Case(title="t", pattern=(), ranks=1, file_bytes=1, file=Path("/f")).arguments()
    assert not {"--sync", "--memory", "--memory-limit"} & set(plain)


def test_output_of_the_kernel():
    records, hints = parse_output('noise\n{"hints": {"cb_nodes": "2"}}\n{"bytes": 1}\n{"bytes": 2}\n')
    assert [record["bytes"] for record in records] == [1, 2]
    assert hints == {"cb_nodes": "2"}
    assert parse_output("") == ([], {})


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
    assert (late.reason, late.exhausted, late.records) == ("not done in 0.2 s", True, [])
    failing = launcher(tmp_path, "echo 'mpiio_bandwidth: rank 0: no' >&2; exit 3")
    failed = launches.run_benchmark(failing, a_case(tmp_path))
    assert (failed.reason, failed.exhausted) == ("failed (3): mpiio_bandwidth: rank 0: no", False)
    short = launches.run_benchmark(failing, a_case(tmp_path, memory_limit_bytes=1 << 20))
    assert short.exhausted
    assert "at most 1048576 bytes a rank" in short.reason


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


# ---- scaling ----


def test_points():
    points = plan(options(series=tuple(scaling.SERIES), pieces_most=10**8, pieces_series_bytes=10**8))
    assert [(p.ranks, p.block_bytes) for p in points if p.series == "ranks_inter4096"] == [
        (1, 4096),
        (2, 4096),
        (3, 4096),
    ]
    for point in points:
        assert point.file_bytes % (point.block_bytes * (point.ranks if "ranks" in point.series else 1)) == 0
    pieces = [p for p in points if p.series == "pieces_inter"]
    assert [p.pieces for p in pieces] == [10**k for k in range(3, 9)]
    assert {p.file_bytes for p in pieces} == {10**8}
    assert pieces[-1].block_bytes == 1
    assert max(p.pieces for p in points if p.series == "pieces_random") == 10**7


def test_launches_are_interleaved_and_rotate():
    kernel = Kernel()
    measured(kernel, options(series=("ranks_inter64",), rank_counts=(2,)))
    names = [peer.name for peer in peers(2)]
    assert [name for name, _ in kernel.launches] == names + names[1:] + names[:1]
    assert {case.memory_limit_bytes for name, case in kernel.launches if name.startswith("ours")} == {0}
    assert {case.memory_limit_bytes for name, case in kernel.launches if name == "ompio"} == {1 << 30}
    assert len(kernel.launches) == scaling.launches_of(
        plan(options(series=("ranks_inter64",), rank_counts=(2,))), peers, options()
    )


def test_medians_and_ratios():
    points, results = measured(Kernel(), options())
    assert len(results) == 2 * len(points)
    row = next(r for r in results if r["series"] == "pieces_inter" and r["pieces"] == 1000 and r["op"] == "write")
    assert row["best_native"] == "ompio_tuned"
    assert row["ratio_native"] == pytest.approx(5.0)
    assert row["ratio_native_by_peer"] == {"ours_openmpi": pytest.approx(5.0)}
    assert row["spread_ratio_native"]["ours_openmpi"] == pytest.approx([5.0, 5.0])
    assert row["seconds"]["ompio"] == 1.0
    assert row["mbytes_per_s"]["ours_openmpi"] == pytest.approx(10.0)
    assert row["spread_mbytes_per_s"]["ompio"] == [1.0, 1.0]
    assert row["absent"] == {}


def test_medians_are_over_rounds():
    samples = Samples(rounds=[[{"bytes": 10**6, "write_s": s} for s in part] for part in ([1.0, 0.5], [0.25, 0.1])])
    assert samples.mbytes_per_s("write") == [1.0, 2.0, 4.0, 10.0]
    assert samples.of_round(0, "write") == 1.5
    assert samples.of_round(2, "write") is None


def test_a_native_peer_is_dropped_from_where_it_exceeds_the_limit():
    kernel = Kernel(too_many_pieces=10**4)
    _, results = measured(kernel, options(series=("pieces_inter",)))
    asked = [case.file_bytes // int(case.pattern[3]) for name, case in kernel.launches if name == "ompio"]
    assert asked == [1000] * 3 + [10**4], "no launch after the first that exceeds the limit"
    reasons = [row["absent"].get("ompio", "") for row in results if row["op"] == "write"]
    assert reasons == ["", "not done in 20 s", "dropped at 10000 pieces: not done in 20 s"]
    assert [("ompio" in row["mbytes_per_s"]) for row in results if row["op"] == "write"] == [True, False, False]


def test_memory_is_held_against_the_claim():
    _, results = measured(Kernel(), options(series=("pieces_inter", "pieces_random")))
    for row in results:
        assert row["memory_growth_bytes"]["ours_openmpi"] == 5 << 20
        assert row["shared_growth_bytes"]["ours_openmpi"] == 4 << 20
        assert row["private_growth_bytes"]["ompio"] == 1 << 20
        assert row["collective_buffers_bytes"] == {"ours_openmpi": 4 << 20}
        regular = row["series"] == "pieces_inter"
        assert row["memory_claim_bytes"] == ({"ours_openmpi": (4 << 20) + CLAIM_BYTES} if regular else {})
    assert scaling.above_claim(results) == []
    results[0]["memory_growth_bytes"]["ours_openmpi"] = 7 << 20
    (line,) = scaling.above_claim(results)
    assert "1,000 pieces" in line
    assert "7,340,032 B" in line


@pytest.mark.parametrize("hints", [{}, {**HINTS, "cb_nodes": "0"}, {**HINTS, "cb_nodes": "many"}])
def test_collective_buffers_that_hints_do_not_say(hints):
    assert collective_buffers_bytes(hints) is None


def test_results_are_json_and_every_column_has_its_unit():
    _, results = measured(Kernel(), options())
    assert json.loads(json.dumps(results)) == results
    names = {"series", "pattern", "op", "best_native", "absent"}
    assert set(results[0]) - names == set(scaling.UNITS)


def test_picture(tmp_path):
    _, results = measured(Kernel(too_many_pieces=10**5), options(series=tuple(scaling.SERIES)))
    titles = {peer.name: peer.title for peer in peers(2)}
    plot_scaling(results, titles, tmp_path / "a.svg")
    plot_scaling(results, titles, tmp_path / "b.svg")
    text = (tmp_path / "a.svg").read_text()
    assert text.startswith("<svg") and "collective buffers + 2 MiB" in text
    assert text == (tmp_path / "b.svg").read_text(), "the same results give the same file"
    plot_scaling([row for row in results if row["series"] == "pieces_inter"], titles, tmp_path / "c.png")


def test_best_of_default_and_tuned():
    assert families({"ompio": 1.0, "ompio_tuned": 2.0, "ours": 3.0}) == {"ompio": 2.0, "ours": 3.0}
    assert families({"ompio": 1.0, "ompio_tuned": 2.0}, largest=False) == {"ompio": 1.0}


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


def test_scaling_that_is_interrupted_has_what_was_measured(monkeypatch, tmp_path: Path) -> None:
    words = ["--quick", "--series", "ranks_inter64", "--rank-counts", "1,2,3", "--rounds", "1", "--repeats", "1"]
    launch = len(peers(1)) + 1
    done, before, document = interrupted(monkeypatch, tmp_path, scaling, Kernel(), signal.SIGTERM, launch, words)
    assert done.exit_code == 130, done.output + repr(done.exception)
    assert {row["ranks"] for row in json.loads(before)["results"]} == {1}
    assert {row["ranks"] for row in document["results"]} == {1, 2} and "MB/s" in done.stdout
    assert "mpiio-ext: interrupted\n" in done.stderr


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


def test_scaling_arguments(tmp_path):
    result = CliRunner().invoke(scaling.command, ["--rank-counts", "1,x", "--path", str(tmp_path)])
    assert result.exit_code == 2
    assert "'x' is neither a number nor a range" in result.output


# ---- time ----


def test_time_is_from_the_first_begin_to_the_last_end_of_a_host():
    assert span_of([("a", 1.0, 2.0), ("a", 2.0, 3.5)]) == 2.5, "one rank after the other on one processor"
    assert span_of([("a", 1.0, 2.0), ("b", 101.0, 101.5)]) == 1.0, "hosts have no common clock"
