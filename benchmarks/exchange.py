"""Two-phase I/O between many nodes, simulated: this library beside ROMIO, in time and memory, by phase.

Usage: ``python benchmarks/exchange.py probe machine.json``     parameters, measured on the cluster of namespaces
       ``python benchmarks/exchange.py check machine.json``     the model beside measurements on 2 to 8 hosts
       ``python benchmarks/exchange.py scale machine.json --figures docs/images``   64 to 1,024 nodes x 64 ranks

The model: exchange_model.py. `probe` and `check` need the cluster (docs/project/clusters.md) and take some minutes; a
second `probe` leaves the least of both in the file. `scale` computes on one core for a few minutes, and gives the same
numbers everywhere.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from exchange_loggp import FABRIC, QUIET, Machine, load, save
from exchange_memory import Hints, leader_bytes, native_bytes
from exchange_model import Engine, Outcome, largest_messages_bytes, simulate_native, simulate_ours
from exchange_traffic import Blocks3d, Exchange, Interleaved, Pattern

#: As the micro-benchmark names them, and the bytes of a block; 0: 3-D blocks.
CHECKED = {"inter8": 8, "inter64": 64, "inter4096": 4096, "inter65536": 65536, "blocks3d": 0}
SCALED = {"8 B": 8, "64 B": 64, "4 KiB": 4096, "3-D blocks": 0}
NODES = (64, 256, 1024)
RANKS_PER_NODE = 64
LEADER_RANKS, LEADER_BYTES, CONTROL_SHARE = 10_000, 256 << 20, 0.01
NODE_STORAGE_BYTES_S = 2e9
WINDOW_BYTES, NATIVE_WINDOW_BYTES = 1 << 20, 16 << 20
AS_IT_IS = "as it is"


def pattern_of(block: int, nodes: int, ranks: int, file_bytes: int) -> Pattern:
    """Return a pattern on so many nodes."""
    return Interleaved(nodes, ranks, file_bytes, block) if block else Blocks3d(nodes, ranks, file_bytes)


def exchange_of(way: str, pattern: Pattern, *, near: bool = True, turned: bool = True) -> Exchange:
    """Return the traffic of "ours", with two aggregators a node, or "native", with one and 16 MiB."""
    if way == "ours":
        return Exchange(pattern, min(2, pattern.ranks_per_node), WINDOW_BYTES, near=near, turned=turned)
    return Exchange(pattern, 1, NATIVE_WINDOW_BYTES)


def model(way: str, machine: Machine, engine: Engine, exchange: Exchange, *, write: bool) -> Outcome:
    """Simulate one access."""
    if way == "ours":
        return simulate_ours(exchange, machine, engine, write=write)
    return simulate_native(exchange, machine, write=write)


# ---- probe and check -------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def run_probe(options: argparse.Namespace) -> None:
    """Measure the parameters of each family, and write them."""
    from exchange_measure import probe

    from mpiio_ext.bench.compare.peers import find_installations

    before = load(options.machine) if options.machine.exists() else {}
    machines = {}
    for installation in find_installations():
        found = probe(installation, say)
        machines[installation.family] = least_of(before.get(installation.family, found), found)
    save(options.machine, machines)
    for name, machine in machines.items():
        print(f"{name}: {machine}")


def least_of(one: Machine, other: Machine) -> Machine:
    """Return the least of each cost of two probes of a machine: what else ran meanwhile only added."""
    costs = {name: min(value, getattr(other, name)) for name, value in asdict(one).items() if name.endswith("_s")}
    return replace(other, **costs)


def predicted(row: dict[str, Any], machine: Machine, engine: Engine) -> Outcome:
    """Return the model's outcome for a measured row."""
    from exchange_measure import FILE_BYTES

    pattern = pattern_of(CHECKED[row["pattern"]], row["hosts"], row["ranks_per_host"], FILE_BYTES[row["pattern"]])
    exchange = exchange_of(row["way"], pattern, near=not engine.leaders,  # the first form dealt domains in turn
                           turned=not engine.leaders)
    return model(row["way"], machine, engine, exchange, write=row["operation"] == "rewrite")


