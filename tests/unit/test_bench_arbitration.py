"""Two jobs under an arbiter, without them: results, their figure, and their section of the report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mpiio_ext.bench.arbitrated import results
from mpiio_ext.bench.arbitrated.command import command
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.report.arbitration import sections
from mpiio_ext.report.errors import ReportError


def run(policy: str, counts: tuple[int, int]) -> dict[str, Any]:
    """As `run_policy` returns it: the first job has all I/O nodes until the second one comes, and before it begins."""

    def job(begin: float, end: float, mb: int) -> dict[str, Any]:
        # its first slot begins before it does
        slots = [
            {"time_s": begin + 0.1 * k - 0.03, "data_bytes": mb * 100_000} for k in range(int((end - begin) / 0.1))
        ]
        return {
            "pattern": "shared,4KiB",
            "begin_s": begin,
            "end_s": end,
            "data_bytes": mb * 1_000_000,
            "verified_bytes": 16 << 20,
            "bandwidth_mb_per_s": mb / (end - begin),
            "remapped_ranges": 3,
            "slot_s": 0.1,
            "slots": slots,
        }

    steps = ((-0.4, {"small": 4}), (2.0, {"small": counts[0], "<large>": counts[1]}), (4.0, {"<large>": 4}))
    return {
        "policy": policy,
        "jobs": {"small": job(0.0, 4.0, 100), "<large>": job(2.0, 6.0, 500)},
        "map": [{"time_s": at, "io_nodes": has} for at, has in steps],
    }


def found() -> dict[str, Any]:
    curves = {"small": Curve.of({1: 10.0}), "<large>": Curve.of({1: 20.0})}
    return results.document([run("static", (2, 2)), run("mckp", (1, 3))], curves, {"ranks": 2, "io_nodes": 4}, {})


def test_results_say_who_had_what(tmp_path: Path) -> None:
    document = found()
    # 1 MB/s and 5 MB/s in the slots of both: not what the one wrote before the other began, or after it ended
    assert document["policies"]["static"]["bandwidth_mb_per_s"] == pytest.approx(600)
    assert results.lines(document)[-1].endswith("is no evidence for one of them.")
    assert "MCKP: small: 25 MB/s, I/O nodes 4 → 1" in results.lines(document)
    paths = results.write(tmp_path, document)
    assert [path.name for path in paths] == ["arbitration.svg", "arbitration.json"]
    figure = paths[0].read_text()
    assert figure.startswith("<svg") and "MCKP" in figure and "I/O nodes" in figure
    assert json.loads(paths[1].read_text()) == document


def test_the_section_of_the_report(tmp_path: Path) -> None:
    assert sections([tmp_path / "results.json"]) == []
    results.write(tmp_path, found())
    (section,) = sections([tmp_path / "results.json"])
    (figure,), (grid,) = section.figures, section.grids
    assert "MCKP" in figure.drawing and "I/O nodes" in figure.narrow and len(grid.rows) == 4
    assert figure.name == "arbitration.json" and json.loads(figure.data) == found()
    assert grid.rows[2][:4] == ("MCKP", "small", "shared,4KiB", "4 → 1")
    assert grid.rows[3][3] == "3 → 4"


def test_a_run_of_which_little_is_known_has_its_section(tmp_path: Path) -> None:
    """Without a change of the map, or without jobs under a policy; figures of several sets are told apart."""
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        document = found()
        document["policies"]["static"]["map"] = []
        document["policies"]["mckp"]["jobs"] = {}
        folder.mkdir()
        (folder / "arbitration.json").write_text(json.dumps(document))
    first, second = sections([folder / "results.json" for folder in folders])
    assert len(first.grids[0].rows) == 2 and first.grids[0].rows[0][3] == ""
    names = [set(re.findall(r' id="([^"]+)"', each.figures[0].drawing)) for each in (first, second)]
    assert names[0] and not names[0] & names[1]
    (folders[0] / "arbitration.json").write_text(json.dumps(found() | {"policies": {}}))
    (none,) = sections([folders[0] / "results.json"])
    assert none.sentences and not none.figures and not any(one.rows for one in none.grids)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON: Expecting"),
        ("[]", "/: a list of 0 is not an object"),
        ("{}", '/: "what" is missing'),
        ('{"what": "arbitration run", "format": 1}', '"configuration" is missing'),
        ('{"what": "arbitration run", "format": 2}', "/format: 2 is greater than 1"),
        (
            '{"what": "arbitration run", "format": 1, "configuration": {"ranks": 2, "io_nodes": 2}, '
            '"policies": {"mckp": '
            '{"map": [], "bandwidth_mb_per_s": 1, "jobs": {"a": '
            '{"pattern": "x", "data_bytes": -1, "bandwidth_mb_per_s": 1}}}}}',
            "/policies/mckp/jobs/a/data_bytes: -1 is less than 0",
        ),
        (
            '{"what": "arbitration run", "format": 1, "configuration": {"ranks": 2, "io_nodes": 2}, '
            '"policies": {"mckp": {"map": [], "bandwidth_mb_per_s": 1, "jobs": {"a": {"pattern": "x", "data_bytes": 1, '
            '"bandwidth_mb_per_s": 1, "end_s": 1, "slot_s": 0, "slots": []}}}}}',
            "/policies/mckp/jobs/a/slot_s: 0 is not greater than 0",
        ),
    ],
)
def test_what_is_no_run_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "arbitration.json").write_text(text)
    with pytest.raises(ReportError, match=rf"arbitration\.json: .*{said}"):
        sections([tmp_path / "results.json"])


def test_nothing_to_add_to(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--archive", str(tmp_path)])
    assert done.exit_code == 2 and "no results of the bench" in done.output
    done = CliRunner().invoke(command, ["--output", str(tmp_path / "new"), "--path", str(tmp_path / "nowhere")])
    assert done.exit_code == 2 and "no such folder" in done.output
