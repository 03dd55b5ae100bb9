"""Two sets of results compared: the rule, the matching, the exit statuses."""

from __future__ import annotations

import copy
import json
import re

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.common.results import Spread
from mpiio_ext.report.baseline import compare, falls_below, judge_change
from mpiio_ext.report.environment import differences
from mpiio_ext.report.load import load_all
from support import report_results as results
from support.html_page import Page

FIGURES = st.lists(st.floats(0.001, 1e6), min_size=3, max_size=6)


def runs_of(figures: dict[str, list[float]], **more) -> list[dict]:
    return [
        results.run(strategy, repetition=k, bandwidth=value, **more)
        for strategy, values in figures.items()
        for k, value in enumerate(values)
    ]


def sets_of(folder, name: str, *documents: dict):
    paths = [results.write(folder / f"{name}{k}" / "results.json", item) for k, item in enumerate(documents)]
    return load_all(paths)[0]


def compared(folder, old: dict, new: dict):
    return compare(sets_of(folder, "old", old), sets_of(folder, "new", new))


# ---- the rule ----


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FIGURES, FIGURES)
def test_judgment_is_by_the_ranges(old, new):
    expected = "within noise"
    if all(a > b for a in new for b in old):
        expected = "faster"
    elif all(a < b for a in new for b in old):
        expected = "slower"
    assert judge_change(Spread.of(old), Spread.of(new)) == expected


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FIGURES, FIGURES)
def test_judgment_turns_round_with_the_sides(old, new):
    swapped = {"faster": "slower", "slower": "faster", "within noise": "within noise"}
    there = judge_change(Spread.of(old), Spread.of(new))
    assert judge_change(Spread.of(new), Spread.of(old)) == swapped[there]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FIGURES)
def test_the_same_figures_are_noise(figures):
    assert judge_change(Spread.of(figures), Spread.of(figures)) == "within noise"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.floats(0.001, 1e6), FIGURES)
def test_two_repetitions_are_not_judged(single, figures):
    for few in ([single], [single, single]):
        assert judge_change(Spread.of(few), Spread.of(figures)) == "not judged"
        assert judge_change(Spread.of(figures), Spread.of(few)) == "not judged"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=25)
