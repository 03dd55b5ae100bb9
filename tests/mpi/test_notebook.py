"""The notebook of the documents runs, cell by cell, and each of its jobs has a result that is one."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from mpiio_ext.delegates.arbitration import policy_classes
from support.launch import base_environment, run_bounded
from support.notebook import NOTEBOOK, SAME, cells_of, command, is_same, outputs_of

pytestmark = pytest.mark.mpi

#: What the jobs have led to.
CHECK = """{
    "written": Path("columns.dat").stat().st_size, "file_system": bool(layout.value("file_system")),
    "changes": domains.owner_changes().tolist(), "bandwidth": [row.bandwidth.median for row in measured.results.rows],
    "tuned": tuned, "advised": advised, "operations": sorted(set(path.table["operation"].to_pylist())),
    "rows": [path.table.num_rows, made.table.num_rows], "classes": len(profile.classes), "jobs": len(jobs),
    "weather": repr(weather), "policies": sorted({row["policy"] for row in shared.table().to_pylist()}),
    "seen": seen.sentence, "seen_files": [row["file"] for row in seen.library.rows()],
}"""


def test_all_jobs_from_python(extension: str, tmp_path: pathlib.Path) -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    launch = run_bounded(
        command(document, CHECK), env=base_environment() | {"COLUMNS": "100"}, timeout_s=400, cwd=tmp_path
    )
    shown, found = json.loads(launch.stdout.splitlines()[-1])
    assert "bytes_written" in shown[2][0], launch.describe()  # of job 1
    assert found["written"] == 2 * 2000 * 128 and found["file_system"]
    assert found["changes"] == [1, 1, 1]
    assert len(found["bandwidth"]) == 4 and min(found["bandwidth"]) > 0
    assert found["tuned"]["verdict"] in ("wins", "nothing", "unconfirmed")
    assert found["tuned"]["runs"][0]["phase"] == "baseline" and len(found["tuned"]["runs"]) >= 3
    assert found["advised"]["advise"]["main_file"].endswith("/columns.dat")
    assert {"MPI_File_open", "MPI_File_write_all", "MPI_File_close"} <= set(found["operations"])
    assert found["rows"][0] == found["rows"][1] > 3 and found["classes"] and found["jobs"] >= 1
    assert "job 1029: " in found["weather"] and "Performance: worst quarter" in found["weather"]
    assert "of its time in I/O" in found["seen"] and found["seen_files"] == ["columns.dat"]
    assert found["policies"] == sorted(name.upper() for name in policy_classes())
    made_now = [
        outputs_of(cell, one, str(tmp_path), number)
        for number, (cell, one) in enumerate(zip(cells_of(document), shown, strict=True), 1)
    ]
    for cell, now in zip(cells_of(document), made_now, strict=True):
        assert [one["output_type"] for one in now] == [one["output_type"] for one in cell["outputs"]], cell["source"]
        assert not is_same(cell) or now == cell["outputs"], "python tests/support/notebook.py puts them in"


def test_outputs_are_stored_small_and_without_a_machine() -> None:
    """A cell that prints, or ends with a value, has an output; none names a folder, a time or a speed of one run."""
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert document["nbformat"] == 4 and NOTEBOOK.stat().st_size < 60_000
    cells = cells_of(document)
    assert sum(map(is_same, cells)) == len(SAME)
    for number, cell in enumerate(cells, 1):
        assert cell["execution_count"] == number
        last = "".join(cell["source"]).rstrip().rpartition("\n")[2]
        assert bool(cell["outputs"]) == bool(re.match(r"print\(|[a-z_.]+(\[.*\])?$", last)), last
        text = json.dumps(cell["outputs"], ensure_ascii=False)
        assert not re.search(r"/(?:tmp|home|root|dev/shm|usr|work)/|0x[0-9a-f]{6}|Traceback|[Ee]rror", text), text
        assert is_same(cell) or not re.search(r"\d\.\d|\d (?:s|ms|µs|MB/s|GB/s)\b", text), text