def calibrate(rows: list[dict[str, Any]], machine: Machine, engine: Engine) -> Machine:
    """Return the machine with what a call and a round cost beyond the model: from writes on two hosts of one rank.

    Each cost follows one row, whose time the model then gives: a call that of 8 B blocks, a round that of 64 KiB.
    """
    pairs = [row for row in rows if row["hosts"] == 2 and row["ranks_per_host"] == 1 and row["operation"] == "rewrite"]
    for _ in range(4):
        for name, way, pattern in (("window_s", "ours", "inter65536"), ("call_s", "ours", "inter8"),
                                   ("native_round_s", "native", "inter65536")):
            row = next(row for row in pairs if row["way"] == way and row["pattern"] == pattern)
            low, high = 0.0, row["seconds"]
            for _ in range(20):
                middle = (low + high) / 2
                trial = replace(machine, **{name: middle})
                low, high = (low, middle) if predicted(row, trial, engine).seconds > row["seconds"] else (middle, high)
            machine = replace(machine, **{name: low})
    return machine


def run_check(options: argparse.Namespace) -> None:
    """Measure on 2 to 8 hosts, and print the model's times beside."""
    from exchange_measure import measured

    from mpiio_ext.bench.compare.peers import find_installations

    machines = load(options.machine)
    engine = Engine.of_leaders() if options.leaders else Engine()
    if options.measured and options.measured.exists():
        rows = json.loads(options.measured.read_text(encoding="utf-8"))
    else:
        rows = measured(find_installations(), list(CHECKED), options.rounds, say)
        if options.measured:
            options.measured.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    errors: dict[str, list[float]] = {}
    print("| MPI | hosts x ranks | pattern | operation | way | measured ms | model ms | model / measured |")
    print("|---|---|---|---|---|---|---|---|")
    for family in sorted({row["family"] for row in rows}):
        own = [row for row in rows if row["family"] == family and "seconds" in row]
        machine = calibrate(own, machines[family], engine)
        for row in own:
            seconds = predicted(row, machine, engine).seconds
            ratio = seconds / row["seconds"]
            errors.setdefault(f"{family} {row['way']}", []).append(ratio)
            print(f"| {family} | {row['hosts']} x {row['ranks_per_host']} | {row['pattern']} | {row['operation']} | "
                  f"{row['way']} | {1e3 * row['seconds']:.1f} | {1e3 * seconds:.1f} | {ratio:.2f} |")
    for name, ratios in errors.items():
        logs = [math.log(ratio) for ratio in ratios]
        print(f"{name}: model / measured {math.exp(statistics.mean(logs)):.2f} in the mean, within a factor of "
              f"{math.exp(statistics.median(map(abs, logs))):.2f} in half of {len(logs)} cases, "
              f"{math.exp(max(map(abs, logs))):.2f} in all")


# ---- scale -----------------------------------------------------------------------------------------------------------


def machines_of(path: Path) -> dict[str, Machine]:
    """Return the machines that are scaled: nodes of 64 cores, storage of 2 GB/s a node; TCP as probed, and a fabric."""
    probed = load(path)
    chosen = probed.get("mpich") or next(iter(probed.values()))
    tcp = replace(chosen.on_nodes_of_their_own(64).storing(NODE_STORAGE_BYTES_S), **QUIET)
    return {"TCP as measured": tcp, "fabric (assumed)": FABRIC}


def scaled_row(name: str, machine: Machine, title: str, nodes: int, exchanges: dict[str, Exchange], *, write: bool
               ) -> dict[str, Any]:
    """Simulate both ways on so many nodes."""
    row: dict[str, Any] = {"machine": name, "pattern": title, "nodes": nodes, "operation": "write" if write else "read"}
    for way in ("ours", "native"):
        out = model(way, machine, Engine(), exchanges[way], write=write)
        row[way] = {"seconds": out.seconds, "phases_s": out.phases_s, "messages": out.messages,
                    "crossed_bytes": out.crossed_bytes}
    row["control_share"] = row["ours"]["phases_s"]["control"] / row["ours"]["seconds"]
    row["gain"] = row["native"]["seconds"] / row["ours"]["seconds"]
    return row