@given(old=FIGURES, new=FIGURES, limit=st.floats(0.01, 10))
def test_limit(old, new, limit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("limit")
    (match,) = compared(
        folder, results.document(runs_of({"auto": old})), results.document(runs_of({"auto": new}))
    ).matches
    assert match.ratio_low <= match.ratio <= match.ratio_high
    assert falls_below(match, limit) == (max(new) / min(old) < limit)
    assert falls_below(match, 1.0) == (match.judgment == "slower") or max(new) / min(old) == 1.0
    assert not falls_below(match, limit) or falls_below(match, 2 * limit)


def test_rows_of_the_mpi_library_never_fall_below(tmp_path):
    (match,) = compared(
        tmp_path,
        results.document(runs_of({"native": [100, 100, 101]})),
        results.document(runs_of({"native": [10, 10, 11]})),
    ).matches
    assert match.judgment == "slower"
    assert not falls_below(match, 1.0)


# ---- matching ----


def test_rows_are_matched_by_what_they_are(tmp_path):
    old = runs_of({"native": [100, 105, 110], "auto": [200, 210, 220], "even": [1, 2]})
    new = runs_of({"native": [50, 52.5, 55], "auto": [300, 315, 330]}) + runs_of({"auto": [7, 8]}, interface="hdf5")
    found = compared(tmp_path, results.document(old), results.document(new))
    judged = [(match.key.strategy, match.judgment) for match in found.matches]
    assert judged == [("native", "slower"), ("auto", "faster")]
    assert [row.key.strategy for row in found.only_old] == ["even"]
    assert [(row.key.strategy, row.key.interface) for row in found.only_new] == [("auto", "hdf5")]
    assert found.native_drift == pytest.approx(0.5)
    assert found.matches[1].ratio == pytest.approx(1.5)
    assert (found.matches[1].ratio_low, found.matches[1].ratio_high) == pytest.approx((300 / 220, 330 / 200))
    assert found.warned == ()


def test_rows_without_fields_that_may_lack_match(tmp_path):
    found = compared(
        tmp_path,
        results.document(runs_of({"auto": [1, 2]})),
        results.document(runs_of({"auto": [1, 2]}, phase="", kind="pattern", files=1)),
    )
    assert len(found.matches) == 1
    found = compared(
        tmp_path, results.document(runs_of({"auto": [1, 2]})), results.document(runs_of({"auto": [1, 2]}, phase="S"))
    )
    assert (len(found.matches), len(found.only_old), len(found.only_new)) == (0, 1, 1)


def test_other_size_is_told(tmp_path):
    found = compared(
        tmp_path, results.document(runs_of({"auto": [1, 2]})), results.document(runs_of({"auto": [1, 2]}, data_bytes=1))
    )
    assert found.matches[0].other_size


def test_no_bandwidth_in_the_baseline_is_no_division_by_zero(tmp_path):
    (match,) = compared(
        tmp_path,
        results.document(runs_of({"auto": [1, 1]}, bandwidth_mb_per_s=0.0)),
        results.document(runs_of({"auto": [1, 2]})),
    ).matches
    assert (match.ratio, match.ratio_low, match.ratio_high) == (None, None, None)
    assert not falls_below(match, 1.0)


# ---- environments ----


@pytest.mark.parametrize(
    "key, value, what",
    [
        ("ranks", 8, "Ranks"),
        ("mpi_library", "MPICH 5", "MPI library"),
        ("file_system_type", "lustre", "File system"),
        ("cpu_model", "Other", "Processor"),
        ("variables", {"MPIOX_RANKS_PER_NODE": "4"}, "MPIOX_RANKS_PER_NODE"),
        ("versions", {"hdf5": "1.14"}, "Version of hdf5"),
    ],
)
def test_environments_that_differ(key, value, what):
    old = results.ENVIRONMENT
    found = differences(old, copy.deepcopy(old) | {key: value}, {}, {})
    assert what in [item.what for item in found]


def test_environments_that_differ_only_in_what_is_meant_to():
    old = results.ENVIRONMENT
    new = old | {
        "started": "later",
        "git_revision": "other",
        "hosts": ["node9"],
        "command_line": "other",
        "variables": old["variables"] | {"OMPI_MCA_ess": "other", "OMPI_MCA_orte_tmpdir_base": "/t"},
        "versions": old["versions"] | {"mpiio_ext": "0.2.0"},
    }
    assert differences(old, new, results.CONFIGURATION, copy.deepcopy(results.CONFIGURATION)) == []
    sizes = results.CONFIGURATION["sizes"] | {"file_bytes": 1}
    (found,) = differences(old, new, results.CONFIGURATION, results.CONFIGURATION | {"sizes": sizes})
    assert "file" in found.what.lower()


# ---- the command ----


@pytest.fixture
def folders(tmp_path):
    old = runs_of({"native": [100, 110, 105], "auto": [200, 220, 210], "even": [300, 310, 305]})
    new = runs_of({"native": [100, 110, 105], "auto": [100, 110, 105], "even": [300, 310, 305]})
    results.write(tmp_path / "old" / "results.json", results.document(old))
    results.write(tmp_path / "new" / "results.json", results.document(new))
    return tmp_path


def few(folder):
    """Leave too few repetitions for a judgment."""
    results.write(folder / "new" / "results.json", results.document(runs_of({"native": [1, 2], "auto": [5]})))


def more_ranks(folder):
    document = json.loads((folder / "new" / "results.json").read_text())
    document["environment"]["ranks"] = 64
    results.write(folder / "new" / "results.json", document)


def compare_alone(folder):
    results.write(folder / "cmp.json", results.COMPARE)


OLD, PAGE = ("--baseline", "old"), ("-o", "r.html")
#: Options behind the new results, and what is done to the folders before.
INVOKED = {
    "json": ((*OLD, "--json", "--fail-below", "0.9"), None),
    **{f"limit {limit}": ((*OLD, "--fail-below", limit, *PAGE), None) for limit in ("0.9", "0.56", "0.55", "0.1")},
    "json with a page": ((*OLD, "--json", *PAGE), None),
    "a limit that judges nothing": ((*OLD, "--fail-below", "0.9", *PAGE), few),
    "json without a baseline": (("--json",), None),
    "a limit without a baseline": (("--fail-below", "0.9"), None),
    "a limit of nothing": (("--fail-below", "0", "--baseline", "x"), None),
    "a row twice on a side": (("old", *OLD, *PAGE), None),
    "a comparison of peers as a baseline": (("--baseline", "cmp.json", *PAGE), compare_alone),
    "other environments": ((*OLD, *PAGE), more_ranks),
}


@pytest.mark.parametrize("name", INVOKED)
def test_the_command(name, folders, monkeypatch, expected):
    words, change = INVOKED[name]
    monkeypatch.chdir(folders)
    if change is not None:
        change(folders)
    done = CliRunner().invoke(main, ["bench", "report", "new", *words])
    pages = [Page(path.read_text("utf-8")).text for path in folders.glob("*.html")]
    output = json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout
    errors = done.stderr.rpartition("Error: ")[2]
    found = {"status": done.exit_code, "output": output, "errors": errors, "pages": len(pages)}
    changes = [re.findall(r"Ranks: \d+ → \d+", text) for text in pages]
    expected({**found, "changes": changes}, hide={r"[\d.]+ kB": "SIZE"})
