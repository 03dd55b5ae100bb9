"""Delegates in the bench: the method and its options, what was counted, table, comparison, report; without MPI."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from rich.console import Console

from mpiio_ext import delegates
from mpiio_ext.bench import extension
from mpiio_ext.bench.compare.peers import Installation, peers_of, with_delegates
from mpiio_ext.bench.execution.counters import Counted, change_of_each, with_counters
from mpiio_ext.bench.execution.counters import with_delegates as counted_delegates
from mpiio_ext.bench.methods import DEFAULT
from mpiio_ext.bench.results.files import write_results
from mpiio_ext.bench.results.table import print_table
from mpiio_ext.common.results import Row, measure, with_ratios
from mpiio_ext.report.load import load, load_all
from mpiio_ext.report.page import render
from mpiio_ext.report.reproduce import command as reproduce
from mpiio_ext.report.words import done_by_extension, marks
from support import report_results
from support.bench_options import parse

INSTALLATION = Installation(
    family="openmpi",
    version="Open MPI 4",
    mpiexec=Path("mpirun"),
    program=Path("kernel"),
    library=Path("libmpiio_ext.so"),
    python=Path("python3"),
    romio="romio321",
)


# ---- methods and options ---------------------------------------------------------------------------------------------


CHOSEN = (
    ("--delegates", "25%"),
    ("-m", "native,delegates+independent+mpiox_delegate_cache=1m", "--delegate-mode", "thread"),
    ("-m", "native,auto", "--delegates", "2"),
    ("-m", "native,auto,delegates"),
    ("-m", "auto"),
)


def test_methods_and_the_option_that_adds_one(expected):
    """Methods that are named stay as they are."""
    options = {" ".join(words): parse(*words) for words in CHOSEN}
    for each in options.values():
        rows = ((method.name, method.delegated, method.independent, method.hints_for(4)) for method in each.methods)
        expected([f"{name}: delegated: {there}, independent: {alone}, {hints}" for name, there, alone, hints in rows])
    assert [method.delegated for method in parse("--delegates", "25%").methods] == [False] * len(DEFAULT) + [True]
    assert all(each.methods_given for each in options.values())
    method = options[" ".join(CHOSEN[1])].methods[1]
    assert method.job_hints == {"mpiox_delegates": "1", "mpiox_delegate_mode": "thread", "mpiox_delegate_cache": "1m"}
    assert not any(item.delegated for item in parse().methods)


@pytest.mark.parametrize("value", ["0", "0%", "per_node=0"])
def test_none_are_no_delegates(value):
    assert not parse("-m", f"auto+mpiox_delegates={value}").methods[0].delegated
    assert parse("-m", "auto+mpiox_delegates=1").methods[0].delegated


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--delegates", "many"], "n | n% of the ranks, 1% to 100% | per_node=n"),
        (["--delegate-mode", "fork"], "'spawn', 'split', 'process', 'thread', 'auto'"),
        (["-m", "delegates,delegates+mpiox_delegates=3"], "all files of a job have the same ones"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(click.ClickException) as caught:
        parse(*arguments)
    assert message in caught.value.format_message()


# ---- counters --------------------------------------------------------------------------------------------------------


def row(strategy: str, operation: str, bandwidth: float = 100.0, **more) -> Row:
    more |= {"variant": "interleaved_64", "label": "interleaved blocks of 64 B", "data_s": 0.01}
    more |= {"bandwidth_mb_per_s": bandwidth, "bandwidth_total_mb_per_s": bandwidth / 2}
    return report_results.row("interleaved", strategy, operation, **more)


def of_rank(**values):
    names = (
        *report_results.COUNTERS,
        "delegated_writes",
        "delegated_reads",
        "delegated_bytes_written",
        "delegated_bytes_read",
        "bypass_bytes_written",
        "bypass_bytes_read",
    )
    texts = {"partition": "", "reason": "", "delegation": "2 delegates, spawn: as requested"}
    return {**dict.fromkeys(names, 0), "request_size_log2": (0,) * 48, **texts, **values}


def of_delegate(size: int = 0, **values):
    names = [counter.name for counter in delegates.counters()]
    sizes = tuple(values.get("flush_requests", 0) if power == size else 0 for power in range(48))
    return {**dict.fromkeys(names, 0), "flush_size_log2": sizes, **values}


def test_changes_of_delegates():
    before = {0: of_delegate(20, flush_requests=5, hits=10)}
    now = {0: of_delegate(20, flush_requests=7, hits=11), 1: of_delegate(16, flush_requests=2)}
    moved = change_of_each(now, before)
    assert (moved[0]["flush_requests"], moved[0]["hits"], moved[0]["flush_size_log2"][20]) == (2, 1, 2)
    assert moved[1] == now[1]
    assert change_of_each({}, before) == {}


def made(operation: str, *ranks: Counted) -> Row:
    return counted_delegates(with_counters(row("delegates", operation), ranks), ranks)


def counted(statistics, *seen) -> Counted:
    """Return what a rank counted: of the library, and of each delegate that it sees."""
    return Counted(extension=statistics, system_calls=(), delegates=dict(enumerate(seen)))


WRITES = of_rank(
    independent_writes=5,
    delegated_writes=5,
    delegated_bytes_written=1000,
    bypass_bytes_written=100,
    write_requests=1,
    write_request_bytes=100,
)
READS = of_rank(independent_reads=1, delegated_reads=1, delegated_bytes_read=50, delegated_writes=9)
CACHED = {"hits": 90, "misses": 10}
FIRST = of_delegate(
    20, flush_requests=3, flush_bytes=3 << 20, fills=7, fill_requests=7, prefetched=4, prefetch_used=3, **CACHED
)
LATER = of_delegate(20, flush_requests=4, flush_bytes=4 << 20, **CACHED)
ANOTHER = of_delegate(16, flush_requests=2, flush_bytes=1 << 17, hits=5)
BOTH_WAYS = of_delegate(20, flush_requests=3, flush_bytes=300, fill_requests=7, fill_bytes=70)
COLLECTIVE = of_rank(collective_writes=1, reason="two-phase", write_requests=4, partition="even")
#: Operations, and what the ranks counted.
PHASES = {
    # two ranks see delegate 0, one of them a little later; delegate 1 is on another node
    "each delegate is counted once": ("write", [counted(WRITES, FIRST), counted(WRITES, LATER, ANOTHER)]),
    "reads are told from writes": ("read", [counted(READS, BOTH_WAYS)]),
    "a phase that reads and writes": ("both", [counted(READS, BOTH_WAYS)]),
    # requests of an idle delegate are not those of the phase, and the reason stays that of the other way
    "nothing went through delegates": ("write", [counted(COLLECTIVE, of_delegate(flush_requests=3))]),
    "without the library": ("write", [Counted(extension=None, system_calls=(None, None))]),
}


@pytest.mark.parametrize("name", PHASES)
def test_what_delegates_have_done(name, expected):
    operation, ranks = PHASES[name]
    before, after = row("delegates", operation), made(operation, *ranks)
    changed = {name: getattr(after, name) for name in Row.__slots__ if getattr(after, name) != getattr(before, name)}
    sizes = enumerate(changed.pop("request_size_log2", None) or ())
    expected({**changed, "requests of 2^n B": {power: count for power, count in sizes if count}})


def test_no_delegates_of_this_process():
    assert extension.delegate_statistics() == {}
    assert delegates.own() == ()


# ---- results ---------------------------------------------------------------------------------------------------------

SEEN = {
    "delegates": 2,
    "delegated_accesses": 40,
    "delegated_bytes": 3_000_000,
    "bypass_bytes": 1_000_000,
    "cache_hits": 999,
    "cache_misses": 1,
    "prefetched_pages": 8,
    "prefetch_used_pages": 6,
    "requests": 12,
    "request_bytes": 12 << 20,
    "requests_source": "extension",
    "independents_taken_over": 40,
    "collectives_taken_over": 0,
    "reason": "independent accesses through delegates",
    "delegation": "2 delegates, spawn: as requested",
}
NONE = {**SEEN, "delegated_accesses": 0, "delegation": "none: spawn: no free slots", "reason": "direct"}
CONFIGURATION = {"delegates": "2", "delegate_mode": "thread", "repetitions": 3}


#: Rows of a table: what did not go through delegates has a mark, and a note that says why.
TABLES = {
    "through delegates": [row("native", "write"), row("delegates", "write", 400.0, **SEEN)],
    "no delegates": [row("native", "write"), row("delegates", "write", **NONE)],
    "another way": [row("delegates", "write", **{**NONE, "delegation": "2 delegates", "reason": "two-phase: small"})],
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name, expected):
    console = Console(file=io.StringIO(), width=150)
    print_table(console, measure(with_ratios(TABLES[name])))
    expected("\n".join(line.rstrip() for line in console.file.getvalue().splitlines()))


def test_results_and_report(tmp_path, expected):
    rows = with_ratios(
        [
            row("native", "write"),
            row("delegates", "write", 400.0, **SEEN),
            row("delegates+independent", "write", **NONE),
        ]
    )
    environment = {"ranks": 4, "path": "/data"}
    write_results(tmp_path, environment=environment, configuration=CONFIGURATION, rows=rows, absent=[], failure=None)
    summary = json.loads((tmp_path / "results.json").read_text())["summary"]
    found = load(tmp_path / "results.json").rows
    html = render(*load_all([tmp_path / "results.json"]), title="x").text
    assert "40 accesses through 2 delegates" in html
    assert "no access went through delegates, although the method asks for them" in html
    accesses = [one["delegated_accesses"] for one in summary]
    expected({"accesses": accesses, "done": [f"{marks(one)} {done_by_extension(one)}".strip() for one in found]})


def test_the_command_that_measures_a_row_again():
    key = SimpleNamespace(strategy="delegates", interface="mpiio", variant="interleaved_64")
    measured = SimpleNamespace(key=key, last=SimpleNamespace(ranks=4, kind="pattern", workload="interleaved"))
    words = shlex.split(reproduce({}, CONFIGURATION, measured))  # type: ignore[arg-type]
    assert words[words.index("--delegates") + 1] == "2"
    assert words[words.index("--delegate-mode") + 1] == "thread"
    assert parse(*words[words.index("mpiio_ext.bench") + 1 :]).methods[1].job_hints["mpiox_delegates"] == "2"
    key.strategy = "auto"
    assert "--delegates" not in reproduce({}, CONFIGURATION, measured)  # type: ignore[arg-type]


# ---- compare ---------------------------------------------------------------------------------------------------------


def test_peers_with_delegates():
    peers = peers_of(INSTALLATION, 4)
    assert with_delegates(peers, "", "spawn") == peers
    more = with_delegates(peers, "2", "thread")
    assert [peer.name for peer in more] == [*(peer.name for peer in peers), "ours_openmpi_delegates"]
    assert more[-1].hints == {"mpiox_delegates": "2", "mpiox_delegate_mode": "thread"}
    assert more[-1].ours
    assert [peer.until_close for peer in more] == [False] * len(peers) + [True]
    assert "mpiox_delegates=2" in more[-1].command(4, ["--x"])
