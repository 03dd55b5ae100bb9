"""Files of job tables as earlier versions wrote them are read, to the value.

The archive holds what ``summarize-job`` and ``climate --save`` wrote when each had its own writer: three logs, of which
some have notes and slices, and three nights with texts, numbers and missing values beside each other.
"""

from __future__ import annotations

import math
import tarfile
from pathlib import Path

import numpy as np
import pytest

from mpiio_ext.analytics.jobs import files, read
from support.job_histories import DAY, PERFORMANCE, START, series, some

ARCHIVE = Path(__file__).parent / "files" / "job-tables.tar.xz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("before")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(found, filter="data")
    return found


@pytest.mark.parametrize("form", [".parquet", ".csv", ".csv.gz", ".sqlite", ".h5"])
def test_summaries(folder: Path, form: str) -> None:
    if form == ".h5":
        pytest.importorskip("h5py")
    path, wanted = folder / f"summaries{form}", some(3)
    found = files.read(path)
    assert found.rows() == wanted.rows() and found.table.schema.equals(wanted.table.schema, check_metadata=True)
    if not form.startswith(".csv"):
        assert found.notes.to_pylist() == wanted.notes.to_pylist()
    if form == ".h5":
        np.testing.assert_array_equal(files.slices_of(path, 40)[2**61]["bytes_read"].values, series().values)
    table = read(path)
    assert table.texts("_jobid").tolist() == ["40", "40", "41"] and table.numbers("fs_tot_bytes_read")[1] == 1.1
    assert table.missing("darshan_nprocs").all() and table.texts("darshan_app").tolist() == [""] * 3
    assert files.update(some(1), path).rows() == wanted.rows()


@pytest.mark.parametrize("form", [".parquet", ".csv", ".sqlite"])
def test_tables_of_the_climate(folder: Path, form: str) -> None:
    table = read(folder / f"climate{form}")
    assert table.texts("_jobid").tolist() == ["1000", "1001", "1002"]
    assert table.times().tolist() == [START, START + DAY, START + 2 * DAY]
    assert table.numbers(PERFORMANCE).tolist() == [10.0, 40.0, 20.0]
    np.testing.assert_array_equal(table.numbers("fs_ave_mds_cpu"), [math.nan, 2.5, 0.0])
    assert table.texts("note").tolist() == ["a", "", 'two, "words"'] and table.texts("mixed").tolist() == ["1", "x", ""]
    assert table.numbers("darshan_biggest_write_api_bytes").tolist() == [1e12] * 3
    assert table.missing("coverage_factor_bw").all() and table.texts("_benchmark_id").tolist() == ["ior_fpp_write"] * 3
    assert "darshan_normalized_perf_by_max" not in table and len(table.names) == 29