def memory_row(title: str, nodes: int, rank_bytes: int) -> dict[str, Any]:
    """Return memory by term of a leader, with pools and with destinations for each node, and of a native aggregator."""
    pattern = pattern_of(SCALED[title], nodes, RANKS_PER_NODE, nodes * RANKS_PER_NODE * rank_bytes)
    largest = largest_messages_bytes(Exchange(pattern, 2, WINDOW_BYTES))
    return {
        "pattern": title, "nodes": nodes, "ranks": nodes * RANKS_PER_NODE,
        "ours": leader_bytes(nodes, RANKS_PER_NODE, Hints()),
        "each": leader_bytes(nodes, RANKS_PER_NODE, Hints(destinations="each"), largest),
        "native": native_bytes(nodes, RANKS_PER_NODE, nodes, rank_bytes, pattern.piece_bytes, Hints()),
    }


def variant_rows(machines: dict[str, Machine], nodes: int, rank_bytes: int) -> list[dict[str, Any]]:
    """Simulate writes of this library as it is, reads, too, and writes with parts of it changed."""
    plain, ends = Engine(), Engine(ends=True)
    variants: dict[str, tuple[Engine, dict[str, bool]]] = {
        AS_IT_IS: (plain, {}),
        "before: messages without data": (ends, {}),
        "before: domains in turn over the nodes": (plain, {"near": False}),
        "before: both": (ends, {"near": False}),
        "before: aggregators begin with their first windows": (plain, {"turned": False}),
        "the first form: leaders alone, domains in turn": (Engine.of_leaders(), {"near": False, "turned": False}),
    }
    rows = []
    for title in SCALED:
        pattern = pattern_of(SCALED[title], nodes, RANKS_PER_NODE, nodes * RANKS_PER_NODE * rank_bytes)
        exchanges: dict[tuple[str, ...], Exchange] = {}
        for words, (engine, placed) in variants.items():
            if tuple(placed) not in exchanges:
                exchanges[tuple(placed)] = exchange_of("ours", pattern, **placed)
            exchange = exchanges[tuple(placed)]
            for name, machine in machines.items():
                say(f"{nodes} nodes, {title}, {name}, {words}")
                for write in (True, False) if words == AS_IT_IS else (True,):
                    out = model("ours", machine, engine, exchange, write=write)
                    rows.append({"machine": name, "pattern": title, "nodes": nodes, "variant": words,
                                 "operation": "write" if write else "read", "seconds": out.seconds,
                                 "control_share": out.phases_s["control"] / out.seconds,
                                 "crossed_bytes": out.crossed_bytes, "messages": out.messages})
    return rows


