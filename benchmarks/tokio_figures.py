"""Make the figures of docs/explanation/metrics.md anew, of the published year of Edison's summaries.

    python benchmarks/tokio_figures.py edison-summaries_2017-02-14-2018-02-15.csv.gz docs/images/tokio

The table is part of github.com/NERSC/tokio-abcutils, folder summaries/.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.jobs import published, read
from mpiio_ext.analytics.jobs.climate.charts import averages_chart, correlation_chart, months_chart
from mpiio_ext.analytics.jobs.climate.study import study
from mpiio_ext.analytics.jobs.climate.watch import Options
from mpiio_ext.analytics.jobs.regimes import Rules
from mpiio_ext.analytics.jobs.umami import find, show, umami
from mpiio_ext.analytics.jobs.umami.job import history_of
from mpiio_ext.analytics.report.drawing import chart_of
from mpiio_ext.common.files import write_whole
from mpiio_ext.common.plots import svg_file

_SYSTEM, _MOTIF = "scratch3", "hacc_io_write_fpp_write"


def _charts(table: Path) -> dict[str, Chart]:
    jobs, steps = published(read(table))
    made = study(jobs, steps, Options(within_days=None), Rules())
    mine = [at for at, history in enumerate(made.every) if history.system == _SYSTEM]
    watched = {(one.motif, one.scale): one for one in made.watched if one.system == _SYSTEM}
    history, place = history_of(jobs, find(jobs, motif=_MOTIF, system=_SYSTEM))
    correlations = correlation_chart(made.correlations, made.options.level)
    assert correlations is not None
    return {
        "umami": show.chart(umami(history, place)), "correlations": correlations,
        "months": months_chart("months", _SYSTEM, [made.every[at] for at in mine], watched, made.options.target,
                               datetime.timezone.utc),
        "regimes": averages_chart("regimes", _SYSTEM, [made.partitions[at] for at in mine], made.rules),
    }  # fmt: skip


def main(table: Path, folder: Path) -> None:
    """Write the figures into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in _charts(table).items():
        size = write_whole(folder / f"{name}.svg", svg_file(chart_of(chart)))
        print(f"{folder / name}.svg: {size / 1e3:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make the figures of docs/explanation/metrics.md anew.")
    parser.add_argument("table", type=Path, help="the published summaries of Edison")
    parser.add_argument("folder", type=Path, help="where to write them: docs/images/tokio")
    arguments = parser.parse_args()
    main(arguments.table, arguments.folder)
