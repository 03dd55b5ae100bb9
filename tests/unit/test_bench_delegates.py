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


def test_each_delegate_is_counted_once():
    """Two ranks see delegate 0, one of them a little later; delegate 1 is on another node."""
    seen = of_delegate(
        20,
        flush_requests=3,
        flush_bytes=3 << 20,
        hits=90,
        misses=10,
        fills=7,
        fill_requests=7,
        prefetched=4,
        prefetch_used=3,
    )
    later = of_delegate(20, flush_requests=4, flush_bytes=4 << 20, hits=90, misses=10)
    there = of_delegate(16, flush_requests=2, flush_bytes=1 << 17, hits=5)
    statistics = of_rank(
        independent_writes=5,
        delegated_writes=5,
        delegated_bytes_written=1000,
        bypass_bytes_written=100,
        write_requests=1,
        write_request_bytes=100,
    )
    result = made(
        "write",
        Counted(extension=statistics, system_calls=(), delegates={0: seen}),
        Counted(extension=statistics, system_calls=(), delegates={0: later, 1: there}),
    )
    assert (result.delegates, result.delegated_accesses) == (2, 10)
    assert (result.delegated_bytes, result.bypass_bytes) == (2000, 200)
    assert (result.cache_hits, result.cache_misses) == (95, 10)
    assert (result.prefetched_pages, result.prefetch_used_pages) == (4, 3)
    assert result.requests == 2 + 4 + 2
    assert result.request_bytes == 200 + (4 << 20) + (1 << 17)
    assert result.request_size_log2 is not None
    assert (result.request_size_log2[16], result.request_size_log2[20]) == (2, 4)
    assert (result.reason, result.delegation) == (
        "independent accesses through delegates",
        "2 delegates, spawn: as requested",
    )


def test_reads_are_told_from_writes():
    seen = of_delegate(20, flush_requests=3, flush_bytes=300, fill_requests=7, fill_bytes=70)
    statistics = of_rank(independent_reads=1, delegated_reads=1, delegated_bytes_read=50, delegated_writes=9)
    rank = Counted(extension=statistics, system_calls=(), delegates={0: seen})
    read = made("read", rank)
    assert (read.delegated_accesses, read.delegated_bytes, read.requests, read.request_bytes) == (1, 50, 7, 70)
    assert read.request_size_log2 is not None
    assert sum(read.request_size_log2) == 0
    both = made("both", rank)
    assert (both.delegated_accesses, both.requests, both.request_bytes) == (10, 10, 370)


def test_nothing_went_through_delegates():
    """Requests of an idle delegate are not those of the phase, and the reason stays that of the other way."""
    statistics = of_rank(collective_writes=1, reason="two-phase", write_requests=4, partition="even")
    result = made("write", Counted(extension=statistics, system_calls=(), delegates={0: of_delegate(flush_requests=3)}))
    assert (result.delegated_accesses, result.requests, result.reason) == (0, 4, "two-phase")
    without = made("write", Counted(extension=None, system_calls=(None, None)))
    assert (without.delegates, without.delegated_accesses, without.delegation) == (0, 0, "")


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


def shown(*rows: Row) -> str:
    console = Console(file=io.StringIO(), width=150)
    print_table(console, measure(with_ratios(rows)))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_table_says_what_did_not_go_through_delegates():
    text = shown(row("native", "write"), row("delegates", "write", 400.0, **SEEN))
    assert "†" not in text
    assert "count closing" in text
    text = shown(row("native", "write"), row("delegates", "write", **NONE))
    assert "delegates†" in text
    assert "† no access went through delegates: spawn: no free slots." in text
    text = shown(row("delegates", "write", **{**NONE, "delegation": "2 delegates", "reason": "two-phase: small"}))
    assert "† no access went through delegates: two-phase: small." in text


def test_results_and_report(tmp_path):
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
    assert summary[1]["delegated_accesses"] == 40
    assert summary[0]["delegated_accesses"] is None
    loaded = load(tmp_path / "results.json")
    assert not isinstance(loaded, list)
    _, with_them, without = loaded.rows  # type: ignore[union-attr]
    said = done_by_extension(with_them)
    for part in (
        "40 accesses through 2 delegates",
        "3.0 MB in their pages, 1.0 MB past them",
        "99.9 % of 1,000 page accesses found the page cached",
        "6 of 8 pages read ahead were used",
    ):
        assert part in said, said
    assert "nothing went through delegates (spawn: no free slots)" in done_by_extension(without)
    assert (marks(with_them), marks(without)) == ("", "†")
    html = render(*load_all([tmp_path / "results.json"]), title="x").text
    assert "40 accesses through 2 delegates" in html
    assert "no access went through delegates, although the method asks for them" in html


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
