"""A small run of the bench and its evaluation: why one method was slower than another, in the page of the bench."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from support.html_page import Page
from support.parts import require

require("ibis")

pytestmark = pytest.mark.mpi


@pytest.mark.slow
def test_a_run_of_the_bench_is_evaluated_in_its_report(extension, mpi_python, tmp_path):
    (tmp_path / "files").mkdir()
    mpi_python(
        [
            "-m",
            "mpiio_ext.bench",
            "--path",
            tmp_path / "files",
            "--output",
            tmp_path / "out",
            "--quick",
            "-w",
            "interleaved",
            "-k",
            "flash",
            "-i",
            "mpiio",
            "-m",
            "native,auto,even,group_cyclic",
            "-r",
            "2",
            "--no-figures",
        ],
        4,
        timeout_s=120,
        cwd=tmp_path,
    )
    before = Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    done = CliRunner().invoke(main, ["analyze", "--results", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output + done.stderr
    after = Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert after.problems == [] and "Why was one slower than another here?" in after.text
    # All of the page of the bench is there still.
    every = after.of_class("plain")
    why = [rows for rows in every if rows[0][0] == "case"]
    assert [rows for rows in every if rows not in why] == before.of_class("plain")

    runs = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))["runs"]
    known = {
        (f"{run['variant']} [MPI-IO], " + ", ".join(filter(None, (run.get("phase"), run["operation"])))) for run in runs
    }
    for row in (row for rows in why for row in rows[1:]):
        assert row[0] in known and {row[1], row[2]} <= {"native", "auto", "even", "group_cyclic"}
        assert float(row[3].rstrip("×")) >= 1.1 and row[4]