def print_variants(rows: list[dict[str, Any]]) -> None:
    """Print the table of :func:`variant_rows`."""
    print(f"\nwrites on {rows[0]['nodes']:,} nodes: ms (control, % of the time)")
    names = list(dict.fromkeys((row["machine"], row["pattern"]) for row in rows))
    print("| variant | " + " | ".join(f"{machine}: {pattern}" for machine, pattern in names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for variant in dict.fromkeys(row["variant"] for row in rows):
        cells = [f"{1e3 * row['seconds']:.1f} ({100 * row['control_share']:.2f})" for row in rows
                 if row["variant"] == variant and row["operation"] == "write"]
        print(f"| {variant} | {' | '.join(cells)} |")


def run_scale(options: argparse.Namespace) -> None:
    """Simulate, print tables, write JSON and figures."""
    machines = machines_of(options.machine)
    rows, memory = [], []
    for nodes in options.nodes:
        for title in SCALED:
            pattern = pattern_of(SCALED[title], nodes, RANKS_PER_NODE, nodes * RANKS_PER_NODE * options.rank_bytes)
            exchanges = {way: exchange_of(way, pattern) for way in ("ours", "native")}
            for name, machine in machines.items():
                for write in (True, False):
                    say(f"{nodes} nodes, {title}, {name}, {'write' if write else 'read'}")
                    rows.append(scaled_row(name, machine, title, nodes, exchanges, write=write))
            memory.append(memory_row(title, nodes, options.rank_bytes))
    at_most = -(-LEADER_RANKS // RANKS_PER_NODE)
    target = [memory_row(title, at_most, options.rank_bytes) for title in SCALED]
    variants = variant_rows(machines, at_most, options.rank_bytes)
    print_tables(rows, memory, target, [row for row in variants if row["variant"] == AS_IT_IS])
    print_variants(variants)
    document = {"units": {"seconds": "s", "phases_s": "s that the busiest node is busy", "ours": "bytes, by term"},
                "machines": {name: asdict(machine) for name, machine in machines.items()},
                "rank_bytes": options.rank_bytes, "times": rows, "memory": memory, "target": target,
                "variants": variants}
    if options.json:
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")
    if options.figures:
        from exchange_figures import draw

        draw(document, options.figures)


def print_tables(rows: list[dict[str, Any]], memory: list[dict[str, Any]], target: list[dict[str, Any]],
                 control: list[dict[str, Any]]) -> None:
    """Print tables in Markdown."""
    print("| machine | pattern | nodes | write: ours s | native s | native ÷ ours | read: ours s | native s | "
          "native ÷ ours |\n|---|---|---|---|---|---|---|---|---|")
    for write, read in zip(rows[::2], rows[1::2], strict=True):
        cells = [f"{one[way]['seconds']:.3g}" if way != "gain" else f"{one['gain']:.1f}"
                 for one in (write, read) for way in ("ours", "native", "gain")]
        print(f"| {write['machine']} | {write['pattern']} | {write['nodes']:,} | {' | '.join(cells)} |")
    print("\n| pattern | nodes | leader MiB | with destinations for each node | native aggregator MiB |")
    print("|---|---|---|---|---|")
    for row in [*memory, *target]:
        cells = [f"{sum(row[way].values()) / 2**20:,.1f}" for way in ("ours", "each", "native")]
        print(f"| {row['pattern']} | {row['nodes']:,} | {' | '.join(cells)} |")
    worst = max(sum(row["ours"].values()) for row in target)
    print(f"\nleader at {target[0]['ranks']:,} ranks: {worst / 2**20:.1f} MiB "
          f"({'meets' if worst <= LEADER_BYTES else 'misses'} {LEADER_BYTES >> 20} MiB)")
    for row in control:
        share = row["control_share"]
        met = "meets" if share <= CONTROL_SHARE else "misses"
        print(f"control at {target[0]['ranks']:,} ranks, {row['machine']}, {row['pattern']}, {row['operation']}: "
              f"{100 * share:.2f} % of the time ({met} {100 * CONTROL_SHARE:.0f} %)")


def parse() -> argparse.Namespace:
    """Return the options."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("probe", "measure parameters"), ("check", "compare with measurements"), ("scale", "simulate")):
        one = commands.add_parser(name, help=text)
        one.add_argument("machine", type=Path, help="file of the parameters")
        if name == "check":
            one.add_argument("--rounds", type=int, default=2, help="launches of each case (default: 2)")
            one.add_argument("--measured", type=Path, help="measurements: read where the file is there, else written")
            one.add_argument("--leaders", action="store_true", help="model leaders that send and place alone")
        if name == "scale":
            one.add_argument("--nodes", type=int, nargs="+", default=list(NODES))
            one.add_argument("--rank-bytes", type=int, default=1 << 19, help="data of a rank (default: 512 KiB)")
            one.add_argument("--json", type=Path)
            one.add_argument("--figures", type=Path, help="folder for exchange-scale.svg and exchange-memory.svg")
    return parser.parse_args()


def main() -> None:
    """Do what the command line asks."""
    options = parse()
    {"probe": run_probe, "check": run_check, "scale": run_scale}[options.command](options)


if __name__ == "__main__":
    main()
