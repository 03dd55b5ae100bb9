"""What `auto` decides, against the best method of the lock model: what is lost, and what deciding costs.

    python benchmarks/auto_decision.py [--points 500] [--seed N]... [--realistic] [--json FILE]

Geometries are those of tests/support/partition_grid.py, 500 of each of 24 seeds unless told otherwise; --realistic:
stripes of 1 MiB at least, windows of a stripe at least, up to 512 aggregators. Three ways to decide are compared: the
rules alone, rules and estimate (which is `auto`), and running the lock model on every method, which is what the others
are measured by. Regret: time of the way that is taken / time of the best one, in the lock model. Cost: processor time
of a decision. "with its cost": as if each decision were made for one access; a collective that accesses as much again
further on looks its decision up.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import time
from pathlib import Path

import click
import numpy as np

from mpiio_ext.partitioning import Choice, choose

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.partition_grid import Point, draw, simulated

_MIB = 2**20
_SEEDS = (20081115, 777, *range(11, 33))
_QUANTILES = (0.5, 0.9, 0.99, 1.0)


def _is_realistic(point: Point) -> bool:
    geometry = point.geometry
    return (
        geometry.stripe_size_bytes >= _MIB
        and point.window_bytes >= geometry.stripe_size_bytes
        and geometry.aggregators <= 512
    )


def _rules_method(choice: Choice) -> str:
    """Return the method that the rules alone name: the line tells it where another one is taken."""
    named = re.search(r", the rules' (\w+) ", choice.reason)
    return named[1] if named else choice.method


def _row(
    name: str, regret: np.ndarray, differs: np.ndarray, cost_s: np.ndarray, access_s: np.ndarray
) -> dict[str, object]:
    """Return one way's figures, and print them."""
    charged = regret + cost_s / access_s
    row = {
        "way": name,
        "differs": float(np.mean(differs)),
        "regret": [float(v) for v in np.quantile(regret, _QUANTILES)],
        "beyond_10_percent": float(np.mean(regret > 1.1)),
        "beyond_20_percent": float(np.mean(regret > 1.2)),
        "us": [float(v) for v in 1e6 * np.quantile(cost_s, _QUANTILES)],
        "with_its_cost": [float(v) for v in np.quantile(charged, _QUANTILES)],
    }
    click.echo(
        f"{name:20} differs {100 * np.mean(differs):5.1f} %  regret {np.round(row['regret'], 3)}  "
        f"> 1.1: {100 * np.mean(regret > 1.1):.2f} %  > 1.2: {100 * np.mean(regret > 1.2):.2f} %  "
        f"us {np.round(row['us'], 1)}  with its cost {np.round(row['with_its_cost'], 3)}"
    )
    return row


@click.command(context_settings={"show_default": True})
@click.option("--points", type=click.IntRange(1), default=500, help="Geometries of each seed.")
@click.option("--seed", "seeds", type=int, multiple=True, default=_SEEDS)
@click.option("--realistic", is_flag=True)
@click.option("--json", "out", type=click.Path(path_type=Path))
def main(points: int, seeds: tuple[int, ...], realistic: bool, out: Path | None) -> None:
    """Measure the decisions."""
    best_s, rules_s, auto_s, cost_s, model_s = [], [], [], [], []
    for seed in seeds:
        for point in itertools.islice((p for p in draw(seed) if not realistic or _is_realistic(p)), points):
            begun_s = time.process_time()
            choice = choose(
                point.geometry, lock=point.lock, operation=point.operation, window_bytes=point.window_bytes
            )  # fmt: skip
            decided_s = time.process_time()
            times_s = simulated(point)
            cost_s.append(decided_s - begun_s)
            model_s.append(time.process_time() - decided_s)
            best_s.append(min(times_s.values()))
            rules_s.append(times_s[_rules_method(choice), False])
            auto_s.append(times_s[choice.method, choice.stripe_size_io])
    best, rules, auto, cost, model = map(np.array, (best_s, rules_s, auto_s, cost_s, model_s))
    click.echo(f"{len(best)} geometries, quantiles {_QUANTILES}; differs: from the lock model's best by more than 3 %")
    rows = [
        _row("rules alone", rules / best, rules > 1.03 * best, np.zeros(len(best)), best),
        _row("rules and estimate", auto / best, auto > 1.03 * best, cost, best),
        _row("lock model", best / best, np.zeros(len(best)), model, best),
    ]
    if out is not None:
        out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
