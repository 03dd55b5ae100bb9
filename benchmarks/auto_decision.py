"""How long `auto` takes to decide, and how that compares with the access that it decides for.

    python benchmarks/auto_decision.py [--points 500] [--seed 20081115] [--realistic]

Geometries are those of tests/support/partition_grid.py; --realistic: stripes of 1 MiB at least, windows of a stripe at
least, up to 512 aggregators. Processor time of choose(), in microseconds, and as a share of the time that the lock
model predicts for the access. A collective that accesses as much again further on looks its decision up.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import click
import numpy as np

from mpiio_ext.partitioning import choose
from mpiio_ext.partitioning.locks import simulate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.partition_grid import FILE_SYSTEMS, Point, draw

_MIB = 2**20
_QUANTILES = (0.5, 0.75, 0.9, 0.99, 1.0)


def _is_realistic(point: Point) -> bool:
    geometry = point.geometry
    return (
        geometry.stripe_size_bytes >= _MIB
        and point.window_bytes >= geometry.stripe_size_bytes
        and geometry.aggregators <= 512
    )


@click.command(context_settings={"show_default": True})
@click.option("--points", type=click.IntRange(1), default=500)
@click.option("--seed", type=int, default=20081115)
@click.option("--realistic", is_flag=True)
def main(points: int, seed: int, realistic: bool) -> None:
    """Measure the decisions."""
    took_s, access_s = [], []
    for point in itertools.islice((p for p in draw(seed) if not realistic or _is_realistic(p)), points):
        geometry, lock, window, operation = point
        begun_s = time.process_time()
        choice = choose(geometry, lock=lock, operation=operation, window_bytes=window)
        took_s.append(time.process_time() - begun_s)
        access_s.append(
            simulate(
                geometry, choice.method, file_system=FILE_SYSTEMS[lock], window_bytes=window,
                stripe_size_io=choice.stripe_size_io, operation=operation,
            ).time_s
        )  # fmt: skip
    took, share = np.array(took_s), np.array(took_s) / np.array(access_s)
    click.echo(f"{points} decisions, quantiles {_QUANTILES}")
    click.echo(f"  us:                {np.round(1e6 * np.quantile(took, _QUANTILES))}")
    click.echo(f"  share of access %: {np.round(100 * np.quantile(share, _QUANTILES), 2)}")


if __name__ == "__main__":
    main()
