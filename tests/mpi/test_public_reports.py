"""What people have reported of MPI-IO in public, with the library: no error, no hang, every byte right.

The programs (tests/support/public.py) know nothing of the library. What they do natively is no test's business.
"""

from __future__ import annotations

import os
import pathlib
import shutil

import pytest

from support import codes, marks, public
from support.launch import MEMORY, mpi_run

pytestmark = pytest.mark.mpi

QUICK = [name for name, report in public.REPORTS.items() if not report.dear]
DEAR = [name for name in public.REPORTS if name not in QUICK]
#: The file domains are even or cyclic, and the exchange is forced, or left out.
HINTS = (
    "",
    "*:mpiox_partition=static_cyclic:mpiox_exchange=two_phase:striping_unit=64k:striping_factor=3",
    "*:mpiox_exchange=direct",
)
#: Messages between nodes, and delegates.
MORE_HINTS = marks.slow("*:mpiox_ranks_per_node=1:mpiox_exchange=two_phase", "*:mpiox_delegates=1")


def check(name: str, folder: pathlib.Path, hints: str, timeout_s: float = 60.0) -> None:
    report = public.REPORTS[name]
    # Where holes of GiB cost nothing.
    file = pathlib.Path(MEMORY or folder) / f"mpiio_ext_public_{os.getpid()}"
    try:
        words = public.command(report, str(file))
    except codes.CodeAbsentError as error:
        pytest.skip(str(error))
    try:
        launch = mpi_run(words, report.ranks, env={"MPIOX_HINTS": hints}, preload=True, timeout_s=timeout_s)
    finally:
        file.unlink(missing_ok=True)
    assert "verified" in launch.stdout, launch.describe()


@pytest.mark.both_with("*-")
@pytest.mark.slow_except(
    "pieces-of-2-gib-",
    "pieces-of-2-gib-*:mpiox_partition=*",
    "calls-around-2-limits-",
    "hdf5-cartesian-",
    "hdf5-cartesian-*:mpiox_partition=*",
    "hdf5-rows-",
    "hdf5-rows-*:mpiox_partition=*",
)
@pytest.mark.parametrize("hints", [*HINTS, *MORE_HINTS])
@pytest.mark.parametrize("name", QUICK)
def test_reported_programs(extension: str, tmp_path: pathlib.Path, name: str, hints: str) -> None:
    check(name, tmp_path, hints)


@pytest.mark.slow
@pytest.mark.parametrize("hints", HINTS)
@pytest.mark.parametrize("name", DEAR)
def test_reported_volumes(extension: str, tmp_path: pathlib.Path, name: str, hints: str) -> None:
    """Calls of 2 and 4 GiB and around them, and all calls around these limits."""
    place = pathlib.Path(MEMORY or tmp_path)
    pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    needed = 2 * public.REPORTS[name].memory_gib * (1 << 30)
    if shutil.disk_usage(place).free < needed or pages * size < needed:
        pytest.skip(f"needs {needed / (1 << 30):.0f} GiB of memory")
    check(name, tmp_path, hints, timeout_s=300)


def test_every_source_is_of_a_report() -> None:
    sources = {path.stem for path in public.SOURCES.glob("*.c")}
    assert sources == {report.program for report in public.REPORTS.values()}
