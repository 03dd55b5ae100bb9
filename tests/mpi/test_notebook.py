"""The notebook of the documents runs, cell by cell, and each of its jobs has a result that is one."""

from __future__ import annotations

import ast
import json
import pathlib
import sys

import pytest

from mpiio_ext.delegates.arbitration import policy_classes
from support.launch import ROOT, base_environment, run_bounded

pytestmark = pytest.mark.mpi

NOTEBOOK = ROOT / "docs" / "tutorial" / "jobs.ipynb"

#: Shows what a cell ends with, as a notebook does: as HTML where there is some, else as text.
SHOW = """
def show(value):
    html = getattr(value, "_repr_html_", None)
    print(html() if html else repr(value))
"""

#: What the jobs have led to.
CHECK = """
import json
print(json.dumps({
    "written": Path("columns.dat").stat().st_size, "file_system": bool(layout.value("file_system")),
    "changes": domains.owner_changes().tolist(), "bandwidth": [row.bandwidth.median for row in measured.results.rows],
    "tuned": tuned, "advised": advised, "operations": sorted(set(path.table["operation"].to_pylist())),
    "rows": [path.table.num_rows, made.table.num_rows], "classes": len(profile.classes), "jobs": len(jobs),
    "weather": repr(weather), "policies": sorted({row["policy"] for row in shared.table().to_pylist()}),
    "seen": seen.sentence, "seen_files": [row["file"] for row in seen.library.rows()],
}, default=str))
"""


def script(document: dict[str, object]) -> str:
    """Return the code of all cells; the last expression of each is shown."""
    parts = [SHOW]
    for cell in document["cells"]:  # type: ignore[attr-defined]
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            if isinstance(last := tree.body[-1], ast.Expr):
                last.value = ast.Call(ast.Name("show", ast.Load()), [last.value], [])
            parts.append(ast.unparse(tree))
    return "\n".join([*parts, CHECK])


def test_all_jobs_from_python(extension: str, tmp_path: pathlib.Path) -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert document["nbformat"] == 4 and all(not cell.get("outputs") for cell in document["cells"])
    launch = run_bounded([sys.executable, "-c", script(document)], env=base_environment(), timeout_s=400, cwd=tmp_path)
    found = json.loads(launch.stdout.splitlines()[-1])
    assert "bytes_written" in launch.stdout, launch.describe()  # of job 1
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
