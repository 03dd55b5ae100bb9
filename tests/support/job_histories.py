"""Histories of jobs made of chosen levels, and the published year of Edison's summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpiio_ext.analytics.jobs import Jobs
from mpiio_ext.analytics.tools.series import Series
from support.darshan_rows import shared_data

__all__ = ["DAY", "EDISON", "START", "edison", "history", "series", "some", "steps"]

DAY = 86400.0
#: 2020-01-01 00:00 UTC.
START = 1577836800.0
EDISON = ("tokio", "summaries", "edison-summaries_2017-02-14-2018-02-15.csv.gz")
PERFORMANCE = "darshan_agg_perf_by_slowest_posix"


def edison() -> Any:
    """Return the path of the published year, or skip the test."""
    return shared_data(*EDISON)


def steps(levels: Sequence[tuple[int, float]], *, seed: int = 1, noise: float = 0.03) -> np.ndarray[Any, Any]:
    """Return values at levels: (how many, which) each, with relative noise that is the same for the same seed."""
    random = np.random.default_rng(seed)
    return np.concatenate([level * (1 + noise * random.standard_normal(count)) for count, level in levels])


def history(performance: Sequence[float], more: Mapping[str, Any] | None = None, **texts: str) -> Jobs:
    """Return a job a night with these performances (MiB/s), of an application that writes a file per process."""
    count = len(performance)
    names = {"_file_system": "scratch1", "darshan_app": "/bin/ior", **texts}
    columns: dict[str, Any] = {
        "_jobid": np.arange(1000, 1000 + count),
        "_datetime_start": START + DAY * np.arange(count),
        PERFORMANCE: np.asarray(performance, dtype=float),
        "darshan_nprocs": np.full(count, 64),
        "darshan_biggest_read_api_bytes": np.zeros(count),
        "darshan_biggest_write_api_bytes": np.full(count, 1e12),
        "darshan_biggest_read_api_files": np.zeros(count),
        "darshan_biggest_write_api_files": np.full(count, 64),
        "darshan_total_gibs_posix": np.full(count, 931.3),
        **{name: np.full(count, value, dtype=object) for name, value in names.items()},
        **(more or {}),
    }
    return Jobs(columns, "made")


def series(seed: int = 1) -> Series:
    """Return seven steps of three servers, one value of which is missing."""
    values = np.random.default_rng(seed).random((7, 3))
    values[2, 1] = np.nan
    return Series(
        quantity="bytes_read", unit="B", step_s=5.0, first=1517126400.0, names=("OST0000", "b", "ü"), values=values
    )


def some(count: int = 3) -> Jobs:
    """Return summaries of logs, two of a job, with notes, and slices of the first two."""
    rows = [
        {
            "_jobid": 40 + number // 2,
            "_log_id": 2**61 + number,
            "_datetime_start": 1.5e9 + number,
            "_log": f"{number}.darshan",
            "darshan_app": "",
            "fs_tot_bytes_read": 0.1 + number,
            "_notes": 'a\nb,"c"',
        }
        for number in range(count)
    ]
    notes = [
        {"_jobid": 40, "_log_id": 2**61, "source": "servers", "status": "missing", "what": "no samples"},
        {"source": "darshan", "status": "skipped", "what": "x.darshan: empty"},
    ]
    return Jobs.of_rows(rows, notes, {2**61: {"bytes_read": series()}, 2**61 + 1: {"oss_cpu": series(2)}})
