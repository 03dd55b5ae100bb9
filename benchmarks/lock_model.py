"""How long the lock model takes, and how much memory: every method on a large machine.

    python benchmarks/lock_model.py [--aggregators 16384] [--servers 1344] [--stripes 10000000] [--fs lustre]
                                    [--no-cache]

One line for each method: processor time in seconds, the process's largest resident set so far in MiB, what was counted.
"""

from __future__ import annotations

import resource
import time

import click

from mpiio_ext.partitioning import Geometry, methods
from mpiio_ext.partitioning.locks import cached, gpfs, lustre, simulate, uncached

_MIB = 2**20


@click.command(context_settings={"show_default": True})
@click.option("--aggregators", type=click.IntRange(1), default=16384)
@click.option("--servers", type=click.IntRange(1), default=1344)
@click.option("--stripes", type=click.IntRange(1), default=10**7, help="Of 1 MiB each.")
@click.option("--window", type=click.IntRange(1), default=16 * _MIB, help="Bytes of a collective buffer.")
@click.option("--fs", type=click.Choice(["lustre", "gpfs"]), multiple=True, default=["lustre", "gpfs"])
@click.option("--cache/--no-cache", default=True, help="Clients write behind, or a round ends on the servers.")
def main(aggregators: int, servers: int, stripes: int, window: int, fs: tuple[str, ...], cache: bool) -> None:
    """Measure the lock model."""
    geometry = Geometry.of_stripes(stripes, servers=servers, aggregators=aggregators)
    for name in fs:
        system = (cached if cache else uncached)(lustre() if name == "lustre" else gpfs())
        for method in (m.name for m in methods()):
            begun_s = time.process_time()
            outcome = simulate(geometry, method, file_system=system, window_bytes=window)
            took_s = time.process_time() - begun_s
            resident_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            counts = f"{outcome.total_lock_requests:,} lock requests, {outcome.total_revocations:,} revocations"
            click.echo(f"{name:7} {method:14} {took_s:6.2f} s  {resident_mib:6.0f} MiB  {counts}")


if __name__ == "__main__":
    main()
