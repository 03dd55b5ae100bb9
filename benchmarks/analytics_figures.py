"""Make the figures of the analytics' pages anew, of the sample logs that PyDarshan ships.

    python benchmarks/analytics_figures.py docs/images/analytics

The logs are found in the installed package ``darshan``; a store is made in a temporary folder.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import darshan

from mpiio_ext.analytics import IOMiner
from mpiio_ext.analytics.analyses import analysis
from mpiio_ext.analytics.report.drawing import chart_of
from mpiio_ext.analytics.report.job import charts, document, job_tables
from mpiio_ext.common.files import write_whole
from mpiio_ext.common.plots import svg_file

_BAD_OST_JOB = 6265799  # sample-badost.darshan: 2,048 processes, one slow OST


def main(folder: Path) -> None:
    """Write the figures into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    logs = Path(darshan.__file__).parent / "examples" / "example_logs"
    with tempfile.TemporaryDirectory() as place:
        setup = {"store": str(Path(place) / "store"), "inputs": {"darshan": [str(logs)]}}
        with IOMiner(setup) as miner:
            miner.init_stores(quiet=True)
            drawn = [*analysis("applications")(miner).charts, *analysis("sequential")(miner).charts]
            tables = job_tables(miner, _BAD_OST_JOB)
            drawn += [chart for chart in charts(tables, document(tables)) if chart.name == "time-line-write"]
    for chart in drawn:
        size = write_whole(folder / f"{chart.name}.svg", svg_file(chart_of(chart)))
        print(f"{folder / chart.name}.svg: {size / 1e3:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make the figures of the analytics' pages anew.")
    parser.add_argument("folder", type=Path, help="where to write them: docs/images/analytics")
    main(parser.parse_args().folder)
